//! The table `[engine]`: the model our own agent asks, and what it brings along.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use toml::de::DeTable;

use super::{Reader, Value};
use crate::error::Error;

/// What the user wrote down for the engine.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct EngineConfig {
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) personality: Option<String>,
    pub(crate) compact_at: Option<u64>,
    pub(crate) web_search: Option<bool>,
    pub(crate) freeform_patch: Option<bool>,
    pub(crate) shell: Option<String>,
    pub(crate) pass: Option<Vec<String>>,
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    pub(crate) models: BTreeMap<String, ModelConfig>,
    pub(crate) mcp_servers: BTreeMap<String, ServerConfig>,
}

/// Who serves a model.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct ProviderConfig {
    pub(crate) base_url: Option<String>,
    pub(crate) env_key: Option<String>,
    pub(crate) key_file: Option<String>,
    pub(crate) query_params: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) env_headers: BTreeMap<String, String>,
    pub(crate) request_max_retries: Option<u64>,
    pub(crate) stream_max_retries: Option<u64>,
    pub(crate) stream_idle_timeout: Option<Duration>,
    pub(crate) stores_responses: Option<bool>,
}

/// What is known of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ModelConfig {
    pub(crate) context_window: Option<u64>,
    pub(crate) thinks: Option<bool>,
    pub(crate) sees: Option<bool>,
    pub(crate) description: Option<String>,
}

/// A server of tools.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct ServerConfig {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
}

const KEYS: &[&str] = &[
    "model",
    "provider",
    "effort",
    "personality",
    "compact_at",
    "web_search",
    "freeform_patch",
    "shell",
    "pass",
    "providers",
    "models",
    "mcp_servers",
];

const PROVIDER_KEYS: &[&str] = &[
    "base_url",
    "env_key",
    "key_file",
    "query_params",
    "headers",
    "env_headers",
    "request_max_retries",
    "stream_max_retries",
    "stream_idle_timeout",
    "stores_responses",
];

const MODEL_KEYS: &[&str] = &["context_window", "thinks", "sees", "description"];

const SERVER_KEYS: &[&str] = &["command", "args", "env", "url", "headers"];

impl std::fmt::Debug for EngineConfig {
    /// Headers and variables may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig")
            .field("model", &self.model)
            .field("provider", &self.provider)
            .field("providers", &self.providers.keys().collect::<Vec<_>>())
            .field("models", &self.models.keys().collect::<Vec<_>>())
            .field("mcp_servers", &self.mcp_servers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A table in a table of tables.
struct Place<'a> {
    at: Range<usize>,
    name: &'a str,
    path: &'a str,
}

impl Reader<'_> {
    pub(super) fn engine(&self, table: &DeTable<'_>) -> Result<EngineConfig, Error> {
        const WORDS: [&str; 3] = ["friendly", "pragmatic", "none"];
        let mut engine = EngineConfig::default();
        let mut provider_at = 0..0;
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("engine.{name}");
            match name {
                "model" => engine.model = Some(self.string(&path, value)?),
                "provider" => {
                    engine.provider = Some(self.string(&path, value)?);
                    provider_at = value.span();
                }
                "effort" => engine.effort = Some(self.string(&path, value)?),
                "personality" => {
                    let word = self.string(&path, value)?;
                    if !WORDS.contains(&word.as_str()) {
                        let message = format!("{word:?} is none of {}", WORDS.join(", "));
                        return Err(self.error(&value.span(), &path, &message));
                    }
                    engine.personality = Some(word);
                }
                "compact_at" => engine.compact_at = Some(self.tokens(&path, value)?),
                "web_search" => engine.web_search = Some(self.boolean(&path, value)?),
                "freeform_patch" => engine.freeform_patch = Some(self.boolean(&path, value)?),
                "shell" => engine.shell = Some(self.string(&path, value)?),
                "pass" => engine.pass = Some(self.strings(&path, value)?),
                "providers" => engine.providers = self.each(&path, value, Self::provider)?,
                "models" => engine.models = self.each(&path, value, Self::model)?,
                "mcp_servers" => engine.mcp_servers = self.each(&path, value, Self::server)?,
                _ => return Err(self.unknown(key.span(), "engine", name, KEYS)),
            }
        }
        if let Some(name) = engine.provider.as_ref()
            && name != "openai"
            && !engine.providers.contains_key(name)
        {
            let message = format!("there is no table [engine.providers.{name}]");
            return Err(self.error(&provider_at, "engine.provider", &message));
        }
        Ok(engine)
    }

    /// A table of tables.
    fn each<T>(
        &self,
        path: &str,
        value: &Value<'_>,
        read: impl Fn(&Self, &Place<'_>, &DeTable<'_>) -> Result<T, Error>,
    ) -> Result<BTreeMap<String, T>, Error> {
        let table = self.table(path, value)?.iter();
        let each = table.map(|(key, value)| {
            let name = key.get_ref().clone().into_owned();
            let path = format!("{path}.{name}");
            let place = Place { at: key.span(), name: &name, path: &path };
            let table = read(self, &place, self.table(&path, value)?)?;
            Ok((name, table))
        });
        each.collect()
    }

    fn provider(&self, place: &Place<'_>, table: &DeTable<'_>) -> Result<ProviderConfig, Error> {
        let mut provider = ProviderConfig::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("{}.{name}", place.path);
            match name {
                "base_url" => provider.base_url = Some(self.string(&path, value)?),
                "env_key" => provider.env_key = Some(self.string(&path, value)?),
                "key_file" => provider.key_file = Some(self.string(&path, value)?),
                "query_params" => provider.query_params = self.variables(&path, value)?,
                "headers" => provider.headers = self.variables(&path, value)?,
                "env_headers" => provider.env_headers = self.variables(&path, value)?,
                "request_max_retries" => {
                    provider.request_max_retries = Some(self.count(&path, value)?);
                }
                "stream_max_retries" => {
                    provider.stream_max_retries = Some(self.count(&path, value)?);
                }
                "stream_idle_timeout" => {
                    provider.stream_idle_timeout = Some(self.seconds(&path, value)?);
                }
                "stores_responses" => provider.stores_responses = Some(self.boolean(&path, value)?),
                _ => return Err(self.unknown(key.span(), place.path, name, PROVIDER_KEYS)),
            }
        }
        if provider.base_url.is_none() && place.name != "openai" {
            let message = "needs base_url, such as \"http://127.0.0.1:11434/v1\"";
            return Err(self.error(&place.at, place.path, message));
        }
        Ok(provider)
    }

    fn model(&self, place: &Place<'_>, table: &DeTable<'_>) -> Result<ModelConfig, Error> {
        let mut model = ModelConfig::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("{}.{name}", place.path);
            match name {
                "context_window" => model.context_window = Some(self.tokens(&path, value)?),
                "thinks" => model.thinks = Some(self.boolean(&path, value)?),
                "sees" => model.sees = Some(self.boolean(&path, value)?),
                "description" => model.description = Some(self.string(&path, value)?),
                _ => return Err(self.unknown(key.span(), place.path, name, MODEL_KEYS)),
            }
        }
        Ok(model)
    }

    fn server(&self, place: &Place<'_>, table: &DeTable<'_>) -> Result<ServerConfig, Error> {
        let mut server = ServerConfig::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("{}.{name}", place.path);
            match name {
                "command" => server.command = Some(self.string(&path, value)?),
                "args" => server.args = self.strings(&path, value)?,
                "env" => server.env = self.variables(&path, value)?,
                "url" => server.url = Some(self.string(&path, value)?),
                "headers" => server.headers = self.variables(&path, value)?,
                _ => return Err(self.unknown(key.span(), place.path, name, SERVER_KEYS)),
            }
        }
        if server.command.is_some() == server.url.is_some() {
            let message = "needs either command or url";
            return Err(self.error(&place.at, place.path, message));
        }
        Ok(server)
    }

    /// How often; never is an answer, too.
    fn count(&self, key: &str, value: &Value<'_>) -> Result<u64, Error> {
        let wanted = "a whole number from 0 on";
        match value.get_ref().as_integer().map(|number| number.as_str()) {
            Some("0") => Ok(0),
            _ => self.number(key, value, wanted),
        }
    }

    fn tokens(&self, key: &str, value: &Value<'_>) -> Result<u64, Error> {
        self.number(key, value, "a whole number from 1 on")
    }
}

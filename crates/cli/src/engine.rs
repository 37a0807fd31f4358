//! The engine as configured: which model, whose, and what it may use.

use std::path::{Path, PathBuf};

use tieline_engine::model::{Key, ModelError, Provider};
use tieline_engine::scripted::{self, Playing};
use tieline_engine::{Model, Settings};
use tieline_event::{Failure, FailureCode, McpServer, McpTransport};

use crate::config::{Config, EngineConfig, ProviderConfig, usual_place};

/// The model, if nobody says otherwise.
const MODEL: &str = "gpt-5.2-codex";

/// What the engine calls its version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The variable that lets the words of the demo follow each other without a pause.
const FAST: &str = "TIELINE_DEMO_FAST";

/// Where the model is, unless the configuration says so.
const BASE_URL: &str = "OPENAI_BASE_URL";

/// Its key.
const API_KEY: &str = "OPENAI_API_KEY";

/// What OpenAI's models can hold, and that they think and see.
const KNOWN: [(&str, u64); 6] = [
    ("gpt-5.2-codex", 272_000),
    ("gpt-5.2", 272_000),
    ("gpt-5.1-codex", 272_000),
    ("gpt-5.1-codex-mini", 272_000),
    ("gpt-5.1", 272_000),
    ("gpt-5", 272_000),
];

/// The engine on a script in place of a model: nothing of the user's providers is used.
pub(crate) fn demo(config: &Config, data_dir: Option<&Path>) -> Settings {
    let own = Own::of(config, data_dir);
    let script = config.agent("demo").script;
    let playing = Playing {
        file: script.map(|file| expanded(&file)),
        fast: std::env::var_os(FAST).is_some(),
    };
    Settings {
        version: VERSION.to_owned(),
        models: vec![Model {
            name: scripted::MODEL.to_owned(),
            context_window: Some(1_000_000),
            thinks: true,
            sees: true,
            description: Some("No model: it plays its script".to_owned()),
        }],
        home: home(),
        config_dir: config_dir(),
        hidden: own.hidden,
        protected: own.protected,
        shell: shell(),
        ..Settings::new(Provider::scripted("demo", playing), scripted::MODEL)
    }
}

/// What is tieline's own, and no command's business.
#[derive(Debug, Clone, Default)]
pub(crate) struct Own {
    /// It may not be read: histories, keys, the headers of servers.
    pub(crate) hidden: Vec<PathBuf>,
    /// It may not be changed: it says what may run unasked.
    pub(crate) protected: Vec<PathBuf>,
}

impl Own {
    pub(crate) fn of(config: &Config, data_dir: Option<&Path>) -> Self {
        let key = match provider(&config.engine).map(|provider| provider.key) {
            Ok(Key::File(file)) => Some(file),
            _ => None,
        };
        // Skills and prompts beside the file are for the model to read.
        let files = [usual_place(), config.file.clone()].into_iter().flatten();
        let hidden: Vec<PathBuf> =
            data_dir.map(Path::to_owned).into_iter().chain(key).chain(files).collect();
        let protected = hidden.iter().cloned().chain([config_dir()]).collect();
        Self { hidden, protected }
    }
}

/// What says where the engine's model is, if anything does.
pub(crate) fn named_by(config: &Config) -> Option<&'static str> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if config.engine != EngineConfig::default() {
        return Some("[engine]");
    }
    [BASE_URL, API_KEY].into_iter().find(|name| is_set(name))
}

/// What it is started with.
pub(crate) fn settings(config: &Config, data_dir: Option<&Path>) -> Result<Settings, Failure> {
    let engine = &config.engine;
    let provider = provider(engine)?;
    let Own { hidden, protected } = Own::of(config, data_dir);
    let model = config.model_of("engine");
    Ok(Settings {
        version: VERSION.to_owned(),
        model: model.unwrap_or_else(|| MODEL.to_owned()),
        models: models(engine),
        effort: engine.effort.clone(),
        personality: engine.personality.clone().unwrap_or_else(|| "pragmatic".to_owned()),
        compact_at: engine.compact_at,
        web_search: engine.web_search.unwrap_or(false),
        freeform_patch: engine.freeform_patch.unwrap_or(provider.name == "openai"),
        home: home(),
        config_dir: config_dir(),
        hidden,
        protected,
        env: tieline_engine::exec::for_tools(engine.pass.as_deref().unwrap_or_default()),
        shell: engine.shell.clone().unwrap_or_else(shell),
        mcp_servers: servers(engine),
        provider,
    })
}

/// Whether there is a key, where one is needed.
pub(crate) fn check_key(config: &Config) -> Result<(), Failure> {
    let settings = settings(config, None)?;
    let key = settings.provider.key.fetch(|name| std::env::var_os(name));
    let explained = |why| ModelError::NoKey(why).explain(&settings.provider, &settings.model);
    key.map(drop).map_err(explained)
}

fn provider(engine: &EngineConfig) -> Result<Provider, Failure> {
    let name = engine.provider.as_deref().unwrap_or("openai");
    let Some(config) = engine.providers.get(name) else { return Ok(openai()) };
    let base = match &config.base_url {
        Some(base) => base.clone(),
        None if name == "openai" => openai().base_url,
        None => {
            let message = format!("engine.providers.{name} has no base_url");
            return Err(Failure::new(FailureCode::BadRequest, message)
                .hint("write the address of its API there, such as http://127.0.0.1:11434/v1"));
        }
    };
    let usual = Provider::new(name, base);
    Ok(Provider {
        key: key(config, name),
        query_params: pairs(&config.query_params, usual.query_params),
        headers: pairs(&config.headers, usual.headers),
        env_headers: pairs(&config.env_headers, usual.env_headers),
        request_max_retries: number(config.request_max_retries, usual.request_max_retries),
        stream_max_retries: number(config.stream_max_retries, usual.stream_max_retries),
        stream_idle_timeout: config.stream_idle_timeout.unwrap_or(usual.stream_idle_timeout),
        stores_responses: config.stores_responses.unwrap_or(usual.stores_responses),
        ..Provider::new(name, usual.base_url)
    })
}

fn number(set: Option<u64>, usual: u32) -> u32 {
    set.map_or(usual, |set| u32::try_from(set).unwrap_or(u32::MAX))
}

fn pairs(
    set: &std::collections::BTreeMap<String, String>,
    usual: Vec<(String, String)>,
) -> Vec<(String, String)> {
    match set.is_empty() {
        true => usual,
        false => set.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

/// OpenAI, or whoever stands in its place: then a key is sent if there is one.
fn openai() -> Provider {
    let openai = Provider::openai();
    match std::env::var(BASE_URL).ok().filter(|url| !url.trim().is_empty()) {
        None => openai,
        Some(url) => {
            let key = match std::env::var_os(API_KEY).filter(|key| !key.is_empty()) {
                Some(_) => openai.key,
                None => Key::None,
            };
            Provider { key, ..Provider::new("openai", url.trim()) }
        }
    }
}

fn key(config: &ProviderConfig, name: &str) -> Key {
    match (&config.key_file, &config.env_key) {
        (Some(file), _) => Key::File(expanded(file)),
        (None, Some(variable)) => Key::Env(variable.clone()),
        (None, None) if name == "openai" => Key::Env(API_KEY.to_owned()),
        (None, None) => Key::None,
    }
}

fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

fn models(engine: &EngineConfig) -> Vec<Model> {
    let mut models: Vec<Model> = Vec::new();
    for (name, config) in &engine.models {
        models.push(Model {
            name: name.clone(),
            context_window: config.context_window,
            thinks: config.thinks.unwrap_or(false),
            sees: config.sees.unwrap_or(true),
            description: config.description.clone(),
        });
    }
    for (name, window) in KNOWN {
        if !engine.models.contains_key(name) {
            models.push(Model {
                name: name.to_owned(),
                context_window: Some(window),
                thinks: true,
                sees: true,
                description: None,
            });
        }
    }
    models
}

fn servers(engine: &EngineConfig) -> Vec<McpServer> {
    let server = |(name, config): (&String, &crate::config::ServerConfig)| McpServer {
        name: name.clone(),
        transport: match (&config.command, &config.url) {
            (Some(command), _) => McpTransport::Stdio {
                command: command.clone(),
                args: config.args.clone(),
                env: config.env.clone(),
            },
            (None, url) => McpTransport::Http {
                url: url.clone().unwrap_or_default(),
                headers: config.headers.clone(),
            },
        },
    };
    engine.mcp_servers.iter().map(server).collect()
}

fn config_dir() -> PathBuf {
    let place = usual_place().and_then(|file| file.parent().map(Path::to_owned));
    place.unwrap_or_else(|| PathBuf::from("/nonexistent"))
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// The user's shell, if it is one whose flags are known.
fn shell() -> String {
    let named = std::env::var("SHELL").unwrap_or_default();
    let is_known = ["/bash", "/zsh", "/sh"].iter().any(|name| named.ends_with(name));
    match is_known && Path::new(&named).exists() {
        true => named,
        false if Path::new("/bin/bash").exists() => "/bin/bash".to_owned(),
        false => "/bin/sh".to_owned(),
    }
}

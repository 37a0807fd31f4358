//! Who provides a model.

use std::fmt;
use std::time::Duration;

use super::Key;
use crate::scripted::Playing;

/// A provider of the Responses API, and how to deal with it.
#[derive(Clone)]
pub struct Provider {
    /// What it is called in messages.
    pub name: String,
    /// Where its API is; `/responses` is added.
    pub base_url: String,
    /// Its key.
    pub key: Key,
    /// Added to every URL.
    pub query_params: Vec<(String, String)>,
    /// Added to every request.
    pub headers: Vec<(String, String)>,
    /// The same, with the names of the variables that hold the values; one that is not set is not
    /// sent.
    pub env_headers: Vec<(String, String)>,
    /// How often a request is sent again that got no answer, 100 at most.
    pub request_max_retries: u32,
    /// How often a request is sent again whose answer broke off, 100 at most.
    pub stream_max_retries: u32,
    /// How long the provider may be silent.
    pub stream_idle_timeout: Duration,
    /// How long it may take to connect.
    pub connect_timeout: Duration,
    /// The first pause before another try; it doubles with each.
    pub retry_pause: Duration,
    /// Whether answers are to be stored at the provider, and items to be named by their ids.
    pub stores_responses: bool,
    /// Whether the key goes into Azure's header.
    pub azure: bool,
    /// Who we say we are.
    pub user_agent: String,
    /// It is embedded: a script answers in place of a server, and nothing else of this counts.
    pub script: Option<Playing>,
}

impl Provider {
    /// A provider with the usual settings and no key.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let azure = is_azure(&base_url);
        Self {
            name: name.into(),
            base_url,
            key: Key::None,
            query_params: Vec::new(),
            headers: Vec::new(),
            env_headers: Vec::new(),
            request_max_retries: 4,
            stream_max_retries: 5,
            stream_idle_timeout: Duration::from_secs(300),
            connect_timeout: Duration::from_secs(10),
            retry_pause: Duration::from_millis(200),
            stores_responses: azure,
            azure,
            user_agent: "tieline".to_owned(),
            script: None,
        }
    }

    /// OpenAI with the key in `OPENAI_API_KEY`.
    pub fn openai() -> Self {
        let key = Key::Env("OPENAI_API_KEY".to_owned());
        Self { key, ..Self::new("openai", "https://api.openai.com/v1") }
    }

    /// A script in place of a provider. What it fails at it would fail at again, and it may be
    /// silent for as long as it likes.
    pub fn scripted(name: impl Into<String>, script: Playing) -> Self {
        Self {
            request_max_retries: 0,
            stream_max_retries: 0,
            stream_idle_timeout: Duration::from_secs(365 * 24 * 3600),
            script: Some(script),
            ..Self::new(name, "")
        }
    }

    /// Where it is, without anything in the URL that may be secret.
    pub fn endpoint(&self) -> String {
        let url = self.base_url.split(['?', '#']).next().unwrap_or_default();
        let url = match url.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let host = host.rsplit('@').next().unwrap_or_default();
                format!("{scheme}://{host}/{path}")
            }
            None => url.to_owned(),
        };
        url.trim_end_matches('/').to_owned()
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect();
        let (headers, query): (Vec<String>, Vec<String>) =
            (names(&self.headers), names(&self.query_params));
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint())
            .field("key", &self.key)
            .field("headers", &headers)
            .field("query_params", &query)
            .finish_non_exhaustive()
    }
}

/// Azure's hosts.
fn is_azure(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"]
        .iter()
        .any(|suffix| host.ends_with(suffix))
}

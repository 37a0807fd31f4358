//! Asking a provider.

use std::ffi::OsString;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use tieline_wire::responses::Request;
use tokio::time::{sleep, timeout};

use super::error::{ModelError, Unreachable, innermost};
use super::refusal::{Scrub, by_status};
use super::retry::{Backoff, Retry, Wait};
use super::secret::{Key, KeyTrouble, Secret};
use super::{Provider, Stream};
use crate::scripted::{Opening, Scripted};

/// How much of a list of models is read.
const LIST: usize = 1024 * 1024;

/// How much of a refusal is read.
const REFUSAL: usize = 64 * 1024;

/// A server that lets nobody in is not tried for longer than this: each try may take the whole time
/// for connecting.
const UNREACHED: Duration = Duration::from_secs(15);

/// Asks one provider, for any number of sessions: a clone shares its connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    provider: Provider,
    way: Way,
}

/// How a provider is asked.
enum Way {
    Http(Box<Http>),
    Script(Scripted),
}

struct Http {
    http: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    /// The key, unless it is in a file, which is read for each request: it may be corrected.
    key: Option<Result<Option<Secret>, KeyTrouble>>,
    scrub: Scrub,
}

impl Client {
    /// A client for this provider. Variables are those of this process.
    ///
    /// # Errors
    /// When the URL or a header cannot be used. A missing key is an error of
    /// [`stream`](Self::stream).
    pub fn new(provider: Provider) -> Result<Self, ModelError> {
        Self::with_env(provider, |name| std::env::var_os(name))
    }

    /// The same with other variables.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_env(
        provider: Provider,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ModelError> {
        if let Some(playing) = &provider.script {
            let way = Way::Script(Scripted::new(playing).map_err(ModelError::Settings)?);
            return Ok(Self(Arc::new(Inner { provider, way })));
        }
        let url = url(&provider, "responses")?;
        let mut scrub = Scrub::default();
        for (_, value) in provider.query_params.iter().chain(&provider.headers) {
            scrub.add(Secret::new(value));
        }
        let headers = headers(&provider, &env, &mut scrub)?;
        let key = match &provider.key {
            Key::File(_) => None,
            key => Some(key.fetch(&env)),
        };
        let http = http(&provider, &url)?;
        let way = Way::Http(Box::new(Http { http, url, headers, key, scrub }));
        Ok(Self(Arc::new(Inner { provider, way })))
    }

    /// Whom it asks.
    pub fn provider(&self) -> &Provider {
        &self.0.provider
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// What got no answer is sent again, as often and as slowly as the provider's settings say.
    /// The conversation goes into the header `session_id` by the request's `prompt_cache_key`.
    ///
    /// # Errors
    /// When there is no answer, or it is a refusal.
    pub async fn stream(&self, request: &Request) -> Result<Stream, ModelError> {
        let mut question = self.question(request, &[])?;
        loop {
            match question.ask().await {
                Ok(stream) => return Ok(stream),
                Err((error, None)) => return Err(error),
                Err((_, Some(wait))) => sleep(wait.delay).await,
            }
        }
    }

    /// The same step by step, for those who have something to say between two tries. `turns` are
    /// the places in the input where turns of the user begin; a script counts them.
    ///
    /// # Errors
    /// When there is no key, or the request cannot be made.
    pub fn question(&self, request: &Request, turns: &[usize]) -> Result<Question, ModelError> {
        let Inner { provider, way } = &*self.0;
        let asked = match way {
            Way::Script(_) => {
                Asked::Script { request: Box::new(request.clone()), turns: turns.into() }
            }
            Way::Http(http) => {
                let key = http.key(provider)?;
                let mut scrub = http.scrub.clone();
                key.iter().for_each(|key| scrub.add(key.clone()));
                let http = http.request(provider, request, key.as_ref())?;
                Asked::Http { http: Box::new(http), scrub }
            }
        };
        let backoff = Backoff::for_request(provider);
        Ok(Question { client: self.clone(), asked, backoff, began: Instant::now() })
    }

    /// Looks whether somebody is there who speaks this API, and which models there are. The model is asked
    /// nothing.
    ///
    /// # Errors
    /// When there is no answer, no key, or the key is refused.
    pub async fn knock(&self, limit: Duration) -> Result<Presence, ModelError> {
        let Inner { provider, way: Way::Http(http) } = &*self.0 else {
            return Ok(Presence { has_responses: true, models: None });
        };
        let (status, list) = http.probe(provider, Method::GET, "models", limit).await?;
        // Not everybody has a list of models.
        let models = (status == 200).then(|| listed(&list)).flatten();
        // A request that says nothing is refused by whoever would understand one that does.
        let (status, _) = http.probe(provider, Method::POST, "responses", limit).await?;
        Ok(Presence { has_responses: !matches!(status, 404 | 405 | 501), models })
    }

    /// Whether the provider is on this machine.
    pub fn is_local(&self) -> bool {
        match &self.0.way {
            Way::Http(http) => is_loopback(&http.url),
            Way::Script(_) => true,
        }
    }
}

/// What a provider was found to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// It has the Responses API.
    pub has_responses: bool,
    /// The models it lists, if it lists any.
    pub models: Option<Vec<String>>,
}

impl Http {
    /// Asks for something without a word for a model, and gives the status and the beginning of the body.
    async fn probe(
        &self,
        provider: &Provider,
        method: Method,
        what: &str,
        limit: Duration,
    ) -> Result<(u16, Vec<u8>), ModelError> {
        let key = self.key(provider)?;
        let mut request = reqwest::Request::new(method.clone(), url(provider, what)?);
        if method == Method::POST {
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some("{}".into());
        }
        self.sign(provider, request.headers_mut(), key.as_ref())?;
        let late = || {
            let detail = format!("no answer within {} s", limit.as_secs_f64());
            ModelError::Connect { why: Unreachable::Timeout, detail }
        };
        let answer = timeout(limit, self.http.execute(request)).await.map_err(|_| late())?;
        let mut answer = answer.map_err(ModelError::unsent)?;
        let status = answer.status().as_u16();
        if let 401 | 403 = status {
            return Err(by_status(status, answer.headers(), b"", &self.scrub));
        }
        let mut body = Vec::new();
        while body.len() < LIST
            && let Ok(Ok(Some(chunk))) = timeout(limit, answer.chunk()).await
        {
            body.extend_from_slice(&chunk);
        }
        Ok((status, body))
    }

    fn key(&self, provider: &Provider) -> Result<Option<Secret>, ModelError> {
        Ok(match &self.key {
            Some(key) => key.clone()?,
            None => provider.key.fetch(|_| None)?,
        })
    }

    /// The key, and the headers of the provider's settings.
    fn sign(
        &self,
        provider: &Provider,
        headers: &mut HeaderMap,
        key: Option<&Secret>,
    ) -> Result<(), ModelError> {
        if let Some(key) = key {
            let (name, value) = match provider.azure {
                true => (HeaderName::from_static("api-key"), key.reveal().to_owned()),
                false => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
            };
            headers.insert(name, secret_value("the key", &value)?);
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        Ok(())
    }

    fn request(
        &self,
        provider: &Provider,
        request: &Request,
        key: Option<&Secret>,
    ) -> Result<reqwest::Request, ModelError> {
        let body = request.to_json();
        tracing::debug!(
            provider = %provider.name, model = %request.model, items = request.input.len(),
            bytes = body.len(), "the model is asked"
        );
        let mut http = reqwest::Request::new(Method::POST, self.url.clone());
        *http.body_mut() = Some(body.into());
        let headers = http.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(thread) = &request.prompt_cache_key
            && let Ok(thread) = HeaderValue::from_str(thread)
        {
            headers.insert("session_id", thread);
        }
        self.sign(provider, headers, key)?;
        Ok(http)
    }

    async fn send(
        &self,
        http: reqwest::Request,
        idle: Duration,
        scrub: &Scrub,
    ) -> Result<Stream, ModelError> {
        let mut answer = match timeout(idle, self.http.execute(http)).await {
            Ok(answer) => answer.map_err(ModelError::unsent)?,
            Err(_) => return Err(ModelError::Idle(idle)),
        };
        let status = answer.status().as_u16();
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        // Some servers name no type for their streams, or a wrong one; these two are none.
        let no_stream = kind.starts_with("text/html") || kind.starts_with("application/json");
        if status == 200 && !no_stream {
            return Ok(Stream::new(answer, idle, scrub.clone()));
        }
        let mut body = Vec::new();
        // A refusal that breaks off is still a refusal.
        while body.len() < REFUSAL
            && let Ok(Ok(Some(chunk))) = timeout(idle, answer.chunk()).await
        {
            body.extend_from_slice(&chunk);
        }
        if status == 200 {
            let words = format!("{kind} in place of a stream of events");
            return Err(ModelError::Protocol(words));
        }
        Err(by_status(status, answer.headers(), &body, scrub))
    }
}

/// Asks a script.
async fn play(
    script: &Scripted,
    request: &Request,
    turns: &[usize],
    idle: Duration,
) -> Result<Stream, ModelError> {
    // Each hasher of the standard library begins with a random state.
    let nonce = RandomState::new().build_hasher().finish() as u32;
    let mut answer = script.answer(request, turns, nonce);
    loop {
        match answer.open() {
            Opening::Pause(time) => sleep(time).await,
            Opening::Refusal { status, text } => return Err(refusal((status, text))),
            Opening::Ready => return Ok(Stream::scripted(answer, idle)),
        }
    }
}

/// What a server would mean by this.
fn refusal((status, text): (u16, String)) -> ModelError {
    let body = serde_json::json!({"error": {"message": text}}).to_string();
    by_status(status, &HeaderMap::new(), body.as_bytes(), &Scrub::default())
}

/// A request that may have to be sent several times.
pub struct Question {
    client: Client,
    asked: Asked,
    backoff: Backoff,
    began: Instant,
}

/// What is asked.
enum Asked {
    Http { http: Box<reqwest::Request>, scrub: Scrub },
    Script { request: Box<Request>, turns: Vec<usize> },
}

impl Question {
    /// Sends it once.
    ///
    /// # Errors
    /// When there is no answer, with the pause before another try if one is worth it.
    pub async fn ask(&mut self) -> Result<Stream, (ModelError, Option<Wait>)> {
        let Inner { provider, way } = &*self.client.0;
        let idle = provider.stream_idle_timeout;
        let answer = match (way, &self.asked) {
            (Way::Script(script), Asked::Script { request, turns }) => {
                play(script, request, turns, idle).await
            }
            (Way::Http(way), Asked::Http { http, scrub }) if let Some(http) = http.try_clone() => {
                way.send(http, idle, scrub).await
            }
            _ => Err(ModelError::Settings("the request cannot be sent again".to_owned())),
        };
        let error = match answer {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        let Retry::Request(_) = error.retry() else { return Err((error, None)) };
        if matches!(error, ModelError::Connect { .. }) && self.began.elapsed() > UNREACHED {
            return Err((error, None));
        }
        let wait = self.backoff.next(&error);
        if let Some(wait) = &wait {
            tracing::debug!(
                provider = %provider.name, attempt = wait.attempt,
                limit = wait.limit, pause = ?wait.delay, %error, "the model is asked again"
            );
        }
        Err((error, wait))
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("backoff", &self.backoff).finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.0.provider).finish()
    }
}

/// The address of something of the API.
/// The names in a list of models.
fn listed(body: &[u8]) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct List {
        data: Vec<Named>,
    }
    #[derive(serde::Deserialize)]
    struct Named {
        id: String,
    }
    let list: List = serde_json::from_slice(body).ok()?;
    let names: Vec<String> = list.data.into_iter().map(|model| model.id).collect();
    (!names.is_empty()).then_some(names)
}

fn url(provider: &Provider, what: &str) -> Result<Url, ModelError> {
    let shown = provider.endpoint();
    let wrong = |why: &str| ModelError::Settings(format!("the URL {shown:?} of the model {why}"));
    let mut url = Url::parse(&provider.base_url).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("begins neither with http:// nor with https://"));
    }
    url.path_segments_mut().map_err(|()| wrong("has no path"))?.pop_if_empty().push(what);
    if !provider.query_params.is_empty() {
        url.query_pairs_mut().extend_pairs(&provider.query_params);
    }
    Ok(url)
}

fn headers(
    provider: &Provider,
    env: &impl Fn(&str) -> Option<OsString>,
    scrub: &mut Scrub,
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &str| -> Result<(), ModelError> {
        let header = HeaderName::try_from(name)
            .map_err(|_| ModelError::Settings(format!("{name:?} is no name of a header")))?;
        headers.insert(header, secret_value(name, value)?);
        Ok(())
    };
    for (name, value) in &provider.headers {
        add(name, value)?;
    }
    for (name, variable) in &provider.env_headers {
        let Some(value) = env(variable) else { continue };
        let value = value.to_string_lossy();
        if value.trim().is_empty() {
            continue;
        }
        scrub.add(Secret::new(value.trim()));
        add(name, value.trim())?;
    }
    Ok(headers)
}

/// A value that no log of the HTTP library shows.
fn secret_value(name: &str, value: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        ModelError::Settings(format!("the value of {name} cannot stand in a header"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn http(provider: &Provider, url: &Url) -> Result<reqwest::Client, ModelError> {
    // Fails if somebody installed a provider before, which is as good.
    let _already = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = reqwest::Client::builder()
            .user_agent(&provider.user_agent)
            .connect_timeout(provider.connect_timeout)
            // A key goes where the configuration says and nowhere else.
            .redirect(reqwest::redirect::Policy::none());
        // No proxy leads to this machine.
        if is_loopback(url) { builder.no_proxy() } else { builder }
    };
    match builder().build() {
        // A machine without certificates can still ask a model of its own.
        Err(_) if url.scheme() == "http" => builder().tls_certs_only([]).build(),
        built => built,
    }
    .map_err(|error| ModelError::Settings(format!("no secure connections: {}", innermost(&error))))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

//! A loopback HTTP server that plays scripts in place of a model.
//!
//! It speaks the Anthropic Messages and the OpenAI Responses API. The last
//! `SCENARIO:name[:n]` in a user message picks the [`Script`]; the tool results
//! after it pick the step, so the server keeps no conversation state. Everything
//! else an agent may ask (token counts, probes, model lists) gets a harmless answer.

mod anthropic;
mod gate;
mod http;
mod prompt;
mod responses;
mod scenarios;
mod script;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use self::gate::Gate;
pub use self::script::{Block, Script, Step};

use self::http::{Connection, Lost, Request};
use self::prompt::Prompt;

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct CapturedRequest {
    pub method: String,
    /// With the query string.
    pub path: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// `Null` if there was no JSON body.
    pub body: Value,
}

/// One answer and what it took the server.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The user's text that was answered.
    pub text: String,
    /// From the moment the whole request was there until the last byte was handed over.
    pub took: Duration,
}

/// A scripted model. It stops when dropped.
pub struct ModelServer {
    url: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl ModelServer {
    /// Starts a server on a free port of the loopback interface.
    pub async fn start() -> ModelServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        ModelServer { url: format!("http://{address}"), shared, accepting }
    }

    /// The base URL, without a path and without a final slash.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<CapturedRequest> {
        lock(&self.shared.requests).clone()
    }

    /// Forgets the requests so far: those of a thousand turns are large.
    pub fn forget_requests(&self) {
        lock(&self.shared.requests).clear();
    }

    /// Every answer so far, in the order in which they ended.
    pub fn answers(&self) -> Vec<Answered> {
        lock(&self.shared.answers).clone()
    }

    /// The gate called `name`; scripts and tests share it by that name.
    pub fn gate(&self, name: &str) -> Gate {
        self.shared.gate(name)
    }

    /// Adds or replaces the scenario `name`.
    ///
    /// `{workspace}` in a string of a tool's input becomes the agent's workspace.
    pub fn scenario(&self, name: &str, script: Script) {
        lock(&self.shared.scenarios).insert(name.to_owned(), script);
    }

    /// Fixes the workspace of tools that need an absolute path.
    ///
    /// Without it the server takes what the agent's prompt names.
    pub fn workspace(&self, path: impl Into<PathBuf>) {
        *lock(&self.shared.workspace) = Some(path.into());
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The API a request came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Messages,
    Responses,
}

/// One thing to do while answering with a stream.
#[derive(Debug)]
pub(crate) enum Frame {
    Event {
        name: &'static str,
        data: Value,
    },
    /// Waits for a permit of this gate.
    Await(String),
    /// Tells this gate that a chunk has been sent.
    Passed(String),
    Pause(Duration),
    /// Closes the connection in the middle of the body.
    Cut,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<CapturedRequest>>,
    answers: Mutex<Vec<Answered>>,
    scenarios: Mutex<HashMap<String, Script>>,
    gates: Mutex<HashMap<String, Gate>>,
    workspace: Mutex<Option<PathBuf>>,
    /// How often each exact conversation was asked, to tell a retry from a first try.
    attempts: Mutex<HashMap<u64, usize>>,
    ids: Ids,
}

/// Numbers for `req_`, `msg_`, `toolu_` and `call_` ids, unique in one server.
#[derive(Default)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn next(&self, prefix: &str) -> String {
        format!("{prefix}_{:04}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Shared {
    fn gate(&self, name: &str) -> Gate {
        lock(&self.gates).entry(name.to_owned()).or_default().clone()
    }

    /// The step that answers `prompt`, and its place in the script.
    fn step(&self, prompt: &Prompt) -> (Step, usize) {
        let own =
            prompt.scenario.as_ref().and_then(|s| lock(&self.scenarios).get(&s.name).cloned());
        let script = own.unwrap_or_else(|| scenarios::builtin(prompt));
        let attempt = {
            let mut attempts = lock(&self.attempts);
            let count = attempts.entry(prompt.conversation).or_default();
            *count += 1;
            *count - 1
        };
        script.step(prompt.results, attempt)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Aborting this task drops the set, which ends every connection with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut connection = Connection::new(stream);
    // A lost connection is the agent's choice (an interrupt) or a script's (a drop).
    while let Ok(Some(request)) = connection.request().await {
        if answer(&mut connection, &request, &shared).await.is_err() {
            return;
        }
    }
}

async fn answer(
    connection: &mut Connection,
    request: &Request,
    shared: &Shared,
) -> Result<(), Lost> {
    let began = Instant::now();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    lock(&shared.requests).push(CapturedRequest {
        method: request.method.clone(),
        path: request.target.clone(),
        headers: request.headers.clone(),
        body: body.clone(),
    });
    let path = request.target.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("POST", "/v1/messages") => {
            model(connection, &body, shared, Dialect::Messages, began).await
        }
        ("POST", "/v1/responses") => {
            model(connection, &body, shared, Dialect::Responses, began).await
        }
        ("POST", "/v1/messages/count_tokens") => {
            connection.json(200, &[], &json!({"input_tokens": 1000})).await
        }
        ("GET", "/v1/models") => connection.json(200, &[], &models()).await,
        ("HEAD" | "GET", "/") => connection.json(200, &[], &json!({})).await,
        _ => {
            let error = error_body(Dialect::Messages, 404, "the scripted model has no such page");
            connection.json(404, &[], &error).await
        }
    }
}

async fn model(
    connection: &mut Connection,
    body: &Value,
    shared: &Shared,
    dialect: Dialect,
    began: Instant,
) -> Result<(), Lost> {
    let workspace = lock(&shared.workspace).clone();
    let prompt = Prompt::read(dialect, body, workspace);
    let (step, index) = shared.step(&prompt);
    let request_id = shared.ids.next("req");
    let id_header = match dialect {
        Dialect::Messages => ("request-id", request_id.as_str()),
        Dialect::Responses => ("x-request-id", request_id.as_str()),
    };
    // Without a stream there is no event to carry the failure, so it is a status.
    let refusal = match &step {
        Step::HttpError { status, message, retry_after } => Some((*status, message, *retry_after)),
        Step::ErrorEvent { message, .. } if !prompt.stream => Some((529, message, None)),
        _ => None,
    };
    if let Some((status, message, retry_after)) = refusal {
        let seconds = retry_after.map(|seconds| seconds.to_string());
        let mut headers = vec![id_header];
        headers.extend(seconds.as_deref().map(|seconds| ("retry-after", seconds)));
        return connection.json(status, &headers, &error_body(dialect, status, message)).await;
    }
    if !prompt.stream {
        if matches!(step, Step::Drop { .. }) {
            return Err(Lost);
        }
        let message = match dialect {
            Dialect::Messages => anthropic::message(&prompt, &step, index, &shared.ids),
            Dialect::Responses => responses::response(&prompt, &step, index, &shared.ids),
        };
        return connection.json(200, &[id_header], &message).await;
    }
    let frames = match dialect {
        Dialect::Messages => anthropic::frames(&prompt, &step, index, &shared.ids),
        Dialect::Responses => responses::frames(&prompt, &step, index, &shared.ids),
    };
    connection.start_stream(&[id_header]).await?;
    for frame in frames {
        play(connection, frame, shared).await?;
    }
    connection.end_stream().await?;
    lock(&shared.answers).push(Answered { text: prompt.text, took: began.elapsed() });
    Ok(())
}

async fn play(connection: &mut Connection, frame: Frame, shared: &Shared) -> Result<(), Lost> {
    match frame {
        Frame::Event { name, data } => connection.event(name, &data).await,
        Frame::Await(name) => {
            let gate = shared.gate(&name);
            let passed = connection.unless_lost(gate.pass()).await;
            if passed.is_err() {
                gate.abandon();
            }
            passed
        }
        Frame::Passed(name) => {
            shared.gate(&name).sent();
            Ok(())
        }
        Frame::Pause(time) => connection.unless_lost(tokio::time::sleep(time)).await,
        Frame::Cut => Err(Lost),
    }
}

fn error_body(dialect: Dialect, status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    match dialect {
        Dialect::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Dialect::Responses => {
            json!({"error": {"message": message, "type": kind, "code": null, "param": null}})
        }
    }
}

fn models() -> Value {
    let model =
        |id: &str| json!({"id": id, "object": "model", "type": "model", "owned_by": "fake"});
    json!({"object": "list", "data": [model("gpt-5.5"), model("claude-opus-5-5")], "models": []})
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}

//! A server over streamable HTTP, as small as one can be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

/// The token that every request needs.
pub(crate) const TOKEN: &str = "Bearer hunter2-of-the-header";

/// A server on the loopback interface.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    pub(crate) address: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    /// Requests, in order: method and session.
    seen: Mutex<Vec<(String, Option<String>)>>,
    /// It forgets its sessions, as after a restart.
    session: Mutex<u32>,
    news: Notify,
    /// What the user said to the question.
    answer: Mutex<Value>,
    answered: Notify,
}

impl HttpServer {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    pub(crate) async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let url = format!("http://{address}/mcp?key=hunter2-of-the-query");
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            // They end with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { url, address, state, task }
    }

    /// Waits until a method was called so many times.
    pub(crate) async fn saw(&self, method: &str, times: usize) {
        loop {
            let news = self.state.news.notified();
            let seen = self.state.seen.lock().unwrap().iter().filter(|it| it.0 == method).count();
            if seen >= times {
                return;
            }
            news.await;
        }
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.state.seen.lock().unwrap().iter().filter(|it| it.0 == method).count()
    }

    /// Forgets the session.
    pub(crate) fn forget(&self) {
        *self.state.session.lock().unwrap() += 1;
    }
}

impl HttpServer {
    /// Ends it, and every connection.
    pub(crate) async fn stop(mut self) {
        self.task.abort();
        assert!((&mut self.task).await.unwrap_err().is_cancelled());
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request, and its answer.
async fn serve(stream: TcpStream, state: Arc<State>) {
    let mut stream = BufReader::new(stream);
    while let Some((verb, headers, body)) = read(&mut stream).await {
        let answer = match asks(&body) {
            Some(id) => ask(stream.get_mut(), &state, &id).await,
            None => answer(&state, &verb, &headers, &body).await,
        };
        let is_last = answer.starts_with("event:");
        if stream.get_mut().write_all(answer.as_bytes()).await.is_err() || is_last {
            return;
        }
    }
}

/// The id of a call that is to ask the user.
fn asks(body: &[u8]) -> Option<Value> {
    let message: Value = serde_json::from_slice(body).ok()?;
    (message["params"]["arguments"]["text"] == "ask").then(|| message["id"].clone())
}

/// Asks the user; gives the last event of the stream.
async fn ask(stream: &mut TcpStream, state: &State, id: &Value) -> String {
    let news = state.answered.notified();
    let schema = json!({"type": "object", "properties": {"colour": {"type": "string"}}});
    let question = json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create",
        "params": {"message": "Which?", "requestedSchema": schema}});
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let first = format!("{head}event: message\ndata: {question}\n\n");
    stream.write_all(first.as_bytes()).await.unwrap();
    news.await;
    let said = state.answer.lock().unwrap().to_string();
    let result = json!({"content": [{"type": "text", "text": said}]});
    let result = json!({"jsonrpc": "2.0", "id": id, "result": result});
    format!("event: message\ndata: {result}\n\n")
}

async fn read(
    stream: &mut BufReader<TcpStream>,
) -> Option<(String, HashMap<String, String>, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let verb = line.split(' ').next()?.to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((verb, headers, body))
}

async fn answer(
    state: &State,
    verb: &str,
    headers: &HashMap<String, String>,
    body: &[u8],
) -> String {
    if headers.get("authorization").map(String::as_str) != Some(TOKEN) {
        return plain("401 Unauthorized", "");
    }
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    if message["id"] == 7 && message.get("result").is_some() {
        *state.answer.lock().unwrap() = message["result"].clone();
        state.answered.notify_one();
    }
    let method = message["method"].as_str().unwrap_or(verb).to_owned();
    let session = headers.get("mcp-session-id").cloned();
    state.seen.lock().unwrap().push((method.clone(), session.clone()));
    state.news.notify_waiters();
    let current = format!("session-{}", *state.session.lock().unwrap());
    if method != "initialize" && session.as_deref() != Some(&*current) {
        return plain("404 Not Found", "");
    }
    let result = match (verb, method.as_str()) {
        ("GET", _) => return plain("405 Method Not Allowed", ""),
        ("DELETE", _) => return plain("200 OK", ""),
        (_, "initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "http", "version": "1"},
        }),
        (_, "tools/list") => json!({"tools": [
            {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        ]}),
        (_, "tools/call") => {
            let text = &message["params"]["arguments"]["text"];
            if text == "wait" {
                // Until the client gives up.
                return std::future::pending().await;
            }
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => return plain("202 Accepted", ""),
    };
    let is_events = method == "tools/call" && message["params"]["arguments"]["text"] == "events";
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let (kind, body) = match is_events {
        true => ("text/event-stream", format!("event: message\ndata: {body}\n\n")),
        false => ("application/json", body),
    };
    let more = format!("content-type: {kind}\r\nmcp-session-id: {current}\r\n");
    format!("HTTP/1.1 200 OK\r\n{more}content-length: {}\r\n\r\n{body}", body.len())
}

fn plain(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

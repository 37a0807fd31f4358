//! A provider that answers byte by byte as a test wants: cut anywhere, silent, or not at all.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What a request gets.
pub(crate) enum Reply {
    /// A status, a header and a body.
    Refusal { status: u16, header: (&'static str, String), kind: &'static str, body: String },
    /// A stream of events.
    Stream { bytes: Vec<u8>, end: End },
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Whole,
    /// The connection is closed in the middle of it.
    Cut,
    /// Not at all: nothing comes any more.
    Silent,
}

impl Reply {
    pub(crate) fn refusal(status: u16, body: &Value) -> Self {
        let header = ("x-request-id", "req_1".to_owned());
        Self::Refusal { status, header, kind: "application/json", body: body.to_string() }
    }

    pub(crate) fn stream(events: &[String], end: End) -> Self {
        Self::Stream { bytes: events.concat().into_bytes(), end }
    }

    pub(crate) fn say(id: &str, text: &str) -> Self {
        Self::stream(&answer(id, &[message(&format!("msg_{id}"), text)]), End::Whole)
    }
}

type Script = dyn Fn(usize, &Value) -> Reply + Send + Sync;

/// The provider. It stops when dropped.
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Value>>>,
    accepting: JoinHandle<()>,
}

impl Provider {
    /// Answers each request, by its number and body.
    pub(crate) async fn start(
        script: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let accepting = tokio::spawn(accept(listener, script, Arc::clone(&asked)));
        Self { url, asked, accepting }
    }

    /// The bodies of the requests.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, script: Arc<Script>, asked: Arc<Mutex<Vec<Value>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (script, asked) = (Arc::clone(&script), Arc::clone(&asked));
        connections.spawn(async move {
            // Whoever hangs up gets no more.
            drop(serve(stream, &*script, &asked).await);
        });
    }
}

async fn serve(
    mut stream: TcpStream,
    script: &Script,
    asked: &Mutex<Vec<Value>>,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some(body) = request(&mut stream, &mut buffer).await? else { return Ok(()) };
        let body: Value = serde_json::from_slice(&body)?;
        let number = {
            let mut asked = asked.lock().unwrap();
            asked.push(body.clone());
            asked.len() - 1
        };
        match script(number, &body) {
            Reply::Refusal { status, header: (name, value), kind, body } => {
                let answer = format!(
                    "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\n{name}: {value}\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await?;
            }
            Reply::Stream { bytes, end } => {
                let head = "HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\n\
                            transfer-encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).await?;
                if !bytes.is_empty() {
                    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
                    stream.write_all(&bytes).await?;
                    stream.write_all(b"\r\n").await?;
                }
                match end {
                    End::Whole => stream.write_all(b"0\r\n\r\n").await?,
                    End::Cut => return Ok(()),
                    // Until the client hangs up.
                    End::Silent => drop(stream.read_u8().await),
                }
            }
        }
    }
}

/// The body of the next request; none when there is no other.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    while buffer.len() < end + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let rest = buffer.split_off(end + length);
    Ok(Some(std::mem::replace(buffer, rest).split_off(end)))
}

/// The events of a whole answer with these items.
pub(crate) fn answer(id: &str, items: &[Value]) -> Vec<String> {
    let mut events =
        vec![event("response.created", json!({"response": {"id": format!("resp_{id}")}}))];
    for (at, item) in items.iter().enumerate() {
        let opened = json!({"type": item["type"], "id": item["id"], "role": item["role"]});
        let place = json!({"item_id": item["id"], "output_index": at, "item": opened});
        events.push(event("response.output_item.added", place.clone()));
        let (name, text) = match item["type"].as_str() {
            Some("message") => ("response.output_text.delta", &item["content"][0]["text"]),
            Some("reasoning") => {
                ("response.reasoning_summary_text.delta", &item["summary"][0]["text"])
            }
            _ => ("response.function_call_arguments.delta", &item["arguments"]),
        };
        let text = text.as_str().unwrap();
        let (first, second) = text.split_at(text.len() / 2);
        for delta in [first, second] {
            let mut data = place.clone();
            data["delta"] = delta.into();
            data["summary_index"] = 0.into();
            events.push(event(name, data));
        }
        events.push(event("response.output_item.done", json!({"output_index": at, "item": item})));
    }
    events.push(completed(id));
    events
}

/// The last event of an answer.
pub(crate) fn completed(id: &str) -> String {
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
    let response = json!({"id": format!("resp_{id}"), "status": "completed", "usage": usage});
    event("response.completed", json!({"response": response}))
}

/// One event.
pub(crate) fn event(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}

pub(crate) fn message(id: &str, text: &str) -> Value {
    json!({
        "type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    })
}

pub(crate) fn reasoning(id: &str, text: &str) -> Value {
    json!({
        "type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": text}],
        "encrypted_content": "ZmFrZQ==",
    })
}

/// A command.
pub(crate) fn command(id: &str, line: &str) -> Value {
    let arguments = json!({"cmd": line, "login": false}).to_string();
    json!({
        "type": "function_call", "id": format!("item_{id}"), "call_id": id,
        "name": "exec_command", "arguments": arguments, "status": "completed",
    })
}

//! A client on each transport. Every line that comes is held against the schema.

use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tieline_event::ConversationKey;
use tieline_front::sqeq::token::Token;
use tieline_front::sqeq::{Compat, Listener, Options, channel, json_schema, serve};
use tieline_wire::sqeq::{Event, Submission};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::play::Stage;

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
});

/// The ways to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Unix,
    Tcp,
    Channel,
}

impl Transport {
    pub(crate) const ALL: [Self; 4] = [Self::Stdio, Self::Unix, Self::Tcp, Self::Channel];
}

/// A client, and everything it said and heard.
pub(crate) struct Client {
    way: Way,
    serving: Option<Serving>,
    pub(crate) heard: Vec<Value>,
}

enum Way {
    Lines(Box<dyn AsyncWrite + Unpin + Send>, Lines<BufReader<Box<dyn AsyncRead + Unpin + Send>>>),
    Channel(Option<mpsc::Sender<Submission<'static>>>, mpsc::Receiver<Event<'static>>),
}

struct Serving {
    task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

pub(crate) fn options(stage: &Stage, compat: Compat) -> Options {
    let numbers = Arc::new(Mutex::new(0));
    Options {
        choose: Arc::new(|_| Ok("play".to_owned())),
        new_key: Arc::new(move || {
            let mut n = numbers.lock().unwrap();
            *n += 1;
            ConversationKey::new(&format!("session-{n}")).unwrap()
        }),
        workspace: stage.workspace(),
        mode: None,
        model: None,
        compat,
        line: 64 * 1024,
    }
}

pub(crate) fn socket(stage: &Stage) -> PathBuf {
    stage.dir.path().join("s.sock")
}

impl Client {
    pub(crate) async fn new(stage: &Stage, transport: Transport, compat: Compat) -> Self {
        let (hub, options) = (stage.hub.clone(), options(stage, compat));
        let (stop, stopped) = oneshot::channel::<()>();
        let until = async move { drop(stopped.await) };
        match transport {
            Transport::Channel => {
                let (submissions, events) = channel(hub, options);
                Self::of(Way::Channel(Some(submissions), events), None)
            }
            Transport::Stdio => {
                let (ours, theirs) = StdStream::pair().unwrap();
                let (input, stdin) = UnixStream::pair().unwrap();
                let task =
                    tokio::spawn(async move { serve(hub, options, stdin, theirs).await.unwrap() });
                ours.set_nonblocking(true).unwrap();
                let output = UnixStream::from_std(ours).unwrap();
                let serving = Serving { task, stop: Some(stop) };
                Self::over(Box::new(input), Box::new(output), Some(serving))
            }
            Transport::Unix => {
                let path = socket(stage);
                let listener = Listener::unix(&path).unwrap();
                let task = tokio::spawn(listener.serve_until(hub, options, until));
                let mut client = Self::unix(&path).await;
                client.serving = Some(Serving { task, stop: Some(stop) });
                client
            }
            Transport::Tcp => {
                let token = Token::random().unwrap();
                let secret = token.reveal().to_owned();
                let address = "127.0.0.1:0".parse().unwrap();
                let listener = Listener::tcp(address, token, false).await.unwrap();
                let address = listener.address();
                let task = tokio::spawn(listener.serve_until(hub, options, until));
                let mut client = Self::tcp(&address).await;
                client.serving = Some(Serving { task, stop: Some(stop) });
                let op = json!({"type": "authenticate", "token": secret});
                client.send(&json!({"id": "token", "op": op}).to_string()).await;
                client
            }
        }
    }

    pub(crate) async fn unix(path: &std::path::Path) -> Self {
        let (output, input) = UnixStream::connect(path).await.unwrap().into_split();
        Self::over(Box::new(input), Box::new(output), None)
    }

    pub(crate) async fn tcp(address: &str) -> Self {
        let address = address.strip_prefix("tcp:").unwrap();
        let (output, input) = TcpStream::connect(address).await.unwrap().into_split();
        Self::over(Box::new(input), Box::new(output), None)
    }

    fn over(
        input: Box<dyn AsyncWrite + Unpin + Send>,
        output: Box<dyn AsyncRead + Unpin + Send>,
        serving: Option<Serving>,
    ) -> Self {
        Self::of(Way::Lines(input, BufReader::new(output).lines()), serving)
    }

    fn of(way: Way, serving: Option<Serving>) -> Self {
        Self { way, serving, heard: Vec::new() }
    }

    /// Says a line as it is.
    pub(crate) async fn send(&mut self, line: &str) {
        match &mut self.way {
            Way::Lines(input, _) => {
                input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
                input.flush().await.unwrap();
            }
            Way::Channel(submissions, _) => {
                let line: &'static str = Box::leak(line.to_owned().into_boxed_str());
                let submission = Submission::parse(line.as_bytes()).unwrap();
                submissions.as_ref().unwrap().send(submission).await.unwrap();
            }
        }
    }

    /// Says a submission.
    pub(crate) async fn submit(&mut self, id: &str, op: Value) {
        let line = json!({"id": id, "op": op});
        assert!(SCHEMA.is_valid(&line), "{line}");
        self.send(&line.to_string()).await;
    }

    /// Says something, by a turn of the shortest form.
    pub(crate) async fn say(&mut self, id: &str, text: &str) {
        self.submit(id, turn(text)).await;
    }

    pub(crate) async fn configure(&mut self) {
        self.submit("0", json!({"type": "configure_session"})).await;
        self.until("session_configured").await;
    }

    /// No more is said.
    pub(crate) async fn hang_up(&mut self) {
        match &mut self.way {
            Way::Lines(input, _) => input.shutdown().await.unwrap(),
            Way::Channel(submissions, _) => drop(submissions.take()),
        }
    }

    /// The next event; none when there are no more.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let next = async {
            match &mut self.way {
                Way::Lines(_, lines) => {
                    let line = lines.next_line().await.unwrap()?;
                    Some(serde_json::from_str(&line).unwrap())
                }
                Way::Channel(_, events) => {
                    Some(serde_json::to_value(events.recv().await?).unwrap())
                }
            }
        };
        let next = tokio::time::timeout(Duration::from_secs(20), next);
        let event: Value = match next.await {
            Ok(event) => event?,
            Err(_) => panic!("nothing more comes after {:#?}", self.heard),
        };
        let trouble: Vec<_> = SCHEMA.iter_errors(&event).map(|it| it.to_string()).collect();
        assert!(trouble.is_empty(), "{event}: {trouble:?}");
        self.heard.push(event.clone());
        Some(event)
    }

    /// Reads up to an event of this kind, and gives it.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        self.until_that(|event| event["msg"]["type"] == kind).await
    }

    pub(crate) async fn until_that(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Some(event) = self.next().await else { panic!("it ends: {:#?}", self.heard) };
            if is_it(&event) {
                return event;
            }
        }
    }

    /// Reads to the end of a task.
    pub(crate) async fn until_done(&mut self, id: &str) -> Value {
        self.until_that(|event| {
            let kind = event["msg"]["type"].as_str().unwrap();
            let is_end = match kind {
                "task_complete" => event["msg"]["scope"] != "turn",
                "error" => event["msg"]["message"] != "interrupted",
                kind => kind == "turn_aborted",
            };
            event["id"] == id && is_end
        })
        .await
    }

    /// Everything up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let from = self.heard.len();
        while self.next().await.is_some() {}
        self.heard[from..].to_vec()
    }

    /// The kinds of what was heard, without those that are told for newer clients besides.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.heard.iter().map(kind).collect()
    }

    /// The server is told to stop, or the client goes; either way it ends.
    pub(crate) async fn end(mut self) {
        let serving = self.serving.take();
        drop(self);
        if let Some(Serving { task, stop }) = serving {
            drop(stop);
            tokio::time::timeout(Duration::from_secs(20), task).await.unwrap().unwrap();
        }
    }
}

pub(crate) fn kind(event: &Value) -> String {
    event["msg"]["type"].as_str().unwrap().to_owned()
}

pub(crate) fn turn(text: &str) -> Value {
    json!({"type": "user_turn", "items": [{"type": "text", "text": text}]})
}

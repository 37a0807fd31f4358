//! A raw client over the pipes of a child process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tieline_proc::{Child, Exit, Spec};
use tieline_wire::ndjson::{DEFAULT_LIMIT, Framer, Line, content};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::policy::cancelled;
use super::{Answer, Direction, Fault, Frame, Policy, Seen};
use crate::real;

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines that wait for the agent to read; a sender waits for room.
const QUEUE: usize = 256;

/// What to start.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
}

/// A connection with an agent. Dropping it kills the agent and everything it started.
///
/// A test double that checks itself: dropping it is a failure while a request of the agent has no
/// answer, unless the test took note of it with [`Client::take_open`].
pub struct Client {
    shared: Arc<Shared>,
    child: Arc<Child>,
    stdin: Option<mpsc::Sender<Vec<u8>>>,
    writing: JoinHandle<()>,
    reading: JoinHandle<()>,
}

/// A request that waits for its answer.
pub struct Pending {
    shared: Arc<Shared>,
    id: i64,
    method: String,
    answer: oneshot::Receiver<Result<Value, Fault>>,
}

/// How an agent ended after its input did.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    /// From the end of the input to the end of the process.
    pub took: Duration,
    pub stderr: String,
    /// Everything that was said.
    pub frames: Vec<Frame>,
}

struct Shared {
    began: Instant,
    state: Mutex<State>,
    /// Grows with everything that happens, so that whoever waits looks again.
    grown: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    frames: Vec<Frame>,
    next_id: i64,
    waiting: HashMap<i64, oneshot::Sender<Result<Value, Fault>>>,
    /// Requests of the agent without an answer: id, method, parameters.
    open: Vec<(Value, String, Value)>,
    policies: HashMap<String, Policy>,
    /// Whether the agent's output has ended.
    over: bool,
}

impl Client {
    /// Starts an agent.
    pub async fn start(program: Program) -> Client {
        tieline_proc::set_host_program(real::fake_agent_program());
        let mut spec = Spec::new(&program.path, &program.cwd);
        spec.args = program.args;
        for (name, value) in program.env {
            spec.env.set(name, value);
        }
        let mut child = tieline_proc::spawn(spec).await.expect("the agent can be started");
        let mut pipe = child.stdin.take().expect("a new child has an input");
        let shared = Arc::new(Shared {
            began: Instant::now(),
            state: Mutex::default(),
            grown: watch::Sender::new(0),
        });
        let (stdin, mut lines) = mpsc::channel::<Vec<u8>>(QUEUE);
        let writing = tokio::spawn(async move {
            while let Some(bytes) = lines.recv().await {
                // An agent that has ended takes nothing more; its silence is seen elsewhere.
                if pipe.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        });
        let child = Arc::new(child);
        let (own, replies) = (Arc::clone(&shared), stdin.downgrade());
        let reading = tokio::spawn(own.read(Arc::clone(&child), replies));
        Client { shared, child, stdin: Some(stdin), writing, reading }
    }

    /// How requests of this method are answered from now on. Without a policy the agent is told
    /// that there is no such method.
    pub fn on(&self, method: &str, policy: Policy) {
        self.shared.lock().policies.insert(method.to_owned(), policy);
    }

    /// Sends a request and waits for its answer, while updates arrive and requests are answered.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Fault> {
        self.begin(method, params).await.answer().await
    }

    /// Sends a request whose answer is waited for later.
    pub async fn begin(&self, method: &str, params: Value) -> Pending {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut state = self.shared.lock();
            let id = state.next_id;
            state.next_id += 1;
            state.waiting.insert(id, sender);
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        Pending { shared: Arc::clone(&self.shared), id, method: method.to_owned(), answer }
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Cancels the turn of a session as an editor does: what it was asked meanwhile is answered
    /// as cancelled.
    pub async fn cancel(&self, session_id: &str) {
        self.notify("session/cancel", json!({"sessionId": session_id})).await;
        let of_session = |(_, method, params): &(Value, String, Value)| {
            method == "session/request_permission" && params["sessionId"] == session_id
        };
        let open: Vec<Value> = {
            let state = self.shared.lock();
            state.open.iter().filter(|it| of_session(it)).map(|(id, ..)| id.clone()).collect()
        };
        for id in open {
            self.answer(&id, Answer::Result(cancelled())).await;
        }
    }

    /// Answers a request that was left open.
    pub async fn answer(&self, id: &Value, answer: Answer) {
        if let Some(reply) = self.shared.reply(id, answer) {
            self.send(&reply).await;
        }
    }

    /// Sends these bytes and the end of a line, whatever they are.
    pub async fn send_raw(&self, bytes: &[u8]) {
        self.shared.record(Direction::ToAgent, bytes);
        let line = [bytes, b"\n"].concat();
        let stdin = self.stdin.as_ref().expect("the input is open until `close`");
        let sent = timeout(PATIENCE, stdin.send(line)).await;
        assert!(sent.is_ok(), "the agent does not read{}", self.shared.story());
    }

    async fn send(&self, message: &Value) {
        self.send_raw(message.to_string().as_bytes()).await;
    }

    /// Waits for a frame that is there or comes.
    pub async fn wait_for(&self, what: &str, find: impl Fn(&Frame) -> bool) -> Frame {
        self.wait(what, |state| state.frames.iter().find(|frame| find(frame)).cloned()).await
    }

    /// Waits for a request of the agent that is left open and gives its id and parameters.
    pub async fn wait_open(&self, method: &str) -> (Value, Value) {
        let open = |state: &State| state.open.iter().find(|it| it.1 == method).cloned();
        let (id, _, params) = self.wait(method, open).await;
        (id, params)
    }

    async fn wait<T>(&self, what: &str, find: impl Fn(&State) -> Option<T>) -> T {
        let mut grown = self.shared.grown.subscribe();
        let found = timeout(PATIENCE, async {
            loop {
                grown.mark_unchanged();
                let (found, over) = {
                    let state = self.shared.lock();
                    (find(&state), state.over)
                };
                if found.is_some() || over || grown.changed().await.is_err() {
                    return found;
                }
            }
        });
        found.await.ok().flatten().unwrap_or_else(|| self.shared.give_up(what))
    }

    /// The agent's requests that have no answer, with what they asked; they no longer count as
    /// forgotten.
    pub fn take_open(&self) -> Vec<(Value, String, Value)> {
        std::mem::take(&mut self.shared.lock().open)
    }

    /// Everything that was said so far.
    pub fn frames(&self) -> Vec<Frame> {
        self.shared.lock().frames.clone()
    }

    /// What a person would have seen so far.
    pub fn seen(&self) -> Seen {
        Seen::of(&self.frames())
    }

    /// The agent's process.
    pub fn pid(&self) -> u32 {
        self.child.pid
    }

    /// Ends the agent's input and waits for the end of its output and of its process.
    pub async fn close(mut self) -> Ended {
        let began = Instant::now();
        self.stdin = None;
        let exit = timeout(PATIENCE, self.child.exited()).await;
        let took = began.elapsed();
        let exit = exit.unwrap_or_else(|_| self.shared.give_up("the end of the process"));
        let read = timeout(PATIENCE, &mut self.reading).await;
        assert!(read.is_ok(), "somebody still holds the agent's output{}", self.shared.story());
        let stderr = self.child.stderr_tail().to_text();
        Ended { exit, took, stderr, frames: self.frames() }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.writing.abort();
        self.reading.abort();
        if !std::thread::panicking() {
            let open = &self.shared.lock().open;
            assert!(open.is_empty(), "nobody answered {open:?}");
        }
    }
}

impl Pending {
    /// Waits for the answer.
    pub async fn answer(self) -> Result<Value, Fault> {
        match timeout(PATIENCE, self.answer).await {
            Ok(Ok(answer)) => answer,
            _ => self.shared.give_up(&format!("the answer to {}", self.method)),
        }
    }

    /// The id of the request.
    pub fn id(&self) -> i64 {
        self.id
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, direction: Direction, line: &[u8]) -> Option<Value> {
        let frame = Frame::new(self.began.elapsed(), direction, line.to_vec());
        let value = frame.value.clone();
        self.lock().frames.push(frame);
        self.grown.send_modify(|n| *n += 1);
        value
    }

    async fn read(self: Arc<Self>, child: Arc<Child>, replies: mpsc::WeakSender<Vec<u8>>) {
        let mut framer = Framer::new(DEFAULT_LIMIT);
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = child.read_stdout(&mut buffer).await {
            let mut lines = Vec::new();
            framer.feed(&buffer[..n], |line| {
                if let Line::Whole(line) = line {
                    lines.push(content(&line).to_vec());
                }
            });
            for line in lines {
                let reply = self.record(Direction::ToClient, &line).and_then(|it| self.take(&it));
                if let Some(reply) = reply
                    && let Some(stdin) = replies.upgrade()
                {
                    let line = reply.to_string();
                    self.record(Direction::ToAgent, line.as_bytes());
                    // It fails if the agent has ended, and then nobody waits for the reply.
                    stdin.send(format!("{line}\n").into_bytes()).await.ok();
                }
            }
        }
        let mut state = self.lock();
        state.over = true;
        // Whoever waits for an answer learns that none will come.
        state.waiting.clear();
        drop(state);
        self.grown.send_modify(|_| ());
    }

    /// Takes a message of the agent; gives the reply if it is a request that a policy answers.
    fn take(&self, message: &Value) -> Option<Value> {
        let id = message.get("id").filter(|id| !id.is_null());
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                let mut state = self.lock();
                let params = message["params"].clone();
                state.open.push((id.clone(), method.to_owned(), params.clone()));
                let policy = state.policies.entry(method.to_owned());
                let answer = policy.or_insert_with(Policy::unknown).decide(&params);
                drop(state);
                let reply = self.reply(id, answer);
                // What is open now is open for good.
                self.grown.send_modify(|n| *n += 1);
                reply
            }
            (None, Some(id)) => {
                let sender = self.lock().waiting.remove(&id.as_i64()?)?;
                let answer = match message.get("error") {
                    Some(error) => Err(Fault::new(error)),
                    None => Ok(message["result"].clone()),
                };
                // A test may have stopped waiting.
                sender.send(answer).ok();
                None
            }
            _ => None,
        }
    }

    /// The line that answers an open request.
    fn reply(&self, id: &Value, answer: Answer) -> Option<Value> {
        let reply = match answer {
            Answer::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Answer::Error { code, message } => {
                let error = json!({"code": code, "message": message});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
            Answer::LeaveOpen => return None,
        };
        self.lock().open.retain(|(open, ..)| open != id);
        Some(reply)
    }

    /// What was said, for whoever reads a failed test.
    fn story(&self) -> String {
        let state = self.lock();
        state.frames.iter().fold(String::new(), |story, frame| format!("{story}\n{frame}"))
    }

    #[track_caller]
    #[allow(clippy::panic)] // it is how a test double tells that its test failed
    fn give_up(&self, what: &str) -> ! {
        panic!("waited in vain for {what}{}", self.story())
    }
}

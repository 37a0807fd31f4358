//! stdin: user messages and answers wait here for the player.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::frames;
use crate::output::{self, Output};

#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    users: VecDeque<Value>,
    answers: HashMap<String, Value>,
    ended: bool,
    playing: bool,
    interrupted: bool,
}

pub(crate) enum Next {
    User(Value),
    End,
}

/// Why a wait is over.
#[derive(Debug, PartialEq)]
pub(crate) enum Woken {
    Interrupted,
    TimeOver,
    Answer(Value),
}

impl Inbox {
    /// Reads stdin on a thread of its own until it ends.
    pub(crate) fn start_reading(self: &Arc<Inbox>, output: Arc<Output>) {
        let inbox = Arc::clone(self);
        thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let message = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                match message {
                    Some(message) => inbox.take(message, &output),
                    None => {
                        // The real one ends at the first line it cannot read.
                        output::stderr(b"Error parsing streaming input line\n");
                        process::exit(1);
                    }
                }
            }
            inbox.lock().ended = true;
            inbox.changed.notify_all();
        });
    }

    /// One user message and no more, for a prompt on the command line.
    pub(crate) fn single_prompt(&self, prompt: String) {
        let mut state = self.lock();
        state.users.push_back(json!({"message": {"role": "user", "content": prompt}}));
        state.ended = true;
    }

    /// Waits for a user message; the turn has begun when it returns one.
    pub(crate) fn next_user(&self) -> Next {
        let mut state = self.lock();
        loop {
            if let Some(message) = state.users.pop_front() {
                state.playing = true;
                return Next::User(message);
            }
            if state.ended {
                return Next::End;
            }
            state = self.changed.wait(state).expect("no holder of this lock panics");
        }
    }

    pub(crate) fn turn_over(&self) {
        let mut state = self.lock();
        state.playing = false;
        state.interrupted = false;
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.lock().interrupted
    }

    /// Waits for an interrupt, at most for `time`.
    pub(crate) fn sleep(&self, time: Option<Duration>) -> Woken {
        self.wait(None, time)
    }

    /// Waits for the answer to our control request, or an interrupt.
    pub(crate) fn answer(&self, request_id: &str) -> Woken {
        self.wait(Some(request_id), None)
    }

    fn wait(&self, request_id: Option<&str>, time: Option<Duration>) -> Woken {
        let end = time.map(|time| Instant::now() + time);
        let mut state = self.lock();
        loop {
            if state.interrupted {
                return Woken::Interrupted;
            }
            if let Some(answer) = request_id.and_then(|id| state.answers.remove(id)) {
                return Woken::Answer(answer);
            }
            state = match end {
                None => self.changed.wait(state).expect("no holder of this lock panics"),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Woken::TimeOver;
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.expect("no holder of this lock panics").0
                }
            };
        }
    }

    fn take(&self, message: Value, output: &Output) {
        match message["type"].as_str() {
            Some("user") => self.lock().users.push_back(message),
            Some("control_request") => self.control(&message, output),
            Some("control_response") => {
                let response = &message["response"];
                let id = response["request_id"].as_str().unwrap_or_default().to_owned();
                self.lock().answers.insert(id, response["response"].clone());
            }
            _ => {}
        }
        self.changed.notify_all();
    }

    fn control(&self, message: &Value, output: &Output) {
        let request = &message["request"];
        let answer = match request["subtype"].as_str().unwrap_or_default() {
            "initialize" => frames::initialize_answer(),
            "interrupt" => r#"{"still_queued":[]}"#.to_owned(),
            "set_permission_mode" => json!({"mode": request["mode"]}).to_string(),
            "set_model" => json!({"model": request["model"]}).to_string(),
            "mcp_status" => r#"{"mcpServers":[]}"#.to_owned(),
            _ => "{}".to_owned(),
        };
        output.line(&frames::control_response(&message["request_id"], &answer));
        if request["subtype"] == "interrupt" {
            let mut state = self.lock();
            state.interrupted = state.playing;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

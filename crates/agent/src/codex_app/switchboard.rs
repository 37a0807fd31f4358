//! Several conversations on one server: whose line is it?

use std::collections::HashMap;

use serde_json::json;
use serde_json::value::RawValue;
use tieline_wire::codex_app::{Opened, Whose};
use tieline_wire::jsonrpc::write::{self, Form};
use tieline_wire::jsonrpc::{self, Id, Message};

use crate::driver::{Destination, Routed, Switchboard};

/// Tells the lines of a shared app server apart: answers by the id of the request, everything else
/// by its thread. The server is greeted once; later greetings are answered from memory.
#[derive(Debug, Default)]
pub struct AppSwitchboard {
    /// Who waits for an answer, and whether it tells the thread of the conversation.
    calls: HashMap<Id, (usize, bool)>,
    threads: HashMap<String, usize>,
    greeting: Greeting,
    n_own: i64,
}

#[derive(Debug, Default)]
enum Greeting {
    #[default]
    None,
    /// The id of the one that was sent, and everybody who waits for its answer.
    Asked(Id, Vec<(usize, Id)>),
    Answered(Box<RawValue>),
}

impl AppSwitchboard {
    fn greet(&mut self, seat: usize, id: Id, line: &[u8]) -> Vec<Routed> {
        match &mut self.greeting {
            Greeting::None => {
                self.greeting = Greeting::Asked(id.clone(), vec![(seat, id)]);
                vec![pass(Destination::Process, line)]
            }
            Greeting::Asked(_, waiting) => {
                waiting.push((seat, id));
                Vec::new()
            }
            Greeting::Answered(result) => {
                let line = write::response(Form::Bare, &id, result);
                vec![Routed { to: Destination::Seat(seat), line }]
            }
        }
    }

    /// The server answered the one greeting it got.
    fn greeted(&mut self, result: &RawValue) -> Vec<Routed> {
        let answered = Greeting::Answered(result.to_owned());
        let Greeting::Asked(_, waiting) = std::mem::replace(&mut self.greeting, answered) else {
            return Vec::new();
        };
        let answer = |(seat, id): (usize, Id)| Routed {
            to: Destination::Seat(seat),
            line: write::response(Form::Bare, &id, &result),
        };
        let line = write::notification(Form::Bare, "initialized", None::<&()>);
        let initialized = Routed { to: Destination::Process, line };
        std::iter::once(initialized).chain(waiting.into_iter().map(answer)).collect()
    }

    fn is_greeting(&self, id: &Id) -> bool {
        matches!(&self.greeting, Greeting::Asked(asked, _) if asked == id)
    }

    /// Whose thread a message is about. A thread of another agent belongs to whose thread started
    /// it.
    fn owner(&mut self, params: Option<&RawValue>) -> Option<usize> {
        let whose: Whose<'_> =
            params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        if let Some(thread) = &whose.thread {
            let known = self.threads.get(&*thread.id).copied();
            let parent = thread.parent_thread_id.as_deref();
            let owner = known.or_else(|| self.threads.get(parent?).copied());
            if let Some(owner) = owner {
                self.threads.insert(thread.id.to_string(), owner);
            }
            return owner;
        }
        let thread = whose.thread_id.or(whose.conversation_id)?;
        self.threads.get(&*thread).copied()
    }
}

impl Switchboard for AppSwitchboard {
    fn outgoing(&mut self, seat: usize, line: &[u8]) -> Vec<Routed> {
        match jsonrpc::classify(line) {
            Message::Request { id, method, .. } if method == "initialize" => {
                self.greet(seat, id, line)
            }
            // Written once, when the server has answered.
            Message::Notification { method, .. } if method == "initialized" => Vec::new(),
            Message::Request { id, method, .. } => {
                let opens = matches!(&*method, "thread/start" | "thread/resume" | "thread/fork");
                self.calls.insert(id, (seat, opens));
                vec![pass(Destination::Process, line)]
            }
            _ => vec![pass(Destination::Process, line)],
        }
    }

    fn incoming(&mut self, line: &[u8]) -> Vec<Routed> {
        let to = match jsonrpc::classify(line) {
            Message::Response { id, result } if self.is_greeting(&id) => {
                return self.greeted(result);
            }
            Message::Response { id, result } => {
                // Of a conversation that has left, or our own: nobody waits.
                let Some((seat, opens)) = self.calls.remove(&id) else { return Vec::new() };
                if opens && let Ok(opened) = serde_json::from_str::<Opened<'_>>(result.get()) {
                    self.threads.insert(opened.thread.id.to_string(), seat);
                }
                Destination::Seat(seat)
            }
            Message::Error { id: Some(id), error } if self.is_greeting(&id) => {
                let Greeting::Asked(_, waiting) = std::mem::take(&mut self.greeting) else {
                    return Vec::new();
                };
                let refuse = |(seat, id): (usize, Id)| Routed {
                    to: Destination::Seat(seat),
                    line: write::error(Form::Bare, &id, error.code, &error.message),
                };
                return waiting.into_iter().map(refuse).collect();
            }
            Message::Error { id: Some(id), .. } => match self.calls.remove(&id) {
                Some((seat, _)) => Destination::Seat(seat),
                None => return Vec::new(),
            },
            Message::Notification { params, .. } => {
                self.owner(params).map_or(Destination::Everybody, Destination::Seat)
            }
            Message::Request { id, method, params } => match self.owner(params) {
                Some(seat) => Destination::Seat(seat),
                None => {
                    // An unanswered request would stall somebody's turn.
                    let why = format!("nobody here can answer {method}");
                    let line = write::error(Form::Bare, &id, -32601, &why);
                    return vec![Routed { to: Destination::Process, line }];
                }
            },
            Message::Error { id: None, .. } | Message::Garbage { .. } => Destination::Everybody,
        };
        vec![pass(to, line)]
    }

    fn left(&mut self, seat: usize) -> Vec<Routed> {
        self.calls.retain(|_, (of, _)| *of != seat);
        if let Greeting::Asked(_, waiting) = &mut self.greeting {
            waiting.retain(|(of, _)| *of != seat);
        }
        let gone: Vec<_> = self.threads.extract_if(|_, of| *of == seat).map(|(it, _)| it).collect();
        let unsubscribe = |thread: String| {
            self.n_own -= 1;
            let params = json!({"threadId": thread});
            let id = Id::Number(self.n_own);
            let line = write::request(Form::Bare, &id, "thread/unsubscribe", &params);
            Routed { to: Destination::Process, line }
        };
        gone.into_iter().map(unsubscribe).collect()
    }
}

fn pass(to: Destination, line: &[u8]) -> Routed {
    let mut line = line.to_vec();
    line.push(b'\n');
    Routed { to, line }
}

//! Several conversations on one server: whose line is it?

use std::collections::{HashMap, HashSet};

use serde_json::json;
use serde_json::value::RawValue;
use tieline_wire::codex_app::{ItemNews, Opened, TurnNews, Whose};
use tieline_wire::jsonrpc::write::{self, Form};
use tieline_wire::jsonrpc::{self, ErrorObject, Id, Message};

use crate::driver::{Destination, Routed, Switchboard};

/// Tells the lines of a shared app server apart: answers by the id of the request, everything else
/// by its thread. The server is greeted once; later greetings are answered from memory. Who leaves
/// leaves nothing running: its turn is interrupted, its thread given up.
#[derive(Debug, Default)]
pub struct AppSwitchboard {
    calls: HashMap<Id, Call>,
    threads: HashMap<String, Thread>,
    /// Threads whose conversation has left. What they still say is nobody's.
    gone: HashSet<String>,
    greeting: Greeting,
    n_own: i64,
}

/// A request under way.
#[derive(Debug)]
struct Call {
    /// Who waits for its answer; nobody when the conversation has left.
    seat: Option<usize>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The answer names the thread of the conversation.
    Open,
    /// The answer names the turn of this thread.
    Turn(String),
    Other,
}

#[derive(Debug)]
struct Thread {
    seat: usize,
    /// The turn that runs.
    turn: Option<String>,
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

    /// The server refused it; the next one asks again.
    fn not_greeted(&mut self, error: &ErrorObject) -> Vec<Routed> {
        let Greeting::Asked(_, waiting) = std::mem::take(&mut self.greeting) else {
            return Vec::new();
        };
        let refuse = |(seat, id): (usize, Id)| Routed {
            to: Destination::Seat(seat),
            line: write::error(Form::Bare, &id, error.code, &error.message),
        };
        waiting.into_iter().map(refuse).collect()
    }

    fn is_greeting(&self, id: &Id) -> bool {
        matches!(&self.greeting, Greeting::Asked(asked, _) if asked == id)
    }

    fn own(&mut self, thread: String, seat: usize) {
        self.gone.remove(&thread);
        self.threads.insert(thread, Thread { seat, turn: None });
    }

    /// An answer of the server.
    fn answered(&mut self, id: &Id, result: &RawValue, line: &[u8]) -> Vec<Routed> {
        let Some(Call { seat, what }) = self.calls.remove(id) else { return Vec::new() };
        match (what, seat) {
            (What::Open, seat) => {
                if let Ok(opened) = serde_json::from_str::<Opened<'_>>(result.get()) {
                    let thread = opened.thread.id.to_string();
                    match seat {
                        Some(seat) => self.own(thread, seat),
                        None => return self.give_up(thread, None),
                    }
                }
            }
            (What::Turn(thread), seat) => {
                if let Ok(news) = serde_json::from_str::<TurnNews<'_>>(result.get()) {
                    let turn = news.turn.id.to_string();
                    match (seat, self.threads.get_mut(&thread)) {
                        (Some(_), Some(known)) => known.turn = Some(turn),
                        (Some(_), None) => {}
                        (None, _) => return self.give_up(thread, Some(turn)),
                    }
                }
            }
            (What::Other, _) => {}
        }
        // Of a conversation that has left, nobody waits.
        seat.map(|seat| pass(Destination::Seat(seat), line)).into_iter().collect()
    }

    /// Whose thread a message is about. A thread of another agent belongs to whose thread started
    /// it.
    fn owner(&mut self, params: Option<&RawValue>) -> Owner {
        let whose: Whose<'_> =
            params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        if let Some(thread) = &whose.thread {
            let known = self.threads.get(&*thread.id).map(|it| it.seat);
            let parent = thread.parent_thread_id.as_deref();
            let owner = known.or_else(|| self.threads.get(parent?).map(|it| it.seat));
            if known.is_none()
                && let Some(owner) = owner
            {
                self.own(thread.id.to_string(), owner);
            }
            return owner.map_or(Owner::Unknown, Owner::Seat);
        }
        let Some(thread) = whose.thread_id.or(whose.conversation_id) else {
            return Owner::Unknown;
        };
        match self.threads.get(&*thread) {
            Some(known) => Owner::Seat(known.seat),
            None if self.gone.contains(&*thread) => Owner::Gone,
            None => Owner::Unknown,
        }
    }

    /// Turns that begin and end, and threads that items name.
    fn learn(&mut self, method: &str, params: &RawValue) {
        match method {
            "turn/started" | "turn/completed" => {
                let Ok(news) = serde_json::from_str::<TurnNews<'_>>(params.get()) else { return };
                if let Some(thread) = self.threads.get_mut(&*news.thread_id) {
                    let runs = method == "turn/started";
                    thread.turn = runs.then(|| news.turn.id.to_string());
                }
            }
            "item/started" | "item/completed" => {
                let Ok(news) = serde_json::from_str::<ItemNews<'_>>(params.get()) else { return };
                let Some(seat) = self.threads.get(&*news.thread_id).map(|it| it.seat) else {
                    return;
                };
                let helpers = news.item.receiver_thread_ids.iter().map(String::as_str);
                for helper in helpers.chain(news.item.agent_thread_id.as_deref()) {
                    if !self.threads.contains_key(helper) {
                        self.own(helper.to_owned(), seat);
                    }
                }
            }
            _ => {}
        }
    }

    /// Stops what runs in a thread and leaves it.
    fn give_up(&mut self, thread: String, turn: Option<String>) -> Vec<Routed> {
        let mut routed = Vec::new();
        if let Some(turn) = turn {
            routed.push(self.ask("turn/interrupt", &json!({"threadId": thread, "turnId": turn})));
        }
        routed.push(self.ask("thread/unsubscribe", &json!({"threadId": thread})));
        self.gone.insert(thread);
        routed
    }

    /// A request of our own; its answer is nobody's.
    fn ask(&mut self, method: &str, params: &serde_json::Value) -> Routed {
        self.n_own -= 1;
        let line = write::request(Form::Bare, &Id::Number(self.n_own), method, params);
        Routed { to: Destination::Process, line }
    }
}

/// Whose a line is.
enum Owner {
    Seat(usize),
    /// A conversation's that has left.
    Gone,
    Unknown,
}

impl Switchboard for AppSwitchboard {
    fn outgoing(&mut self, seat: usize, line: &[u8]) -> Vec<Routed> {
        match jsonrpc::classify(line) {
            Message::Request { id, method, .. } if method == "initialize" => {
                self.greet(seat, id, line)
            }
            // Written once, when the server has answered.
            Message::Notification { method, .. } if method == "initialized" => Vec::new(),
            Message::Request { id, method, params } => {
                let what = match &*method {
                    "thread/start" | "thread/resume" | "thread/fork" => What::Open,
                    "turn/start" | "review/start" => {
                        let whose: Option<Whose<'_>> =
                            params.and_then(|raw| serde_json::from_str(raw.get()).ok());
                        let thread = whose.and_then(|it| it.thread_id).map(String::from);
                        What::Turn(thread.unwrap_or_default())
                    }
                    _ => What::Other,
                };
                self.calls.insert(id, Call { seat: Some(seat), what });
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
            Message::Response { id, result } => return self.answered(&id, result, line),
            Message::Error { id: Some(id), error } if self.is_greeting(&id) => {
                return self.not_greeted(&error);
            }
            Message::Error { id: Some(id), .. } => match self.calls.remove(&id) {
                Some(Call { seat: Some(seat), .. }) => Destination::Seat(seat),
                _ => return Vec::new(),
            },
            Message::Notification { method, params } => {
                if let Some(params) = params {
                    self.learn(&method, params);
                }
                match self.owner(params) {
                    Owner::Seat(seat) => Destination::Seat(seat),
                    Owner::Gone => return Vec::new(),
                    Owner::Unknown => Destination::Everybody,
                }
            }
            Message::Request { id, method, params } => match self.owner(params) {
                Owner::Seat(seat) => Destination::Seat(seat),
                Owner::Gone | Owner::Unknown => {
                    // An unanswered request would stall a turn.
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
        for call in self.calls.values_mut() {
            call.seat = call.seat.filter(|of| *of != seat);
        }
        if let Greeting::Asked(_, waiting) = &mut self.greeting {
            waiting.retain(|(of, _)| *of != seat);
        }
        let mine: Vec<_> = self.threads.extract_if(|_, it| it.seat == seat).collect();
        mine.into_iter().flat_map(|(thread, it)| self.give_up(thread, it.turn)).collect()
    }
}

fn pass(to: Destination, line: &[u8]) -> Routed {
    let mut line = line.to_vec();
    line.push(b'\n');
    Routed { to, line }
}

//! A play as the events of the Responses API.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::play::{Id, Input, Next, Play, Speech};

/// A piece of an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Cue {
    /// An event of the stream.
    Event(String),
    /// Nothing for a while.
    Pause(Duration),
}

/// What comes before the first event.
#[derive(Debug, PartialEq)]
pub(crate) enum Opening {
    /// Nothing for a while; then look again.
    Pause(Duration),
    /// The provider does not answer.
    Refusal { status: u16, text: String },
    /// The answer.
    Ready,
}

/// An answer, which comes about as it is read.
#[derive(Debug)]
pub(crate) struct Answer {
    play: Play,
    /// What is to be played before the rest.
    first: Option<Next>,
    /// The pause after each word.
    pause: Duration,
    nonce: u32,
    cues: VecDeque<Cue>,
    n_items: usize,
    usage: (u64, u64),
    is_over: bool,
}

impl Answer {
    pub(super) fn new(play: Play, pause: Duration, nonce: u32) -> Self {
        Self {
            play,
            first: None,
            pause,
            nonce,
            cues: VecDeque::new(),
            n_items: 0,
            usage: (0, 0),
            is_over: false,
        }
    }

    /// Plays up to the first event.
    pub(crate) fn open(&mut self) -> Opening {
        loop {
            match self.play.next() {
                Next::Sleep(time) => return Opening::Pause(time),
                Next::Usage { input, output } => self.count(input, output),
                Next::Fail { status: Some(status), text } => {
                    return Opening::Refusal { status, text };
                }
                next => {
                    self.event("response.created", json!({"response": {"id": self.response()}}));
                    self.first = Some(next);
                    return Opening::Ready;
                }
            }
        }
    }

    fn count(&mut self, input: u64, output: u64) {
        self.usage.0 = self.usage.0.saturating_add(input);
        self.usage.1 = self.usage.1.saturating_add(output);
    }

    fn perform(&mut self, next: Next) {
        match next {
            Next::Speech { kind, id, text } => {
                self.speak(kind, id, &text);
                // A thought is told when its answer is whole, and belongs before what follows it.
                if kind == Speech::Think {
                    self.complete(false);
                }
            }
            Next::Usage { input, output } => self.count(input, output),
            Next::Call { id, tool, input } => {
                self.call(id, &tool, &input);
                self.complete(false);
            }
            // What was said is whole before the silence, or the failure, of the next answer.
            Next::Sleep(_) | Next::Fail { .. } if self.n_items > 0 => self.complete(false),
            Next::Sleep(time) => self.cues.push_back(Cue::Pause(time)),
            Next::Fail { text, .. } => {
                let error = json!({"code": "server_error", "message": text});
                self.event("response.failed", json!({"response": {"error": error}}));
                self.is_over = true;
            }
            Next::End => self.complete(true),
        }
    }

    fn speak(&mut self, kind: Speech, id: Id, text: &str) {
        let (name, empty, whole) = match kind {
            Speech::Say => {
                let id = self.name("msg", id);
                let item = |content: Value| json!({"type": "message", "id": id, "role": "assistant", "content": content});
                let part = json!([{"type": "output_text", "text": text}]);
                (id.clone(), item(json!([])), item(part))
            }
            Speech::Think => {
                let id = self.name("rs", id);
                let item =
                    |summary: Value| json!({"type": "reasoning", "id": id, "summary": summary});
                let part = json!([{"type": "summary_text", "text": text}]);
                (id.clone(), item(json!([])), item(part))
            }
        };
        let kind = match kind {
            Speech::Say => "response.output_text.delta",
            Speech::Think => "response.reasoning_summary_text.delta",
        };
        let at = self.n_items;
        self.event("response.output_item.added", json!({"output_index": at, "item": empty}));
        for word in text.split_inclusive(char::is_whitespace) {
            self.event(kind, json!({"item_id": name, "output_index": at, "delta": word}));
            self.cues.push_back(Cue::Pause(self.pause));
        }
        self.done(whole);
    }

    fn call(&mut self, id: Id, tool: &str, input: &Input) {
        let id = self.name("call", id);
        self.done(match input {
            Input::Json(json) => {
                json!({"type": "function_call", "call_id": id, "name": tool, "arguments": json})
            }
            Input::Text(text) => {
                json!({"type": "custom_tool_call", "call_id": id, "name": tool, "input": text})
            }
        });
    }

    fn done(&mut self, item: Value) {
        let at = self.n_items;
        self.event("response.output_item.done", json!({"output_index": at, "item": item}));
        self.n_items += 1;
    }

    fn complete(&mut self, end_turn: bool) {
        let (input, output) = self.usage;
        let usage = json!({
            "input_tokens": input,
            "output_tokens": output,
            "total_tokens": input.saturating_add(output),
        });
        let response = json!({"id": self.response(), "usage": usage, "end_turn": end_turn});
        self.event("response.completed", json!({ "response": response }));
        self.is_over = true;
    }

    fn event(&mut self, kind: &str, mut data: Value) {
        if let Some(fields) = data.as_object_mut() {
            fields.insert("type".to_owned(), kind.into());
        }
        self.cues.push_back(Cue::Event(format!("event: {kind}\ndata: {data}\n\n")));
    }

    fn response(&self) -> String {
        format!("resp_{:08x}", self.nonce)
    }

    fn name(&self, prefix: &str, id: Id) -> String {
        let Id { turn, number } = id;
        format!("{prefix}_{turn}_{number}_{:08x}", self.nonce)
    }
}

impl Iterator for Answer {
    type Item = Cue;

    fn next(&mut self) -> Option<Cue> {
        loop {
            if let Some(cue) = self.cues.pop_front() {
                return Some(cue);
            }
            if self.is_over {
                return None;
            }
            let next = self.first.take().unwrap_or_else(|| self.play.next());
            self.perform(next);
        }
    }
}

//! `codex exec --json`: one prompt from stdin, one turn, whole items.

use std::io::Read;

use serde_json::Value;

use crate::options::Options;
use crate::script::Outcome;
use crate::voice::{self, During, Ended, Part, User, Verdict, Voice, text};

/// What the real one says when the provider fails.
pub(crate) const OVERLOADED: &str =
    "We’re currently experiencing high demand, which may cause temporary errors.";

pub(crate) struct Exec {
    thread_id: String,
    n_items: u64,
}

impl Exec {
    pub(crate) fn new(options: &Options) -> Exec {
        let thread_id = options.session_id.clone().unwrap_or_else(|| voice::session_id(0));
        Exec { thread_id, n_items: 0 }
    }

    fn next_item(&mut self) -> u64 {
        self.n_items += 1;
        self.n_items - 1
    }
}

/// The prompt: all of stdin.
pub(crate) fn prompt() -> User {
    let mut bytes = Vec::new();
    // A prompt that cannot be read is an empty one.
    std::io::stdin().read_to_end(&mut bytes).ok();
    User { text: String::from_utf8_lossy(&bytes).into_owned(), ..User::default() }
}

impl Voice for Exec {
    fn turn_begins(&mut self, _: &User) -> Vec<String> {
        vec![
            format!(r#"{{"type":"thread.started","thread_id":"{}"}}"#, self.thread_id),
            r#"{"type":"turn.started"}"#.to_owned(),
        ]
    }

    fn part_begins(&mut self, _: Part) -> Vec<String> {
        Vec::new()
    }

    fn delta(&mut self, _: Part, _: &str) -> Option<String> {
        None
    }

    fn part_ends(&mut self, part: Part, ended: Ended<'_>) -> Vec<String> {
        let Ended::Whole(whole) = ended else { return Vec::new() };
        let kind = match part {
            Part::Text => "agent_message",
            Part::Reasoning => "reasoning",
        };
        vec![completed(&format!("item_{}", self.next_item()), kind, whole)]
    }

    /// Nothing is smaller here than a whole message.
    fn flood_line(&mut self, text: &str, marker: &str) -> String {
        completed(&format!("item_{}{marker}", self.next_item()), "agent_message", text)
    }

    /// The messages of a flood were whole already.
    fn repeats(&self) -> bool {
        false
    }

    fn tool(&mut self, name: &str, input: &Value, output: &str) -> Vec<String> {
        let id = self.next_item();
        let command = text(&format!("/bin/bash -lc '{}'", voice::command_of(name, input)));
        let output = text(output);
        vec![
            format!(
                r#"{{"type":"item.started","item":{{"id":"item_{id}","type":"command_execution","command":{command},"aggregated_output":"","exit_code":null,"status":"in_progress"}}}}"#
            ),
            format!(
                r#"{{"type":"item.completed","item":{{"id":"item_{id}","type":"command_execution","command":{command},"aggregated_output":{output},"exit_code":0,"status":"completed"}}}}"#
            ),
        ]
    }

    fn asks(&mut self, _: &str, _: &Value) -> Option<(String, Vec<String>)> {
        None
    }

    fn answered(&mut self, _: &Verdict) -> Vec<String> {
        Vec::new()
    }

    fn around_huge(&mut self) -> (String, String) {
        let id = self.next_item();
        let head = format!(
            r#"{{"type":"item.completed","item":{{"id":"item_{id}","type":"agent_message","text":""#
        );
        (head, r#""}}"#.to_owned())
    }

    /// The wire has no word for it: the process ends by a signal, without one.
    fn interrupted(&mut self, _: During) -> Vec<String> {
        Vec::new()
    }

    fn turn_ends(&mut self, outcome: Outcome, _: &str) -> Vec<String> {
        let message = match outcome {
            Outcome::Success => {
                return vec![r#"{"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":400,"cache_write_input_tokens":0,"output_tokens":50,"reasoning_output_tokens":7}}"#.to_owned()];
            }
            Outcome::Error => text("fake failure"),
            Outcome::ApiError => text(OVERLOADED),
        };
        vec![
            format!(r#"{{"type":"error","message":{message}}}"#),
            format!(r#"{{"type":"turn.failed","error":{{"message":{message}}}}}"#),
        ]
    }
}

fn completed(id: &str, kind: &str, content: &str) -> String {
    let content = text(content);
    format!(
        r#"{{"type":"item.completed","item":{{"id":"{id}","type":"{kind}","text":{content}}}}}"#
    )
}

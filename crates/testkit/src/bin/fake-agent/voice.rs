//! How an agent says what the player wants said, whichever wire it speaks.

use serde_json::Value;

use crate::script::Outcome;

/// A message of the user.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) text: String,
    /// The id that the wire gives the turn; empty where it gives none.
    pub(crate) turn: String,
    /// The line, for wires that repeat it.
    pub(crate) line: Value,
}

/// What a message is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    Reasoning,
}

/// How a message is over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended<'a> {
    /// With its whole text.
    Whole(&'a str),
    /// After this text, by an interrupt.
    Cut(&'a str),
    /// On a wire that does not repeat what it streamed.
    Streamed,
}

/// What an interrupt hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum During {
    Text,
    Tool,
}

/// What was said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Deny { message: String, stop: bool },
}

/// The lines of one wire, in the order and with the keys of its recordings.
pub(crate) trait Voice: Send {
    fn turn_begins(&mut self, user: &User) -> Vec<String>;

    fn part_begins(&mut self, part: Part) -> Vec<String>;

    /// A piece of the message, on wires that stream.
    fn delta(&mut self, part: Part, text: &str) -> Option<String>;

    fn part_ends(&mut self, part: Part, ended: Ended<'_>) -> Vec<String>;

    /// The wire's most frequent line; `text` stands in it once, and what is unique to the line is
    /// spelled with the same marker.
    fn flood_line(&mut self, text: &str, marker: &str) -> String;

    /// Whether the end of a streamed message has the whole text again.
    fn repeats(&self) -> bool {
        true
    }

    /// A tool that runs without asking.
    fn tool(&mut self, name: &str, input: &Value, output: &str) -> Vec<String>;

    /// A tool that asks first: the id of the answer and the lines. `None` where the wire has no
    /// word for it.
    fn asks(&mut self, name: &str, input: &Value) -> Option<(String, Vec<String>)>;

    /// What follows the answer, up to the end of the tool.
    fn answered(&mut self, verdict: &Verdict) -> Vec<String>;

    /// The parts of a valid line around a long text.
    fn around_huge(&mut self) -> (String, String);

    /// The end of a turn that was interrupted, also while it asked.
    fn interrupted(&mut self, during: During) -> Vec<String>;

    fn turn_ends(&mut self, outcome: Outcome, said: &str) -> Vec<String>;
}

/// Takes what comes in on stdin.
pub(crate) trait Ear: Send {
    fn hear(&mut self, message: &Value);

    /// A line that is no JSON.
    fn misses(&mut self);

    /// stdin is at its end.
    fn ends(&mut self);
}

/// `content` as a JSON string.
pub(crate) fn text(content: &str) -> String {
    serde_json::to_string(content).expect("text is always valid JSON")
}

pub(crate) fn uuid(n: u64) -> String {
    format!("00000000-0000-4000-8000-{n:012x}")
}

/// The `n`th session of this process.
pub(crate) fn session_id(n: u64) -> String {
    uuid((u64::from(std::process::id()) << 16) + n)
}

/// The command that a tool's input stands for.
pub(crate) fn command_of(name: &str, input: &Value) -> String {
    match input["command"].as_str() {
        Some(command) => command.to_owned(),
        None => format!("{name} {input}"),
    }
}

pub(crate) fn current_dir() -> String {
    std::env::current_dir().unwrap_or_default().display().to_string()
}

//! A line between client and agent.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToAgent,
    ToClient,
}

/// One line, as it was written.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Since the agent was started.
    pub at: Duration,
    pub direction: Direction,
    /// Without its end.
    pub line: Vec<u8>,
    /// `None` if the line is no JSON.
    pub value: Option<Value>,
}

impl Frame {
    pub fn new(at: Duration, direction: Direction, line: Vec<u8>) -> Frame {
        let value = serde_json::from_slice(&line).ok();
        Frame { at, direction, line, value }
    }

    /// The method of a request or a notification.
    pub fn method(&self) -> Option<&str> {
        self.value.as_ref()?["method"].as_str()
    }

    /// The kind of a `session/update`.
    pub fn update(&self) -> Option<&str> {
        self.value.as_ref()?.pointer("/params/update/sessionUpdate")?.as_str()
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.direction {
            Direction::ToAgent => "->",
            Direction::ToClient => "<-",
        };
        let text: String = String::from_utf8_lossy(&self.line).chars().take(2000).collect();
        write!(f, "{:>6} ms {arrow} {text}", self.at.as_millis())
    }
}

/// The error object that answered a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl Fault {
    pub(crate) fn new(error: &Value) -> Fault {
        Fault {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        }
    }
}

//! JSON-RPC over lines: what a message is, and which call an answer is for.
//!
//! The two peers number their requests independently and the numbers collide in practice, so
//! [`Calls`] has only what we asked. What we were asked is kept by whoever answers it.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::text::Str;

pub mod write;

#[cfg(test)]
mod tests;

/// The id of a request, as its sender wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            // Ids go back onto the wire, so a text is written as JSON.
            Self::Text(text) => f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl serde::de::Visitor<'_> for IdVisitor {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or a string")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Id, E> {
                Ok(Id::Number(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Id, E> {
                i64::try_from(number).map(Id::Number).map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Id, E> {
                Ok(Id::Text(text.to_owned()))
            }
        }

        deserializer.deserialize_any(IdVisitor)
    }
}

/// One line, classified. `jsonrpc` may be missing: Codex leaves it out.
#[derive(Debug)]
pub enum Message<'a> {
    /// The answer to a request of ours.
    Response {
        /// Ours.
        id: Id,
        /// What it gave.
        result: &'a RawValue,
    },
    /// The refusal of a request of ours; without an id it is about a line nobody could read.
    Error {
        /// Ours.
        id: Option<Id>,
        /// Why.
        error: ErrorObject,
    },
    /// News; nobody answers it.
    Notification {
        /// What about.
        method: Str<'a>,
        /// The news.
        params: Option<&'a RawValue>,
    },
    /// The peer asks; it waits for exactly one answer.
    Request {
        /// The peer's.
        id: Id,
        /// What it asks.
        method: Str<'a>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// Not a JSON-RPC message.
    Garbage {
        /// Why not.
        reason: String,
    },
}

/// A refusal.
#[derive(Debug, Clone, Deserialize)]
pub struct ErrorObject {
    /// The number the protocol gives it.
    #[serde(default)]
    pub code: i64,
    /// What went wrong.
    #[serde(default)]
    pub message: String,
    /// More of it.
    #[serde(default)]
    pub data: Option<Box<RawValue>>,
}

/// Tells what a line is. Never fails: what is nothing else is [`Message::Garbage`].
pub fn classify(line: &[u8]) -> Message<'_> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(default, deserialize_with = "present")]
        id: Option<Option<Id>>,
        #[serde(borrow, default)]
        method: Option<Str<'a>>,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(default)]
        error: Option<ErrorObject>,
    }

    /// `null` is there; a missing field is not.
    fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
    where
        D: serde::Deserializer<'de>,
        T: Deserialize<'de>,
    {
        Option::<T>::deserialize(deserializer).map(Some)
    }

    let envelope: Envelope<'_> = match serde_json::from_slice(line) {
        Ok(envelope) => envelope,
        Err(error) => return Message::Garbage { reason: error.to_string() },
    };
    match envelope {
        Envelope { method: Some(method), id: Some(Some(id)), params, .. } => {
            Message::Request { id, method, params }
        }
        Envelope { method: Some(method), params, .. } => Message::Notification { method, params },
        Envelope { error: Some(error), id, .. } => Message::Error { id: id.flatten(), error },
        Envelope { result: Some(result), id: Some(Some(id)), .. } => {
            Message::Response { id, result }
        }
        // `"result": null` reads as a missing field; the id says that it is an answer.
        Envelope { id: Some(Some(id)), .. } => Message::Response { id, result: RawValue::NULL },
        _ => Message::Garbage { reason: "neither method, result nor error".to_owned() },
    }
}

/// Requests of ours that wait for an answer, each with what it was for.
#[derive(Debug)]
pub struct Calls<T> {
    next: i64,
    open: HashMap<Id, T>,
}

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self { next: 1, open: HashMap::new() }
    }
}

impl<T> Calls<T> {
    /// Requests whose ids begin here: on a line that several share, each has a range of its own.
    pub fn numbered_from(next: i64) -> Self {
        Self { next, ..Self::default() }
    }

    /// Notes a request and gives its id.
    pub fn open(&mut self, purpose: T) -> i64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(Id::Number(id), purpose);
        id
    }

    /// An answer came: what it was for. `None` is a late, second or unknown answer, to be logged
    /// and given to nobody.
    pub fn close(&mut self, id: &Id) -> Option<T> {
        self.open.remove(id)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Nobody will answer any more: what was open, in no order.
    pub fn abandon(&mut self) -> Vec<T> {
        self.open.drain().map(|(_, purpose)| purpose).collect()
    }
}

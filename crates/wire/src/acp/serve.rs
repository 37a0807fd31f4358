//! What an agent's side of the connection does about each line it reads.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{INVALID_REQUEST, PARSE_ERROR};
use crate::jsonrpc::{ErrorObject, Id};
use crate::text::Str;

#[cfg(test)]
mod tests;

/// A line from the client.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// It asks, and waits for exactly one answer.
    Request {
        /// Its id.
        id: Id,
        /// What it asks.
        method: Str<'a>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// It tells; nobody answers.
    Notification {
        /// What about.
        method: Str<'a>,
        /// The news.
        params: Option<&'a RawValue>,
    },
    /// It answers a request of ours.
    Response {
        /// Ours.
        id: Id,
        /// What it gave, or why not.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
    /// It is none of these, and its sender is told so.
    Bad {
        /// Of the request, where it could be read.
        id: Option<Id>,
        /// Which error.
        code: i64,
        /// In words.
        message: String,
    },
    /// A broken answer. Its sender waits for nothing, so it is told nothing.
    Dropped {
        /// What is wrong with it.
        reason: String,
    },
}

/// Tells what a line is. `line` has no terminator.
pub fn read(line: &[u8]) -> Incoming<'_> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow, default)]
        jsonrpc: Option<Str<'a>>,
        #[serde(borrow, default, deserialize_with = "there")]
        id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        method: Option<Str<'a>>,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "there")]
        result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }

    let envelope: Envelope<'_> = match serde_json::from_slice(line) {
        Ok(envelope) => envelope,
        Err(error) => return not_an_envelope(line, &error),
    };
    let Envelope { jsonrpc, id: raw_id, method, params, result, error } = envelope;
    let id: Option<Id> = raw_id.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let bad = |id, message: &str| Incoming::Bad {
        id,
        code: INVALID_REQUEST,
        message: message.to_owned(),
    };
    let is_versioned = jsonrpc.as_deref() == Some("2.0");
    let Some(method) = method else {
        return match (id, result, error) {
            (Some(id), _, Some(error)) if is_versioned => {
                match serde_json::from_str::<ErrorObject>(error.get()) {
                    Ok(error) => Incoming::Response { id, outcome: Err(error) },
                    Err(error) => Incoming::Dropped { reason: error.to_string() },
                }
            }
            (Some(id), Some(result), None) if is_versioned => {
                Incoming::Response { id, outcome: Ok(result) }
            }
            (id, None, None) => bad(id, "neither method, result nor error"),
            _ => Incoming::Dropped { reason: "an answer without a proper envelope".to_owned() },
        };
    };
    if !is_versioned {
        return bad(id, "`jsonrpc` must be \"2.0\"");
    }
    match (raw_id, id) {
        (None, _) => Incoming::Notification { method, params },
        (Some(_), Some(id)) => Incoming::Request { id, method, params },
        (Some(_), None) => bad(None, "`id` must be a whole number or a string"),
    }
}

/// `null` is there; a missing field is not.
fn there<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn not_an_envelope<'a>(line: &[u8], error: &serde_json::Error) -> Incoming<'a> {
    let (code, message) = match serde_json::from_slice::<IgnoredAny>(line) {
        Err(_) => (PARSE_ERROR, format!("not JSON: {error}")),
        Ok(_) if line.first() == Some(&b'[') => {
            (INVALID_REQUEST, "batches are not part of this protocol".to_owned())
        }
        Ok(_) => (INVALID_REQUEST, format!("not a JSON-RPC message: {error}")),
    };
    Incoming::Bad { id: None, code, message }
}

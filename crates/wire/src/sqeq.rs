//! Codex's queue pair: submissions go in, events come out, one JSON object on a line.
//!
//! The types serve both ends. A client writes [`Submission`]s and reads [`Event`]s, as our driver
//! of `codex proto` does; a server does the reverse. They borrow from the line they were read
//! from, or own what was made here ([`Str`], [`Raw`]).
//!
//! The vocabulary has changed over its releases. Every spelling is read: `task_*` and `turn_*`, the
//! sandbox's tag `mode` and `type`, both forms of a change, output as base64 and as numbers, a
//! refusal as a word and as an object. One is written, that of the protocol's description; where
//! `codex proto` (0.42 at last) needs the older one, the value says so ([`SandboxTag`],
//! [`ChangeForm`]). Fields may be missing; fields that are not named here are skipped; an op or an
//! event that is not known keeps its name and its text.

mod body;
mod change;
mod chunk;
mod event;
mod item;
mod op;
mod policy;
mod reply;
pub mod schema;
mod work;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::raw::Raw;
use crate::text::Str;

pub use change::{ChangeForm, Changes, FileChange};
pub use chunk::Chunk;
pub use event::*;
pub use item::*;
pub use op::*;
pub use policy::*;
pub use reply::*;
pub use work::*;

/// What a client asks, under an id of its own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct Submission<'a> {
    /// The client's id.
    pub id: Str<'a>,
    /// What.
    pub op: Op<'a>,
}

/// What an agent tells, under the id of the submission that began the task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct Event<'a> {
    /// The submission's id; empty for what nobody asked for.
    pub id: Str<'a>,
    /// What.
    pub msg: EventMsg<'a>,
}

impl<'a> Submission<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no submission.
    pub fn parse(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }

    /// The line with its terminator.
    pub fn to_line(&self) -> Vec<u8> {
        line(self)
    }
}

impl<'a> Event<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no event.
    pub fn parse(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }

    /// The line with its terminator.
    pub fn to_line(&self) -> Vec<u8> {
        line(self)
    }
}

/// The id of a submission whose fields have another shape.
pub fn id_of_submission(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        id: String,
        #[serde(borrow)]
        op: Raw<'a>,
    }
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type")]
        _kind: Str<'a>,
    }
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
    envelope.op.read::<Kind<'_>>().map(|_| envelope.id)
}

/// The little that can be known of an event whose fields have another shape.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sniffed {
    /// The submission's id.
    pub id: String,
    /// The kind of event.
    pub kind: String,
    /// The call's id.
    pub call_id: Option<String>,
}

/// Looks only for what somebody may wait for in an event that cannot be read.
pub fn sniff(line: &[u8]) -> Option<Sniffed> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow, default)]
        id: Raw<'a>,
        #[serde(borrow)]
        msg: Message<'a>,
    }
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        r#type: Str<'a>,
        #[serde(borrow, default)]
        call_id: Raw<'a>,
    }
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
    Some(Sniffed {
        id: envelope.id.read().unwrap_or_default(),
        kind: envelope.msg.r#type.into(),
        call_id: envelope.msg.call_id.read(),
    })
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("strings, numbers and JSON text are JSON");
    line.push(b'\n');
    line
}

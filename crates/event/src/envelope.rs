//! The envelope around what happened, and the preview of what is happening.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::command::Origin;
use crate::id::{ConversationKey, Epoch, FrameNo, ItemId, Seq, Timestamp, TurnId};
use crate::kind::Kind;

/// Version of the JSON form, in the field `v`. It grows when a reader of the old form would err.
pub const FORMAT: u32 = 1;

/// One durable fact about a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// Version of this form: [`FORMAT`].
    pub v: u32,
    /// Which conversation.
    pub conversation: ConversationKey,
    /// Its place in the conversation.
    pub seq: Seq,
    /// Which generation of owner wrote it.
    pub epoch: Epoch,
    /// When.
    pub ts: Timestamp,
    /// In which turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// About which item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The item whose work this is: set on what a sub-agent does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ItemId>,
    /// Who caused it, where that is not plain from the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The agent's own names for these things.
    #[serde(skip_serializing_if = "Native::is_empty")]
    pub native: Native,
    /// Where it comes from.
    pub source: Source,
    /// What happened.
    #[serde(flatten)]
    pub kind: Kind,
}

/// The agent's own names for a session, a turn, a message, an item, a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Native {
    /// Session or thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Item or tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

impl Native {
    /// Whether no name is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where an event comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The driver, or `tieline` for what no agent said.
    #[schemars(with = "String")]
    pub driver: Arc<str>,
    /// Version of the agent whose wire it was read from, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub version: Option<Arc<str>>,
    /// The frames it was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameRange>,
}

/// Frames from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrameRange {
    /// The first.
    pub first: FrameNo,
    /// The last.
    pub last: FrameNo,
}

/// A preview of an item that is still growing. Never stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// In which turn.
    pub turn: TurnId,
    /// Which item grows.
    pub item: ItemId,
    /// The item whose work this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ItemId>,
    /// Which of its texts.
    pub stream: Stream,
    /// How many bytes of that text came before.
    pub offset: u64,
    /// What is new.
    pub text: String,
}

/// Which text of an item grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// The message itself.
    Text,
    /// The reasoning.
    Reasoning,
    /// A command's or a tool's output.
    Output,
    /// A tool's input, as the agent writes it.
    Input,
    /// A plan's text.
    Plan,
}

impl Event {
    /// The event as one line of JSON, without the newline.
    ///
    /// # Errors
    /// When a value inside cannot be written as JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads one line of JSON.
    ///
    /// # Errors
    /// When it is not an event of a [`FORMAT`] this version reads.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Parts<'a> {
            v: u32,
            conversation: ConversationKey,
            seq: Seq,
            epoch: Epoch,
            ts: Timestamp,
            #[serde(default)]
            turn: Option<TurnId>,
            #[serde(default)]
            item: Option<ItemId>,
            #[serde(default)]
            parent: Option<ItemId>,
            #[serde(default)]
            origin: Option<Origin>,
            #[serde(default)]
            native: Native,
            source: Source,
            #[serde(borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            data: &'a RawValue,
        }
        let parts: Parts<'_> = serde_json::from_slice(json)?;
        if parts.v > FORMAT {
            return Err(serde::de::Error::custom(format!(
                "event format {} is newer than {FORMAT}, the newest this version reads",
                parts.v
            )));
        }
        Ok(Self {
            v: parts.v,
            conversation: parts.conversation,
            seq: parts.seq,
            epoch: parts.epoch,
            ts: parts.ts,
            turn: parts.turn,
            item: parts.item,
            parent: parts.parent,
            origin: parts.origin,
            native: parts.native,
            source: parts.source,
            kind: Kind::from_parts(&parts.kind, parts.data.get()),
        })
    }
}

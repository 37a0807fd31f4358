//! The Responses API: what a model is asked, and what it answers with, event by event.
//!
//! A conversation is a list of [`Item`]s. An item is kept as the text it was received or made as,
//! so the history goes back to the model byte for byte, with whatever fields we do not know;
//! [`Item::view`] reads it. A [`Request`] is written, a [`StreamEvent`] is read and borrows from
//! its line of data.
//!
//! Providers differ: fields are missing, `null`, or new; deltas come before the item they belong
//! to; `response.completed` has no id. All of that is read.

mod error;
mod event;
mod item;
mod request;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize};

pub use error::{ApiError, ErrorKind};
pub use event::{Delta, IncompleteDetails, ItemEvent, Response, StreamEvent};
pub use item::{
    Call, Compaction, Content, CustomCall, HostedCall, ImageUrl, Item, ItemView, LocalShellCall,
    Message, Output, Part, Reasoning, RefusalText, ToolOutput,
};
pub use request::{
    Format, Include, JsonSchema, ReasoningOptions, Request, TextOptions, Tool, ToolChoice,
    ToolFormat,
};

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read, with those from the cache.
    #[serde(deserialize_with = "or_default")]
    pub input_tokens: u64,
    /// Which of them.
    #[serde(deserialize_with = "or_default")]
    pub input_tokens_details: InputDetails,
    /// Written, with those of thinking.
    #[serde(deserialize_with = "or_default")]
    pub output_tokens: u64,
    /// Which of them.
    #[serde(deserialize_with = "or_default")]
    pub output_tokens_details: OutputDetails,
    /// All, as the provider says.
    #[serde(deserialize_with = "or_default")]
    pub total_tokens: u64,
}

impl Usage {
    /// All tokens; added up where the provider does not say.
    pub fn total(&self) -> u64 {
        match self.total_tokens {
            0 => self.input_tokens.saturating_add(self.output_tokens),
            total => total,
        }
    }
}

impl From<Usage> for crate::sqeq::TokenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.input_tokens_details.cached_tokens,
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.output_tokens_details.reasoning_tokens,
            total_tokens: usage.total(),
        }
    }
}

/// What was read from where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputDetails {
    /// From the provider's cache.
    #[serde(deserialize_with = "or_default")]
    pub cached_tokens: u64,
}

/// What was written for what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    /// For thinking.
    #[serde(deserialize_with = "or_default")]
    pub reasoning_tokens: u64,
}

/// `null` is as good as a missing field.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

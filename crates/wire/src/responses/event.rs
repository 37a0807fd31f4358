//! What a model tells while it answers.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::raw::Raw;
use crate::tagged::{Tagged, skip};
use crate::text::Str;

use super::{ApiError, Item, Usage, or_default};

/// One event of a stream; its strings and items borrow from the line of data.
#[derive(Debug, Clone)]
pub enum StreamEvent<'a> {
    /// An answer begins.
    Created(Response<'a>),
    /// An item begins.
    ItemAdded(ItemEvent<'a>),
    /// An item is whole.
    ItemDone(ItemEvent<'a>),
    /// Text of a message.
    Text(Delta<'a>),
    /// Text of a message that declines.
    Refusal(Delta<'a>),
    /// A new part of what is shown of the thinking.
    SummaryPartAdded(Delta<'a>),
    /// Text of what is shown of the thinking.
    Summary(Delta<'a>),
    /// Thinking as it is.
    Reasoning(Delta<'a>),
    /// Input of a custom tool.
    CustomInput(Delta<'a>),
    /// The answer is whole.
    Completed(Response<'a>),
    /// The answer failed.
    Failed(Response<'a>),
    /// The answer was cut short.
    Incomplete(Response<'a>),
    /// The stream failed, outside of any answer.
    Error(ApiError<'a>),
    /// Nothing we need, with its kind; an empty kind for data that is no event at all.
    Unknown(Str<'a>),
}

impl<'a> StreamEvent<'a> {
    /// Reads one line of data. Nothing a provider writes is an error.
    pub fn parse(data: &'a [u8]) -> Self {
        serde_json::from_slice(data).unwrap_or(Self::Unknown(Str::Borrowed("")))
    }
}

impl<'de: 'a, 'a> Tagged<'de> for StreamEvent<'a> {
    const TAGS: &'static [&'static str] = &["type"];

    fn read<D: Deserializer<'de>>(kind: Str<'de>, rest: D) -> Result<Self, D::Error> {
        Ok(match &*kind {
            "response.output_text.delta" => Self::Text(Delta::deserialize(rest)?),
            "response.reasoning_summary_text.delta" => Self::Summary(Delta::deserialize(rest)?),
            "response.reasoning_text.delta" => Self::Reasoning(Delta::deserialize(rest)?),
            "response.custom_tool_call_input.delta" => Self::CustomInput(Delta::deserialize(rest)?),
            "response.refusal.delta" => Self::Refusal(Delta::deserialize(rest)?),
            "response.reasoning_summary_part.added" => {
                Self::SummaryPartAdded(Delta::deserialize(rest)?)
            }
            "response.output_item.added" => Self::ItemAdded(ItemEvent::deserialize(rest)?),
            "response.output_item.done" => Self::ItemDone(ItemEvent::deserialize(rest)?),
            "response.created" => Self::Created(Envelope::deserialize(rest)?.response),
            "response.completed" => Self::Completed(Envelope::deserialize(rest)?.response),
            "response.failed" => Self::Failed(Envelope::deserialize(rest)?.response),
            "response.incomplete" => Self::Incomplete(Envelope::deserialize(rest)?.response),
            "error" => Self::Error(ErrorEvent::deserialize(rest)?.into()),
            _ => {
                skip(rest)?;
                Self::Unknown(kind)
            }
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for StreamEvent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::tagged::deserialize(deserializer)
    }
}

/// A piece of text, and where it belongs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Delta<'a> {
    /// The text; empty for a new part.
    #[serde(deserialize_with = "or_default")]
    pub delta: Str<'a>,
    /// The item's id.
    #[serde(deserialize_with = "or_default")]
    pub item_id: Str<'a>,
    /// The item's place in the answer.
    #[serde(deserialize_with = "or_default")]
    pub output_index: u64,
    /// Which part of the item's content.
    #[serde(deserialize_with = "or_default")]
    pub content_index: u64,
    /// Which part of the item's summary.
    #[serde(deserialize_with = "or_default")]
    pub summary_index: u64,
}

/// An item begins or is whole.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ItemEvent<'a> {
    /// Its place in the answer.
    #[serde(deserialize_with = "or_default")]
    pub output_index: u64,
    /// It, as it was written.
    pub item: Raw<'a>,
}

impl ItemEvent<'_> {
    /// The item, to be kept.
    pub fn to_item(&self) -> Item {
        Item::from_raw(&self.item)
    }
}

/// An answer as a whole. Its items came one by one, so they are not read again here.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Response<'a> {
    /// The provider's id of it; not every provider gives one.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<Str<'a>>,
    /// The model that answers.
    #[serde(deserialize_with = "lenient")]
    pub model: Option<Str<'a>>,
    /// Its tokens.
    #[serde(deserialize_with = "lenient")]
    pub usage: Option<Usage>,
    /// Whether the model is done, where the provider says so.
    #[serde(deserialize_with = "lenient")]
    pub end_turn: Option<bool>,
    /// Why it failed.
    #[serde(deserialize_with = "lenient")]
    pub error: Option<ApiError<'a>>,
    /// Why it was cut short.
    #[serde(deserialize_with = "lenient")]
    pub incomplete_details: Option<IncompleteDetails<'a>>,
}

impl Response<'_> {
    /// Why it was cut short, in the provider's word.
    pub fn reason(&self) -> &str {
        self.incomplete_details.as_ref().map_or("", |details| &details.reason)
    }
}

/// Why an answer was cut short.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct IncompleteDetails<'a> {
    /// `max_output_tokens` or `content_filter`.
    #[serde(deserialize_with = "or_default")]
    pub reason: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Envelope<'a> {
    #[serde(deserialize_with = "or_default")]
    response: Response<'a>,
}

/// Some providers write the fields into the event, some into an object of their own.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ErrorEvent<'a> {
    #[serde(deserialize_with = "lenient")]
    error: Option<ApiError<'a>>,
    #[serde(deserialize_with = "lenient")]
    message: Option<Str<'a>>,
    code: Raw<'a>,
}

impl<'a> From<ErrorEvent<'a>> for ApiError<'a> {
    fn from(event: ErrorEvent<'a>) -> Self {
        let flat = Self {
            message: event.message.unwrap_or_default(),
            code: event.code,
            ..Self::default()
        };
        event.error.unwrap_or(flat)
    }
}

/// What has another shape is not there: the end of an answer must not be missed for its usage.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

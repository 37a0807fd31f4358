//! The items of a conversation.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::raw::Raw;
use crate::tagged::{Unknown, tagged};
use crate::text::Str;

use super::or_default;

/// One item of a conversation: the text it was received or made as. A clone is cheap.
///
/// It is sent and stored as this text, so that nothing a provider put into it is lost:
/// encrypted thinking, fields and kinds we do not know, the order of the keys.
#[derive(Clone)]
pub struct Item(Arc<RawValue>);

impl Item {
    /// Keeps what a provider wrote.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(Arc::from(raw.to_owned()))
    }

    /// Makes one.
    pub fn of(view: &ItemView<'_>) -> Self {
        let raw =
            serde_json::value::to_raw_value(view).expect("strings, numbers and JSON text are JSON");
        Self(Arc::from(raw))
    }

    /// A message with one text. A model's own words are `output_text`, all others `input_text`.
    pub fn message(role: &str, text: &str) -> Self {
        let text = Str::Borrowed(text);
        let part = match role {
            "assistant" => Part::OutputText(Content { text }),
            _ => Part::InputText(Content { text }),
        };
        Self::of(&ItemView::Message(Message {
            role: Str::Borrowed(role),
            content: vec![part],
            ..Message::default()
        }))
    }

    /// What a function gave.
    pub fn function_output(call_id: &str, output: Output<'_>) -> Self {
        let call_id = Str::Borrowed(call_id);
        Self::of(&ItemView::FunctionCallOutput(ToolOutput { call_id, output, id: None }))
    }

    /// What a custom tool gave.
    pub fn custom_output(call_id: &str, output: Output<'_>) -> Self {
        let call_id = Str::Borrowed(call_id);
        Self::of(&ItemView::CustomToolCallOutput(ToolOutput { call_id, output, id: None }))
    }

    /// Its text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads it. What has another shape than its kind should have is [`ItemView::Unknown`].
    pub fn view(&self) -> ItemView<'_> {
        ItemView::read_raw(&self.0)
    }

    /// The same without these fields; the others stay as they were written.
    ///
    /// A provider that stores nothing may look for the `id` of an item and not find it.
    #[must_use]
    pub fn without(&self, fields: &[&str]) -> Self {
        struct Rest<'b>(&'b [&'b str]);

        impl<'de> Visitor<'de> for Rest<'_> {
            type Value = Option<String>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut text = String::from("{");
                let mut dropped = false;
                while let Some((key, value)) = map.next_entry::<Str<'de>, &'de RawValue>()? {
                    if self.0.contains(&&*key) {
                        dropped = true;
                        continue;
                    }
                    if text.len() > 1 {
                        text.push(',');
                    }
                    text.push_str(&serde_json::to_string(&key).map_err(A::Error::custom)?);
                    text.push(':');
                    text.push_str(value.get());
                }
                text.push('}');
                Ok(dropped.then_some(text))
            }
        }

        let mut reader = serde_json::Deserializer::from_str(self.get());
        let rest = reader.deserialize_map(Rest(fields));
        match rest.map(|rest| rest.map(RawValue::from_string)) {
            Ok(Some(Ok(raw))) => Self(Arc::from(raw)),
            _ => self.clone(),
        }
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Serialize for Item {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(Arc::from(raw)))
    }
}

tagged! {
    /// What an item says.
    pub enum ItemView<'a> by "type" {
        /// Somebody's words.
        Message(Message<'a>) = "message",
        /// The model's thinking.
        Reasoning(Reasoning<'a>) = "reasoning",
        /// The model calls a function.
        FunctionCall(Call<'a>) = "function_call",
        /// What it gave.
        FunctionCallOutput(ToolOutput<'a>) = "function_call_output",
        /// The model calls a tool that takes plain text.
        CustomToolCall(CustomCall<'a>) = "custom_tool_call",
        /// What it gave.
        CustomToolCallOutput(ToolOutput<'a>) = "custom_tool_call_output",
        /// The model runs a command by the provider's own tool for it.
        LocalShellCall(LocalShellCall<'a>) = "local_shell_call",
        /// The provider searched.
        WebSearchCall(HostedCall<'a>) = "web_search_call",
        /// The provider made a picture.
        ImageGenerationCall(HostedCall<'a>) = "image_generation_call",
        /// The provider's short form of what came before.
        Compaction(Compaction<'a>) = "compaction" | "compaction_summary",
    } else {
        /// Another kind: kept as it is.
        Unknown(Unknown<'a>),
    }
}

impl<'a> ItemView<'a> {
    /// Reads an item.
    pub fn read_raw(raw: &'a RawValue) -> Self {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(borrow)]
            r#type: Str<'a>,
        }
        serde_json::from_str(raw.get()).unwrap_or_else(|_| {
            let kind = serde_json::from_str::<Kind<'a>>(raw.get()).map(|kind| kind.r#type);
            Self::Unknown(Unknown { kind: kind.unwrap_or_default(), raw: Raw::Borrowed(raw) })
        })
    }
}

/// Somebody's words.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Message<'a> {
    /// The provider's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// `user`, `assistant`, `developer` or `system`.
    #[serde(deserialize_with = "or_default")]
    pub role: Str<'a>,
    /// What they say.
    #[serde(deserialize_with = "content")]
    pub content: Vec<Part<'a>>,
    /// `commentary` or `final_answer`, where the model says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Str<'a>>,
}

impl Message<'_> {
    /// All its text.
    pub fn text(&self) -> String {
        self.content.iter().map(Part::text).collect()
    }
}

tagged! {
    /// A part of a message or of what a tool gave.
    pub enum Part<'a> by "type" {
        /// Text for the model.
        InputText(Content<'a>) = "input_text",
        /// A picture for the model.
        InputImage(ImageUrl<'a>) = "input_image",
        /// Text of the model.
        OutputText(Content<'a>) = "output_text",
        /// Text of the model, which declines.
        Refusal(RefusalText<'a>) = "refusal",
        /// A part of the summary of its thinking.
        SummaryText(Content<'a>) = "summary_text",
        /// A part of its thinking.
        ReasoningText(Content<'a>) = "reasoning_text" | "text",
    } else {
        /// Another kind: kept as it is.
        Unknown(Unknown<'a>),
    }
}

impl Part<'_> {
    /// Its text; empty for a picture.
    pub fn text(&self) -> &str {
        match self {
            Self::InputText(part)
            | Self::OutputText(part)
            | Self::SummaryText(part)
            | Self::ReasoningText(part) => &part.text,
            Self::Refusal(part) => &part.refusal,
            Self::InputImage(_) | Self::Unknown(_) => "",
        }
    }
}

/// A text.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Content<'a> {
    /// It.
    #[serde(deserialize_with = "or_default")]
    pub text: Str<'a>,
}

/// Why the model declines.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct RefusalText<'a> {
    /// Why.
    #[serde(deserialize_with = "or_default")]
    pub refusal: Str<'a>,
}

/// A picture.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ImageUrl<'a> {
    /// Where it is, or itself as a `data:` URL.
    #[serde(deserialize_with = "or_default")]
    pub image_url: Str<'a>,
    /// How closely to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Str<'a>>,
}

/// The model's thinking.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Reasoning<'a> {
    /// The provider's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// What is shown of it.
    #[serde(deserialize_with = "or_default")]
    pub summary: Vec<Part<'a>>,
    /// It as it is, from models that show it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Part<'a>>,
    /// It for the provider's own eyes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_content: Option<Str<'a>>,
}

/// A call of a function.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Call<'a> {
    /// The provider's id of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// What its output is to be sent under.
    #[serde(deserialize_with = "or_default")]
    pub call_id: Str<'a>,
    /// The function.
    #[serde(deserialize_with = "or_default")]
    pub name: Str<'a>,
    /// Where the function is from, where there are such groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str<'a>>,
    /// JSON, as a string.
    #[serde(deserialize_with = "or_default")]
    pub arguments: Str<'a>,
}

/// A call of a tool that takes plain text.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct CustomCall<'a> {
    /// The provider's id of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// What its output is to be sent under.
    #[serde(deserialize_with = "or_default")]
    pub call_id: Str<'a>,
    /// The tool.
    #[serde(deserialize_with = "or_default")]
    pub name: Str<'a>,
    /// Its input.
    #[serde(deserialize_with = "or_default")]
    pub input: Str<'a>,
}

/// What a function or a tool gave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ToolOutput<'a> {
    /// The provider's id of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// The call's.
    #[serde(deserialize_with = "or_default")]
    pub call_id: Str<'a>,
    /// It.
    #[serde(deserialize_with = "or_default")]
    pub output: Output<'a>,
}

/// What a tool gave.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Output<'a> {
    /// Text.
    Text(Str<'a>),
    /// Text and pictures.
    Parts(Vec<Part<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Output<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        if let Ok(text) = serde_json::from_str(raw.get()) {
            return Ok(Self::Text(text));
        }
        serde_json::from_str(raw.get()).map(Self::Parts).map_err(D::Error::custom)
    }
}

impl Default for Output<'_> {
    fn default() -> Self {
        Self::Text(Str::default())
    }
}

/// A command by the provider's own tool for it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct LocalShellCall<'a> {
    /// The provider's id of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// What its output is to be sent under; the item's id where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Str<'a>>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Str<'a>>,
    /// What to run.
    pub action: Raw<'a>,
}

/// Something the provider did on its own side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct HostedCall<'a> {
    /// The provider's id of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Str<'a>>,
    /// What it did, of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Raw<'a>>,
    /// How the wish for a picture was understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revised_prompt: Option<Str<'a>>,
    /// The picture, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Str<'a>>,
}

/// The provider's short form of what came before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Compaction<'a> {
    /// The provider's id of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Str<'a>>,
    /// For the provider's own eyes.
    #[serde(deserialize_with = "or_default")]
    pub encrypted_content: Str<'a>,
}

/// Content is a list of parts; short forms have only a string.
fn content<'de: 'a, 'a, D>(deserializer: D) -> Result<Vec<Part<'a>>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    if let Ok(text) = serde_json::from_str::<Str<'a>>(raw.get()) {
        return Ok(vec![Part::InputText(Content { text })]);
    }
    serde_json::from_str::<Option<_>>(raw.get())
        .map(Option::unwrap_or_default)
        .map_err(D::Error::custom)
}

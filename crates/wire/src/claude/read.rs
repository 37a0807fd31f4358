//! Reading a line.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Str;

use super::{
    Assistant, Block, Blocks, ControlRequest, ControlResponse, Frame, Message, RateLimitInfo,
    Stream, StreamEvent, User,
};

/// Reads one line.
///
/// # Errors
/// When the line is not a JSON object of a shape this view knows.
pub fn parse(line: &[u8]) -> Result<Frame<'_>, serde_json::Error> {
    // Checked once as a whole, the text of the line is not checked again string by string.
    let envelope: Envelope<'_> = match std::str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text)?,
        Err(_) => serde_json::from_slice(line)?,
    };
    let missing = |field: &str| de::Error::custom(format!("{} without {field}", envelope.kind));
    let parent = envelope.parent_tool_use_id;
    let session_id = envelope.session_id;
    Ok(match &*envelope.kind {
        "stream_event" => Frame::Stream(Stream {
            event: envelope.event.0.ok_or_else(|| missing("event"))?,
            parent,
            session_id,
        }),
        "assistant" => Frame::Assistant(Assistant {
            message: envelope.message.0.ok_or_else(|| missing("message"))?,
            parent,
            session_id,
            error: envelope.error,
            aborted: envelope.aborted.unwrap_or(false),
            uuid: envelope.uuid,
        }),
        "user" => Frame::User(User {
            message: envelope.message.0.ok_or_else(|| missing("message"))?,
            parent,
            session_id,
            tool_use_result: envelope.tool_use_result,
            tool_result_meta: envelope.tool_result_meta,
            is_replay: envelope.is_replay.unwrap_or(false),
            is_synthetic: envelope.is_synthetic.unwrap_or(false),
        }),
        // Rare and wide: worth a second pass, so that the hot frames stay narrow.
        "system" => Frame::System(serde_json::from_slice(line)?),
        "result" => Frame::Result(serde_json::from_slice(line)?),
        "control_request" => Frame::ControlRequest {
            request_id: envelope.request_id.ok_or_else(|| missing("request_id"))?,
            request: envelope.request.0.ok_or_else(|| missing("request"))?,
        },
        "control_response" => {
            Frame::ControlResponse(*envelope.response.0.ok_or_else(|| missing("response"))?)
        }
        "control_cancel_request" => Frame::ControlCancel {
            request_id: envelope.request_id.ok_or_else(|| missing("request_id"))?,
        },
        "rate_limit_event" => {
            Frame::RateLimit(*envelope.rate_limit_info.0.ok_or_else(|| missing("rate_limit_info"))?)
        }
        "keep_alive" | "command_lifecycle" | "tool_progress" | "prompt_suggestion"
        | "tool_use_summary" | "transcript_mirror" | "auth_status" | "conversation_reset" => {
            Frame::Silent
        }
        other => Frame::Unknown { name: other.to_owned() },
    })
}

/// Text that JavaScript cut through the middle of a character arrives as half a surrogate pair,
/// which no Rust string can hold. Gives the line with each such half replaced by U+FFFD, or `None`
/// when there is none.
pub fn repair_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    // Most lines have no escapes, almost none has this one, and this looks at many bytes at once.
    let mut at = memchr::memchr(b'\\', line)?;
    memchr::memmem::find(line.get(at..)?, b"\\u")?;
    let mut repaired: Option<Vec<u8>> = None;
    while let Some(found) = memchr::memchr(b'\\', line.get(at..).unwrap_or_default()) {
        let start = at + found;
        let Some(unit) = escaped_unit(line, start) else {
            at = start + 2;
            continue;
        };
        let paired = (0xd800..0xdc00).contains(&unit)
            && escaped_unit(line, start + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        if paired {
            at = start + 12;
            continue;
        }
        if (0xd800..0xe000).contains(&unit) {
            let copy = repaired.get_or_insert_with(|| line.to_vec());
            if let Some(digits) = copy.get_mut(start + 2..start + 6) {
                digits.copy_from_slice(b"fffd");
            }
        }
        at = start + 6;
    }
    repaired
}

/// What a line that is not understood seems to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Sniffed {
    /// The end of a turn.
    Result,
    /// A question that waits for an answer.
    ControlRequest {
        /// Its id.
        request_id: String,
    },
    /// Something nobody waits for.
    Other,
}

/// Looks only for what somebody may wait for.
pub fn sniff(line: &[u8]) -> Sniffed {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, rename = "type")]
        kind: Str<'a>,
        #[serde(borrow, default)]
        request_id: Option<&'a RawValue>,
    }
    let Ok(head) = serde_json::from_slice::<Head<'_>>(line) else { return Sniffed::Other };
    let request_id = head.request_id.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    match (&*head.kind, request_id) {
        ("result", _) => Sniffed::Result,
        ("control_request", Some(request_id)) => Sniffed::ControlRequest { request_id },
        _ => Sniffed::Other,
    }
}

/// A value of another type counts as missing.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: de::DeserializeOwned + Default,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// An object, or nothing for anything else.
pub(super) fn object<'de: 'a, 'a, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + 'a,
{
    Object::<T>::deserialize(deserializer).map(|object| object.0)
}

/// The code unit of a `\uXXXX` that starts here.
fn escaped_unit(line: &[u8], start: usize) -> Option<u32> {
    let digits = line.get(start..start + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The fields of the hot frames; those of the others are boxed, so that it stays small. Fields that other frames use for other things are [`Object`]s.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default)]
    session_id: Option<Str<'a>>,
    #[serde(borrow, default)]
    parent_tool_use_id: Option<Str<'a>>,
    #[serde(borrow, default)]
    message: Object<'a, Box<Message<'a>>>,
    #[serde(borrow, default)]
    event: Object<'a, StreamEvent<'a>>,
    #[serde(borrow, default)]
    request_id: Option<Str<'a>>,
    #[serde(borrow, default)]
    request: Object<'a, Box<ControlRequest<'a>>>,
    #[serde(borrow, default)]
    response: Object<'a, Box<ControlResponse<'a>>>,
    #[serde(borrow, default)]
    rate_limit_info: Object<'a, Box<RateLimitInfo<'a>>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    aborted: Option<bool>,
    #[serde(borrow, default)]
    uuid: Option<Str<'a>>,
    #[serde(borrow, default)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_result_meta: Option<&'a RawValue>,
    #[serde(default, rename = "isReplay")]
    is_replay: Option<bool>,
    #[serde(default, rename = "isSynthetic")]
    is_synthetic: Option<bool>,
}

/// An object of a type, or `None` for anything that is not an object.
struct Object<'a, T>(Option<T>, PhantomData<&'a ()>);

impl<T> Default for Object<'_, T> {
    fn default() -> Self {
        Self(None, PhantomData)
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Object<'a, T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<'a, T>(PhantomData<(&'a (), T)>);

        impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<'a, T> {
            type Value = Object<'a, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let value = T::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Object(Some(value), PhantomData))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Object::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Object::default())
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Object::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Object::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Object::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Object::default())
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Object::default())
            }
        }

        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Blocks<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BlocksVisitor<'a>(PhantomData<&'a ()>);

        fn text(text: Str<'_>) -> Blocks<'_> {
            Blocks(vec![Block {
                kind: Str::Borrowed("text"),
                text: Some(text),
                ..Block::default()
            }])
        }

        impl<'de: 'a, 'a> Visitor<'de> for BlocksVisitor<'a> {
            type Value = Blocks<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of blocks")
            }

            fn visit_borrowed_str<E>(self, content: &'de str) -> Result<Blocks<'a>, E> {
                Ok(text(Str::Borrowed(content)))
            }

            fn visit_str<E>(self, content: &str) -> Result<Blocks<'a>, E> {
                Ok(text(Str::Owned(content.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Blocks<'a>, E> {
                Ok(Blocks::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Blocks<'a>, A::Error> {
                let mut blocks = Vec::with_capacity(1);
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Blocks(blocks))
            }
        }

        deserializer.deserialize_any(BlocksVisitor(PhantomData))
    }
}

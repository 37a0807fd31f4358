//! Texts that may be too large for a row, and JSON that is kept as it was written.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// A text or JSON value longer than this is stored once as a blob and referenced by its hash.
pub const BLOB_THRESHOLD: usize = 64 * 1024;

/// How much of an externalised text stays in the event, at each end.
const PREVIEW: usize = 2 * 1024;

/// Where large values go when an event is made ready for the store.
pub trait BlobSink {
    /// Takes the bytes of one blob; called at most once for each hash within an event.
    fn put(&mut self, blob: &BlobRef, bytes: Vec<u8>);
}

/// The address of a blob: what it hashes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobRef {
    /// SHA-256 of the bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
}

impl BlobRef {
    /// The address of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { sha256: hex(&Sha256::digest(bytes)), bytes: bytes.len() as u64 }
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

/// A text in an event: a plain string, or, when large, both its ends and the address of the whole.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum Text {
    /// The whole text.
    Inline(String),
    /// A text over [`BLOB_THRESHOLD`].
    Blob {
        /// Where the whole text is.
        blob: BlobRef,
        /// How it begins.
        head: String,
        /// How it ends.
        tail: String,
    },
}

impl Text {
    /// The text as far as it is here: whole, or the head of a blob.
    pub fn preview(&self) -> &str {
        match self {
            Self::Inline(text) => text,
            Self::Blob { head, .. } => head,
        }
    }

    /// Length of the whole text in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Blob { blob, .. } => blob.bytes,
        }
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves a large text to the sink and keeps its address.
    pub fn externalize(&mut self, sink: &mut dyn BlobSink) {
        let outlined = match self {
            Self::Inline(text) if text.len() > BLOB_THRESHOLD => self.outlined(),
            _ => return,
        };
        if let (Self::Inline(text), Self::Blob { blob, .. }) =
            (std::mem::replace(self, outlined), &*self)
        {
            sink.put(blob, text.into_bytes());
        }
    }

    /// The same text, a large one by its ends and its address alone.
    #[must_use]
    pub fn outlined(&self) -> Self {
        let Self::Inline(text) = self else { return self.clone() };
        if text.len() <= BLOB_THRESHOLD {
            return self.clone();
        }
        let head = text.get(..text.floor_char_boundary(PREVIEW)).unwrap_or_default();
        let tail = text.get(text.ceil_char_boundary(text.len() - PREVIEW)..).unwrap_or_default();
        Self::Blob {
            blob: BlobRef::of(text.as_bytes()),
            head: head.to_owned(),
            tail: tail.to_owned(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::Inline(String::new())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Inline(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Inline(text.to_owned())
    }
}

impl Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        match self {
            Self::Inline(text) => serializer.serialize_str(text),
            Self::Blob { blob, head, tail } => {
                let mut object = serializer.serialize_struct("Text", 3)?;
                object.serialize_field("blob", blob)?;
                object.serialize_field("head", head)?;
                object.serialize_field("tail", tail)?;
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with blob, head and tail")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::Inline(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Text, E> {
                Ok(Text::Inline(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
                #[derive(Deserialize)]
                struct Parts {
                    blob: BlobRef,
                    head: String,
                    tail: String,
                }
                let Parts { blob, head, tail } =
                    Parts::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Text::Blob { blob, head, tail })
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

/// JSON kept as the text it was written in.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Json(#[schemars(with = "serde_json::Value")] Box<RawValue>);

impl Json {
    /// Keeps a value that was found inside a frame.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    /// Parses nothing but checks that the text is JSON.
    ///
    /// # Errors
    /// When the text is not one JSON value.
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self)
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn from_value(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Reads the value as a type, borrowing from it.
    ///
    /// # Errors
    /// When the JSON does not have the type's shape.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// Moves a large value to the sink; what stays is `{"blob": …}`.
    pub fn externalize(&mut self, sink: &mut dyn BlobSink) {
        #[derive(Serialize)]
        struct Elsewhere<'a> {
            blob: &'a BlobRef,
        }
        if self.0.get().len() <= BLOB_THRESHOLD {
            return;
        }
        let blob = BlobRef::of(self.0.get().as_bytes());
        let placeholder = serde_json::value::to_raw_value(&Elsewhere { blob: &blob })
            .expect("a hash and a number are JSON");
        let whole = std::mem::replace(&mut self.0, placeholder);
        sink.put(&blob, whole.get().as_bytes().to_vec());
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads an internally tagged enum in two passes over its text, tag first. A derived `Deserialize`
/// would buffer the object, and a buffered object cannot hold JSON as text ([`Json`]).
macro_rules! tagged_json {
    ($enum:ident, $tag:literal, { $($name:literal => $variant:ident $body:tt),* $(,)? }) => {
        impl $enum {
            pub(crate) fn from_tagged(text: &str) -> Result<Self, serde_json::Error> {
                #[derive(serde::Deserialize)]
                struct Tag<'a> {
                    #[serde(rename = $tag, borrow)]
                    tag: std::borrow::Cow<'a, str>,
                }
                let tag: Tag<'_> = serde_json::from_str(text)?;
                match tag.tag.as_ref() {
                    $($name => crate::text::tagged_json!(@read $enum $variant text $body),)*
                    other => Err(serde::de::Error::custom(format!(
                        concat!("unknown ", $tag, " {:?}"), other
                    ))),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $enum {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
                Self::from_tagged(raw.get()).map_err(serde::de::Error::custom)
            }
        }
    };
    (@read $enum:ident $variant:ident $text:ident ($type:ty)) => {
        serde_json::from_str::<$type>($text).map($enum::$variant)
    };
    (@read $enum:ident $variant:ident $text:ident { $($field:ident : $type:ty),* $(,)? }) => {{
        #[derive(serde::Deserialize)]
        struct Fields {
            $(#[serde(default)] $field: $type,)*
        }
        let fields: Fields = serde_json::from_str($text)?;
        Ok($enum::$variant { $($field: fields.$field),* })
    }};
}
pub(crate) use tagged_json;

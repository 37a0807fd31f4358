//! Bytes a command wrote, in both forms they have had.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::Str;

/// Standard base64; read with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A piece of output: base64 since 0.3x, a list of numbers before. It is written as base64.
#[derive(Debug, Clone)]
pub enum Chunk<'a> {
    /// As base64, not decoded yet.
    Base64(Str<'a>),
    /// As bytes.
    Bytes(Cow<'a, [u8]>),
}

impl Chunk<'_> {
    /// The bytes; none for text that is not base64.
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Base64(text) => BASE64.decode(text.as_bytes()).ok().map(Cow::Owned),
            Self::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        }
    }
}

impl Default for Chunk<'_> {
    fn default() -> Self {
        Self::Bytes(Cow::Borrowed(&[]))
    }
}

impl Serialize for Chunk<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Base64(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_str(&BASE64.encode(bytes)),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Chunk<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChunkVisitor;

        impl<'de> Visitor<'de> for ChunkVisitor {
            type Value = Chunk<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 or a list of bytes")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Chunk<'de>, E> {
                Ok(Chunk::Base64(Str::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Chunk<'de>, E> {
                Ok(Chunk::Base64(Str::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Chunk<'de>, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Chunk::Bytes(Cow::Owned(bytes)))
            }
        }

        deserializer.deserialize_any(ChunkVisitor)
    }
}

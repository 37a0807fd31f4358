//! Bytes a command wrote, in both forms they have had.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::Str;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
            Self::Base64(text) => decode(text.as_bytes()).map(Cow::Owned),
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
            Self::Bytes(bytes) => serializer.serialize_str(&encode(bytes)),
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

/// Standard base64 with padding.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - group.len()));
        for place in 0..4 {
            let sextet = (word >> (18 - 6 * place)) & 63;
            let letter = ALPHABET.get(sextet as usize).copied().unwrap_or(b'=');
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Standard base64, with or without padding.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let (letters, padding) = text.split_at_checked(end)?;
    if padding.len() > 2 || letters.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    let (mut word, mut bits) = (0u32, 0u32);
    for letter in letters {
        let sextet = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(sextet);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits & 0xff) as u8);
        }
    }
    Some(bytes)
}

//! A string that borrows from its line where it can.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Serialize};

/// A JSON string: a slice of the line when it has no escapes, a copy when it has.
///
/// `Cow` would do, but serde borrows for a bare `Cow` field only: an `Option<Cow<str>>` is always
/// a copy.
#[derive(Clone)]
pub enum Str<'a> {
    /// A slice of the line.
    Borrowed(&'a str),
    /// A copy, because of escapes.
    Owned(String),
}

impl Default for Str<'_> {
    fn default() -> Self {
        Self::Borrowed("")
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self::Borrowed(text)
    }
}

impl From<String> for Str<'_> {
    fn from(text: String) -> Self {
        Self::Owned(text)
    }
}

impl From<Str<'_>> for String {
    fn from(text: Str<'_>) -> Self {
        match text {
            Str::Borrowed(text) => text.to_owned(),
            Str::Owned(text) => text,
        }
    }
}

impl JsonSchema for Str<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl Serialize for Str<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;

        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str::Borrowed(text))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str::Owned(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Str<'de>, E> {
                Ok(Str::Owned(text))
            }
        }

        deserializer.deserialize_str(StrVisitor)
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

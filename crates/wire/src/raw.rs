//! JSON that is passed on as the text it was written in.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// JSON as text: a slice of the line it was read from, or text of its own where it was made here.
#[derive(Clone)]
pub enum Raw<'a> {
    /// A slice of a line.
    Borrowed(&'a RawValue),
    /// Made here.
    Owned(Box<RawValue>),
}

impl Raw<'_> {
    /// Writes a value.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::Owned)
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// Reads it as a type; what has another shape is none.
    pub fn read<'b, T: Deserialize<'b>>(&'b self) -> Option<T> {
        serde_json::from_str(self.get()).ok()
    }
}

impl Default for Raw<'_> {
    fn default() -> Self {
        Self::Borrowed(RawValue::NULL)
    }
}

impl Deref for Raw<'_> {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        match self {
            Self::Borrowed(raw) => raw,
            Self::Owned(raw) => raw,
        }
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self::Borrowed(raw)
    }
}

impl JsonSchema for Raw<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Raw".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::Borrowed)
    }
}

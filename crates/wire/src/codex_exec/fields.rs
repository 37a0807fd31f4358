//! An object as a list of fields.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::text::Str;

/// The fields of an object in their order, the same key as often as it stands there.
#[derive(Debug)]
pub(super) struct Fields<'a>(Vec<(Str<'a>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The value of a key, as it was written; null counts as missing.
    pub(super) fn raw(&self, key: &str) -> Option<&'a RawValue> {
        self.named(key).next()
    }

    /// The value of a key, unless it has another type.
    pub(super) fn get<T: Deserialize<'a>>(&self, key: &str) -> Option<T> {
        self.all(key).next()
    }

    /// Every value of a key that has the type.
    pub(super) fn all<T: Deserialize<'a>>(&self, key: &str) -> impl Iterator<Item = T> {
        self.named(key).filter_map(|raw| serde_json::from_str(raw.get()).ok())
    }

    fn named(&self, key: &str) -> impl Iterator<Item = &'a RawValue> {
        let named = self.0.iter().filter(move |(name, _)| **name == *key);
        named.map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A value of another type counts as missing.
///
/// # Errors
/// When it is not JSON.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

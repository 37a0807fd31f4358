//! JSON objects as an agent wrote them: order, numbers and every value stay as they are.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tieline_event::Json;

/// The fields of an object, in order.
pub(crate) struct Fields(pub(crate) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Whether the object has this text under this name.
pub(crate) fn has_text(json: &Json, name: &str, text: &str) -> bool {
    let Ok(Fields(fields)) = json.read() else { return false };
    fields.iter().any(|(field, value)| {
        field == name && serde_json::from_str::<String>(value.get()).is_ok_and(|it| it == text)
    })
}

/// The object with another text under this name.
pub(crate) fn with_text(json: &Json, name: &str, text: &str) -> Result<Json, String> {
    let change = || -> Result<Json, serde_json::Error> {
        let mut object: Fields = json.read()?;
        let value = serde_json::value::to_raw_value(text)?;
        for (field, old) in &mut object.0 {
            if field == name {
                *old = value.clone();
            }
        }
        Json::from_value(&object)
    };
    change().map_err(|err| err.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_text_stays_as_it_was_written() {
        let json =
            Json::from_text(r#"{"z":1e2, "command":"rm x", "a":{"b":[1.0]}}"#.into()).unwrap();
        assert!(has_text(&json, "command", "rm x"));
        let changed = with_text(&json, "command", "ls \"x\"").unwrap();
        assert_eq!(changed.as_str(), r#"{"z":1e2,"command":"ls \"x\"","a":{"b":[1.0]}}"#);
    }
}

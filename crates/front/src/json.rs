//! JSON objects as an agent wrote them: order, numbers and every value stay as they are. And JSON on
//! its way to somebody's screen: the same values, nothing in it that a terminal would obey.

use std::fmt;
use std::io;
use std::str::Utf8Chunk;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tieline_event::Json;

use crate::visible::is_hidden;

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

/// Appends JSON with every character escaped that cannot be seen, or that a terminal would obey: the
/// value stays the same, because such characters stand in strings alone.
pub fn push_escaped(json: &[u8], out: &mut Vec<u8>) {
    if json.iter().all(|byte| *byte < 0x7f) {
        return out.extend_from_slice(json);
    }
    for chunk in json.utf8_chunks() {
        push_text(&chunk, out);
        // Of JSON there is none.
        out.extend_from_slice(chunk.invalid());
    }
}

fn push_text(chunk: &Utf8Chunk<'_>, out: &mut Vec<u8>) {
    for c in chunk.valid().chars() {
        let mut units = [0; 2];
        match c {
            // The last ones are white space between values; in a string they are escaped before.
            ' '..='~' | '\n' | '\t' => out.push(c as u8),
            '\r' => out.push(b' '),
            _ if is_hidden(c) => {
                for unit in c.encode_utf16(&mut units) {
                    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            }
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The same for one text.
pub fn escaped(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    push_escaped(json.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The same for whoever writes JSON piece by piece. A piece ends where a character does.
#[derive(Debug)]
pub struct Escaping<W>(pub W);

impl<W: io::Write> io::Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = Vec::with_capacity(bytes.len());
        push_escaped(bytes, &mut out);
        self.0.write_all(&out)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn escaped_json_has_the_same_value_and_nothing_hidden(text in any::<String>(), key in "[\\PC\u{80}-\u{9f}]{0,4}") {
            let value = serde_json::json!({ key: [text] });
            let shown = escaped(&serde_json::to_string(&value).unwrap());
            prop_assert!(!shown.chars().any(is_hidden), "{shown:?}");
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_in_json() {
        let json = "{\"a\":\"\u{9b}2J\u{7f}\u{202e}\u{200b}\u{e0041}é日\"}";
        let shown = escaped(json);
        assert_eq!(shown, "{\"a\":\"\\u009b2J\\u007f\\u202e\\u200b\\udb40\\udc41é日\"}");
    }

    #[test]
    fn everything_but_the_text_stays_as_it_was_written() {
        let json =
            Json::from_text(r#"{"z":1e2, "command":"rm x", "a":{"b":[1.0]}}"#.into()).unwrap();
        assert!(has_text(&json, "command", "rm x"));
        let changed = with_text(&json, "command", "ls \"x\"").unwrap();
        assert_eq!(changed.as_str(), r#"{"z":1e2,"command":"ls \"x\"","a":{"b":[1.0]}}"#);
    }
}

//! The JSON Schema of the whole protocol.
//!
//! A submission is described as it is read, an event as it is written. What is not known has no
//! place in either: a reader goes past it, and nothing here writes it.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::{
    ApprovalPolicy, Changes, Chunk, Decision, Event, FileChange, SandboxPolicy, Submission,
};

/// The schema as pretty JSON with a final newline: the content of `schema/sqeq.v1.json`.
pub fn json_schema() -> String {
    let (submission, mut definitions) =
        described::<Submission<'_>>(SchemaSettings::for_deserialize);
    let (event, written) = described::<Event<'_>>(SchemaSettings::for_serialize);
    let mut event = event;
    // A body that is both read and written is described twice, and not in the same words.
    let twice: Vec<String> = written
        .iter()
        .filter(|(name, schema)| definitions.get(*name).is_some_and(|known| known != *schema))
        .map(|(name, _)| name.clone())
        .collect();
    for (name, mut schema) in written {
        rename(&mut schema, &twice);
        let name = if twice.contains(&name) { format!("{name}Out") } else { name };
        definitions.insert(name, schema);
    }
    rename(&mut event, &twice);
    definitions.insert("Submission".to_owned(), submission);
    definitions.insert("Event".to_owned(), event);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SQ/EQ",
        "description": "A line of the queue protocol: a submission to the agent, or an event from it.",
        "anyOf": [{"$ref": "#/$defs/Submission"}, {"$ref": "#/$defs/Event"}],
        "$defs": definitions,
    });
    // Whether objects keep their order is a feature of `serde_json` that any crate of a build may
    // turn on; the file is the same either way.
    schema.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

/// A type, and what it refers to.
fn described<T: JsonSchema>(
    contract: fn(SchemaSettings) -> SchemaSettings,
) -> (Value, Map<String, Value>) {
    let mut generator = contract(SchemaSettings::draft2020_12()).into_generator();
    let schema = T::json_schema(&mut generator).to_value();
    (schema, generator.take_definitions(true))
}

fn rename(schema: &mut Value, twice: &[String]) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::String(to) if key == "$ref" => {
                        let name = to.strip_prefix("#/$defs/").unwrap_or_default();
                        if twice.iter().any(|it| it == name) {
                            to.push_str("Out");
                        }
                    }
                    other => rename(other, twice),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|it| rename(it, twice)),
        _ => {}
    }
}

/// Types whose form is written by hand are described by hand.
macro_rules! by_hand {
    ($($type:ty, $name:literal, |$generator:ident| $schema:expr;)*) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })*
    };
}

by_hand! {
    Chunk<'_>, "Chunk", |_generator| json_schema!({
        "description": "Bytes as base64; a list of numbers is read too.",
        "anyOf": [
            {"type": "string", "contentEncoding": "base64"},
            {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}},
        ],
    });
    Changes<'_>, "Changes", |generator| json_schema!({
        "description": "Changed files by path.",
        "type": "object",
        "additionalProperties": generator.subschema_for::<FileChange<'_>>(),
    });
    FileChange<'_>, "FileChange", |_generator| {
        let content = || vec![("content", json!({"type": "string"}))];
        let update = || vec![
            ("unified_diff", json!({"type": "string"})),
            ("move_path", json!({"type": ["string", "null"]})),
        ];
        json_schema!({
            "description": "What happened to a file: tagged since 0.60, keyed before.",
            "anyOf": [
                tagged("add", content(), &["content"]),
                tagged("delete", content(), &[]),
                tagged("update", update(), &["unified_diff"]),
                keyed("add", content(), &["content"]),
                keyed("delete", content(), &[]),
                keyed("update", update(), &["unified_diff"]),
            ],
        })
    };
    ApprovalPolicy<'_>, "ApprovalPolicy", |_generator| json_schema!({
        "description": "When the agent asks; an object is a finer policy of later versions.",
        "anyOf": [
            {"enum": ["untrusted", "on-failure", "on-request", "never"]},
            {"enum": ["unless-trusted", "unless-allow-listed", "auto-edit"]},
            {"type": "object"},
        ],
    });
    SandboxPolicy<'_>, "SandboxPolicy", |_generator| {
        let kinds = ["read-only", "workspace-write", "danger-full-access", "external-sandbox"];
        json_schema!({
            "description": "What commands can reach. The tag is `type`, and `mode` up to 0.58.",
            "type": "object",
            "properties": {
                "type": {"enum": kinds},
                "mode": {"enum": kinds},
                "writable_roots": {"type": "array", "items": {"type": "string"}},
                "network_access": true,
                "exclude_tmpdir_env_var": {"type": "boolean"},
                "exclude_slash_tmp": {"type": "boolean"},
            },
            "anyOf": [{"required": ["type"]}, {"required": ["mode"]}],
        })
    };
    Decision<'_>, "Decision", |_generator| json_schema!({
        "description": "The answer to a request for leave.",
        "anyOf": [
            {"enum": ["approved", "approved_for_session", "denied", "abort", "timed_out"]},
            {
                "type": "object",
                "properties": {"approved_execpolicy_amendment": {
                    "type": "object",
                    "properties": {"proposed_execpolicy_amendment": {
                        "type": "array", "items": {"type": "string"},
                    }},
                    "required": ["proposed_execpolicy_amendment"],
                }},
                "required": ["approved_execpolicy_amendment"],
            },
            {
                "type": "object",
                "properties": {"denied": {
                    "type": "object",
                    "properties": {"rejection": {"type": "string"}},
                    "required": ["rejection"],
                }},
                "required": ["denied"],
            },
        ],
    });
}

/// `{"type": kind, …}`
fn tagged(kind: &str, mut fields: Vec<(&'static str, Value)>, required: &[&str]) -> Value {
    fields.push(("type", json!({"const": kind})));
    object(fields, [required, &["type"]].concat())
}

/// `{kind: {…}}`
fn keyed(kind: &'static str, fields: Vec<(&'static str, Value)>, required: &[&str]) -> Value {
    object(vec![(kind, object(fields, required.to_vec()))], vec![kind])
}

fn object(fields: Vec<(&'static str, Value)>, required: Vec<&str>) -> Value {
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

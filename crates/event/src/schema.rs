//! The JSON Schema of what a JSONL reader sees.

use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope::{Delta, Event};
use crate::id::ConversationKey;

/// A line of a JSONL stream: a durable event, or a preview.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)]
pub enum Line {
    /// Durable, with `kind` and `seq`.
    Event(Event),
    /// A preview, with `kind` = `delta` and no `seq`.
    Delta(DeltaLine),
}

/// A preview as a line of JSONL.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeltaLine {
    /// Version of this form.
    pub v: u32,
    /// Always `delta`.
    pub kind: DeltaKind,
    /// Which conversation.
    pub conversation: ConversationKey,
    /// The preview.
    #[serde(flatten)]
    pub delta: Delta,
}

/// The word `delta`.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// `delta`
    Delta,
}

/// The schema as pretty JSON with a final newline: the content of `schema/event.v1.json`.
pub fn json_schema() -> String {
    let mut schema = schemars::schema_for!(Line).to_value();
    // Whether objects keep their order is a feature of `serde_json` that any crate of a build may
    // turn on; the file is the same either way.
    schema.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

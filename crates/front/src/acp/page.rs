//! Lines for the client, written but not sent.

use serde::Serialize;
use serde_json::json;
use tieline_event::ItemId;
use tieline_wire::acp::schema::SessionUpdate;

/// The longest text of one message chunk. Some clients take no line over 32 MiB.
const LONGEST_CHUNK: usize = 256 * 1024;

/// Whose words a chunk carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// What the agent says.
    Agent,
    /// What it thinks.
    Thought,
}

/// Updates of one session as lines. What is the same in all of them is written once.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) bytes: Vec<u8>,
    opening: Vec<u8>,
}

impl Page {
    pub(super) fn new(session: &str) -> Self {
        let session = serde_json::Value::from(session);
        let opening = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":{session},\"update\":"
        );
        Self { bytes: Vec::new(), opening: opening.into_bytes() }
    }

    /// An update of any kind.
    pub(super) fn update(&mut self, update: &SessionUpdate) {
        self.bytes.extend_from_slice(&self.opening);
        self.json(update);
        self.bytes.extend_from_slice(b"}}\n");
    }

    /// A piece of a message. By far the most frequent line, so it is written without detours.
    pub(super) fn chunk(
        &mut self,
        voice: Voice,
        message: &ItemId,
        parent: Option<&ItemId>,
        text: &str,
    ) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(LONGEST_CHUNK));
            rest = later;
            self.bytes.extend_from_slice(&self.opening);
            self.bytes.extend_from_slice(match voice {
                Voice::Agent => b"{\"sessionUpdate\":\"agent_message_chunk\",".as_slice(),
                Voice::Thought => b"{\"sessionUpdate\":\"agent_thought_chunk\",",
            });
            self.bytes.extend_from_slice(b"\"content\":{\"type\":\"text\",\"text\":");
            self.json(piece);
            self.bytes.extend_from_slice(b"},\"messageId\":");
            self.json(message.as_str());
            if let Some(parent) = parent {
                self.bytes.extend_from_slice(b",\"_meta\":");
                self.json(&parent_meta(parent));
            }
            self.bytes.extend_from_slice(b"}}}\n");
        }
    }

    /// More output of a command, for clients that show it as a terminal.
    pub(super) fn terminal_output(&mut self, call: &ItemId, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(LONGEST_CHUNK));
            rest = later;
            self.bytes.extend_from_slice(&self.opening);
            self.bytes
                .extend_from_slice(b"{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":");
            self.json(call.as_str());
            self.bytes.extend_from_slice(b",\"_meta\":{\"terminal_output\":{\"terminal_id\":");
            self.json(call.as_str());
            self.bytes.extend_from_slice(b",\"data\":");
            self.json(piece);
            self.bytes.extend_from_slice(b"}}}}}\n");
        }
    }

    fn json(&mut self, value: &(impl Serialize + ?Sized)) {
        serde_json::to_writer(&mut self.bytes, value)
            .expect("keys are strings, and writing to memory cannot fail");
    }
}

/// Which tool call a piece of work belongs to: the work of an agent that the agent started.
pub(super) fn parent_meta(parent: &ItemId) -> serde_json::Map<String, serde_json::Value> {
    let parent = parent.as_str();
    // The second key is the one that clients know from another adapter.
    let meta = json!({
        "tieline": {"parentToolCallId": parent},
        "claudeCode": {"parentToolUseId": parent},
    });
    match meta {
        serde_json::Value::Object(meta) => meta,
        _ => serde_json::Map::new(),
    }
}

//! The agent's side of the wire: reading what a host says and writing what an agent answers.
//!
//! Requests and answers have the same form in both directions; [`write`](super::write) has them.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{ControlResponse, Message};
use crate::text::Str;

/// One line of a host.
#[derive(Debug)]
pub enum Said<'a> {
    /// A message of the user.
    User(Message<'a>),
    /// The host asks.
    Request {
        /// The host's id, to be echoed.
        request_id: Str<'a>,
        /// What it asks.
        request: HostRequest<'a>,
    },
    /// The answer to a request of the agent.
    Answer(ControlResponse<'a>),
    /// A frame that asks for nothing.
    Other,
}

/// What a host asks: the fields of all subtypes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HostRequest<'a> {
    /// `initialize`, `interrupt`, `set_permission_mode`, `set_model`, …
    #[serde(borrow)]
    pub subtype: Str<'a>,
    /// `set_permission_mode`: the mode.
    #[serde(borrow)]
    pub mode: Option<Str<'a>>,
    /// `set_model`: the model; none is the default.
    #[serde(borrow)]
    pub model: Option<Str<'a>>,
    /// `apply_flag_settings`: what changes.
    #[serde(borrow)]
    pub settings: Option<Settings<'a>>,
}

/// Settings a host changes.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings<'a> {
    /// How hard the model thinks.
    #[serde(borrow)]
    pub effort_level: Option<Str<'a>>,
}

/// A host's answer to `can_use_tool`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Decision<'a> {
    /// `allow` or `deny`.
    #[serde(borrow)]
    pub behavior: Str<'a>,
    /// `allow`: the input to use.
    #[serde(borrow)]
    pub updated_input: Option<&'a RawValue>,
    /// `allow`: rules to add.
    pub updated_permissions: Vec<PermissionUpdate>,
    /// `deny`: what the model is told.
    #[serde(borrow)]
    pub message: Option<Str<'a>>,
    /// `deny`: end the turn as well.
    pub interrupt: bool,
}

/// A change of what is allowed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PermissionUpdate {
    /// `addRules`, `setMode`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// `setMode`: the mode.
    pub mode: Option<String>,
    /// `addRules`: `allow`, `deny` or `ask`.
    pub behavior: Option<String>,
    /// `addRules`: the rules.
    pub rules: Vec<PermissionRule>,
}

/// What a rule is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionRule {
    /// The tool.
    pub tool_name: String,
    /// Which uses of it; all when missing.
    pub rule_content: Option<String>,
}

/// Reads one line of a host.
///
/// # Errors
/// When the line is not a JSON object of a shape this side knows.
pub fn parse(line: &[u8]) -> Result<Said<'_>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow, rename = "type")]
        kind: Str<'a>,
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
        #[serde(borrow, default)]
        request_id: Option<Str<'a>>,
        #[serde(borrow, default)]
        request: Option<&'a RawValue>,
        #[serde(borrow, default)]
        response: Option<&'a RawValue>,
    }
    let envelope: Envelope<'_> = serde_json::from_slice(line)?;
    let missing =
        |field: &str| serde::de::Error::custom(format!("{} without {field}", &*envelope.kind));
    Ok(match &*envelope.kind {
        "user" => Said::User(serde_json::from_str(
            envelope.message.ok_or_else(|| missing("message"))?.get(),
        )?),
        "control_request" => Said::Request {
            request: serde_json::from_str(
                envelope.request.ok_or_else(|| missing("request"))?.get(),
            )?,
            request_id: envelope.request_id.ok_or_else(|| missing("request_id"))?,
        },
        "control_response" => Said::Answer(serde_json::from_str(
            envelope.response.ok_or_else(|| missing("response"))?.get(),
        )?),
        _ => Said::Other,
    })
}

/// One line of an agent. Requests and their answers are in [`write`](super::write).
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Frame<'a> {
    /// News about the session.
    System {
        /// What is new.
        #[serde(flatten)]
        news: News<'a>,
        /// The native session.
        session_id: &'a str,
        /// The frame's own id.
        uuid: &'a str,
    },
    /// A raw event of the model's stream.
    StreamEvent {
        /// The event.
        event: Event<'a>,
        /// The native session.
        session_id: &'a str,
        /// The tool call whose sub-agent writes this.
        parent_tool_use_id: Option<&'a str>,
        /// The frame's own id.
        uuid: &'a str,
    },
    /// One content block of the model's message.
    Assistant {
        /// The message with this block alone.
        message: AgentMessage<'a>,
        /// The tool call whose sub-agent says this.
        parent_tool_use_id: Option<&'a str>,
        /// The native session.
        session_id: &'a str,
        /// The frame's own id.
        uuid: &'a str,
        /// What went wrong, when the agent made the message up.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
        /// The HTTP status of what went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        api_error_status: Option<u16>,
        /// An interrupt cut it off.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        aborted: bool,
    },
    /// A tool's result, or a message the agent itself put in.
    User {
        /// The message.
        message: UserMessage<'a>,
        /// The tool call whose sub-agent gets this.
        parent_tool_use_id: Option<&'a str>,
        /// The native session.
        session_id: &'a str,
        /// The frame's own id.
        uuid: &'a str,
        /// The tool's own result: an object on success, a text on failure.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_result: Option<&'a Value>,
        /// Why a tool ran or did not run.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_result_meta: Option<&'a Value>,
    },
    /// The agent takes a request back.
    ControlCancelRequest {
        /// Which.
        request_id: &'a str,
    },
}

/// What is new in a `system` frame.
#[derive(Debug, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum News<'a> {
    /// A turn begins.
    Init(Init<'a>),
    /// What the agent does now.
    Status {
        /// `requesting`, or null.
        status: Option<&'a str>,
        /// The mode, when it changed.
        #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
        permission_mode: Option<&'a str>,
    },
}

/// What an agent is at the start of a turn.
#[derive(Debug, Serialize)]
pub struct Init<'a> {
    /// Where it works.
    pub cwd: &'a str,
    /// Names of its tools.
    pub tools: &'a [&'a str],
    /// Its MCP servers.
    pub mcp_servers: &'a [&'a str],
    /// The model in use.
    pub model: &'a str,
    /// The mode in use.
    #[serde(rename = "permissionMode")]
    pub permission_mode: &'a str,
    /// Names of its commands.
    pub slash_commands: &'a [&'a str],
    /// Where its key comes from.
    #[serde(rename = "apiKeySource")]
    pub api_key_source: &'a str,
    /// Its version.
    pub claude_code_version: &'a str,
    /// How it phrases.
    pub output_style: &'a str,
    /// Names of its sub-agents.
    pub agents: &'a [&'a str],
    /// Names of its skills.
    pub skills: &'a [&'a str],
    /// Its plugins.
    pub plugins: &'a [&'a str],
}

/// An event of the model's stream.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A message begins.
    MessageStart {
        /// Its head.
        message: AgentMessage<'a>,
    },
    /// A block begins.
    ContentBlockStart {
        /// Which.
        index: u32,
        /// The empty block.
        content_block: Block<'a>,
    },
    /// A block grows.
    ContentBlockDelta {
        /// Which.
        index: u32,
        /// By what.
        delta: Delta<'a>,
    },
    /// A block is over.
    ContentBlockStop {
        /// Which.
        index: u32,
    },
    /// The message is almost over.
    MessageDelta {
        /// Why it stops.
        delta: Stop<'a>,
        /// Its tokens.
        usage: Tokens,
    },
    /// The message is over.
    MessageStop,
}

/// What a block grows by.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta<'a> {
    /// Text.
    TextDelta {
        /// More of it.
        text: &'a str,
    },
    /// Thinking.
    ThinkingDelta {
        /// More of it.
        thinking: &'a str,
    },
    /// The seal on the thinking.
    SignatureDelta {
        /// All of it.
        signature: &'a str,
    },
    /// A tool's input.
    InputJsonDelta {
        /// More of its JSON.
        partial_json: &'a str,
    },
}

/// Why a message stops.
#[derive(Debug, Serialize)]
pub struct Stop<'a> {
    /// `end_turn`, `tool_use`, or null when it was cut off.
    pub stop_reason: Option<&'a str>,
    /// Always null here.
    pub stop_sequence: Option<&'a str>,
}

/// A content block.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// Text.
    Text {
        /// The text.
        text: &'a str,
    },
    /// Thinking.
    Thinking {
        /// The text.
        thinking: &'a str,
        /// The provider's seal.
        signature: &'a str,
    },
    /// A tool call.
    ToolUse {
        /// Its id.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// Its input.
        input: &'a Value,
    },
    /// A tool's result.
    ToolResult {
        /// Which tool call.
        tool_use_id: &'a str,
        /// What the model is told.
        content: &'a str,
        /// It failed.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A message of the model.
#[derive(Debug, Serialize)]
pub struct AgentMessage<'a> {
    /// Its id.
    pub id: &'a str,
    /// Always `message`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// Always `assistant`.
    pub role: &'a str,
    /// The model; `<synthetic>` for a message the agent made up.
    pub model: &'a str,
    /// Its blocks.
    pub content: &'a [Block<'a>],
    /// Why it stopped, once it has.
    pub stop_reason: Option<&'a str>,
    /// Always null here.
    pub stop_sequence: Option<&'a str>,
    /// Its tokens so far.
    pub usage: Tokens,
}

impl<'a> AgentMessage<'a> {
    /// A message with these blocks that goes on.
    pub fn new(id: &'a str, model: &'a str, content: &'a [Block<'a>]) -> Self {
        Self {
            id,
            kind: "message",
            role: "assistant",
            model,
            content,
            stop_reason: None,
            stop_sequence: None,
            usage: Tokens::default(),
        }
    }
}

/// A message in the user's name.
#[derive(Debug, Serialize)]
pub struct UserMessage<'a> {
    /// Always `user`.
    pub role: &'a str,
    /// Its blocks.
    pub content: &'a [Block<'a>],
}

/// Tokens as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Read afresh.
    pub input_tokens: u64,
    /// Written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Read from the cache.
    pub cache_read_input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
}

/// The end of a turn. The order of its keys is the real one's: `type` comes late.
#[derive(Debug, Serialize)]
pub struct TurnResult<'a> {
    /// Time spent with the provider.
    pub duration_api_ms: u64,
    /// The model's reason to stop.
    pub stop_reason: Option<&'a str>,
    /// The native session.
    pub session_id: &'a str,
    /// Money since the session began.
    pub total_cost_usd: f64,
    /// Tokens of this turn.
    pub usage: Tokens,
    /// Tokens and money since the session began, by model.
    #[serde(rename = "modelUsage")]
    pub model_usage: &'a Value,
    /// Tools that were not allowed.
    pub permission_denials: &'a [Value],
    /// The agent's reason to stop.
    pub terminal_reason: &'a str,
    /// It failed.
    pub is_error: bool,
    /// Messages of the model.
    pub num_turns: u32,
    /// `success`, also for a failed call of the provider; `error_during_execution`.
    pub subtype: &'a str,
    /// The HTTP status of a failed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    /// The last text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a str>,
    /// What went wrong, for `error_during_execution`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub errors: &'a [&'a str],
    /// Always `result`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// How long the turn took.
    pub duration_ms: u64,
    /// The frame's own id.
    pub uuid: &'a str,
}

/// Appends one line with its terminator.
pub fn append(out: &mut Vec<u8>, frame: &impl Serialize) {
    serde_json::to_writer(&mut *out, frame).expect("strings, numbers and JSON values are JSON");
    out.push(b'\n');
}

//! Claude Code's stream-json: a typed view over one line.
//!
//! The view borrows from the line and reads it once; what is kept of an agent's JSON (tool input,
//! suggestions) stays a slice of the line. `type` may stand anywhere in the object: in `result`
//! frames of recent versions it is the 19th key. Fields this view does not name are skipped, so a
//! version that adds some is still read; a line of another shape is [`Frame::Unknown`] or an
//! error, and both are for the caller to pass on, not to drop.

mod read;
pub mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::text::Str;

pub use read::{Sniffed, parse, repair_surrogates, sniff};

/// One line of Claude Code's output.
#[derive(Debug)]
pub enum Frame<'a> {
    /// News about the session or a task.
    System(Box<System<'a>>),
    /// One content block of the model's message.
    Assistant(Assistant<'a>),
    /// Tool results, echoes and injected messages.
    User(User<'a>),
    /// The end of a turn.
    Result(Box<ResultFrame<'a>>),
    /// A raw event of the model's stream.
    Stream(Stream<'a>),
    /// The agent asks the host.
    ControlRequest {
        /// The agent's id, to be echoed.
        request_id: Str<'a>,
        /// What it asks.
        request: Box<ControlRequest<'a>>,
    },
    /// The answer to a request of the host.
    ControlResponse(ControlResponse<'a>),
    /// The agent takes a request back; it must not be answered any more.
    ControlCancel {
        /// Which.
        request_id: Str<'a>,
    },
    /// The provider's word on what is left.
    RateLimit(RateLimitInfo<'a>),
    /// A known frame that says nothing a client needs.
    Silent,
    /// A frame of a type this view does not know.
    Unknown {
        /// Its `type`, with its `subtype` after a slash.
        name: String,
    },
}

/// A `system` frame: the fields of all subtypes, each of which uses a few.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct System<'a> {
    /// `init`, `status`, `api_retry`, `task_started`, …
    #[serde(borrow)]
    pub subtype: Str<'a>,
    /// The native session.
    #[serde(borrow)]
    pub session_id: Option<Str<'a>>,
    /// `init`: where the agent works.
    #[serde(borrow)]
    pub cwd: Option<Str<'a>>,
    /// `init`: the model in use.
    #[serde(borrow)]
    pub model: Option<Str<'a>>,
    /// `init`, `status`: the mode in use.
    #[serde(borrow, rename = "permissionMode")]
    pub permission_mode: Option<Str<'a>>,
    /// `init`: the agent's version.
    #[serde(borrow)]
    pub claude_code_version: Option<Str<'a>>,
    /// `init`: names of tools.
    #[serde(borrow)]
    pub tools: Option<&'a RawValue>,
    /// `init`: names of slash commands.
    #[serde(borrow)]
    pub slash_commands: Option<&'a RawValue>,
    /// `commands_changed`: all of them, as `initialize` tells them.
    #[serde(borrow)]
    pub commands: Option<&'a RawValue>,
    /// `init`: names of skills.
    #[serde(borrow)]
    pub skills: Option<&'a RawValue>,
    /// `init`: MCP servers and how they are doing.
    #[serde(borrow)]
    pub mcp_servers: Option<&'a RawValue>,
    /// `session_title_changed`: the session's name.
    #[serde(borrow)]
    pub title: Option<Str<'a>>,
    /// `status`: `requesting`, `compacting` or null; `task_notification`: how the task ended.
    #[serde(borrow)]
    pub status: Option<&'a RawValue>,
    /// `api_retry`: which try failed.
    pub attempt: Option<u64>,
    /// `api_retry`: how many there will be.
    pub max_retries: Option<u64>,
    /// `api_retry`: when the next one comes.
    pub retry_delay_ms: Option<f64>,
    /// `api_retry`: the HTTP status, where there was an answer.
    #[serde(borrow)]
    pub error_status: Option<&'a RawValue>,
    /// `api_retry`: the provider's word.
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    /// `task_*`: which task.
    #[serde(borrow)]
    pub task_id: Option<Str<'a>>,
    /// `task_*`, `permission_denied`: the tool call that began it.
    #[serde(borrow)]
    pub tool_use_id: Option<Str<'a>>,
    /// `task_*`: what it does.
    #[serde(borrow)]
    pub description: Option<Str<'a>>,
    /// `task_notification`: what came of it.
    #[serde(borrow)]
    pub summary: Option<Str<'a>>,
    /// `task_notification`: the file with everything it printed.
    #[serde(borrow)]
    pub output_file: Option<Str<'a>>,
    /// `background_tasks_changed`: every task that runs.
    #[serde(borrow)]
    pub tasks: Option<&'a RawValue>,
    /// `permission_denied` and others: a text, or something else in other subtypes.
    #[serde(borrow)]
    pub message: Option<&'a RawValue>,
    /// `local_command_output`, `informational`, `notification`: a text.
    #[serde(borrow)]
    pub content: Option<&'a RawValue>,
    /// `compact_boundary`: what caused it and how much there was.
    #[serde(borrow)]
    pub compact_metadata: Option<&'a RawValue>,
}

/// An `assistant` frame.
#[derive(Debug)]
pub struct Assistant<'a> {
    /// The model's message, with one block of its content.
    pub message: Box<Message<'a>>,
    /// The tool call whose sub-agent says this.
    pub parent: Option<Str<'a>>,
    /// The native session.
    pub session_id: Option<Str<'a>>,
    /// What went wrong, when the agent itself made this message up: a word, or an object.
    pub error: Option<&'a RawValue>,
    /// The message was cut off by an interrupt.
    pub aborted: bool,
    /// The agent's name for this place of its session.
    pub uuid: Option<Str<'a>>,
}

/// A `user` frame.
#[derive(Debug)]
pub struct User<'a> {
    /// The message.
    pub message: Box<Message<'a>>,
    /// The tool call whose sub-agent gets this.
    pub parent: Option<Str<'a>>,
    /// The native session.
    pub session_id: Option<Str<'a>>,
    /// The tool's own result: an object on success, often a text on failure.
    pub tool_use_result: Option<&'a RawValue>,
    /// Why a tool did not run.
    pub tool_result_meta: Option<&'a RawValue>,
    /// An echo of what the host said.
    pub is_replay: bool,
    /// Injected by the agent itself.
    pub is_synthetic: bool,
}

/// A message of the provider's API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Option<Str<'a>>,
    /// The model that wrote it; `<synthetic>` for one the agent made up.
    #[serde(borrow)]
    pub model: Option<Str<'a>>,
    /// A text, or blocks.
    #[serde(borrow)]
    pub content: Blocks<'a>,
    /// Tokens of this call of the model, as far as they are counted.
    #[serde(deserialize_with = "read::or_default")]
    pub usage: Option<ApiUsage>,
}

/// The content of a message, always as blocks.
#[derive(Debug, Default)]
pub struct Blocks<'a>(pub Vec<Block<'a>>);

/// One block: the fields of all types, each of which uses a few.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Block<'a> {
    /// `text`, `thinking`, `tool_use`, `tool_result`, …
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// `text`: the text.
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
    /// `thinking`: the text.
    #[serde(borrow)]
    pub thinking: Option<Str<'a>>,
    /// `thinking`: the provider's seal.
    #[serde(borrow)]
    pub signature: Option<Str<'a>>,
    /// `tool_use`: its id.
    #[serde(borrow)]
    pub id: Option<Str<'a>>,
    /// `tool_use`: the tool.
    #[serde(borrow)]
    pub name: Option<Str<'a>>,
    /// `tool_use`: the tool's input.
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    /// `tool_result`: which tool use.
    #[serde(borrow)]
    pub tool_use_id: Option<Str<'a>>,
    /// `tool_result`: a text or blocks.
    #[serde(borrow)]
    pub content: Option<&'a RawValue>,
    /// `tool_result`: it failed.
    pub is_error: Option<bool>,
    /// `image`: where it is.
    #[serde(borrow)]
    pub source: Option<&'a RawValue>,
}

/// A `stream_event` frame.
#[derive(Debug)]
pub struct Stream<'a> {
    /// The provider's event.
    pub event: StreamEvent<'a>,
    /// The tool call whose sub-agent writes this.
    pub parent: Option<Str<'a>>,
    /// The native session.
    pub session_id: Option<Str<'a>>,
}

/// An event of the provider's stream: the fields of all types.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StreamEvent<'a> {
    /// `message_start`, `content_block_start`, `content_block_delta`, …
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// Which block.
    pub index: u32,
    /// `content_block_delta`: what is new.
    #[serde(borrow)]
    pub delta: StreamDelta<'a>,
    /// `content_block_start`: the block.
    #[serde(borrow)]
    pub content_block: Option<Box<Block<'a>>>,
    /// `message_start`: the message.
    #[serde(borrow)]
    pub message: Option<Box<MessageHead<'a>>>,
    /// `message_delta`: tokens; what is not said again stays as it was.
    #[serde(deserialize_with = "read::or_default")]
    pub usage: Option<Box<ApiUsage>>,
}

/// What is new in a block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StreamDelta<'a> {
    /// `text_delta`, `thinking_delta`, `input_json_delta`, `signature_delta`.
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// New text.
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
    /// New thinking.
    #[serde(borrow)]
    pub thinking: Option<Str<'a>>,
}

/// The head of a message whose content follows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageHead<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Str<'a>,
    /// Tokens read, and the first written.
    #[serde(deserialize_with = "read::or_default")]
    pub usage: Option<Box<ApiUsage>>,
}

/// A `result` frame.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResultFrame<'a> {
    /// `success`, also for a failed call of the provider; `error_during_execution`, …
    #[serde(borrow)]
    pub subtype: Str<'a>,
    /// The turn failed, whatever the subtype says.
    #[serde(deserialize_with = "read::or_default")]
    pub is_error: bool,
    /// The native session.
    #[serde(borrow)]
    pub session_id: Option<Str<'a>>,
    /// The last text.
    #[serde(borrow)]
    pub result: Option<Str<'a>>,
    /// What went wrong, for the `error_*` subtypes.
    #[serde(borrow)]
    pub errors: Option<&'a RawValue>,
    /// The model's reason to stop.
    #[serde(borrow)]
    pub stop_reason: Option<Str<'a>>,
    /// The agent's reason to stop: `completed`, `aborted_streaming`, `api_error`, …
    #[serde(borrow)]
    pub terminal_reason: Option<Str<'a>>,
    /// The HTTP status of a failed call.
    #[serde(borrow)]
    pub api_error_status: Option<&'a RawValue>,
    /// Steps the agent made.
    pub num_turns: Option<u64>,
    /// How long it took.
    pub duration_ms: Option<f64>,
    /// Money since the session began.
    pub total_cost_usd: Option<f64>,
    /// Tokens of this turn.
    #[serde(deserialize_with = "read::or_default")]
    pub usage: Option<ApiUsage>,
    /// Tokens and money since the session began, by model.
    #[serde(borrow, rename = "modelUsage")]
    pub model_usage: Option<&'a RawValue>,
    /// Tokens and money of this turn, by model.
    #[serde(borrow)]
    pub model_usage_since_last_result: Option<&'a RawValue>,
    /// What began the turn, when it was not the user.
    #[serde(borrow, deserialize_with = "read::object")]
    pub origin: Option<ResultOrigin<'a>>,
}

/// What began a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResultOrigin<'a> {
    /// `task-notification` when background work ended.
    #[serde(borrow)]
    pub kind: Str<'a>,
}

/// Tokens as the provider counts them.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct ApiUsage {
    /// Read afresh.
    #[serde(deserialize_with = "read::or_default")]
    pub input_tokens: u64,
    /// Written to the cache.
    #[serde(deserialize_with = "read::or_default")]
    pub cache_creation_input_tokens: u64,
    /// Read from the cache.
    #[serde(deserialize_with = "read::or_default")]
    pub cache_read_input_tokens: u64,
    /// Written.
    #[serde(deserialize_with = "read::or_default")]
    pub output_tokens: u64,
    /// More about what was written.
    #[serde(deserialize_with = "read::or_default")]
    pub output_tokens_details: OutputDetails,
}

/// More about what was written.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    /// Tokens of thinking.
    pub thinking_tokens: u64,
}

/// Tokens and money of one model.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    /// Money.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// How much the model can hold.
    pub context_window: Option<u64>,
}

/// What the agent asks: the fields of all subtypes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ControlRequest<'a> {
    /// `can_use_tool`, `hook_callback`, `mcp_message`, `elicitation`, …
    #[serde(borrow)]
    pub subtype: Str<'a>,
    /// `can_use_tool`: the tool.
    #[serde(borrow)]
    pub tool_name: Option<Str<'a>>,
    /// `can_use_tool`: what to call it.
    #[serde(borrow)]
    pub display_name: Option<Str<'a>>,
    /// `can_use_tool`: the tool's input.
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    /// `can_use_tool`: what it is for.
    #[serde(borrow)]
    pub description: Option<Str<'a>>,
    /// `can_use_tool`: a title the agent made.
    #[serde(borrow)]
    pub title: Option<Str<'a>>,
    /// `can_use_tool`: why it has to ask.
    #[serde(borrow)]
    pub decision_reason: Option<&'a RawValue>,
    /// `can_use_tool`: rules it offers to add.
    #[serde(borrow)]
    pub permission_suggestions: Option<&'a RawValue>,
    /// `can_use_tool`: the path outside of what is allowed.
    #[serde(borrow)]
    pub blocked_path: Option<Str<'a>>,
    /// `can_use_tool`: which tool use; missing before 2.0.
    #[serde(borrow)]
    pub tool_use_id: Option<Str<'a>>,
}

/// The answer to a request of the host.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ControlResponse<'a> {
    /// `success` or `error`.
    #[serde(borrow)]
    pub subtype: Str<'a>,
    /// The host's id.
    #[serde(borrow)]
    pub request_id: Str<'a>,
    /// What it gave.
    #[serde(borrow)]
    pub response: Option<&'a RawValue>,
    /// Why not.
    #[serde(borrow)]
    pub error: Option<Str<'a>>,
}

/// The answer to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Initialized<'a> {
    /// Slash commands.
    #[serde(borrow)]
    pub commands: Vec<SlashCommand<'a>>,
    /// Models.
    #[serde(borrow)]
    pub models: Vec<Model<'a>>,
    /// The agent's version.
    #[serde(borrow)]
    pub claude_code_version: Option<Str<'a>>,
    /// The mode in use.
    #[serde(borrow)]
    pub current_permission_mode: Option<Str<'a>>,
}

/// The answer to `mcp_set_servers`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServersSet {
    /// Why a server cannot be used, by its name.
    #[serde(deserialize_with = "read::or_default")]
    pub errors: BTreeMap<String, String>,
}

/// A slash command.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SlashCommand<'a> {
    /// Without the slash.
    #[serde(borrow)]
    pub name: Str<'a>,
    /// What it does.
    #[serde(borrow)]
    pub description: Str<'a>,
    /// What may follow it.
    #[serde(borrow)]
    pub argument_hint: Option<&'a RawValue>,
}

/// A model on offer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Model<'a> {
    /// What to pass as the model.
    #[serde(borrow)]
    pub value: Str<'a>,
    /// The model behind that name.
    #[serde(borrow)]
    pub resolved_model: Option<Str<'a>>,
    /// What to show.
    #[serde(borrow)]
    pub display_name: Str<'a>,
    /// What it is good for.
    #[serde(borrow)]
    pub description: Str<'a>,
    /// Efforts it knows.
    #[serde(borrow)]
    pub supported_effort_levels: Option<&'a RawValue>,
}

/// The provider's word on what is left.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RateLimitInfo<'a> {
    /// `allowed`, `allowed_warning`, `rejected`.
    #[serde(borrow)]
    pub status: Str<'a>,
    /// When it starts anew, in seconds since 1970.
    pub resets_at: Option<f64>,
    /// Which limit.
    #[serde(borrow)]
    pub rate_limit_type: Option<Str<'a>>,
    /// How much of it is used.
    pub utilization: Option<f64>,
}

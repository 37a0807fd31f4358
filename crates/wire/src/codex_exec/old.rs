//! The events of `codex exec --json` up to 0.42, as far as a bridge needs them.
//!
//! They are those of the SQ/EQ protocol without the deltas of texts. There is no end of a turn
//! among them: the process ends.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::lenient;
use crate::codex::Tokens;
use crate::text::Str;

/// One event: the fields of all types, each of which uses a few.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event<'a> {
    /// `agent_message`, `exec_command_begin`, …
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// `session_configured`: the native session.
    #[serde(borrow)]
    pub session_id: Option<Str<'a>>,
    /// `session_configured`: the model in use.
    #[serde(borrow)]
    pub model: Option<Str<'a>>,
    /// `agent_message`, `error`, `stream_error`, `background_event`: the text.
    #[serde(borrow)]
    pub message: Option<Str<'a>>,
    /// `agent_reasoning`: the text.
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
    /// `task_complete`: the last message.
    #[serde(borrow)]
    pub last_agent_message: Option<Str<'a>>,
    /// `turn_aborted`: why.
    #[serde(borrow)]
    pub reason: Option<Str<'a>>,
    /// `exec_command_*`, `patch_apply_*`, `mcp_tool_call_*`, `web_search_*`: which one.
    #[serde(borrow)]
    pub call_id: Option<Str<'a>>,
    /// `exec_command_begin`: the command as words.
    #[serde(deserialize_with = "lenient")]
    pub command: Vec<String>,
    /// `exec_command_begin`: where.
    #[serde(borrow)]
    pub cwd: Option<Str<'a>>,
    /// `exec_command_end`: what it printed, both streams.
    #[serde(borrow)]
    pub aggregated_output: Option<Str<'a>>,
    /// `exec_command_end`, `patch_apply_end`: one stream.
    #[serde(borrow)]
    pub stdout: Option<Str<'a>>,
    /// `exec_command_end`, `patch_apply_end`: the other.
    #[serde(borrow)]
    pub stderr: Option<Str<'a>>,
    /// `exec_command_end`: how it ended.
    #[serde(deserialize_with = "lenient")]
    pub exit_code: Option<i32>,
    /// `patch_apply_begin`: the files.
    #[serde(borrow)]
    pub changes: Option<&'a RawValue>,
    /// `patch_apply_end`: whether it could be applied.
    #[serde(deserialize_with = "lenient")]
    pub success: Option<bool>,
    /// `mcp_tool_call_*`: server, tool and input.
    #[serde(borrow)]
    pub invocation: Option<&'a RawValue>,
    /// `mcp_tool_call_end`: `{"Ok": …}` or `{"Err": …}`.
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    /// `web_search_end`: what for.
    #[serde(borrow)]
    pub query: Option<Str<'a>>,
    /// `plan_update`: the steps.
    #[serde(deserialize_with = "lenient")]
    pub plan: Vec<Step>,
    /// `plan_update`: a word on the change.
    #[serde(borrow)]
    pub explanation: Option<Str<'a>>,
    /// `token_count`: what was used.
    #[serde(deserialize_with = "lenient")]
    pub info: Option<Info>,
}

/// A step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Step {
    /// What is to be done.
    pub step: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// What was used.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Since the process began.
    pub total_token_usage: Tokens,
    /// How many tokens the model can hold.
    pub model_context_window: Option<u64>,
}

/// The tool of an MCP server and its input.
#[derive(Debug, Deserialize)]
pub struct Invocation<'a> {
    /// The server.
    #[serde(borrow)]
    pub server: Str<'a>,
    /// The tool.
    #[serde(borrow)]
    pub tool: Str<'a>,
    /// Its input.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

/// Reads what stands in `msg`.
pub(super) fn event(msg: &RawValue) -> Option<Event<'_>> {
    let event: Event<'_> = serde_json::from_str(msg.get()).ok()?;
    (!event.kind.is_empty()).then_some(event)
}

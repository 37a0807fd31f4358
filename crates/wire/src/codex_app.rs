//! The app server of Codex: what its messages carry.
//!
//! The envelope is [`jsonrpc`](crate::jsonrpc) without its version. Everything here borrows from
//! the line; a field that one version has and another lacks is optional, and what is passed on
//! unread stays JSON.

mod ask;
mod offer;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::codex::Tokens;
use crate::text::Str;

pub use ask::{
    ApprovalRequest, Elicitation, NetworkContext, Question, QuestionOption, UserInputRequest,
};
pub use offer::{
    Account, Cleared, Effort, Goal, GoalAnswer, Model, Models, ServerStatus, ServerStatuses, Skill,
    Skills, SkillsOf,
};

/// A piece of text that an item grows by.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta<'a> {
    /// Whose; the oldest versions do not say.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// Which item.
    #[serde(borrow)]
    pub item_id: Str<'a>,
    /// The text; a part that only begins has none.
    #[serde(borrow, default)]
    pub delta: Str<'a>,
    /// What a tool says about its progress.
    #[serde(borrow, default)]
    pub message: Option<Str<'a>>,
    /// Which part of a summary of reasoning.
    #[serde(default)]
    pub summary_index: Option<u64>,
}

/// An item began or is over.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemNews<'a> {
    /// Whose; the oldest versions do not say.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// In which turn.
    #[serde(borrow, default)]
    pub turn_id: Str<'a>,
    /// The item.
    #[serde(borrow)]
    pub item: Item<'a>,
}

/// Any item: the fields of all kinds together.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item<'a> {
    /// What it is.
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// Its id.
    #[serde(borrow, default)]
    pub id: Str<'a>,
    /// `inProgress`, `completed`, `failed`, `declined`.
    #[serde(borrow, default)]
    pub status: Option<Str<'a>>,
    /// Of a message or a plan.
    #[serde(borrow, default)]
    pub text: Option<Str<'a>>,
    /// Of a user message or of reasoning.
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    /// Of reasoning, by part.
    #[serde(borrow, default)]
    pub summary: Option<&'a RawValue>,
    /// One string, quoted for a shell.
    #[serde(borrow, default)]
    pub command: Option<Str<'a>>,
    /// Where the command runs.
    #[serde(borrow, default)]
    pub cwd: Option<Str<'a>>,
    /// What the command does, as far as that is plain.
    #[serde(borrow, default)]
    pub command_actions: Option<&'a RawValue>,
    /// What the command printed, both streams.
    #[serde(borrow, default)]
    pub aggregated_output: Option<Str<'a>>,
    /// How the command ended.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Of files.
    #[serde(default, deserialize_with = "or_default")]
    pub changes: Vec<Change>,
    /// Of an MCP tool.
    #[serde(borrow, default)]
    pub server: Option<Str<'a>>,
    /// Of a client's tool.
    #[serde(borrow, default)]
    pub namespace: Option<Str<'a>>,
    /// A tool's name.
    #[serde(borrow, default)]
    pub tool: Option<Str<'a>>,
    /// A function's name.
    #[serde(borrow, default)]
    pub name: Option<Str<'a>>,
    /// A tool's input.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    /// What an MCP tool gave.
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    /// What a function gave.
    #[serde(borrow, default)]
    pub output: Option<&'a RawValue>,
    /// What a client's tool gave.
    #[serde(borrow, default)]
    pub content_items: Option<&'a RawValue>,
    /// Why an MCP tool failed.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
    /// Of a search.
    #[serde(borrow, default)]
    pub query: Option<Str<'a>>,
    /// What a search does.
    #[serde(borrow, default)]
    pub action: Option<&'a RawValue>,
    /// What a search found.
    #[serde(borrow, default)]
    pub results: Option<&'a RawValue>,
    /// What another agent is told.
    #[serde(borrow, default)]
    pub prompt: Option<Str<'a>>,
    /// The threads of other agents.
    #[serde(default, deserialize_with = "or_default")]
    pub receiver_thread_ids: Vec<String>,
    /// The thread of another agent.
    #[serde(borrow, default)]
    pub agent_thread_id: Option<Str<'a>>,
    /// The name of another agent.
    #[serde(borrow, default)]
    pub agent_path: Option<Str<'a>>,
    /// What another agent does.
    #[serde(borrow, default, rename = "kind")]
    pub activity: Option<Str<'a>>,
    /// Of a picture.
    #[serde(borrow, default)]
    pub path: Option<Str<'a>>,
    /// Where a picture was saved.
    #[serde(borrow, default)]
    pub saved_path: Option<Str<'a>>,
    /// Of a review: what is reviewed, or what was found.
    #[serde(borrow, default)]
    pub review: Option<Str<'a>>,
    /// Of a hook's message.
    #[serde(borrow, default)]
    pub fragments: Option<&'a RawValue>,
    /// How long a pause takes.
    #[serde(default)]
    pub duration_ms: Option<u64>,
}

/// A file that changes. For a new or deleted file `diff` is its whole text.
#[derive(Debug, Clone, Deserialize)]
pub struct Change {
    /// Where it is.
    pub path: String,
    /// What happens to it.
    pub kind: ChangeKind,
    /// How.
    #[serde(default)]
    pub diff: Option<String>,
}

/// What happens to a file.
#[derive(Debug, Clone, Deserialize)]
pub struct ChangeKind {
    /// `add`, `delete` or `update`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it goes.
    #[serde(default)]
    pub move_path: Option<String>,
}

/// A thread began.
#[derive(Debug, Deserialize)]
pub struct ThreadNews<'a> {
    /// The thread.
    #[serde(borrow)]
    pub thread: Thread<'a>,
}

/// A thread has another name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameNews<'a> {
    /// Whose.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// The name; none when it has none any more.
    #[serde(borrow, default)]
    pub thread_name: Option<Str<'a>>,
}

/// A thread.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Str<'a>,
    /// The thread that started it.
    #[serde(borrow, default)]
    pub parent_thread_id: Option<Str<'a>>,
    /// Its name.
    #[serde(borrow, default)]
    pub name: Option<Str<'a>>,
    /// Its turns, where they were asked for.
    #[serde(borrow, default)]
    pub turns: Option<&'a RawValue>,
}

/// The answer to `thread/start`, `thread/resume` and `thread/fork`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened<'a> {
    /// The thread.
    #[serde(borrow)]
    pub thread: Thread<'a>,
    /// Its model.
    #[serde(borrow, default)]
    pub model: Option<Str<'a>>,
    /// Where it works.
    #[serde(borrow, default)]
    pub cwd: Option<Str<'a>>,
    /// What its commands can reach.
    #[serde(borrow, default)]
    pub sandbox: Option<&'a RawValue>,
    /// How hard its model thinks.
    #[serde(borrow, default)]
    pub reasoning_effort: Option<Str<'a>>,
    /// Who judges what is asked for: `user`, or an agent.
    #[serde(borrow, default)]
    pub approvals_reviewer: Option<Str<'a>>,
}

/// The answer to `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialized<'a> {
    /// `client/0.166.0 (…)`.
    #[serde(borrow, default)]
    pub user_agent: Option<Str<'a>>,
}

/// A turn began or is over; also the answer to `turn/start` and `review/start`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnNews<'a> {
    /// Whose; an answer does not say.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// The turn.
    #[serde(borrow)]
    pub turn: Turn<'a>,
}

/// A turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Str<'a>,
    /// The turn within which it began.
    #[serde(borrow, default)]
    pub root_turn_id: Option<Str<'a>>,
    /// `inProgress`, `completed`, `interrupted`, `failed`.
    #[serde(borrow, default)]
    pub status: Str<'a>,
    /// Why it failed.
    #[serde(borrow, default)]
    pub error: Option<TurnError<'a>>,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// At the end, its last message.
    #[serde(borrow, default)]
    pub items: Option<&'a RawValue>,
}

/// Why a turn failed, or what is tried again.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnError<'a> {
    /// In words.
    #[serde(borrow, default)]
    pub message: Str<'a>,
    /// A word for programs, alone or as the key of an object.
    #[serde(borrow, default)]
    pub codex_error_info: Option<&'a RawValue>,
    /// More words.
    #[serde(borrow, default)]
    pub additional_details: Option<Str<'a>>,
}

/// Something went wrong.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorNews<'a> {
    /// Whose.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// What.
    #[serde(borrow)]
    pub error: TurnError<'a>,
    /// It is tried again; the oldest versions do not say.
    #[serde(default)]
    pub will_retry: Option<bool>,
}

/// Tokens were counted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageNews<'a> {
    /// Whose; the oldest versions do not say.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// How many.
    pub token_usage: TokenUsage,
}

/// Tokens of a thread.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Since the thread began.
    #[serde(default)]
    pub total: Tokens,
    /// Of the last call of the model.
    #[serde(default)]
    pub last: Tokens,
    /// How many the model can hold.
    #[serde(default)]
    pub model_context_window: Option<u64>,
}

/// The list of steps.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanNews<'a> {
    /// Whose; the oldest versions do not say.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// Why it changed.
    #[serde(default)]
    pub explanation: Option<String>,
    /// The steps.
    #[serde(default, deserialize_with = "or_default")]
    pub plan: Vec<Step>,
}

/// A step.
#[derive(Debug, Deserialize)]
pub struct Step {
    /// What is to be done.
    pub step: String,
    /// `pending`, `inProgress`, `completed`.
    pub status: String,
}

/// A word of the server to the user, by whichever name it goes.
#[derive(Debug, Deserialize)]
pub struct Remark<'a> {
    /// What.
    #[serde(borrow, default, alias = "message")]
    pub summary: Str<'a>,
    /// More of it.
    #[serde(borrow, default)]
    pub details: Option<Str<'a>>,
}

/// How a server of tools is doing.
#[derive(Debug, Deserialize)]
pub struct ServerNews<'a> {
    /// Which.
    #[serde(borrow, default)]
    pub name: Str<'a>,
    /// `starting`, `ready`, `failed`, `cancelled`.
    #[serde(borrow, default)]
    pub status: Str<'a>,
    /// Why it failed.
    #[serde(borrow, default)]
    pub error: Option<Str<'a>>,
}

/// Another model than the one asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rerouted<'a> {
    /// Whose.
    #[serde(borrow, default)]
    pub thread_id: Str<'a>,
    /// The one asked for.
    #[serde(borrow, default)]
    pub from_model: Str<'a>,
    /// The one in use.
    #[serde(borrow, default)]
    pub to_model: Str<'a>,
}

/// A request of the server needs no answer any more.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestResolved {
    /// The server's id.
    pub request_id: crate::jsonrpc::Id,
}

/// How much of the account is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitNews<'a> {
    /// By window.
    #[serde(borrow)]
    pub rate_limits: RateLimits<'a>,
}

/// How much of the account is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimits<'a> {
    /// Which limit.
    #[serde(borrow, default)]
    pub limit_id: Option<Str<'a>>,
    /// The short window.
    #[serde(default)]
    pub primary: Option<Window>,
    /// The long window.
    #[serde(default)]
    pub secondary: Option<Window>,
    /// Set when nothing is left.
    #[serde(borrow, default)]
    pub rate_limit_reached_type: Option<&'a RawValue>,
}

/// A window of time and how much of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// From 0 to 100.
    #[serde(default)]
    pub used_percent: f64,
    /// In seconds since 1970.
    #[serde(default)]
    pub resets_at: Option<i64>,
}

/// Only whose it is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Whose<'a> {
    /// The thread, where one is named.
    #[serde(borrow)]
    pub thread_id: Option<Str<'a>>,
    /// The thread of v1 requests.
    #[serde(borrow)]
    pub conversation_id: Option<Str<'a>>,
    /// The thread itself, where it is news.
    #[serde(borrow)]
    pub thread: Option<Thread<'a>>,
}

/// `null` is as good as nothing.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// News that change nothing we show: they repeat what is told otherwise, or are about things that
/// were never asked for. The frames have them.
pub fn is_silent(method: &str) -> bool {
    const SILENT: &[&str] = &[
        "account/gatewayOAuth/changed",
        "account/login/completed",
        "account/updated",
        "app/list/updated",
        "authStatusChange",
        "autoApprovalReview/strictReviewRequired",
        "command/exec/outputDelta",
        "externalAgentConfig/import/completed",
        "externalAgentConfig/import/progress",
        "fs/changed",
        "fuzzyFileSearch/sessionCompleted",
        "fuzzyFileSearch/sessionUpdated",
        "hook/started",
        "item/autoApprovalReview/started",
        "item/commandExecution/terminalInteraction",
        "item/fileChange/outputDelta",
        "loginChatGptComplete",
        "mcpServer/event/stream/notification",
        "mcpServer/oauthLogin/completed",
        "model/safetyBuffering/updated",
        "model/verification",
        "modelProvider/authRecoveryCompleted",
        "modelProvider/authRecoveryStarted",
        "process/exited",
        "process/outputDelta",
        "project/changed",
        "rawResponse/completed",
        "rawResponseItem/completed",
        "remoteControl/status/changed",
        "sessionConfigured",
        "skills/changed",
        "thread/archived",
        "thread/attachment/updated",
        "thread/closed",
        "thread/deleted",
        "thread/environment/connected",
        "thread/environment/disconnected",
        "thread/goal/cleared",
        "thread/goal/updated",
        "thread/prediction/updated",
        "thread/project/updated",
        "thread/queue/changed",
        "thread/readState/changed",
        "thread/reverted",
        "thread/settings/updated",
        "thread/status/changed",
        "thread/unarchived",
        "turn/diff/updated",
        "turn/moderationMetadata",
        "windows/worldWritableWarning",
        "windowsSandbox/setupCompleted",
    ];
    // The older event stream, which versions up to 0.13x send beside this one.
    method.starts_with("codex/event/")
        || method.starts_with("thread/realtime/")
        || SILENT.binary_search(&method).is_ok()
}

#[test]
fn the_silent_ones_are_found() {
    assert!(is_silent("account/gatewayOAuth/changed"));
    assert!(is_silent("windowsSandbox/setupCompleted"));
    assert!(is_silent("thread/status/changed"));
    assert!(is_silent("codex/event/agent_message"));
    assert!(!is_silent("turn/completed"));
    assert!(!is_silent("from/the/future"));
}

//! What an agent sends, read field by field.
//!
//! Everything may be missing, and a kind that is not known is told by its name. What no reader here
//! has a field for stays in the line.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::tagged::{self, Tagged};
use crate::text::Str;

#[cfg(test)]
mod tests;

/// The answer to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Initialized {
    /// The version the agent speaks.
    pub protocol_version: Option<i64>,
    /// What it is.
    pub agent_info: Option<AgentInfo>,
    /// What it can do.
    pub agent_capabilities: Option<AgentCapabilities>,
    /// Ways to log in.
    pub auth_methods: Option<Vec<AuthMethod>>,
    /// What is outside the protocol.
    #[serde(rename = "_meta")]
    pub meta: Option<InitializedMeta>,
}

/// What an agent is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AgentInfo {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its version.
    pub version: Option<String>,
}

/// What an agent can do.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// It loads sessions and tells their history again.
    pub load_session: bool,
    /// What a prompt may consist of.
    pub prompt_capabilities: Option<PromptCapabilities>,
    /// How it reaches MCP servers.
    pub mcp_capabilities: Option<McpCapabilities>,
    /// What can be done with a session.
    pub session_capabilities: Option<SessionCapabilities>,
}

/// What a prompt may consist of, besides text and links.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PromptCapabilities {
    /// Pictures.
    pub image: bool,
    /// Documents.
    pub embedded_context: bool,
}

/// How an agent reaches MCP servers, besides as processes.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct McpCapabilities {
    /// By HTTP.
    pub http: bool,
    /// By HTTP with server-sent events.
    pub sse: bool,
}

/// What can be done with a session.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionCapabilities {
    /// Go on with it without its history being told.
    #[serde(deserialize_with = "offered")]
    pub resume: bool,
    /// Branch off from it.
    #[serde(deserialize_with = "offered")]
    pub fork: bool,
    /// Have directories beside its own.
    #[serde(deserialize_with = "offered")]
    pub additional_directories: bool,
}

/// A capability is an object that is there.
fn offered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(value.is_some_and(|value| !matches!(value.get(), "null" | "false")))
}

/// A way to log in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AuthMethod {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// What the answer to `initialize` has outside the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct InitializedMeta {
    /// It takes messages during a turn.
    pub steering: Option<Steering>,
}

/// Whether an agent takes messages during a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Steering {
    /// It does.
    pub supported: bool,
}

/// The answer to what opens a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Opened {
    /// Its id, where the session is new.
    pub session_id: Option<String>,
    /// Modes, the older way.
    pub modes: Option<Modes>,
    /// What can be set.
    #[serde(deserialize_with = "config_options")]
    pub config_options: Option<Vec<ConfigOption>>,
    /// Models, the older way.
    pub models: Option<Models>,
}

/// Modes on offer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Modes {
    /// The one in use.
    pub current_mode_id: String,
    /// All of them.
    pub available_modes: Vec<Named>,
}

/// Models on offer, the older way.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Models {
    /// The one in use.
    pub current_model_id: Option<String>,
    /// All of them.
    pub available_models: Vec<Named>,
}

/// Something to choose.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Its id.
    #[serde(alias = "value", alias = "modelId")]
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
}

/// Something that can be set.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub category: Option<String>,
    /// The value in use, where it is one of several.
    pub current: Option<String>,
    /// The values to choose from; none where it is a switch.
    pub values: Vec<Named>,
}

/// The complete list of what can be set, which several messages carry.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConfigOptions {
    /// All of it.
    #[serde(deserialize_with = "config_options")]
    pub config_options: Option<Vec<ConfigOption>>,
}

/// Each is read on its own: what is odd about one says nothing about the others.
fn config_options<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<ConfigOption>>, D::Error> {
    let list = Option::<Vec<&RawValue>>::deserialize(deserializer)?;
    let read = |raw: &&RawValue| config_option(raw.get());
    Ok(list.map(|list| list.iter().filter_map(read).collect()))
}

fn config_option(text: &str) -> Option<ConfigOption> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        id: String,
        #[serde(default)]
        category: Option<String>,
        #[serde(borrow, default)]
        current_value: Option<&'a RawValue>,
        #[serde(borrow, default)]
        options: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Group {
        options: Vec<Named>,
    }
    let head: Head<'_> = serde_json::from_str(text).ok()?;
    let values =
        head.options.iter().flat_map(|raw| match serde_json::from_str::<Group>(raw.get()) {
            Ok(group) => group.options,
            Err(_) => serde_json::from_str(raw.get()).into_iter().collect(),
        });
    Some(ConfigOption {
        values: values.filter(|value| !value.id.is_empty()).collect(),
        current: head.current_value.and_then(|raw| serde_json::from_str(raw.get()).ok()),
        id: head.id,
        category: head.category,
    })
}

/// The answer to `session/prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Prompted {
    /// Why the turn ended.
    pub stop_reason: String,
    /// What it used.
    pub usage: Option<Tokens>,
}

/// Tokens of a turn.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tokens {
    /// Read afresh.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Of reasoning.
    pub thought_tokens: Option<u64>,
    /// Read from the cache.
    pub cached_read_tokens: Option<u64>,
    /// Written to the cache.
    pub cached_write_tokens: Option<u64>,
}

/// `session/update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUpdate<'a> {
    /// Which session it is about.
    #[serde(borrow)]
    pub session_id: Str<'a>,
    /// What is new.
    #[serde(borrow)]
    pub update: Update<'a>,
}

/// What is new in a session.
#[derive(Debug)]
pub enum Update<'a> {
    /// The user's words, told again.
    UserMessage(Chunk<'a>),
    /// The agent's words.
    AgentMessage(Chunk<'a>),
    /// The agent's thoughts.
    AgentThought(Chunk<'a>),
    /// A tool call is new.
    ToolCall(Box<ToolCall<'a>>),
    /// A tool call changed.
    ToolCallUpdate(Box<ToolCall<'a>>),
    /// The list of steps.
    Plan(Plan),
    /// The slash commands.
    Commands(Commands),
    /// The mode, the older way.
    Mode(CurrentMode),
    /// What can be set.
    Config(ConfigOptions),
    /// About the session.
    Info(Info),
    /// How full the model's memory is.
    Usage(UsageUpdate),
    /// Something worth knowing.
    Notice(Notice),
    /// The agent shortens its memory.
    Compaction(Compaction),
    /// What it keeps of it, which is for itself.
    CompactionSummary,
    /// Something that is not known here.
    Unknown(Str<'a>),
}

impl<'de: 'a, 'a> Tagged<'de> for Update<'a> {
    const TAGS: &'static [&'static str] = &["sessionUpdate"];

    fn read<D: Deserializer<'de>>(kind: Str<'de>, rest: D) -> Result<Self, D::Error> {
        Ok(match &*kind {
            "user_message_chunk" => Self::UserMessage(Chunk::deserialize(rest)?),
            "agent_message_chunk" => Self::AgentMessage(Chunk::deserialize(rest)?),
            "agent_thought_chunk" => Self::AgentThought(Chunk::deserialize(rest)?),
            "tool_call" => Self::ToolCall(Box::new(ToolCall::deserialize(rest)?)),
            "tool_call_update" => Self::ToolCallUpdate(Box::new(ToolCall::deserialize(rest)?)),
            "plan" => Self::Plan(Plan::deserialize(rest)?),
            "available_commands_update" => Self::Commands(Commands::deserialize(rest)?),
            "current_mode_update" => Self::Mode(CurrentMode::deserialize(rest)?),
            "config_option_update" => Self::Config(ConfigOptions::deserialize(rest)?),
            "session_info_update" => Self::Info(Info::deserialize(rest)?),
            "usage_update" => Self::Usage(UsageUpdate::deserialize(rest)?),
            "notice" => Self::Notice(Notice::deserialize(rest)?),
            "compaction_update" => Self::Compaction(Compaction::deserialize(rest)?),
            "compaction_summary_chunk" => tagged::skip(rest).map(|()| Self::CompactionSummary)?,
            _ => tagged::skip(rest).map(|()| Self::Unknown(kind))?,
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Update<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// A piece of a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chunk<'a> {
    /// The piece.
    #[serde(borrow)]
    pub content: Block<'a>,
    /// Pieces with the same one are one message.
    #[serde(borrow, default)]
    pub message_id: Option<Str<'a>>,
}

/// A content block of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Block<'a> {
    /// Its kind: `text`, `image`, `audio`, `resource_link`, `resource`.
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// Of a text.
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
    /// Of a picture, in base64.
    #[serde(borrow)]
    pub data: Option<Str<'a>>,
    /// Of a picture.
    #[serde(borrow)]
    pub mime_type: Option<Str<'a>>,
    /// Of a picture or a link.
    #[serde(borrow)]
    pub uri: Option<Str<'a>>,
    /// Of a link.
    #[serde(borrow)]
    pub name: Option<Str<'a>>,
    /// Of a document.
    #[serde(borrow)]
    pub resource: Option<Resource<'a>>,
}

/// A document.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resource<'a> {
    /// Where it is from.
    #[serde(borrow)]
    pub uri: Str<'a>,
    /// Its text, unless it is binary.
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
}

/// A tool call, or what changed about it: lists take the place of lists.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall<'a> {
    /// Its id.
    #[serde(borrow)]
    pub tool_call_id: Str<'a>,
    /// One line for a person.
    #[serde(borrow, default)]
    pub title: Option<Str<'a>>,
    /// The tool's name.
    #[serde(borrow, default)]
    pub name: Option<Str<'a>>,
    /// What it does.
    #[serde(borrow, default)]
    pub kind: Option<Str<'a>>,
    /// How far it is.
    #[serde(borrow, default)]
    pub status: Option<Str<'a>>,
    /// What it gave.
    #[serde(borrow, default)]
    pub content: Option<Vec<ToolContent<'a>>>,
    /// The files it is about.
    #[serde(default)]
    pub locations: Option<Vec<Location>>,
    /// Its input.
    #[serde(borrow, default)]
    pub raw_input: Option<&'a RawValue>,
    /// Its output.
    #[serde(borrow, default)]
    pub raw_output: Option<&'a RawValue>,
    /// What is outside the protocol.
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<ToolMeta<'a>>,
}

/// What a tool gave: `content`, `diff` or `terminal`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolContent<'a> {
    /// Its kind.
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// Of a `content`.
    #[serde(borrow)]
    pub content: Option<Block<'a>>,
    /// Of a `diff`.
    #[serde(borrow)]
    pub path: Option<Str<'a>>,
    /// Of a `diff`; none is a new file.
    #[serde(borrow)]
    pub old_text: Option<Str<'a>>,
    /// Of a `diff`.
    #[serde(borrow)]
    pub new_text: Option<Str<'a>>,
    /// Of a `terminal`.
    #[serde(borrow)]
    pub terminal_id: Option<Str<'a>>,
}

/// A place in a file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Location {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// What agents say about tool calls outside the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolMeta<'a> {
    /// Where a terminal of the agent's own is.
    #[serde(borrow)]
    pub terminal_info: Option<TerminalInfo<'a>>,
    /// What it printed.
    #[serde(borrow, alias = "terminal_output_delta")]
    pub terminal_output: Option<TerminalOutput<'a>>,
    /// How it ended.
    pub terminal_exit: Option<TerminalExit>,
    /// What one adapter says.
    #[serde(borrow, rename = "claudeCode")]
    pub claude_code: Option<ClaudeMeta<'a>>,
    /// The tool is an MCP server's.
    pub is_mcp_tool_call: Option<bool>,
    /// What tieline says.
    #[serde(borrow)]
    pub tieline: Option<TielineMeta<'a>>,
}

/// What tieline says about tool calls, requests and options where the protocol has no word for it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TielineMeta<'a> {
    /// The MCP server that a tool is of.
    #[serde(borrow)]
    pub server: Option<Str<'a>>,
    /// The tool that a request is about.
    #[serde(borrow)]
    pub tool: Option<Str<'a>>,
    /// What a request asks, in one line.
    #[serde(borrow)]
    pub title: Option<Str<'a>>,
    /// Why it asks.
    #[serde(borrow)]
    pub reason: Option<Str<'a>>,
}

/// What a request has outside the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RequestMeta<'a> {
    /// What tieline says.
    #[serde(borrow)]
    pub tieline: Option<TielineMeta<'a>>,
}

/// What an option has outside the protocol.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OptionMeta {
    /// What tieline says.
    pub tieline: OptionKind,
}

/// What an option means in tieline's words.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OptionKind {
    /// Finer than the protocol's kinds.
    pub kind: Option<String>,
}

/// Where a terminal of the agent's own is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TerminalInfo<'a> {
    /// Its directory.
    #[serde(borrow)]
    pub cwd: Option<Str<'a>>,
}

/// What a terminal of the agent's own printed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TerminalOutput<'a> {
    /// The text.
    #[serde(borrow)]
    pub data: Str<'a>,
}

/// How a terminal of the agent's own ended.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct TerminalExit {
    /// Its exit code.
    pub exit_code: Option<i32>,
}

/// What one adapter says about tool calls.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaudeMeta<'a> {
    /// The call whose work this is.
    #[serde(borrow)]
    pub parent_tool_use_id: Option<Str<'a>>,
}

/// A list of steps, whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Each step.
    pub entries: Vec<PlanEntry>,
}

/// A step.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: String,
}

/// The slash commands, all of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Commands {
    /// Each command.
    pub available_commands: Vec<Command>,
}

/// A slash command.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Command {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub input: Option<CommandInput>,
}

/// What may follow a slash command.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CommandInput {
    /// In words.
    pub hint: Option<String>,
}

/// The mode in use.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentMode {
    /// Its id.
    pub current_mode_id: String,
}

/// About a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Its title.
    pub title: Option<String>,
}

/// How full the model's memory is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UsageUpdate {
    /// Tokens in it.
    pub used: u64,
    /// Tokens that fit.
    pub size: u64,
    /// What the session has cost.
    pub cost: Option<Cost>,
}

/// Money.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// How much.
    pub amount: f64,
    /// Of what.
    pub currency: String,
}

/// Something worth knowing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Notice {
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// In one line.
    pub title: String,
    /// In more.
    pub description: Option<String>,
}

/// The agent shortens its memory.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Compaction {
    /// Which time.
    pub compaction_id: String,
    /// How far it is.
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
}

/// `session/request_permission`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission<'a> {
    /// What it is about.
    #[serde(borrow)]
    pub tool_call: ToolCall<'a>,
    /// The answers.
    #[serde(default)]
    pub options: Vec<PermissionOption>,
    /// Outside the protocol.
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<RequestMeta<'a>>,
}

/// An answer to a permission request.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionOption {
    /// Its id.
    pub option_id: String,
    /// What to show.
    pub name: String,
    /// What it means: `allow_once`, `allow_always`, `reject_once`, `reject_always`.
    pub kind: String,
    /// Outside the protocol.
    #[serde(rename = "_meta")]
    pub meta: Option<OptionMeta>,
}

/// `elicitation/create`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Elicitation<'a> {
    /// What is asked.
    pub message: String,
    /// `form` or `url`.
    pub mode: String,
    /// Of a form.
    #[serde(borrow)]
    pub requested_schema: Option<&'a RawValue>,
    /// Of a link.
    pub elicitation_id: Option<String>,
    /// Of a link.
    pub url: Option<String>,
    /// The tool call that asks.
    pub tool_call_id: Option<String>,
}

/// Which elicitation is over.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationDone {
    /// Its id.
    pub elicitation_id: String,
}

/// Which request is taken back.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Its id.
    pub request_id: crate::jsonrpc::Id,
}

/// The session a request of the agent is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Whose {
    /// Its id.
    pub session_id: Option<String>,
}

/// The answer to a message during a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Steered {
    /// What became of it.
    pub outcome: String,
}

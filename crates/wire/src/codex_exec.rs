//! What `codex exec` prints with `--json`: a typed view over one line.
//!
//! Three shapes are read, whatever the version says it is: today's (`thread.started`, `item.*`,
//! `turn.*`), the first draft of it (`session.created`, `item_type`, `assistant_message`) and the
//! one of 0.42 and before, where the events of the queue protocol ([`sqeq`]) come after two lines
//! of their own.
//!
//! The lines of some versions have the same key twice, so objects are read as lists of fields. A
//! field of another type counts as missing: a turn's end must be seen even when its usage is not
//! understood.

mod fields;

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::codex::Tokens;
use crate::sqeq::{self, EventMsg};
use crate::text::Str;
use fields::Fields;
use fields::lenient;

/// One line.
#[derive(Debug)]
pub enum Frame<'a> {
    /// The native session has a name.
    Thread {
        /// Its id.
        id: Str<'a>,
    },
    /// The turn began.
    TurnStarted,
    /// The turn ended well.
    TurnCompleted {
        /// Tokens: of this process or of the whole thread, by version.
        usage: Option<Tokens>,
    },
    /// The turn failed.
    TurnFailed {
        /// Why.
        message: Str<'a>,
    },
    /// An item is new, changed or over.
    Item {
        /// Which of these.
        phase: Phase,
        /// The item.
        item: Item<'a>,
    },
    /// Something went wrong; what follows tells whether for good.
    Error {
        /// What.
        message: Str<'a>,
    },
    /// Something to be told; it ends nothing.
    Warning {
        /// What.
        message: Str<'a>,
    },
    /// An event of 0.42 and before.
    Old(EventMsg<'a>),
    /// The first line of 0.42 and before.
    Config {
        /// The model in use.
        model: Option<Str<'a>>,
    },
    /// The second line of 0.42 and before: what it was told.
    Prompt,
    /// A line of a type this view does not know.
    Unknown {
        /// Its type.
        name: String,
    },
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is new.
    Started,
    /// It changed.
    Updated,
    /// It is over.
    Completed,
}

/// A thing in a turn.
#[derive(Debug)]
pub struct Item<'a> {
    /// `item_0`, `item_1`, …: counted from zero again in every process.
    pub id: Str<'a>,
    /// The provider's own id, which the same object carries under the same key.
    pub inner_id: Option<Str<'a>>,
    /// Its type.
    pub kind: Str<'a>,
    /// How far it is, where its type has such a word.
    pub status: Option<Str<'a>>,
    /// The whole item.
    pub raw: &'a RawValue,
    /// What it is.
    pub body: Body<'a>,
}

/// What an item is.
#[derive(Debug)]
pub enum Body<'a> {
    /// The agent says something.
    AgentMessage(Said<'a>),
    /// The agent thinks.
    Reasoning(Said<'a>),
    /// A command.
    Command(Command<'a>),
    /// Changed files.
    FileChange(FileChange<'a>),
    /// A tool of an MCP server.
    McpToolCall(McpToolCall<'a>),
    /// Work with another agent.
    CollabToolCall(CollabToolCall<'a>),
    /// A search of the web.
    WebSearch(WebSearch<'a>),
    /// The list of steps.
    TodoList(TodoList<'a>),
    /// A warning; it ends nothing.
    Error(Warning<'a>),
    /// An item of a type, or of a shape, this view does not know.
    Unknown,
}

/// `agent_message`, `assistant_message`, `reasoning`.
#[derive(Debug, Deserialize)]
pub struct Said<'a> {
    /// The text.
    #[serde(borrow)]
    pub text: Str<'a>,
}

/// `command_execution`.
#[derive(Debug, Deserialize)]
pub struct Command<'a> {
    /// The command line with the shell around it.
    #[serde(borrow)]
    pub command: Str<'a>,
    /// What it printed.
    #[serde(borrow, default)]
    pub aggregated_output: Str<'a>,
    /// How it ended.
    #[serde(default, deserialize_with = "lenient")]
    pub exit_code: Option<i32>,
}

/// `file_change`.
#[derive(Debug, Deserialize)]
pub struct FileChange<'a> {
    /// Each file.
    #[serde(borrow)]
    pub changes: Vec<Change<'a>>,
}

/// A changed file. There is no diff on this wire.
#[derive(Debug, Deserialize)]
pub struct Change<'a> {
    /// Where it is.
    #[serde(borrow)]
    pub path: Str<'a>,
    /// `add`, `delete` or `update`.
    #[serde(borrow, default)]
    pub kind: Str<'a>,
}

/// `mcp_tool_call`.
#[derive(Debug, Deserialize)]
pub struct McpToolCall<'a> {
    /// The server.
    #[serde(borrow)]
    pub server: Str<'a>,
    /// The tool.
    #[serde(borrow)]
    pub tool: Str<'a>,
    /// Its input.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    /// What it gave back.
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    /// Why it could not be called.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// `collab_tool_call`.
#[derive(Debug, Deserialize)]
pub struct CollabToolCall<'a> {
    /// `spawn_agent`, `wait`, …
    #[serde(borrow)]
    pub tool: Str<'a>,
    /// What the other agent is told.
    #[serde(borrow, default)]
    pub prompt: Option<Str<'a>>,
    /// How the other agents are, by thread.
    #[serde(borrow, default)]
    pub agents_states: Option<&'a RawValue>,
}

/// `web_search`.
#[derive(Debug, Deserialize)]
pub struct WebSearch<'a> {
    /// What is searched for; empty while the model still writes it.
    #[serde(borrow, default)]
    pub query: Str<'a>,
    /// What is done: a search, a page that is opened, something looked for in it.
    #[serde(borrow, default)]
    pub action: Option<&'a RawValue>,
}

/// `todo_list`.
#[derive(Debug, Deserialize)]
pub struct TodoList<'a> {
    /// Each step.
    #[serde(borrow)]
    pub items: Vec<Todo<'a>>,
}

/// A step.
#[derive(Debug, Deserialize)]
pub struct Todo<'a> {
    /// What is to be done.
    #[serde(borrow)]
    pub text: Str<'a>,
    /// It is done.
    #[serde(default)]
    pub completed: bool,
}

/// `error` as an item.
#[derive(Debug, Deserialize)]
pub struct Warning<'a> {
    /// The text.
    #[serde(borrow)]
    pub message: Str<'a>,
}

/// Reads one line.
///
/// # Errors
/// When the line is not a JSON object.
pub fn parse(line: &[u8]) -> Result<Frame<'_>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_slice(line)?;
    let Some(kind) = fields.get::<Str<'_>>("type") else { return Ok(untyped(&fields, line)) };
    let unknown = || Frame::Unknown { name: kind.to_string() };
    Ok(match &*kind {
        "thread.started" | "session.created" => {
            let key = if kind == "thread.started" { "thread_id" } else { "session_id" };
            match fields.get::<Str<'_>>(key).filter(|id| !id.is_empty()) {
                Some(id) => Frame::Thread { id },
                None => unknown(),
            }
        }
        "turn.started" => Frame::TurnStarted,
        "turn.completed" => Frame::TurnCompleted { usage: fields.get("usage") },
        "turn.failed" => Frame::TurnFailed { message: message_in(fields.raw("error")) },
        "error" => Frame::Error { message: fields.get("message").unwrap_or_default() },
        "warning" => match fields.get("message") {
            Some(message) => Frame::Warning { message },
            None => unknown(),
        },
        "item.started" | "item.updated" | "item.completed" => {
            let phase = match &*kind {
                "item.started" => Phase::Started,
                "item.updated" => Phase::Updated,
                _ => Phase::Completed,
            };
            match fields.raw("item").and_then(item) {
                Some(item) => Frame::Item { phase, item },
                None => unknown(),
            }
        }
        _ => unknown(),
    })
}

/// The lines of 0.42 and before have no type.
fn untyped<'a>(fields: &Fields<'a>, line: &[u8]) -> Frame<'a> {
    if let Some(event) = fields.get("msg") {
        Frame::Old(event)
    } else if let Some(sniffed) = sqeq::sniff(line) {
        Frame::Unknown { name: sniffed.kind }
    } else if fields.raw("prompt").is_some() {
        Frame::Prompt
    } else if fields.raw("workdir").is_some() && fields.raw("approval").is_some() {
        Frame::Config { model: fields.get("model") }
    } else {
        Frame::Unknown { name: "a line without a type".to_owned() }
    }
}

fn item(raw: &RawValue) -> Option<Item<'_>> {
    let fields: Fields<'_> = serde_json::from_str(raw.get()).ok()?;
    let kind: Str<'_> = fields.get("type").or_else(|| fields.get("item_type"))?;
    // The outer id comes first and is the one that other lines of the same item repeat.
    let mut ids = fields.all::<Str<'_>>("id");
    let body = body(&kind, raw).unwrap_or(Body::Unknown);
    Some(Item {
        id: ids.next()?,
        inner_id: ids.next(),
        kind,
        status: fields.get("status"),
        raw,
        body,
    })
}

fn body<'a>(kind: &str, raw: &'a RawValue) -> Option<Body<'a>> {
    fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
        serde_json::from_str(raw.get()).ok()
    }
    match kind {
        "agent_message" | "assistant_message" => read(raw).map(Body::AgentMessage),
        "reasoning" => read(raw).map(Body::Reasoning),
        "command_execution" => read(raw).map(Body::Command),
        "file_change" => read(raw).map(Body::FileChange),
        "mcp_tool_call" => read(raw).map(Body::McpToolCall),
        "collab_tool_call" => read(raw).map(Body::CollabToolCall),
        "web_search" => read(raw).map(Body::WebSearch),
        "todo_list" => read(raw).map(Body::TodoList),
        "error" => read(raw).map(Body::Error),
        _ => None,
    }
}

/// The message in `{"message": …}`, or the value itself.
fn message_in(error: Option<&RawValue>) -> Str<'_> {
    let Some(error) = error else { return Str::default() };
    let fields = serde_json::from_str::<Fields<'_>>(error.get());
    fields
        .ok()
        .and_then(|fields| fields.get("message"))
        .or_else(|| serde_json::from_str(error.get()).ok())
        .unwrap_or(Str::Borrowed(error.get()))
}

//! Items: the things a turn consists of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::id::ItemId;
use crate::text::{BlobSink, Json, Text};

/// One thing in a turn, whole, as it stands at this event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Item {
    /// Its id; events about the same item carry the same one.
    pub id: ItemId,
    /// How far it is, and how it ended.
    pub status: ItemStatus,
    /// What it is.
    #[serde(flatten)]
    pub body: ItemBody,
}

/// How far an item is, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Still going on.
    InProgress,
    /// Ended well.
    Ok,
    /// Was tried and failed.
    Failed,
    /// Was not tried: a rule or a policy forbids it.
    Denied,
    /// Was not tried: a person said no.
    Declined,
    /// Was stopped before its end.
    Cancelled,
    /// Took too long.
    TimedOut,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemBody {
    /// What the user said.
    UserMessage {
        /// Its pieces.
        content: Vec<Content>,
    },
    /// What the agent said.
    AgentMessage {
        /// The text, usually Markdown.
        text: Text,
    },
    /// What the agent thought.
    Reasoning {
        /// The text.
        text: Text,
        /// The provider's seal on it, needed to send it back.
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A command the agent ran.
    Command {
        /// The command line.
        command: String,
        /// Where it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// What it is for, in the agent's words.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// What it printed, both streams.
        output: Text,
        /// How it ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// It goes on after the turn.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        background: bool,
        /// What it amounts to, where that is more than a command.
        #[serde(skip_serializing_if = "Option::is_none")]
        gist: Option<Gist>,
    },
    /// Files the agent changed.
    FileChange {
        /// Each file.
        changes: Vec<FileChange>,
    },
    /// Any other tool.
    ToolCall {
        /// Where the tool comes from.
        class: ToolClass,
        /// Its name.
        tool: String,
        /// The server that offers it.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// One line for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its input as the agent wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// What it gave back.
        output: Vec<Content>,
        /// What it amounts to, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        gist: Option<Gist>,
    },
    /// A search of the web.
    WebSearch {
        /// What was searched for.
        query: String,
        /// What was found.
        output: Vec<Content>,
    },
    /// A plan the agent proposes, as text.
    Plan {
        /// The text.
        text: Text,
    },
    /// A picture the agent made or looked at.
    Image {
        /// The picture.
        content: Content,
    },
    /// The agent shortened its memory.
    Compaction {
        /// What caused it: `auto` or `manual`.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<String>,
        /// Tokens before.
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens_before: Option<u64>,
    },
    /// A review of changes.
    Review {
        /// The text.
        text: Text,
        /// The same for programs, where the agent tells it.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Box<ReviewOutcome>>,
    },
}

/// What a review concluded, for programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReviewOutcome {
    /// What the reviewer found, in its order.
    pub findings: Vec<ReviewFinding>,
    /// Whether the changes are right, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correctness: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Text>,
    /// How sure the reviewer is of that, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// One thing that a review found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReviewFinding {
    /// One line for a person.
    pub title: String,
    /// The whole explanation.
    pub body: Text,
    /// How sure the reviewer is, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How much it matters: 0 is the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The file, as the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The lines it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineSpan>,
}

/// Lines of a file, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineSpan {
    /// The first line.
    pub first: u64,
    /// The last line, which belongs to it.
    pub last: u64,
}

impl ReviewOutcome {
    /// Moves every large text to the sink.
    fn externalize(&mut self, sink: &mut dyn BlobSink) {
        let bodies = self.findings.iter_mut().map(|finding| &mut finding.body);
        bodies.chain(&mut self.explanation).for_each(|text| text.externalize(sink));
    }
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// The agent's own.
    #[default]
    Generic,
    /// An MCP server's.
    Mcp,
    /// A client's, registered for this conversation.
    Dynamic,
    /// Another agent, started by this one. Items with this item as their parent are its work.
    SubAgent,
}

/// What a call amounts to, whatever it is called: for those who show it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gist {
    /// What it does.
    pub kind: ToolKind,
    /// One line for a person; else the command or the tool's own title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The files it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// What a call does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads files or lists them.
    Read,
    /// Changes files.
    Edit,
    /// Removes files.
    Delete,
    /// Moves or renames files.
    Move,
    /// Looks for something.
    Search,
    /// Runs code.
    Execute,
    /// Thinks, or has another agent think.
    Think,
    /// Gets something from outside.
    Fetch,
    /// Changes the mode of the conversation.
    SwitchMode,
    /// Keeps the agent's list of steps; `plan.updated` tells what came of it.
    Plan,
    /// None of these, or nobody knows.
    #[default]
    Other,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The file, as the agent names it.
    pub path: String,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Gist {
    /// A kind and a place.
    pub fn at(kind: ToolKind, path: impl Into<String>) -> Self {
        let places = vec![Place { path: path.into(), line: None }];
        Self { kind, title: None, places }
    }

    /// A kind and nothing else.
    pub fn of(kind: ToolKind) -> Self {
        Self { kind, ..Self::default() }
    }
}

/// One file and what happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Where it is, as the agent names it.
    pub path: String,
    /// What happened.
    pub kind: ChangeKind,
    /// Where it went, when it moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// The whole text before, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<Text>,
    /// The whole text after, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_text: Option<Text>,
    /// A unified diff, where the agent gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Text>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Add,
    /// It was there and is different now.
    Update,
    /// It is gone.
    Delete,
}

impl FileChange {
    /// Moves every large text to the sink.
    pub(crate) fn externalize(&mut self, sink: &mut dyn BlobSink) {
        let texts = [&mut self.old_text, &mut self.new_text, &mut self.diff];
        texts.into_iter().flatten().for_each(|text| text.externalize(sink));
    }
}

impl ItemStatus {
    /// Whether the item is over.
    pub fn is_final(self) -> bool {
        self != Self::InProgress
    }
}

impl ItemBody {
    /// The name in the `type` field.
    pub fn name(&self) -> &'static str {
        match self {
            Self::UserMessage { .. } => "user_message",
            Self::AgentMessage { .. } => "agent_message",
            Self::Reasoning { .. } => "reasoning",
            Self::Command { .. } => "command",
            Self::FileChange { .. } => "file_change",
            Self::ToolCall { .. } => "tool_call",
            Self::WebSearch { .. } => "web_search",
            Self::Plan { .. } => "plan",
            Self::Image { .. } => "image",
            Self::Compaction { .. } => "compaction",
            Self::Review { .. } => "review",
        }
    }
}

impl Item {
    /// Moves every large text and value to the sink.
    pub fn externalize(&mut self, sink: &mut dyn BlobSink) {
        match &mut self.body {
            ItemBody::UserMessage { content } | ItemBody::WebSearch { output: content, .. } => {
                content.iter_mut().for_each(|piece| piece.externalize(sink));
            }
            ItemBody::AgentMessage { text }
            | ItemBody::Reasoning { text, .. }
            | ItemBody::Plan { text }
            | ItemBody::Command { output: text, .. } => text.externalize(sink),
            ItemBody::Review { text, outcome } => {
                text.externalize(sink);
                if let Some(outcome) = outcome {
                    outcome.externalize(sink);
                }
            }
            ItemBody::FileChange { changes } => {
                changes.iter_mut().for_each(|change| change.externalize(sink));
            }
            ItemBody::ToolCall { input, output, .. } => {
                if let Some(input) = input {
                    input.externalize(sink);
                }
                output.iter_mut().for_each(|piece| piece.externalize(sink));
            }
            ItemBody::Image { content } => content.externalize(sink),
            ItemBody::Compaction { .. } => {}
        }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            id: ItemId,
            status: ItemStatus,
        }
        let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        let body = ItemBody::from_tagged(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { id: head.id, status: head.status, body })
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::text("")
    }
}

crate::text::tagged_json!(ItemBody, "type", {
    "user_message" => UserMessage { content: Vec<Content> },
    "agent_message" => AgentMessage { text: Text },
    "reasoning" => Reasoning { text: Text, signature: Option<String> },
    "command" => Command {
        command: String, cwd: Option<String>, description: Option<String>, output: Text,
        exit_code: Option<i32>, background: bool, gist: Option<Gist>
    },
    "file_change" => FileChange { changes: Vec<FileChange> },
    "tool_call" => ToolCall {
        class: ToolClass, tool: String, server: Option<String>, title: Option<String>,
        input: Option<Json>, output: Vec<Content>, gist: Option<Gist>
    },
    "web_search" => WebSearch { query: String, output: Vec<Content> },
    "plan" => Plan { text: Text },
    "image" => Image { content: Content },
    "compaction" => Compaction { trigger: Option<String>, tokens_before: Option<u64> },
    "review" => Review { text: Text, outcome: Option<Box<ReviewOutcome>> },
});

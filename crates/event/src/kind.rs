//! What can happen in a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ability::{Abilities, Mode};
use crate::command::Origin;
use crate::failure::Failure;
use crate::id::{ConversationKey, ItemId, RequestId, Timestamp};
use crate::item::Item;
use crate::policy::Policy;
use crate::request::{Answer, Request, RequestBody};
use crate::task::TaskMarker;
use crate::text::{BlobSink, Text};
use crate::usage::{RateLimit, Usage};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:literal => $variant:ident($body:ty),)*) => {
        /// What happened. In JSON the name stands in `kind`, the rest in `data`.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "kind", content = "data")]
        #[allow(clippy::large_enum_variant)]
        pub enum Kind {
            $($(#[$doc])* #[serde(rename = $name)] $variant($body),)*
        }

        impl Kind {
            /// The name in the `kind` field.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// What a newer version wrote and this one does not know is passed on as
            /// `unparsed`: the set of kinds, items and codes may grow within a format.
            pub(crate) fn from_parts(kind: &str, data: &str) -> Self {
                let read = match kind {
                    $($name => serde_json::from_str(data).map(Self::$variant),)*
                    other => Err(serde::de::Error::custom(format!("unknown kind {other:?}"))),
                };
                read.unwrap_or_else(|error| {
                    let reason = format!("{kind} of another version: {error}");
                    Self::Unparsed(Unparsed::new(reason, data.as_bytes()))
                })
            }
        }
    };
}

kinds! {
    /// The conversation has an owner and an agent.
    "conversation.opened" => ConversationOpened(Opened),
    /// The agent told what it is and can do, or something about that changed.
    "conversation.configured" => ConversationConfigured(Configured),
    /// The agent was ended and the conversation given up by its owner.
    "conversation.closed" => ConversationClosed(Closed),
    /// A turn began.
    "turn.started" => TurnStarted(TurnStarted),
    /// A turn ended. Every turn has exactly one of these.
    "turn.completed" => TurnCompleted(TurnCompleted),
    /// One answer of the model within a turn is complete, with the work it asked for.
    "turn.step" => TurnStep(TurnStep),
    /// An item is new.
    "item.started" => ItemStarted(Item),
    /// An item changed.
    "item.updated" => ItemUpdated(Item),
    /// An item is over.
    "item.completed" => ItemCompleted(Item),
    /// The agent's list of steps changed.
    "plan.updated" => PlanUpdated(Plan),
    /// The agent asks.
    "request.opened" => RequestOpened(Request),
    /// The request has its answer.
    "request.resolved" => RequestResolved(Resolved),
    /// The request needs no answer any more.
    "request.expired" => RequestExpired(Expired),
    /// The agent counted its tokens.
    "usage.updated" => UsageUpdated(Usage),
    /// Something worth knowing that ends nothing.
    "notice" => Notice(Notice),
    /// The agent's process was started.
    "process.spawned" => ProcessSpawned(Spawned),
    /// The agent's process ended.
    "process.exited" => ProcessExited(Exited),
    /// A word about the task that this conversation is for.
    "task.marker" => TaskMarker(TaskMarker),
    /// The agent wrote something that is not understood. The frame has it whole.
    "unparsed" => Unparsed(Unparsed),
}

/// The conversation has an owner and an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Opened {
    /// Which agent.
    pub agent: String,
    /// Where it works.
    pub workspace: String,
    /// How much it may do.
    pub mode: Mode,
    /// What goes before the mode, where the agent has such a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Which model was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which effort was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The native session that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<String>,
    /// The conversation it branches off from; its own native session begins with the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ConversationKey>,
}

/// What the agent is and can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Configured {
    /// The agent's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The model in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The effort in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The agent's title for the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The mode in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What goes before the mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Where the agent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What it can do; absent when that did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abilities: Option<Abilities>,
}

/// The conversation was given up by its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Closed {
    /// Why.
    pub reason: String,
}

/// A turn began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// Who caused it.
    pub origin: Origin,
    /// The client's own name for the message that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// A turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnCompleted {
    /// How.
    pub status: TurnStatus,
    /// Why, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// What told us.
    pub signal: EndSignal,
    /// The agent's own word for how it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The agent's last message.
    pub text: Text,
    /// What this turn used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// From its start to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Tasks of the agent that go on after this turn; each may bring a turn of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_tasks: u32,
    /// The agent's name for this point of the conversation; a later turn may go on from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bookmark: Option<String>,
}

/// One answer of the model within a turn is complete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnStep {
    /// The agent's name for this point of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bookmark: Option<String>,
    /// What this answer used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Well.
    Completed,
    /// Not well; `error` says why.
    Failed,
    /// Somebody stopped it.
    Interrupted,
}

/// What told us that a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndSignal {
    /// The agent's own message.
    Wire,
    /// The agent's notify program.
    Notify,
    /// The end of the agent's process.
    Process,
    /// Silence for the set time, on a wire without an end.
    Idle,
    /// A deadline.
    Timeout,
    /// tieline itself: the turn could not begin, was cut off, or its owner died.
    Tieline,
}

/// The agent's list of steps, whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Each step.
    pub entries: Vec<PlanEntry>,
    /// A word on the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Going on.
    InProgress,
    /// Done.
    Completed,
}

/// The request has its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// Which request.
    pub request: RequestId,
    /// The answer.
    pub answer: Answer,
    /// The option that was chosen by its id; the answer is what it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// Who gave it.
    pub by: Origin,
    /// A policy gave it because nobody was there to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// The request needs no answer any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expired {
    /// Which request.
    pub request: RequestId,
    /// Why.
    pub reason: String,
}

/// Something worth knowing that ends nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// How much it matters.
    pub level: NoticeLevel,
    /// A stable name for programs: `api_retry`, `rate_limit`, `output_cut`, …
    pub code: String,
    /// One sentence for a person.
    pub text: String,
    /// The provider's word on what is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// For the record.
    Info,
    /// Degraded but whole.
    Warning,
    /// Something was lost.
    Error,
}

/// The agent's process was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spawned {
    /// Its process id.
    pub pid: u32,
    /// The program, absolute.
    pub program: String,
    /// Its arguments; a prompt is never among them.
    pub args: Vec<String>,
}

/// The agent's process ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exited {
    /// Its process id.
    pub pid: u32,
    /// Its exit code, unless a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// We ended it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Its output was cut: a descendant held the pipe after the process had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Descendants that had to be killed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub killed: u32,
    /// Descendants that could not be killed: those of other users, or stuck in the kernel.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u32,
    /// The end of what it wrote to stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// The agent wrote something that is not understood: a line, or several that follow each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unparsed {
    /// What is wrong with the first line.
    pub reason: String,
    /// How many lines.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub lines: u64,
    /// Length of all of them in bytes.
    pub bytes: u64,
    /// SHA-256 of a line that was too long to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// How the first line begins, with invalid bytes replaced.
    pub head: String,
}

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

impl Kind {
    /// The item it is about.
    pub fn item(&self) -> Option<&ItemId> {
        match self {
            Self::ItemStarted(item) | Self::ItemUpdated(item) | Self::ItemCompleted(item) => {
                Some(&item.id)
            }
            Self::RequestOpened(request) => request.item.as_ref(),
            _ => None,
        }
    }

    /// Moves every large text and value to the sink.
    pub fn externalize(&mut self, sink: &mut dyn BlobSink) {
        match self {
            Self::ItemStarted(item) | Self::ItemUpdated(item) | Self::ItemCompleted(item) => {
                item.externalize(sink);
            }
            Self::TurnCompleted(end) => end.text.externalize(sink),
            Self::RequestOpened(Request { body: RequestBody::Approval(approval), .. }) => {
                approval.changes.iter_mut().for_each(|change| change.externalize(sink));
            }
            _ => {}
        }
    }
}

impl Unparsed {
    /// How much of a line is shown in the event.
    pub const HEAD: usize = 200;

    /// About a line that could not be read.
    pub fn new(reason: impl Into<String>, line: &[u8]) -> Self {
        let head = line.get(..Self::HEAD).unwrap_or(line);
        Self {
            reason: reason.into(),
            lines: 1,
            bytes: line.len() as u64,
            sha256: None,
            head: String::from_utf8_lossy(head).into_owned(),
        }
    }
}

impl TurnCompleted {
    /// How long the turn took, given when it began.
    #[must_use]
    pub fn lasting(mut self, from: Timestamp, to: Timestamp) -> Self {
        let millis = to.as_millis().saturating_sub(from.as_millis());
        self.duration_ms = Some(u64::try_from(millis).unwrap_or(0));
        self
    }
}

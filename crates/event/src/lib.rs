//! The one event model and the one command model of tieline.
//!
//! Every agent is a queue pair: [`Command`]s go in, [`Event`]s come out. A front end never learns
//! which agent it talks to, a driver never learns who listens.
//!
//! # How it works
//!
//! An [`Event`] is an envelope (who, when, which turn, which item) around one [`Kind`]. Events are
//! durable: they are committed to the store before anybody sees them, and their [`Seq`] has no gap
//! within a conversation. Items are upserts by id: `item.started`, any number of `item.updated`,
//! one `item.completed`, each carrying the whole [`Item`] as it stands.
//!
//! A [`Delta`] is a preview of an item that is still growing. It is shown at once and never stored;
//! the item's next event carries the whole text.
//!
//! # Invariants
//!
//! * No I/O, no runtime, no vendor's name.
//! * JSON is versioned ([`FORMAT`]); the schema in `schema/` is generated from these types and a
//!   test compares the two.
//! * JSON that an agent wrote (tool input, suggestions) is kept as text ([`Json`]), never as a
//!   parsed value: key order, number spelling and duplicate keys survive.
#![warn(missing_docs)]

mod ability;
mod command;
mod content;
mod envelope;
mod errand;
mod extras;
mod failure;
mod id;
mod item;
mod kind;
mod policy;
mod request;
pub mod schema;
mod task;
mod text;
mod usage;

#[cfg(test)]
mod tests;

pub use ability::{Abilities, AgentCommand, Mode, ModelInfo, UnknownMode};
pub use command::{Command, Origin, Prompt};
pub use content::{Content, ImageSource};
pub use envelope::{Delta, Event, FORMAT, FrameRange, Native, Source, Stream};
pub use errand::{
    Errand, Inquiry, Report, ReviewTarget, SavedPrompt, ServerTool, SkillInfo, SkillsAt,
    TurnOptions,
};
pub use extras::{Extras, McpServer, McpTransport};
pub use failure::{Failure, FailureCode};
pub use id::{BadKey, ConversationKey, Epoch, FrameNo, ItemId, RequestId, Seq, Timestamp, TurnId};
pub use item::{
    ChangeKind, FileChange, Gist, Item, ItemBody, ItemStatus, LineSpan, Place, ReviewFinding,
    ReviewOutcome, ToolClass, ToolKind,
};
pub use kind::{
    Closed, Configured, EndSignal, Exited, Expired, Kind, Notice, NoticeLevel, Opened, Plan,
    PlanEntry, PlanStatus, Resolved, Spawned, TurnCompleted, TurnStarted, TurnStatus, TurnStep,
    Unparsed,
};
pub use policy::{AskWhen, Policy, Reach};
pub use request::{
    Answer, Approval, Bounds, Choice, ChoiceKind, Held, Question, QuestionOption, Request,
    RequestBody, Scope,
};
pub use task::{FileFate, TaskFile, TaskMarker, TaskOption, TaskStop, Teller};
pub use text::{BLOB_THRESHOLD, BlobRef, BlobSink, Json, Text};
pub use usage::{RateLimit, Usage};

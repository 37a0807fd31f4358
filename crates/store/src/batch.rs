//! What is written together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tieline_event::{BlobRef, Expired, Mode, Policy, Request, Resolved, Seq, Timestamp, TurnId};

use crate::Options;
use crate::frame::FrameBuf;
use crate::journal::JournalEntry;
use crate::mail::LetterId;

/// Facts of one conversation that reach the disk together or not at all.
#[derive(Default)]
pub struct Batch {
    /// Durable events. Their numbers go on from the last one stored.
    pub events: Vec<NewEvent>,
    /// Raw frames. Their numbers go on from the last one stored.
    pub frames: FrameBuf,
    /// Large values the events refer to.
    pub blobs: Vec<(BlobRef, Vec<u8>)>,
    /// Requests that were opened or closed.
    pub requests: Vec<RequestChange>,
    /// What changed about the conversation itself.
    pub conversation: Option<ConversationChange>,
    /// What an agent within this process goes on from.
    pub journal: Vec<JournalEntry>,
    /// Nobody waits for it, and more is likely to follow at once.
    pub can_wait: bool,
}

/// A durable event.
#[derive(Clone)]
pub struct NewEvent {
    /// Its place in the conversation.
    pub seq: Seq,
    /// When it happened.
    pub ts: Timestamp,
    /// The name of its kind.
    pub kind: &'static str,
    /// In which turn.
    pub turn: Option<TurnId>,
    /// The event as JSON; kept byte for byte.
    pub json: Arc<[u8]>,
}

/// What happened to a request.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a batch has few of them, and most open a request")]
pub enum RequestChange {
    /// The agent asked.
    Open {
        /// What it asked.
        request: Request,
        /// The agent's own id of the request.
        native: Option<String>,
        /// The event that says so.
        seq: Seq,
    },
    /// It was answered. Fails the batch unless the request is open.
    Resolve(Resolved),
    /// It needs no answer any more. Fails the batch unless the request is open.
    Expire(Expired),
}

/// New values for a conversation; what is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct ConversationChange {
    /// The agent.
    pub agent: Option<String>,
    /// Where it works.
    pub workspace: Option<String>,
    /// How much it may do.
    pub mode: Option<Mode>,
    /// What goes before the mode; `Some(None)` leaves it to the mode again.
    pub policy: Option<Option<Policy>>,
    /// The model; `Some(None)` goes back to the agent's own choice.
    pub model: Option<Option<String>>,
    /// The effort; `Some(None)` goes back to the agent's own choice.
    pub effort: Option<Option<String>>,
    /// The agent's session; `Some(None)` forgets it and keeps the history. Either way nothing is
    /// to be forked any more.
    pub native_session: Option<Option<String>>,
    /// The agent's name for the end of its last turn, empty where it has none. A session that changes
    /// without it has none.
    pub position: Option<String>,
    /// A line for a list of conversations.
    pub title: Option<String>,
    /// The number the next turn gets.
    pub next_turn: Option<u64>,
    /// JSON about the task it is for.
    pub task: Option<String>,
    /// Letters of others that are done with this change.
    pub letters: Vec<LetterId>,
}

// What people and agents say stays out of logs and error texts: sizes, not bodies.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("events", &self.events)
            .field("frames", &self.frames)
            .field("n_blobs", &self.blobs.len())
            .field("n_requests", &self.requests.len())
            .field("n_journal", &self.journal.len())
            .field("changes_conversation", &self.conversation.is_some())
            .finish()
    }
}

impl fmt::Debug for NewEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} bytes)", self.seq, self.kind, self.json.len())
    }
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty() && !self.is_durable()
    }

    /// How long it may wait for company.
    pub(crate) fn patience(&self, options: &Options) -> Duration {
        match (self.is_durable(), self.can_wait) {
            (false, _) => options.group_wait,
            (true, true) => options.event_wait,
            (true, false) => Duration::ZERO,
        }
    }

    /// Whether it holds more than frames.
    fn is_durable(&self) -> bool {
        !self.events.is_empty()
            || !self.blobs.is_empty()
            || !self.requests.is_empty()
            || self.conversation.is_some()
            || !self.journal.is_empty()
    }

    /// Roughly how many bytes it keeps in memory.
    pub(crate) fn weight(&self) -> usize {
        self.frames.raw_bytes()
            + self.events.iter().map(|event| event.json.len() + 64).sum::<usize>()
            + self.blobs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
            + self.requests.len() * 1024
            + self.journal.iter().map(|entry| entry.body.len() + 64).sum::<usize>()
    }
}

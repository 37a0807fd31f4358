//! What survives a crash: the history, entry by entry, in the order it came about.
//!
//! A call is written, and on disk, before its tool runs. A call that has no output when the journal
//! is read was cut off: it is told so to the model and never run again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tieline_agent::Journal;
use tieline_event::{Failure, FailureCode};
use tieline_wire::responses::Item;
use tieline_wire::sqeq::TokenUsage;

use crate::context::Context;

/// One entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The session begins; its model is told this much about itself.
    Began {
        /// The format of what follows.
        version: u32,
    },
    /// A turn of the user begins, in this context.
    Turn {
        /// The context as it was told to the model.
        context: Box<Context>,
    },
    /// An item of the history, as it is sent to the provider.
    Item(Item),
    /// The output of a call while others of the same answer go on; it enters the history with
    /// theirs.
    Ran(Item),
    /// An answer is complete.
    Answered {
        /// The provider's id of it.
        response: Option<String>,
        /// What it used.
        usage: TokenUsage,
    },
    /// The history was replaced by a shorter one.
    Compacted(Vec<Item>),
    /// The last turns were forgotten.
    RolledBack {
        /// How many.
        turns: u32,
    },
    /// The history goes on from an earlier answer.
    Resumed {
        /// The provider's id of it.
        after: String,
    },
    /// Files were changed; this takes it back.
    Patched(Box<RawValue>),
    /// The changes of the last turn were taken back.
    Undone,
}

/// The format of the entries.
pub(crate) const VERSION: u32 = 1;

/// Writes the journal of one session.
pub(crate) struct Scribe {
    /// None for a conversation of which nothing is kept.
    journal: Option<Arc<dyn Journal>>,
    session: String,
    /// What was not handed over yet.
    waiting: Vec<Vec<u8>>,
}

impl Scribe {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: String) -> Self {
        Self { journal: Some(journal), session, waiting: Vec::new() }
    }

    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self { journal: None, session: String::new(), waiting: Vec::new() }
    }

    /// Notes an entry; it is on disk after the next [`keep`](Self::keep).
    pub(crate) fn note(&mut self, entry: &Entry) {
        if self.journal.is_none() {
            return;
        }
        match serde_json::to_vec(entry) {
            Ok(entry) => self.waiting.push(entry),
            // Nothing in it is not JSON.
            Err(error) => tracing::error!(%error, "an entry cannot be written"),
        }
    }

    /// Forgets what was noted: it stands in the journal already.
    pub(crate) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// Waits until every entry is on disk.
    pub(crate) async fn keep(&mut self) -> Result<(), Failure> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.waiting);
        match &self.journal {
            Some(journal) => journal.append(&self.session, entries).await,
            None => Ok(()),
        }
    }
}

/// Reads the journal of a session; none when there is no such session.
pub(crate) async fn read(
    journal: &dyn Journal,
    session: &str,
) -> Result<Option<Vec<Entry>>, Failure> {
    let raw = journal.read(session).await?;
    if raw.is_empty() {
        return Ok(None);
    }
    let read = raw.iter().map(|entry| serde_json::from_slice(entry));
    let entries = read.collect::<Result<Vec<Entry>, _>>().map_err(|error| {
        Failure::new(
            FailureCode::Store,
            format!("the journal of {session} cannot be read: {error}"),
        )
        .hint("it was written by a newer tieline; update, or `tieline reset KEY` to begin anew")
    })?;
    Ok(Some(entries))
}

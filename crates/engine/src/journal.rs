//! What survives a crash: the history, entry by entry, in the order it came about.
//!
//! A call is written, and on disk, before its tool runs. A call that has no output when the journal
//! is read was cut off: it is told so to the model and never run again.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tieline_agent::{Journal, Journaled};
use tieline_event::{Failure, FailureCode};
use tieline_wire::responses::Item;
use tieline_wire::sqeq::TokenUsage;

use crate::context::Context;

#[cfg(test)]
mod tests;

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
    /// The history so far came from another session, with the places that one can go on from.
    Forked {
        /// Where turns begin.
        turns: Vec<usize>,
        /// Where answers end.
        marks: Vec<Mark>,
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

/// Where an answer ends in the history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The provider's id of it.
    pub(crate) response: String,
    /// Where what the model gave ends.
    pub(crate) answered: usize,
    /// Where the outputs of its calls end.
    pub(crate) end: usize,
}

/// The format of the entries.
pub(crate) const VERSION: u32 = 1;

/// Writes the journal of one session. An entry is kept here until it is known to be on disk: whoever
/// waits for that may be stopped, and the disk may be full.
pub(crate) struct Scribe {
    /// None for a conversation of which nothing is kept.
    journal: Option<Arc<dyn Journal>>,
    session: String,
    /// What was not handed over yet.
    waiting: Vec<Vec<u8>>,
    /// What was handed over and is not on disk for certain.
    writing: Option<Writing>,
}

/// Entries on their way to the disk.
struct Writing {
    entries: Vec<Vec<u8>>,
    /// Locked by nobody: it makes the future one that may be shared.
    written: Mutex<Journaled<()>>,
}

impl Writing {
    /// Waits for the end. Who stops waiting can go on with it later.
    async fn end(&mut self) -> Result<(), Failure> {
        self.written.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().await
    }
}

impl Scribe {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: String) -> Self {
        Self { journal: Some(journal), session, waiting: Vec::new(), writing: None }
    }

    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self { journal: None, session: String::new(), waiting: Vec::new(), writing: None }
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

    /// Waits until every entry is on disk. What is refused is tried again with the next call.
    pub(crate) async fn keep(&mut self) -> Result<(), Failure> {
        loop {
            if let Some(writing) = &mut self.writing {
                let written = writing.end().await;
                let entries = self.writing.take().map(|it| it.entries).unwrap_or_default();
                if let Err(failure) = written {
                    // In front of what was noted since.
                    self.waiting.splice(..0, entries);
                    return Err(failure);
                }
            }
            let Some(journal) = self.journal.as_ref().filter(|_| !self.waiting.is_empty()) else {
                return Ok(());
            };
            let entries = std::mem::take(&mut self.waiting);
            let written = Mutex::new(journal.append(&self.session, entries.clone()));
            self.writing = Some(Writing { entries, written });
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

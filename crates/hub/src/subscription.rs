//! A reader's place in a conversation.

use std::sync::Arc;

use tieline_event::{ConversationKey, Event, Seq};
use tieline_store::Store;
use tokio::sync::watch;

use crate::error::Error;
use crate::tail::{Entry, Position, Seen, Shown, Step, Tail};

/// How many events are read from the store at once.
const PAGE: usize = 256;

/// Everything that happens in a conversation after a point, in order, without gap or duplicate.
#[derive(Debug)]
pub struct Subscription {
    store: Store,
    key: ConversationKey,
    tail: Arc<Tail>,
    changed: watch::Receiver<u64>,
    position: Position,
    cursor: Seq,
    seen: Seen,
}

impl Subscription {
    pub(crate) fn new(store: Store, key: ConversationKey, tail: Arc<Tail>, after: Seq) -> Self {
        let (changed, position) = (tail.watch(), tail.enter(after));
        Self { store, key, tail, changed, position, cursor: after, seen: Seen::default() }
    }

    /// The last event this subscriber was given.
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    /// The next entries, at least one; none when the conversation was closed.
    ///
    /// Can be cancelled: nothing is lost. A subscriber that fell behind gets the events it missed
    /// from the store, then what it has not seen of each item that still grows.
    ///
    /// # Errors
    /// When the store cannot be read, or could not be written.
    pub async fn next(&mut self) -> Result<Vec<Entry>, Error> {
        loop {
            self.changed.mark_unchanged();
            match self.tail.step(self.position, self.cursor, &self.seen) {
                Step::Show(entries, position) => {
                    self.position = position;
                    self.pass(&entries);
                    return Ok(entries);
                }
                Step::ReadStore(until) => {
                    let entries = self.read_store(until).await?;
                    self.pass(&entries);
                    self.position = self.tail.enter(self.cursor);
                    if !entries.is_empty() {
                        return Ok(entries);
                    }
                }
                Step::Wait(position) => {
                    self.position = position;
                    // An error says that the tail is gone, and with it the conversation.
                    if self.changed.changed().await.is_err() {
                        return Ok(Vec::new());
                    }
                }
                Step::Closed(None) => return Ok(Vec::new()),
                Step::Closed(Some(trouble)) => return Err(Error::Lost(trouble)),
            }
        }
    }

    fn pass(&mut self, entries: &[Entry]) {
        entries.iter().for_each(|entry| self.seen.note(entry));
        let last = entries.iter().rev().find_map(|entry| match entry {
            Entry::Event(shown) => Some(shown.event.seq),
            Entry::Delta(_) => None,
        });
        if let Some(last) = last {
            self.cursor = last;
        }
    }

    async fn read_store(&self, until: Seq) -> Result<Vec<Entry>, Error> {
        let (store, key, after) = (self.store.clone(), self.key.clone(), self.cursor);
        let missing = usize::try_from(until.0.saturating_sub(after.0)).unwrap_or(PAGE);
        let read = move || store.events(&key, after, missing.min(PAGE));
        let stored = tokio::task::spawn_blocking(read).await.map_err(|_| Error::Closed)??;
        let mut entries = Vec::with_capacity(stored.len());
        for stored in stored {
            match Event::from_json(&stored.json) {
                Ok(event) => {
                    entries.push(Entry::Event(Arc::new(Shown { event, json: stored.json })));
                }
                Err(error) => {
                    return Err(Error::Refused(format!(
                        "event {} of {} cannot be read: {error}",
                        stored.seq, self.key
                    )));
                }
            }
        }
        Ok(entries)
    }
}

//! The way to the disk: in order, with a second try when the disk is full.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use tieline_store::{Batch, Commit, Lease, Rejected, Store};
use tokio::time::Instant;

use crate::tail::Entry;

/// Between two tries to write to a full disk.
const RETRY: Duration = Duration::from_millis(200);

/// Batches on their way to the disk and the entries that wait behind them.
pub(crate) struct Pipeline {
    store: Store,
    lease: Lease,
    patience: Duration,
    in_flight: VecDeque<InFlight>,
    /// Entries in flight that hold up what comes after them.
    n_durable: usize,
    /// A batch that waits for room in the store's queue; it comes after everything in flight.
    sending: Option<(Sending, Vec<Entry>)>,
    /// Batches that are on disk, and all there ever were.
    n_done: u64,
    n_submitted: u64,
    /// Batches the store gave back; they come before everything in flight.
    rejected: Vec<(Batch, Vec<Entry>)>,
    /// Batches that were not sent while the store is stalled or full; they come last.
    held: VecDeque<(Batch, Vec<Entry>)>,
    /// Since when the store gives batches back.
    stalled: Option<Instant>,
    /// When to try again.
    retry_at: Option<Instant>,
}

type Sending = Pin<Box<dyn Future<Output = Commit> + Send>>;

/// A point in the order of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_done, n_submitted, .. } = self;
        f.debug_struct("Pipeline")
            .field("n_done", n_done)
            .field("n_submitted", n_submitted)
            .finish()
    }
}

#[derive(Debug)]
struct InFlight {
    commit: Commit,
    entries: Vec<Entry>,
}

impl Pipeline {
    pub(crate) fn new(store: Store, lease: Lease, patience: Duration) -> Self {
        Self {
            store,
            lease,
            patience,
            in_flight: VecDeque::new(),
            sending: None,
            n_done: 0,
            n_submitted: 0,
            n_durable: 0,
            rejected: Vec::new(),
            held: VecDeque::new(),
            stalled: None,
            retry_at: None,
        }
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Ends the pipeline and gives the lease back.
    pub(crate) fn into_lease(self) -> Lease {
        self.lease
    }

    /// Whether a preview may be shown at once: nothing durable is on its way before it.
    pub(crate) fn is_clear(&self) -> bool {
        self.n_durable == 0 && !self.is_stalled()
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.n_done == self.n_submitted
    }

    /// Whether the store gives batches back.
    fn is_stalled(&self) -> bool {
        self.stalled.is_some()
    }

    /// Whether the store takes no more, so that nothing more should be read from the agent.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.is_stalled() || self.sending.is_some() || !self.held.is_empty()
    }

    /// Behind everything so far.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.n_submitted)
    }

    /// Whether everything before a mark is on disk.
    pub(crate) fn has_passed(&self, mark: Mark) -> bool {
        self.n_done >= mark.0
    }

    /// Sends a batch; `entries` are shown once it is on disk. Never waits: what the store does not
    /// take now is held.
    pub(crate) fn submit(&mut self, batch: Batch, entries: Vec<Entry>) {
        self.n_submitted += 1;
        if self.is_backed_up() {
            self.held.push_back((batch, entries));
            return;
        }
        match self.store.try_append(&self.lease, batch) {
            Ok(commit) => self.sent(commit, entries),
            Err(batch) => {
                self.held.push_back((*batch, entries));
                self.send_held();
            }
        }
    }

    /// Lets previews wait behind what is on its way.
    pub(crate) fn queue_behind(&mut self, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let sending = self.sending.as_mut().map(|(_, waiting)| waiting);
        let held = self.held.back_mut().map(|(_, waiting)| waiting);
        if let Some(waiting) = held.or(sending) {
            return waiting.extend(entries);
        }
        // Frames alone hold nothing up; they are taken only where nothing else is on its way.
        let durable = self.in_flight.iter().rposition(|it| !it.entries.is_empty());
        let rejected = self.rejected.last_mut().map(|(_, waiting)| waiting);
        let last = self.in_flight.len().checked_sub(1);
        let at = durable.or(last.filter(|_| rejected.is_none()));
        match (at.and_then(|at| self.in_flight.get_mut(at)), rejected) {
            (Some(front), _) => {
                self.n_durable += usize::from(front.entries.is_empty());
                front.entries.extend(entries);
            }
            (None, Some(waiting)) => waiting.extend(entries),
            (None, None) => {
                // Stalled, and nothing is on its way: a batch of nothing carries them.
                self.n_submitted += 1;
                self.held.push_back((Batch::default(), entries));
            }
        }
    }

    fn sent(&mut self, commit: Commit, entries: Vec<Entry>) {
        self.n_durable += usize::from(!entries.is_empty());
        self.in_flight.push_back(InFlight { commit, entries });
    }

    /// Lets the first batch that was held wait for room. The future is kept, so that its place in the
    /// queue is kept too.
    fn send_held(&mut self) {
        if self.sending.is_none()
            && !self.is_stalled()
            && let Some((batch, entries)) = self.held.pop_front()
        {
            let sending = self.store.append_later(&self.lease, batch);
            self.sending = Some((Box::pin(sending), entries));
        }
    }

    /// Tries what the store gave back, then what was held. Does not wait, so that nothing is lost
    /// when the caller stops waiting; what the queue does not take is held.
    fn send_again(&mut self) {
        let rejected = std::mem::take(&mut self.rejected);
        let mut again = rejected.into_iter().chain(std::mem::take(&mut self.held));
        for (batch, entries) in again.by_ref() {
            match self.store.try_append(&self.lease, batch) {
                Ok(commit) => self.sent(commit, entries),
                Err(batch) => {
                    self.held.push_back((*batch, entries));
                    break;
                }
            }
        }
        self.held.extend(again);
    }

    /// Waits for the next batch to reach the disk and gives what may be shown now. Never returns
    /// while nothing is on its way. Can be cancelled.
    ///
    /// # Errors
    /// When the lease is lost, or the store stays full longer than patience allows.
    pub(crate) async fn advance(&mut self) -> Result<Vec<Entry>, tieline_store::Error> {
        loop {
            self.send_held();
            if let Some((sending, _)) = &mut self.sending {
                // Whichever comes first; room may come with a commit of our own.
                let front = async {
                    match self.in_flight.front_mut() {
                        Some(front) => (&mut front.commit).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    commit = sending => {
                        if let Some((_, entries)) = self.sending.take() {
                            self.sent(commit, entries);
                        }
                        continue;
                    }
                    result = front => match self.landed(result)? {
                        Some(entries) => return Ok(entries),
                        None => continue,
                    },
                }
            }
            let Some(front) = self.in_flight.front_mut() else {
                if self.is_empty() {
                    std::future::pending::<()>().await;
                }
                // The moment is kept outside of this future, which is dropped and made anew often.
                let at = *self.retry_at.get_or_insert_with(|| Instant::now() + RETRY);
                tokio::time::sleep_until(at).await;
                self.retry_at = None;
                self.send_again();
                continue;
            };
            let result = (&mut front.commit).await;
            if let Some(entries) = self.landed(result)? {
                return Ok(entries);
            }
        }
    }

    /// The first batch in flight is on disk, or came back.
    fn landed(
        &mut self,
        result: Result<(), Rejected>,
    ) -> Result<Option<Vec<Entry>>, tieline_store::Error> {
        let Some(InFlight { entries, .. }) = self.in_flight.pop_front() else { return Ok(None) };
        self.n_durable -= usize::from(!entries.is_empty());
        let Err(rejected) = result else {
            self.n_done += 1;
            if self.is_empty() && self.stalled.take().is_some() {
                tracing::warn!(conversation = %self.lease.key, "the store works again");
            }
            return Ok(Some(entries));
        };
        // Batches behind a rejected one come back too, because numbers may not jump.
        let goes_on = rejected.error.is_transient() || self.is_stalled();
        let Some(batch) = rejected.batch.filter(|_| goes_on) else {
            return Err(rejected.error);
        };
        let now = Instant::now();
        let since = self.stalled.get_or_insert_with(|| {
            tracing::warn!(error = %rejected.error, "the store is stalled");
            now
        });
        if now.duration_since(*since) > self.patience {
            return Err(rejected.error);
        }
        self.rejected.push((*batch, entries));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tieline_event::{ConversationKey, Delta, FrameNo, Stream, Timestamp};
    use tieline_store::{FrameBuf, NewConversation, Options};

    use super::*;

    fn pipeline(dir: &tempfile::TempDir, options: Options) -> Pipeline {
        let store = Store::open(dir.path(), options).unwrap();
        let key = ConversationKey::new("test").unwrap();
        let lease = store.acquire(&key, NewConversation::default()).unwrap();
        Pipeline::new(store, lease, Duration::from_secs(10))
    }

    fn frames(no: u64, n_bytes: usize) -> Batch {
        let mut frames = FrameBuf::new(FrameNo(no));
        let line = vec![b'x'; n_bytes];
        frames.append(tieline_store::Direction::Out, Timestamp::now(), line);
        Batch { frames, ..Batch::default() }
    }

    fn delta(text: &str) -> Entry {
        Entry::Delta(Arc::new(Delta {
            turn: "t1".into(),
            item: "m1".into(),
            parent: None,
            stream: Stream::Text,
            offset: 0,
            text: text.to_owned(),
        }))
    }

    async fn all_shown(pipeline: &mut Pipeline) -> Vec<String> {
        let mut shown = Vec::new();
        while !pipeline.is_empty() {
            shown.extend(pipeline.advance().await.unwrap());
        }
        let text = |entry: &Entry| match entry {
            Entry::Delta(delta) => delta.text.clone(),
            Entry::Event(_) => panic!("there are no events"),
        };
        shown.iter().map(text).collect()
    }

    #[tokio::test]
    async fn previews_wait_behind_frames_that_are_tried_again() {
        let dir = tempfile::TempDir::new().unwrap();
        let mut pipeline = pipeline(&dir, Options::default());
        pipeline.submit(frames(1, 10), Vec::new());
        // As after a retry: the store is stalled until it has taken what is in flight.
        pipeline.stalled = Some(Instant::now());
        assert!(!pipeline.is_clear());
        pipeline.queue_behind(vec![delta("one")]);
        pipeline.queue_behind(vec![delta("two")]);
        assert_eq!(all_shown(&mut pipeline).await, ["one", "two"]);
        assert!(pipeline.is_clear());
    }

    #[tokio::test]
    async fn a_full_queue_holds_batches_in_order_and_never_the_caller() {
        let dir = tempfile::TempDir::new().unwrap();
        // Room for one batch at a time.
        let mut pipeline = pipeline(&dir, Options { queue_bytes: 2048, ..Options::default() });
        for no in 1..=20 {
            pipeline.submit(frames(no, 1500), vec![delta(&no.to_string())]);
        }
        let mark = pipeline.mark();
        assert!(pipeline.is_backed_up() && !pipeline.has_passed(mark));
        let expected: Vec<String> = (1..=20).map(|no| no.to_string()).collect();
        assert_eq!(all_shown(&mut pipeline).await, expected);
        assert!(!pipeline.is_backed_up() && pipeline.has_passed(mark));
    }
}

//! The way to the disk: in order, with a second try when the disk is full.

use std::collections::VecDeque;
use std::time::Duration;

use tieline_store::{Batch, Commit, Lease, Store};
use tokio::time::Instant;

use crate::tail::Entry;

/// Between two tries to write to a full disk.
const RETRY: Duration = Duration::from_millis(200);

/// Batches on their way to the disk and the entries that wait behind them.
#[derive(Debug)]
pub(crate) struct Pipeline {
    store: Store,
    lease: Lease,
    patience: Duration,
    in_flight: VecDeque<InFlight>,
    /// Entries in flight that hold up what comes after them.
    n_durable: usize,
    /// Batches the store gave back; they come before everything in flight.
    rejected: Vec<(Batch, Vec<Entry>)>,
    /// Batches that were not sent while the store is stalled; they come after everything in flight.
    held: Vec<(Batch, Vec<Entry>)>,
    /// Since when the store gives batches back.
    stalled: Option<Instant>,
    /// When to try again.
    retry_at: Option<Instant>,
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
            n_durable: 0,
            rejected: Vec::new(),
            held: Vec::new(),
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
        self.in_flight.is_empty() && self.rejected.is_empty() && self.held.is_empty()
    }

    /// Whether the store gives batches back, so that nothing more should be read from the agent.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.is_some()
    }

    /// Sends a batch; `entries` are shown once it is on disk. Waits while the store's queue is full.
    pub(crate) async fn submit(&mut self, batch: Batch, entries: Vec<Entry>) {
        if self.is_stalled() {
            self.held.push((batch, entries));
            return;
        }
        self.send(batch, entries).await;
    }

    /// Lets previews wait behind what is on its way.
    pub(crate) fn queue_behind(&mut self, entries: Vec<Entry>) {
        let in_flight = self.in_flight.iter_mut().rev().map(|it| &mut it.entries);
        let in_flight = in_flight.filter(|waiting| !waiting.is_empty()).take(1);
        let held = self.held.last_mut().map(|(_, waiting)| waiting);
        let rejected = self.rejected.last_mut().map(|(_, waiting)| waiting);
        if let Some(waiting) = held.into_iter().chain(in_flight).chain(rejected).next() {
            waiting.extend(entries);
        }
    }

    async fn send(&mut self, batch: Batch, entries: Vec<Entry>) {
        self.n_durable += usize::from(!entries.is_empty());
        let commit = self.store.append(&self.lease, batch).await;
        self.in_flight.push_back(InFlight { commit, entries });
    }

    /// Tries what the store gave back, then what was held. Does not wait, so that nothing is lost
    /// when the caller stops waiting; what the queue does not take is held.
    fn send_again(&mut self) {
        let rejected = std::mem::take(&mut self.rejected);
        let mut again = rejected.into_iter().chain(std::mem::take(&mut self.held));
        for (batch, entries) in again.by_ref() {
            match self.store.try_append(&self.lease, batch) {
                Ok(commit) => {
                    self.n_durable += usize::from(!entries.is_empty());
                    self.in_flight.push_back(InFlight { commit, entries });
                }
                Err(batch) => {
                    self.held.push((*batch, entries));
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
            let Some(InFlight { entries, .. }) = self.in_flight.pop_front() else { continue };
            self.n_durable -= usize::from(!entries.is_empty());
            match result {
                Ok(()) => {
                    if self.is_empty() && self.stalled.take().is_some() {
                        tracing::warn!(conversation = %self.lease.key, "the store works again");
                    }
                    return Ok(entries);
                }
                Err(rejected) => {
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
                }
            }
        }
    }
}

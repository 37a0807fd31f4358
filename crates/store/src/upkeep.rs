//! What is to be done about a conversation's raw frames now and then, and can wait.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::error::Error;
use crate::lease::Claim;

/// The frames so far become one compressed segment, and the oldest go if there are too many.
pub(crate) struct Upkeep {
    pub(crate) claim: Claim,
    /// How many bytes of frames may lie on disk.
    pub(crate) most: Option<u64>,
    pub(crate) reply: oneshot::Sender<KeptUp>,
}

/// What came of it.
pub(crate) type KeptUp = Result<Capped, Error>;

/// What a cap on raw frames dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capped {
    /// How many frames.
    pub n_frames: u64,
    /// Their bytes, as they lay on disk.
    pub bytes: u64,
}

impl Upkeep {
    pub(crate) fn answer(self, result: KeptUp) {
        if let Err(Err(error)) = self.reply.send(result) {
            tracing::warn!(%error, "raw frames were not looked after");
        }
    }
}

/// Upkeep that waits for its time.
pub(crate) struct Waiting {
    wait: Duration,
    upkeep: Vec<Upkeep>,
    due: Option<Instant>,
}

impl Waiting {
    pub(crate) fn new(wait: Duration) -> Self {
        Self { wait, upkeep: Vec::new(), due: None }
    }

    pub(crate) fn add(&mut self, upkeep: Vec<Upkeep>) {
        if !upkeep.is_empty() {
            self.due.get_or_insert_with(|| Instant::now() + self.wait);
            self.upkeep.extend(upkeep);
        }
    }

    /// How long the first has left; none when nothing waits.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Everything, if the time of the first has come.
    pub(crate) fn take_due(&mut self) -> Vec<Upkeep> {
        match self.left() {
            Some(Duration::ZERO) => self.take(),
            _ => Vec::new(),
        }
    }

    /// Everything.
    pub(crate) fn take(&mut self) -> Vec<Upkeep> {
        self.due = None;
        std::mem::take(&mut self.upkeep)
    }
}

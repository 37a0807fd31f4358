//! What came of a task's calls, and what they changed, until the session's core takes it over.
//!
//! A task is stopped by dropping it, and then some of its calls have ended and others not. What it has
//! changed in files by then is known all the same: a change is made by a task of its own, which is
//! waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tieline_patch::Undo;
use tieline_wire::responses::Item;
use tokio::sync::RwLock;

use crate::calls::Call;
use crate::tools::Outcome;

#[cfg(test)]
mod tests;

/// What came of calls, and what was changed. It outlives the task; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes {
    ended: Arc<Mutex<Ended>>,
    /// Held by each change under way; no other begins when the task is over.
    changing: Arc<RwLock<Phase>>,
}

#[derive(Debug, Default)]
struct Ended {
    calls: Vec<(String, Outcome)>,
    changes: Vec<Changed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Running,
    Over,
}

/// What became of files.
#[derive(Debug)]
pub(crate) enum Changed {
    /// They were changed; this takes it back.
    Patched(Undo),
    /// The last changes were taken back.
    Undone,
}

impl Outcomes {
    /// Changes files. What has begun goes on to its end, even if nobody waits for it any more; none
    /// if it could not begin because the task is over, or failed in a panic.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let phase = Arc::clone(&self.changing).read_owned().await;
        if *phase == Phase::Over {
            return None;
        }
        let work = tokio::spawn(async move {
            let made = work.await;
            drop(phase);
            made
        });
        work.await.ok()
    }

    /// Waits for the changes that have begun, and lets no other begin.
    pub(crate) async fn close(&self) {
        *self.changing.write().await = Phase::Over;
    }

    /// Notes a change as soon as it is made.
    pub(crate) fn changed(&self, changed: Changed) {
        self.lock().changes.push(changed);
    }

    /// What was changed since it was taken last, in order.
    pub(crate) fn take_changes(&self) -> Vec<Changed> {
        std::mem::take(&mut self.lock().changes)
    }

    /// Notes what came of a call; the last word counts.
    pub(crate) fn put(&self, call: &str, outcome: Outcome) {
        let mut ended = self.lock();
        ended.calls.retain(|(id, _)| id != call);
        ended.calls.push((call.to_owned(), outcome));
    }

    /// The output of a call that has ended.
    pub(crate) fn look_at(&self, call: &Call) -> Option<Item> {
        let ended = self.lock();
        let (_, outcome) = ended.calls.iter().find(|(id, _)| *id == call.id)?;
        Some(call.output_of(outcome.output.clone()))
    }

    pub(crate) fn take(&self, call: &str) -> Option<Outcome> {
        let mut ended = self.lock();
        let at = ended.calls.iter().position(|(id, _)| id == call)?;
        Some(ended.calls.remove(at).1)
    }

    fn lock(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

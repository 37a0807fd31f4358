//! Gates: how a test holds a stream at a known chunk.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

/// How long a test waits for the server before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Holds back the chunks of a stream until a test lets them go.
///
/// Clones share the gate. Counts run over the gate's whole life, so use a gate of
/// its own for each stream that a test wants to steer alone.
#[derive(Clone)]
pub struct Gate {
    permits: Arc<Semaphore>,
    sent: watch::Sender<usize>,
    abandoned: watch::Sender<usize>,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate {
            permits: Arc::new(Semaphore::new(0)),
            sent: watch::Sender::new(0),
            abandoned: watch::Sender::new(0),
        }
    }
}

impl Gate {
    /// Lets `n` more chunks pass.
    pub fn release(&self, n: usize) {
        self.permits.add_permits(n);
    }

    /// Lets everything pass from now on.
    pub fn open(&self) {
        self.permits.close();
    }

    /// Returns when the server has written `n` chunks through this gate.
    pub async fn reached(&self, n: usize) {
        wait(&self.sent, n, "chunks sent").await;
    }

    /// Returns when `n` clients have hung up while waiting at this gate.
    pub async fn abandoned(&self, n: usize) {
        wait(&self.abandoned, n, "clients gone").await;
    }

    pub(crate) async fn pass(&self) {
        // A closed semaphore means the gate is open.
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
    }

    pub(crate) fn sent(&self) {
        self.sent.send_modify(|count| *count += 1);
    }

    pub(crate) fn abandon(&self) {
        self.abandoned.send_modify(|count| *count += 1);
    }
}

async fn wait(counter: &watch::Sender<usize>, n: usize, what: &str) {
    let mut watched = counter.subscribe();
    let reached = tokio::time::timeout(PATIENCE, watched.wait_for(|count| *count >= n)).await;
    let seen = *counter.borrow();
    assert!(reached.is_ok(), "gate: {n} {what} expected, {seen} seen after {PATIENCE:?}");
}

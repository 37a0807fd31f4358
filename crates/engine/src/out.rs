//! The way out: events, one on a line.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tieline_wire::sqeq::{Event, EventMsg, Message};
use tieline_wire::text::Str;
use tokio::sync::mpsc;

/// What is gathered before somebody must wait for it to be taken.
const PIECE: usize = 32 * 1024;

/// Where events go. Clones write to the same place, each event whole.
#[derive(Debug, Clone)]
pub(crate) struct Out {
    waiting: Arc<Mutex<Vec<u8>>>,
    pieces: mpsc::Sender<Vec<u8>>,
}

impl Out {
    pub(crate) fn new(pieces: mpsc::Sender<Vec<u8>>) -> Self {
        Self { waiting: Arc::default(), pieces }
    }

    /// Puts an event in line; [`flush`](Self::flush) sends it. Whether there is so much that
    /// somebody should.
    pub(crate) fn put(&self, id: &str, msg: EventMsg<'_>) -> bool {
        let line = Event { id: Str::Borrowed(id), msg }.to_line();
        let mut waiting = self.lock();
        waiting.extend_from_slice(&line);
        waiting.len() >= PIECE
    }

    /// Sends what is in line. Nobody listens any more: then it is dropped.
    pub(crate) async fn flush(&self) {
        // The place is taken first, so that two who flush keep the order.
        let Ok(place) = self.pieces.reserve().await else { return };
        let piece = std::mem::take(&mut *self.lock());
        if !piece.is_empty() {
            place.send(piece);
        }
    }

    /// Sends an event.
    pub(crate) async fn send(&self, id: &str, msg: EventMsg<'_>) {
        self.put(id, msg);
        self.flush().await;
    }

    /// A warning that the client should show.
    pub(crate) async fn warn(&self, id: &str, message: impl Into<String>) {
        let message = Str::Owned(message.into());
        self.send(id, EventMsg::Warning(Message { message })).await;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

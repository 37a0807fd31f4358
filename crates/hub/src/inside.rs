//! An agent that runs as a task of this process, seen as a process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tieline_agent::{Inside, Journal, Journaled, Pipe};
use tieline_event::{Failure, FailureCode};
use tieline_proc::{Captured, Closed, Exit};
use tieline_store::Scribe;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::port::Next;

/// Pieces on their way, in either direction.
const PIECES: usize = 64;

/// What an agent that was ended by us would have as its signal.
const SIGKILL: i32 = 9;

/// A task in place of a process.
pub(crate) struct Inner {
    input: Option<mpsc::Sender<Vec<u8>>>,
    output: mpsc::Receiver<Vec<u8>>,
    /// What was received and not read yet.
    unread: Vec<u8>,
    /// How it ended, once it did; a channel without a sender is a task that was ended.
    end: watch::Receiver<Option<i32>>,
    task: AbortHandle,
}

impl Inner {
    pub(crate) fn start(inside: Inside, scribe: Scribe) -> Self {
        let (input, lines) = mpsc::channel(PIECES);
        let (pieces, output) = mpsc::channel(PIECES);
        let journal = Arc::new(StoreJournal(scribe));
        let running = (inside.run)(Pipe { input: lines, output: pieces, journal });
        let (ended, end) = watch::channel(None);
        let task = tokio::spawn(async move {
            let code = running.await;
            ended.send_replace(Some(code));
        });
        let task = task.abort_handle();
        Self { input: Some(input), output, unread: Vec::new(), end, task }
    }

    pub(crate) async fn exited(&self) {
        let mut end = self.end.clone();
        // An error is a task that was ended: gone as well.
        drop(end.wait_for(Option::is_some).await);
    }

    /// As [`Port::next`](crate::port::Port::next).
    pub(crate) async fn next(
        &mut self,
        buffer: &mut [u8],
        may_read: bool,
        may_write: bool,
    ) -> Next {
        let mut end = self.end.clone();
        let Self { input, output, unread, .. } = self;
        let read = async {
            if !may_read {
                std::future::pending::<()>().await;
            }
            if unread.is_empty() {
                *unread = output.recv().await.unwrap_or_default();
            }
            let n = unread.len().min(buffer.len());
            let taken: Vec<u8> = unread.drain(..n).collect();
            if let Some(place) = buffer.get_mut(..n) {
                place.copy_from_slice(&taken);
            }
            n
        };
        let write = async {
            match input {
                Some(input) if may_write => drop(input.reserve().await),
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = end.wait_for(Option::is_some) => Next::Exited,
            n = read => Next::Read(Ok(n)),
            () = write => Next::Writable,
        }
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(input) = &self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        match input.try_send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Its input ends; after the grace, so does it.
    pub(crate) fn begin_stop(&mut self, grace: Duration) {
        self.input = None;
        let task = self.task.clone();
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            task.abort();
        });
    }

    pub(crate) fn begin_kill(&mut self) {
        self.task.abort();
    }

    /// What is left of its output, and how it ended.
    pub(crate) async fn close(mut self, mut sink: impl FnMut(&[u8])) -> Closed {
        self.task.abort();
        self.exited().await;
        sink(&self.unread);
        while let Ok(piece) = self.output.try_recv() {
            sink(&piece);
        }
        let exit = match *self.end.borrow() {
            Some(code) => Exit { code: Some(code), signal: None },
            None => Exit { code: None, signal: Some(SIGKILL) },
        };
        Closed { exit: Some(exit), killed: 0, left: 0, stderr: Captured::default() }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The journal of a conversation in the store.
struct StoreJournal(Scribe);

impl Journal for StoreJournal {
    fn append(&self, session: &str, entries: Vec<Vec<u8>>) -> Journaled<()> {
        let (scribe, session) = (self.0.clone(), session.to_owned());
        Box::pin(async move {
            let commit = scribe.append(&session, entries).await;
            commit.await.map_err(|rejected| cannot("written", &rejected.error))
        })
    }

    fn read(&self, session: &str) -> Journaled<Vec<Vec<u8>>> {
        let (store, session) = (self.0.store().clone(), session.to_owned());
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || store.journal(&session)).await;
            match read {
                Ok(entries) => entries.map_err(|error| cannot("read", &error)),
                Err(_) => Err(Failure::new(FailureCode::Store, "the journal cannot be read")),
            }
        })
    }
}

fn cannot(what: &str, error: &tieline_store::Error) -> Failure {
    Failure::new(FailureCode::Store, format!("the journal cannot be {what}: {error}"))
        .hint("`tieline doctor` looks after the store")
}

//! The one way to the client: bounded, in order, and never in the way of the sessions.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::pipe::PIPE_BUF;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle as TaskHandle;

/// Updates wait while this much is not written yet.
const SOFT: usize = 128 * 1024;

/// While this much is not written, nothing more is read from the client either: what it asks for
/// would only add to it.
const HARD: usize = 8 * 1024 * 1024;

/// A capacity above this is given back.
const KEEP: usize = 256 * 1024;

/// Lines on their way to the client. A thread or a task writes them: a client that does not read
/// holds up that one alone. A few lines for a client that keeps up go past the thread.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    /// The thread's output, if a little can be written to it without waiting.
    direct: Option<Direct>,
    /// For a thread: there is something to write.
    filled: Condvar,
    /// For a task: the same.
    ready: Notify,
    /// For the sessions: there may be room again, or the client is gone.
    drained: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    /// What the thread is writing.
    n_writing: usize,
    /// No more is coming.
    is_ending: bool,
    /// The client is gone.
    is_gone: bool,
}

impl Outbox {
    /// An outbox and the thread of this name that empties it.
    pub(crate) fn new(
        name: &str,
        output: impl Write + AsFd + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<io::Result<()>>)> {
        let direct = Direct::new(output.as_fd())?;
        let inner = Arc::new(Inner { direct, ..Inner::default() });
        let writer = Arc::clone(&inner);
        let thread =
            std::thread::Builder::new().name(name.into()).spawn(move || writer.write_to(output))?;
        Ok((Self { inner }, thread))
    }

    /// An outbox and the task that empties it, for what needs no thread.
    pub(crate) fn for_socket(
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> (Self, TaskHandle<io::Result<()>>) {
        let inner = Arc::new(Inner::default());
        let writer = Arc::clone(&inner);
        let task = tokio::spawn(async move { writer.send_to(output).await });
        (Self { inner }, task)
    }

    /// Takes the lines and leaves the buffer empty. Never waits.
    pub(crate) fn push(&self, lines: &mut Vec<u8>) {
        if lines.is_empty() {
            return;
        }
        let mut state = self.inner.lock();
        if let Some(direct) = &self.inner.direct
            && state.lines.is_empty()
            && state.n_writing == 0
            && lines.len() <= PIPE_BUF
        {
            // What is left, or went wrong, is the thread's.
            lines.drain(..direct.write_some(lines).unwrap_or(0));
            if lines.is_empty() {
                return;
            }
        }
        if state.is_gone {
            // Nobody will ever read it.
        } else if state.lines.is_empty() {
            std::mem::swap(&mut state.lines, lines);
        } else {
            state.lines.extend_from_slice(lines);
        }
        drop(state);
        self.inner.wake();
        lines.clear();
        lines.shrink_to(KEEP);
    }

    /// Waits until the client has read most of what there was. Can be cancelled.
    pub(crate) async fn room(&self) {
        self.below(SOFT).await;
    }

    /// Whether the client may ask for more now.
    pub(crate) fn has_room_to_read(&self) -> bool {
        let state = self.inner.lock();
        state.is_gone || state.lines.len() + state.n_writing < HARD
    }

    /// Waits until the client may ask for more. Can be cancelled.
    pub(crate) async fn room_to_read(&self) {
        self.below(HARD).await;
    }

    /// Waits until the client is gone. Can be cancelled.
    pub(crate) async fn gone(&self) {
        loop {
            let drained = self.inner.drained.notified();
            if self.inner.lock().is_gone {
                return;
            }
            drained.await;
        }
    }

    /// No more is coming: the thread ends when everything is written.
    pub(crate) fn finish(&self) {
        self.inner.lock().is_ending = true;
        self.inner.wake();
    }

    async fn below(&self, limit: usize) {
        loop {
            let drained = self.inner.drained.notified();
            {
                let state = self.inner.lock();
                if state.is_gone || state.lines.len() + state.n_writing < limit {
                    return;
                }
            }
            drained.await;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.filled.notify_one();
        self.ready.notify_one();
    }

    /// What a task writes next; none when nothing more comes.
    fn next(&self, lines: &mut Vec<u8>) -> Option<bool> {
        let mut state = self.lock();
        state.n_writing = 0;
        if lines.capacity() > KEEP {
            *lines = Vec::new();
        }
        self.drained.notify_waiters();
        if state.lines.is_empty() {
            return (!state.is_ending).then_some(false);
        }
        std::mem::swap(&mut state.lines, lines);
        state.n_writing = lines.len();
        Some(true)
    }

    fn lost(&self) {
        let mut state = self.lock();
        (state.is_gone, state.lines) = (true, Vec::new());
        self.drained.notify_waiters();
    }

    async fn send_to(&self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut lines = Vec::new();
        loop {
            match self.next(&mut lines) {
                None => return output.shutdown().await,
                // A wake that came before is not lost.
                Some(false) => self.ready.notified().await,
                Some(true) => {
                    let written = match output.write_all(&lines).await {
                        Ok(()) => output.flush().await,
                        err => err,
                    };
                    if let Err(error) = written {
                        self.lost();
                        return Err(error);
                    }
                    lines.clear();
                }
            }
        }
    }

    fn write_to(&self, mut output: impl Write) -> io::Result<()> {
        let mut lines = Vec::new();
        loop {
            let mut state = self.lock();
            state.n_writing = 0;
            if lines.capacity() > KEEP {
                lines = Vec::new();
            }
            self.drained.notify_waiters();
            while state.lines.is_empty() {
                if state.is_ending {
                    return Ok(());
                }
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::swap(&mut state.lines, &mut lines);
            state.n_writing = lines.len();
            drop(state);
            let written = output.write_all(&lines).and_then(|()| output.flush());
            if let Err(error) = written {
                let mut state = self.lock();
                (state.is_gone, state.lines) = (true, Vec::new());
                self.drained.notify_waiters();
                return Err(error);
            }
            lines.clear();
        }
    }
}

/// An output that takes a little without waiting, if it has room.
#[derive(Debug)]
enum Direct {
    Pipe(OwnedFd),
    Socket(OwnedFd),
}

impl Direct {
    fn new(output: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let kind = match FileType::from_raw_mode(fstat(output)?.st_mode) {
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => return Ok(None),
        };
        Ok(Some(kind(output.try_clone_to_owned()?)))
    }

    /// Writes what there is room for; no more than a pipe takes at once.
    fn write_some(&self, lines: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Pipe(pipe) => {
                // It may block, so we look before; one that can be written takes that much, as long
                // as nobody else writes to it.
                let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
                match poll(&mut [PollFd::new(pipe, PollFlags::OUT)], Some(&at_once))? {
                    0 => Ok(0),
                    _ => rustix::io::write(pipe, lines),
                }
            }
            Self::Socket(socket) => send(socket, lines, SendFlags::DONTWAIT),
        }
    }
}

#[cfg(test)]
mod tests;

//! Where an agent's bytes come from and go to: a process of the conversation's own, a seat at a
//! shared one, or a task of this process.

use std::io;
use std::time::Duration;

use tieline_proc::{Child, Closed, Drained, StderrChunk};
use tokio::sync::mpsc;

use crate::inside::Inner;
use crate::shared::Seat;

/// The process behind a conversation.
pub(crate) enum Port {
    Own(Child),
    Shared(Seat),
    Inside(Inner),
}

impl Port {
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Own(child) => child.pid,
            Self::Shared(seat) => seat.pid,
            Self::Inside(_) => std::process::id(),
        }
    }

    pub(crate) fn take_stderr(&mut self) -> Option<mpsc::Receiver<StderrChunk>> {
        match self {
            Self::Own(child) => child.take_stderr(),
            Self::Shared(seat) => seat.take_stderr(),
            Self::Inside(_) => None,
        }
    }

    /// Until the process is gone for this conversation.
    pub(crate) async fn exited(&self) {
        match self {
            Self::Own(child) => drop(child.exited().await),
            Self::Shared(seat) => seat.exited().await,
            Self::Inside(inner) => inner.exited().await,
        }
    }

    /// Waits for whichever comes first; the end goes before more output, so that a descendant
    /// which floods the pipe cannot hide it.
    pub(crate) async fn next(
        &mut self,
        buffer: &mut [u8],
        may_read: bool,
        may_write: bool,
    ) -> Next {
        match self {
            Self::Own(child) => {
                let read = async {
                    match may_read {
                        true => child.read_stdout(buffer).await,
                        false => std::future::pending().await,
                    }
                };
                let write = async {
                    match &child.stdin {
                        Some(stdin) if may_write => drop(stdin.writable().await),
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    _ = child.exited() => Next::Exited,
                    read = read => Next::Read(read),
                    () = write => Next::Writable,
                }
            }
            Self::Shared(seat) => seat.next(buffer, may_read, may_write).await,
            Self::Inside(inner) => inner.next(buffer, may_read, may_write).await,
        }
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Own(Child { stdin: Some(stdin), .. }) => stdin.try_write(bytes),
            Self::Own(_) => Err(io::ErrorKind::BrokenPipe.into()),
            Self::Shared(seat) => seat.try_write(bytes),
            Self::Inside(inner) => inner.try_write(bytes),
        }
    }

    /// Nothing more is written.
    pub(crate) fn close_input(&mut self) {
        match self {
            Self::Own(child) => child.stdin = None,
            Self::Shared(seat) => seat.leave(),
            Self::Inside(inner) => inner.close_input(),
        }
    }

    pub(crate) fn signal(&self, signal: i32) {
        match self {
            Self::Own(child) => child.signal(signal),
            // A signal would hit everybody.
            Self::Shared(_) | Self::Inside(_) => {}
        }
    }

    pub(crate) fn begin_stop(&mut self, grace: Duration) {
        match self {
            Self::Own(child) => child.begin_stop(grace),
            Self::Shared(seat) => seat.leave(),
            Self::Inside(inner) => inner.begin_stop(grace),
        }
    }

    pub(crate) fn begin_kill(&mut self) {
        match self {
            Self::Own(child) => child.begin_kill(),
            Self::Shared(seat) => seat.leave(),
            Self::Inside(inner) => inner.begin_kill(),
        }
    }

    /// Reads what is left and ends everything the process started.
    pub(crate) async fn close(
        self,
        mut sink: impl FnMut(&[u8]),
        limit: Duration,
        patience: Duration,
    ) -> (Drained, Closed) {
        match self {
            Self::Own(child) => {
                let drained = child.drain(sink, limit).await;
                (drained, child.close(Duration::ZERO).await)
            }
            Self::Shared(seat) => {
                let (rest, closed) = seat.close(patience).await;
                sink(&rest);
                (Drained { cut: false }, closed)
            }
            Self::Inside(inner) => (Drained { cut: false }, inner.close(sink).await),
        }
    }
}

/// Writes what waits, as far as it is taken; `false` when more has to wait. Who takes no input any
/// more is going, and its exit tells the rest.
pub(crate) fn push(
    waiting: &mut Vec<u8>,
    pid: u32,
    write: impl Fn(&[u8]) -> io::Result<usize>,
) -> bool {
    while !waiting.is_empty() {
        match write(waiting) {
            Ok(n) => drop(waiting.drain(..n)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => {
                tracing::debug!(pid, %error, "the agent takes no input");
                waiting.clear();
            }
        }
    }
    true
}

/// What a process did.
pub(crate) enum Next {
    Exited,
    Read(io::Result<usize>),
    Writable,
}

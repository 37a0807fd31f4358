//! Signals that ask us to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The turn is to end.
    Turn,
    /// Everything is to end, now.
    Everything,
}

/// The first Ctrl-C stops the turn, the second everything; so do the signals that end programs.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    was_interrupted: bool,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            was_interrupted: false,
        })
    }

    /// The next one. Can be cancelled.
    pub(crate) async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => match std::mem::replace(&mut self.was_interrupted, true) {
                false => Stop::Turn,
                true => Stop::Everything,
            },
            _ = self.terminate.recv() => Stop::Everything,
            _ = self.hangup.recv() => Stop::Everything,
        }
    }
}

//! Every wait and every buffer has a limit; they are all here.

use std::time::Duration;

/// Limits of a conversation.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The longest line of an agent that is read whole.
    pub line: usize,
    /// The longest turn; none is as long as it takes.
    pub turn_timeout: Option<Duration>,
    /// An agent that has had nothing to do for this long is put to sleep.
    pub idle: Duration,
    /// How long an agent has to stop a turn after it was asked to, before it is ended.
    pub interrupt_grace: Duration,
    /// On a wire without an end of turn, silence of this length ends it, unless a command runs or an
    /// answer is waited for; none waits for the process.
    pub silence: Option<Duration>,
    /// How long the wire has to end a turn itself after the notify program said it is over.
    pub notify_grace: Duration,
    /// How long an agent has to exit by itself once its input is closed.
    pub exit_grace: Duration,
    /// How long an agent has between `SIGTERM` and `SIGKILL`.
    pub stop_grace: Duration,
    /// How long the output of an agent that has exited is read, when somebody else holds its pipe.
    pub drain: Duration,
    /// How long a turn waits for a store that is full, before it fails.
    pub store_patience: Duration,
    /// How many bytes of raw lines are kept for a conversation, as they lie on disk; the oldest go
    /// first. Events are never dropped.
    pub raw_bytes: Option<u64>,
    /// Commands that may wait for a conversation; senders wait beyond that.
    pub inbox: usize,
    /// Turns that may wait for the running one; more are refused.
    pub queued_turns: usize,
    /// How many recent entries are kept in memory for subscribers.
    pub tail_entries: usize,
    /// How many bytes of recent entries are kept in memory for subscribers.
    pub tail_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line: 64 << 20,
            turn_timeout: None,
            idle: Duration::from_secs(600),
            interrupt_grace: Duration::from_secs(5),
            silence: Some(Duration::from_secs(30)),
            notify_grace: Duration::from_secs(1),
            exit_grace: Duration::from_secs(2),
            stop_grace: Duration::from_millis(500),
            drain: tieline_proc::DRAIN,
            store_patience: Duration::from_secs(10),
            raw_bytes: Some(256 << 20),
            inbox: 64,
            queued_turns: 16,
            tail_entries: 32 * 1024,
            tail_bytes: 512 << 10,
        }
    }
}

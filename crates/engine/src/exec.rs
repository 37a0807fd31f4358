//! The commands of a session: started, listened to, written to, and all ended with it.
//!
//! # How it works
//!
//! [`Commands`] belongs to one session. Each command has a task of its own (`process.rs`) that owns
//! the [`Job`](tieline_proc::Job) and moves bytes: to the [`Update`]s somebody listens to, and to the
//! part of the output that is kept (`kept.rs`) for the model. A call waits for its command to end or
//! for its time to be over: [`Commands::run`] then ends the command, [`Commands::exec`] leaves it
//! running as a session that [`Commands::write`] speaks to.
//!
//! # Invariants
//!
//! * Who does not take updates holds the command back, never its end: stopping works all the same.
//! * Memory for a command does not depend on how much it prints.
//! * What a finished command leaves running goes on, and is read, until [`Commands::clean`] or the end
//!   of the session; then nobody is left, whatever they did to get away.
//! * A call that is dropped ends its command.

mod commands;
mod env;
mod error;
mod find;
mod kept;
mod process;
mod text;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tieline_proc::{Env, Exit, TerminalSize};
use tokio::sync::mpsc;

pub use commands::{Commands, Session};
pub use env::{environment, for_tools};
pub use error::Error;
pub use kept::Printed;
pub use text::{Truncated, truncate_middle};
pub use tieline_proc::Stream;

/// Every limit of a session's commands.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many commands there may be at once.
    pub max_commands: usize,
    /// How many bytes of a command's output are kept: the first quarter from its beginning, the rest
    /// from its end.
    pub kept: usize,
    /// How many pieces of output a listener is told for each command.
    pub max_deltas: u32,
    /// How many bytes such a piece has at most.
    pub delta: usize,
    /// How long [`Commands::run`] lets a command run that names no time.
    pub timeout: Duration,
    /// How long [`Commands::exec`] waits if it is not told.
    pub exec_yield: Duration,
    /// How long [`Commands::write`] waits if it is not told.
    pub write_yield: Duration,
    /// The least that either waits.
    pub min_yield: Duration,
    /// The most that either waits.
    pub max_yield: Duration,
    /// How long output is still read after a command has ended while somebody holds its streams.
    pub drain: Duration,
    /// How long a command that is interrupted may clean up.
    pub interrupt_grace: Duration,
    /// How long a command whose time is over, or whose session ends, may clean up.
    pub stop_grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_commands: 64,
            kept: 1024 * 1024,
            max_deltas: 10_000,
            delta: 8 * 1024,
            timeout: Duration::from_secs(10),
            exec_yield: Duration::from_secs(10),
            write_yield: Duration::from_millis(250),
            min_yield: Duration::from_millis(250),
            max_yield: Duration::from_secs(30),
            drain: tieline_proc::DRAIN,
            interrupt_grace: Duration::from_millis(50),
            stop_grace: Duration::from_millis(500),
        }
    }
}

/// A command to start.
pub struct Start {
    /// The program, as a name or a path, and its arguments.
    pub argv: Vec<OsString>,
    /// The directory to start in, an absolute path.
    pub cwd: PathBuf,
    /// The whole environment; see [`environment`].
    pub env: Env,
    /// What it reads from.
    pub input: Input,
    /// What puts it into a sandbox.
    pub wrap: Option<Wrap>,
    /// How long it may run; [`Commands::run`] has a limit without it, [`Commands::exec`] none.
    pub timeout: Option<Duration>,
    /// Who is told of its output and its end. A full queue holds the command back.
    pub listener: Option<mpsc::Sender<Update>>,
}

impl Start {
    /// A command without input, sandbox, time limit or listener.
    pub fn new<A: Into<OsString>>(
        argv: impl IntoIterator<Item = A>,
        cwd: impl Into<PathBuf>,
        env: Env,
    ) -> Start {
        let argv = argv.into_iter().map(Into::into).collect();
        let (wrap, timeout, listener) = (None, None, None);
        Start { argv, cwd: cwd.into(), env, input: Input::None, wrap, timeout, listener }
    }
}

/// Turns a program and its arguments into those of a sandbox that runs it. The error says why the
/// sandbox cannot do what it should; then the command does not run.
pub type Wrap = Box<
    dyn FnOnce(PathBuf, Vec<OsString>) -> Result<(PathBuf, Vec<OsString>), String> + Send + Sync,
>;

/// What a command reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Nothing: its input is at its end from the start.
    None,
    /// What is written to it.
    Pipe,
    /// A terminal, which also shows what it prints.
    Terminal(TerminalSize),
}

/// The number of a command in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a listener is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Something was printed.
    Output {
        /// Where.
        stream: Stream,
        /// The bytes, which may end inside a character.
        bytes: Vec<u8>,
    },
    /// The command has ended; nothing follows.
    Ended(Ended),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code or signal; `None` only if its host had to be killed.
    pub exit: Option<Exit>,
    /// Why.
    pub cause: Cause,
    /// How long it ran.
    pub elapsed: Duration,
    /// Whether a descendant still held its output open, so that more could have come.
    pub cut: bool,
    /// How many bytes the listener was not told: what was over its limit of pieces, and what it had
    /// not taken by the end.
    pub withheld: u64,
}

impl Ended {
    /// The exit code as shells say it: 124 for a command whose time was over, 128 and the signal's
    /// number for one that was killed.
    pub fn code(&self) -> i32 {
        match (self.cause, self.exit) {
            (Cause::TimedOut { .. }, _) => 124,
            (_, Some(Exit { code: Some(code), .. })) => code,
            (_, Some(Exit { signal: Some(signal), .. })) => 128 + signal,
            _ => -1,
        }
    }
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// By itself.
    Itself,
    /// It ran longer than this.
    TimedOut {
        /// How long it might have run.
        limit: Duration,
    },
    /// The turn was interrupted, or the call that waited for it was given up.
    Interrupted,
    /// It was cleaned away, or the session has ended.
    Closed,
}

/// A command that ran to its end.
#[derive(Debug, Clone)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// What it printed on both streams, in the order of arrival.
    pub output: Printed,
    /// What it printed on stdout.
    pub stdout: Printed,
    /// What it printed on stderr.
    pub stderr: Printed,
}

/// What a call of [`Commands::exec`] or [`Commands::write`] found.
#[derive(Debug, Clone)]
pub struct Yielded {
    /// What was printed since the last such call.
    pub output: Printed,
    /// How long this call took.
    pub waited: Duration,
    /// What the command does.
    pub state: State,
}

/// What a command does at the end of a call.
#[derive(Debug, Clone)]
pub enum State {
    /// It goes on under this number.
    Running(SessionId),
    /// The same, and the call was broken off by [`Commands::interrupt`].
    Interrupted(SessionId),
    /// It has ended; the number is free of meaning from now on. The texts are those of its whole life.
    Ended(Box<Ran>),
}

#[cfg(test)]
mod tests;

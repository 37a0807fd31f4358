//! An agent that runs within this process: lines over channels in place of pipes.
//!
//! Everything else is as with a program: a driver reads its lines, they are kept as frames, and
//! whoever owns the conversation ends it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tieline_event::Failure;
use tokio::sync::mpsc;

/// An agent in waiting.
pub struct Inside {
    /// What it is called where a program's path would stand.
    pub name: &'static str,
    /// Runs it until its input ends; gives what would be its exit code.
    pub run: Box<dyn FnOnce(Pipe) -> Running + Send>,
}

/// A running agent.
pub type Running = Pin<Box<dyn Future<Output = i32> + Send>>;

/// What an agent within this process has in place of stdin and stdout, and to remember by.
pub struct Pipe {
    /// Lines for the agent, in pieces as they were written. Its end is the end of the input.
    pub input: mpsc::Receiver<Vec<u8>>,
    /// Lines from the agent, in pieces of any size.
    pub output: mpsc::Sender<Vec<u8>>,
    /// What survives it.
    pub journal: Arc<dyn Journal>,
}

/// What an agent within this process writes down to go on from after a crash. Entries belong to a
/// native session and are kept in order.
pub trait Journal: Send + Sync {
    /// Writes entries; they are on disk when this is done, all of them or none.
    fn append(&self, session: &str, entries: Vec<Vec<u8>>) -> Journaled<()>;

    /// Everything that was written for a session of this conversation, or of the one it was forked
    /// from.
    fn read(&self, session: &str) -> Journaled<Vec<Vec<u8>>>;
}

/// What a journal will have done.
pub type Journaled<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inside({})", self.name)
    }
}

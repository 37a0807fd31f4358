//! An MCP server: other agents, and whoever else speaks the Model Context Protocol, delegate tasks
//! with it.
//!
//! `tools` is what a model reads and what it may say, `report` what it is told of a task, both data
//! in and data out; `server` carries calls out. What a task needs of the program around it, a process
//! above all, is behind [`Desk`].

mod hangup;
mod patient;
mod report;
mod server;
mod tools;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tieline_event::{BlobRef, Event, Mode, Seq};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::task::state::{Letter, State, TaskId};
use patient::Patient;

/// What the server asks of the program around it. Every call may block.
pub trait Desk: Send + Sync + 'static {
    /// Begins a task, or gives one more to do, in a process that outlives us.
    ///
    /// # Errors
    /// When that cannot be.
    fn begin(&self, order: Order) -> Result<Begun, Refusal>;

    /// How a task stands.
    ///
    /// # Errors
    /// When there is none of this name.
    fn look(&self, id: &TaskId) -> Result<View, Refusal>;

    /// Every task, the one that was worked on last first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn all(&self) -> Result<Vec<View>, Refusal>;

    /// Shows every event of a task after one, and says which was the last.
    ///
    /// # Errors
    /// When they cannot be read.
    fn events(&self, id: &TaskId, after: Seq, see: &mut dyn FnMut(&Event)) -> Result<Seq, Refusal>;

    /// The whole of a large text.
    fn blob(&self, blob: &BlobRef) -> Option<Vec<u8>>;

    /// Answers questions of a task, and goes on with one that is at rest.
    ///
    /// # Errors
    /// When a question is not open.
    fn answer(&self, id: &TaskId, letters: &[Letter]) -> Result<(), Refusal>;

    /// Stops a task, if it runs.
    ///
    /// # Errors
    /// When it does not end.
    fn cancel(&self, id: &TaskId) -> Result<(), Refusal>;
}

/// Why something was not done, and what to do instead: a sentence for whoever asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    /// For this reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A task that somebody wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// What is to be done.
    pub task: String,
    /// Its name; of one that exists it is more to do. None: a new one.
    pub id: Option<TaskId>,
    /// The agent.
    pub agent: Option<String>,
    /// Where it works.
    pub cwd: Option<PathBuf>,
    /// A file with the plan.
    pub plan: Option<PathBuf>,
    /// How much the agent may do without asking.
    pub mode: Option<Mode>,
    /// The model.
    pub model: Option<String>,
    /// Commands that must pass.
    pub verify: Vec<String>,
    /// How much it may use.
    pub budget: Vec<String>,
    /// In a working tree of its own.
    pub worktree: bool,
    /// Who orders it, by its own name.
    pub client: Option<String>,
}

/// A task that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Its name.
    pub id: TaskId,
    /// What was said of it before.
    pub after: Seq,
}

/// A task as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Its name.
    pub id: TaskId,
    /// The agent.
    pub agent: String,
    /// Where it works.
    pub workspace: String,
    /// What is remembered of it.
    pub state: State,
    /// A living process works on it.
    pub is_alive: bool,
    /// Its last event.
    pub last: Seq,
}

/// How to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// The version of the program.
    pub version: &'static str,
    /// How long a call follows a task unless it says so itself.
    pub timeout: Option<Duration>,
}

/// Why a client could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It did not begin as the protocol says.
    #[error("the client did not begin a session")]
    Begin(#[source] Box<ServerInitializeError>),
    /// A task of ours ended badly.
    #[error("the server ended")]
    Ended(#[source] tokio::task::JoinError),
}

/// Serves a client until it hangs up. Tasks go on without it.
///
/// # Errors
/// When it does not speak the protocol.
pub async fn serve(
    desk: Arc<dyn Desk>,
    options: Options,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), Error> {
    let (input, gone) = hangup::watched(input);
    let server = server::Server { desk, options, gone };
    let transport = Patient::new(AsyncRwTransport::new_server(input, output));
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // Whoever says nothing wants nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(err) => return Err(Error::Begin(Box::new(err))),
    };
    let reason = running.waiting().await.map_err(Error::Ended)?;
    tracing::debug!(?reason, "the client is gone");
    Ok(())
}

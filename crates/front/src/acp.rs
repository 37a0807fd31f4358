//! The Agent Client Protocol: any of our agents for any editor that speaks it.
//!
//! # How it works
//!
//! [`serve`] reads the client's lines. What is about a session goes to that session's own task, which
//! is the only one that writes its updates and answers, so that they have one order; everything else
//! is a task of its own, so that nothing waits for anything it does not need. All lines leave through
//! one outbox. `to_acp` makes updates of events, `call` tool calls of items, `ask` permission requests
//! and forms of requests; they are data in, lines out.
//!
//! # Invariants
//!
//! * Every request is answered exactly once, a prompt after the last update of its turn.
//! * A cancelled prompt ends as `cancelled`, however its turn ended.
//! * A tool call is created before anything else is said of it, once.
//! * A client that does not read holds up its own updates, and memory stays bounded.

mod ask;
mod call;
mod client;
mod connection;
mod diff;
mod from_acp;
mod known;
mod offer;
mod outcome;
mod page;
mod session;
mod shared;
mod to_acp;

use std::future::Future;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tieline_event::{ConversationKey, Failure, Mode};
use tieline_hub::Hub;
use tokio::io::AsyncRead;

use crate::outbox::Outbox;
use connection::Connection;

/// Names the agent of a new session in a directory, or says why there is none.
pub type Choose = Arc<dyn Fn(&Path) -> Result<String, Failure> + Send + Sync>;

/// How editors are served.
#[derive(Clone)]
pub struct Options {
    /// The agent of a new session in a directory.
    pub choose: Choose,
    /// A key nobody has.
    pub new_key: Arc<dyn Fn() -> ConversationKey + Send + Sync>,
    /// The modes an agent is known to have, before it tells them itself.
    pub modes: fn(&str) -> &'static [Mode],
    /// The mode of new sessions.
    pub mode: Option<Mode>,
    /// The model of new sessions.
    pub model: Option<String>,
    /// Who answers what the client cannot be asked.
    pub on_request: Rule,
    /// Logging in and out.
    pub accounts: Arc<dyn Accounts>,
    /// Where to remember what agents offer, so that a new session can tell before its agent is there.
    pub known: Option<PathBuf>,
    /// The longest line of the client.
    pub line: usize,
    /// Our version.
    pub version: &'static str,
    /// What tells the prompts of this process from those of others.
    pub nonce: String,
}

/// Who answers when nobody can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rule {
    /// No.
    #[default]
    Deny,
    /// Yes; a question gets no made-up answer.
    Allow,
    /// No, and the turn is stopped.
    Fail,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::Fail => "fail",
        }
    }
}

/// A way to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Its name for programs.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Arguments with which the client runs this program again in a terminal; without them the agent
    /// needs no terminal for it.
    pub terminal: Option<Vec<String>>,
}

/// Something that takes a while.
pub type Work<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// Logging in and out of what the agent uses.
pub trait Accounts: Send + Sync {
    /// The ways to log in.
    fn logins(&self) -> Vec<Login>;

    /// Whether a login is in place.
    fn check<'a>(&'a self, login: &'a str) -> Work<'a>;

    /// Logs out.
    fn log_out(&self) -> Work<'_>;
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection itself.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// How long conversations have to close.
const CLOSING: Duration = Duration::from_secs(10);

/// How long the last lines may take.
const DRAINING: Duration = Duration::from_secs(2);

/// Serves one client until it hangs up or a signal comes; then every agent ends.
///
/// # Errors
/// When input, output or signals cannot be had. A client that hung up is no error.
pub async fn serve(
    hub: Hub,
    options: Options,
    input: impl AsyncRead + Unpin,
    output: impl Write + AsFd + Send + 'static,
) -> Result<(), Error> {
    let io = |what| move |source| Error::Io { what, source };
    let (outbox, writer) = Outbox::new("acp-writer", output).map_err(io("start a thread"))?;
    let mut connection = Connection::new(hub.clone(), options, outbox.clone());
    let served = connection.run(input).await;
    if tokio::time::timeout(CLOSING, hub.close_all()).await.is_err() {
        tracing::warn!("not every conversation closed in time; the rest ends with this process");
    }
    connection.end().await;
    outbox.finish();
    // A client that does not read any more keeps the thread; the process ends without it.
    let written = tokio::task::spawn_blocking(move || writer.join());
    match tokio::time::timeout(DRAINING, written).await {
        Ok(Ok(Ok(Err(error)))) => tracing::debug!(%error, "the client is gone"),
        Ok(_) => {}
        Err(_) => tracing::debug!("the client does not read"),
    }
    served
}

//! The queue protocol: submissions in, events out, any of our agents behind it.
//!
//! # How it works
//!
//! A connection is a queue pair with one session, and a session is one conversation. [`channel`] is the
//! pair itself, for programs in this process; [`serve`] moves it as lines over a pair of streams, and
//! [`Listener`] over a socket, one session for each connection. `order` makes our words of
//! submissions, `to_sqeq` the protocol's events of ours, `ask` requests and their answers; they are
//! data in, data out. One task per session (`session`) is the only one who tells its events, so that
//! they have one order.
//!
//! The protocol's description and the programs that spoke it do not agree. [`Compat`] says which of
//! the two is followed; `docs/sqeq.md` has the table.
//!
//! # Invariants
//!
//! * Nothing a client writes ends its session but `shutdown` and the end of its input.
//! * Every task that was told as started ends with one event that says how.
//! * A client that does not read holds up its own events, and memory stays bounded.

mod ask;
mod change;
mod connection;
mod context;
mod count;
mod listen;
mod order;
mod out;
mod session;
mod to_sqeq;
pub mod token;

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tieline_event::{ConversationKey, Mode};
use tieline_hub::Hub;
use tieline_wire::sqeq::{Event, Submission};
use tokio::io::{AsyncRead, Interest};
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;

use crate::acp::Choose;
use crate::outbox::Outbox;
use order::Incoming;
use out::Out;
use session::{End, Session};

pub use listen::{Address, BadAddress, Listener, end_signal};
pub use tieline_wire::sqeq::schema::json_schema;

/// Which of the two is followed where they do not agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compat {
    /// The protocol's description.
    #[default]
    Seed,
    /// `codex proto` as it last was.
    Upstream,
}

/// How clients are served.
#[derive(Clone)]
pub struct Options {
    /// The agent of a new session in a directory.
    pub choose: Choose,
    /// A key nobody has; clients see it as the session's id.
    pub new_key: Arc<dyn Fn() -> ConversationKey + Send + Sync>,
    /// Where a session works that names no directory.
    pub workspace: PathBuf,
    /// The mode of new sessions.
    pub mode: Option<Mode>,
    /// The model of new sessions.
    pub model: Option<String>,
    /// Which behaviour.
    pub compat: Compat,
    /// The longest line of a client.
    pub line: usize,
}

/// Why a client was not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Somebody listens there.
    #[error("somebody listens on {0} already")]
    InUse(PathBuf),
    /// Something else is there.
    #[error("{0} is there and no socket; choose another path")]
    NoSocket(PathBuf),
    /// The address leads outside.
    #[error(
        "{0} can be reached from other machines, and the protocol has no encryption; listen on \
         127.0.0.1 behind a tunnel, or say --allow-remote"
    )]
    Remote(std::net::SocketAddr),
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Submissions and events that may wait in a channel.
const QUEUE: usize = 64;

/// How long the last lines may take.
const DRAINING: Duration = Duration::from_secs(2);

/// The queue pair itself: what is sent goes in, what happens comes out. Both are bounded; who does not
/// receive is waited for. The session ends with `shutdown`, or when the sender is dropped and the
/// running task is over, or when the receiver is dropped. Needs a runtime.
pub fn channel(
    hub: Hub,
    options: Options,
) -> (mpsc::Sender<Submission<'static>>, mpsc::Receiver<Event<'static>>) {
    let (submissions, mut taken) = mpsc::channel::<Submission<'static>>(QUEUE);
    let (told, events) = mpsc::channel(QUEUE);
    let (orders, inbox) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        while let Some(submission) = taken.recv().await {
            // A session that has ended takes no more.
            if orders.send(Incoming::of(&submission)).await.is_err() {
                break;
            }
        }
    });
    let gone = told.clone();
    let session = Session::new(hub, options, inbox, Out::channel(told), End::Lingers);
    tokio::spawn(session.run(async move { gone.closed().await }));
    (submissions, events)
}

/// Serves one client on a pair of streams until it says `shutdown`, hangs up, or a signal comes. When
/// its input ends, the running task goes on to its end as long as somebody reads.
///
/// # Errors
/// When input, output or signals cannot be had. A client that hung up is no error.
pub async fn serve(
    hub: Hub,
    options: Options,
    input: impl AsyncRead + Unpin,
    output: impl Write + AsFd + Send + 'static,
) -> Result<(), Error> {
    let ours = output.as_fd().try_clone_to_owned().map_err(Error::io("watch the output"))?;
    let (outbox, writer) =
        Outbox::new("sqeq-writer", output).map_err(Error::io("start a thread"))?;
    let served = connection::serve(hub, options, input, outbox.clone(), hang_up(ours)).await;
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

/// Until nobody reads from this any more; for what cannot be watched, such as a file, for ever.
async fn hang_up(output: OwnedFd) {
    // Unchecked, because it may be a socket, and must stay a thing that blocks.
    if let Ok(output) = Sender::from_owned_fd_unchecked(output)
        // The reader of a pipe that goes is an error, that of a socket a hang-up.
        && output.ready(Interest::ERROR | Interest::READABLE).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

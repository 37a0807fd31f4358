//! What an agent's notify program is told at the end of a turn, on its way to the hub.
//!
//! The agent calls the program with one JSON object. [`Notice`] is the program's side: it checks the
//! object and delivers it as one line. [`Socket`] is the side of a running hub: a Unix socket in a
//! private directory, where each connection brings one notice and gets one line back.
//!
//! Only the same user is heard: the directory is private, and so is the socket, and the peer's user
//! is asked for.

mod listen;
mod send;

#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use tieline_hub::Notification;

pub use listen::{Listening, Socket};
pub use send::{Notice, sockets};

/// The longest notice that is taken. It has the whole of the last message in it.
const MOST: usize = 4 << 20;

/// How long one delivery may take, on either side.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a notice was not delivered, or nobody can be told one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What the agent said is no JSON object.
    #[error("the notification must be a JSON object: {0}")]
    NotAnObject(String),
    /// Nobody listens.
    #[error("no running tieline took the notification: {0}")]
    NobodyThere(String),
    /// Nobody reads the FIFO.
    #[error("nobody reads {}; start its reader first", .0.display())]
    NoReader(PathBuf),
    /// It is something else.
    #[error("{} is not a {wanted}; {advice}", path.display())]
    WrongKind {
        /// What was named.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// No path is short enough for a socket.
    #[error("{} is too long a path for a socket", .0.display())]
    TooLong(PathBuf),
    /// Somebody else could reach the socket.
    #[error("{} is not private to you; remove it, or make it so with chmod 700", .0.display())]
    NotPrivate(PathBuf),
    /// Another process listens there.
    #[error("{} is in use", .0.display())]
    InUse(PathBuf),
    /// A file, a FIFO or a socket failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// What a line means for the hub; nothing, if it is about something else than the end of a turn.
fn notification(line: &[u8]) -> Result<Option<Notification>, serde_json::Error> {
    let told: Map<String, Value> = serde_json::from_slice(line)?;
    let word = |name: &str| told.get(name).and_then(Value::as_str);
    let is_end = word("type") == Some("agent-turn-complete");
    Ok(is_end.then(|| Notification {
        session: word("thread-id").map(str::to_owned),
        turn: word("turn-id").map(str::to_owned),
        text: word("last-assistant-message").unwrap_or_default().to_owned(),
    }))
}

/// Whether a directory is ours and nobody else's. In a place for everybody somebody else may have
/// been there first, with a link perhaps.
fn is_ours_alone(dir: &Path) -> Result<bool, Error> {
    let metadata = dir.symlink_metadata().map_err(Error::io("look at", dir))?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    Ok(metadata.is_dir() && is_ours && metadata.mode() & 0o077 == 0)
}

/// Where sockets of a data directory may be, the first choice first.
fn places(data: &Path) -> [PathBuf; 2] {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute())
    };
    let runtime = absolute("XDG_RUNTIME_DIR").unwrap_or_else(std::env::temp_dir);
    let user = rustix::process::geteuid().as_raw();
    // Other stores of the same user have places of their own.
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let store = hasher.finish() as u32;
    [data.join("notify"), runtime.join(format!("tieline-notify-{user}-{store:08x}"))]
}

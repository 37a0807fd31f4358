//! What can go wrong.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tieline_event::{ConversationKey, Epoch, RequestId};

use crate::batch::Batch;
use crate::owner::Owner;
use crate::wait::Holder;

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A living process owns the conversation.
    #[error("conversation {key} is held by {owner}")]
    Busy {
        /// Which conversation.
        key: ConversationKey,
        /// Who holds it.
        owner: Box<Owner>,
    },
    /// The lease is not this writer's any more. Nothing was written.
    #[error("conversation {key} has another owner now (the lease was of epoch {epoch})")]
    LostLease {
        /// Which conversation.
        key: ConversationKey,
        /// The epoch of the lease that was lost.
        epoch: Epoch,
    },
    /// Numbers must go on without a gap. Nothing was written.
    #[error("{what} of conversation {key} goes on at {expected}, not at {got}")]
    Gap {
        /// `seq` or `frame`.
        what: &'static str,
        /// Which conversation.
        key: ConversationKey,
        /// The number that comes next.
        expected: u64,
        /// The number that came.
        got: u64,
    },
    /// The request is not open: it is unknown, or was resolved or expired before.
    #[error("request {request} of conversation {key} is not open")]
    RequestNotOpen {
        /// Which conversation.
        key: ConversationKey,
        /// Which request.
        request: RequestId,
    },
    /// No conversation has this key.
    #[error("there is no conversation {0}")]
    NoConversation(ConversationKey),
    /// The disk is full. Nothing was written; the same batch works when there is space again.
    #[error("the disk is full")]
    Full {
        /// The database's word.
        source: rusqlite::Error,
    },
    /// The disk failed or is read-only. Nothing was written.
    #[error("the disk of the store failed")]
    Io {
        /// The database's word.
        source: rusqlite::Error,
    },
    /// Another process kept the database locked for longer than the busy timeout.
    #[error("the database is kept locked by {}", holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string))]
    Locked {
        /// Who that is, where the system tells.
        holder: Option<Box<Holder>>,
        /// The database's word.
        source: rusqlite::Error,
    },
    /// The database is damaged. It is never overwritten; see [`Store::set_aside`](crate::Store::set_aside).
    #[error("the database {} is damaged: {detail}", path.display())]
    Corrupt {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A newer version of this program wrote the database.
    #[error("the database {} has schema {found}; this version knows schemas up to {known}", path.display())]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// The database is an older version's, and a process of that version holds a conversation.
    #[error("the database {} is an older version's, and in use by {owner}", path.display())]
    Outdated {
        /// The database file.
        path: PathBuf,
        /// Who holds it.
        owner: Box<Owner>,
    },
    /// Anything else the database said.
    #[error("the database refused")]
    Sqlite {
        /// The database's word.
        source: rusqlite::Error,
    },
    /// A file or directory of the store could not be used.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others may enter the directory, and it holds more than the store, so its mode is not ours to change.
    #[error("other users can enter {} (mode {mode:o}); choose another directory or run chmod 700 on it", path.display())]
    LooseDirectory {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Where the store should be is something else.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// What it is called.
        path: PathBuf,
    },
    /// Where a file of the store should be is something else.
    #[error("{} is not a file but a link, a device or a directory", path.display())]
    NotAFile {
        /// What it is called.
        path: PathBuf,
    },
    /// What was asked writes, and the store can only be read.
    #[error("the store {} cannot be written", path.display())]
    ReadOnly {
        /// Its directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store cannot be written, and as it is it cannot be read either.
    #[error("the store {} cannot be written, which reading it would need: {why}", path.display())]
    Unreadable {
        /// Its directory.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// The database that was opened is not there any more. What was written since is lost with it.
    #[error("the store {} was deleted or moved while it was in use; nothing more is kept", path.display())]
    Gone {
        /// The database file.
        path: PathBuf,
    },
    /// `TIELINE_HOME` depends on where one stands.
    #[error("TIELINE_HOME is {}, which is not an absolute path", path.display())]
    RelativeHome {
        /// Its value.
        path: PathBuf,
    },
    /// No environment variable says where the data goes.
    #[error("none of TIELINE_HOME, XDG_DATA_HOME and HOME is set to an absolute path")]
    NoHome,
    /// JSON in the database could not be read, or a value could not be written as JSON.
    #[error("cannot convert the {what}")]
    Json {
        /// Of what.
        what: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Text in the database is not one of the values known here.
    #[error("the database holds an unknown {what}: {found:?}")]
    Unknown {
        /// Of what.
        what: &'static str,
        /// The text.
        found: String,
    },
    /// An export could not be written out.
    #[error("cannot write the export")]
    Export {
        /// What the system said.
        source: std::io::Error,
    },
    /// Frames or a blob could not be compressed.
    #[error("cannot compress")]
    Compress {
        /// The compressor's word.
        source: std::io::Error,
    },
    /// The writer thread could not be started.
    #[error("cannot start the writer thread")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
    /// The writer thread is gone.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// Whether the same batch may succeed later, unchanged.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Io { .. } | Self::Locked { .. })
    }

    /// Names the database file, or who keeps it locked, in an error that was made without knowing it.
    pub(crate) fn at(self, database: &Path) -> Self {
        match self {
            Self::Corrupt { path, detail } if path.as_os_str().is_empty() => {
                Self::Corrupt { path: database.to_owned(), detail }
            }
            Self::Locked { holder: None, source } => {
                Self::Locked { holder: Holder::of(database).map(Box::new), source }
            }
            other => other,
        }
    }

    pub(crate) fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt { path: PathBuf::new(), detail: detail.into() }
    }

    pub(crate) fn file(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    pub(crate) fn json(what: &'static str) -> impl FnOnce(serde_json::Error) -> Self {
        move |source| Self::Json { what, source }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        /// There is no room for the index of the log; the code is one of input and output.
        const NO_ROOM_FOR_INDEX: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        let extended = source.sqlite_error().map(|error| error.extended_code);
        match source.sqlite_error_code() {
            _ if extended == Some(NO_ROOM_FOR_INDEX) => Self::Full { source },
            Some(ErrorCode::DiskFull) => Self::Full { source },
            Some(ErrorCode::SystemIoFailure | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
                Self::Io { source }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Locked { holder: None, source }
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::corrupt(source.to_string())
            }
            _ => Self::Sqlite { source },
        }
    }
}

/// A batch that was not written, and why. Nothing of it is in the store.
#[derive(Debug)]
pub struct Rejected {
    /// Why.
    pub error: Error,
    /// The batch, to be tried again; absent when the writer thread is gone.
    pub batch: Option<Box<Batch>>,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Rejected {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl From<Rejected> for Error {
    fn from(rejected: Rejected) -> Self {
        rejected.error
    }
}

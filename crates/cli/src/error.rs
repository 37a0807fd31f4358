//! What a user is told when something cannot be done: one line, with what to do next.

use std::error::Error as StdError;
use std::io::{self, Write};
use std::process::ExitCode;

use tieline_event::Failure;
use tieline_front::notify;
use tieline_front::sanitize::one_line;
use tieline_hub as hub;
use tieline_store as store;

use crate::exit::Exit;

/// Why a command was not carried out.
#[derive(Debug)]
pub(crate) struct Error {
    exit: Exit,
    message: String,
    is_busy: bool,
}

impl Error {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), is_busy: false }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Writing our own output failed. Whoever closed a pipe knows, and is told nothing.
    pub(crate) fn output(err: &io::Error) -> Self {
        match err.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Exit::Output, ""),
            _ => Self::new(Exit::Output, format!("cannot write the output: {err}")),
        }
    }

    /// Tells the user and says how to end.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            let line = format!("tieline: {}\n", one_line(&self.message));
            // Nobody is left to be told when this fails.
            io::stderr().write_all(line.as_bytes()).ok();
        }
        self.exit.into()
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Another process holds the conversation.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }
}

/// An error and everything behind it, on one line.
pub(crate) fn chain(err: &dyn StdError) -> String {
    let mut text = err.to_string();
    let mut source = err.source();
    while let Some(err) = source {
        let next = err.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        source = err.source();
    }
    text
}

impl From<store::Error> for Error {
    fn from(err: store::Error) -> Self {
        use store::Error as E;
        let text = chain(&err);
        match err {
            E::NoConversation(_) => Self::usage(format!("{text}; `tieline list` shows them")),
            E::Export { source } => Self::output(&source),
            E::Busy { owner, .. } => Self {
                is_busy: true,
                ..Self::new(
                    Exit::Store,
                    format!(
                        "{text}; wait for it (`tieline run --queue` does), or end it with: kill {}",
                        owner.pid
                    ),
                )
            },
            E::Corrupt { .. } => Self::new(
                Exit::Store,
                format!(
                    "{text}; nothing was changed; `tieline doctor --set-aside` renames it and \
                     begins a new one"
                ),
            ),
            E::Newer { .. } => Self::new(Exit::Store, format!("{text}; update tieline")),
            E::Outdated { owner, .. } => Self::new(
                Exit::Store,
                format!("{text}; wait for its end, or end it with: kill {}", owner.pid),
            ),
            E::Full { .. } => Self::new(
                Exit::Store,
                format!(
                    "{text}; make room there; with about a megabyte `tieline gc --max-size 0` makes \
                     the store smaller"
                ),
            ),
            E::NoHome => Self::new(Exit::Store, format!("{text}; set one of them or use --store")),
            E::LooseDirectory { .. } | E::Unreadable { .. } | E::Gone { .. } => {
                Self::new(Exit::Store, text)
            }
            E::NotADirectory { .. } => {
                Self::new(Exit::Store, format!("{text}; choose a directory with --store"))
            }
            E::NotAFile { .. } => Self::new(
                Exit::Store,
                format!("{text}; nothing was changed; choose another directory with --store"),
            ),
            E::ReadOnly { .. } => Self::new(
                Exit::Store,
                format!(
                    "{text}; `tieline list`, `show` and `export` can read it; choose another one \
                         with --store to go on"
                ),
            ),
            E::RelativeHome { .. } => Self::usage(format!("{text}; set it to one, or use --store")),
            _ => Self::new(Exit::Store, format!("{text}; `tieline doctor` looks closer")),
        }
    }
}

impl From<hub::Error> for Error {
    fn from(err: hub::Error) -> Self {
        match err {
            hub::Error::Store(err) => err.into(),
            hub::Error::Agent(failure) => failure.into(),
            hub::Error::OtherAgent { .. } | hub::Error::Incomplete(_) => {
                Self::usage(err.to_string())
            }
            hub::Error::Lost(_) => Self::new(
                Exit::Store,
                format!(
                    "{}; what can be done about the store is told by `tieline doctor`; then say it \
                     again",
                    chain(&err)
                ),
            ),
            _ => Self::new(Exit::Failed, chain(&err)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::new(Exit::of_failure(failure.code), failure.to_string())
    }
}

impl From<notify::Error> for Error {
    fn from(err: notify::Error) -> Self {
        match err {
            notify::Error::NotAnObject(_) => Self::usage(chain(&err)),
            _ => Self::new(Exit::Failed, chain(&err)),
        }
    }
}

impl From<tieline_front::run::Error> for Error {
    fn from(err: tieline_front::run::Error) -> Self {
        match err {
            tieline_front::run::Error::Hub(err) => err.into(),
            _ => Self::new(Exit::Failed, chain(&err)),
        }
    }
}

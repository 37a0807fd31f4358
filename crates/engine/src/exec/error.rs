//! Why a command could not be started or spoken to, in words for the model.

use std::path::PathBuf;

use crate::exec::SessionId;

/// Why a command could not be started or spoken to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to run.
    #[error("the command is empty: give a program and its arguments")]
    Empty,
    /// The program does not exist.
    #[error("cannot find the program {program}: check its name, or give its path")]
    NotFound {
        /// As it was asked for.
        program: String,
    },
    /// The file is there but cannot be executed.
    #[error(
        "{program} is not an executable file: run it with its interpreter, or make it executable"
    )]
    NotExecutable {
        /// As it was asked for.
        program: String,
    },
    /// The directory cannot be entered.
    #[error("cannot start in the directory {}: {why}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The sandbox refused.
    #[error("the command was not run: the sandbox cannot be set up: {why}")]
    Sandbox {
        /// What it said.
        why: String,
    },
    /// Starting failed otherwise.
    #[error("cannot start the command: {why}")]
    Start {
        /// What was said, with its causes.
        why: String,
    },
    /// Every place is taken by a running command.
    #[error("{max} commands are still running, which is the most: end one of them first")]
    TooMany {
        /// How many there may be.
        max: usize,
    },
    /// It was interrupted before it began.
    #[error("the command was interrupted before it began")]
    Interrupted,
    /// No such command, or its end has been told already.
    #[error(
        "there is no running command with the session id {id}: start it again with exec_command"
    )]
    UnknownSession {
        /// The number.
        id: SessionId,
    },
    /// The command reads from nothing.
    #[error("the command of session {id} has no open input: start it again with tty set to true")]
    NoInput {
        /// The number.
        id: SessionId,
    },
    /// The command does not read what it was given before.
    #[error("the command of session {id} does not read its input: wait until it does")]
    InputFull {
        /// The number.
        id: SessionId,
    },
}

impl Error {
    pub(super) fn of_start(error: &tieline_proc::Error) -> Error {
        use std::error::Error as _;
        let why = |error: &dyn std::error::Error| error.to_string();
        match error {
            tieline_proc::Error::NotFound { program } => {
                Error::NotFound { program: program.clone() }
            }
            tieline_proc::Error::Directory { path, source } => {
                Error::Directory { path: path.clone(), why: why(source) }
            }
            other => match other.source() {
                Some(source) => Error::Start { why: format!("{other}: {source}") },
                None => Error::Start { why: why(other) },
            },
        }
    }
}

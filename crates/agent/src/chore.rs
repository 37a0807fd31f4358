//! What a driver has done for its agent by whoever owns the process: files and commands.
//!
//! Some agents leave files and commands to their client. A driver does no I/O, so it asks for a chore
//! and is told what came of it. It decides *whether*; the limits of *where* are in the chore itself,
//! so that whoever does it can hold to them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Names a chore within a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChoreId(pub(crate) u64);

impl fmt::Display for ChoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Directories that no chore leaves, absolute: not by `..`, not by a link.
pub type Roots = Arc<[PathBuf]>;

/// What may be written that other programs run or obey when they come across it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// None of it. That it would be needed is told ([`ChoreNews::Protected`]).
    None,
    /// This file, to which somebody said yes by its name.
    File(PathBuf),
    /// All of it: the mode says so.
    All,
}

/// Something to be done.
#[derive(Clone)]
pub enum Chore {
    /// Read a file of text.
    ReadText {
        /// Where it must be.
        within: Roots,
        /// Which one, absolute.
        path: PathBuf,
        /// The first line, from 1.
        line: Option<u32>,
        /// At most so many lines.
        limit: Option<u32>,
    },
    /// Write a file of text, new or in place of the old one.
    WriteText {
        /// Where it must be.
        within: Roots,
        /// Which one, absolute.
        path: PathBuf,
        /// The whole text.
        content: String,
        /// Whether it may be a protected one.
        leave: Leave,
    },
    /// Run a command in the agent's environment. Its two output streams are one.
    Run {
        /// Where its directory must be.
        within: Roots,
        /// The program; without arguments a line for the shell.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside those of the agent.
        env: Vec<(String, String)>,
        /// Its directory, absolute.
        cwd: PathBuf,
    },
    /// End a command and everything it started; that it ended is told as always.
    Kill(ChoreId),
}

impl fmt::Debug for Chore {
    /// Sizes and names, no contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadText { path, .. } => write!(f, "ReadText({})", path.display()),
            Self::WriteText { path, content, .. } => {
                write!(f, "WriteText({}, {} bytes)", path.display(), content.len())
            }
            Self::Run { args, cwd, .. } => {
                write!(f, "Run({} arguments in {})", args.len(), cwd.display())
            }
            Self::Kill(id) => write!(f, "Kill({id})"),
        }
    }
}

/// What came of a chore. Everything but output of a command ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoreNews {
    /// The text that was read.
    Text(String),
    /// The text was written.
    Written,
    /// A command printed something.
    Printed(Vec<u8>),
    /// A command ended.
    Ended {
        /// Its exit code, unless a signal ended it.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// The text was not written: the file is protected, and nobody gave leave.
    Protected {
        /// Which one it is, without links below its root.
        path: PathBuf,
        /// Who runs or obeys it.
        by: String,
        /// The text.
        content: String,
    },
    /// It could not be done.
    Failed {
        /// Why, in a sentence.
        why: String,
        /// There is no such file.
        missing: bool,
    },
}

impl ChoreNews {
    /// It could not be done.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into(), missing: false }
    }

    /// Whether nothing more comes of the chore.
    pub fn is_end(&self) -> bool {
        !matches!(self, Self::Printed(_))
    }
}

//! Why a patch is not applied.

use std::io;
use std::path::PathBuf;

use crate::parse::Invalid;

/// Why a patch was not applied. The first half speaks to the model that wrote the patch, in words it
/// was taught.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no patch.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The patch has no hunk.
    #[error("No files were modified.")]
    Empty,
    /// A line behind `@@` is not in the file.
    #[error("Failed to find context '{context}' in {name}")]
    Context {
        /// The file, as the patch calls it.
        name: String,
        /// The line.
        context: String,
    },
    /// The lines of a chunk are not in the file.
    #[error("Failed to find expected lines in {name}:\n{lines}")]
    Lines {
        /// The file, as the patch calls it.
        name: String,
        /// The lines.
        lines: String,
    },
    /// A file to update is not there, no text, or cannot be read.
    #[error("Failed to read file to update {name}: {source}")]
    Read {
        /// The file, as the patch calls it.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A file to delete is not there or cannot be deleted.
    #[error("Failed to delete file {name}")]
    Delete {
        /// The file, as the patch calls it.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("Failed to write file {name}")]
    Write {
        /// The file, as the patch calls it.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The patch names a file that it must not touch. Nothing was written.
    #[error("patch rejected: {name} {why}")]
    Refused {
        /// The file, as the patch calls it.
        name: String,
        /// Why.
        why: Refusal,
    },
    /// A file is not what it was when the patch was read against it. Nothing was written.
    #[error("{name} was changed by somebody else in the meantime; read it again")]
    Changed {
        /// The file.
        name: String,
    },
    /// To find the lines would take too long.
    #[error("the chunks for {name} take too long to place; use fewer of them, or smaller files")]
    TooLong {
        /// The file, as the patch calls it.
        name: String,
    },
    /// Something failed in the middle, and not everything could be put back.
    #[error("{cause}; and not everything could be put back: {}", list(.state))]
    Torn {
        /// What failed.
        cause: Box<Error>,
        /// What is where now.
        state: Vec<String>,
    },
    /// A root cannot be opened.
    #[error("cannot open the directory {}", .path.display())]
    Root {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn list(state: &[String]) -> String {
    state.join("; ")
}

/// Why a patch must not touch a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is below no root, or a link leads out of it.
    #[error("is outside of the directories that may be written")]
    Outside,
    /// It is a part of what no patch may change.
    #[error("is protected")]
    Protected,
    /// `..` behind a name means something else where the name is a link.
    #[error("has '..' in it; name the file from the directory you are in")]
    DotDot,
    /// There is no name.
    #[error("has no name")]
    Empty,
    /// A NUL.
    #[error("has a NUL in its name")]
    Nul,
    /// A backslash: somebody means another system's paths.
    #[error("has a backslash in its name; use / between directories")]
    Backslash,
    /// No file can have such a name.
    #[error("is longer than a path can be")]
    TooLong,
    /// A directory, a device, a pipe.
    #[error("is not a file")]
    NotAFile,
    /// A link that is to be deleted or moved, or one that leads to no file.
    #[error("is a link; name the file it leads to, or change the link with a command")]
    Link,
}

//! Markers in running text: `[PROGRESS] …`, `[QUESTION] …` and their like, by which a program
//! that can only print tells another one how its work goes.
//!
//! # How it works
//!
//! [`Reader`] takes text in any chunking and gives out [`Piece`]s: lines of text, and markers.
//! [`write()`] and [`write_text()`] print what such a reader, and simpler ones, take for the same.
//!
//! ```
//! use tieline_wire::markers::{Marker, Piece, Reader, Reading, write, write_text};
//!
//! let mut out = String::new();
//! write(&Marker::Progress("tests pass".into()), &mut out);
//! write_text("[PROGRESS] is only mentioned here", &mut out);
//! assert_eq!(out, "[PROGRESS] tests pass\n\\[PROGRESS] is only mentioned here\n");
//!
//! let mut reader = Reader::new(Reading::Spec);
//! let mut n_markers = 0;
//! reader.feed(&out, |piece| match piece {
//!     Piece::Marker(marker) => n_markers += usize::from(marker.name() == "PROGRESS"),
//!     Piece::Text(line) => assert_eq!(line, "[PROGRESS] is only mentioned here"),
//! });
//! assert_eq!(n_markers, 1);
//! ```
//!
//! A marker begins a line: `[NAME]`, a space, its content. A name has two to 64 of the characters
//! `A-Z 0-9 _` and begins with a letter, so the `[X]` of a check list is text. After the bracket
//! comes the end of the line or white space, so `[NOTE]: …` and `[API](link)` are text too; a
//! known name may also be followed by a letter or digit, because the format calls the space
//! optional. `PROGRESS` and `CODEX_COMPLETE` are one line. `QUESTION`, `BLOCKED`, `TEST_RESULTS`,
//! `LINT_WARNINGS`, `DEPENDENCY_NEEDED` and `GIT_COMMIT_SUGGESTION` go on until a blank line, which
//! belongs to them, or the next marker. `FILES_MODIFIED` goes on as long as lines begin with `-`.
//! These nine are the *known* names. Every other name is one line of [`Marker::Other`]: the set is
//! open, and `[TODO] later` is such a marker, for the consumer to know or to show.
//!
//! In a question the lines `N. label - description` are options, with or without `Options:` before
//! them; all other lines are its context, those before the options too. If a blank line comes right
//! after the options, the one paragraph behind it is context as well, unless it begins with a
//! marker or a code fence. Where nothing stands on the line of a `[QUESTION]` or `[BLOCKED]`, the
//! next line is its text.
//!
//! In a code fence and in a line quoted with `>` nothing is a marker. A fence that nobody closes
//! lasts until [`Reader::finish`], so a message should end with that. A fence in a marker's content
//! is part of it and hides markers there; a blank line ends the content all the same.
//!
//! # Escapes
//!
//! A text line that could be taken for a marker gets a backslash before its bracket,
//! `\[PROGRESS] x`, and one more for each that is there; a reader takes one off again. That goes
//! for any `[NAME]` after any white space at the start of a line, and for a known name glued to
//! other text ([`Reading::Lenient`]). It is about lines and not about Markdown, so fences make no
//! difference. In the content of a `[BLOCKED]` every bracket at the start of a line is escaped, as
//! there are parsers that stop at one; in the context of a question also `1.` and `Options:`; in
//! all contents a code fence, if it would stay open.
//!
//! # Invariants
//!
//! * Nothing is an error: a malformed marker is text.
//! * Every chunking of a text gives the same pieces.
//! * What [`write()`] prints is read, in both ways of reading, as [`Marker::normalised`].
//! * Memory is bounded by [`LINE_LIMIT`] and [`BLOCK_LIMIT`].

mod line;
mod normal;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use read::{Piece, Reader, Reading};
pub use write::{Writer, write, write_text};

/// The longest line, in bytes without its end, that can be a marker or part of one.
pub const LINE_LIMIT: usize = 64 * 1024;

/// The longest marker, in bytes with its line ends. It ends before the line that would exceed it.
pub const BLOCK_LIMIT: usize = 256 * 1024;

/// Something a program tells about its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    /// `[PROGRESS]`: a step was done or is being done.
    Progress(String),
    /// `[QUESTION]`: something is to be decided; the work may go on beside it.
    Question(Question),
    /// `[BLOCKED]`: nothing can be done until this is resolved.
    Blocked {
        /// What is in the way.
        reason: String,
        /// The lines below it.
        context: Vec<String>,
    },
    /// `[FILES_MODIFIED]`: what the work changed.
    FilesModified(Vec<FileChange>),
    /// `[CODEX_COMPLETE]`: the program has ended its work, well or not.
    Complete {
        /// `Task completed in N iterations`.
        text: String,
    },
    /// Any other name.
    Other {
        /// The name, without brackets.
        name: String,
        /// Its lines; at most one unless the name is known to have several.
        content: Vec<String>,
    },
}

/// A question and what may be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked, on the line of the marker.
    pub text: String,
    /// What may be answered.
    pub options: Vec<Choice>,
    /// Why it is asked.
    pub context: Vec<String>,
}

/// One option of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The number it is printed with.
    pub number: u32,
    /// What it is.
    pub label: String,
    /// What it means.
    pub description: Option<String>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Where it is now, or was.
    pub path: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Created,
    /// It has other content.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed {
        /// The name it had.
        from: String,
    },
    /// Not said, or in words this does not know; they are then part of the path.
    Unknown,
}

impl Marker {
    /// The name in its brackets.
    pub fn name(&self) -> &str {
        match self {
            Self::Progress(_) => line::PROGRESS,
            Self::Question(_) => line::QUESTION,
            Self::Blocked { .. } => line::BLOCKED,
            Self::FilesModified(_) => line::FILES_MODIFIED,
            Self::Complete { .. } => line::CODEX_COMPLETE,
            Self::Other { name, .. } => name,
        }
    }

    /// The number in `Task completed in N iterations` of a [`Marker::Complete`].
    pub fn iterations(&self) -> Option<u64> {
        let Self::Complete { text } = self else { return None };
        let (number, unit) = text.strip_prefix("Task completed in ")?.split_once(' ')?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain && unit.starts_with("iteration") { number.parse().ok() } else { None }
    }
}

//! `apply_patch`: read a patch, find its places, write it below directory handles.
//!
//! The format is the one that Codex's models are taught. [`parse()`] reads it, [`Prepared`] reads the
//! files it names and finds its places in them, [`Prepared::commit`] writes. [`apply`] is the two in
//! one; [`apply_in_order`] does hunk after hunk and stops at the first that fails. [`from_command`]
//! finds patches that models hand to a shell.
//!
//! ```
//! use tieline_patch::{Options, Roots, apply, parse};
//!
//! # let dir = tempfile::tempdir()?;
//! let text = "*** Begin Patch\n*** Add File: n.txt\n+hi\n*** End Patch";
//! let roots = Roots::here(dir.path())?;
//! let applied = apply(&parse(text)?, &roots, Options::default())?;
//! assert_eq!(applied.summary(), "Success. Updated the following files:\nA n.txt\n");
//! applied.undo(&roots)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! `parse` and `plan` are pure; `seek` finds lines in four passes; `diff` shows what changed.
//! `roots` turns a name into a path without links below a root, which is opened there and nowhere else.
//! `prepare` plays all hunks through in memory, and `stage` brings the outcome to the disk. `applied` is
//! what was done, and takes it back.
//!
//! # Invariants
//!
//! * Nothing is opened, made, renamed or removed but below a handle of a root, without following a
//!   link.
//! * Outside and protected paths are refused before any file is read.
//! * All or nothing: who gets an error other than [`Error::Torn`] finds everything as it was. After a
//!   kill, [`recover`] makes it so.
//! * No input panics, and the time is bounded: a search is linear in the file.

mod applied;
mod command;
mod content;
mod diff;
mod error;
mod parse;
mod plan;
mod prepare;
mod roots;
mod seek;
mod stage;

pub use applied::{Applied, Change, Kind, Named, Restore, Saved, Undo, summary};
pub use command::{Found, from_command};
pub use content::Content;
pub use error::{Error, Refusal};
pub use parse::{Chunk, Hunk, Invalid, Line, LineKind, Patch, parse};
pub use prepare::{Options, Prepared};
pub use roots::{Root, Roots};
pub use stage::recover::{Recovered, recover};

/// Applies a patch: all of it or nothing.
pub fn apply(patch: &Patch<'_>, roots: &Roots, options: Options) -> Result<Applied, Error> {
    Prepared::new(patch, roots, options)?.commit()
}

/// Applies a patch hunk by hunk. What was done before an error stays, and is given beside it.
pub fn apply_in_order(
    patch: &Patch<'_>,
    roots: &Roots,
    options: Options,
) -> (Applied, Result<(), Error>) {
    let mut applied = Applied::default();
    if patch.hunks.is_empty() {
        return (applied, Err(Error::Empty));
    }
    for hunk in &patch.hunks {
        let single = Patch { environment: patch.environment, hunks: vec![hunk.clone()] };
        match apply(&single, roots, options) {
            Ok(done) => applied.append(done),
            Err(err) => return (applied, Err(err)),
        }
    }
    (applied, Ok(()))
}

/// The hunks of a unified diff between two contents, without the lines that name the files.
pub fn difference(old: &str, new: &str, n_context: usize) -> String {
    diff::unified(old, new, &diff::Run::whole(old, new), n_context)
}

/// The content that a file's content becomes by the chunks of an update.
pub fn plan(name: &str, old: &str, chunks: &[Chunk<'_>]) -> Result<String, Error> {
    let mut budget = seek::Budget::new(seek::MOST_STEPS);
    let planned = plan::update(old, chunks, &mut budget).map_err(|misfit| misfit.of(name))?;
    Ok(planned.content)
}

//! Where the directory of a repository is, if `.git` is the file of a worktree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::open::{Content, named};

/// What a worktree's `.git` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// What is the worktree's own.
    pub own: PathBuf,
    /// What all worktrees have in common; the same where nothing says so.
    pub common: PathBuf,
}

impl Repository {
    /// The one that the `.git` of a directory names, as git would read it; none if it is no such file.
    pub fn named_in(directory: &Path) -> Option<Self> {
        let link = first_bytes(&directory.join(".git"));
        let own = link.strip_prefix(b"gitdir:")?;
        let own = directory.join(path_in(own.strip_prefix(b" ").unwrap_or(own)));
        let common = first_bytes(&own.join("commondir"));
        let common = own.join(path_in(&common));
        Some(Self { own, common })
    }
}

/// What a file of a repository begins with. It is somebody else's: it may be a pipe that nobody writes
/// to, or have no end.
fn first_bytes(path: &Path) -> Vec<u8> {
    /// Many times what any path has.
    const MOST: usize = 64 * 1024;
    let content = named(path).and_then(|file| Content::of(&file, MOST));
    content.map(|content| content.bytes).unwrap_or_default()
}

/// The path in such a file, as git reads it: its end of line is not a part of it, anything else is.
fn path_in(bytes: &[u8]) -> &Path {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    Path::new(OsStr::from_bytes(bytes.get(..end).unwrap_or_default()))
}

//! Which files are looked at, and what is in them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tieline_workspace::beneath::Links;
use tieline_workspace::walk::{Choice, Found, Options};
use tieline_workspace::{Seen, Sort, Tree};

/// The largest file that is read.
const MAX_READ: u64 = 256 * 1024;

/// How much is read in all.
const MAX_READ_IN_ALL: u64 = 64 * 1024 * 1024;

/// The first half of a SHA-256: nobody finds a second content for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest(pub(super) [u8; 16]);

/// The files below a directory that git would not ignore, in the order of their paths.
pub(super) struct Walk<'t> {
    entries: tieline_workspace::walk::Walk<'t>,
    /// How many files are yet to be looked at.
    n_left: usize,
    /// There were more.
    pub(super) is_cut: bool,
}

impl<'t> Walk<'t> {
    /// Walks to at most so many files below a directory, and there only where `is_wanted` says so of a
    /// path.
    pub(super) fn new(
        tree: &'t Tree,
        n_files: usize,
        is_wanted: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Self {
        let choose = move |path: &Path, _: &Seen| match !path.ends_with(".git") && is_wanted(path) {
            true => Choice::Rules,
            false => Choice::PassOver,
        };
        let options = Options { one_file_system: true, ..Options::default() };
        let entries = tieline_workspace::walk::Walk::new(tree, options, choose);
        Self { entries, n_left: n_files, is_cut: false }
    }

    /// How many places could not be looked at.
    pub(super) fn n_skipped(&self) -> u64 {
        self.entries.n_skipped()
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if self.is_cut {
            return None;
        }
        let is_looked_at = |found: &Found| matches!(found.seen.sort, Sort::File | Sort::Link);
        let found = self.entries.find(is_looked_at)?;
        self.is_cut = self.n_left == 0;
        self.n_left = self.n_left.saturating_sub(1);
        Some(found).filter(|_| !self.is_cut)
    }
}

/// Whether there is a git repository around a directory or in it.
pub(super) fn is_in_git(root: &Path) -> bool {
    root.ancestors().any(|directory| directory.join(".git").symlink_metadata().is_ok())
}

/// Reads files for their digests.
pub(super) struct Reader {
    /// How much may still be read.
    left: u64,
}

impl Reader {
    pub(super) fn bounded() -> Reader {
        Reader { left: MAX_READ_IN_ALL }
    }

    pub(super) fn unbounded() -> Reader {
        Reader { left: u64::MAX }
    }

    /// The digest of a file's content or of where a link leads. `None` if that is not to be read or
    /// cannot be.
    pub(super) fn digest(&mut self, tree: &Tree, path: &Path, seen: &Seen) -> Option<Digest> {
        let mut hash = Sha256::new();
        if seen.sort == Sort::Link {
            // Not what a file with the same text has.
            hash.update(b"\0link\0");
            hash.update(tree.link(path).ok()?.as_os_str().as_bytes());
        } else {
            if seen.size > MAX_READ || seen.size > self.left {
                return None;
            }
            self.left -= seen.size;
            let content = tree.read(path, Links::None, MAX_READ as usize).ok()?;
            hash.update(Some(content).filter(|content| !content.is_cut)?.bytes);
        }
        hash.finalize().first_chunk::<16>().map(|half| Digest(*half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_and_devices_are_no_files_of_the_root() {
        let tree = Tree::open(Path::new("/")).unwrap();
        let is_wanted = |path: &Path| path.starts_with("proc");
        let mut walk = Walk::new(&tree, 1000, is_wanted);
        assert_eq!(walk.by_ref().count(), 0);
        assert_eq!(walk.n_skipped(), 1, "it is said that there is more");
    }
}

//! Which files are looked at, and what is in them.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

/// The largest file that is read.
const MAX_READ: u64 = 256 * 1024;

/// How much is read in all.
const MAX_READ_IN_ALL: u64 = 64 * 1024 * 1024;

/// The first half of a SHA-256: nobody finds a second content for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest(pub(super) [u8; 16]);

/// A regular file or a link.
pub(super) struct Found {
    /// From the root.
    pub(super) path: PathBuf,
    pub(super) metadata: Metadata,
}

/// The files below a directory that git would not ignore, in the order of their paths.
pub(super) struct Walk {
    root: PathBuf,
    /// The file system of the root. Others are not looked at: below `/` they hold processes and devices.
    device: u64,
    entries: ignore::Walk,
    /// How many files are yet to be looked at.
    n_left: usize,
    /// There were more.
    pub(super) is_cut: bool,
    /// How many places could not be looked at.
    pub(super) n_skipped: u64,
}

impl Walk {
    /// Walks to at most so many files below a canonical `root`, and there only where `is_wanted` says so of a path from the
    /// root.
    pub(super) fn new(
        root: &Path,
        n_files: usize,
        is_wanted: impl Fn(&Path) -> bool + Send + Sync + 'static,
    ) -> Walk {
        let base = root.to_owned();
        let entries = builder(root)
            .parents(!is_ignored(root))
            .filter_entry(move |entry| {
                entry.depth() == 0
                    || entry.file_name() != ".git"
                        && entry.path().strip_prefix(&base).is_ok_and(&is_wanted)
            })
            .build();
        let device = root.metadata().map_or(0, |metadata| metadata.dev());
        Walk {
            root: root.to_owned(),
            device,
            entries,
            n_left: n_files,
            is_cut: false,
            n_skipped: 0,
        }
    }

    fn look(&mut self, entry: &ignore::DirEntry) -> Option<Found> {
        let kind = entry.file_type()?;
        if kind.is_dir() && entry.metadata().is_ok_and(|it| it.dev() != self.device) {
            tracing::debug!(path = %entry.path().display(), "another file system was left out");
            self.n_skipped += 1;
        }
        if !kind.is_file() && !kind.is_symlink() {
            return None;
        }
        let path = entry.path().strip_prefix(&self.root).ok()?.to_owned();
        match entry.path().symlink_metadata() {
            Ok(metadata) => Some(Found { path, metadata }),
            Err(err) => {
                self.skip(Some(&err));
                None
            }
        }
    }

    /// A file that vanished while we walked is no gap: it is not there.
    fn skip(&mut self, err: Option<&io::Error>) {
        if !err.is_some_and(super::is_gone) {
            tracing::debug!(?err, "a place was skipped");
            self.n_skipped += 1;
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        while !self.is_cut {
            let found = match self.entries.next()? {
                Ok(entry) => self.look(&entry),
                Err(err) => {
                    self.skip(err.io_error());
                    None
                }
            };
            if found.is_some() {
                self.is_cut = self.n_left == 0;
                self.n_left = self.n_left.saturating_sub(1);
                return found.filter(|_| !self.is_cut);
            }
        }
        None
    }
}

/// Whether there is a git repository around a directory or in it.
pub(super) fn is_in_git(root: &Path) -> bool {
    root.ancestors().any(|directory| directory.join(".git").symlink_metadata().is_ok())
}

fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .ignore(false)
        .follow_links(false)
        .same_file_system(true)
        .current_dir(root)
        .sort_by_file_name(std::ffi::OsStr::cmp);
    builder
}

/// Whether a repository around the directory ignores the directory itself, as one of somebody's
/// home does with all that is not in it. Its rules would leave nothing to look at.
fn is_ignored(root: &Path) -> bool {
    let Some(parent) = root.parent() else { return false };
    let wanted = root.to_owned();
    let mut walk = builder(parent)
        .max_depth(Some(1))
        .filter_entry(move |entry| entry.depth() == 0 || entry.path() == wanted)
        .build();
    // Where the directory above cannot be read, nothing there is known to ignore this one.
    !walk.any(|entry| entry.map_or(true, |entry| entry.path() == root))
}

/// Reads files for their digests.
pub(super) struct Reader {
    buffer: Vec<u8>,
    /// How much may still be read.
    left: u64,
}

impl Reader {
    pub(super) fn bounded() -> Reader {
        Reader { buffer: Vec::new(), left: MAX_READ_IN_ALL }
    }

    pub(super) fn unbounded() -> Reader {
        Reader { buffer: Vec::new(), left: u64::MAX }
    }

    /// The digest of a file's content or of where a link leads. `None` if that is not to be read or
    /// cannot be.
    pub(super) fn digest(&mut self, path: &Path, metadata: &Metadata) -> Option<Digest> {
        let mut hash = Sha256::new();
        if metadata.is_symlink() {
            // Not what a file with the same text has.
            hash.update(b"\0link\0");
            hash.update(path.read_link().ok()?.as_os_str().as_bytes());
        } else {
            let size = metadata.len();
            if size > MAX_READ || size > self.left {
                return None;
            }
            self.left -= size;
            self.read(path).ok()?;
            hash.update(&self.buffer);
        }
        hash.finalize().first_chunk::<16>().map(|half| Digest(*half))
    }

    fn read(&mut self, path: &Path) -> io::Result<()> {
        // Somebody may put a pipe or a link there between our look and this.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.buffer.clear();
        file.take(MAX_READ + 1).read_to_end(&mut self.buffer)?;
        match self.buffer.len() as u64 > MAX_READ {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_and_devices_are_no_files_of_the_root() {
        let is_wanted = |path: &Path| path.starts_with("proc");
        let mut walk = Walk::new(Path::new("/"), 1000, is_wanted);
        assert_eq!(walk.by_ref().count(), 0);
        assert_eq!(walk.n_skipped, 1, "it is said that there is more");
    }
}

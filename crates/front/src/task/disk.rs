//! What changed on disk between two moments.
//!
//! # How it works
//!
//! [`Baseline::take`] writes down every file below a directory that git would not ignore: size,
//! time, inode and, while that is cheap, a hash of the content. [`Baseline::measure`] looks at each
//! of them again, then walks once more for those that are new. [`claims()`] holds what an agent
//! says it changed against that.
//!
//! # Invariants
//!
//! * A file is deleted only if it is gone. Rules of git that changed make nothing look deleted, and
//!   files that they hid before do not look created.
//! * A file is modified only if its content is another one, as far as that is known: a new time or
//!   mode of a file with a hash is no change.
//! * What cannot be looked at is neither an error nor passed over in silence: the measure is partial.
//!
//! # Limits
//!
//! Other file systems that are mounted below the directory are left out, and the measure is partial.
//! A file that is both ignored and tracked is not seen. A file without a hash (over 256 KiB, or
//! behind the first 64 MiB) whose time was set back after a change of the same size looks unchanged.
//! Where a `.gitignore` changed, a whole directory that was moved in from elsewhere is not seen: its
//! files look as old as those that the rules hid before.

mod claims;
mod stored;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use claims::claims;
use tieline_workspace::walk::Found;
use tieline_workspace::{Seen, Sort, Tree};
use walk::{Digest, Reader, Walk};

/// How many files are looked at.
const MAX_FILES: usize = 200_000;

/// How much older than the baseline a file may seem and still have come after it: the kernel stamps
/// files by a clock that lags behind by up to a tick, and a server's clock is another one.
const CLOCK_MARGIN: i64 = 1_000_000_000;

/// The files below a directory at one moment. Its JSON is compact: 44 to 55 bytes for each file
/// in trees of 2,000 to 60,000.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "stored::Stored", try_from = "stored::Stored")]
pub struct Baseline {
    /// When it was begun, in nanoseconds since 1970.
    taken: i64,
    /// Whether the directory was in a git repository, so that there were rules.
    in_git: bool,
    is_cut: bool,
    /// How many places could not be looked at.
    n_skipped: u64,
    /// In the order of the walk, which is that of paths.
    files: BTreeMap<PathBuf, Stamp>,
}

/// What is known of a file without looking at it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    /// When its content changed, in nanoseconds since 1970.
    mtime: i64,
    inode: u64,
    digest: Option<Digest>,
}

/// What changed since a [`Baseline`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Sorted by path.
    pub files: Vec<Changed>,
    /// There may be more: too many files, or some that could not be looked at.
    pub is_partial: bool,
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Where it is now, or was, from the root; bytes that are no text are replaced.
    pub path: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// It has other content.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name and the same content.
    Renamed {
        /// The name it had.
        from: String,
    },
}

impl Baseline {
    /// Looks at every file below `root`. It reads files and waits for the disk.
    pub fn take(root: &Path) -> io::Result<Baseline> {
        Self::take_at_most(root, MAX_FILES)
    }

    fn take_at_most(root: &Path, n_files: usize) -> io::Result<Baseline> {
        let tree = Tree::open(root)?;
        let taken = now();
        let mut walk = Walk::new(&tree, n_files, |_| true);
        let mut reader = Reader::bounded();
        let mut files = BTreeMap::new();
        for found in &mut walk {
            let mut stamp = Stamp::of(&found.seen);
            stamp.digest = reader.digest(&tree, &found.path, &found.seen);
            files.insert(found.path, stamp);
        }
        let (is_cut, n_skipped) = (walk.is_cut, walk.n_skipped());
        Ok(Baseline { taken, in_git: walk::is_in_git(tree.path()), is_cut, n_skipped, files })
    }

    /// Whether there were more files than it holds.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How many files it holds.
    pub fn n_files(&self) -> usize {
        self.files.len()
    }

    /// What is different below `root` now. It reads files and waits for the disk.
    pub fn measure(&self, root: &Path) -> io::Result<Measured> {
        let tree = Tree::open(root)?;
        let mut is_partial = self.is_cut || self.n_skipped > 0;
        let mut modified = Vec::new();
        let mut gone = Vec::new();
        // What is read again is what was read for the baseline, so the same bound holds.
        let mut reader = Reader::unbounded();
        for (path, before) in &self.files {
            match before.compare(&tree, path, &mut reader) {
                Compared::Same => {}
                Compared::Different => modified.push(path.as_path()),
                Compared::Gone => gone.push((path.as_path(), before)),
                Compared::Unknown => is_partial = true,
            }
        }
        let mut walk = Walk::new(&tree, MAX_FILES, |_| true);
        let mut created: Vec<Found> = walk.by_ref().filter(|found| self.lacks(found)).collect();
        is_partial |= walk.is_cut || walk.n_skipped() > 0;

        let mut files = Vec::new();
        rename_by_inode(&mut gone, &mut created, &mut files);
        let rules_changed = self.in_git != walk::is_in_git(tree.path())
            || modified.iter().any(|path| is_rules(path))
            || gone.iter().any(|(path, _)| is_rules(path))
            || created.iter().any(|found| is_rules(&found.path))
            || files.iter().any(is_rename_of_rules);
        if rules_changed {
            created.retain(|found| changed_at(found) >= self.taken.saturating_sub(CLOCK_MARGIN));
        }
        rename_by_content(&tree, &mut gone, &mut created, &mut files);

        files.extend(modified.into_iter().map(|path| Changed::new(path, Change::Modified)));
        files.extend(gone.into_iter().map(|(path, _)| Changed::new(path, Change::Deleted)));
        files.extend(created.iter().map(|found| Changed::new(&found.path, Change::Created)));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Measured { files, is_partial })
    }

    /// Whether a file was not there before. Nothing is known of those behind the cut.
    fn lacks(&self, found: &Found) -> bool {
        let is_behind = |(last, _): (&PathBuf, _)| self.is_cut && found.path > *last;
        !self.files.contains_key(&found.path) && !self.files.last_key_value().is_some_and(is_behind)
    }
}

/// How a file is beside its stamp.
enum Compared {
    Same,
    Different,
    Gone,
    /// It cannot be looked at.
    Unknown,
}

impl Stamp {
    fn of(seen: &Seen) -> Stamp {
        Stamp { size: seen.size, mtime: seen.modified, inode: seen.inode, digest: None }
    }

    fn compare(&self, tree: &Tree, path: &Path, reader: &mut Reader) -> Compared {
        let seen = match tree.look(path) {
            Ok(seen) => seen,
            Err(err) if err.is_missing() => return Compared::Gone,
            // What was a directory is a link now, and what is behind it is not below it.
            Err(tieline_workspace::Error::LeadsOut) => return Compared::Gone,
            Err(_) => return Compared::Unknown,
        };
        if !matches!(seen.sort, Sort::File | Sort::Link) {
            return Compared::Gone;
        }
        let now = Stamp::of(&seen);
        if now.size != self.size {
            return Compared::Different;
        }
        // The time proves nothing where there is a hash: it can be set, and two writes within a
        // tick of the clock have the same.
        let digest = self.digest.and_then(|_| reader.digest(tree, path, &seen));
        let is_same = match (self.digest, digest) {
            (Some(before), Some(digest)) => before == digest,
            _ => self.mtime == now.mtime,
        };
        if is_same { Compared::Same } else { Compared::Different }
    }
}

impl Changed {
    fn new(path: &Path, change: Change) -> Changed {
        Changed { path: text(path), change }
    }
}

type Gone<'a> = Vec<(&'a Path, &'a Stamp)>;

/// A file that was moved is still the same file.
fn rename_by_inode(gone: &mut Gone<'_>, created: &mut Vec<Found>, files: &mut Vec<Changed>) {
    let key = |stamp: &Stamp| (stamp.inode, stamp.size, stamp.mtime);
    let mut moved: HashMap<_, &Path> =
        gone.iter().map(|(path, stamp)| (key(stamp), *path)).collect();
    let mut taken = Vec::new();
    created.retain(|found| match moved.remove(&key(&Stamp::of(&found.seen))) {
        Some(from) => {
            files.push(Changed::new(&found.path, Change::Renamed { from: text(from) }));
            taken.push(from);
            false
        }
        None => true,
    });
    taken.sort_unstable();
    gone.retain(|(path, _)| taken.binary_search(path).is_err());
}

/// A file that was copied and then deleted has left its content. Of several with the same content
/// one of the same name is the likeliest.
fn rename_by_content(
    tree: &Tree,
    gone: &mut Gone<'_>,
    created: &mut Vec<Found>,
    files: &mut Vec<Changed>,
) {
    let mut sources: HashMap<(u64, Digest), Vec<&Path>> = HashMap::new();
    for (path, stamp) in gone.iter() {
        if let Some(digest) = stamp.digest
            && stamp.size > 0
        {
            sources.entry((stamp.size, digest)).or_default().push(path);
        }
    }
    let sizes: HashSet<u64> = sources.keys().map(|(size, _)| *size).collect();
    let mut reader = Reader::bounded();
    let mut digests: HashMap<PathBuf, Digest> = HashMap::new();
    for found in created.iter() {
        if sizes.contains(&found.seen.size)
            && let Some(digest) = reader.digest(tree, &found.path, &found.seen)
        {
            digests.insert(found.path.clone(), digest);
        }
    }
    let mut taken = Vec::new();
    for only_same_name in [true, false] {
        created.retain(|found| {
            let digest = digests.get(&found.path);
            let paths = digest.and_then(|it| sources.get_mut(&(found.seen.size, *it)));
            let Some(paths) = paths else { return true };
            let name = found.path.file_name();
            let fits = |path: &&Path| !only_same_name || path.file_name() == name;
            let Some(at) = paths.iter().position(fits) else { return true };
            let from = paths.remove(at);
            files.push(Changed::new(&found.path, Change::Renamed { from: text(from) }));
            taken.push(from);
            false
        });
    }
    taken.sort_unstable();
    gone.retain(|(path, _)| taken.binary_search(path).is_err());
}

fn is_rules(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(".gitignore"))
}

fn is_rename_of_rules(file: &Changed) -> bool {
    let was_rules = match &file.change {
        Change::Renamed { from } => is_rules(Path::new(from)),
        _ => false,
    };
    was_rules || is_rules(Path::new(&file.path))
}

/// When a file last came, went or changed. No program can set this time.
fn changed_at(found: &Found) -> i64 {
    found.seen.changed
}

fn now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

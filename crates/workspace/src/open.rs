//! The one way in which files of a workspace are opened.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::{self, DIRECTORY, Links};

/// How a file is opened: a pipe must not hold us up, and a terminal must not become ours.
const READING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A link on the way leads out, or there is a link where none may be.
    #[error("a link in it leads elsewhere")]
    LeadsOut,
    /// A directory, a device, a pipe, or something of the kernel's.
    #[error("it is no regular file")]
    NotAFile,
    /// What the system says.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Whether nothing is there.
    pub fn is_missing(&self) -> bool {
        let missing = |err: &io::Error| {
            matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        matches!(self, Self::Io(err) if missing(err))
    }
}

impl From<Errno> for Error {
    fn from(err: Errno) -> Self {
        match err {
            Errno::LOOP | Errno::XDEV => Self::LeadsOut,
            err => Self::Io(err.into()),
        }
    }
}

/// The first bytes of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// At most as many as were asked for.
    pub bytes: Vec<u8>,
    /// The file has more.
    pub is_cut: bool,
}

impl Content {
    /// What `file` holds, up to a bound.
    pub fn of(file: &File, most: usize) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        // It may grow while it is read.
        file.take(most as u64 + 1).read_to_end(&mut bytes)?;
        let is_cut = bytes.len() > most;
        bytes.truncate(most);
        Ok(Self { bytes, is_cut })
    }

    /// As text. Where it was cut no half of a character is left over.
    pub fn text(&self) -> String {
        let whole = match std::str::from_utf8(&self.bytes) {
            Err(err) if self.is_cut && err.error_len().is_none() => err.valid_up_to(),
            _ => self.bytes.len(),
        };
        String::from_utf8_lossy(self.bytes.get(..whole).unwrap_or_default()).into_owned()
    }
}

/// What something in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link, wherever it leads.
    Link,
    /// Something else.
    Other,
}

/// What can be seen of something without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub sort: Sort,
    /// Its size in bytes.
    pub size: u64,
    /// When its content changed, in nanoseconds since 1970.
    pub modified: i64,
    /// When it last came, went or changed. No program can set this time.
    pub changed: i64,
    /// Its number.
    pub inode: u64,
    /// The file system it lies on.
    pub device: u64,
}

impl Seen {
    #[allow(clippy::unnecessary_cast, reason = "widths differ between machines")]
    pub(crate) fn of(stat: &rustix::fs::Stat) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            sort: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Sort::File,
                FileType::Directory => Sort::Directory,
                FileType::Symlink => Sort::Link,
                _ => Sort::Other,
            },
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
        }
    }
}

/// Something in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What can be seen of it.
    pub seen: Seen,
}

/// A directory of somebody else's. It is a handle: renaming it changes nothing.
#[derive(Debug)]
pub struct Tree {
    directory: OwnedFd,
    path: PathBuf,
}

impl AsFd for Tree {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Tree {
    /// Opens a directory, wherever links lead on the way to it: who names it means it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let directory = rustix::fs::open(&path, DIRECTORY, Mode::empty())?;
        Ok(Self { directory, path })
    }

    /// Its path without links, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file system it lies on.
    pub fn device(&self) -> Option<u64> {
        rustix::fs::fstat(&self.directory).ok().map(|stat| Seen::of(&stat).device)
    }

    /// Opens a regular file for reading.
    pub fn file(&self, below: &Path, links: Links) -> Result<File, Error> {
        regular(beneath::open(&self.directory, below, READING, links)?)
    }

    /// The first bytes of a regular file.
    pub fn read(&self, below: &Path, links: Links, most: usize) -> Result<Content, Error> {
        Content::of(&self.file(below, links)?, most)
    }

    /// What can be seen of something. A link is itself.
    pub fn look(&self, below: &Path) -> Result<Seen, Error> {
        Ok(Seen::of(&rustix::fs::fstat(self.name(below)?)?))
    }

    /// Where a link leads.
    pub fn link(&self, below: &Path) -> Result<PathBuf, Error> {
        let name = self.name(below)?;
        let leads = rustix::fs::readlinkat(name, c"", Vec::new()).map_err(Error::from)?;
        Ok(OsString::from_vec(leads.into_bytes()).into())
    }

    /// What is in a directory below, at most so many, and whether there is more.
    pub fn entries(&self, below: &Path, most: usize) -> Result<(Vec<Entry>, bool), Error> {
        let directory = beneath::open(&self.directory, below, DIRECTORY, Links::None)?;
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == most {
                return Ok((entries, true));
            }
            match rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => entries.push(Entry { name, seen: Seen::of(&stat) }),
                // It went away meanwhile.
                Err(Errno::NOENT) => {}
                Err(err) => return Err(err.into()),
            }
        }
        Ok((entries, false))
    }

    /// A handle that can neither read nor write, of a link too.
    fn name(&self, below: &Path) -> Result<OwnedFd, Error> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(beneath::open(&self.directory, below, flags, Links::None)?)
    }
}

/// Opens a regular file that the user named, wherever links lead on the way to it.
pub fn named(path: &Path) -> Result<File, Error> {
    let file = rustix::fs::open(path, READING, Mode::empty()).map_err(io::Error::from)?;
    regular(file)
}

/// Opens a regular file by an absolute path that is known to have no link in it. One that came into
/// it since is not followed.
pub fn without_links(path: &Path) -> Result<File, Error> {
    let Ok(below) = path.strip_prefix("/") else { return Err(Error::LeadsOut) };
    let root = rustix::fs::openat(CWD, "/", DIRECTORY, Mode::empty())?;
    regular(beneath::open(&root, below, READING, Links::None)?)
}

/// Only what is read to its end, and is nobody's but a disk's.
fn regular(file: OwnedFd) -> Result<File, Error> {
    let stat = rustix::fs::fstat(&file)?;
    let file = File::from(file);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if !beneath::is_of_kernel(&file) => Ok(file),
        _ => Err(Error::NotAFile),
    }
}

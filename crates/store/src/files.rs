//! Where the store lies, and who may read it: the user, nobody else, whatever the umask.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD, FlockOperation, accessat};
use rustix::io::Errno;
use tieline_event::Timestamp;

use crate::error::Error;
use crate::private::{create_private, is_there, make_private};

/// Name of the database within the store's directory.
pub(crate) const DATABASE: &str = "tieline.db";

/// Name of the directory of owners' locks.
pub(crate) const OWNERS: &str = "owners";

/// Where the store lies unless the user says otherwise: `$TIELINE_HOME`, else
/// `$XDG_DATA_HOME/tieline`, else `~/.local/share/tieline`.
///
/// # Errors
/// [`Error::RelativeHome`] when `TIELINE_HOME` is a relative path; [`Error::NoHome`] when none of the
/// variables is set to an absolute one.
pub fn default_dir() -> Result<PathBuf, Error> {
    resolve_dir(|name| std::env::var_os(name).map(PathBuf::from))
}

/// The rule of [`default_dir`] over any environment. The XDG specification asks that relative
/// paths be ignored; a store that depends on where somebody stands would be found by chance.
pub(crate) fn resolve_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Error> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    if let Some(path) = variable("TIELINE_HOME").filter(|path| !path.as_os_str().is_empty()) {
        return match path.is_absolute() {
            true => Ok(path),
            false => Err(Error::RelativeHome { path }),
        };
    }
    absolute("XDG_DATA_HOME")
        .map(|data| data.join("tieline"))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share/tieline")))
        .ok_or(Error::NoHome)
}

/// Waits until no other process opens a store in this directory, as long as the result is kept. Who
/// cannot wait any longer goes on without: the database has locks of its own.
pub(crate) fn alone_in(dir: &Path, patience: Duration) -> Option<File> {
    let directory = File::open(dir).ok()?;
    let deadline = Instant::now() + patience;
    while rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(directory)
}

/// Makes the database file, and looks at the one that is there.
///
/// An existing file is never opened here: POSIX drops every lock a process holds on a file when
/// any descriptor of it is closed, so a second open would silently unlock another connection.
pub(crate) fn prepare_database(path: &Path) -> Result<(), Error> {
    let log = with_suffix(path, "-wal");
    let has_log = is_there(&log)?;
    is_there(&with_suffix(path, "-shm"))?;
    if !is_there(path)? {
        match create_private(path) {
            Err(err) if err.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::file("create", path)(err));
            }
            _ => return Ok(()),
        }
    }
    if is_empty(path) && has_log && !is_empty(&log) {
        // SQLite would take the database for a new one and delete the log.
        return Err(Error::corrupt("it is empty, but its log is not").at(path));
    }
    Ok(())
}

/// Makes a database private that was found to be ours, with its log.
pub(crate) fn make_database_private(path: &Path) -> Result<(), Error> {
    ["", "-wal", "-shm"].into_iter().try_for_each(|it| make_private(&with_suffix(path, it)))
}

/// Why nothing can be written here, if that is so.
pub(crate) fn read_only(dir: &Path, database: &Path) -> Option<io::Error> {
    let refused = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).err();
    match refused(dir).or_else(|| refused(database))? {
        // Whatever else is wrong is told by whoever opens it.
        err @ (Errno::ACCESS | Errno::PERM | Errno::ROFS) => Some(err.into()),
        _ => None,
    }
}

pub(crate) fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0)
}

/// Which file a name stands for, whatever is done with the name later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Renames a database and its companions out of the way and says what it is called now.
pub(crate) fn set_aside(dir: &Path) -> Result<PathBuf, Error> {
    let database = dir.join(DATABASE);
    let mut aside = with_suffix(&database, &format!(".corrupt-{}", Timestamp::now().as_millis()));
    while aside.exists() {
        aside = with_suffix(&aside, "x");
    }
    // The log goes first: a database without its log is old, a log without its database would be
    // applied to the next one.
    for suffix in ["-wal", "-shm", ""] {
        let from = with_suffix(&database, suffix);
        match std::fs::rename(&from, with_suffix(&aside, suffix)) {
            Ok(()) => {}
            Err(err) if err.kind() == io::ErrorKind::NotFound && !suffix.is_empty() => {}
            Err(err) => return Err(Error::file("set aside", &from)(err)),
        }
    }
    Ok(aside)
}

#[cfg(test)]
mod tests;

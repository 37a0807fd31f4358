//! Where the store lies, and who may read it: the user, nobody else, whatever the umask.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use tieline_event::Timestamp;

use crate::error::Error;

/// Name of the database within the store's directory.
pub(crate) const DATABASE: &str = "tieline.db";

/// Name of the directory of owners' locks.
pub(crate) const OWNERS: &str = "owners";

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Where the store lies unless the user says otherwise: `$TIELINE_HOME`, else
/// `$XDG_DATA_HOME/tieline`, else `~/.local/share/tieline`.
///
/// # Errors
/// [`Error::NoHome`] when none of the variables is set to an absolute path.
pub fn default_dir() -> Result<PathBuf, Error> {
    resolve_dir(|name| std::env::var_os(name).map(PathBuf::from))
}

/// The rule of [`default_dir`] over any environment. The XDG specification asks that relative
/// paths be ignored.
pub(crate) fn resolve_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Error> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    absolute("TIELINE_HOME")
        .or_else(|| absolute("XDG_DATA_HOME").map(|data| data.join("tieline")))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share/tieline")))
        .ok_or(Error::NoHome)
}

/// Makes the directory, its parents and the directory of owners.
pub(crate) fn prepare_dir(dir: &Path) -> Result<(), Error> {
    make_dir(dir)?;
    make_dir(&dir.join(OWNERS))
}

fn make_dir(dir: &Path) -> Result<(), Error> {
    let made = match DirBuilder::new().mode(DIRECTORY_MODE).create(dir) {
        Ok(()) => true,
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => false,
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new()
                .recursive(true)
                .mode(DIRECTORY_MODE)
                .create(dir)
                .map_err(Error::file("create", dir))?;
            true
        }
        Err(err) => return Err(Error::file("create", dir)(err)),
    };
    let mode = std::fs::metadata(dir).map_err(Error::file("look at", dir))?.mode() & 0o7777;
    if mode & 0o777 == DIRECTORY_MODE {
        return Ok(());
    }
    // A directory that was there before may be anybody's, `/tmp` for one. It is made private only
    // when there is nothing in it but a store.
    if made || mode & 0o077 == 0 || is_ours(dir)? {
        return set_mode(dir, DIRECTORY_MODE);
    }
    Err(Error::LooseDirectory { path: dir.to_owned(), mode })
}

/// Waits until no other process opens a store in this directory, as long as the result is kept. Who
/// cannot wait any longer goes on without: the database has locks of its own.
pub(crate) fn alone_in(dir: &Path, patience: Duration) -> Option<File> {
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(dir);
    // Whatever is wrong with it is told by whoever makes it ready.
    made.ok()?;
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

fn is_ours(dir: &Path) -> Result<bool, Error> {
    if dir.file_name().is_some_and(|name| name == OWNERS) || dir.join(DATABASE).exists() {
        return Ok(true);
    }
    let mut entries = dir.read_dir().map_err(Error::file("read", dir))?;
    // Another process may have made its database since we looked.
    Ok(entries.next().is_none() || dir.join(DATABASE).exists())
}

/// Makes the database file, or makes an old one private.
///
/// An existing file is never opened here: POSIX drops every lock a process holds on a file when
/// any descriptor of it is closed, so a second open would silently unlock another connection.
pub(crate) fn prepare_database(path: &Path) -> Result<(), Error> {
    match create_private(path) {
        Ok(_) => Ok(()),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
            let log = with_suffix(path, "-wal");
            if is_empty(path) && log.exists() && !is_empty(&log) {
                // SQLite would take the database for a new one and delete the log.
                return Err(Error::corrupt("it is empty, but its log is not").at(path));
            }
            make_private(path)?;
            make_private(&log)?;
            make_private(&with_suffix(path, "-shm"))
        }
        Err(err) => Err(Error::file("create", path)(err)),
    }
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0)
}

/// Creates a file that must not exist yet, readable by the user alone.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

fn make_private(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.mode() & 0o7777 == FILE_MODE => Ok(()),
        Ok(_) => set_mode(path, FILE_MODE),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(Error::file("look at", path)(err)),
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(Error::file("make private", path))
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

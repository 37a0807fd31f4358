//! Making files and directories the user's alone, without touching what a link leads to.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::{DATABASE, OWNERS};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Makes the directory of the store, and its parents. One that was there before may be anybody's, `/tmp`
/// for one: it is made private only if it is empty or a store.
pub(crate) fn make_dir(dir: &Path) -> Result<(), Error> {
    let mut builder = DirBuilder::new();
    builder.mode(DIRECTORY_MODE);
    let mut result = builder.create(dir);
    if result.as_ref().is_err_and(|err| err.kind() == io::ErrorKind::NotFound) {
        let parents = dir.parent().unwrap_or(dir);
        builder.recursive(true).create(parents).map_err(Error::file("create", parents))?;
        result = builder.recursive(false).create(dir);
    }
    let made = match result {
        Ok(()) => true,
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => false,
        Err(err) => return Err(Error::file("create", dir)(err)),
    };
    if made {
        // The umask may have taken something away.
        return set_mode(dir, DIRECTORY_MODE).map_err(Error::file("make private", dir));
    }
    let metadata = std::fs::metadata(dir).map_err(Error::file("look at", dir))?;
    if !metadata.is_dir() {
        return Err(Error::NotADirectory { path: dir.to_owned() });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    if may_close(dir) {
        return set_mode(dir, DIRECTORY_MODE).map_err(Error::file("make private", dir));
    }
    Err(Error::LooseDirectory { path: dir.to_owned(), mode })
}

/// Makes the directory of owners, which lies in a private one.
pub(crate) fn make_owners(dir: &Path) -> Result<(), Error> {
    let owners = dir.join(OWNERS);
    match DirBuilder::new().mode(DIRECTORY_MODE).create(&owners) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::file("create", &owners)(err));
        }
        _ => {}
    }
    let metadata = owners.symlink_metadata().map_err(Error::file("look at", &owners))?;
    match (metadata.is_dir(), metadata.mode() & 0o7777) {
        (false, _) => Err(Error::NotADirectory { path: owners }),
        (true, DIRECTORY_MODE) => Ok(()),
        (true, _) => {
            set_mode(&owners, DIRECTORY_MODE).map_err(Error::file("make private", &owners))
        }
    }
}

/// Whether a directory is there to be a store of this user's: it is named directly, others may not put
/// files there on purpose, and it is empty or holds a database.
fn may_close(dir: &Path) -> bool {
    let is_empty = || dir.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    is_own(dir) && (is_empty() || is_store(dir))
}

fn is_store(dir: &Path) -> bool {
    is_own(dir) && mine(&dir.join(DATABASE)).is_some_and(|it| it.is_file())
}

fn is_own(dir: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    mine(dir).is_some_and(|it| it.is_dir() && it.mode() & STICKY == 0)
}

/// What a name itself stands for, if it is this user's.
fn mine(path: &Path) -> Option<std::fs::Metadata> {
    let metadata = path.symlink_metadata().ok()?;
    (metadata.uid() == rustix::process::geteuid().as_raw()).then_some(metadata)
}

/// Creates a file that must not exist yet, readable by the user alone.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Whether there is a file under this name.
///
/// # Errors
/// [`Error::NotAFile`] for a link, a device or whatever else is no file.
pub(crate) fn is_there(path: &Path) -> Result<bool, Error> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(Error::NotAFile { path: path.to_owned() }),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(err) => Err(Error::file("look at", path)(err)),
    }
}

/// Makes a file private, if it is there.
pub(crate) fn make_private(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.mode() & 0o7777 == FILE_MODE => Ok(()),
        Ok(_) => match set_mode(path, FILE_MODE) {
            // The last one to close the database takes its log away.
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(Error::file("make private", path)),
        },
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(Error::file("look at", path)(err)),
    }
}

/// Takes every right of others from what is in a store, and says what was open to them. What is no
/// store, and what is neither file nor directory, is left alone.
pub fn close_to_others(dir: &Path) -> Vec<(PathBuf, io::Result<()>)> {
    let mut loose = Vec::new();
    let mut waiting = if is_store(dir) { vec![dir.to_owned()] } else { Vec::new() };
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if !metadata.is_dir() && !metadata.is_file() {
            continue;
        }
        if metadata.mode() & 0o077 != 0 {
            let result = set_mode(&path, metadata.mode() & 0o700);
            loose.push((path.clone(), result));
        }
        if metadata.is_dir()
            && let Ok(entries) = path.read_dir()
        {
            waiting.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    loose
}

/// Changes the mode of a file or directory through a handle, never of what a link leads to nor of a
/// device.
///
/// The handle is one that cannot read: POSIX drops every lock a process holds on a file when any
/// descriptor of it is closed, but not with this kind.
#[cfg(target_os = "linux")]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{FileType, Mode, OFlags};

    let handle =
        rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Err(io::Error::other("it is neither a file nor a directory"));
    }
    // Such a handle takes no change itself; this name of it leads nowhere else.
    let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
    std::fs::set_permissions(name, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(target_os = "linux"))]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Mode};

    let metadata = path.symlink_metadata()?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(io::Error::other("it is neither a file nor a directory"));
    }
    let mode = Mode::from_bits_truncate(mode as _);
    Ok(rustix::fs::chmodat(CWD, path, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

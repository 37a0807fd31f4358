//! Opening a file below a directory and nowhere else.
//!
//! A path is never checked first and opened then: whoever can swap a directory for a link in between
//! would win. The kernel resolves it below a handle and refuses what leads out.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, Result};

/// How a directory is opened.
pub const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// How often the kernel is asked again when something was renamed while it looked.
const TRIES: usize = 16;

/// What becomes of links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// They are followed as long as they stay below the directory, where the kernel can say so; else
    /// none is.
    Inside,
    /// The path has none, or it is not opened (`ELOOP`). Only a handle that names a link
    /// (`PATH` and `NOFOLLOW`) may be one of the link that the last name is.
    None,
}

/// Opens a path below a directory. What leads out is `EXDEV` or `ELOOP`.
pub fn open(directory: &impl AsFd, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return rustix::io::fcntl_dupfd_cloexec(directory, 0);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let within = match links {
            Links::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Links::None => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        };
        let open = || rustix::fs::openat2(directory, path, flags, mode(flags), within);
        let mut opened = open();
        for _ in 0..TRIES {
            match opened {
                Err(Errno::AGAIN) => opened = open(),
                _ => break,
            }
        }
        match opened {
            // Kernels before 5.6, and sandboxes that hide the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened,
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = links;
    step_by_step(directory, path, flags)
}

/// One directory after the other, without a single link.
fn step_by_step(directory: &impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let mut parts = path.components().peekable();
    let mut open: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let Component::Normal(part) = part else { return Err(Errno::XDEV) };
        let flags = if parts.peek().is_some() { DIRECTORY } else { flags };
        let at = open.as_ref().map_or(directory.as_fd(), AsFd::as_fd);
        let is_link = || {
            rustix::fs::statat(at, part, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|it| FileType::from_raw_mode(it.st_mode).is_symlink())
        };
        // A handle that only names its file would be one of the link itself.
        if flags.contains(OFlags::PATH) && !flags.contains(OFlags::NOFOLLOW) && is_link() {
            return Err(Errno::LOOP);
        }
        let next = rustix::fs::openat(at, part, flags | OFlags::NOFOLLOW, mode(flags));
        open = Some(next.map_err(|err| match err {
            Errno::LOOP | Errno::NOTDIR if is_link() => Errno::LOOP,
            err => err,
        })?);
    }
    open.ok_or(Errno::INVAL)
}

/// Opens a directory below another, making what is missing of it; `on_made` is told of each that was
/// made: its parent, and its path below the first one.
pub fn directories(
    directory: &impl AsFd,
    path: &Path,
    links: Links,
    mut on_made: impl FnMut(&OwnedFd, &Path),
) -> Result<OwnedFd> {
    // Mostly everything is there.
    match open(directory, path, DIRECTORY, links) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    let mut at = open(directory, Path::new(""), DIRECTORY, links)?;
    let mut so_far = PathBuf::new();
    for part in path.components() {
        let Component::Normal(part) = part else { continue };
        so_far.push(part);
        let part = Path::new(part);
        at = match open(&at, part, DIRECTORY, links) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&at, part, Mode::from_raw_mode(0o777)) {
                    Ok(()) => on_made(&at, &so_far),
                    Err(Errno::EXIST) => {}
                    Err(err) => return Err(err),
                }
                open(&at, part, DIRECTORY, links)?
            }
            opened => opened?,
        };
    }
    Ok(at)
}

/// What looks like a file and is the kernel's, our own environment for example.
pub fn is_of_kernel(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        const PROC: i64 = 0x9fa0;
        const SYS: i64 = 0x6265_6572;
        rustix::fs::fstatfs(file).is_ok_and(|it| {
            #[allow(clippy::unnecessary_cast, reason = "its width differs between machines")]
            let kind = it.f_type as i64;
            matches!(kind, PROC | SYS)
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        false
    }
}

/// The mode of a new file; the user's umask takes from it.
fn mode(flags: OFlags) -> Mode {
    match flags.contains(OFlags::CREATE) {
        true => Mode::from_raw_mode(0o666),
        false => Mode::empty(),
    }
}

//! Opening a file below a directory and nowhere else.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, Result};

/// A file below a root.
pub(super) struct Place {
    root: PathBuf,
    /// Relative, and never with `..` in it.
    path: PathBuf,
}

impl Place {
    /// Where a path is; none when it is below no root by its spelling.
    pub(super) fn find(roots: &[PathBuf], path: &Path) -> Option<Self> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        roots.iter().find_map(|root| {
            let below = path.strip_prefix(root).ok()?;
            let is_plain = below.components().all(plain) && below.components().next().is_some();
            is_plain.then(|| Self { root: root.clone(), path: below.to_owned() })
        })
    }

    /// Opens it. A new file gets the directories it needs.
    pub(super) fn open(&self, flags: OFlags) -> Result<OwnedFd> {
        let root = rustix::fs::open(&self.root, DIRECTORY, Mode::empty())?;
        match below(&root, &self.path, flags) {
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                let (parent, name) = self.parent(root)?;
                below(&parent, Path::new(&name), flags)
            }
            opened => opened,
        }
    }

    /// The directory it is in, made where it is missing.
    fn parent(&self, root: OwnedFd) -> Result<(OwnedFd, std::ffi::OsString)> {
        let name = self.path.file_name().ok_or(Errno::INVAL)?.to_owned();
        let mut directory = root;
        for part in self.path.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(part) = part else { continue };
            let part = Path::new(part);
            directory = match below(&directory, part, DIRECTORY) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&directory, part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(err) => return Err(err),
                    }
                    below(&directory, part, DIRECTORY)?
                }
                opened => opened?,
            };
        }
        Ok((directory, name))
    }
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Opens a path below a directory: links are followed as long as they stay there, where the kernel
/// can say so, else not at all.
fn below(directory: &impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(directory, path, flags, mode(flags), within) {
            // Kernels before 5.6, and sandboxes that hide the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            // Something was renamed at the same time; the kernel wants to be asked again.
            Err(Errno::AGAIN) => {
                return rustix::fs::openat2(directory, path, flags, mode(flags), within);
            }
            opened => return opened,
        }
    }
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
        let next = rustix::fs::openat(at, part, flags | OFlags::NOFOLLOW, mode(flags));
        let is_link = |err: Errno| {
            matches!(err, Errno::LOOP | Errno::NOTDIR)
                && rustix::fs::statat(at, part, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|it| rustix::fs::FileType::from_raw_mode(it.st_mode).is_symlink())
        };
        open = Some(next.map_err(|err| if is_link(err) { Errno::LOOP } else { err })?);
    }
    open.ok_or(Errno::INVAL)
}

/// The mode of a new file; the user's umask takes from it.
fn mode(flags: OFlags) -> Mode {
    match flags.contains(OFlags::CREATE) {
        true => Mode::from_raw_mode(0o666),
        false => Mode::empty(),
    }
}

#[cfg(test)]
pub(super) fn without_links(root: &Path, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let root = rustix::fs::open(root, DIRECTORY, Mode::empty())?;
    step_by_step(&root, path, flags)
}

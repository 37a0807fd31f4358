//! Where links lead, below a directory.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::beneath::{self, Links};

/// A handle that can neither read nor write.
const NAME_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A path below a directory, without links as far as it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Real {
    /// The path.
    pub below: PathBuf,
    /// The last name was a link, and not only one before it.
    pub is_link: bool,
}

/// Why a path leads to no place below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Astray {
    /// It leads out.
    Outside,
    /// It leads to no file that could be opened, or somebody changes it while it is looked at.
    Nowhere,
    /// A file stands where a directory would have to be.
    NotADirectory,
}

impl From<Errno> for Astray {
    fn from(err: Errno) -> Self {
        match err {
            Errno::NOTDIR => Self::NotADirectory,
            _ => Self::Outside,
        }
    }
}

/// Where a path leads below a directory. Only a spelling to start from: what is opened by it is to be
/// opened below the directory again, without links.
pub fn real(directory: &impl AsFd, below: &Path) -> Result<Real, Astray> {
    match beneath::open(directory, below, NAME_ONLY, Links::None) {
        Err(Errno::LOOP) => {}
        Err(Errno::XDEV) => return Err(Astray::Outside),
        // What else is wrong is found by whoever opens it.
        _ => return Ok(Real { below: below.to_owned(), is_link: false }),
    }
    let found = follow(directory, below)?;
    match beneath::open(directory, &found.below, NAME_ONLY, Links::None) {
        // It leads to nothing, or somebody is playing with it.
        Err(Errno::LOOP | Errno::XDEV) => Err(Astray::Nowhere),
        _ => Ok(found),
    }
}

fn follow(directory: &impl AsFd, below: &Path) -> Result<Real, Astray> {
    let mut rest = Vec::new();
    let mut existing = below;
    loop {
        match beneath::open(directory, existing, NAME_ONLY, Links::Inside) {
            Ok(found) => {
                let base = rustix::io::fcntl_dupfd_cloexec(directory, 0)?;
                let base = location(&base).ok_or(Astray::Nowhere)?;
                let real = location(&found).ok_or(Astray::Nowhere)?;
                let mut real = real.strip_prefix(base).map_err(|_| Astray::Outside)?.to_owned();
                let is_link = rest.is_empty() && is_link(directory, below, &real)?;
                real.extend(rest.iter().rev());
                return Ok(Real { below: real, is_link });
            }
            Err(Errno::NOENT) => {
                let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                    return Err(Astray::Nowhere);
                };
                rest.push(name);
                existing = parent;
            }
            Err(err) => return Err(err.into()),
        }
    }
}

/// Whether the last name of a path is a link, and not only one before it.
fn is_link(directory: &impl AsFd, below: &Path, real: &Path) -> Result<bool, Astray> {
    match (below.parent(), below.file_name()) {
        (Some(parent), Some(name)) => Ok(follow(directory, parent)?.below.join(name) != real),
        _ => Ok(false),
    }
}

/// Where an open file is now.
fn location(file: &OwnedFd) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(link).ok().filter(|path| path.is_absolute())
}

//! Where a file is below the roots of an agent.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use tieline_workspace::beneath::{DIRECTORY, Links, directories, open};

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
        match open(&root, &self.path, flags, Links::Inside) {
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                let parent = self.path.parent().unwrap_or(Path::new(""));
                let name = self.path.file_name().ok_or(Errno::INVAL)?;
                let parent = directories(&root, parent, Links::Inside, |_, _| {})?;
                open(&parent, Path::new(name), flags, Links::Inside)
            }
            opened => opened,
        }
    }
}

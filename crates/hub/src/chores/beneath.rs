//! Where a file is below the roots of an agent.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use tieline_workspace::beneath::{DIRECTORY, Links, directories, open};
use tieline_workspace::{Astray, Guard, Obeyed, real};

/// A file below a root.
pub(super) struct Place {
    root: PathBuf,
    /// Relative, and never with `..` in it.
    below: PathBuf,
    links: Links,
}

impl Place {
    /// Where a path is; none when it is below no root by its spelling.
    pub(super) fn find(roots: &[PathBuf], path: &Path) -> Option<Self> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        roots.iter().find_map(|root| {
            let below = path.strip_prefix(root).ok()?;
            let is_plain = below.components().all(plain) && below.components().next().is_some();
            is_plain.then(|| {
                let (root, below) = (root.clone(), below.components().collect());
                Self { root, below, links: Links::Inside }
            })
        })
    }

    /// The same file by a path without links below its root. None is followed any more.
    pub(super) fn real(self) -> Result<Self> {
        let found = real(&self.open_root()?, &self.below).map_err(|astray| match astray {
            Astray::Outside | Astray::Nowhere => Errno::XDEV,
            Astray::NotADirectory => Errno::NOTDIR,
        })?;
        Ok(Self { below: found.below, links: Links::None, ..self })
    }

    /// Who obeys it, if somebody does.
    pub(super) fn obeyed_by(&self, guard: &Guard) -> Option<Obeyed> {
        let root = self.root.canonicalize();
        guard.obeyed_by(root.as_deref().unwrap_or(&self.root), &self.below)
    }

    /// Its path, as its root was named.
    pub(super) fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// Opens it. A new file gets the directories it needs.
    pub(super) fn open(&self, flags: OFlags) -> Result<OwnedFd> {
        let root = self.open_root()?;
        match open(&root, &self.below, flags, self.links) {
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                let parent = self.below.parent().unwrap_or(Path::new(""));
                let name = self.below.file_name().ok_or(Errno::INVAL)?;
                let parent = directories(&root, parent, self.links, |_, _| {})?;
                open(&parent, Path::new(name), flags, self.links)
            }
            opened => opened,
        }
    }

    fn open_root(&self) -> Result<OwnedFd> {
        rustix::fs::open(&self.root, DIRECTORY, Mode::empty())
    }
}

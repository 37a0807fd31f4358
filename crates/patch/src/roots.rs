//! Where a patch may write.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tieline_workspace::beneath::{self, DIRECTORY, Links};
use tieline_workspace::{Astray, Guard, Obeyed, Real, real};

use crate::error::{Error, Refusal};

/// The longest path and the longest name that Linux takes.
const LONGEST_PATH: usize = 4095;
const LONGEST_NAME: usize = 255;

/// A directory below which files may be written. It is a handle: renaming it changes nothing.
#[derive(Debug)]
pub struct Root {
    /// As it was named.
    path: PathBuf,
    /// Without links.
    real: PathBuf,
    directory: OwnedFd,
}

impl Root {
    /// Opens a directory.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Root { path: path.to_owned(), source };
        let real = std::fs::canonicalize(path).map_err(failed)?;
        let directory = rustix::fs::open(&real, DIRECTORY, Mode::empty());
        let path = std::path::absolute(path).map_err(failed)?;
        Ok(Self { path, real, directory: directory.map_err(|err| failed(err.into()))? })
    }

    /// Its path without links, as it was when it was opened.
    pub fn real_path(&self) -> &Path {
        &self.real
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// What of a path is below this directory, by its spelling.
    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.real).or_else(|_| path.strip_prefix(&self.path)).ok()
    }
}

/// Where a patch may write, and where its paths begin.
#[derive(Debug)]
pub struct Roots {
    cwd: PathBuf,
    roots: Vec<Root>,
    guard: Guard,
}

/// A file that a patch names: below which root, by a path without links.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) root: usize,
    pub(crate) below: PathBuf,
    /// The name itself is a link to the file.
    pub(crate) is_link: bool,
}

impl Roots {
    /// One root, in which paths begin.
    pub fn here(directory: &Path) -> Result<Self, Error> {
        let root = Root::open(directory)?;
        let cwd = root.real.clone();
        Ok(Self { cwd, roots: vec![root], guard: Guard::by_name() })
    }

    /// Several roots; paths begin in `cwd`, which need not be below one of them.
    pub fn open(cwd: &Path, roots: &[PathBuf]) -> Result<Self, Error> {
        let cwd = std::fs::canonicalize(cwd)
            .map_err(|source| Error::Root { path: cwd.to_owned(), source })?;
        let mut roots = roots.iter().map(|it| Root::open(it)).collect::<Result<Vec<_>, _>>()?;
        // Of roots within each other the innermost is meant.
        roots.sort_by_key(|root| std::cmp::Reverse(root.real.components().count()));
        Ok(Self { cwd, roots, guard: Guard::by_name() })
    }

    /// Something else is protected than the names of any workspace; nothing, if somebody allowed it.
    pub fn guarded_by(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// Where relative paths begin.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Where a path would lead: an error says that it is not to be touched. Nothing is written.
    pub fn check(&self, name: &str) -> Result<(), Refusal> {
        self.locate(name).map(drop)
    }

    /// The path that a name leads to and who obeys it, if it is protected.
    pub fn protected(&self, name: &str) -> Option<(PathBuf, Obeyed)> {
        let spot = self.spell(name).ok()?;
        let root = self.roots.get(spot.root)?;
        let real = real(&root.directory, &spot.below).ok().map(|real| real.below);
        [Some(spot.below), real].into_iter().flatten().find_map(|below| {
            Some((root.real.join(&below), self.guard.obeyed_by(&root.real, &below)?))
        })
    }

    /// The absolute path that a name means.
    pub fn absolute(&self, name: &str) -> PathBuf {
        self.spelled_out(name).unwrap_or_else(|_| self.cwd.join(name))
    }

    pub(crate) fn root(&self, spot: &Spot) -> Option<&Root> {
        self.get(spot.root)
    }

    /// A root by its number.
    pub(crate) fn get(&self, root: usize) -> Option<&Root> {
        self.roots.get(root)
    }

    /// Where records of patches are kept: the directory in which paths begin, or a root.
    pub(crate) fn desk(&self) -> Option<(&Root, &Path)> {
        let found = self.roots.iter().find_map(|root| Some((root, root.below(&self.cwd)?)));
        found.or_else(|| Some((self.roots.first()?, Path::new(""))))
    }

    /// The absolute path of a file.
    pub(crate) fn path(&self, spot: &Spot) -> PathBuf {
        self.root(spot).map(|root| root.real.join(&spot.below)).unwrap_or_default()
    }

    /// Finds a file by what a patch calls it.
    pub(crate) fn locate(&self, name: &str) -> Result<Spot, Refusal> {
        let spot = self.guarded(self.spell(name)?)?;
        self.without_links(spot)
    }

    /// Where a name is by its spelling alone.
    fn spell(&self, name: &str) -> Result<Spot, Refusal> {
        if name.contains('\0') {
            return Err(Refusal::Nul);
        }
        if name.contains('\\') {
            return Err(Refusal::Backslash);
        }
        let path = self.spelled_out(name)?;
        let is_long = |part: &OsStr| part.len() > LONGEST_NAME;
        if path.as_os_str().len() > LONGEST_PATH || path.iter().any(is_long) {
            return Err(Refusal::TooLong);
        }
        let found = self.roots.iter().enumerate();
        let mut found = found.filter_map(|(index, root)| Some((index, root.below(&path)?)));
        let (root, below) = found.next().ok_or(Refusal::Outside)?;
        match below.as_os_str().is_empty() || name.ends_with(['/', '.']) && is_directory(name) {
            true => Err(Refusal::NotAFile),
            false => Ok(Spot { root, below: below.to_owned(), is_link: false }),
        }
    }

    /// A name as an absolute path without `.` and `..`. Only at its beginning `..` is sure to mean
    /// the directory above: the one we are in is spelled without links.
    fn spelled_out(&self, name: &str) -> Result<PathBuf, Refusal> {
        let mut path = self.cwd.clone();
        let mut is_begun = false;
        if name.is_empty() {
            return Err(Refusal::Empty);
        }
        for part in Path::new(name).components() {
            match part {
                Component::Normal(part) => {
                    path.push(part);
                    is_begun = true;
                }
                Component::CurDir => {}
                Component::ParentDir if is_begun || Path::new(name).is_absolute() => {
                    return Err(Refusal::DotDot);
                }
                Component::ParentDir if !path.pop() => return Err(Refusal::Outside),
                Component::ParentDir => {}
                Component::RootDir | Component::Prefix(_) => path.push("/"),
            }
        }
        Ok(path)
    }

    fn guarded(&self, spot: Spot) -> Result<Spot, Refusal> {
        let Some(root) = self.roots.get(spot.root) else { return Err(Refusal::Outside) };
        match self.guard.obeyed_by(&root.real, &spot.below) {
            Some(_) => Err(Refusal::Protected),
            None => Ok(spot),
        }
    }

    /// The same file by a path without links, so that its whole spelling can be judged, and so that
    /// whoever opens it later need follow none.
    fn without_links(&self, spot: Spot) -> Result<Spot, Refusal> {
        let Some(root) = self.roots.get(spot.root) else { return Err(Refusal::Outside) };
        let Real { below, is_link } = real(&root.directory, &spot.below)?;
        self.guarded(Spot { root: spot.root, below, is_link })
    }
}

impl From<Astray> for Refusal {
    fn from(astray: Astray) -> Self {
        match astray {
            Astray::Outside => Self::Outside,
            Astray::Nowhere => Self::Link,
            Astray::NotADirectory => Self::NotAFile,
        }
    }
}

fn is_directory(name: &str) -> bool {
    name.ends_with('/') || name.ends_with("/.") || name == "."
}

/// A regular file for reading, opened without following a link.
pub(crate) fn open_file(root: &Root, below: &Path) -> Result<File, Errno> {
    // A pipe must not hold us up, and a terminal must not become ours.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    beneath::open(&root.directory, below, flags, Links::None).map(File::from)
}

//! The directories of a patch as handles: a few at a time, however many there are.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::io::Errno;

use crate::roots::{Root, Roots};
use tieline_workspace::beneath::{self, DIRECTORY, Links};

/// How many are open at a time. Mostly these are all, and renaming one changes nothing then.
const MOST_OPEN: usize = 32;

/// Directories below roots.
pub(crate) struct Places<'r> {
    roots: &'r Roots,
    all: Vec<Place>,
    by_path: HashMap<(usize, PathBuf), usize>,
    /// The longest open first.
    open: VecDeque<(usize, Rc<OwnedFd>)>,
}

struct Place {
    root: usize,
    below: PathBuf,
    /// Its device and its number there.
    id: (u64, u64),
}

impl<'r> Places<'r> {
    pub(crate) fn new(roots: &'r Roots) -> Self {
        Self { roots, all: Vec::new(), by_path: HashMap::new(), open: VecDeque::new() }
    }

    /// A directory, by its number here. `open` opens one that was not seen yet.
    pub(crate) fn add(
        &mut self,
        root: usize,
        below: &Path,
        open: impl FnOnce(&Root) -> Result<OwnedFd, Errno>,
    ) -> Result<usize, Errno> {
        let key = (root, below.to_owned());
        if let Some(place) = self.by_path.get(&key) {
            return Ok(*place);
        }
        let directory = open(self.roots.get(root).ok_or(Errno::XDEV)?)?;
        let place = self.all.len();
        self.all.push(Place { root, below: below.to_owned(), id: id(&directory)? });
        self.by_path.insert(key, place);
        self.keep(place, Rc::new(directory));
        Ok(place)
    }

    /// Its handle. A directory that is another one by now is `ESTALE`.
    pub(crate) fn handle(&mut self, place: usize) -> Result<Rc<OwnedFd>, Errno> {
        if let Some((_, directory)) = self.open.iter().find(|(open, _)| *open == place) {
            return Ok(Rc::clone(directory));
        }
        let it = self.all.get(place).ok_or(Errno::BADF)?;
        let root = self.roots.get(it.root).ok_or(Errno::XDEV)?;
        let directory = beneath::open(root.directory(), &it.below, DIRECTORY, Links::None)?;
        if id(&directory)? != it.id {
            return Err(Errno::STALE);
        }
        let directory = Rc::new(directory);
        self.keep(place, Rc::clone(&directory));
        Ok(directory)
    }

    /// Its path, for messages alone.
    pub(crate) fn path(&self, place: usize) -> PathBuf {
        let path = self.all.get(place).and_then(|it| {
            let root = self.roots.get(it.root)?;
            Some(root.real_path().join(&it.below))
        });
        path.unwrap_or_default()
    }

    fn keep(&mut self, place: usize, directory: Rc<OwnedFd>) {
        if self.open.len() >= MOST_OPEN {
            self.open.pop_front();
        }
        self.open.push_back((place, directory));
    }
}

#[allow(clippy::unnecessary_cast, reason = "widths differ between machines")]
fn id(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    let stat = rustix::fs::fstat(directory)?;
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

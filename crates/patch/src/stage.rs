//! Bringing new contents to the disk, all of them or none.
//!
//! First a record says what is about to be done. Then every new content is written beside its place
//! under a name of its own. When all of them are there, they change places with the old ones: a single
//! step of the kernel each, which follows no link and leaves the old file under another name. So what
//! was there can be looked at once more, and be put back if a later step fails. Who is killed on the
//! way leaves the record, by which [`recover`](crate::recover) does the same.

mod item;
mod places;
mod record;
pub(crate) mod recover;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use tieline_workspace::beneath::{self, DIRECTORY, Links};

use crate::applied::{Applied, Undo};
use crate::error::{Error, Refusal};
use crate::prepare::{Options, Prepared, Target};
use crate::roots::{Root, Roots};

use item::{Item, new_name};
use places::Places;
use record::{Phase, Planned, Record};

/// How names beside places end.
const BESIDE: &str = ".tmp";

/// New contents beside their places.
pub(crate) struct Stage<'r> {
    roots: &'r Roots,
    places: Places<'r>,
    items: Vec<Item>,
    made: Vec<Made>,
    record: Option<Record>,
}

/// What was written.
#[derive(Debug)]
pub(crate) struct Committed {
    directories: Vec<PathBuf>,
    left_behind: Vec<PathBuf>,
}

/// A directory that was made.
struct Made {
    root: usize,
    below: PathBuf,
}

impl<'r> Stage<'r> {
    /// Writes new contents beside their places. Who gets an error finds everything as it was.
    pub(crate) fn new<'t>(
        roots: &'r Roots,
        options: Options,
        targets: impl Iterator<Item = &'t Target>,
    ) -> Result<Self, Error> {
        let targets: Vec<&Target> = targets.filter(|target| target.is_changed()).collect();
        let names: Vec<_> = targets.iter().map(|_| [new_name(BESIDE), new_name(BESIDE)]).collect();
        let planned =
            targets.iter().zip(&names).map(|(target, names)| planned(roots, target, names));
        let directories = missing(roots, &targets);
        let record = Record::write(roots, planned.collect(), directories, options.is_synced);
        let places = Places::new(roots);
        let mut stage = Self { roots, places, items: Vec::new(), made: Vec::new(), record };
        for (target, names) in targets.into_iter().zip(names) {
            if let Err(err) = stage.add(options, target, names) {
                return Err(stage.give_up(err));
            }
        }
        Ok(stage)
    }

    /// Puts every file in its place.
    pub(crate) fn commit(self) -> Result<Committed, Error> {
        self.commit_watched(&mut |_| {})
    }

    /// The same; `before` is told the number of each step before it is made.
    pub(crate) fn commit_watched(
        mut self,
        before: &mut dyn FnMut(usize),
    ) -> Result<Committed, Error> {
        for index in 0..self.items.len() {
            before(index);
            if let Err(err) = self.swap(index) {
                return Err(self.give_up(err));
            }
        }
        before(self.items.len());
        // From here on a recovery goes on, where before it went back.
        if let Some(Err(source)) = self.record.as_mut().map(|it| it.set(Phase::Done)) {
            let name = self.items.first().map(|item| item.name.clone()).unwrap_or_default();
            return Err(self.give_up(Error::Write { name, source }));
        }
        let mut left_behind = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            before(self.items.len() + 1 + index);
            let path = self.places.path(item.place);
            match self.places.handle(item.place) {
                Ok(directory) => {
                    left_behind.extend(item.clear(&directory).err().map(|name| path.join(name)));
                }
                Err(_) => left_behind.push(path.join(item.old())),
            }
        }
        let roots = self.roots;
        let path = |made: Made| roots.get(made.root).map(|it| it.real_path().join(made.below));
        let directories = self.made.into_iter().filter_map(path).collect();
        left_behind.extend(self.record.and_then(Record::remove));
        Ok(Committed { directories, left_behind })
    }

    fn swap(&mut self, index: usize) -> Result<(), Error> {
        let Some(item) = self.items.get_mut(index) else { return Ok(()) };
        match self.places.handle(item.place) {
            Ok(directory) => item.swap(&directory),
            Err(Errno::STALE | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                Err(Error::Changed { name: item.name.clone() })
            }
            Err(err) => Err(Error::Write { name: item.name.clone(), source: err.into() }),
        }
    }

    fn add(
        &mut self,
        options: Options,
        target: &Target,
        names: [std::ffi::OsString; 2],
    ) -> Result<(), Error> {
        let name = &target.name;
        let failed = |err: Errno| match (err, &target.after) {
            (Errno::LOOP | Errno::XDEV, _) => {
                Error::Refused { name: name.clone(), why: Refusal::Outside }
            }
            (err, Some(_)) => Error::Write { name: name.clone(), source: err.into() },
            (err, None) => Error::Delete { name: name.clone(), source: err.into() },
        };
        let spot = &target.spot;
        let (Some(parent), Some(leaf)) = (spot.below.parent(), spot.below.file_name()) else {
            return Err(failed(Errno::ISDIR));
        };
        let made = &mut self.made;
        let place = self.places.add(spot.root, parent, |root| match target.after {
            Some(_) => directories(root, spot.root, parent, made),
            None => beneath::open(root.directory(), parent, DIRECTORY, Links::None),
        });
        let place = place.map_err(failed)?;
        let directory = self.places.handle(place).map_err(failed)?;
        let before = target.before.as_ref().map(|found| found.stamp);
        let mut item = Item::new(name.clone(), place, leaf.to_owned(), before, names);
        let written = match &target.after {
            Some(content) => item.write(&directory, content.bytes(), target.mode, options),
            None => Ok(()),
        };
        // Also what could not be written to its end is to be cleared up.
        self.items.push(item);
        written.map_err(|source| Error::Write { name: name.clone(), source })
    }

    /// Puts everything back and says why.
    fn give_up(mut self, cause: Error) -> Error {
        let mut state = Vec::new();
        for item in self.items.iter_mut().rev() {
            let path = self.places.path(item.place);
            let directory = self.places.handle(item.place);
            match directory.and_then(|it| item.put_back(&it).map(|()| it)) {
                Err(err) => state.push(item.trouble(&path, err)),
                Ok(directory) => {
                    let left = item.clear(&directory).err();
                    state
                        .extend(left.map(|it| format!("{} is left over", path.join(it).display())));
                }
            }
        }
        for made in self.made.iter().rev() {
            let Some(root) = self.roots.get(made.root) else { continue };
            if let Err(err) = remove_directory(root, &made.below) {
                let (path, err) = (root.real_path().join(&made.below), io::Error::from(err));
                state.push(format!("the directory {} stays: {err}", path.display()));
            }
        }
        let left = self.record.take().and_then(Record::remove);
        state.extend(left.map(|it| format!("{} is left over", it.display())));
        match state.is_empty() {
            true => cause,
            false => Error::Torn { cause: Box::new(cause), state },
        }
    }
}

/// Opens a directory, making what is missing of it.
fn directories(
    root: &Root,
    number: usize,
    path: &Path,
    made: &mut Vec<Made>,
) -> Result<OwnedFd, Errno> {
    beneath::directories(root.directory(), path, Links::None, |_, path| {
        made.push(Made { root: number, below: path.to_owned() });
    })
}

/// Removes a directory that was made, if nobody uses it.
fn remove_directory(root: &Root, below: &Path) -> Result<(), Errno> {
    let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else { return Ok(()) };
    let parent = beneath::open(root.directory(), parent, DIRECTORY, Links::None);
    match parent.and_then(|it| rustix::fs::unlinkat(it, name, AtFlags::REMOVEDIR)) {
        // Somebody else uses it already, or took it away.
        Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(err) => Err(err),
    }
}

/// What a recovery has to know of a file.
fn planned(roots: &Roots, target: &Target, [beside, aside]: &[std::ffi::OsString; 2]) -> Planned {
    Planned {
        path: roots.path(&target.spot),
        before: target.before.as_ref().map(|found| found.stamp.inode),
        after: target.after.as_ref().map(crate::Content::sha256),
        beside: beside.to_string_lossy().into_owned(),
        aside: aside.to_string_lossy().into_owned(),
    }
}

/// The directories that have to be made, outer ones first.
fn missing(roots: &Roots, targets: &[&Target]) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for target in targets.iter().filter(|target| target.after.is_some()) {
        let Some(root) = roots.root(&target.spot) else { continue };
        for below in target.spot.below.ancestors().skip(1) {
            let path = root.real_path().join(below);
            if below.as_os_str().is_empty() || !seen.insert(path.clone()) {
                break;
            }
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            match beneath::open(root.directory(), below, flags, Links::None) {
                Err(Errno::NOENT) => missing.insert(path),
                _ => break,
            };
        }
    }
    missing.into_iter().collect()
}

impl Committed {
    /// The patch as what was done.
    pub(crate) fn done(self, prepared: Prepared<'_>) -> Applied {
        let undo = Undo::of(&prepared.targets, self.directories);
        Applied { changes: prepared.changes, undo, left_behind: self.left_behind }
    }

    /// The end of taking a patch back: the directories it made go, if nobody uses them.
    pub(crate) fn done_undo(self, roots: &Roots, directories: &[PathBuf]) -> Result<(), Error> {
        for path in directories.iter().rev() {
            let name = path.display().to_string();
            let refused = |why| Error::Refused { name: name.clone(), why };
            let spot = roots.locate(&name).map_err(refused)?;
            let root = roots.root(&spot).ok_or_else(|| refused(Refusal::Outside))?;
            let removed = remove_directory(root, &spot.below);
            removed.map_err(|err| Error::Delete { name, source: err.into() })?;
        }
        Ok(())
    }
}

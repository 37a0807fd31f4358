//! Bringing new contents to the disk, all of them or none.
//!
//! Every new content is written beside its place under a name of its own. When all of them are there,
//! they change places with the old ones: a single step of the kernel each, which follows no link and
//! leaves the old file under the other name. So what was there can be looked at once more, and be put
//! back if a later step fails.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::applied::{Applied, Undo};
use crate::beneath::{self, DIRECTORY, Links};
use crate::error::{Error, Refusal};
use crate::prepare::{Options, Prepared, Stamp, Target};
use crate::roots::{Root, Roots};

/// How often another name is tried when one is taken.
const TRIES: usize = 16;

/// New contents beside their places.
pub(crate) struct Stage {
    items: Vec<Item>,
    made: Vec<Made>,
}

/// What was written.
#[derive(Debug)]
pub(crate) struct Committed {
    directories: Vec<PathBuf>,
    left_behind: Vec<PathBuf>,
}

/// A directory that was made.
struct Made {
    parent: OwnedFd,
    name: OsString,
    path: PathBuf,
}

/// One file on its way.
struct Item {
    name: String,
    directory: OwnedFd,
    /// The directory's path, for messages alone.
    path: PathBuf,
    leaf: OsString,
    /// The file that is there and was read.
    before: Option<Stamp>,
    /// The new file, if there is to be one.
    ours: Option<Stamp>,
    /// The name beside the place: of the new file, then of the old one.
    beside: OsString,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is at its place yet.
    Staged,
    /// The new file is there, the old one beside it.
    Exchanged,
    /// The new file is there, and nothing was.
    Created,
    /// The old file is beside its place, and nothing is there.
    Taken,
}

impl Stage {
    /// Writes new contents beside their places. Who gets an error finds everything as it was.
    pub(crate) fn new<'t>(
        roots: &Roots,
        options: Options,
        targets: impl Iterator<Item = &'t Target>,
    ) -> Result<Self, Error> {
        let mut stage = Self { items: Vec::new(), made: Vec::new() };
        for target in targets.filter(|target| target.is_changed()) {
            if let Err(err) = stage.add(roots, options, target) {
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
        for (index, item) in self.items.iter_mut().enumerate() {
            before(index);
            if let Err(err) = item.swap() {
                return Err(self.give_up(err));
            }
        }
        before(self.items.len());
        let left_behind = self.items.iter().filter_map(|item| item.clear().err()).collect();
        let directories = self.made.into_iter().map(|made| made.path).collect();
        Ok(Committed { directories, left_behind })
    }

    fn add(&mut self, roots: &Roots, options: Options, target: &Target) -> Result<(), Error> {
        let name = &target.name;
        let failed = |err: Errno| match (err, &target.after) {
            (Errno::LOOP | Errno::XDEV, _) => {
                Error::Refused { name: name.clone(), why: Refusal::Outside }
            }
            (err, Some(_)) => Error::Write { name: name.clone(), source: err.into() },
            (err, None) => Error::Delete { name: name.clone(), source: err.into() },
        };
        let root = roots.root(&target.spot).ok_or_else(|| failed(Errno::XDEV))?;
        let below = &target.spot.below;
        let (Some(parent), Some(leaf)) = (below.parent(), below.file_name()) else {
            return Err(failed(Errno::ISDIR));
        };
        let directory = match target.after {
            Some(_) => self.directories(root, parent),
            None => beneath::open(root.directory(), parent, DIRECTORY, Links::None),
        };
        let mut item = Item {
            name: name.clone(),
            directory: directory.map_err(failed)?,
            path: root.real_path().join(parent),
            leaf: leaf.to_owned(),
            before: target.before.as_ref().map(|found| found.stamp),
            ours: None,
            beside: OsString::new(),
            state: State::Staged,
        };
        let written = match &target.after {
            Some(content) => item.write(content.bytes(), target.mode, options),
            None => Ok(()),
        };
        // Also what could not be written to its end is to be cleared up.
        self.items.push(item);
        written.map_err(|source| Error::Write { name: name.clone(), source })
    }

    fn directories(&mut self, root: &Root, path: &Path) -> Result<OwnedFd, Errno> {
        let mut failed = None;
        let opened = beneath::directories(root.directory(), path, Links::None, |parent, path| {
            let parent = rustix::io::fcntl_dupfd_cloexec(parent, 0);
            match (parent, path.file_name()) {
                (Ok(parent), Some(name)) => {
                    let (name, path) = (name.to_owned(), root.real_path().join(path));
                    self.made.push(Made { parent, name, path });
                }
                (parent, _) => failed = parent.err(),
            }
        });
        match failed {
            Some(err) => Err(err),
            None => opened,
        }
    }

    /// Puts everything back and says why.
    fn give_up(mut self, cause: Error) -> Error {
        let mut state = Vec::new();
        for item in self.items.iter_mut().rev() {
            if let Err(trouble) = item.put_back() {
                state.push(trouble);
                continue;
            }
            if let Err(left) = item.clear() {
                state.push(format!("{} is left over", left.display()));
            }
        }
        for made in self.made.iter().rev() {
            match rustix::fs::unlinkat(&made.parent, &made.name, AtFlags::REMOVEDIR) {
                // Somebody else uses it already, or took it away.
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
                Err(err) => {
                    let err = io::Error::from(err);
                    state.push(format!("the directory {} stays: {err}", made.path.display()));
                }
            }
        }
        match state.is_empty() {
            true => cause,
            false => Error::Torn { cause: Box::new(cause), state },
        }
    }
}

impl Item {
    /// Writes the new file beside its place: nobody else can open it until it is complete.
    fn write(&mut self, bytes: &[u8], mode: Option<u32>, options: Options) -> io::Result<()> {
        // What the user's umask leaves of a new file's mode is seen by making one.
        let initial = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let flags = flags | OFlags::NOFOLLOW;
        let open = |name: &OsStr| rustix::fs::openat(&self.directory, name, flags, initial);
        let (name, file) = with_new_name(open)?;
        self.beside = name;
        let mut file = File::from(file);
        let made = Stamp::of(&rustix::fs::fstat(&file)?);
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o600))?;
        file.write_all(bytes)?;
        if let Some(before) = self.before.filter(|before| before.owner != made.owner) {
            let (user, group) = before.owner;
            let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
            match rustix::fs::fchown(&file, Some(user), Some(group)) {
                // Only the superuser gives files away; everybody else's edits are their own.
                Ok(()) | Err(Errno::PERM) => {}
                Err(err) => return Err(err.into()),
            }
        }
        let mode = mode.unwrap_or(made.mode) & 0o777;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        self.ours = Some(Stamp::of(&rustix::fs::fstat(&file)?));
        match options.is_synced {
            true => file.sync_data(),
            false => Ok(()),
        }
    }

    /// Puts the new file in its place, or takes the old one away.
    fn swap(&mut self) -> Result<(), Error> {
        let failed = |name: &str, err: Errno, is_write: bool| {
            let (name, source) = (name.to_owned(), io::Error::from(err));
            match is_write {
                true => Error::Write { name, source },
                false => Error::Delete { name, source },
            }
        };
        let swapped = match (self.before, self.ours) {
            (Some(_), Some(_)) => self.exchange(),
            (None, Some(_)) => self.create(),
            (Some(_), None) => self.take(),
            (None, None) => Ok(()),
        };
        match swapped {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOENT) => {
                return Err(Error::Changed { name: self.name.clone() });
            }
            Err(err) => return Err(failed(&self.name, err, self.ours.is_some())),
        }
        // What came away must be what the patch was read against.
        let is_same = |before: Stamp| self.stamp(&self.beside) == Some(before);
        match self.before.is_none_or(is_same) {
            true => Ok(()),
            false => Err(Error::Changed { name: self.name.clone() }),
        }
    }

    fn exchange(&mut self) -> Result<(), Errno> {
        match self.rename(&self.beside, &self.leaf, How::Exchange) {
            Err(err) if is_unsupported(err) => {}
            done => {
                done?;
                self.state = State::Exchanged;
                return Ok(());
            }
        }
        // A file system without it: the old one steps aside first.
        let ours = std::mem::take(&mut self.beside);
        let (beside, ()) = match with_new_name(|name| self.move_new(&self.leaf, name)) {
            Ok(moved) => moved,
            Err(err) => {
                self.beside = ours;
                return Err(err);
            }
        };
        if let Err(err) = self.move_new(&ours, &self.leaf) {
            self.move_new(&beside, &self.leaf)?;
            self.beside = ours;
            return Err(err);
        }
        self.beside = beside;
        self.state = State::Exchanged;
        Ok(())
    }

    fn create(&mut self) -> Result<(), Errno> {
        self.move_new(&self.beside, &self.leaf)?;
        self.state = State::Created;
        Ok(())
    }

    fn take(&mut self) -> Result<(), Errno> {
        let (beside, ()) = with_new_name(|name| self.move_new(&self.leaf, name))?;
        self.beside = beside;
        self.state = State::Taken;
        Ok(())
    }

    /// Undoes the swap. The error says where things are now.
    fn put_back(&mut self) -> Result<(), String> {
        // Whoever put another file there since keeps it.
        let is_ours = || self.stamp(&self.leaf) == self.ours;
        let done = match self.state {
            State::Staged => return Ok(()),
            State::Exchanged | State::Created if !is_ours() => Err(Errno::EXIST),
            State::Exchanged => match self.rename(&self.beside, &self.leaf, How::Exchange) {
                Err(err) if is_unsupported(err) => {
                    let over = self.rename(&self.beside, &self.leaf, How::Replace);
                    self.beside = OsString::new();
                    over
                }
                done => done,
            },
            State::Created => self.move_new(&self.leaf, &self.beside),
            State::Taken => {
                let back = self.move_new(&self.beside, &self.leaf);
                if back.is_ok() {
                    self.beside = OsString::new();
                }
                back
            }
        };
        match done {
            Ok(()) => {
                self.state = State::Staged;
                Ok(())
            }
            Err(err) => Err(self.trouble(err)),
        }
    }

    fn trouble(&self, err: Errno) -> String {
        let (name, err) = (&self.name, io::Error::from(err));
        let beside = self.path.join(&self.beside);
        match self.state {
            State::Created => format!("{name} could not be removed again: {err}"),
            _ => format!("what was in {name} is in {}: {err}", beside.display()),
        }
    }

    /// Removes what is beside the place.
    fn clear(&self) -> Result<(), PathBuf> {
        if self.beside.is_empty() || self.state == State::Created {
            return Ok(());
        }
        match rustix::fs::unlinkat(&self.directory, &self.beside, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(_) => Err(self.path.join(&self.beside)),
        }
    }

    fn stamp(&self, name: &OsStr) -> Option<Stamp> {
        let stat = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().map(|stat| Stamp::of(&stat))
    }

    /// Gives a file a name that is not taken.
    fn move_new(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        match self.rename(from, to, How::New) {
            Err(err) if is_unsupported(err) => {
                rustix::fs::linkat(&self.directory, from, &self.directory, to, AtFlags::empty())?;
                rustix::fs::unlinkat(&self.directory, from, AtFlags::empty())
            }
            done => done,
        }
    }

    fn rename(&self, from: &OsStr, to: &OsStr, how: How) -> Result<(), Errno> {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        {
            use rustix::fs::RenameFlags;
            let flags = match how {
                How::Exchange => RenameFlags::EXCHANGE,
                How::New => RenameFlags::NOREPLACE,
                How::Replace => RenameFlags::empty(),
            };
            rustix::fs::renameat_with(&self.directory, from, &self.directory, to, flags)
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        match how {
            How::Replace => rustix::fs::renameat(&self.directory, from, &self.directory, to),
            How::Exchange | How::New => Err(Errno::NOSYS),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum How {
    Exchange,
    New,
    Replace,
}

/// The file system or the kernel does not know this way to rename.
fn is_unsupported(err: Errno) -> bool {
    matches!(err, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Does something with a name that nobody can guess, until it is one that nobody has.
fn with_new_name<T>(
    mut work: impl FnMut(&OsStr) -> Result<T, Errno>,
) -> Result<(OsString, T), Errno> {
    let mut tries = 0;
    loop {
        let number = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!(".tieline-{number:016x}.tmp"));
        match work(&name) {
            Err(Errno::EXIST) if tries < TRIES => tries += 1,
            done => return Ok((name, done?)),
        }
    }
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
            let (Some(parent), Some(leaf)) = (spot.below.parent(), spot.below.file_name()) else {
                continue;
            };
            let parent = beneath::open(root.directory(), parent, DIRECTORY, Links::None);
            let gone = parent.and_then(|it| rustix::fs::unlinkat(it, leaf, AtFlags::REMOVEDIR));
            match gone {
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR) => {}
                Err(err) => return Err(Error::Delete { name, source: err.into() }),
            }
        }
        Ok(())
    }
}

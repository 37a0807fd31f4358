//! One file on its way to its place.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::prepare::{Options, Stamp};

/// One file on its way. Its methods are given the handle of its directory.
pub(crate) struct Item {
    pub(super) name: String,
    pub(super) place: usize,
    pub(super) leaf: OsString,
    /// The file that is there and was read.
    pub(super) before: Option<Stamp>,
    /// The new file, if there is to be one.
    pub(super) ours: Option<Stamp>,
    /// The new file's name beside the place, the old one's where the two change places.
    pub(super) beside: OsString,
    /// The old file's name where it steps aside alone.
    pub(super) aside: OsString,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is at its place yet.
    Staged,
    /// The new file is there, the old one has its name.
    Exchanged,
    /// The new file is there, and nothing was.
    Created,
    /// The old file stepped aside, and the new one is there, if there is to be one.
    Taken,
    /// The old file is there again, and the new one is gone.
    PutBack,
}

impl Item {
    pub(super) fn new(
        name: String,
        place: usize,
        leaf: OsString,
        before: Option<Stamp>,
        names: [OsString; 2],
    ) -> Self {
        let [beside, aside] = names;
        Self { name, place, leaf, before, ours: None, beside, aside, state: State::Staged }
    }

    /// Writes the new file beside its place: nobody else can open it until it is complete.
    pub(super) fn write(
        &mut self,
        directory: &OwnedFd,
        bytes: &[u8],
        mode: Option<u32>,
        options: Options,
    ) -> io::Result<()> {
        // What the user's umask leaves of a new file's mode is seen by making one.
        let initial = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let flags = flags | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(directory, &self.beside, flags, initial)?;
        let mut file = File::from(file);
        let made = Stamp::of(&rustix::fs::fstat(&file)?);
        self.ours = Some(made);
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
    pub(super) fn swap(&mut self, directory: &OwnedFd) -> Result<(), Error> {
        let failed = |name: &str, err: Errno, is_write: bool| {
            let (name, source) = (name.to_owned(), io::Error::from(err));
            match is_write {
                true => Error::Write { name, source },
                false => Error::Delete { name, source },
            }
        };
        let swapped = match (self.before, self.ours) {
            (Some(_), Some(_)) => self.exchange(directory),
            (None, Some(_)) => self.create(directory),
            (Some(_), None) => self.take(directory),
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
        let old = self.old();
        let is_same = |before: Stamp| stamp(directory, old) == Some(before);
        match self.before.is_none_or(is_same) {
            true => Ok(()),
            false => Err(Error::Changed { name: self.name.clone() }),
        }
    }

    fn exchange(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        match rename(directory, &self.beside, &self.leaf, How::Exchange) {
            Err(err) if is_unsupported(err) => {}
            done => {
                done?;
                self.state = State::Exchanged;
                return Ok(());
            }
        }
        // A file system without it: the old one steps aside first.
        move_new(directory, &self.leaf, &self.aside)?;
        if let Err(err) = move_new(directory, &self.beside, &self.leaf) {
            move_new(directory, &self.aside, &self.leaf)?;
            return Err(err);
        }
        self.state = State::Taken;
        Ok(())
    }

    fn create(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        move_new(directory, &self.beside, &self.leaf)?;
        self.state = State::Created;
        Ok(())
    }

    fn take(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        move_new(directory, &self.leaf, &self.aside)?;
        self.state = State::Taken;
        Ok(())
    }

    /// The name of the old file while the new state is in its place.
    pub(super) fn old(&self) -> &OsStr {
        match self.state {
            State::Taken => &self.aside,
            _ => &self.beside,
        }
    }

    /// Undoes the swap.
    pub(super) fn put_back(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        // Whoever put another file there since keeps it.
        let is_theirs = || stamp(directory, &self.leaf) != self.ours;
        let is_new_there = self.ours.is_some() && self.state != State::Staged;
        if is_new_there && is_theirs() {
            return Err(Errno::EXIST);
        }
        match self.state {
            State::Staged | State::PutBack => return Ok(()),
            State::Exchanged => match rename(directory, &self.beside, &self.leaf, How::Exchange) {
                Err(err) if is_unsupported(err) => {
                    rename(directory, &self.beside, &self.leaf, How::Replace)?;
                    self.state = State::PutBack;
                    return Ok(());
                }
                done => done?,
            },
            State::Created => move_new(directory, &self.leaf, &self.beside)?,
            State::Taken => {
                match self.ours {
                    Some(_) => rename(directory, &self.aside, &self.leaf, How::Replace)?,
                    None => move_new(directory, &self.aside, &self.leaf)?,
                }
                self.state = State::PutBack;
                return Ok(());
            }
        }
        self.state = State::Staged;
        Ok(())
    }

    /// Where things are when the swap could not be undone.
    pub(super) fn trouble(&self, path: &std::path::Path, err: Errno) -> String {
        let (name, err) = (&self.name, io::Error::from(err));
        match self.state {
            State::Staged | State::PutBack => {
                format!("{} is left over: {err}", path.join(&self.beside).display())
            }
            State::Created => format!("{name} could not be removed again: {err}"),
            _ => format!("what was in {name} is in {}: {err}", path.join(self.old()).display()),
        }
    }

    /// Removes what is beside the place. The error is the name that is left over.
    pub(super) fn clear(&self, directory: &OwnedFd) -> Result<(), &OsStr> {
        let name = match self.state {
            // There never was one, or it is in its place.
            State::Staged if self.ours.is_none() => return Ok(()),
            State::Created | State::PutBack => return Ok(()),
            State::Staged | State::Exchanged | State::Taken => self.old(),
        };
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(_) => Err(name),
        }
    }
}

/// What a name is, without following a link.
pub(super) fn stamp(directory: &OwnedFd, name: &OsStr) -> Option<Stamp> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.ok().map(|stat| Stamp::of(&stat))
}

/// Gives a file a name that is not taken.
pub(super) fn move_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match rename(directory, from, to, How::New) {
        Err(err) if is_unsupported(err) => {
            rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())?;
            rustix::fs::unlinkat(directory, from, AtFlags::empty())
        }
        done => done,
    }
}

pub(super) fn rename(directory: &OwnedFd, from: &OsStr, to: &OsStr, how: How) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::RenameFlags;
        let flags = match how {
            How::Exchange => RenameFlags::EXCHANGE,
            How::New => RenameFlags::NOREPLACE,
            How::Replace => RenameFlags::empty(),
        };
        rustix::fs::renameat_with(directory, from, directory, to, flags)
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    match how {
        How::Replace => rustix::fs::renameat(directory, from, directory, to),
        How::Exchange | How::New => Err(Errno::NOSYS),
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    Exchange,
    New,
    Replace,
}

/// The file system or the kernel does not know this way to rename.
fn is_unsupported(err: Errno) -> bool {
    matches!(err, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// How names of ours begin.
const OURS: &str = ".tieline-";

/// A name that nobody can guess, and so nobody has.
pub(super) fn new_name(end: &str) -> OsString {
    let number = RandomState::new().build_hasher().finish();
    OsString::from(format!("{OURS}{number:016x}{end}"))
}

/// Whether a name is one of ours.
pub(super) fn is_ours(name: &str, end: &str) -> bool {
    let number = name.strip_prefix(OURS).and_then(|name| name.strip_suffix(end));
    number.is_some_and(|it| it.len() == 16 && it.bytes().all(|it| it.is_ascii_hexdigit()))
}

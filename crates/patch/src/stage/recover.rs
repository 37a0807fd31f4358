//! Ending what a process that was killed has left half done.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::item::{How, is_ours, move_new, rename, stamp};
use super::record::{Phase, Plan, Planned, Record};
use super::{BESIDE, remove_directory};
use crate::content::Content;
use crate::roots::{Roots, Spot};
use tieline_workspace::beneath::{self, DIRECTORY, Links};

#[cfg(test)]
mod tests;

/// What became of a patch that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// It was complete: only what it had left over was removed. Else everything went back.
    pub is_finished: bool,
    /// The files it was about.
    pub files: Vec<PathBuf>,
    /// What could not be done, in words: what is where now.
    pub trouble: Vec<String>,
}

impl Recovered {
    /// The same in a line.
    pub fn words(&self) -> String {
        let n = self.files.len();
        let mut words = match self.is_finished {
            true => format!("a patch of {n} files that was cut off is complete"),
            false => format!("a patch of {n} files that was cut off was taken back"),
        };
        if !self.trouble.is_empty() {
            words.push_str(", but not all of it: ");
            words.push_str(&self.trouble.join("; "));
        }
        words
    }
}

/// Ends patches that were begun in this directory and whose process is gone: those that had reached
/// all their files are complete, all others are taken back. What leads out of the roots, or is
/// protected, is not touched, and said.
pub fn recover(roots: &Roots) -> Vec<Recovered> {
    Record::left(roots).into_iter().filter_map(|record| one(roots, record)).collect()
}

fn one(roots: &Roots, record: Record) -> Option<Recovered> {
    let refused = |why: String| Recovered {
        is_finished: false,
        files: Vec::new(),
        trouble: vec![format!("{}: {why}", record.path().display())],
    };
    let (phase, plan) = match record.read() {
        Ok(Some(read)) => read,
        Ok(None) => {
            let left = record.remove()?;
            let trouble = vec![format!("{} is left over", left.display())];
            return Some(Recovered { is_finished: true, files: Vec::new(), trouble });
        }
        Err(why) => return Some(refused(why)),
    };
    let places = match places(roots, &plan) {
        Ok(places) => places,
        Err(why) => return Some(refused(why)),
    };
    let mut trouble = Vec::new();
    for place in places.iter().rev() {
        let done = place.open(roots).and_then(|directory| match phase {
            Phase::Done => place.clear(&directory),
            Phase::Begun => place.take_back(&directory),
        });
        trouble.extend(done.err());
    }
    if phase == Phase::Begun {
        trouble.extend(plan.directories.iter().rev().filter_map(|path| unmake(roots, path).err()));
    }
    trouble.extend(record.remove().map(|it| format!("{} is left over", it.display())));
    let files = plan.files.into_iter().map(|file| file.path).collect();
    Some(Recovered { is_finished: phase == Phase::Done, files, trouble })
}

/// Where the files are, if all of them may be touched.
fn places<'p>(roots: &Roots, plan: &'p Plan) -> Result<Vec<Place<'p>>, String> {
    let place = |file: &'p Planned| {
        let path = file.path.display();
        let spot = file.path.to_str().ok_or("its name is no text".to_owned());
        let spot = spot.and_then(|it| roots.locate(it).map_err(|why| why.to_string()));
        let spot = spot.map_err(|why| format!("{path} {why}"))?;
        match is_ours(&file.beside, BESIDE) && is_ours(&file.aside, BESIDE) {
            true => Ok(Place { file, spot }),
            false => Err(format!("{path} has other files beside it than a patch makes")),
        }
    };
    plan.files.iter().map(place).collect()
}

/// One file on its way back, or beyond its way.
struct Place<'p> {
    file: &'p Planned,
    spot: Spot,
}

impl Place<'_> {
    fn open(&self, roots: &Roots) -> Result<Option<OwnedFd>, String> {
        let root = roots.root(&self.spot).ok_or("outside".to_owned())?;
        let parent = self.spot.below.parent().unwrap_or(Path::new(""));
        match beneath::open(root.directory(), parent, DIRECTORY, Links::None) {
            Ok(directory) => Ok(Some(directory)),
            // It was not made yet.
            Err(Errno::NOENT) => Ok(None),
            Err(err) => Err(self.cannot(&self.file.beside, err)),
        }
    }

    /// Removes the old file: the new one is in its place.
    fn clear(&self, directory: &Option<OwnedFd>) -> Result<(), String> {
        let Some(directory) = directory else { return Ok(()) };
        for name in [&self.file.beside, &self.file.aside] {
            self.unlink(directory, name)?;
        }
        Ok(())
    }

    /// Puts the old file in its place and removes the new one.
    fn take_back(&self, directory: &Option<OwnedFd>) -> Result<(), String> {
        let Some(directory) = directory else { return Ok(()) };
        let Planned { before, beside, aside, .. } = self.file;
        let leaf = self.leaf();
        let is_old =
            |name: &OsStr| before.is_some() && stamp(directory, name).map(|it| it.inode) == *before;
        if is_old(leaf) {
            return self.unlink(directory, beside);
        }
        let old = [beside, aside].into_iter().find(|name| is_old(OsStr::new(name)));
        let is_there = stamp(directory, leaf).is_some();
        if is_there && !self.is_new(directory) {
            // Whoever put another file there since keeps it.
            return match old {
                Some(old) => Err(self.cannot(old, Errno::EXIST)),
                None => self.unlink(directory, beside),
            };
        }
        let back = match old {
            Some(old) if is_there => rename(directory, OsStr::new(old), leaf, How::Replace),
            Some(old) => move_new(directory, OsStr::new(old), leaf),
            // It was made by the patch, and there was nothing before.
            None if before.is_none()
                && is_there
                && stamp(directory, OsStr::new(beside)).is_none() =>
            {
                rustix::fs::unlinkat(directory, leaf, AtFlags::empty())
            }
            None => Ok(()),
        };
        back.map_err(|err| self.cannot(old.unwrap_or(beside), err))?;
        self.unlink(directory, beside)
    }

    fn leaf(&self) -> &OsStr {
        self.spot.below.file_name().unwrap_or_default()
    }

    /// Whether what is there is what the patch has put there.
    fn is_new(&self, directory: &OwnedFd) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened =
            rustix::fs::openat(directory, self.leaf(), flags | OFlags::CLOEXEC, Mode::empty());
        let Ok(file) = opened.map(File::from) else { return false };
        let mut bytes = Vec::new();
        let read = (&file).take(LONGEST).read_to_end(&mut bytes);
        read.is_ok() && Some(Content::from(bytes).sha256()) == self.file.after
    }

    fn unlink(&self, directory: &OwnedFd, name: &str) -> Result<(), String> {
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(err) => Err(self.cannot(name, err)),
        }
    }

    fn cannot(&self, beside: &str, err: Errno) -> String {
        let path = &self.file.path;
        let (beside, err) = (path.with_file_name(beside), std::io::Error::from(err));
        format!("what was in {} may be in {}: {err}", path.display(), beside.display())
    }
}

/// The longest file that is compared; a patch writes none that is longer.
const LONGEST: u64 = 64 << 20;

/// Removes a directory that was made for the patch, if nobody uses it.
fn unmake(roots: &Roots, path: &Path) -> Result<(), String> {
    let failed = |why: String| format!("the directory {} stays: {why}", path.display());
    let name: OsString = path.into();
    let spot = roots.locate(&name.to_string_lossy()).map_err(|why| failed(why.to_string()))?;
    let Some(root) = roots.root(&spot) else { return Ok(()) };
    remove_directory(root, &spot.below).map_err(|err| failed(std::io::Error::from(err).to_string()))
}

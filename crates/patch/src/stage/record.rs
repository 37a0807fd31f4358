//! The record of a patch that is being applied: what a recovery needs to know.
//!
//! It is a file of its own in the directory where the patch's paths begin, complete before anything is
//! done and gone when everything is. Its writer holds a lock on it, which the kernel gives up with the
//! process. Where it cannot be written, the patch is applied without one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::item::{is_ours, new_name};
use crate::roots::Roots;
use tieline_workspace::beneath::{self, DIRECTORY, Links};

/// How the names of records end.
const END: &str = ".patch";

/// The format of what follows the phase.
const VERSION: u32 = 1;

/// The longest record that is read.
const LONGEST: u64 = 64 << 20;

/// A record that this process holds.
pub(super) struct Record {
    directory: OwnedFd,
    path: PathBuf,
    name: OsString,
    file: File,
    /// The machine may crash, too.
    is_synced: bool,
}

/// How far a patch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Files may have changed places, and all of them go back.
    Begun,
    /// All files have changed places, and the old ones go.
    Done,
}

/// It stands at the beginning, in a form of one length: to change it needs no room on a full disk.
const PHASES: [(&str, Phase); 2] = [("begun\n", Phase::Begun), ("done \n", Phase::Done)];

/// What is to be done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    version: u32,
    /// The number of the record's own file: a copy that somebody brought along is not taken for one.
    inode: u64,
    pub(super) files: Vec<Planned>,
    /// The directories that are made for them, outer ones first.
    pub(super) directories: Vec<PathBuf>,
}

/// What is to be done to one file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Planned {
    /// Its absolute path, without links.
    pub(super) path: PathBuf,
    /// The number of the file that is there.
    pub(super) before: Option<u64>,
    /// The SHA-256 of what is to be there.
    pub(super) after: Option<String>,
    /// The name of the new file, or of the old one when they have changed places.
    pub(super) beside: String,
    /// The name of the old file where it steps aside alone.
    pub(super) aside: String,
}

impl Record {
    pub(super) fn write(
        roots: &Roots,
        files: Vec<Planned>,
        directories: Vec<PathBuf>,
        is_synced: bool,
    ) -> Option<Self> {
        if files.is_empty() {
            return None;
        }
        let mut record = Self::create(roots, is_synced).ok()?;
        match record.fill(files, directories) {
            Ok(()) => Some(record),
            Err(_) => {
                record.remove();
                None
            }
        }
    }

    fn create(roots: &Roots, is_synced: bool) -> Result<Self, Errno> {
        let (root, below) = roots.desk().ok_or(Errno::NOENT)?;
        let directory = beneath::open(root.directory(), below, DIRECTORY, Links::None)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let name = new_name(END);
        let mode = Mode::from_raw_mode(0o600);
        let file = rustix::fs::openat(&directory, &name, flags | OFlags::CLOEXEC, mode)?;
        let path = root.real_path().join(below);
        let record = Self { directory, path, name, file: File::from(file), is_synced };
        // Somebody may look at it in this moment, and find it empty.
        match rustix::fs::flock(&record.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(record),
            Err(err) => {
                record.remove();
                Err(err)
            }
        }
    }

    #[allow(clippy::unnecessary_cast, reason = "widths differ between machines")]
    fn fill(&mut self, files: Vec<Planned>, directories: Vec<PathBuf>) -> io::Result<()> {
        let inode = rustix::fs::fstat(&self.file)?.st_ino as u64;
        let plan = serde_json::to_vec(&Plan { version: VERSION, inode, files, directories })?;
        let [(begun, _), _] = PHASES;
        self.file.write_all(&[begun.as_bytes(), &plan].concat())?;
        match self.is_synced {
            true => self.file.sync_data(),
            false => Ok(()),
        }
    }

    /// Notes how far it is.
    pub(super) fn set(&mut self, phase: Phase) -> io::Result<()> {
        let word = PHASES.iter().find(|(_, it)| *it == phase).map(|(word, _)| *word);
        self.file.write_all_at(word.unwrap_or_default().as_bytes(), 0)?;
        match self.is_synced {
            true => self.file.sync_data(),
            false => Ok(()),
        }
    }

    /// Removes it; gives its path if that fails.
    pub(super) fn remove(self) -> Option<PathBuf> {
        match rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => None,
            Err(_) => Some(self.path.join(&self.name)),
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.path.join(&self.name)
    }

    /// The records that nobody holds any more.
    pub(super) fn left(roots: &Roots) -> Vec<Self> {
        let Some((root, below)) = roots.desk() else { return Vec::new() };
        let open = || beneath::open(root.directory(), below, DIRECTORY, Links::None);
        let Ok(entries) = open().and_then(|it| Dir::read_from(&it)) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().to_str().ok()?;
            is_ours(name, END).then(|| OsString::from(name))
        });
        let take = |name: OsString| {
            let directory = open().ok()?;
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&directory, &name, flags, Mode::empty()).ok()?;
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
            let path = root.real_path().join(below);
            let record = Self { directory, path, name, file: File::from(file), is_synced: true };
            record.is_private().then_some(record)
        };
        names.filter_map(take).collect()
    }

    /// Nobody else could have written it, and it was not removed while we waited for it.
    fn is_private(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|it| {
            FileType::from_raw_mode(it.st_mode) == FileType::RegularFile
                && it.st_nlink == 1
                && it.st_uid == rustix::process::geteuid().as_raw()
                && it.st_mode & 0o077 == 0
        })
    }

    /// What it says. An error is not for us to act on; nothing is a patch that was not begun.
    #[allow(clippy::unnecessary_cast, reason = "widths differ between machines")]
    pub(super) fn read(&self) -> Result<Option<(Phase, Plan)>, String> {
        let mut text = String::new();
        let read = (&self.file).take(LONGEST).read_to_string(&mut text);
        read.map_err(|err| err.to_string())?;
        let found =
            PHASES.iter().find_map(|(word, phase)| Some((*phase, text.strip_prefix(word)?)));
        let Some((phase, plan)) = found else { return Ok(None) };
        let plan: Plan = match serde_json::from_str(plan) {
            Ok(plan) => plan,
            // It was cut off while it was written, before anything else was done.
            Err(err) if err.is_eof() => return Ok(None),
            Err(err) => return Err(err.to_string()),
        };
        let inode = rustix::fs::fstat(&self.file).map(|it| it.st_ino as u64);
        match plan.version == VERSION && inode == Ok(plan.inode) {
            true => Ok(Some((phase, plan))),
            false => Err("it is of another file or of a newer tieline".to_owned()),
        }
    }
}

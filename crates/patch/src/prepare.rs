//! From hunks to what becomes of each file, in memory.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;
use tieline_workspace::beneath;

use crate::applied::{Applied, Change, Kind, Named};
use crate::content::Content;
use crate::diff::{Run, unified};
use crate::error::{Error, Refusal};
use crate::parse::{Hunk, Patch};
use crate::plan::update;
use crate::roots::{Roots, Spot, open_file};
use crate::seek::{Budget, MOST_STEPS};
use crate::stage::Stage;

/// How a patch is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How many lines around a change its diff shows.
    pub n_context: usize,
    /// Wait until new contents are on disk before they take their places, so that a crash of the
    /// machine leaves the old content or the new one.
    pub is_synced: bool,
    /// The longest file that is read or written, in bytes.
    pub largest_file: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { n_context: 1, is_synced: true, largest_file: 64 << 20 }
    }
}

/// A file on disk, as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) content: Content,
    pub(crate) stamp: Stamp,
}

/// What tells whether a file is still the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    pub(crate) inode: u64,
    size: i64,
    modified: (i64, i64),
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "widths differ between machines")]
    pub(crate) fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            mode: stat.st_mode as u32,
            owner: (stat.st_uid, stat.st_gid),
        }
    }
}

/// One file, before and after.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) spot: Spot,
    /// As the patch calls it.
    pub(crate) name: String,
    pub(crate) before: Option<Found>,
    pub(crate) after: Option<Content>,
    /// The mode of a file that is made anew, if it is known: that of the file it was before.
    pub(crate) mode: Option<u32>,
}

impl Target {
    pub(crate) fn is_changed(&self) -> bool {
        self.before.as_ref().map(|found| &found.content) != self.after.as_ref()
    }
}

/// A patch that fits: every file was read and every new content is known, and nothing is written.
#[derive(Debug)]
pub struct Prepared<'r> {
    pub(crate) roots: &'r Roots,
    pub(crate) options: Options,
    pub(crate) changes: Vec<Change>,
    pub(crate) targets: BTreeMap<PathBuf, Target>,
}

impl<'r> Prepared<'r> {
    /// Reads the files that a patch names and finds its places in them.
    ///
    /// Every path is judged before any file is opened, so what is outside or protected is the first
    /// thing to be said.
    pub fn new(patch: &Patch<'_>, roots: &'r Roots, options: Options) -> Result<Self, Error> {
        if patch.hunks.is_empty() {
            return Err(Error::Empty);
        }
        let mut spots = Vec::with_capacity(patch.hunks.len());
        for hunk in &patch.hunks {
            let locate = |name: &str| {
                let refused = |why| Error::Refused { name: name.to_owned(), why };
                roots.locate(name).map_err(refused)
            };
            spots.push((locate(hunk.path())?, hunk.move_to().map(locate).transpose()?));
        }
        let mut prepared = Self { roots, options, changes: Vec::new(), targets: BTreeMap::new() };
        let mut budget = Budget::new(MOST_STEPS);
        for (hunk, (spot, to)) in patch.hunks.iter().zip(spots) {
            let change = prepared.hunk(hunk, spot, to, &mut budget)?;
            prepared.changes.push(change);
        }
        Ok(prepared)
    }

    /// What will change, hunk by hunk.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Where the files are that it touches, without links.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.targets.keys().map(PathBuf::as_path)
    }

    /// Writes it: all of it or nothing.
    pub fn commit(self) -> Result<Applied, Error> {
        let stage = Stage::new(self.roots, self.options, self.targets.values())?;
        Ok(stage.commit()?.done(self))
    }

    fn hunk(
        &mut self,
        hunk: &Hunk<'_>,
        spot: Spot,
        to: Option<Spot>,
        budget: &mut Budget,
    ) -> Result<Change, Error> {
        let named = |name: &str| Named { name: name.to_owned(), path: self.roots.absolute(name) };
        let file = named(hunk.path());
        let is_kept = to.as_ref().is_some_and(|to| self.roots.path(to) == self.roots.path(&spot));
        let to = hunk.move_to().map(named).zip(to).filter(|_| !is_kept);
        let name = &file.name;
        match hunk {
            Hunk::Add { lines, .. } => {
                let size = lines.iter().map(|line| line.len() + 1).sum();
                let mut text = String::with_capacity(size);
                for line in lines {
                    text.push_str(line);
                    text.push('\n');
                }
                let new = self.fits(name, text)?;
                let failed = |source| Error::Write { name: name.clone(), source };
                let target = self.target(&spot, name)?.map_err(failed)?;
                let old = target.after.replace(new.clone());
                let diff = self.diff(old.as_ref(), Some(&new), None);
                Ok(Change { kind: Kind::Add, old, new: Some(new), unified_diff: diff, file })
            }
            Hunk::Delete { .. } => {
                self.no_link(&spot, name)?;
                let failed = |source| Error::Delete { name: name.clone(), source };
                let target = self.target(&spot, name)?.map_err(failed)?;
                let old = target.after.take().ok_or_else(|| failed(Errno::NOENT.into()))?;
                let diff = self.diff(Some(&old), None, None);
                Ok(Change {
                    kind: Kind::Delete,
                    old: Some(old),
                    new: None,
                    unified_diff: diff,
                    file,
                })
            }
            Hunk::Update { chunks, .. } => {
                let failed = |source| Error::Read { name: name.clone(), source };
                let target = self.target(&spot, name)?.map_err(failed)?;
                let mode = target.mode;
                let old = target.after.clone().ok_or_else(|| failed(Errno::NOENT.into()))?;
                let text = str::from_utf8(old.bytes())
                    .map_err(|err| failed(io::Error::new(io::ErrorKind::InvalidData, err)))?;
                let planned = update(text, chunks, budget).map_err(|misfit| misfit.of(name))?;
                let new = self.fits(name, planned.content)?;
                let diff = self.diff(Some(&old), Some(&new), Some(&planned.runs));
                let kind = match to {
                    None => {
                        self.put(&spot, Some(new.clone()));
                        Kind::Update
                    }
                    Some((to, to_spot)) => {
                        self.no_link(&spot, name)?;
                        let failed = |source| Error::Write { name: to.name.clone(), source };
                        let target = self.target(&to_spot, &to.name)?.map_err(failed)?;
                        let replaced = target.after.replace(new.clone());
                        target.mode = mode.or(target.mode);
                        self.put(&spot, None);
                        Kind::Move { to, replaced }
                    }
                };
                Ok(Change { kind, old: Some(old), new: Some(new), unified_diff: diff, file })
            }
        }
    }

    /// A file in the state the hunks so far have left it. The inner error is the disk's.
    fn target(&mut self, spot: &Spot, name: &str) -> Result<io::Result<&mut Target>, Error> {
        use std::collections::btree_map::Entry;
        let vacant = match self.targets.entry(self.roots.path(spot)) {
            Entry::Occupied(target) => return Ok(Ok(target.into_mut())),
            Entry::Vacant(vacant) => vacant,
        };
        let before = match read(self.roots, spot, self.options.largest_file) {
            Ok(before) => before,
            Err(Reading::Refused(why)) => {
                return Err(Error::Refused { name: name.to_owned(), why });
            }
            Err(Reading::Failed(err)) => return Ok(Err(err)),
        };
        Ok(Ok(vacant.insert(Target {
            spot: spot.clone(),
            name: name.to_owned(),
            mode: before.as_ref().map(|found| found.stamp.mode),
            after: before.as_ref().map(|found| found.content.clone()),
            before,
        })))
    }

    fn put(&mut self, spot: &Spot, content: Option<Content>) {
        if let Some(target) = self.targets.get_mut(&self.roots.path(spot)) {
            target.after = content;
        }
    }

    /// Taking a link away is not taking its file away, and the patch does not say which it means.
    fn no_link(&self, spot: &Spot, name: &str) -> Result<(), Error> {
        match spot.is_link {
            true => Err(Error::Refused { name: name.to_owned(), why: Refusal::Link }),
            false => Ok(()),
        }
    }

    fn fits(&self, name: &str, text: String) -> Result<Content, Error> {
        match text.len() as u64 > self.options.largest_file {
            true => {
                let source = io::Error::from(Errno::FBIG);
                Err(Error::Write { name: name.to_owned(), source })
            }
            false => Ok(text.into()),
        }
    }

    fn diff(&self, old: Option<&Content>, new: Option<&Content>, runs: Option<&[Run]>) -> String {
        let text = |content: Option<&Content>| match content {
            Some(content) => content.text().map(str::to_owned),
            None => Some(String::new()),
        };
        match (text(old), text(new), runs) {
            (Some(old), Some(new), Some(runs)) => unified(&old, &new, runs, self.options.n_context),
            (Some(old), Some(new), None) => {
                unified(&old, &new, &Run::whole(&old, &new), self.options.n_context)
            }
            // As other tools say it of what is no text.
            _ => "Binary files differ\n".to_owned(),
        }
    }
}

/// Why a file was not read.
pub(crate) enum Reading {
    Refused(Refusal),
    Failed(io::Error),
}

impl From<io::Error> for Reading {
    fn from(err: io::Error) -> Self {
        Self::Failed(err)
    }
}

impl From<Errno> for Reading {
    fn from(err: Errno) -> Self {
        match err {
            Errno::LOOP | Errno::XDEV => Self::Refused(Refusal::Outside),
            err => Self::Failed(err.into()),
        }
    }
}

/// Reads a file below its root; none if there is none.
pub(crate) fn read(roots: &Roots, spot: &Spot, most: u64) -> Result<Option<Found>, Reading> {
    let Some(root) = roots.root(spot) else { return Err(Reading::Refused(Refusal::Outside)) };
    let file = match open_file(root, &spot.below) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if !beneath::is_of_kernel(&file) => {}
        FileType::Directory => return Err(Errno::ISDIR.into()),
        _ => return Err(Reading::Refused(Refusal::NotAFile)),
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0).min(most as usize));
    // It may grow while it is read.
    (&file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Errno::FBIG.into());
    }
    Ok(Some(Found { content: bytes.into(), stamp: Stamp::of(&stat) }))
}

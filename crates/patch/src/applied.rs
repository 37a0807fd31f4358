//! What a patch did, and how to take it back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::error::Error;
use crate::prepare::{Options, Reading, Target, read};
use crate::roots::Roots;
use crate::stage::Stage;

/// A file by its two names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// As the patch calls it.
    pub name: String,
    /// The absolute path this means.
    pub path: PathBuf,
}

/// What one hunk changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The file, before the change.
    pub file: Named,
    /// In which way.
    pub kind: Kind,
    /// What was in it before; none if it was not there.
    pub old: Option<Content>,
    /// What is in it now; none if it is gone.
    pub new: Option<Content>,
    /// The hunks of a unified diff, without the lines that name the files.
    pub unified_diff: String,
}

/// In which way a file changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It was made, or written anew as a whole.
    Add,
    /// Some lines of it changed.
    Update,
    /// It is gone.
    Delete,
    /// It has another name, and lines of it may have changed.
    Move {
        /// The new name.
        to: Named,
        /// What was there before.
        replaced: Option<Content>,
    },
}

/// A patch that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// What each hunk changed.
    pub changes: Vec<Change>,
    /// What takes it back.
    pub undo: Undo,
    /// Files of ours that could not be removed again; they hold what was there before.
    pub left_behind: Vec<PathBuf>,
}

impl Applied {
    /// The summary that models and users know.
    pub fn summary(&self) -> String {
        summary(&self.changes)
    }

    /// Takes everything back, if the files are still as the patch left them.
    pub fn undo(&self, roots: &Roots) -> Result<(), Error> {
        self.undo.carry_out(roots, Options::default())
    }

    /// Adds what another patch did after this one.
    pub(crate) fn append(&mut self, mut later: Self) {
        self.changes.append(&mut later.changes);
        self.left_behind.append(&mut later.left_behind);
        self.undo.append(later.undo);
    }
}

/// The summary of changes: what was added, then what was modified, then what was deleted.
pub fn summary(changes: &[Change]) -> String {
    let mut text = "Success. Updated the following files:\n".to_owned();
    for sign in ['A', 'M', 'D'] {
        for change in changes {
            let (of, name) = match &change.kind {
                Kind::Add => ('A', &change.file.name),
                Kind::Update => ('M', &change.file.name),
                Kind::Move { to, .. } => ('M', &to.name),
                Kind::Delete => ('D', &change.file.name),
            };
            if of == sign {
                text.extend([&format!("{sign} "), name, "\n"]);
            }
        }
    }
    text
}

/// What takes a patch back. It can be kept as JSON and carried out by another process, later.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Undo {
    /// Every file that changed, once.
    pub files: Vec<Restore>,
    /// The directories that were made, in this order.
    pub directories: Vec<PathBuf>,
}

/// One file, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// Its absolute path, without links.
    pub path: PathBuf,
    /// What was there; none if nothing was.
    pub before: Option<Saved>,
    /// The SHA-256 of what is there now; none if nothing is.
    pub after: Option<String>,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Its permissions.
    pub mode: u32,
    /// The SHA-256 of its content, to know it again.
    pub sha256: String,
    /// Its content.
    pub content: Content,
}

impl Undo {
    /// Restores every file, all or none, if all are still as the patch left them.
    pub fn carry_out(&self, roots: &Roots, options: Options) -> Result<(), Error> {
        let mut targets = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let name = file.path.display().to_string();
            let refused = |why| Error::Refused { name: name.clone(), why };
            let spot = roots.locate(&name).map_err(refused)?;
            let found = match read(roots, &spot, options.largest_file) {
                Ok(found) => found,
                Err(Reading::Refused(why)) => return Err(refused(why)),
                Err(Reading::Failed(source)) => return Err(Error::Read { name, source }),
            };
            if found.as_ref().map(|it| it.content.sha256()) != file.after {
                return Err(Error::Changed { name });
            }
            targets.push(Target {
                spot,
                name,
                before: found,
                after: file.before.as_ref().map(|saved| saved.content.clone()),
                mode: file.before.as_ref().map(|saved| saved.mode),
            });
        }
        Stage::new(roots, options, targets.iter())?.commit()?.done_undo(roots, &self.directories)
    }

    pub(crate) fn of(targets: &BTreeMap<PathBuf, Target>, directories: Vec<PathBuf>) -> Self {
        let changed = targets.iter().filter(|(_, target)| target.is_changed());
        let files = changed.map(|(path, target)| Restore {
            path: path.clone(),
            before: target.before.as_ref().map(|found| Saved {
                mode: found.stamp.mode & 0o7777,
                sha256: found.content.sha256(),
                content: found.content.clone(),
            }),
            after: target.after.as_ref().map(Content::sha256),
        });
        Self { files: files.collect(), directories }
    }

    /// Adds what a later patch did: of each file its first state counts and its last.
    pub fn append(&mut self, later: Self) {
        for file in later.files {
            match self.files.iter_mut().find(|it| it.path == file.path) {
                Some(known) => known.after = file.after,
                None => self.files.push(file),
            }
        }
        self.directories.extend(later.directories);
    }
}

//! Files of the workspace, and of nothing else.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The longest file that is edited.
const LONGEST: u64 = 8 * 1024 * 1024;

/// Lines around a change that a patch shows.
const CONTEXT: usize = 3;

/// The directory an agent may change.
#[derive(Debug, Clone)]
pub(super) struct Workspace {
    root: PathBuf,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    /// The whole text before; none for a new file.
    pub(super) before: Option<String>,
    /// The whole text after.
    pub(super) after: String,
}

/// Lines that changed, with some around them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hunk {
    old_start: usize,
    old_lines: usize,
    new_start: usize,
    new_lines: usize,
    lines: Vec<String>,
}

impl Workspace {
    /// The workspace in this directory, which exists.
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        Ok(Self { root: fs::canonicalize(root)? })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a whole file. The error is a sentence for the model.
    pub(super) fn write(&self, path: &str, content: &str) -> Result<Change, String> {
        let (path, name) = self.inside(path)?;
        let before = match fs::symlink_metadata(&path) {
            Ok(_) => Some(read(&path, &name)?),
            Err(err) if err.kind() == io::ErrorKind::NotFound => None,
            Err(err) => return Err(format!("Cannot look at {name}: {err}")),
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|err| format!("Cannot make {name}: {err}"))?;
        }
        save(&path, &name, content)?;
        Ok(Change { before, after: content.to_owned() })
    }

    /// Replaces the one place where `old` stands, or every one.
    pub(super) fn edit(&self, edit: &Edit) -> Result<Change, String> {
        let (path, name) = self.inside(&edit.path)?;
        if fs::symlink_metadata(&path).is_err() {
            let root = self.root.display();
            return Err(format!(
                "File does not exist. Note: your current working directory is {root}."
            ));
        }
        let before = read(&path, &name)?;
        let after = match (before.matches(edit.old.as_str()).count(), edit.replace_all) {
            (0, _) => {
                return Err(format!("String to replace not found in file.\nString: {}", edit.old));
            }
            (1, _) | (_, true) => before.replace(&edit.old, &edit.new),
            (n, false) => {
                return Err(format!(
                    "Found {n} matches of the string to replace, but replace_all is false.\n\
                     String: {}",
                    edit.old
                ));
            }
        };
        save(&path, &name, &after)?;
        Ok(Change { before: Some(before), after })
    }

    /// Where a path leads, given that it leads nowhere else. Links are refused, also those that
    /// stay inside: whether they do can change between the look and the use.
    fn inside(&self, path: &str) -> Result<(PathBuf, String), String> {
        let outside = || format!("{path} is outside of the workspace {}.", self.root.display());
        let given = Path::new(path);
        let relative = if given.is_absolute() {
            given.strip_prefix(&self.root).map_err(|_| outside())?
        } else {
            given
        };
        let mut found = self.root.clone();
        for component in relative.components() {
            match component {
                Component::CurDir => continue,
                Component::Normal(name) => found.push(name),
                _ => return Err(outside()),
            }
            if fs::symlink_metadata(&found).is_ok_and(|metadata| metadata.is_symlink()) {
                return Err(format!(
                    "{path} goes through a symbolic link, which may lead outside."
                ));
            }
        }
        if found == self.root {
            return Err(format!("{path:?} is not the name of a file."));
        }
        let name = found.display().to_string();
        Ok((found, name))
    }
}

/// A text to be replaced in a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    pub(super) path: String,
    pub(super) old: String,
    pub(super) new: String,
    pub(super) replace_all: bool,
}

impl Change {
    /// The change as one hunk, or none when nothing changed. New files have none, as with the real
    /// agent.
    pub(super) fn hunks(&self) -> Vec<Hunk> {
        let Some(before) = &self.before else { return Vec::new() };
        if *before == self.after {
            return Vec::new();
        }
        let old: Vec<&str> = before.lines().collect();
        let new: Vec<&str> = self.after.lines().collect();
        let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
        let head = old.iter().zip(&new).take_while(same).count();
        let shorter = old.len().min(new.len()) - head;
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(shorter);
        let start = head.saturating_sub(CONTEXT);
        let n_after = tail.min(CONTEXT);
        let lines = |sign: char, lines: &[&str], from: usize, to: usize| -> Vec<String> {
            let some = lines.get(from..to).unwrap_or_default();
            some.iter().map(|line| format!("{sign}{line}")).collect()
        };
        let hunk = [
            lines(' ', &old, start, head),
            lines('-', &old, head, old.len() - tail),
            lines('+', &new, head, new.len() - tail),
            lines(' ', &old, old.len() - tail, old.len() - tail + n_after),
        ]
        .concat();
        vec![Hunk {
            old_start: start + 1,
            old_lines: old.len() - tail + n_after - start,
            new_start: start + 1,
            new_lines: new.len() - tail + n_after - start,
            lines: hunk,
        }]
    }
}

fn read(path: &Path, name: &str) -> Result<String, String> {
    let metadata =
        fs::symlink_metadata(path).map_err(|err| format!("Cannot read {name}: {err}"))?;
    if !metadata.is_file() {
        return Err(format!("{name} is not a file."));
    }
    if metadata.len() > LONGEST {
        return Err(format!("{name} is longer than {LONGEST} bytes."));
    }
    fs::read_to_string(path).map_err(|err| format!("Cannot read {name}: {err}"))
}

fn save(path: &Path, name: &str, content: &str) -> Result<(), String> {
    fs::write(path, content).map_err(|err| format!("Cannot write {name}: {err}"))
}

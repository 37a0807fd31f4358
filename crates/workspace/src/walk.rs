//! What is below a directory, as git would see it.
//!
//! The rules of git are read here, by the way in which everything of a workspace is read: a
//! `.gitignore` that is a link, a pipe or without an end is as if it were not there. (Git follows no
//! link there either.)

mod rules;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::open::{Entry, Seen, Sort, Tree};
use rules::{Level, Rules};

/// How many entries of directories are held at a time.
const MOST_HELD: usize = 500_000;

/// What is walked to.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Directories that are so deep are not entered; those in the first one have depth 1.
    pub deepest: Option<usize>,
    /// Names that begin with a dot are passed over.
    pub passes_over_dots: bool,
    /// Rules count where there is no repository, and those in `.ignore` do everywhere.
    pub rules_without_git: bool,
    /// Other file systems are not entered: below `/` they hold processes and devices.
    pub one_file_system: bool,
}

/// What is done about something, before any rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// As the rules say.
    Rules,
    /// It is shown, whatever they say.
    Show,
    /// It is not.
    PassOver,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// From the directory.
    pub path: PathBuf,
    /// What can be seen of it.
    pub seen: Seen,
}

type Choose = Box<dyn Fn(&Path, &Seen) -> Choice + Send>;

/// Everything below a directory, in the order of its path. Links are not followed.
pub struct Walk<'t> {
    tree: &'t Tree,
    options: Options,
    choose: Choose,
    rules: Rules,
    open: Vec<Open>,
    n_held: usize,
    is_begun: bool,
    n_skipped: u64,
    /// The one file system that is walked.
    device: Option<u64>,
}

/// A directory that is being walked.
struct Open {
    path: PathBuf,
    /// The last one comes first.
    entries: Vec<Entry>,
}

impl<'t> Walk<'t> {
    /// Begins. `choose` is asked about each path from the directory.
    pub fn new(
        tree: &'t Tree,
        options: Options,
        choose: impl Fn(&Path, &Seen) -> Choice + Send + 'static,
    ) -> Self {
        let rules = Rules::above(tree, options.rules_without_git);
        let (choose, open) = (Box::new(choose), Vec::new());
        let device = options.one_file_system.then(|| tree.device()).flatten();
        let (n_held, is_begun, n_skipped) = (0, false, 0);
        Self { tree, options, choose, rules, open, n_held, is_begun, n_skipped, device }
    }

    /// How many places could not be looked at.
    pub fn n_skipped(&self) -> u64 {
        self.n_skipped
    }

    fn enter(&mut self, path: &Path) {
        let left = MOST_HELD.saturating_sub(self.n_held);
        match self.tree.entries(path, left) {
            Ok((mut entries, is_cut)) => {
                self.n_skipped += u64::from(is_cut);
                entries.sort_unstable_by(|a, b| b.name.cmp(&a.name));
                self.n_held += entries.len();
                self.rules.enter(Level::read(self.tree, path, self.rules.room()));
                self.open.push(Open { path: path.to_owned(), entries });
            }
            // A directory that vanished while we walked is no gap: it is not there.
            Err(err) if err.is_missing() => {}
            Err(_) => self.n_skipped += 1,
        }
    }

    fn is_shown(&self, path: &Path, seen: &Seen) -> bool {
        match (self.choose)(path, seen) {
            Choice::PassOver => return false,
            Choice::Show => return true,
            Choice::Rules => {}
        }
        match self.rules.judge(&self.tree.path().join(path), seen.sort == Sort::Directory) {
            Some(is_shown) => is_shown,
            None => !self.options.passes_over_dots || !begins_with_dot(path),
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.enter(Path::new(""));
        }
        loop {
            let directory = self.open.last_mut()?;
            let Some(entry) = directory.entries.pop() else {
                self.open.pop();
                self.rules.leave();
                continue;
            };
            self.n_held -= 1;
            let path = directory.path.join(&entry.name);
            if !self.is_shown(&path, &entry.seen) {
                continue;
            }
            let is_too_deep = self.options.deepest.is_some_and(|most| self.open.len() >= most);
            let is_here = self.device.is_none_or(|device| device == entry.seen.device);
            match (entry.seen.sort, is_here) {
                (Sort::Directory, true) if !is_too_deep => self.enter(&path),
                (Sort::Directory, false) => self.n_skipped += 1,
                _ => {}
            }
            return Some(Found { path, seen: entry.seen });
        }
    }
}

fn begins_with_dot(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

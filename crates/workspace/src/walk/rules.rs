//! The rules of git that hold somewhere, and those of `.ignore`.

use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::beneath::Links;
use crate::open::{Content, Tree, named};
use crate::repository::Repository;

/// The longest file of rules. Rules are compiled, which takes many times their size.
const LONGEST: usize = 64 * 1024;

/// The most rules of one file.
const MOST_RULES: usize = 4_000;

/// How much of all rules that hold in a place.
const LONGEST_IN_ALL: usize = 256 * 1024;

/// The rules of a directory.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// Those in `.ignore`.
    own: Option<Gitignore>,
    /// Those in `.gitignore`.
    git: Option<Gitignore>,
    /// Those of the repository that begins here.
    exclude: Option<Gitignore>,
    /// A repository begins here.
    has_git: bool,
    /// How long its rules are.
    size: usize,
}

impl Level {
    /// The rules of a directory below `tree`, as far as there is room for them.
    pub(super) fn read(tree: &Tree, below: &Path, room: usize) -> Self {
        let at = tree.path().join(below);
        let mut level = Self { has_git: tree.look(&below.join(".git")).is_ok(), ..Self::default() };
        let mut read = |content: Option<Content>| {
            let content = content?;
            level.size += content.bytes.len();
            (level.size <= room).then(|| compile(&at, &content)).flatten()
        };
        let file = |name: &str| tree.read(&below.join(name), Links::None, LONGEST).ok();
        let (own, git) = (read(file(".ignore")), read(file(".gitignore")));
        let exclude = level.has_git.then(|| {
            file(".git/info/exclude").or_else(|| {
                let common = Repository::named_in(&at)?.common;
                let file = named(&common.join("info/exclude")).ok()?;
                Content::of(&file, LONGEST).ok()
            })
        });
        let exclude = exclude.flatten().and_then(|content| compile(&at, &content));
        (level.own, level.git, level.exclude) = (own, git, exclude);
        level
    }
}

/// Rules as git reads them. What it would not understand is passed over, and so is a line that was cut.
fn compile(at: &Path, content: &Content) -> Option<Gitignore> {
    let text = content.text();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let whole = match content.is_cut {
        true => text.rsplit_once('\n').map_or("", |(whole, _)| whole),
        false => text,
    };
    let mut builder = GitignoreBuilder::new(at);
    for line in whole.lines().take(MOST_RULES) {
        // A line that is no rule: git goes on with the next one.
        drop(builder.add_line(None, line));
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// The rules that hold where the walk is.
pub(super) struct Rules {
    /// Those of the directories above, the nearest last, then those on the way.
    levels: Vec<Level>,
    global: Gitignore,
    without_git: bool,
}

impl Rules {
    /// Those above a directory, unless they ignore the directory itself: a repository of somebody's
    /// home does so with all that is not in it, and its rules would leave nothing to look at.
    pub(super) fn above(tree: &Tree, without_git: bool) -> Self {
        let (global, _) = GitignoreBuilder::new(tree.path()).build_global();
        let mut rules = Self { levels: Vec::new(), global, without_git };
        let mut nearest_first = Vec::new();
        let mut room = LONGEST_IN_ALL;
        for dir in ancestors_to_repository(tree.path()) {
            let Ok(tree) = Tree::open(&dir) else { continue };
            let level = Level::read(&tree, Path::new(""), room);
            room = room.saturating_sub(level.size);
            nearest_first.push(level);
        }
        rules.levels.extend(nearest_first.into_iter().rev());
        if rules.judge(tree.path(), true) == Some(false) {
            rules.levels.clear();
        }
        rules
    }

    pub(super) fn enter(&mut self, level: Level) {
        self.levels.push(level);
    }

    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// How much room there is for more of them.
    pub(super) fn room(&self) -> usize {
        let size = self.levels.iter().map(|level| level.size.min(LONGEST_IN_ALL)).sum();
        LONGEST_IN_ALL.saturating_sub(size)
    }

    /// Whether a path is shown, if a rule says something about it.
    pub(super) fn judge(&self, path: &Path, is_dir: bool) -> Option<bool> {
        let counts = self.without_git || self.levels.iter().any(|level| level.has_git);
        let judge = |rules: &Option<Gitignore>| {
            rules.as_ref().and_then(|rules| said(rules.matched(path, is_dir)))
        };
        let (mut own, mut git, mut exclude) = (None, None, None);
        let mut is_past_repository = false;
        for level in self.levels.iter().rev() {
            if self.without_git {
                own = own.or_else(|| judge(&level.own));
            }
            // A repository within another has its own rules.
            if counts && !is_past_repository {
                git = git.or_else(|| judge(&level.git));
                exclude = exclude.or_else(|| judge(&level.exclude));
            }
            is_past_repository |= level.has_git;
        }
        let global = || said(self.global.matched(path, is_dir)).filter(|_| counts);
        own.or(git).or(exclude).or_else(global)
    }
}

fn said<T>(matched: Match<T>) -> Option<bool> {
    match matched {
        Match::None => None,
        Match::Ignore(_) => Some(false),
        Match::Whitelist(_) => Some(true),
    }
}

/// The directories above one, up to where its repository begins; all of them if there is none.
fn ancestors_to_repository(path: &Path) -> Vec<PathBuf> {
    let mut ancestors = Vec::new();
    for dir in path.ancestors().skip(1) {
        ancestors.push(dir.to_owned());
        if dir.join(".git").symlink_metadata().is_ok() {
            break;
        }
    }
    ancestors
}

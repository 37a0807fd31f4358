//! What an agent says it changed, held against what changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Component, Path, PathBuf};

use tieline_wire::markers;
use tieline_workspace::Tree;

use super::walk::Walk;
use super::{Change, Changed};
use crate::sanitize::is_direction;

/// How many files that nobody spoke of are named.
const MAX_UNSAID: usize = 20;

/// How many words behind a path may be taken for a remark.
const MAX_REMARK: usize = 64;

/// A sentence for each claim that is not true, then one for each change that was not claimed; for
/// these there must be a claim at all. Of several claims about a file the last one counts.
///
/// Nothing is said of what cannot be known: of ignored files only whether they are there. A partial
/// measure may lack changes, so a caller should say that it is one.
pub fn claims(measured: &[Changed], claimed: &[markers::FileChange], root: &Path) -> Vec<String> {
    if claimed.is_empty() {
        return Vec::new();
    }
    let disk = Disk::new(measured, root);
    let said = Said::new(claimed, &disk);
    let known = disk.seen(said.last.keys());
    let mut sentences: Vec<String> = said.outside.iter().map(|path| outside(path)).collect();
    sentences.extend(said.last.iter().filter_map(|(path, claim)| {
        let wrong = wrong(path, claim, &disk, known.contains(path))?;
        Some(format!("said it {}, {wrong}", claim.done_to(path)))
    }));
    let unsaid: Vec<&Changed> =
        measured.iter().filter(|file| !said.covers(Path::new(&file.path))).collect();
    let told = unsaid.iter().take(MAX_UNSAID);
    sentences.extend(told.map(|file| format!("{} and did not say so", done(file))));
    if let n_more @ 1.. = unsaid.len().saturating_sub(MAX_UNSAID) {
        let files = if n_more == 1 { "file" } else { "files" };
        sentences.push(format!("changed {n_more} more {files} and did not say so"));
    }
    sentences
}

/// What was said of a file in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    Created,
    Modified,
    Deleted,
    /// It has another name now, which is a claim of its own.
    Left,
    Renamed {
        from: PathBuf,
    },
    Changed,
}

impl Claim {
    fn done_to(&self, path: &Path) -> String {
        let path = shown(path);
        match self {
            Self::Created => format!("created {path}"),
            Self::Modified => format!("modified {path}"),
            Self::Deleted | Self::Left => format!("deleted {path}"),
            Self::Renamed { from } => format!("renamed {} to {path}", shown(from)),
            Self::Changed => format!("changed {path}"),
        }
    }
}

/// All that was said.
struct Said {
    last: BTreeMap<PathBuf, Claim>,
    /// Paths that lead out of the root.
    outside: BTreeSet<String>,
}

impl Said {
    fn new(claimed: &[markers::FileChange], disk: &Disk<'_>) -> Said {
        let mut said = Said { last: BTreeMap::new(), outside: BTreeSet::new() };
        for file in claimed {
            let path = match file.change {
                markers::Change::Unknown => disk.without_remark(&file.path),
                _ => disk.inside(&file.path),
            };
            let Some(path) = path else {
                said.outside.insert(file.path.clone());
                continue;
            };
            match &file.change {
                markers::Change::Created => said.tell(path, Claim::Created),
                markers::Change::Modified => said.tell(path, Claim::Modified),
                markers::Change::Deleted => said.tell(path, Claim::Deleted),
                markers::Change::Renamed { from } => match disk.inside(from) {
                    Some(from) => {
                        said.tell(from.clone(), Claim::Left);
                        said.tell(path, Claim::Renamed { from });
                    }
                    None => said.tell(path, Claim::Created),
                },
                markers::Change::Unknown => said.tell(path, Claim::Changed),
            }
        }
        said
    }

    fn tell(&mut self, path: PathBuf, claim: Claim) {
        // Who creates a file and then works on it has created it.
        let is_still_new = matches!(claim, Claim::Modified | Claim::Changed)
            && matches!(self.last.get(&path), Some(Claim::Created | Claim::Renamed { .. }));
        if !is_still_new {
            self.last.insert(path, claim);
        }
    }

    /// Whether something was said of a file or of a directory that it is in.
    fn covers(&self, path: &Path) -> bool {
        path.ancestors().any(|place| self.last.contains_key(place))
    }
}

/// What is known of the files.
struct Disk<'a> {
    root: &'a Path,
    tree: Option<Tree>,
    changes: BTreeMap<&'a Path, &'a Change>,
    /// The names that files had before.
    left: BTreeSet<&'a Path>,
}

impl<'a> Disk<'a> {
    fn new(measured: &'a [Changed], root: &'a Path) -> Disk<'a> {
        let changes = measured.iter().map(|file| (Path::new(&file.path), &file.change)).collect();
        let left = measured.iter().filter_map(|file| match &file.change {
            Change::Renamed { from } => Some(Path::new(from)),
            _ => None,
        });
        Disk { root, tree: Tree::open(root).ok(), changes, left: left.collect() }
    }

    /// A path from the root. `None` if it leads elsewhere.
    fn inside(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(unquoted(path.trim()));
        let real_root = self.tree.as_ref().map(Tree::path);
        let mut roots = [Some(self.root), real_root].into_iter().flatten();
        let below = match path.is_absolute() {
            true => roots.find_map(|root| path.strip_prefix(root).ok())?,
            false => path,
        };
        let mut inside = PathBuf::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => inside.push(name),
                Component::CurDir => {}
                Component::ParentDir if inside.pop() => {}
                _ => return None,
            }
        }
        Some(inside)
    }

    fn is_there(&self, path: &Path) -> bool {
        self.tree.as_ref().is_some_and(|tree| tree.look(path).is_ok())
    }

    /// Whether the file, or one in the directory, changed.
    fn has_changed(&self, path: &Path) -> bool {
        // Paths sort by their components, so what is in a directory follows it.
        self.changes.range(path..).next().is_some_and(|(found, _)| found.starts_with(path))
            || self.left.range(path..).next().is_some_and(|found| found.starts_with(path))
    }

    /// Of the words after a path nobody said where they begin: it is the longest that means a file.
    fn without_remark(&self, path: &str) -> Option<PathBuf> {
        let ends = path.rmatch_indices(char::is_whitespace).map(|(end, _)| end).take(MAX_REMARK);
        let mut heads = ends.filter_map(|end| self.inside(path.get(..end)?));
        let means_a_file = |path: &PathBuf| self.has_changed(path) || self.is_there(path);
        let whole = self.inside(path);
        whole.clone().filter(means_a_file).or_else(|| heads.find(means_a_file)).or(whole)
    }

    /// Those of the paths that a measure looks at: files that no rule of git hides.
    fn seen<'b>(&self, paths: impl Iterator<Item = &'b PathBuf>) -> HashSet<PathBuf> {
        let Some(tree) = &self.tree else { return HashSet::new() };
        let wanted: HashSet<PathBuf> =
            paths.flat_map(|path| path.ancestors()).map(Path::to_owned).collect();
        Walk::new(tree, super::MAX_FILES, move |path| wanted.contains(path))
            .map(|found| found.path)
            .collect()
    }
}

/// What is wrong with a claim.
fn wrong(path: &Path, claim: &Claim, disk: &Disk<'_>, is_seen: bool) -> Option<String> {
    let is_there = disk.is_there(path);
    let change = disk.changes.get(path);
    let has_changed = disk.has_changed(path);
    let wrong = match claim {
        Claim::Deleted if is_there => "which is still there",
        Claim::Deleted | Claim::Left => return None,
        // A file that is gone has changed, too.
        Claim::Changed if has_changed => return None,
        _ if !is_there => "which is not there",
        Claim::Renamed { from } if disk.is_there(from) => {
            return Some(format!("but {} is still there", shown(from)));
        }
        Claim::Created if matches!(change, Some(Change::Modified)) => "which was there before",
        Claim::Created | Claim::Renamed { .. } if is_seen && !has_changed => {
            "which was there before and has not changed"
        }
        Claim::Modified | Claim::Changed if is_seen && !has_changed => "which has not changed",
        _ => return None,
    };
    Some(wrong.to_owned())
}

fn unquoted(path: &str) -> &str {
    let between = |quote: char| path.strip_prefix(quote)?.strip_suffix(quote);
    ['`', '"', '\''].into_iter().find_map(between).unwrap_or(path)
}

fn outside(path: &str) -> String {
    format!("said it changed {}, which is outside its directory", shown(Path::new(path)))
}

fn done(file: &Changed) -> String {
    let path = shown(Path::new(&file.path));
    match &file.change {
        Change::Created => format!("created {path}"),
        Change::Modified => format!("modified {path}"),
        Change::Deleted => format!("deleted {path}"),
        Change::Renamed { from } => format!("renamed {} to {path}", shown(Path::new(from))),
    }
}

/// A path on one line: what would break it or be obeyed by a terminal is escaped.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return ".".to_owned();
    }
    let mut shown = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '\\' | '\u{2028}' | '\u{2029}' => shown.extend(c.escape_default()),
            c if c.is_control() || is_direction(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

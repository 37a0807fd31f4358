//! The files below a directory that are skills, breadth first and within bounds.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use tieline_workspace::{Content, without_links};

/// How much is looked at for each root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// So many directories below the first are entered.
    pub(super) deepest: usize,
    /// So many directories.
    pub(super) most_dirs: usize,
    /// So many entries.
    pub(super) most_entries: usize,
}

pub(super) const BOUNDS: Bounds = Bounds { deepest: 6, most_dirs: 2_000, most_entries: 50_000 };

/// A larger file is no skill.
const LARGEST: usize = 256 * 1024;

/// The real paths of the skills below a directory. What is left out is told.
pub(super) fn skill_files(
    root: &Path,
    within: Option<&Path>,
    bounds: Bounds,
    note: &mut impl FnMut(&Path, String),
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([(root.to_owned(), 0)]);
    let mut n_entries = 0;
    while let Some((dir, depth)) = queue.pop_front() {
        let Ok(real) = dir.canonicalize() else { continue };
        if leads_out(&real, within) {
            note(&dir, "left out: it leads out of the project".to_owned());
            continue;
        }
        // A link back to a directory above would go round for ever.
        if !real.is_dir() || !seen.insert(real.clone()) {
            continue;
        }
        if seen.len() > bounds.most_dirs {
            note(root, format!("only the first {} directories are looked at", bounds.most_dirs));
            break;
        }
        let entries = match std::fs::read_dir(&real) {
            Ok(entries) => entries,
            Err(err) => {
                note(&dir, err.to_string());
                continue;
            }
        };
        let mut names: Vec<PathBuf> = entries
            .flatten()
            .take(bounds.most_entries - n_entries)
            .map(|entry| entry.path())
            .collect();
        n_entries += names.len();
        names.sort();
        for path in names {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if name.starts_with('.') {
                continue;
            }
            if name == "SKILL.md" {
                match path.canonicalize() {
                    Ok(real) if leads_out(&real, within) => {
                        note(&path, "left out: it leads out of the project".to_owned());
                    }
                    Ok(real) if real.is_file() => found.push(real),
                    // A directory, or a link to nowhere.
                    _ => {}
                }
            } else if depth < bounds.deepest && path.is_dir() {
                queue.push_back((path, depth + 1));
            }
        }
        if n_entries >= bounds.most_entries {
            note(root, format!("only the first {} entries are looked at", bounds.most_entries));
            break;
        }
    }
    found
}

fn leads_out(real: &Path, within: Option<&Path>) -> bool {
    within.is_some_and(|root| !real.starts_with(root))
}

/// The text of a skill, by its real path.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let content = without_links(path).and_then(|file| Content::of(&file, LARGEST));
    let content = content.map_err(|err| err.to_string())?;
    if content.is_cut {
        return Err(format!("larger than {LARGEST} bytes"));
    }
    String::from_utf8(content.bytes).map_err(|_| "stream did not contain valid UTF-8".to_owned())
}

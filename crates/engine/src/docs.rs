//! What people wrote down for agents: `AGENTS.md` of the user, and those of the project from its
//! root down to the working directory.
//!
//! A project's files are somebody else's words: only so much of them is read, and no link leads out
//! of the project.

use std::path::{Path, PathBuf};

use tieline_workspace::beneath::Links;
use tieline_workspace::{Content, Error, Tree, named};

#[cfg(test)]
mod tests;

/// Which files count in each directory; the first that is there is taken.
const NAMES: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];

/// How documents are found.
#[derive(Debug, Clone)]
pub struct DocOptions {
    /// What a project's root has in it.
    pub root_markers: Vec<String>,
    /// More names of files, after the usual two.
    pub fallback_names: Vec<String>,
    /// At most so many bytes of the project's files are taken; 0 means none are read.
    pub most_bytes: usize,
}

impl Default for DocOptions {
    fn default() -> Self {
        Self {
            root_markers: vec![".git".to_owned()],
            fallback_names: Vec::new(),
            most_bytes: 32 * 1024,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Docs {
    /// Everything, in the order it is to be read.
    pub text: String,
    /// The files it is from.
    pub files: Vec<PathBuf>,
    /// Files that were left out or cut, and why.
    pub notes: Vec<(PathBuf, String)>,
}

impl Docs {
    /// As the model sees it; nothing when there is nothing to see.
    pub fn message(&self, cwd: &Path) -> Option<String> {
        (!self.text.is_empty()).then(|| {
            format!(
                "# AGENTS.md instructions for {}\n\n<INSTRUCTIONS>\n{}\n</INSTRUCTIONS>",
                cwd.display(),
                self.text
            )
        })
    }
}

/// The directories of a project from its root to a directory in it. Without a root it is that
/// directory alone.
pub fn project_dirs(cwd: &Path, root_markers: &[String]) -> Vec<PathBuf> {
    let is_root = |dir: &&Path| {
        root_markers.iter().any(|marker| !marker.is_empty() && dir.join(marker).exists())
    };
    let Some(root) = cwd.ancestors().find(is_root) else { return vec![cwd.to_owned()] };
    let mut dirs: Vec<PathBuf> =
        cwd.ancestors().take_while(|dir| dir.starts_with(root)).map(Path::to_owned).collect();
    dirs.reverse();
    dirs
}

/// Reads the documents for a directory: the user's from `config`, then the project's. It blocks.
pub fn collect(cwd: &Path, config: Option<&Path>, options: &DocOptions) -> Docs {
    let mut docs = Docs::default();
    let mut parts = Vec::new();
    if let Some(config) = config {
        let mut left = DocOptions::default().most_bytes;
        // The user's own links lead where the user wants.
        let read = |name: &str, most| Content::of(&named(&config.join(name))?, most);
        parts.extend(docs.read_first(config, &[], &read, &mut left));
    }
    let dirs = project_dirs(cwd, &options.root_markers);
    let root = dirs.first().map_or(cwd, PathBuf::as_path);
    let tree = Tree::open(root);
    let mut left = options.most_bytes;
    let mut project = Vec::new();
    for dir in &dirs {
        let (Ok(tree), Ok(below)) = (&tree, dir.strip_prefix(root)) else { break };
        if left == 0 {
            break;
        }
        let read = |name: &str, most| tree.read(&below.join(name), Links::Inside, most);
        project.extend(docs.read_first(dir, &options.fallback_names, &read, &mut left));
    }
    if !project.is_empty() {
        parts.push(project.join("\n\n"));
    }
    docs.text = parts.join("\n\n--- project-doc ---\n\n");
    docs
}

impl Docs {
    /// Reads the first file of a directory that has one of the names.
    fn read_first(
        &mut self,
        dir: &Path,
        more_names: &[String],
        read: &dyn Fn(&str, usize) -> Result<Content, Error>,
        left: &mut usize,
    ) -> Option<String> {
        let names = NAMES.into_iter().chain(more_names.iter().map(String::as_str));
        // A name is a name: it does not lead elsewhere.
        let names = names.filter(|name| !name.is_empty() && !name.contains('/'));
        for name in names {
            let path = dir.join(name);
            let content = match read(name, *left) {
                Ok(content) => content,
                Err(err) if err.is_missing() => continue,
                Err(Error::NotAFile) => {
                    self.notes.push((path, "left out: it is no file".to_owned()));
                    continue;
                }
                Err(Error::LeadsOut) => {
                    self.notes.push((path, "left out: it leads out of the project".to_owned()));
                    return None;
                }
                Err(err) => {
                    self.notes.push((path, format!("left out: {err}")));
                    return None;
                }
            };
            let text = content.text().trim_matches(['\n', '\r']).to_owned();
            if text.trim().is_empty() {
                return None;
            }
            *left = if content.is_cut { 0 } else { left.saturating_sub(text.len()) };
            if content.is_cut {
                self.notes.push((path.clone(), "cut: together they are too long".to_owned()));
            }
            self.files.push(path);
            return Some(text);
        }
        None
    }
}

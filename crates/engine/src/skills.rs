//! Skills: folders with a `SKILL.md` that tells a model how to do something.
//!
//! They are looked for in the project, with the user, and on the machine. A project is somebody
//! else's work: of it only so much is looked at, and no link leads out of it. Links of the user's
//! own, and of the machine's, lead where they lead.

mod matter;
mod mention;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use tieline_event::{SkillInfo, SkillsAt};

pub use mention::{find, mentioned};

use crate::docs::project_dirs;

/// At most so many bytes of descriptions go to the model.
const MOST_LISTED: usize = 24 * 1024;

/// Where skills are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The directory of our own configuration.
    pub config: Option<PathBuf>,
    /// Those of whoever keeps the machine.
    pub admin: PathBuf,
    /// What a project's root has in it.
    pub root_markers: Vec<String>,
    /// Files of skills that are turned off.
    pub disabled: Vec<PathBuf>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            home: None,
            config: None,
            admin: PathBuf::from("/etc/tieline/skills"),
            root_markers: vec![".git".to_owned()],
            disabled: Vec::new(),
        }
    }
}

/// Whose a skill is, in the order they are listed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Repo,
    User,
    Admin,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::Repo => "repo",
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

/// A directory to look in.
struct Root {
    scope: Scope,
    path: PathBuf,
    /// Links may not lead out of this.
    within: Option<PathBuf>,
}

fn roots(cwd: &Path, places: &Places) -> Vec<Root> {
    let dirs = project_dirs(cwd, &places.root_markers);
    let project = dirs.first().and_then(|root| root.canonicalize().ok());
    let repo = dirs.iter().flat_map(|dir| {
        [".agents/skills", ".codex/skills", ".tieline/skills"].map(|name| Root {
            scope: Scope::Repo,
            path: dir.join(name),
            within: project.clone(),
        })
    });
    let own = |scope, path| Root { scope, path, within: None };
    let home = places.home.iter().map(|home| own(Scope::User, home.join(".agents/skills")));
    let config = places.config.iter().map(|config| own(Scope::User, config.join("skills")));
    let admin = std::iter::once(own(Scope::Admin, places.admin.clone()));
    repo.chain(home).chain(config).chain(admin).collect()
}

/// Looks for the skills for a directory. It blocks.
pub fn discover(cwd: &Path, places: &Places) -> SkillsAt {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut errors = Vec::new();
    let disabled: HashSet<PathBuf> =
        places.disabled.iter().filter_map(|path| path.canonicalize().ok()).collect();
    for root in roots(cwd, places) {
        let mut note = |path: &Path, message: String| {
            errors.push((path.display().to_string(), message));
        };
        // The same file by two ways is one skill: that of the nearer scope.
        for path in walk::skill_files(&root.path, root.within.as_deref(), walk::BOUNDS, &mut note) {
            if !seen.insert(path.clone()) {
                continue;
            }
            match walk::read(&path).and_then(|text| matter::parse(&text)) {
                Ok(matter) => {
                    let skill = SkillInfo {
                        name: matter.name,
                        description: matter.description,
                        short_description: matter.short_description,
                        path: path.display().to_string(),
                        scope: root.scope.name().to_owned(),
                        enabled: !disabled.contains(&path),
                    };
                    found.push((root.scope, skill));
                }
                Err(message) => note(&path, message),
            }
        }
    }
    found.sort_by(|(scope, a), (other, b)| {
        (scope, &a.name, &a.path).cmp(&(other, &b.name, &b.path))
    });
    let skills = found.into_iter().map(|(_, skill)| skill).collect();
    SkillsAt { dir: cwd.display().to_string(), skills, errors }
}

/// What the model is told of the skills there are; nothing when there are none.
pub fn section(skills: &SkillsAt) -> Option<String> {
    let enabled: Vec<&SkillInfo> = skills.skills.iter().filter(|skill| skill.enabled).collect();
    if enabled.is_empty() {
        return None;
    }
    let mut text = String::from(
        "## Skills\n\
         A skill is a folder with a `SKILL.md` that says how to do something well. These are here:\n",
    );
    let mut n_listed = 0;
    for skill in &enabled {
        let line = format!("- {}: {} (file: {})\n", skill.name, skill.description, skill.path);
        if text.len() + line.len() > MOST_LISTED {
            break;
        }
        text.push_str(&line);
        n_listed += 1;
    }
    if n_listed < enabled.len() {
        // Writing to a `String` cannot fail.
        let written = writeln!(text, "- and {} more that are not listed", enabled.len() - n_listed);
        debug_assert!(written.is_ok());
    }
    text.push_str(
        "### How to use them\n\
         - When the user names a skill (`$name` or in plain words), or the task clearly matches a \
         description, use it for this turn. Do not carry it over to later turns unasked.\n\
         - Read its `SKILL.md` first, and only as much of it as the task needs. Paths in it are \
         relative to its folder; open further files only when it points to them.\n\
         - Prefer scripts, templates and assets that the skill brings to writing your own.\n\
         - When several fit, take the smallest set that does the job, and say which and in what \
         order.\n\
         - When a skill is missing or cannot be followed, say so in a sentence and go on without \
         it.",
    );
    Some(text)
}

/// A skill as it is put into the conversation: the whole file. It blocks.
///
/// # Errors
/// In words, when the file is gone or no longer what it was.
pub fn inject(skill: &SkillInfo) -> Result<String, String> {
    let path = Path::new(&skill.path);
    // What became a link since it was found may lead anywhere.
    if path.canonicalize().map_err(|err| err.to_string())? != path {
        return Err("it was moved; list the skills again".to_owned());
    }
    let text = walk::read(path)?;
    Ok(format!(
        "<skill>\n<name>{}</name>\n<path>{}</path>\n{}\n</skill>",
        skill.name,
        skill.path,
        text.trim_end()
    ))
}

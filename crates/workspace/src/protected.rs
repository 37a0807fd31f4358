//! What other programs run or obey when they come across it.
//!
//! Whoever may write such a file can have a program run that nobody was asked about, outside of every
//! sandbox: with the next commit, when an editor or an agent opens the directory, when a shell starts
//! in it or enters it. The table has what takes effect *by being there*. What a project's own build
//! or tests run is not in it: they are started by somebody who means to run the project.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Who runs or obeys a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obeyed {
    /// Git and its like, and what manages its hooks.
    Git,
    /// Coding agents: settings, hooks, commands, skills, servers of tools.
    Agents,
    /// Editors, and what opens a directory in a container.
    Editors,
    /// Shells and what they load on entering a directory.
    Shells,
    /// Other tools that read settings with commands in them, or whom they trust with keys.
    Tools,
    /// What starts programs when somebody logs in.
    Sessions,
    /// Ourselves.
    Tieline,
}

impl fmt::Display for Obeyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Git => "git",
            Self::Agents => "coding agents",
            Self::Editors => "editors",
            Self::Shells => "shells",
            Self::Tools => "command line tools",
            Self::Sessions => "the login session",
            Self::Tieline => "tieline",
        })
    }
}

/// Names in a workspace.
pub const IN_WORKSPACE: &[(&str, Obeyed)] = &[
    (".git", Obeyed::Git),
    (".githooks", Obeyed::Git),
    (".hg", Obeyed::Git),
    (".husky", Obeyed::Git),
    (".jj", Obeyed::Git),
    (".lefthook", Obeyed::Git),
    (".lefthook.toml", Obeyed::Git),
    (".lefthook.yaml", Obeyed::Git),
    (".lefthook.yml", Obeyed::Git),
    (".overcommit.yml", Obeyed::Git),
    (".pre-commit-config.yaml", Obeyed::Git),
    ("lefthook.toml", Obeyed::Git),
    ("lefthook.yaml", Obeyed::Git),
    ("lefthook.yml", Obeyed::Git),
    (".agents", Obeyed::Agents),
    (".aider.conf.yml", Obeyed::Agents),
    (".amazonq", Obeyed::Agents),
    (".claude", Obeyed::Agents),
    (".codex", Obeyed::Agents),
    (".crush.json", Obeyed::Agents),
    (".cursor", Obeyed::Agents),
    (".factory", Obeyed::Agents),
    (".gemini", Obeyed::Agents),
    (".kiro", Obeyed::Agents),
    (".mcp.json", Obeyed::Agents),
    (".opencode", Obeyed::Agents),
    (".qwen", Obeyed::Agents),
    (".roo", Obeyed::Agents),
    (".windsurf", Obeyed::Agents),
    ("crush.json", Obeyed::Agents),
    ("opencode.json", Obeyed::Agents),
    ("opencode.jsonc", Obeyed::Agents),
    (".tieline", Obeyed::Tieline),
    (".devcontainer", Obeyed::Editors),
    (".devcontainer.json", Obeyed::Editors),
    (".dir-locals-2.el", Obeyed::Editors),
    (".dir-locals.el", Obeyed::Editors),
    (".exrc", Obeyed::Editors),
    (".fleet", Obeyed::Editors),
    (".gvimrc", Obeyed::Editors),
    (".helix", Obeyed::Editors),
    (".idea", Obeyed::Editors),
    (".lvimrc", Obeyed::Editors),
    (".nvim.lua", Obeyed::Editors),
    (".nvimrc", Obeyed::Editors),
    (".vimrc", Obeyed::Editors),
    (".vscode", Obeyed::Editors),
    (".zed", Obeyed::Editors),
    (".envrc", Obeyed::Shells),
    (".mise.toml", Obeyed::Shells),
    ("mise.toml", Obeyed::Shells),
    (".cargo/config", Obeyed::Tools),
    (".cargo/config.toml", Obeyed::Tools),
    (".gdbinit", Obeyed::Tools),
    (".irbrc", Obeyed::Tools),
    (".lldbinit", Obeyed::Tools),
    (".npmrc", Obeyed::Tools),
    (".pnpmfile.cjs", Obeyed::Tools),
    (".yarnrc", Obeyed::Tools),
    (".yarnrc.yml", Obeyed::Tools),
];

/// Names in a home directory, besides those of any workspace.
pub const AT_HOME: &[(&str, Obeyed)] = &[
    (".bash_aliases", Obeyed::Shells),
    (".bash_login", Obeyed::Shells),
    (".bash_logout", Obeyed::Shells),
    (".bash_profile", Obeyed::Shells),
    (".bashrc", Obeyed::Shells),
    (".cshrc", Obeyed::Shells),
    (".inputrc", Obeyed::Shells),
    (".kshrc", Obeyed::Shells),
    (".login", Obeyed::Shells),
    (".profile", Obeyed::Shells),
    (".screenrc", Obeyed::Shells),
    (".tcshrc", Obeyed::Shells),
    (".tmux.conf", Obeyed::Shells),
    (".zlogin", Obeyed::Shells),
    (".zlogout", Obeyed::Shells),
    (".zprofile", Obeyed::Shells),
    (".zshenv", Obeyed::Shells),
    (".zshrc", Obeyed::Shells),
    ("bin", Obeyed::Shells),
    (".local/bin", Obeyed::Shells),
    (".cargo/bin", Obeyed::Shells),
    (".cargo/env", Obeyed::Shells),
    (".config/direnv", Obeyed::Shells),
    (".config/fish", Obeyed::Shells),
    (".config/mise", Obeyed::Shells),
    (".config/tmux", Obeyed::Shells),
    (".pam_environment", Obeyed::Sessions),
    (".xinitrc", Obeyed::Sessions),
    (".xprofile", Obeyed::Sessions),
    (".xsession", Obeyed::Sessions),
    (".xsessionrc", Obeyed::Sessions),
    (".config/autostart", Obeyed::Sessions),
    (".config/environment.d", Obeyed::Sessions),
    (".config/plasma-workspace", Obeyed::Sessions),
    (".config/systemd", Obeyed::Sessions),
    (".local/share/applications", Obeyed::Sessions),
    (".local/share/dbus-1", Obeyed::Sessions),
    (".local/share/systemd", Obeyed::Sessions),
    (".gitconfig", Obeyed::Git),
    (".hgrc", Obeyed::Git),
    (".jjconfig.toml", Obeyed::Git),
    (".config/git", Obeyed::Git),
    (".config/hg", Obeyed::Git),
    (".config/jj", Obeyed::Git),
    (".emacs", Obeyed::Editors),
    (".emacs.d/init.el", Obeyed::Editors),
    (".vim", Obeyed::Editors),
    (".config/emacs", Obeyed::Editors),
    (".config/helix", Obeyed::Editors),
    (".config/nvim", Obeyed::Editors),
    (".config/zed", Obeyed::Editors),
    (".claude.json", Obeyed::Agents),
    (".config/goose", Obeyed::Agents),
    (".config/opencode", Obeyed::Agents),
    (".aws", Obeyed::Tools),
    (".curlrc", Obeyed::Tools),
    (".docker", Obeyed::Tools),
    (".gnupg", Obeyed::Tools),
    (".kube", Obeyed::Tools),
    (".mailcap", Obeyed::Tools),
    (".netrc", Obeyed::Tools),
    (".psqlrc", Obeyed::Tools),
    (".pypirc", Obeyed::Tools),
    (".sqliterc", Obeyed::Tools),
    (".ssh", Obeyed::Tools),
    (".wgetrc", Obeyed::Tools),
    (".config/gh", Obeyed::Tools),
    (".config/pip", Obeyed::Tools),
    (".config/tieline", Obeyed::Tieline),
];

/// A name as a file system may take it that does not tell `.git` from `.GIT`, or counts some
/// characters for nothing.
pub fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let is_seen = |it: &char| {
        !matches!(it, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
    };
    // By way of capitals, which also takes ligatures and other forms of a letter apart.
    let name: String = name
        .chars()
        .filter(is_seen)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    name.trim_end_matches(['.', ' ']).to_owned()
}

/// A path that is protected where it is, in a form that spellings do not change.
#[derive(Debug, Clone)]
struct Place {
    parts: Vec<String>,
    by: Obeyed,
}

/// Tells what is protected.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Names in a workspace are.
    by_name: bool,
    places: Vec<Place>,
}

impl Guard {
    /// Nothing is: somebody said yes to it.
    pub fn none() -> Self {
        Self::default()
    }

    /// The names in any workspace are, at any depth.
    pub fn by_name() -> Self {
        Self { by_name: true, places: Vec::new() }
    }

    /// Only what is protected by its place is.
    pub fn without_names(mut self) -> Self {
        self.by_name = false;
        self
    }

    /// So is what other programs obey in these homes.
    pub fn at(mut self, homes: &Homes) -> Self {
        for (path, by) in homes.places() {
            self.add(&path, by);
        }
        self
    }

    /// So are these, which are ours.
    pub fn ours<'a>(mut self, paths: impl IntoIterator<Item = &'a Path>) -> Self {
        for path in paths {
            self.add(path, Obeyed::Tieline);
        }
        self
    }

    /// By the way a path is spelled, and by the way it really is.
    fn add(&mut self, path: &Path, by: Obeyed) {
        let parts = |path: &Path| path.iter().map(folded).collect();
        self.places.push(Place { parts: parts(path), by });
        let real = nearly_real(path);
        if real != path {
            self.places.push(Place { parts: parts(&real), by });
        }
    }

    /// Who obeys a path below a root, both absolute and without links. A root that is itself a
    /// protected place, or lies in one, was named by somebody who means it.
    pub fn obeyed_by(&self, root: &Path, below: &Path) -> Option<Obeyed> {
        let below: Vec<String> = below.iter().map(folded).collect();
        if self.by_name
            && let Some((_, by)) = IN_WORKSPACE.iter().find(|(name, _)| contains(&below, name))
        {
            return Some(*by);
        }
        let root: Vec<String> = root.iter().map(folded).collect();
        let place = self.places.iter().find(|place| {
            let rest = place.parts.strip_prefix(root.as_slice());
            rest.is_some_and(|rest| !rest.is_empty() && below.starts_with(rest))
        });
        place.map(|place| place.by)
    }
}

/// Whether a name, of one or more parts, is among the parts of a path.
fn contains(parts: &[String], name: &str) -> bool {
    let name: Vec<&str> = name.split('/').collect();
    parts.windows(name.len()).any(|window| window.iter().eq(name.iter()))
}

/// Where the user's own settings are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Homes {
    /// Home directories.
    pub homes: Vec<PathBuf>,
    /// What stands in the place of `.config`.
    pub config: Option<PathBuf>,
}

impl Homes {
    /// Those of this process: the user's home is what `HOME` says and what the system says.
    pub fn here() -> Self {
        let named = |name| {
            std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute())
        };
        let mut homes: Vec<PathBuf> = named("HOME").into_iter().chain(home_of_system()).collect();
        homes.dedup();
        Self { homes, config: named("XDG_CONFIG_HOME") }
    }

    /// What is protected in them: names of any workspace, and those of a home.
    pub fn places(&self) -> impl Iterator<Item = (PathBuf, Obeyed)> {
        let at_home = self.homes.iter().flat_map(|home| {
            IN_WORKSPACE.iter().chain(AT_HOME).map(|(name, by)| (home.join(name), *by))
        });
        let of_config = self.config.iter().flat_map(|config| {
            let names = AT_HOME.iter();
            names.filter_map(|(name, by)| Some((config.join(name.strip_prefix(".config/")?), *by)))
        });
        at_home.chain(of_config)
    }
}

/// What the system's list of users says.
fn home_of_system() -> Option<PathBuf> {
    /// More than any list of users of one machine.
    const MOST: usize = 1 << 20;
    let uid = rustix::process::getuid().as_raw().to_string();
    let list = crate::named(Path::new("/etc/passwd")).ok()?;
    let list = crate::Content::of(&list, MOST).ok()?.text();
    list.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_ours = fields.get(2) == Some(&uid.as_str());
        is_ours.then(|| fields.get(5).map(PathBuf::from)).flatten()
    })
}

/// The path without links as far as it exists.
pub fn nearly_real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        match ancestor.components().next_back() {
            Some(name) => missing.push(name),
            None => break,
        }
    }
    path.to_owned()
}

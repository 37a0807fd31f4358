//! Where the pinned programs of npm are: the real agents, and what tests speak ACP with.
//!
//! `cargo xtask agents` installs the [`PROJECTS`]; a test asks here for a program. Both
//! sides compute the same directory from the lock file, so a test never runs a program
//! of another version.

use std::env;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// An npm project below `xtask`: what it pins, and how it is installed.
pub struct Project {
    pub manifest: &'static str,
    pub lock: &'static str,
    /// The words of npm that install it; none may run a script of a package.
    pub install: &'static [&'static str],
}

macro_rules! agent {
    ($name:literal) => {
        Project {
            manifest: include_str!(concat!("../../../xtask/agents/", $name, "/package.json")),
            lock: include_str!(concat!("../../../xtask/agents/", $name, "/package-lock.json")),
            install: &["ci", "--ignore-scripts"],
        }
    };
}

/// An agent's one dependency has the agent's name. Its native programs are in optional packages,
/// one for each platform.
pub const CLAUDE: Project = agent!("claude");
/// The newest Codex: app server and exec.
pub const CODEX: Project = agent!("codex");
/// The last Codex with `codex proto`.
pub const CODEX_PROTO: Project = agent!("codex-proto");

/// The agents, apart from each other so that a test of one installs one.
pub const AGENTS: [&Project; 3] = [&CLAUDE, &CODEX, &CODEX_PROTO];

/// Other people's ACP clients and agents, and the official schema.
///
/// The adapters carry whole agents in optional packages (365 MB) that stay away: tests
/// give them the pinned ones. `npm ci` refuses the lock, because some optional packages of
/// `acpx` cannot be found; `install` takes what the lock has and checks its hashes too.
pub const ACP: Project = Project {
    manifest: include_str!("../../../xtask/acp/package.json"),
    lock: include_str!("../../../xtask/acp/package-lock.json"),
    install: &["install", "--no-save", "--ignore-scripts", "--omit=optional"],
};

/// The Node that runs [`ACP`]; apart from it because a platform's package is optional.
pub const NODE: Project = Project {
    manifest: include_str!("../../../xtask/node/package.json"),
    lock: include_str!("../../../xtask/node/package-lock.json"),
    install: &["ci", "--ignore-scripts"],
};

/// Everything that `cargo xtask agents` installs.
pub const PROJECTS: [&Project; 5] = [&CLAUDE, &CODEX, &CODEX_PROTO, &ACP, &NODE];

/// The projects that real tests of these names need.
///
/// The last part of a scene's name is its wire; a test of any other name may need everything.
pub fn needed<'a>(tests: impl IntoIterator<Item = &'a str>) -> Vec<&'static Project> {
    let of_test = |name: &str| -> &[&Project] {
        match name.rsplit("::").next().unwrap_or(name) {
            "claude" => &[&CLAUDE],
            "codex" | "codex_exec" => &[&CODEX],
            "codex_proto" => &[&CODEX_PROTO],
            "acp_claude" => &[&CLAUDE, &ACP, &NODE],
            _ => &PROJECTS,
        }
    };
    let mut needed: Vec<&'static Project> = Vec::new();
    for project in tests.into_iter().flat_map(of_test) {
        if !needed.iter().any(|known| known.lock == project.lock) {
            needed.push(project);
        }
    }
    needed
}

impl Project {
    /// The names of what it pins.
    pub fn pinned(&self) -> Vec<String> {
        let manifest: Value =
            serde_json::from_str(self.manifest).expect("package.json is valid JSON");
        let names = |part: &str| manifest[part].as_object().cloned().unwrap_or_default();
        let all = names("dependencies").into_iter().chain(names("optionalDependencies"));
        all.map(|(name, _)| name).collect()
    }

    /// The directory of the install that belongs to its lock file.
    ///
    /// The parent is `$TIELINE_AGENTS_CACHE`, else `$XDG_CACHE_HOME/tieline/agents`,
    /// else `~/.cache/tieline/agents`.
    pub fn install_dir(&self) -> PathBuf {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let parent = set("TIELINE_AGENTS_CACHE")
            .or_else(|| Some(set("XDG_CACHE_HOME")?.join("tieline/agents")))
            .or_else(|| Some(set("HOME")?.join(".cache/tieline/agents")))
            .unwrap_or_else(|| env::temp_dir().join("tieline-agents"));
        let digest = Sha256::digest(self.lock.as_bytes());
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        parent.join(hash)
    }

    /// The first of these files of its install.
    fn find(&self, places: &[String]) -> Option<PathBuf> {
        let modules = self.install_dir().join("node_modules");
        places.iter().map(|place| modules.join(place)).find(|path| path.is_file())
    }
}

/// The program of the agent called `name` in a manifest of [`AGENTS`].
///
/// `TIELINE_TEST_<NAME>` (upper case, `_` for `-`) overrides the install.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let variable = format!("TIELINE_TEST_{}", name.to_uppercase().replace('-', "_"));
    if let Some(path) = env::var_os(&variable) {
        return Ok(path.into());
    }
    let pins = |project: &&Project| project.pinned().iter().any(|pinned| pinned == name);
    let Some(project) = AGENTS.into_iter().find(pins) else {
        return Err(format!("`cargo xtask agents` installs no `{name}`: set {variable}"));
    };
    project.find(&places(name)).ok_or_else(|| {
        let place = project.install_dir();
        let place = place.display();
        format!("`{name}` is not in {place}: run `cargo xtask agents`, or set {variable}")
    })
}

/// The pinned Node.
pub fn node() -> Result<PathBuf, String> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let found = NODE.find(&[format!("node-linux-{arch}/bin/node")]);
    found.ok_or_else(|| "Node is not installed: run `cargo xtask agents`".to_owned())
}

/// A file of a package of [`ACP`], as in `acpx/dist/cli.js`.
pub fn acp(file: &str) -> Result<PathBuf, String> {
    let found = ACP.find(&[file.to_owned()]);
    found.ok_or_else(|| format!("`{file}` is not installed: run `cargo xtask agents`"))
}

/// Where a package keeps its native program, relative to `node_modules`.
fn places(name: &str) -> Vec<String> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let triple = match (os, arch) {
        ("darwin", "arm64") => "aarch64-apple-darwin",
        ("darwin", _) => "x86_64-apple-darwin",
        (_, "arm64") => "aarch64-unknown-linux-musl",
        _ => "x86_64-unknown-linux-musl",
    };
    let hoisted = match name {
        "claude" => vec![
            format!("@anthropic-ai/claude-code-{os}-{arch}/claude"),
            format!("@anthropic-ai/claude-code-{os}-{arch}-musl/claude"),
        ],
        "codex" => vec![format!("@openai/codex-{os}-{arch}/vendor/{triple}/bin/codex")],
        "codex-proto" => return vec![format!("codex-proto/vendor/{triple}/codex/codex")],
        _ => vec![],
    };
    // npm puts a platform package beside its parent, or below it on a conflict.
    let nested = hoisted.iter().map(|place| format!("{name}/node_modules/{place}"));
    hoisted.iter().cloned().chain(nested).collect()
}

#[cfg(test)]
mod tests;

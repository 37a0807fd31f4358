//! Where the pinned real agents are.
//!
//! `cargo xtask agents` installs what `xtask/agents/package.json` names; a test
//! asks here for the program. Both sides compute the same directory from the lock
//! file, so a test never runs an agent of another version.

use std::env;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The manifest that pins the agents; each dependency name is an agent name.
pub const MANIFEST: &str = include_str!("../../../xtask/agents/package.json");

/// The lock file of [`MANIFEST`].
pub const LOCK: &str = include_str!("../../../xtask/agents/package-lock.json");

/// The names of the pinned agents.
pub fn pinned() -> Vec<String> {
    let manifest: Value = serde_json::from_str(MANIFEST).expect("package.json is valid JSON");
    let dependencies = manifest["dependencies"].as_object().expect("package.json has dependencies");
    dependencies.keys().cloned().collect()
}

/// The directory of the install that belongs to this lock file.
///
/// The parent is `$TIELINE_AGENTS_CACHE`, else `$XDG_CACHE_HOME/tieline/agents`,
/// else `~/.cache/tieline/agents`.
pub fn install_dir() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let parent = set("TIELINE_AGENTS_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("tieline/agents")))
        .or_else(|| Some(set("HOME")?.join(".cache/tieline/agents")))
        .unwrap_or_else(|| env::temp_dir().join("tieline-agents"));
    parent.join(lock_hash())
}

/// The program of the agent called `name` in the manifest.
///
/// `TIELINE_TEST_<NAME>` (upper case, `_` for `-`) overrides the install.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let variable = format!("TIELINE_TEST_{}", name.to_uppercase().replace('-', "_"));
    if let Some(path) = env::var_os(&variable) {
        return Ok(path.into());
    }
    let modules = install_dir().join("node_modules");
    let places = places(name);
    places.iter().map(|place| modules.join(place)).find(|path| path.is_file()).ok_or_else(|| {
        format!(
            "the agent `{name}` is not in {}: run `cargo xtask agents`, or set {variable}",
            modules.display()
        )
    })
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

fn lock_hash() -> String {
    let digest = Sha256::digest(LOCK.as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

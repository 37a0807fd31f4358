//! What a test needs to run a pinned real agent, offline and away from the user's
//! own files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{agents, sys};

/// Whether this process can reach nothing but itself.
///
/// The suites with real agents run in a network namespace with only `lo`; a test
/// asserts this first, so an agent never talks to the world by mistake.
pub fn loopback_only() -> bool {
    // A new namespace may hold tunnel devices that are down; without a route they
    // lead nowhere.
    let devices = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let mut names = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    names.all(|name| name == "lo") || !has_route()
}

/// Brings the loopback interface of this network namespace up; a new one has it down.
///
/// # Errors
/// When this process may not configure its network.
pub fn raise_loopback() -> std::io::Result<()> {
    sys::raise_loopback()
}

/// The program of the pinned Claude Code.
pub fn claude_program() -> PathBuf {
    agents::program("claude").expect("the pinned agents are installed")
}

/// The program that looks like Claude Code and misbehaves on command.
///
/// Cargo builds it beside the tests of a whole workspace; `TIELINE_FAKE_AGENT` names
/// another one.
pub fn fake_agent_program() -> PathBuf {
    if let Some(path) = env::var_os("TIELINE_FAKE_AGENT") {
        return path.into();
    }
    let test = env::current_exe().expect("a running program has a path");
    // A test runs from `deps`, an example from `examples`, a benchmark from `deps`.
    let beside = test.ancestors().skip(1).take(2).map(|dir| dir.join("fake-agent"));
    let found = beside.into_iter().find(|path| path.is_file());
    found.expect("fake-agent is built: run `cargo build -p tieline-testkit --bin fake-agent`")
}

/// A fresh home and workspace for one Claude Code, gone when dropped.
pub struct ClaudeEnv {
    root: TempDir,
    model_url: String,
}

impl ClaudeEnv {
    /// An environment whose model is at `model_url`.
    pub fn new(model_url: impl Into<String>) -> ClaudeEnv {
        let root = TempDir::new().expect("the temporary directory is writable");
        let env = ClaudeEnv { root, model_url: model_url.into() };
        fs::create_dir(env.home()).expect("a fresh directory is writable");
        fs::create_dir(env.workspace()).expect("a fresh directory is writable");
        fs::write(env.workspace().join("README.md"), "# ws\nhello readme\n")
            .expect("a fresh directory is writable");
        env
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The directory to start the agent in; it has a `README.md`.
    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// The directory around both.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The whole environment of the agent; nothing of ours may leak into it.
    pub fn vars(&self) -> Vec<(String, String)> {
        let home = self.home().display().to_string();
        [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", &home),
            ("LANG", "C.UTF-8"),
            ("ANTHROPIC_BASE_URL", &self.model_url),
            ("ANTHROPIC_API_KEY", "sk-test"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            // Without it a root user may not bypass permissions.
            ("IS_SANDBOX", "1"),
            // The default is ten tries with backoff, more than a minute.
            ("CLAUDE_CODE_MAX_RETRIES", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

/// Whether a route leads anywhere but to the loopback interface.
fn has_route() -> bool {
    let leads_out = |table: &str, column: usize| {
        let routes = fs::read_to_string(table).unwrap_or_default();
        let mut devices = routes.lines().filter_map(|line| line.split_whitespace().nth(column));
        devices.any(|device| device != "lo" && device != "Iface")
    };
    leads_out("/proc/thread-self/net/route", 0) || leads_out("/proc/thread-self/net/ipv6_route", 9)
}

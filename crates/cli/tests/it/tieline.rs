//! Runs the binary with a home of its own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A user with an empty home, a workspace and no agent but the built-in one.
pub(crate) struct Tieline {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Tieline {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("tieline-it-").tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir, variables: Vec::new() }
    }

    /// Sets a variable for every command.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// A Claude Code that is this shell script.
    pub(crate) fn with_claude(self, script: &str) -> Self {
        let path = self.program("claude-script", script);
        self.with("TIELINE_CLAUDE", path)
    }

    /// A Codex that is this shell script.
    pub(crate) fn with_codex(self, script: &str) -> Self {
        let path = self.program("codex-script", script);
        self.with("TIELINE_CODEX", path)
    }

    /// Makes a shell script below the home directory and gives its path.
    pub(crate) fn program(&self, name: &str, script: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes the configuration file.
    pub(crate) fn with_config(self, text: &str) -> Self {
        let dir = self.path(".config/tieline");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
        self
    }

    /// The conversations.
    pub(crate) fn rows(&self) -> serde_json::Value {
        serde_json::from_str(&self.run(&["list", "--json"]).succeeds().out).unwrap()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    // The tests stand outside the program: what they start is the program itself.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tieline"));
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.dir.path())
            .env("TMPDIR", self.dir.path())
            .env("TIELINE_HOME", self.store())
            .env("TIELINE_DEMO_FAST", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end without input.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).stdin(Stdio::null()).output().unwrap().into()
    }

    /// Runs a command with this on its standard input.
    pub(crate) fn feed(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that refuses its arguments does not read.
        child.stdin.take().unwrap().write_all(input).ok();
        child.wait_with_output().unwrap().into()
    }

    /// Starts a command with pipes.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The events of a conversation.
    pub(crate) fn events(&self, key: &str) -> Vec<serde_json::Value> {
        self.run(&["export", key]).succeeds().lines()
    }
}

impl Outcome {
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        self.ends_with(0)
    }

    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Every line of the output as JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Everything that is in a directory, with its mode.
pub(crate) fn modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = vec![(dir.to_owned(), dir.metadata().unwrap().permissions().mode() & 0o777)];
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(modes(&path)),
            false => {
                all.push((path.clone(), path.metadata().unwrap().permissions().mode() & 0o777))
            }
        }
    }
    all
}

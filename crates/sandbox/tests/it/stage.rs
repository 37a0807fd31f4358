//! A place outside, a place inside, and what can be seen of both.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;
use tieline_sandbox::{Files, Policy};

/// An ordinary user without a name of interest.
const NOBODY: u32 = 65534;

/// Who runs the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Whoever runs the tests.
    Self_,
    /// Somebody without privileges.
    Nobody,
}

/// Both where we can be both.
pub(crate) fn users() -> Vec<User> {
    if is_root() { vec![User::Self_, User::Nobody] } else { vec![User::Self_] }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the tests were switched off, which is said.
pub(crate) fn is_off() -> bool {
    let off = std::env::var_os("SANDBOX_TESTS").is_some_and(|it| it == "off");
    if off {
        println!("SANDBOX_TESTS=off: not tested");
    }
    off
}

/// `outside` and `work` side by side in a fresh directory, all the user's own.
pub(crate) struct Stage {
    dir: TempDir,
    pub(crate) user: User,
}

impl Stage {
    pub(crate) fn new(user: User) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let stage = Self { dir, user };
        // Where the user can execute it, wherever this checkout lies.
        std::fs::copy(env!("CARGO_BIN_EXE_sandbox-probe"), stage.path("probe")).unwrap();
        for name in ["outside", "work", "numbers", "sockets"] {
            stage.make_dir(name);
        }
        stage.give(&stage.path(""));
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match name {
            "" => self.dir.path().to_owned(),
            name => self.dir.path().join(name),
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn make_dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        for dir in path.ancestors().take_while(|dir| dir.starts_with(self.dir.path())) {
            self.give(dir);
        }
        path
    }

    pub(crate) fn make_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        self.give(&path);
        path
    }

    pub(crate) fn give(&self, path: &Path) {
        if self.user == User::Nobody {
            std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Files below `work` alone, not those in `/tmp`, where the stage itself is.
    pub(crate) fn workspace(&self) -> Policy {
        self.workspace_of(vec![self.work()])
    }

    pub(crate) fn workspace_of(&self, roots: Vec<PathBuf>) -> Policy {
        let files = Files::WorkspaceWrite { roots, exclude_tmp: true, exclude_tmpdir: true };
        Policy { files, ..Policy::read_only() }
    }

    /// The helper as the user would start it, in `work`.
    pub(crate) fn helper(&self, policy: &Policy, command: &[&str]) -> Command {
        let json = serde_json::to_string(policy).unwrap();
        let mut helper = self.command(self.path("probe"));
        helper.args([tieline_sandbox::FIRST_ARGUMENT, &json, "--"]).args(command);
        helper.current_dir(self.work());
        helper
    }

    #[allow(clippy::disallowed_methods)] // a test starts what it tests
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"));
        if self.user == User::Nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, policy: &Policy, command: &[&str]) -> Said {
        Said::from(self.helper(policy, command).output().unwrap())
    }

    pub(crate) fn shell(&self, policy: &Policy, script: &str) -> Said {
        self.run(policy, &["sh", "-c", script])
    }

    /// A process of the same user outside every sandbox.
    pub(crate) fn outsider(&self) -> Outsider {
        Outsider(self.command("sleep").arg("1000").spawn().unwrap())
    }
}

pub(crate) struct Outsider(pub(crate) Child);

impl Drop for Outsider {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) output: Output,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { out: text(&output.stdout), err: text(&output.stderr), output }
    }
}

impl Said {
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        assert!(self.output.status.success(), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn fails(self) -> Self {
        assert!(!self.output.status.success() && !self.is_refused(), "{self:?}");
        self
    }

    pub(crate) fn is_refused(&self) -> bool {
        tieline_sandbox::is_refusal(self.output.status.code(), &self.err)
    }

    #[track_caller]
    pub(crate) fn refused(self) -> String {
        assert!(self.is_refused(), "{self:?}");
        tieline_sandbox::refusal_in(&self.err).unwrap().to_owned()
    }

    /// The lines of a probe, split at its tabs.
    pub(crate) fn rows(&self) -> Vec<(String, String, String)> {
        self.out
            .lines()
            .map(|line| {
                let mut fields = line.splitn(3, '\t').map(str::to_owned);
                let mut next = || fields.next().unwrap_or_default();
                (next(), next(), next())
            })
            .collect()
    }
}

/// Everything that can be seen of a tree, without the order in which it was looked at.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        let content = if meta.is_file() {
            // Without a trace in its times.
            let mut file = std::fs::OpenOptions::new()
                .read(true)
                .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
                .open(&path)
                .unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        } else if meta.is_symlink() {
            std::fs::read_link(&path).unwrap().display().to_string()
        } else {
            String::new()
        };
        let mut names = [0u8; 4096];
        let n = rustix::fs::llistxattr(&path, &mut names).unwrap_or(0);
        let attributes = String::from_utf8_lossy(&names[..n]).into_owned();
        let state = format!(
            "{:o} {}:{} {} links, {} bytes, {}.{} {attributes:?} {content:?}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            if meta.is_dir() { 0 } else { meta.nlink() },
            if meta.is_dir() { 0 } else { meta.len() },
            meta.mtime(),
            meta.mtime_nsec(),
        );
        seen.insert(path.strip_prefix(root).unwrap().to_owned(), state);
        if meta.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    seen
}

/// What differs between two looks at the same tree.
pub(crate) fn differences(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
) -> Vec<String> {
    let all = before.keys().chain(after.keys().filter(|path| !before.contains_key(*path)));
    all.filter(|path| before.get(*path) != after.get(*path))
        .map(|path| format!("{}: {:?} -> {:?}", path.display(), before.get(path), after.get(path)))
        .collect()
}

//! Where the programs are, where the stores go, and how a process is started for a measurement.

#![allow(clippy::print_stderr)] // progress of a chore, for the person who started it

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use super::driver::Driver;
use crate::command;

/// The programs under measurement and a place on a real disk.
pub(super) struct Scene {
    pub(super) quick: bool,
    programs: PathBuf,
    dir: TempDir,
}

/// A started process whose output is read.
pub(super) struct Running {
    child: Child,
    /// Its output, until somebody takes it.
    pub(super) stdout: ChildStdout,
    name: String,
    stderr: PathBuf,
    /// A process that feeds it.
    feeder: Option<Child>,
}

impl Scene {
    pub(super) fn new(quick: bool) -> anyhow::Result<Self> {
        let own = env::current_exe().context("where this program is")?;
        let programs = own.parent().context("this program is in no directory")?.to_owned();
        for name in ["tieline", "fake-agent"] {
            if !programs.join(name).is_file() {
                bail!("{name} is not built beside {}; use `cargo xtask bench`", own.display());
            }
        }
        // The system's temporary directory is often memory; the target directory is a disk.
        let target = programs.parent().context("this program is not in a target directory")?;
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(target)?;
        for name in ["home", "workspace"] {
            fs::create_dir(dir.path().join(name))?;
        }
        Ok(Self { quick, programs, dir })
    }

    /// The first number, or the second when only a look is wanted.
    pub(super) fn choose<T>(&self, thorough: T, quick: T) -> T {
        if self.quick { quick } else { thorough }
    }

    /// An empty directory.
    pub(super) fn fresh_dir(&self) -> anyhow::Result<TempDir> {
        Ok(TempDir::new_in(self.dir.path())?)
    }

    /// What kind of file system the stores lie on.
    pub(super) fn file_system(&self) -> anyhow::Result<String> {
        const EXT: u64 = 0xef53;
        const XFS: u64 = 0x5846_5342;
        const BTRFS: u64 = 0x9123_683e;
        const OVERLAY: u64 = 0x794c_7630;
        const TMPFS: u64 = 0x0102_1994;
        let kind = rustix::fs::statfs(self.dir.path())?.f_type.cast_unsigned();
        Ok(match kind {
            EXT => "ext4".to_owned(),
            XFS => "xfs".to_owned(),
            BTRFS => "btrfs".to_owned(),
            OVERLAY => "overlayfs".to_owned(),
            TMPFS => "tmpfs, which is no disk: the numbers flatter".to_owned(),
            other => format!("a file system of type {other:#x}"),
        })
    }

    /// `tieline run --format jsonl` on the fake agent, with a store of its own.
    pub(super) fn tieline_on_fake(
        &self,
        driver: Driver,
        home: &Path,
        script: &str,
    ) -> anyhow::Result<Running> {
        let mut tieline = self.tieline(home);
        tieline.args(["run", "--format", "jsonl", "--conversation", "bench"]);
        tieline.args(["--agent", driver.name()]);
        tieline.arg("--cwd").arg(self.workspace()).arg("go");
        self.put_fake_behind(&mut tieline, driver.variable(), driver, script);
        self.start("tieline", tieline)
    }

    /// Makes the fake agent the one that a program drives; the variable is the program's own.
    pub(super) fn put_fake_behind(
        &self,
        command: &mut Command,
        variable: &str,
        driver: Driver,
        script: &str,
    ) {
        command.env(variable, self.programs.join("fake-agent"));
        command.env("FAKE_AGENT_SCRIPT", script);
        if let Some(version) = driver.fake_version() {
            command.env("FAKE_AGENT_VERSION", version);
        }
    }

    /// `tieline` with this home and nothing of the user's.
    pub(super) fn tieline(&self, home: &Path) -> Command {
        let mut tieline = self.clean(self.programs.join("tieline"));
        tieline.env("TIELINE_HOME", home).current_dir(self.workspace());
        tieline
    }

    /// The fake agent alone, in one turn.
    pub(super) fn fake(&self, driver: Driver, script: &str) -> anyhow::Result<Command> {
        let mut fake = self.clean(self.programs.join("fake-agent"));
        fake.args(driver.fake_args()).env("FAKE_AGENT_SCRIPT", script);
        if !driver.fake_input().is_empty() {
            let input = self.dir.path().join("input");
            fs::write(&input, driver.fake_input())?;
            fake.stdin(File::open(&input)?);
        }
        Ok(fake)
    }

    /// The fake agent alone, for as many turns as come on its stdin.
    pub(super) fn fake_with_turns(&self, driver: Driver, script: &str) -> Command {
        let mut fake = self.clean(self.programs.join("fake-agent"));
        fake.args(driver.fake_args_of_turns()).env("FAKE_AGENT_SCRIPT", script);
        fake.stdin(Stdio::piped());
        fake
    }

    /// The same in front of a process of this program.
    pub(super) fn probe_on_turns(
        &self,
        driver: Driver,
        script: &str,
        probe: &str,
    ) -> anyhow::Result<(Running, ChildStdin)> {
        let mut fake = self.fake_with_turns(driver, script);
        let mut feeder = fake.stdout(Stdio::piped()).spawn()?;
        let prompts = feeder.stdin.take().context("the agent's input is a pipe")?;
        let lines = feeder.stdout.take().context("the agent's output is a pipe")?;
        let mut floor = self.clean(env::current_exe()?);
        floor.args(["bench-probe", probe, driver.name()]).stdin(lines);
        let mut running = self.start("the floor", floor)?;
        running.feeder = Some(feeder);
        Ok((running, prompts))
    }

    /// The fake agent in front of a loop that parses each line once and writes one.
    pub(super) fn floor_on_fake(&self, driver: Driver, script: &str) -> anyhow::Result<Running> {
        let mut fake = self.fake(driver, script)?;
        let mut feeder = fake.stdout(Stdio::piped()).spawn()?;
        let lines = feeder.stdout.take().context("the agent's output is a pipe")?;
        let mut floor = self.clean(env::current_exe()?);
        floor.args(["bench-probe", "floor", driver.name()]).stdin(lines);
        let mut running = self.start("the floor", floor)?;
        running.feeder = Some(feeder);
        Ok(running)
    }

    /// Starts a process whose output is read and whose complaints are kept.
    pub(super) fn start(&self, name: &str, mut command: Command) -> anyhow::Result<Running> {
        let stderr = self.dir.path().join("stderr");
        command.stdout(Stdio::piped()).stderr(File::create(&stderr)?);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let stdout = child.stdout.take().context("the output is a pipe")?;
        Ok(Running { child, stdout, name: name.to_owned(), stderr, feeder: None })
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// A program in an environment in which nothing of the user's changes the measurement.
    pub(super) fn clean(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = command(program);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.dir.path().join("home"));
        command.stdin(Stdio::null());
        command
    }
}

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end for a while.
    ///
    /// # Errors
    /// When it was a bad one. A process that does not end is killed, which is none.
    pub(super) fn finish_within(mut self, patience: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + patience;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > until {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.finish()
    }

    /// Its input, where there is one.
    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// What it wrote to stderr.
    pub(super) fn complaint(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default().trim().to_owned()
    }

    /// Waits for the end, which must be a good one.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        if let Some(feeder) = &mut self.feeder {
            feeder.wait()?;
        }
        if !status.success() {
            bail!("{} failed ({status}): {}", self.name, self.complaint());
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended and was waited for is left alone by this.
        for child in [Some(&mut self.child), self.feeder.as_mut()].into_iter().flatten() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// What is being done now.
pub(super) fn progress(what: &str) {
    eprintln!("   {what}");
}

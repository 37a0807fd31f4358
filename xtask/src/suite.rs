//! The suites: what CI runs, and what takes longer.

#![allow(clippy::print_stderr)] // progress of a chore, for the person who started it

use std::borrow::BorrowMut;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;

use crate::{agents, bench, command};

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Leave the suite with the real agents out (it downloads about 400 MB once).
    #[arg(long)]
    fast: bool,
    /// Run only the suite with the real agents.
    #[arg(long, conflicts_with = "fast")]
    real: bool,
    /// Run only tests whose name contains this; of the real agents' with --real.
    filter: Option<String>,
}

#[derive(Args)]
pub(crate) struct SoakArgs {
    /// How many times to kill.
    #[arg(long, default_value_t = 1000)]
    kills: u32,
}

pub(crate) fn test(args: &TestArgs) -> anyhow::Result<()> {
    let began = Instant::now();
    let whole = args.filter.is_none() && !args.real;
    if whole {
        step("format", cargo(["fmt", "--all", "--check"]))?;
        let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
        step("lints", cargo(clippy).args(["--", "-D", "warnings"]))?;
    }
    if !args.real {
        // Test programs of one crate that are used by the tests of another.
        step("programs", cargo(["build", "--workspace", "--bins", "--examples"]))?;
        step("tests", tests(["--workspace"], args.filter.as_deref()))?;
    }
    if whole {
        step("examples in the documentation", cargo(["test", "--workspace", "--doc", "--quiet"]))?;
    }
    if args.real || (whole && !args.fast) {
        real(args.filter.as_deref())?;
    }
    eprintln!("everything passed in {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// The suite with the real agents, where nothing but loopback can be reached.
fn real(filter: Option<&str>) -> anyhow::Result<()> {
    agents::install_all()?;
    let packages =
        ["-p", "tieline-hub", "-p", "tieline", "-p", "tieline-testkit", "-p", "tieline-patch"];
    let target = || packages.into_iter().chain(["--features", "real-agents", "--test", "it"]);
    step("programs for the real agents", cargo(["build", "--workspace", "--bins", "--examples"]))?;
    step("the suite with the real agents, built", tests(target(), None).arg("--no-run"))?;
    let mut isolated = command("unshare");
    // Only root may make a network namespace without a user namespace.
    isolated.arg(if is_root() { "-n" } else { "-rn" });
    // By our own process: a build above may have replaced the file this program was started from.
    isolated.arg(format!("/proc/{}/exe", std::process::id())).arg("loopback");
    let suite = tests(target(), Some(filter.unwrap_or("real::")));
    isolated.arg(suite.get_program()).args(suite.get_args()).env("CARGO_NET_OFFLINE", "true");
    isolated.current_dir(root());
    step("the suite with the real agents", isolated)
}

pub(crate) fn soak(args: &SoakArgs) -> anyhow::Result<()> {
    step("programs", cargo(["build", "--workspace", "--bins"]))?;
    let mut soak = tests(["-p", "tieline", "--test", "it"], Some("kill_9"));
    soak.env("NEXTEST_PROFILE", "soak").env("TIELINE_KILLS", args.kills.to_string());
    step("soak", soak)
}

pub(crate) fn bench(args: &bench::Args) -> anyhow::Result<()> {
    const BUILD: [&str; 9] =
        ["build", "--release", "-p", "tieline", "-p", "tieline-testkit", "-p", "xtask", "--bins"];
    step("release programs", cargo(BUILD))?;
    // Without them some rows say that something is missing; the others are worth having.
    if args.wants_agents()
        && let Err(err) = agents::install_all()
    {
        eprintln!("   not every agent could be installed: {err:#}");
    }
    // This program lies in `debug` or `release` of whatever target directory is in use.
    let own = env::current_exe().context("where this program is")?;
    let target = own.ancestors().nth(2).context("this program is not in a target directory")?;
    let mut bench = command(target.join("release/xtask"));
    // The arguments after `bench` have been checked and go on as they are.
    bench.arg("bench-run").args(env::args_os().skip(2)).current_dir(root());
    step("bench", bench)
}

pub(crate) fn schema() -> anyhow::Result<()> {
    let mut test =
        tests(["-p", "tieline-event", "-p", "tieline-wire"], Some("schema_in_the_repository"));
    step("schema", test.env("UPDATE_EXPECT", "1"))
}

pub(crate) fn in_loopback(words: &[OsString]) -> anyhow::Result<()> {
    tieline_testkit::real::raise_loopback().context("cannot bring the loopback interface up")?;
    let (program, args) = words.split_first().context("no command")?;
    Err(command(program).args(args).exec()).context("cannot start the command")
}

/// `cargo nextest run`, or `cargo test` where nextest is not installed.
fn tests<'a>(scope: impl IntoIterator<Item = &'a str>, filter: Option<&str>) -> Command {
    let has_nextest = cargo(["nextest", "--version"]).output().is_ok_and(|it| it.status.success());
    let mut tests = if has_nextest { cargo(["nextest", "run"]) } else { cargo(["test"]) };
    tests.args(scope).args(filter);
    tests
}

pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut cargo = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(root());
    cargo
}

pub(crate) fn step(name: &str, mut command: impl BorrowMut<Command>) -> anyhow::Result<()> {
    eprintln!("== {name}");
    let status = command.borrow_mut().status().with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of our own entry in /proc is our effective user.
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

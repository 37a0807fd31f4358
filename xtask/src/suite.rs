//! The suites: what CI runs, and what takes longer.

#![allow(clippy::print_stderr)] // progress of a chore, for the person who started it

use std::borrow::BorrowMut;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use tieline_testkit::agents::{PROJECTS, Project, needed};

use crate::{agents, bench, busy, command, leftovers};

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Leave the suite with the real agents out (it downloads about 400 MB once).
    #[arg(long)]
    fast: bool,
    /// Run only the suite with the real agents.
    #[arg(long, conflicts_with = "fast")]
    real: bool,
    /// Build and run only the tests of this crate, by its folder: hub, cli, …
    #[arg(long = "crate", short = 'p', value_name = "FOLDER")]
    folder: Option<String>,
    /// Run only tests whose name contains this; of the real agents' with --real.
    filter: Option<String>,
}

impl TestArgs {
    /// The package to test, if it is only one.
    fn package(&self) -> Option<String> {
        let folder = self.folder.as_deref()?;
        Some(match folder {
            "cli" => "tieline".to_owned(),
            "xtask" => "xtask".to_owned(),
            _ => format!("tieline-{folder}"),
        })
    }
}

#[derive(Args)]
pub(crate) struct SoakArgs {
    /// Run only this part; may be given several times.
    #[arg(long, value_name = "PART")]
    only: Vec<SoakPart>,
    /// How many times to kill.
    #[arg(long, default_value_t = 1000)]
    kills: u32,
    /// How many steps the random test of the hub takes.
    #[arg(long, default_value_t = 100_000)]
    steps: u32,
    /// At how many moments a task is cancelled.
    #[arg(long, default_value_t = 1000)]
    cancels: u32,
    /// How many times the fast tests run.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// How many loops keep the machine busy meanwhile.
    #[arg(long, default_value_t = 4)]
    busy: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SoakPart {
    /// Kill tieline under load and count what is lost.
    Kills,
    /// Open, close, delete, fork and reset one conversation from many tasks.
    Hub,
    /// Cancel tasks at any moment of their lives, on a busy machine.
    Cancels,
    /// Run the fast tests again and again on a busy machine.
    Rounds,
}

/// Every part runs, whatever became of the others: one run shows everything that fails.
pub(crate) fn test(args: &TestArgs) -> anyhow::Result<()> {
    let whole = args.filter.is_none() && args.folder.is_none() && !args.real;
    let package = args.package();
    let mut report = Report::default();
    if whole {
        report.run("format", cargo(["fmt", "--all", "--check"]));
        let mut clippy = cargo(["clippy", "--workspace", "--all-targets", "--all-features"]);
        clippy.args(["--", "-D", "warnings"]);
        report.run("lints", clippy);
    }
    if !args.real {
        report.run("programs", programs(package.as_deref()));
        let scope = package.as_deref().map_or(vec!["--workspace"], |it| vec!["-p", it]);
        report.run("tests", tests(scope, args.filter.as_deref()));
    }
    if whole {
        let doc = cargo(["test", "--workspace", "--doc", "--quiet"]);
        report.run("examples in the documentation", doc);
    }
    if args.real || (whole && !args.fast) {
        real(&mut report, package.as_deref(), args.filter.as_deref())?;
    }
    report.finish()
}

/// Builds the test programs of one crate that are used by the tests of another.
fn programs(package: Option<&str>) -> Command {
    match package {
        None => cargo(["build", "--workspace", "--bins", "--examples"]),
        Some(package) => {
            cargo(["build", "-p", "tieline-testkit", "--bins", "-p", package, "--examples"])
        }
    }
}

/// The suite with the real agents, where nothing but loopback can be reached.
fn real(report: &mut Report, package: Option<&str>, filter: Option<&str>) -> anyhow::Result<()> {
    const PACKAGES: [&str; 4] = ["tieline-hub", "tieline", "tieline-testkit", "tieline-patch"];
    if let Some(package) = package.filter(|it| !PACKAGES.contains(it)) {
        bail!("{package} has no tests with the real agents; these have: {}", PACKAGES.join(", "));
    }
    let packages = PACKAGES.into_iter().filter(|it| package.is_none_or(|wanted| *it == wanted));
    let scope: Vec<&str> = packages
        .flat_map(|it| ["-p", it])
        .chain(["--features", "real-agents", "--test", "it"])
        .collect();
    let filter = filter.unwrap_or("real::");
    report.run("programs for the real agents", programs(package));
    let mut built = tests(scope.clone(), None);
    built.arg("--no-run");
    report.run("the suite with the real agents, built", built);
    let began = Instant::now();
    let installed = agents::install_missing(&needed_projects(&scope, filter)?);
    report.add("the real agents, installed", began, installed);

    let mut isolated = command("unshare");
    // Only root may make a network namespace without a user namespace.
    isolated.arg(if is_root() { "-n" } else { "-rn" });
    // By our own process: a build above may have replaced the file this program was started from.
    isolated.arg(format!("/proc/{}/exe", std::process::id())).arg("loopback");
    let suite = tests(scope, Some(filter));
    isolated.arg(suite.get_program()).args(suite.get_args()).env("CARGO_NET_OFFLINE", "true");
    isolated.current_dir(root());
    report.run("the suite with the real agents", isolated);
    Ok(())
}

/// What the tests that a filter leaves want to have installed.
fn needed_projects(scope: &[&str], filter: &str) -> anyhow::Result<Vec<&'static Project>> {
    if !has_nextest() {
        return Ok(PROJECTS.to_vec());
    }
    let mut list = cargo(["nextest", "list", "--message-format", "oneline"]);
    let output = list.args(scope).arg(filter).output().context("cannot list the tests")?;
    let names = String::from_utf8_lossy(&output.stdout);
    // A line is the test binary and the name of the test.
    Ok(needed(names.lines().filter_map(|line| line.rsplit(' ').next())))
}

pub(crate) fn soak(args: &SoakArgs) -> anyhow::Result<()> {
    let wants = |part| args.only.is_empty() || args.only.contains(&part);
    let mut report = Report::default();
    report.run("programs", programs(None));
    if wants(SoakPart::Kills) {
        report.run("kills", soaked(&["-p", "tieline"], "kill_9", "TIELINE_KILLS", args.kills));
    }
    if wants(SoakPart::Hub) {
        let name = "many_tasks_that_open_close_delete_fork_and_reset_one_key";
        report.run("hub", soaked(&["-p", "tieline-hub"], name, "TIELINE_HUB_STEPS", args.steps));
    }
    let _busy = busy::Loops::start(args.busy);
    if wants(SoakPart::Cancels) {
        let name = "a_cancel_at_any_moment";
        let cancels = soaked(&["-p", "tieline"], name, "TIELINE_CANCEL_MOMENTS", args.cancels);
        report.run("cancels", cancels);
    }
    if wants(SoakPart::Rounds) {
        for round in 1..=args.rounds {
            report.run(&format!("fast tests, round {round}"), tests(["--workspace"], None));
        }
    }
    report.finish()
}

/// A test that tries something as often as a variable says.
fn soaked(scope: &[&str], name: &str, variable: &str, n: u32) -> Command {
    let mut soaked = tests(scope.iter().copied().chain(["--test", "it"]), Some(name));
    soaked.env("NEXTEST_PROFILE", "soak").env(variable, n.to_string());
    soaked
}

pub(crate) fn bench(args: &bench::Args) -> anyhow::Result<()> {
    const PACKAGES: [&str; 4] = ["tieline", "tieline-testkit", "tieline-store", "xtask"];
    let packages = PACKAGES.iter().flat_map(|package| ["-p", package]);
    let build = ["build", "--release", "--bins"].into_iter().chain(packages);
    step("release programs", cargo(build))?;
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
    let mut tests =
        if has_nextest() { cargo(["nextest", "run"]) } else { cargo(["test", "--no-fail-fast"]) };
    tests.args(scope).args(filter);
    tests
}

fn has_nextest() -> bool {
    cargo(["nextest", "--version"]).output().is_ok_and(|it| it.status.success())
}

pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut cargo = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(root());
    cargo
}

/// Runs one command and ends with its failure.
pub(crate) fn step(name: &str, command: impl BorrowMut<Command>) -> anyhow::Result<()> {
    let mut report = Report::default();
    report.run(name, command);
    report.parts.pop().map_or(Ok(()), |part| part.result)
}

/// What became of the parts of a run, and how long each took.
#[derive(Default)]
struct Report {
    parts: Vec<Part>,
}

struct Part {
    name: String,
    took: Duration,
    result: anyhow::Result<()>,
}

impl Report {
    /// Runs a command to its end, and ends whatever it leaves behind.
    fn run(&mut self, name: &str, mut command: impl BorrowMut<Command>) {
        eprintln!("== {name}");
        let began = Instant::now();
        let result = leftovers::adopt()
            .and_then(|()| command.borrow_mut().status())
            .with_context(|| format!("cannot start {name}"))
            .and_then(|status| {
                anyhow::ensure!(status.success(), "{name} failed ({status})");
                Ok(())
            });
        for process in leftovers::end_all() {
            eprintln!("   ended a process that was left behind: {process}");
        }
        self.add(name, began, result);
    }

    fn add(&mut self, name: &str, began: Instant, result: anyhow::Result<()>) {
        if let Err(err) = &result {
            eprintln!("   {err:#}");
        }
        self.parts.push(Part { name: name.to_owned(), took: began.elapsed(), result });
    }

    /// Says what each part took, and fails if one did.
    fn finish(self) -> anyhow::Result<()> {
        let total: Duration = self.parts.iter().map(|part| part.took).sum();
        eprintln!("== {:.0} s in all", total.as_secs_f64());
        for Part { name, took, result } in &self.parts {
            let verdict = if result.is_ok() { "passed" } else { "FAILED" };
            eprintln!("   {verdict} {:>6.0} s  {name}", took.as_secs_f64());
        }
        let failed: Vec<_> = self.parts.iter().filter(|part| part.result.is_err()).collect();
        if !failed.is_empty() {
            let names: Vec<_> = failed.iter().map(|part| part.name.as_str()).collect();
            bail!("failed: {}", names.join(", "));
        }
        Ok(())
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of our own entry in /proc is our effective user.
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

//! The chores of this repository: `cargo xtask <command>`.

mod agents;
mod bench;
mod busy;
mod fuzz;
mod leftovers;
mod suite;
#[cfg(test)]
mod tidy;

use std::ffi::{OsStr, OsString};
use std::process::Command;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The chores of this repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install the pinned real agents and print where each one is.
    Agents(agents::Args),
    /// Check and test everything: format, lints, fast tests, faults, real agents.
    Test(suite::TestArgs),
    /// What takes hours: kills under load, the hub at random, cancels, the tests on a busy machine.
    Soak(suite::SoakArgs),
    /// Feed hostile input to the parsers.
    Fuzz(fuzz::Args),
    /// Measure speed and memory, each number beside its floor or goal.
    Bench(bench::Args),
    /// Write the JSON schema of the events anew.
    Schema,
    /// Measure with the programs beside this one.
    #[command(hide = true)]
    BenchRun(bench::Args),
    /// Be one of the processes that `bench-run` measures.
    #[command(hide = true, subcommand)]
    BenchProbe(bench::Probe),
    /// Run a command in this network namespace after bringing its loopback interface up.
    #[command(hide = true)]
    Loopback {
        /// The command.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

fn main() -> anyhow::Result<()> {
    // The memory probe has agents of its own; their hosts are this program.
    tieline_proc::init();
    match Cli::parse().task {
        Task::Agents(args) => agents::run(&args),
        Task::Test(args) => suite::test(&args),
        Task::Soak(args) => suite::soak(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Bench(args) => suite::bench(&args),
        Task::BenchRun(args) => bench::run(&args),
        Task::BenchProbe(probe) => bench::probe(&probe),
        Task::Schema => suite::schema(),
        Task::Loopback { command } => suite::in_loopback(&command),
    }
}

/// Starts describing a child process.
// `tieline-proc` owns the processes of the product; a chore runs npm or cargo in
// the foreground and needs none of its supervision.
#[allow(clippy::disallowed_methods)]
fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

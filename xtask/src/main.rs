//! The chores of this repository: `cargo xtask <command>`.

mod agents;
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
    /// Kill tieline under load a thousand times and count what is lost.
    Soak(suite::SoakArgs),
    /// Measure speed and memory, each number beside its floor or goal.
    Bench(suite::BenchArgs),
    /// Write the JSON schema of the events anew.
    Schema,
    /// Run a command in this network namespace after bringing its loopback interface up.
    #[command(hide = true)]
    Loopback {
        /// The command.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Agents(args) => agents::run(&args),
        Task::Test(args) => suite::test(&args),
        Task::Soak(args) => suite::soak(&args),
        Task::Bench(args) => suite::bench(&args),
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

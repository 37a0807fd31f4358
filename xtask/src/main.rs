//! The chores of this repository: `cargo xtask <command>`.

mod agents;

use std::ffi::OsStr;
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
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Agents(args) => agents::run(&args),
    }
}

/// Starts describing a child process.
// `tieline-proc` owns the processes of the product; a chore runs npm or cargo in
// the foreground and needs none of its supervision.
#[allow(clippy::disallowed_methods)]
fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

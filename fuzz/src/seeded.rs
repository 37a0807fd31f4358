//! A seed chooses the inputs, or a file is the input.

#![allow(clippy::print_stderr)] // progress of a chore, for the person who started it

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use tieline_fuzz::{Campaign, TARGETS, Target, check_input};

/// Try inputs that a seed makes of a corpus, or one file.
#[derive(Parser)]
struct Args {
    /// Which targets; all of them without this.
    targets: Vec<String>,
    /// Print the names of the targets.
    #[arg(long)]
    list: bool,
    /// How many changed inputs of each.
    #[arg(long, default_value_t = 100_000)]
    runs: u64,
    /// What chance is made of.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first iteration.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Try this file and nothing else.
    #[arg(long)]
    input: Option<PathBuf>,
}

pub(crate) fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let known = || TARGETS.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    let mut targets = Vec::new();
    for name in &args.targets {
        let unknown = || format!("there is no target {name}; there are: {}", known());
        targets.push(Target::find(name).ok_or_else(unknown)?);
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    for target in targets {
        if let Some(path) = &args.input {
            let input = std::fs::read(path).map_err(|err| format!("{}: {err}", path.display()))?;
            check_input(target, &input).map_err(|failed| failed.to_string())?;
            eprintln!("{}: {} passes", target.name, path.display());
            continue;
        }
        let campaign = Campaign { target, seed: args.seed, from: args.from, runs: args.runs };
        let began = Instant::now();
        let report = campaign.run().map_err(|failed| failed.to_string())?;
        eprintln!(
            "{}: {} inputs, {} bytes on average, {:.1} s; the slowest is iteration {} with {:.1} ms",
            target.name,
            report.n_inputs,
            report.n_bytes / report.n_inputs.max(1),
            began.elapsed().as_secs_f64(),
            report.slowest.0,
            report.slowest.1.as_secs_f64() * 1e3
        );
    }
    Ok(())
}

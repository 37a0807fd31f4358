//! Hostile input for the parsers, chosen by a seed or guided by the code it reaches.

#![allow(clippy::print_stderr)] // progress of a chore, for the person who started it

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::command;
use crate::suite::{cargo, root, step};

/// What makes libFuzzer see which code an input reaches, with what a stable compiler has for it.
const COVERAGE: &str = "--cfg fuzzing \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which target; all of them, one after the other, without this.
    target: Option<String>,
    /// Look for new code so long: 60s, 5m, 1h. This is what happens without --runs and --input.
    #[arg(long, default_value = "60s", value_parser = seconds)]
    time: u64,
    /// Try so many inputs made by a seed instead, as the tests do.
    #[arg(long, conflicts_with = "time")]
    runs: Option<u64>,
    /// What chance is made of.
    #[arg(long, default_value_t = 1, requires = "runs")]
    seed: u64,
    /// The first iteration of the seed.
    #[arg(long, default_value_t = 0, requires = "runs")]
    from: u64,
    /// Try this file and nothing else.
    #[arg(long, conflicts_with_all = ["time", "runs"], requires = "target")]
    input: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.runs.is_none() && args.input.is_none() {
        return guided(args);
    }
    let mut seeded = cargo(["run", "--quiet", "--package", "tieline-fuzz", "--"]);
    seeded.args(&args.target);
    if let Some(input) = &args.input {
        seeded.arg("--input").arg(std::path::absolute(input)?);
    }
    if let Some(runs) = args.runs {
        seeded.args(["--runs", &runs.to_string(), "--seed", &args.seed.to_string()]);
        seeded.args(["--from", &args.from.to_string()]);
    }
    step("inputs made by a seed", seeded)
}

fn guided(args: &Args) -> anyhow::Result<()> {
    let corpus = root().join("fuzz/corpus");
    let mut targets: Vec<String> = std::fs::read_dir(&corpus)
        .context("cannot read fuzz/corpus")?
        .map(|it| Ok(it?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    targets.sort();
    if let Some(target) = &args.target {
        if !targets.contains(target) {
            bail!("there is no target {target}; there are: {}", targets.join(", "));
        }
        targets.retain(|it| it == target);
    }
    let program = build()?;
    let failures = root().join("fuzz/failures");
    std::fs::create_dir_all(&failures)?;
    for target in targets {
        // What reaches new code is kept for the next time; it is no part of the repository.
        let found = root().join("target/fuzz/found").join(&target);
        std::fs::create_dir_all(&found)?;
        let mut fuzzer = command(&program);
        fuzzer.env("TIELINE_FUZZ_TARGET", &target).current_dir(root());
        fuzzer.arg(format!("-max_total_time={}", args.time));
        fuzzer.args(["-rss_limit_mb=1024", "-timeout=10", "-max_len=16384"]);
        fuzzer.args(["-print_final_stats=1", "-verbosity=1"]);
        fuzzer.arg(format!("-artifact_prefix={}/{target}-", failures.display()));
        fuzzer.args([&found, &corpus.join(&target)]);
        step(&format!("{target} for {} s", args.time), fuzzer).with_context(|| {
            format!(
                "{target}: the input is in {}; try it again with: cargo xtask fuzz {target} \
                 --input FILE",
                failures.display()
            )
        })?;
    }
    Ok(())
}

/// Builds the fuzzer in a directory of its own: nothing else is built with these flags.
fn build() -> anyhow::Result<PathBuf> {
    let host = host()?;
    let dir = root().join("target/fuzz");
    let mut build = cargo(["build", "--release", "--package", "tieline-fuzz", "--target", &host]);
    build.arg("--target-dir").arg(&dir);
    // With a target named, these are not for build scripts, which could not be linked.
    build.env("RUSTFLAGS", COVERAGE);
    build.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_STRIP", "none");
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    build.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    build.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    step("the guided fuzzer (the first time takes minutes)", build)?;
    Ok(dir.join(host).join("release/tieline-fuzz"))
}

fn host() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = output(command(&rustc).arg("-vV"), Path::new(&rustc))?;
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it runs on")?.to_owned())
}

fn output(command: &mut Command, program: &Path) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", program.display()))?;
    Ok(String::from_utf8(output.stdout)?)
}

fn seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.find(|it: char| !it.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("must be a number with s, m or h, like 60s".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "must begin with a number".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "is too long".to_owned())
}

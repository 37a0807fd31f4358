//! Output that cannot be written, and times that no clock has.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::tieline::{Outcome, Tieline};

/// A command whose output goes to a disk that is full.
fn to_full_disk(tieline: &Tieline, args: &[&str]) -> Outcome {
    let full = File::options().write(true).open("/dev/full").unwrap();
    tieline.command(args).stdin(Stdio::null()).stdout(full).output().unwrap().into()
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let tieline = Tieline::new();
    for format in ["text", "jsonl", "final"] {
        let run = ["run", "--agent", "demo", "--format", format, "hi"];
        let outcome = to_full_disk(&tieline, &run).ends_with(9);
        assert!(outcome.err.contains("cannot write the output"), "{format}: {}", outcome.err);
    }
}

#[test]
fn every_command_tells_that_its_output_is_lost() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    let commands: [&[&str]; 9] = [
        &["list"],
        &["list", "--json"],
        &["show", "k"],
        &["show", "k", "--json"],
        &["export", "k", "--format", "raw"],
        &["doctor"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ];
    for args in commands {
        let outcome = to_full_disk(&tieline, args).ends_with(9);
        assert!(outcome.err.contains("cannot write the output"), "{args:?}: {}", outcome.err);
    }
}

#[test]
fn a_task_whose_output_cannot_be_written_is_no_success() {
    let tieline = Tieline::new();
    let run = ["task", "run", "t1", "--agent", "demo", "--format", "markers", "hi"];
    let outcome = to_full_disk(&tieline, &run).ends_with(9);
    assert!(outcome.err.contains("cannot write the output"), "{}", outcome.err);
}

#[test]
fn a_reader_that_goes_ends_the_turn_quietly_and_without_success() {
    let tieline = Tieline::new();
    let mut child = tieline.spawn(&["run", "--agent", "demo", "--format", "jsonl", "hi"]);
    let mut first = String::new();
    // Dropped after its first line.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("conversation.opened"), "{first}");
    let outcome = Outcome::from(child.wait_with_output().unwrap()).ends_with(9);
    assert!(!outcome.err.contains("cannot write"), "{}", outcome.err);
}

#[test]
fn a_time_that_no_clock_has_is_wrong_usage() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "t1", "hi"]).succeeds();
    let most = u64::MAX.to_string();
    for args in [
        ["run", "--agent", "demo", "hi", "--timeout", &most],
        ["task", "run", "t1", "hi", "--wait", &most],
        ["task", "wait", "t1", "--timeout", &most, "--log=error"],
        ["task", "wait", "t1", "--timeout", "1e300", "--log=error"],
        ["acp", "--agent", "demo", "--timeout", &most, "--log=error"],
        ["proto", "--agent", "demo", "--timeout", &most, "--log=error"],
    ] {
        let outcome = tieline.run(&args).ends_with(2);
        assert!(outcome.err.contains("invalid value"), "{args:?}: {}", outcome.err);
    }
    let tieline = tieline.with_config(&format!("[defaults]\ntimeout = {most}"));
    let outcome = tieline.run(&["run", "--agent", "demo", "hi"]).ends_with(2);
    assert!(outcome.err.contains("defaults.timeout: must be at most"), "{}", outcome.err);
}

#[test]
fn a_task_may_wait_for_a_hundred_years() {
    let tieline = Tieline::new();
    let wait = (100_u64 * 366 * 24 * 3600).to_string();
    let run = ["task", "run", "t1", "--agent", "demo", "--wait", &wait, "hi"];
    tieline.run(&run).succeeds();
    tieline.run(&["task", "wait", "t1", "--timeout", &wait]).succeeds();
    tieline.run(&["run", "--agent", "demo", "--timeout", &wait, "hi"]).succeeds();
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_not_the_end_by_a_signal() {
    let tieline = Tieline::new();
    let binary = env!("CARGO_BIN_EXE_tieline");
    let script = tieline.program("limited", &format!("ulimit -f 16; exec {binary} \"$@\""));
    #[allow(clippy::disallowed_methods, reason = "a test starts what it tests")]
    let mut limited = std::process::Command::new(script);
    let outcome: Outcome = limited
        .args(["run", "--agent", "demo", "hi"])
        .current_dir(tieline.work())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", tieline.path(""))
        .env("TIELINE_HOME", tieline.store())
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into();
    outcome.ends_with(6);
}

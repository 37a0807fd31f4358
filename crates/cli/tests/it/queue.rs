use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::tieline::{Outcome, Tieline};

/// A turn that takes its time, and has begun.
fn slow_turn(tieline: &Tieline) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command =
        tieline.command(&["run", "--agent", "demo", "-c", "k", "--format", "jsonl", "one"]);
    command.env_remove("TIELINE_DEMO_FAST");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"turn.started\"") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the turn begins");
    }
    (child, out)
}

/// Waits until a run says that it waits, and gives what it said.
fn waits(child: &mut Child) -> (String, BufReader<ChildStderr>) {
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("waiting"), "{line}");
    (line, err)
}

#[test]
fn a_queued_run_begins_when_the_other_one_is_over() {
    let tieline = Tieline::new();
    let (mut first, mut rest) = slow_turn(&tieline);
    let mut second = tieline.spawn(&["run", "-c", "k", "--queue", "--format", "jsonl", "two"]);
    let (told, mut err) = waits(&mut second);
    assert!(told.contains(&format!("process {}", first.id())), "{told}");
    rest.read_to_string(&mut String::new()).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    let second = Outcome::from(second.wait_with_output().unwrap());
    let mut more = String::new();
    err.read_to_string(&mut more).unwrap();
    let second = second.succeeds();
    assert!(!more.contains("waiting"), "told once without a terminal: {more}");

    let kinds = tieline.events("k");
    let turns: Vec<(&str, &str)> = kinds
        .iter()
        .map(|it| (it["kind"].as_str().unwrap(), it["turn"].as_str().unwrap_or_default()))
        .filter(|(kind, _)| ["turn.started", "turn.completed"].contains(kind))
        .collect();
    let expected = [
        ("turn.started", "t1"),
        ("turn.completed", "t1"),
        ("turn.started", "t2"),
        ("turn.completed", "t2"),
    ];
    assert_eq!(turns, expected);
    // What the other one did while we waited is its own output, not ours.
    let lines = second.lines();
    assert_eq!(lines[0]["kind"], "conversation.opened");
    assert!(lines.iter().all(|it| it["turn"] != "t1"), "{lines:?}");
}

#[test]
fn an_interrupt_ends_the_wait_and_says_nothing_to_the_agent() {
    let tieline = Tieline::new();
    let (mut first, mut rest) = slow_turn(&tieline);
    for signal in [Signal::INT, Signal::TERM] {
        let mut second = tieline.spawn(&["run", "-c", "k", "--queue", "two"]);
        let (_, mut err) = waits(&mut second);
        kill_process(Pid::from_child(&second), signal).unwrap();
        assert_eq!(second.wait().unwrap().code(), Some(4));
        let mut more = String::new();
        err.read_to_string(&mut more).unwrap();
        assert!(more.contains("no longer waiting"), "{more}");
    }
    rest.read_to_string(&mut String::new()).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(tieline.rows()[0]["turns"], 1);
}

#[test]
fn a_queued_run_that_need_not_wait_does_not() {
    let tieline = Tieline::new();
    let outcome = tieline.run(&["run", "--agent", "demo", "-c", "k", "--queue", "one"]).succeeds();
    assert!(!outcome.err.contains("waiting"), "{}", outcome.err);
}

#[test]
fn of_several_that_wait_each_gets_its_turn() {
    let tieline = Tieline::new();
    let (mut first, mut rest) = slow_turn(&tieline);
    let mut waiting: Vec<_> =
        (0..3).map(|_| tieline.spawn(&["run", "-c", "k", "--queue", "next"])).collect();
    let _errs: Vec<_> = waiting.iter_mut().map(waits).collect();
    rest.read_to_string(&mut String::new()).unwrap();
    first.wait().unwrap();
    for child in waiting {
        Outcome::from(child.wait_with_output().unwrap()).succeeds();
    }
    assert_eq!(tieline.rows()[0]["turns"], 4);
}

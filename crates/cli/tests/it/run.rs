use std::io::{BufRead, BufReader, Read};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tieline_hub::Limits;

use crate::tieline::{Outcome, Tieline};

/// An agent that never says anything and does not want to end.
const SILENT: &str = "trap '' TERM INT HUP; cat > /dev/null; while :; do sleep 1000; done";

#[test]
fn auto_says_which_agent_it_took_and_why() {
    let outcome = Tieline::new().run(&["run", "hi"]).succeeds();
    assert!(
        outcome.err.contains("agent demo (built in; Claude Code is not installed"),
        "{}",
        outcome.err
    );
}

#[test]
fn final_prints_the_answer_and_nothing_else() {
    let tieline = Tieline::new();
    let whole = tieline.run(&["run", "--agent", "demo", "--mode", "acceptEdits", "hi"]).succeeds();
    let outcome = tieline
        .run(&["run", "--agent", "demo", "--mode", "acceptEdits", "--format", "final", "hi"])
        .succeeds();
    assert!(
        whole.out.ends_with(&outcome.out) && outcome.out.starts_with("Done"),
        "{}",
        outcome.out
    );
}

#[test]
fn a_conversation_goes_on_in_a_new_process() {
    let tieline = Tieline::new();
    let first = tieline.run(&["run", "--agent", "demo", "-c", "my talk", "one"]).succeeds();
    assert!(first.err.contains("run --conversation 'my talk'"), "{}", first.err);
    let second =
        tieline.feed(&["run", "-c", "my talk", "--format", "jsonl", "-"], b"two").succeeds();
    let lines = second.lines();
    assert!(lines[0]["seq"].as_u64().unwrap() > 1, "only what is new is printed");
    let end = lines.iter().find(|it| it["kind"] == "turn.completed").unwrap();
    assert_eq!(end["turn"], "t2");
    assert!(end["data"]["text"].as_str().unwrap().contains("You said: two"));
}

#[test]
fn a_mode_given_later_changes_the_conversation() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "one"]).succeeds();
    tieline.run(&["run", "-c", "k", "--mode", "plan", "two"]).succeeds();
    let rows = tieline.run(&["list", "--json"]).succeeds().out;
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows[0]["mode"], "plan");
}

#[test]
fn aliases_of_modes_are_modes_for_every_agent() {
    for (flags, mode) in [
        (&["--full-auto"][..], "acceptEdits"),
        (&["--yolo"], "yolo"),
        (&["--dangerously-bypass-approvals-and-sandbox"], "yolo"),
        (&["-s", "workspace-write"], "acceptEdits"),
        (&["-a", "never", "-s", "danger-full-access"], "yolo"),
    ] {
        let tieline = Tieline::new();
        let args = [&["run", "--agent", "demo", "--on-request", "fail"], flags, &["hi"]].concat();
        tieline.run(&args).succeeds();
        assert!(tieline.work().join("hello.md").exists(), "{flags:?}");
        let rows = tieline.rows();
        assert_eq!(rows[0]["mode"], mode, "{flags:?}");
        assert!(rows[0]["policy"].is_null(), "{rows}");
    }
}

#[test]
fn a_fresh_run_forgets_the_session_and_keeps_the_history() {
    let tieline = Tieline::new();
    let session = || tieline.rows()[0]["native_session"].as_str().unwrap().to_owned();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "one"]).succeeds();
    let first = session();
    tieline.run(&["run", "-c", "k", "two"]).succeeds();
    assert_eq!(session(), first, "goes on without the flag");
    tieline.run(&["run", "-c", "k", "--fresh", "three"]).succeeds();
    assert_ne!(session(), first);
    let events = tieline.events("k");
    assert_eq!(events.iter().filter(|it| it["kind"] == "turn.completed").count(), 3);
    // The second turn is the second section of the script; the third begins again.
    let ends = events.iter().filter(|it| it["kind"] == "turn.completed");
    let repeats: Vec<bool> =
        ends.map(|it| it["data"]["text"].to_string().contains("You said: ")).collect();
    assert_eq!(repeats, [false, true, false]);
    // A conversation that has none to forget just begins.
    tieline.run(&["run", "--agent", "demo", "-c", "new", "--fresh", "one"]).succeeds();
}

#[test]
fn without_a_terminal_a_request_is_denied_and_the_event_says_so() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    let events = tieline.events("k");
    let resolved = events.iter().find(|it| it["kind"] == "request.resolved").unwrap();
    assert_eq!(resolved["data"]["answer"]["answer"], "deny");
    assert_eq!(resolved["data"]["by"], "engine");
    let policy = resolved["data"]["policy"].as_str().unwrap();
    assert!(policy.starts_with("--on-request deny"), "{policy}");
    assert!(!tieline.work().join("hello.md").exists());
}

#[test]
fn allow_allows_and_fail_is_code_5() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "--on-request", "allow", "hi"]).succeeds();
    assert!(tieline.work().join("hello.md").exists());
    std::fs::remove_file(tieline.work().join("hello.md")).unwrap();
    for format in ["text", "final", "jsonl"] {
        let outcome = tieline
            .run(&["run", "--agent", "demo", "--on-request", "fail", "--format", format, "hi"])
            .ends_with(5);
        assert!(
            outcome.err.contains("? Change") && outcome.err.contains("hello.md"),
            "{}",
            outcome.err
        );
        assert!(outcome.err.contains("an answer was needed"), "{}", outcome.err);
        assert!(!tieline.work().join("hello.md").exists());
    }
}

#[test]
fn prompts_that_look_like_flags_stay_prompts() {
    let tieline = Tieline::new();
    let hostile = ["--help", "-", "-x", "--", "a\nb", "$(id)", "'; rm -rf /", "\u{1b}]0;x\u{7}"];
    for (at, prompt) in hostile.iter().enumerate() {
        let key = format!("k{at}");
        let args = ["run", "--agent", "demo", "-c", &key, "--format", "jsonl"];
        let outcome = match *prompt {
            "-" => tieline.feed(&[&args[..], &["-"]].concat(), b"-").succeeds(),
            _ => tieline.run(&[&args[..], &["--", prompt]].concat()).succeeds(),
        };
        let lines = outcome.lines();
        let said = lines.iter().find(|it| it["data"]["type"] == "user_message").unwrap();
        assert_eq!(said["data"]["content"][0]["text"], *prompt);
        // It runs within this process: there is no command line for it to be in.
        let spawned = lines.iter().find(|it| it["kind"] == "process.spawned").unwrap();
        assert_eq!(spawned["data"]["args"], serde_json::json!([]), "{spawned}");
    }
}

#[test]
fn a_timeout_ends_the_turn_as_failed() {
    let tieline = Tieline::new().with_claude(SILENT);
    let outcome =
        tieline.run(&["run", "--agent", "claude", "-c", "k", "--timeout", "1", "hi"]).ends_with(1);
    assert!(outcome.err.contains("longer than 1 second"), "{}", outcome.err);
    let events = tieline.events("k");
    let ends: Vec<_> = events.iter().filter(|it| it["kind"] == "turn.completed").collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["data"]["error"]["code"], "timeout");
}

#[test]
fn an_agent_that_ends_at_once_is_code_3_with_its_own_words() {
    let tieline = Tieline::new().with_claude("echo 'no way' >&2; exit 7");
    let outcome = tieline.run(&["run", "--agent", "claude", "hi"]).ends_with(3);
    assert!(outcome.err.contains("status 7") && outcome.err.contains("no way"), "{}", outcome.err);
}

/// Starts a turn with the silent agent and waits until the agent runs.
fn silent_turn(tieline: &Tieline) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    let args = ["run", "--agent", "claude", "-c", "k", "--format", "jsonl", "hi"];
    let mut child = tieline.spawn(&args);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"turn.started\"") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the turn begins");
    }
    (child, out)
}

#[track_caller]
fn signal(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_busy_conversation_names_its_holder() {
    let tieline = Tieline::new().with_claude(SILENT);
    let (mut child, _out) = silent_turn(&tieline);
    for args in [&["run", "-c", "k", "hi"][..], &["reset", "k"], &["delete", "k", "--yes"]] {
        let outcome = tieline.run(args).ends_with(6);
        assert!(outcome.err.contains(&format!("process {}", child.id())), "{}", outcome.err);
        assert!(outcome.err.contains("since "), "{}", outcome.err);
        assert!(outcome.err.contains("tieline run --queue"), "{}", outcome.err);
    }
    // Reading is for everybody.
    tieline.run(&["show", "k"]).succeeds();
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_turn_to_end() {
    let tieline = Tieline::new().with_claude(SILENT);
    let (mut child, mut out) = silent_turn(&tieline);
    signal(&child, Signal::INT);
    // The first one was heard when it is told on stderr.
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("interrupting") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0);
    }
    let since = Instant::now();
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(4));
    // The first one alone would take at least this long: the agent hears nothing.
    assert!(since.elapsed() < Limits::default().interrupt_grace, "{:?}", since.elapsed());
    out.read_to_string(&mut String::new()).unwrap();
    let ends = tieline.events("k").iter().filter(|it| it["kind"] == "turn.completed").count();
    assert_eq!(ends, 1);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    for args in [
        &["run", "--agent", "demo", "hi"][..],
        &["run", "--agent", "demo", "--format", "jsonl", "hi"],
        &["run", "--agent", "demo", "--format", "final", "hi"],
        &["demo"],
        &["list"],
        &["list", "--json"],
        &["show", "k"],
        &["export", "k"],
        &["export", "k", "--format", "raw"],
        &["export", "k", "--format", "markdown"],
        &["doctor"],
        &["man"],
        &["--help"],
    ] {
        let mut child = tieline.spawn(args);
        drop(child.stdout.take());
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, 9, "{args:?}: {}", outcome.err);
        assert!(!outcome.err.contains("panicked"), "{}", outcome.err);
        assert!(!outcome.err.contains("cannot write"), "{}", outcome.err);
    }
}

#[test]
fn an_agents_escape_sequences_reach_no_terminal() {
    let tieline = Tieline::new();
    let evil = "x\u{1b}[2J\u{9b}31m\u{1b}]52;c;AA\u{7}\u{202e}";
    let first = tieline.run(&["run", "--agent", "demo", "-c", "k", "one"]).succeeds();
    // The demo agent repeats what it is told.
    let second = tieline.run(&["run", "-c", "k", evil]).succeeds();
    assert!(second.out.contains("You said: x"), "{}", second.out);
    for text in [first.out, second.out, second.err, tieline.run(&["show", "k"]).out] {
        let bad = |c: &char| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}';
        assert_eq!(text.chars().find(bad), None, "{text:?}");
    }
    let told = tieline.events("k");
    assert!(told.iter().any(|it| it["data"]["text"].as_str().is_some_and(|it| it.contains(evil))));
}

/// A Claude Code that plays a recording in which a background task brings a turn of its own.
fn with_background_task(seconds: &str) -> Tieline {
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../agent/fixtures/claude/2.1.325/background.out.jsonl"
    );
    let play = format!("head -n 7 '{recording}'; sleep {seconds}; tail -n +8 '{recording}'");
    Tieline::new().with_claude(&format!("read -r line; {play}; cat > /dev/null"))
}

#[test]
fn the_turn_of_a_background_task_is_awaited() {
    let tieline = with_background_task("0.3");
    let args = ["run", "--agent", "claude", "-c", "k", "--format", "jsonl", "hi"];
    let lines = tieline.run(&args).succeeds().lines();
    let ends: Vec<_> = lines.iter().filter(|it| it["kind"] == "turn.completed").collect();
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[0]["data"]["open_tasks"], 1);
    let origins = lines.iter().filter(|it| it["kind"] == "turn.started");
    let origins: Vec<_> = origins.map(|it| it["data"]["origin"].as_str().unwrap()).collect();
    assert_eq!(origins, ["human", "agent"]);
}

#[test]
fn no_wait_does_not_await_it() {
    let tieline = with_background_task("1000");
    let args = ["run", "--agent", "claude", "-c", "k", "--no-wait", "hi"];
    tieline.run(&args).succeeds();
    let events = tieline.events("k");
    assert_eq!(events.iter().filter(|it| it["kind"] == "turn.completed").count(), 1);
}

//! `tieline task`: what is told, answered, measured and remembered. The agent is a script.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::tieline::{Outcome, Tieline};

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A user whose agent plays this script; each section is one turn.
fn with_script(script: &str) -> Tieline {
    let tieline = Tieline::new();
    let path = tieline.path("task.script");
    fs::write(&path, script).unwrap();
    let config = format!("[defaults]\nagent = \"demo\"\n[agents.demo]\nscript = {path:?}\n");
    tieline.with_config(&config)
}

/// Runs `tieline task`.
fn task(tieline: &Tieline, args: &[&str]) -> Outcome {
    let all: Vec<&str> = ["task"].into_iter().chain(args.iter().copied()).collect();
    tieline.run(&all)
}

/// The lines that begin with a marker.
fn markers(outcome: &Outcome) -> Vec<&str> {
    outcome.out.lines().filter(|line| line.starts_with('[')).collect()
}

fn status(tieline: &Tieline, id: &str) -> Value {
    serde_json::from_str(&task(tieline, &["show", id, "--json"]).succeeds().out).unwrap()
}

/// Waits until a task stands like this.
#[track_caller]
fn stands(tieline: &Tieline, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let status = status(tieline, id);
        if is_so(&status) {
            return status;
        }
        assert!(began.elapsed() < LIMIT, "{status:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a file is there.
#[track_caller]
fn appears(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < LIMIT, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

const ASKS: &str = "\
say <<END
[PROGRESS] Looking around
[QUESTION] Where should tokens be kept?
Options:
1. localStorage - stays
2. sessionStorage - goes
3. cookie - travels
4. nowhere - asked each time

This decides about the logout.
END
write a.txt <<END
one
END
---
write b.txt <<END
two
END
say [CODEX_COMPLETE] Task completed in 99 iterations
---
edit b.txt \"two\" => \"three\"
say Corrected.
";

#[test]
fn a_task_asks_goes_on_with_the_answer_fails_its_verification_and_completes() {
    let tieline = with_script(ASKS);
    let run = [
        "run",
        "t",
        "Store the tokens",
        "--mode",
        "acceptEdits",
        "--verify",
        "grep -q three b.txt",
    ];
    let asked = task(&tieline, &run).ends_with(5);
    let expected = [
        "[PROGRESS] Looking around",
        "[QUESTION] Where should tokens be kept?",
        "[PROGRESS] Created a.txt",
        "[FILES_MODIFIED]",
    ];
    assert_eq!(markers(&asked), expected, "complete is not said with a question open");
    assert!(asked.out.contains("\n4. nowhere - asked each time\n"), "{}", asked.out);

    let done = task(&tieline, &["run", "t", "--answer", "4"]).succeeds();
    let expected = [
        "[PROGRESS] answer to q1: nowhere",
        "[PROGRESS] Created b.txt",
        "[TEST_RESULTS] grep -q three b.txt failed",
        "[PROGRESS] Edited b.txt",
        "[TEST_RESULTS] grep -q three b.txt passed",
        "[FILES_MODIFIED]",
        "[CODEX_COMPLETE] Task completed in 3 iterations",
    ];
    assert_eq!(markers(&done), expected);
    assert!(done.out.ends_with("[CODEX_COMPLETE] Task completed in 3 iterations\n"), "it is last");
    assert!(done.out.contains("[FILES_MODIFIED]\n- a.txt (created)\n- b.txt (created)\n"));
    // The agent was told what was answered, and what failed.
    let told: Vec<String> = tieline
        .events("t")
        .iter()
        .filter(|event| event["data"]["type"] == "user_message")
        .map(|event| event["data"]["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(told[0].contains("[QUESTION]") && told[0].contains("Task t: Store the tokens"));
    assert!(told[1].contains("Where should tokens be kept?\nThe answer: nowhere"), "{}", told[1]);
    assert!(told[2].contains("`grep -q three b.txt` failed with exit code 1"), "{}", told[2]);
    // Whoever reads along later reads the same.
    let tail = task(&tieline, &["tail", "t"]).succeeds();
    assert_eq!(tail.out.matches("[CODEX_COMPLETE]").count(), 1);
    assert_eq!(status(&tieline, "t")["status"], "complete");
    task(&tieline, &["run", "t"]).succeeds();
    task(&tieline, &["wait", "t"]).succeeds();
}

#[test]
fn an_agent_that_waits_is_answered_from_another_process_without_a_second_turn() {
    let tieline =
        with_script("ask Which colour? | red: warm | blue: cold\nsay You said {answer}.\n");
    let begun = task(&tieline, &["run", "t", "Paint it", "--background"]).succeeds();
    assert_eq!(begun.out, "t\n");
    task(&tieline, &["wait", "t"]).ends_with(5);
    let open = stands(&tieline, "t", |it| it["questions"][0]["id"] == "q1");
    assert_eq!(open["questions"][0]["options"][1]["label"], "blue");
    for (path, mode) in crate::tieline::modes(&tieline.store()) {
        assert_eq!(mode & 0o077, 0, "{} is open to others", path.display());
    }
    task(&tieline, &["answer", "t", "q9=1"]).ends_with(2);
    task(&tieline, &["answer", "t", "2"]).succeeds();
    let done = stands(&tieline, "t", |it| it["alive"] == false);
    assert_eq!((&done["status"], &done["iterations"]), (&"complete".into(), &1.into()));
    let said = tieline.run(&["export", "t"]).succeeds();
    assert!(said.out.contains("You said blue."), "{}", said.out);
    task(&tieline, &["answer", "t", "1"]).ends_with(2);
}

#[test]
fn a_task_at_rest_goes_on_when_it_is_answered() {
    let tieline = with_script(ASKS);
    task(&tieline, &["run", "t", "Store the tokens", "--mode", "acceptEdits"]).ends_with(5);
    task(&tieline, &["answer", "t", "cookie"]).succeeds();
    task(&tieline, &["wait", "t"]).succeeds();
    let rows: Value =
        serde_json::from_str(&task(&tieline, &["list", "--json"]).succeeds().out).unwrap();
    assert_eq!((&rows[0]["id"], &rows[0]["status"]), (&"t".into(), &"complete".into()));
}

#[test]
fn what_is_fatal_is_told_on_stdout_with_a_code_of_its_own() {
    let blocked = with_script("say <<END\n[BLOCKED] No API key\nPut it into .env\nEND\n");
    let outcome = task(&blocked, &["run", "t", "x"]).ends_with(7);
    assert_eq!(outcome.out, "[BLOCKED] No API key\nPut it into .env\n\n");
    assert_eq!(status(&blocked, "t")["blocked"], "No API key");

    let failing = with_script("fail 500 the provider is down\n");
    let outcome = task(&failing, &["run", "t", "x"]).ends_with(1);
    assert!(outcome.out.starts_with("[BLOCKED] Task failed: "), "{outcome:?}");
    let reason = status(&failing, "t")["reason"].as_str().unwrap().to_owned();
    assert!(outcome.out.contains(&reason), "{reason}");
    assert!(task(&failing, &["show", "t"]).succeeds().out.contains("stopped: "));
    assert!(!outcome.out.contains("CODEX_COMPLETE"));

    let never = with_script("say Done, I think.\n");
    let run = ["run", "t", "x", "--verify", "false", "--verify-tries", "1"];
    let outcome = task(&never, &run).ends_with(1);
    let shown = status(&never, "t");
    assert_eq!(shown["reason"], "the work did not pass 2 times");
    assert_eq!(shown["message"], "Done, I think.");
    let expected = [
        "[TEST_RESULTS] false failed",
        "[TEST_RESULTS] false failed",
        "[BLOCKED] Task failed: the work did not pass 2 times",
    ];
    assert_eq!(markers(&outcome), expected);

    let busy = with_script("say one\n---\nsay two\n");
    let run = ["run", "t", "x", "--verify", "false", "--budget", "1turns"];
    let outcome = task(&busy, &run).ends_with(8);
    assert!(outcome.out.contains("[BLOCKED] Task is out of budget: 1 turns are used up"));
}

#[test]
fn wrong_usage_is_told_before_anything_begins() {
    let tieline = with_script("say hi\n");
    for id in ["-x", "a b", "a/b", ""] {
        task(&tieline, &["run", "--", id, "x"]).ends_with(2);
    }
    task(&tieline, &["run", "t"]).ends_with(2);
    task(&tieline, &["run", "t", "x", "--plan", "nowhere.md"]).ends_with(2);
    task(&tieline, &["run", "t", "x", "--budget", "lots"]).ends_with(2);
    task(&tieline, &["run", "t", "x", "--agent", "nobody"]).ends_with(2);
    task(&tieline, &["show", "t"]).ends_with(2);
    assert_eq!(tieline.rows(), serde_json::json!([]));
}

#[test]
fn two_processes_do_not_work_on_the_same_task() {
    let tieline = with_script("ask Which? | a: x | b: y\nsay ok\n");
    task(&tieline, &["run", "t", "x", "--background"]).succeeds();
    let second = task(&tieline, &["run", "t", "more"]).ends_with(6);
    assert!(second.err.contains("process"), "{}", second.err);
    task(&tieline, &["remove", "t"]).ends_with(2);
    task(&tieline, &["cancel", "t"]).succeeds();
    assert_eq!(status(&tieline, "t")["status"], "cancelled");
    task(&tieline, &["remove", "t"]).succeeds();
    assert_eq!(tieline.rows(), serde_json::json!([]));
}

#[test]
fn leave_that_was_given_too_late_holds_when_the_agent_asks_again() {
    let tieline = with_script("run rm -f gone.txt\nsay one\n---\nrun rm -f gone.txt\nsay two\n");
    let asked = task(&tieline, &["run", "t", "x", "--mode", "default"]).ends_with(5);
    assert!(asked.out.contains("$ rm -f gone.txt"), "{}", asked.out);
    let done = task(&tieline, &["run", "t", "--answer", "1"]).succeeds();
    assert_eq!(done.out.matches("[QUESTION]").count(), 1, "asked again: {}", done.out);
    assert!(done.out.contains("[PROGRESS] answer to q2: "), "{}", done.out);
    let unasked = task(&tieline, &["run", "t", "more", "--answer", "q9=x"]);
    assert!(unasked.err.contains("q9"), "{}", unasked.err);
}

/// What the agent was told, turn by turn.
fn told(tieline: &Tieline, id: &str) -> Vec<String> {
    let events = tieline.events(id);
    let said = events.iter().filter(|event| event["data"]["type"] == "user_message");
    said.map(|it| it["data"]["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_answer_too_many_never_answers_what_is_asked_later() {
    let tieline = with_script("ask Which? | a: x | b: y\nrun touch danger.txt\nsay done\n");
    task(&tieline, &["run", "t", "x", "--mode", "default", "--background"]).succeeds();
    stands(&tieline, "t", |it| it["questions"][0]["id"] == "q1");
    task(&tieline, &["answer", "t", "1", "1"]).ends_with(2);
    let both = [1, 2].map(|_| tieline.spawn(&["task", "answer", "t", "1"]));
    for child in both {
        child.wait_with_output().unwrap();
    }
    let open = stands(&tieline, "t", |it| it["questions"][0]["id"] == "q2");
    assert_eq!(open["questions"].as_array().unwrap().len(), 1);
    // Behind both answers: when it is done, so are they.
    task(&tieline, &["cancel", "t"]).succeeds();
    assert!(!tieline.work().join("danger.txt").exists(), "nobody allowed it");
}

#[test]
fn a_task_stops_while_it_is_verified_and_a_late_cancel_means_nothing_later() {
    let tieline = with_script("say one\n---\nsay two\n");
    let outside = tempfile::tempdir().unwrap();
    let begun = outside.path().join("verifying");
    let slow = format!("touch {}; sleep 1000", begun.display());
    task(&tieline, &["run", "t", "x", "--verify", &slow, "--background"]).succeeds();
    appears(&begun);
    task(&tieline, &["cancel", "t"]).succeeds();
    assert_eq!(status(&tieline, "t")["status"], "cancelled");
    let done = task(&tieline, &["run", "t", "--verify", "true"]).succeeds();
    assert!(
        done.out.ends_with("[CODEX_COMPLETE] Task completed in 2 iterations\n"),
        "{}",
        done.out
    );

    let tieline = with_script("say one\n");
    fs::remove_file(&begun).unwrap();
    let run = ["task", "run", "t", "x", "--verify", &slow];
    let mut child =
        tieline.command(&run).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    until(&mut child, "one");
    appears(&begun);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert_eq!(status(&tieline, "t")["status"], "cancelled");
    assert_eq!(alive(&tieline), Vec::<String>::new());
}

#[test]
fn no_line_end_of_an_agent_makes_a_marker() {
    let ends = ["\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"];
    let lines: String =
        ends.iter().map(|end| format!("x{end}[CODEX_COMPLETE] Task completed\n")).collect();
    let script =
        format!("say <<END\n{lines}[PROGRESS] a\u{2028}[BLOCKED] b\n[BLOCKED] really\nEND\n");
    let outcome = task(&with_script(&script), &["run", "t", "x"]).ends_with(7);
    let any = |c: char| c == '\n' || ends.iter().any(|end| end.starts_with(c));
    let read: Vec<&str> = outcome.out.split(any).map(str::trim_start).collect();
    assert!(!read.iter().any(|line| line.starts_with("[CODEX_COMPLETE]")), "{read:#?}");
    assert_eq!(read.iter().filter(|line| line.starts_with("[BLOCKED]")).count(), 1, "{read:#?}");
}

#[test]
fn what_a_complete_task_is_given_later_counts() {
    let tieline = with_script("say one\n---\nsay two\n---\nsay three\n");
    task(&tieline, &["run", "t", "x"]).succeeds();
    let checked = ["run", "t", "--verify", "false", "--verify-tries", "0"];
    let failed = task(&tieline, &checked).ends_with(1);
    assert!(!failed.out.contains("CODEX_COMPLETE"), "{}", failed.out);
    task(&tieline, &["run", "t", "more", "--verify", "true", "--background"]).succeeds();
    task(&tieline, &["wait", "t"]).succeeds();
    assert!(told(&tieline, "t").last().unwrap().contains("more"));
    fs::create_dir(tieline.work().join("elsewhere")).unwrap();
    task(&tieline, &["run", "t", "x", "--cwd", "elsewhere"]).ends_with(2);
    task(&tieline, &["run", "t", "x", "--worktree"]).ends_with(2);
    task(&tieline, &["run", "t", "x", "--plan", "elsewhere"]).ends_with(2);
}

#[test]
fn an_answer_that_did_not_reach_the_agent_is_told_again() {
    let tieline =
        with_script("say <<END\n[QUESTION] Which?\nOptions:\n1. a\n2. b\nEND\n---\nsay two\n");
    task(&tieline, &["run", "t", "x"]).ends_with(5);
    let script = tieline.path("task.script");
    let good = fs::read_to_string(&script).unwrap();
    fs::write(&script, "no such step\n").unwrap();
    task(&tieline, &["run", "t", "--answer", "2"]).ends_with(1);
    fs::write(&script, good).unwrap();
    task(&tieline, &["run", "t"]).succeeds();
    let told = told(&tieline, "t");
    assert!(told.last().unwrap().contains("The answer: b"), "{told:#?}");
}

#[test]
fn a_changed_plan_is_told_again() {
    let tieline = with_script("say <<END\n[BLOCKED] stuck\nEND\n---\nsay ok\n");
    fs::write(tieline.work().join("plan.md"), "first plan").unwrap();
    fs::write(tieline.work().join("AGENTS.md"), "Use tabs.").unwrap();
    task(&tieline, &["run", "t", "x", "--plan", "plan.md"]).ends_with(7);
    fs::write(tieline.work().join("plan.md"), "second plan").unwrap();
    task(&tieline, &["run", "t"]).succeeds();
    let told: Vec<Value> = tieline.events("t");
    let told: Vec<&str> =
        told.iter().filter_map(|it| it["data"]["content"][0]["text"].as_str()).collect();
    assert!(told[0].contains("first plan") && told[0].contains("Use tabs."), "{}", told[0]);
    assert!(told[1].contains("second plan") && !told[1].contains("first plan"), "{}", told[1]);
}

#[test]
fn claims_that_are_not_so_are_reported() {
    let script = "write real.txt <<END\nx\nEND\nsay <<END\n[FILES_MODIFIED]\n- ghost.txt (created)\n\
                  - real.txt (created)\nEND\n";
    let tieline = with_script(script);
    let outcome = task(&tieline, &["run", "t", "x", "--mode", "acceptEdits"]).succeeds();
    let expected = [
        "[PROGRESS] Created real.txt",
        "[FILES_MODIFIED]",
        "[FILES_MISMATCH] The agent said it created ghost.txt, which is not there",
        "[CODEX_COMPLETE] Task completed in 1 iterations",
    ];
    assert_eq!(markers(&outcome), expected);
}

#[test]
fn json_lines_are_exact_where_markers_are_escaped() {
    let script = "say <<END\n```\n[BLOCKED] not really\n```\nEND\n";
    let marked = task(&with_script(script), &["run", "t", "x"]).succeeds();
    assert!(marked.out.contains("\n\\[BLOCKED] not really\n"), "{}", marked.out);
    let exact = task(&with_script(script), &["run", "t", "x", "--format", "jsonl"]).succeeds();
    let lines = exact.lines();
    let said = lines
        .iter()
        .find(|it| it["kind"] == "item.completed" && it["data"]["type"] == "agent_message");
    assert_eq!(said.unwrap()["data"]["text"], "```\n[BLOCKED] not really\n```");
    let last = lines.iter().rfind(|it| it["kind"] == "task.marker").unwrap();
    assert_eq!(last["data"]["marker"], "completed");
}

#[test]
fn kill_9_of_the_task_loses_nothing_and_the_same_id_goes_on() {
    let script = "write a.txt <<END\none\nEND\nask Which? | a: x | b: y\nsay ok {answer}\n---\n\
                  say And on.\n";
    let tieline = with_script(script);
    let run = ["task", "run", "t", "x", "--mode", "acceptEdits", "--wait", "600"];
    let mut child =
        tieline.command(&run).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let shown = until(&mut child, "[QUESTION] Which?");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_eq!(status(&tieline, "t")["status"], "cut off");
    let tail = task(&tieline, &["tail", "t"]).succeeds();
    for line in shown.iter().filter(|line| line.starts_with('[')) {
        assert!(tail.out.contains(line.as_str()), "{line} was shown and is lost:\n{}", tail.out);
    }
    let done = task(&tieline, &["run", "t", "--answer", "q1=2"]).succeeds();
    assert!(done.out.contains("[PROGRESS] answer to q1: b"), "{}", done.out);
    assert!(done.out.contains("- a.txt (created)"), "measured from the beginning: {}", done.out);
    assert!(
        told(&tieline, "t")[1].contains("You asked: Which?\nThe answer: b"),
        "it reached the agent"
    );
    let writes = tieline.events("t");
    let writes = writes
        .iter()
        .filter(|it| it["kind"] == "item.completed" && it["data"]["type"] == "file_change");
    assert_eq!(writes.count(), 1, "no step is repeated");
}

/// Reads lines until one is this; gives them all.
fn until(child: &mut Child, wanted: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let is_it = line == wanted;
        lines.push(line);
        if is_it {
            return lines;
        }
    }
    panic!("{wanted} was not said: {lines:#?}");
}

#[test]
fn ctrl_c_stops_a_task_which_goes_on_later() {
    let tieline = with_script("run sleep 60\nsay one\n---\nsay two\n");
    let run = ["task", "run", "t", "x", "--mode", "bypass"];
    let mut child =
        tieline.command(&run).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    until(&mut child, "[PROGRESS] Running sleep 60");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert_eq!(alive(&tieline), Vec::<String>::new());
    assert_eq!(status(&tieline, "t")["status"], "cancelled");
    let done = task(&tieline, &["run", "t"]).succeeds();
    assert!(
        done.out.ends_with("[CODEX_COMPLETE] Task completed in 2 iterations\n"),
        "{}",
        done.out
    );
}

#[test]
fn eight_tasks_at_once_each_in_a_worktree_of_its_own() {
    let script = "run sleep 0.2\nrun cat shared.txt\nwrite out.txt <<END\nfrom an agent\nEND\nask Stay? | yes: y | no: n\n\
                  say {answer}\n";
    let tieline = with_script(script);
    let git = |words: &[&str]| {
        let mut line = vec!["-c", "user.name=x", "-c", "user.email=x@example.com"];
        line.extend(words);
        #[allow(clippy::disallowed_methods)] // the tests stand outside the program
        let output = std::process::Command::new("git")
            .args(line)
            .current_dir(tieline.work())
            .env("HOME", tieline.path(""))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    fs::write(tieline.work().join("shared.txt"), "untouched").unwrap();
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    let ids: Vec<String> = (0..8).map(|n| format!("t{n}")).collect();
    for id in &ids {
        let about = format!("task number {id}");
        let run = ["run", id, &about, "--mode", "bypass", "--worktree", "--background"];
        task(&tieline, &run).succeeds();
    }
    for id in &ids {
        stands(&tieline, id, |it| !it["questions"].as_array().unwrap().is_empty());
    }
    for (line, kib) in resident(&tieline) {
        assert!(kib < 128 * 1024, "{kib} KiB: {line}");
    }
    // Half of them are answered, the others cancelled while their agents wait.
    for (n, id) in ids.iter().enumerate() {
        match n % 2 {
            0 => drop(task(&tieline, &["answer", id, "1"]).succeeds()),
            _ => {
                let cancelled = task(&tieline, &["cancel", id]).succeeds();
                assert!(cancelled.out.contains("1 files not committed"), "{}", cancelled.out);
            }
        }
    }
    for (n, id) in ids.iter().enumerate() {
        let done = stands(&tieline, id, |it| it["alive"] == false);
        let expected = if n % 2 == 0 { "complete" } else { "cancelled" };
        assert_eq!(done["status"], expected, "{done:#}");
        assert_eq!(done["branch"], format!("tieline/{id}"));
        let tree = tieline.path("store-worktrees").join(id);
        assert_eq!(fs::read_to_string(tree.join("out.txt")).unwrap(), "from an agent\n");
        let events = tieline.run(&["export", id]).succeeds();
        assert!(events.out.contains(&format!("task number {id}")));
        let ran = events.lines().iter().filter(|it| it["data"]["exit_code"] == 0).count();
        assert_eq!(ran, 2, "a worktree is no secret to who works in it: {}", events.out);
        let others = ids.iter().filter(|other| *other != id);
        for other in others {
            assert!(
                !events.out.contains(&format!("task number {other}")),
                "{id} has words of {other}"
            );
        }
    }
    assert_eq!(fs::read_to_string(tieline.work().join("shared.txt")).unwrap(), "untouched");
    assert!(!tieline.work().join("out.txt").exists(), "nothing happened outside the worktrees");
    assert_eq!(alive(&tieline), Vec::<String>::new(), "no process is left");
    task(&tieline, &["remove", "t1"]).ends_with(2);
    task(&tieline, &["remove", "t1", "--force"]).succeeds();
    assert!(!tieline.path("store-worktrees/t1").exists());
}

/// Processes that work below this home: their words, and how many KiB they hold.
fn resident(tieline: &Tieline) -> Vec<(String, u64)> {
    let home = tieline.path("").display().to_string();
    let home = home.trim_end_matches('/');
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if cwd.to_string_lossy().starts_with(home) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kib = kib.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push((line, kib.unwrap_or(0)));
        }
    }
    found
}

/// Processes that work below this home.
fn alive(tieline: &Tieline) -> Vec<String> {
    let began = Instant::now();
    loop {
        let found: Vec<String> = resident(tieline).into_iter().map(|(line, _)| line).collect();
        // One that has just said its last word may still be ending.
        if found.is_empty() || began.elapsed() > Duration::from_secs(5) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn other_programs_that_speak_in_markers_are_understood() {
    let tieline = Tieline::new();
    let script = tieline.program(
        "old-script",
        "echo 'Working'; printf 'no newline'; printf '[PROGRESS] glued\\n'; echo trouble >&2; \
         echo '[CODEX_COMPLETE] Task completed in 2 iterations'; exit 3",
    );
    let watched = tieline.run(&["task", "watch", "--", &script]).ends_with(3);
    let names: Vec<String> =
        watched.lines().iter().map(|it| it["data"]["marker"].to_string()).collect();
    assert_eq!(names, ["null", "\"progress\"", "\"completed\""]);
    assert_eq!(watched.err, "trouble\n");
    let parsed =
        tieline.feed(&["task", "parse", "--format", "markers"], b"  [PROGRESS] x\n").succeeds();
    assert_eq!(parsed.out, "[PROGRESS] x\n");
    tieline.run(&["task", "parse", "nowhere.log"]).ends_with(2);
    tieline.run(&["task", "watch", "--", "no-such-program"]).ends_with(2);
}

#[test]
fn a_program_that_waits_for_an_answer_has_its_question_told() {
    let tieline = Tieline::new();
    let script = tieline.program(
        "asker",
        "printf '[QUESTION] Which?\n1. a\n2. b\n'; until [ -e answered ]; do sleep 0.02; done",
    );
    let mut child = tieline.spawn(&["task", "watch", "--format", "text", "--", &script]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    // Told while the program still waits: otherwise this reads for ever.
    while !told.contains("2. b") {
        assert_ne!(out.read_line(&mut told).unwrap(), 0, "{told}");
    }
    fs::write(tieline.work().join("answered"), "").unwrap();
    out.read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(told.contains("? q1: Which?") && !told.contains("task answer"), "{told}");
}

/// `TIELINE_CANCEL_MOMENTS` sets how many moments are tried.
#[test]
fn a_cancel_at_any_moment_of_a_task_is_done() {
    let number = |name| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let tieline = with_script("ask Which? | a: x | b: y\nsay ok\n");
    for n in 0..number("TIELINE_CANCEL_MOMENTS").unwrap_or(8) {
        let id = format!("t{n}");
        task(&tieline, &["run", &id, "x", "--background"]).succeeds();
        // From the moment when its process has it, in steps that do not repeat.
        std::thread::sleep(Duration::from_micros(n * 7919 % 200_000));
        task(&tieline, &["cancel", &id]).succeeds();
        assert_eq!(status(&tieline, &id)["status"], "cancelled", "{id}");
    }
}

/// Asks for leave to remove a directory, in two turns; `second` is what is different in the second.
fn removes_twice(second: &Value) -> Tieline {
    let mut call = serde_json::json!({"cmd": "rm -rf build", "justification": "Clean up"});
    let first = format!("call exec_command {call}\nsay first\n");
    call.as_object_mut().unwrap().extend(second.as_object().unwrap().clone());
    with_script(&format!("{first}---\ncall exec_command {call}\nsay second\n"))
}

#[test]
fn a_yes_is_not_given_to_another_request_that_looks_the_same() {
    let precious = tempfile::tempdir_in("/var/tmp").unwrap();
    let thesis = precious.path().join("build/thesis");
    fs::create_dir(thesis.parent().unwrap()).unwrap();
    fs::write(&thesis, "x").unwrap();
    for second in [
        serde_json::json!({"workdir": precious.path(), "sandbox_permissions": "require_escalated"}),
        serde_json::json!({"workdir": precious.path()}),
        serde_json::json!({"sandbox_permissions": "require_escalated"}),
        serde_json::json!({"cmd": "rm -rf build\u{1b}]x"}),
    ] {
        let tieline = removes_twice(&second);
        task(&tieline, &["run", "t", "go", "--mode", "default"]).ends_with(5);
        let asked = task(&tieline, &["run", "t", "--answer", "1"]).ends_with(5);
        assert!(asked.out.contains("[QUESTION] Run rm -rf build"), "{second}: {}", asked.out);
        assert_eq!(status(&tieline, "t")["questions"][0]["id"], "q2", "{second}");
        assert!(thesis.exists(), "{second}");
    }
    // The very same request has the answer that was kept for it.
    let tieline = removes_twice(&serde_json::json!({}));
    task(&tieline, &["run", "t", "go", "--mode", "default"]).ends_with(5);
    task(&tieline, &["run", "t", "--answer", "1"]).succeeds();
}

#[test]
fn what_is_said_before_anything_is_asked_is_leave_for_nothing() {
    let tieline = removes_twice(&serde_json::json!({}));
    let run = ["run", "t", "go", "--mode", "default", "--answer", "1", "--answer", "q1=1"];
    task(&tieline, &run).ends_with(5);
    assert_eq!(status(&tieline, "t")["questions"][0]["id"], "q1");
}

#[test]
fn escape_sequences_of_an_agent_reach_no_screen_in_any_format() {
    let said = "a \u{1b}]52;c;AAAA\u{7} b \u{9b}2J \u{202e}c \u{7f}\u{200b}";
    for format in ["markers", "text", "jsonl"] {
        let tieline = with_script(&format!("say <<END\n{said}\n[PROGRESS] {said}\nEND\n"));
        let run = ["run", "t", "x", "--format", format];
        let told = task(&tieline, &run).succeeds().out;
        let shown = [
            told,
            tieline.run(&["export", "t"]).succeeds().out,
            tieline.run(&["show", "t"]).succeeds().out,
            tieline.run(&["show", "t", "--json"]).succeeds().out,
            task(&tieline, &["show", "t", "--json"]).succeeds().out,
            task(&tieline, &["tail", "t", "--format", format]).succeeds().out,
        ];
        for text in shown {
            let odd = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(odd), "{format}: {text:?}");
        }
    }
}

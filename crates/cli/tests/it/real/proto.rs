//! Recordings of a real old client are played to `tieline proto --compat upstream`, on the same
//! scripted model, and what comes back is held against what `codex proto` 0.42 said then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use expect_test::expect_file;
use serde_json::{Value, json};
use tieline_testkit::agents;
use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{self, AgentEnv, CodexConfig};

/// The model of the recordings.
const MODEL: &str = "gpt-5-codex";

const RECORDINGS: [&str; 19] = [
    "hello",
    "hello-user_input",
    "think",
    "plan",
    "shell",
    "fail-command",
    "patch",
    "long-50",
    "exec-approval-approved",
    "exec-approval-approved_for_session",
    "exec-approval-denied",
    "exec-approval-abort",
    "patch-approval-approved",
    "patch-approval-denied",
    "interrupt-during-text",
    "interrupt-during-exec",
    "multi-turn-and-garbage",
    "http500",
    "drop",
];

/// Why a kind of event is not the same, and whether anybody is worse off.
const VERDICTS: &[(&str, &str)] = &[
    ("task_started", "fine: the size of the model's memory is told once an agent has counted"),
    (
        "token_count",
        "fine: told when a count changes; the old program repeats it around each call of the model",
    ),
    (
        "exec_command_begin",
        "fine: what a command does is parsed less finely; `parsed_cmd` is a hint for showing it",
    ),
    (
        "exec_command_output_delta",
        "known loss: our record has both outputs of a command in one, told as stdout",
    ),
    (
        "exec_command_end",
        "known loss: the same; `aggregated_output` and the exit code are the same",
    ),
    (
        "turn_diff",
        "fine: the changes of the turn one after the other, told once for each; the old program \
         merges them, and repeats them around each call of the model",
    ),
    ("background_event", "better: what an agent has to say about its sandbox is passed on"),
];

/// One line for each event: what a client acts on, without what differs between two runs.
fn fold(events: &[Value], workspace: &str) -> Vec<String> {
    let mut calls: BTreeMap<String, String> = BTreeMap::new();
    let mut folded: Vec<(String, Value)> = Vec::new();
    for event in events {
        let text = event["msg"].to_string().replace(workspace, "/workspace");
        let mut msg: Value = serde_json::from_str(&text).unwrap();
        let id = event["id"].as_str().unwrap().to_owned();
        let kind = msg["type"].as_str().unwrap().to_owned();
        for volatile in ["session_id", "rollout_path", "duration"] {
            msg.as_object_mut().unwrap().remove(volatile);
        }
        if let Some(call) = msg["call_id"].as_str() {
            let n = calls.len() + 1;
            let call = calls.entry(call.to_owned()).or_insert_with(|| format!("call {n}"));
            msg["call_id"] = call.clone().into();
        }
        if kind == "stream_error" {
            // `retrying 1/2 in 197ms…`
            let message = msg["message"].as_str().unwrap();
            let message = message.rsplit_once(" in ").map_or(message, |(words, _)| words);
            msg["message"] = message.to_owned().into();
        }
        for output in ["stdout", "aggregated_output", "formatted_output"] {
            // Which of its two outputs a command is heard on first is chance.
            if let Some(text) = msg[output].as_str().filter(|_| kind == "exec_command_end") {
                let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                lines.sort_unstable();
                msg[output] = lines.concat().into();
            }
        }
        if kind == "exec_command_output_delta" {
            // How the output was cut into pieces is chance.
            msg.as_object_mut().unwrap().remove("chunk");
        }
        if let Some((before, last)) = folded.last_mut()
            && *before == id
            && last["type"] == kind.as_str()
        {
            if let (Some(one), Some(more)) = (last["delta"].as_str(), msg["delta"].as_str()) {
                last["delta"] = format!("{one}{more}").into();
                continue;
            }
            if *last == msg && kind == "exec_command_output_delta" {
                continue;
            }
        }
        folded.push((id, msg));
    }
    for (_, msg) in &mut folded {
        // How far a text had come when it was stopped is chance.
        if msg["delta"].as_str().is_some_and(|text| text.starts_with("tick0")) {
            msg["delta"] = "tick0 …".into();
        }
    }
    folded.iter().map(|(id, msg)| format!("{id} {msg}")).collect()
}

/// What only one of two lists has, in order.
fn diff<'a>(one: &'a [String], other: &'a [String]) -> Vec<(char, &'a str)> {
    let mut longest = vec![vec![0; other.len() + 1]; one.len() + 1];
    for at in (0..one.len()).rev() {
        for place in (0..other.len()).rev() {
            longest[at][place] = match one[at] == other[place] {
                true => longest[at + 1][place + 1] + 1,
                false => longest[at + 1][place].max(longest[at][place + 1]),
            };
        }
    }
    let (mut at, mut place, mut lines) = (0, 0, Vec::new());
    while at < one.len() || place < other.len() {
        if at < one.len() && place < other.len() && one[at] == other[place] {
            (at, place) = (at + 1, place + 1);
        } else if place == other.len()
            || (at < one.len() && longest[at + 1][place] >= longest[at][place + 1])
        {
            lines.push(('-', one[at].as_str()));
            at += 1;
        } else {
            lines.push(('+', other[place].as_str()));
            place += 1;
        }
    }
    lines
}

/// A recording in order: whether it was said by the program, and what.
fn recording(name: &str) -> Vec<(bool, Value)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/fixtures/codex_proto/0.42.0");
    let text = std::fs::read_to_string(dir.join(format!("{name}.trace.jsonl"))).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["dir"] == "out", line["line"].clone())
    };
    text.lines().map(line).filter(|(_, line)| !line.is_null()).collect()
}

fn next(events: &Receiver<Value>, heard: &mut Vec<Value>) -> bool {
    match events.recv_timeout(Duration::from_secs(30)) {
        Ok(event) => {
            heard.push(event);
            true
        }
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => false,
        Err(_) => panic!("nothing more comes after {heard:#?}"),
    }
}

/// Plays the client's lines, each when what it waited for has come; gives what came.
fn replay(lines: &[(bool, Value)], mut command: std::process::Command, cwd: &str) -> Vec<Value> {
    let mut server =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let output = BufReader::new(server.stdout.take().unwrap());
    let (sender, events) = channel();
    let reading = std::thread::spawn(move || {
        for line in output.lines() {
            let event = serde_json::from_str(&line.unwrap()).unwrap();
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    let mut heard: Vec<Value> = Vec::new();
    let mut from = 0;
    let mut awaited: Option<(String, String)> = None;
    for (is_out, line) in lines {
        if *is_out {
            let kind = line["msg"]["type"].as_str().unwrap_or_default().to_owned();
            if kind != "token_count" && kind != "turn_diff" {
                awaited = Some((line["id"].as_str().unwrap().to_owned(), kind));
            }
            continue;
        }
        if let Some((id, kind)) = awaited.take() {
            let has_come = |heard: &[Value]| {
                heard.iter().any(|it| it["id"] == id.as_str() && it["msg"]["type"] == kind.as_str())
            };
            while !has_come(&heard[from..]) {
                assert!(next(&events, &mut heard), "no {kind} in {heard:#?}");
            }
            from = heard.len();
        }
        let text = match line {
            Value::String(raw) => raw.clone(),
            line => line.to_string().replace("\"/workspace\"", &json!(cwd).to_string()),
        };
        input.write_all(format!("{text}\n").as_bytes()).unwrap();
    }
    while next(&events, &mut heard) {}
    drop(input);
    assert!(server.wait().unwrap().success());
    reading.join().unwrap();
    heard
}

async fn run(name: &str, agent: &str) -> (Vec<String>, Vec<String>) {
    let model = ModelServer::start().await;
    let config = CodexConfig { model: MODEL, ..CodexConfig::default() };
    let home = AgentEnv::codex(&model.url(), config);
    let workspace = home.workspace().display().to_string();
    // The tests stand outside the program: what they start is the program itself.
    #[allow(clippy::disallowed_methods)]
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tieline"));
    command
        .args(["proto", "--agent", agent, "--model", MODEL, "--compat", "upstream"])
        .current_dir(home.workspace())
        .env_clear()
        .envs(home.vars())
        .env("TIELINE_HOME", home.root().join("store"))
        .env("OPENAI_BASE_URL", format!("{}/v1", model.url()))
        .env("TIELINE_CODEX_PROTO", agents::program("codex-proto").unwrap());
    let lines = recording(name);
    let said: Vec<Value> =
        lines.iter().filter(|(is_out, _)| *is_out).map(|(_, line)| line.clone()).collect();
    let cwd = workspace.clone();
    let heard = tokio::task::spawn_blocking(move || replay(&lines, command, &cwd)).await.unwrap();
    (fold(&said, "/workspace"), fold(&heard, &workspace))
}

/// The same where our engine stands behind it: another agent, whose order of counts and calls is its
/// own. What it says, asks and does is held to the recording all the same.
const ENGINE_VERDICTS: &[(&str, &str)] = &[
    ("task_started", "fine: the size of the model's memory is told once an agent has counted"),
    ("token_count", "fine: told once for each answer of the model, as soon as it is whole"),
    ("agent_reasoning", "fine: told when its item enters the history, not before the next delta"),
    ("exec_approval_request", "better: says why it asks"),
    ("apply_patch_approval_request", "better: says why it asks"),
    ("exec_command_begin", "fine: what a command does is parsed less finely"),
    ("exec_command_output_delta", "known loss: both outputs are told as stdout"),
    ("exec_command_end", "known loss: the same; the output and the exit code are the same"),
    ("turn_diff", "fine: once for each change, not again after each count"),
    ("stream_error", "better: five tries, not two, each with its reason"),
    ("error", "better: says who failed, and the status"),
];

const PAGE: &str = "\
# SQ/EQ: tieline beside `codex proto` 0.42

Recordings of an old client with the real `codex proto` 0.42.0 are played to `tieline proto --compat
upstream`, line by line, on the same scripted model. Behind tieline stands that same program (`--agent
codex-proto`), so whatever differs is tieline's doing. A line with `-` was said by the old program, one
with `+` by tieline; what both said is left out, pieces of a text count as one, and so do ids, times and
paths of a run. A difference of a kind without a verdict fails the suite.

`UPDATE_EXPECT=1 cargo xtask test --real replay` writes this page anew from a run.
";

/// Plays every recording to an agent. Gives the page, and the kinds of events that differ.
async fn compare(
    agent: &str,
    intro: &str,
    verdicts: &[(&str, &str)],
) -> (String, BTreeMap<String, BTreeSet<&'static str>>) {
    assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
    let mut page = intro.to_owned();
    let mut differences = String::new();
    let (mut n_same, mut n_lines) = (0, 0);
    let mut seen: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in RECORDINGS {
        let (recorded, ours) = run(name, agent).await;
        let lines = diff(&recorded, &ours);
        let missing = lines.iter().filter(|(sign, _)| *sign == '-').count();
        (n_same, n_lines) = (n_same + recorded.len() - missing, n_lines + recorded.len());
        writeln!(differences, "\n### {name}\n\n```diff").unwrap();
        for (sign, line) in lines {
            let (_, msg) = line.split_once(' ').unwrap();
            let msg: Value = serde_json::from_str(msg).unwrap();
            seen.entry(msg["type"].as_str().unwrap().to_owned()).or_default().insert(name);
            let short: String = line.chars().take(300).collect();
            let more = if short.len() < line.len() { " …" } else { "" };
            writeln!(differences, "{sign} {short}{more}").unwrap();
        }
        writeln!(differences, "```").unwrap();
    }
    writeln!(page, "\n{n_same} of {n_lines} recorded lines are the same.\n").unwrap();
    writeln!(page, "| event | in | verdict |\n|---|---|---|").unwrap();
    for (kind, names) in &seen {
        if let Some((_, verdict)) = verdicts.iter().find(|(known, _)| known == kind) {
            writeln!(page, "| `{kind}` | {} recordings | {verdict} |", names.len()).unwrap();
        }
    }
    page.push_str("\n## The differences\n");
    page.push_str(&differences);
    (page, seen)
}

/// Behind tieline stands the program of the recordings itself, so that whatever differs is ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replays_of_an_old_client_differ_only_where_a_verdict_says_why() {
    let (page, seen) = compare("codex-proto", PAGE, VERDICTS).await;
    expect_file!["../../../../../docs/sqeq-differences.md"].assert_eq(&page);
    let has = |kind: &str| VERDICTS.iter().any(|(known, _)| *known == kind);
    let without: Vec<_> = seen.iter().filter(|(kind, _)| !has(kind)).collect();
    assert!(without.is_empty(), "without a verdict: {without:?}");
    let unused = VERDICTS.iter().filter(|(kind, _)| !seen.contains_key(*kind));
    assert_eq!(unused.count(), 0, "a verdict on nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replays_to_the_engine_differ_only_where_a_verdict_says_why() {
    let (page, seen) = compare("engine", "", ENGINE_VERDICTS).await;
    let has = |kind: &str| ENGINE_VERDICTS.iter().any(|(known, _)| *known == kind);
    let without: Vec<_> = seen.keys().filter(|kind| !has(kind)).collect();
    assert!(without.is_empty(), "without a verdict: {without:?}\n{page}");
}

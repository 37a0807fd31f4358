//! The fake agent as Codex: what it writes is what the recordings have.

use std::io::Write;

use serde_json::{Value, json};

use crate::fake::Fake;

fn start(args: &[&str], script: &str) -> Fake {
    start_version(args, script, "0.166.0")
}

fn start_version(args: &[&str], script: &str, version: &str) -> Fake {
    Fake::spawn(args, &[("FAKE_AGENT_SCRIPT", script), ("FAKE_AGENT_VERSION", version)])
}

fn keys(object: &Value) -> Vec<&String> {
    object.as_object().map(|object| object.keys().collect()).unwrap_or_default()
}

#[test]
fn it_tells_the_version_it_is_asked_to_be() {
    let mut fake = start_version(&["--version"], "say x", "0.42.0");
    assert_eq!(fake.lines.next().unwrap().unwrap(), "codex-cli 0.42.0");
    assert_eq!(fake.end(), Some(0));
}

#[test]
fn exec_plays_one_turn_for_the_prompt_on_stdin() {
    let script = "think Hm.\ntool Bash {\"command\":\"ls\"}\necho";
    let mut fake = start(&["exec", "--json", "-s", "read-only", "-"], script);
    write!(fake.stdin.as_mut().unwrap(), "What\nelse?").unwrap();
    drop(fake.stdin.take());
    let lines = fake.until_at("/type", "turn.completed");
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let item = ["item.completed", "item.started", "item.completed", "item.completed"];
    assert_eq!(
        kinds,
        [&["thread.started", "turn.started"][..], &item, &["turn.completed"]].concat()
    );
    assert_eq!(lines[3]["item"]["command"], "/bin/bash -lc 'ls'");
    assert_eq!(lines[4]["item"]["aggregated_output"], "ok");
    assert_eq!(lines[5]["item"]["text"], "What\nelse?");
    assert_eq!(fake.end(), Some(0));
}

#[test]
fn exec_resumes_the_thread_it_is_told_and_fails_with_a_status() {
    let mut fake = start(&["exec", "--json", "resume", "abc", "-"], "result error");
    drop(fake.stdin.take());
    let lines = fake.until_at("/type", "turn.failed");
    assert_eq!(lines[0]["thread_id"], "abc");
    assert_eq!(fake.end(), Some(1));
}

#[test]
fn an_old_exec_says_nothing_at_the_end() {
    let mut fake = start_version(&["exec", "--json", "-"], "say Hello.", "0.36.0");
    drop(fake.stdin.take());
    fake.until_at("/msg/message", "Hello.");
    assert_eq!(fake.next()["msg"]["type"], "token_count");
    assert!(fake.lines.next().is_none());
}

#[test]
fn proto_streams_asks_and_is_interrupted() {
    let script = "say Hello there.\nask-permission Bash {\"command\":\"ls\"}\nsilence";
    let mut fake = start_version(&["proto"], script, "0.42.0");
    assert_eq!(fake.next()["msg"]["type"], "session_configured");
    let items = json!([{"type": "text", "text": "go"}]);
    fake.send(&json!({"id": "sub-1", "op": {"type": "user_turn", "items": items}}));
    let lines = fake.until_at("/msg/type", "exec_approval_request");
    let deltas: String = lines.iter().filter_map(|line| line["msg"]["delta"].as_str()).collect();
    assert_eq!(deltas, "Hello there.");
    let answer = json!({"type": "exec_approval", "id": "sub-1", "decision": "approved"});
    fake.send(&json!({"id": "sub-2", "op": answer}));
    fake.until_at("/msg/type", "exec_command_end");
    fake.send(&json!({"id": "sub-3", "op": {"type": "interrupt"}}));
    fake.until_at("/msg/type", "turn_aborted");
    fake.send(&json!({"id": "sub-4", "op": {"type": "shutdown"}}));
    assert_eq!(fake.next()["msg"]["type"], "shutdown_complete");
    assert_eq!(fake.end(), Some(0));
}

#[test]
fn the_app_server_plays_two_threads_at_once() {
    let mut fake = start(&["app-server"], "echo\nsilence");
    fake.send(&json!({"id": 0, "method": "initialize", "params": {}}));
    assert!(fake.next()["result"]["userAgent"].as_str().unwrap().contains("/0.166.0 "));
    let mut threads = Vec::new();
    for id in [1, 2] {
        fake.send(&json!({"id": id, "method": "thread/start", "params": {"cwd": "/"}}));
        let opened = fake.next();
        assert_eq!(opened["id"], id);
        threads.push(opened["result"]["thread"]["id"].as_str().unwrap().to_owned());
        fake.until_at("/method", "thread/started");
    }
    assert_ne!(threads[0], threads[1]);
    for (id, thread) in (3..).zip(&threads) {
        let input = json!([{"type": "text", "text": format!("I am {thread}")}]);
        let params = json!({"threadId": thread, "input": input});
        fake.send(&json!({"id": id, "method": "turn/start", "params": params}));
        // The first one is silent by then, and its turn goes on.
        let said = fake.until_at("/params/item/text", &format!("I am {thread}"));
        assert!(
            said.iter().all(|line| line["params"]["threadId"] != *threads[usize::from(id == 3)])
        );
    }
    fake.send(&json!({"id": 9, "method": "turn/interrupt", "params": {"threadId": threads[0]}}));
    let end = fake.until_at("/method", "turn/completed").pop().unwrap();
    assert_eq!(end["params"]["threadId"], *threads[0]);
    assert_eq!(end["params"]["turn"]["status"], "interrupted");
}

#[test]
fn the_app_servers_lines_have_the_keys_of_the_recordings() {
    let recorded = include_str!("../../../agent/fixtures/codex_app/0.166.0/hello.out.jsonl");
    let mut fake = start(&["app-server"], "say Hello from the fake model.");
    fake.send(&json!({"id": 1, "method": "thread/start", "params": {"cwd": "/"}}));
    let opened = fake.next();
    let thread = &opened["result"]["thread"]["id"];
    let input = json!([{"type": "text", "text": "go"}]);
    let params = json!({"threadId": thread, "input": input});
    fake.send(&json!({"id": 2, "method": "turn/start", "params": params}));
    let mut n_compared = 0;
    loop {
        let line = fake.lines.next().unwrap().unwrap();
        let value: Value = serde_json::from_str(&line).unwrap();
        let Some(method) = value["method"].as_str().filter(|it| *it != "thread/started") else {
            continue;
        };
        let is_same = |line: &&str| {
            let other: Value = serde_json::from_str(line).unwrap();
            let kind = "/params/item/type";
            other["method"] == method && other.pointer(kind) == value.pointer(kind)
        };
        let like = recorded.lines().find(is_same).unwrap_or_else(|| panic!("{method}"));
        let like: Value = serde_json::from_str(like).unwrap();
        for part in ["", "/params", "/params/item", "/params/turn", "/params/tokenUsage"] {
            if let (Some(own), Some(theirs)) = (value.pointer(part), like.pointer(part)) {
                assert_eq!(keys(own), keys(theirs), "{method} {part}");
                n_compared += 1;
            }
        }
        if method == "turn/completed" {
            break;
        }
    }
    assert!(n_compared > 20, "{n_compared}");
}

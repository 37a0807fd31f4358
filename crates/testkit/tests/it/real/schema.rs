//! The official schema against recorded and broken frames.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tieline_testkit::acp::{Direction, Frame, Schema, Seen, Strictness};

/// The recorded conversations, by path.
fn recordings() -> Vec<(PathBuf, Vec<Frame>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/acp");
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    files.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), read(&path))).collect()
}

fn read(path: &Path) -> Vec<Frame> {
    let text = fs::read_to_string(path).unwrap();
    let frames = text.lines().map(|line| {
        let trace: Value = serde_json::from_str(line).unwrap();
        let direction = match trace["dir"].as_str().unwrap() {
            "in" => Direction::ToAgent,
            _ => Direction::ToClient,
        };
        let at = Duration::from_millis(trace["ms"].as_u64().unwrap());
        Frame::new(at, direction, trace["line"].to_string().into_bytes())
    });
    frames.collect()
}

#[test]
fn what_the_adapters_wrote_is_valid_and_keeps_the_rules() {
    let mut schema = Schema::installed(Strictness::Open).unwrap();
    let recordings = recordings();
    assert!(recordings.len() >= 5);
    for (path, frames) in recordings {
        let path = path.display();
        assert_eq!(schema.faults(&frames), Vec::<String>::new(), "{path}");
        let seen = Seen::of(&frames);
        // codex-acp takes a command back to `pending` when it asks about it.
        let known = ["call_0027 goes back from in_progress to pending"];
        assert!(seen.broken.is_empty() || seen.broken == known, "{path}: {:?}", seen.broken);
        assert_eq!(seen.only().turns.len(), 1, "{path}");
    }
}

#[test]
fn a_broken_frame_is_told_with_its_place() {
    let mut schema = Schema::installed(Strictness::Closed).unwrap();
    let update = |update: Value| {
        let params = json!({"sessionId": "s", "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    };
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x"});
    let mut with = |field: &str, value: Value| {
        let mut call = call.clone();
        call[field] = value;
        schema.frame(&update(call), None)
    };
    assert_eq!(with("_meta", json!({"own": 1})), Vec::<String>::new());
    assert_eq!(with("rawInput", json!({"any": [1, null]})), Vec::<String>::new());
    assert!(with("kind", json!("dance"))[0].contains("/update"));
    assert!(with("title", json!(1))[0].contains("/update"));
    assert!(with("own", json!(1))[0].contains("/update"), "a field of our own at the root");
    assert!(with("locations", json!([{"path": "/x", "own": 1}]))[0].contains("/update"));
    assert!(!with("sessionUpdate", json!("news")).is_empty());
}

#[test]
fn an_answer_is_judged_by_what_was_asked() {
    let mut schema = Schema::installed(Strictness::Closed).unwrap();
    let mut judge = |method: &str, result: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        schema.frame(&answer, Some(method)).len()
    };
    assert_eq!(judge("initialize", json!({"protocolVersion": 1})), 0);
    assert_eq!(judge("initialize", json!({"protocolVersion": "1"})), 1);
    assert_eq!(judge("session/new", json!({"sessionId": "s"})), 0);
    assert_eq!(judge("session/new", json!({})), 1);
    let usage = json!({"totalTokens": 1, "inputTokens": 1, "outputTokens": 0});
    assert_eq!(judge("session/prompt", json!({"stopReason": "end_turn", "usage": usage})), 0);
    assert_eq!(judge("session/prompt", json!({"stopReason": "end_turn", "usage": {}})), 1);
    assert_eq!(judge("session/fork", json!({"sessionId": "s"})), 0);
    assert_eq!(judge("_own/method", json!(1)), 0);
    assert_eq!(judge("session/dance", json!({})), 1);
}

#[test]
fn errors_and_envelopes_are_judged_too() {
    let mut schema = Schema::installed(Strictness::Open).unwrap();
    let error = json!({"code": -32602, "message": "no", "data": {"any": 1}});
    let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
    assert_eq!(schema.frame(&answer, None), Vec::<String>::new());
    let answer = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "no"}});
    assert_eq!(schema.frame(&answer, None).len(), 2);
    let notification = json!({"method": "_own", "extra": 1});
    let faults = ["`jsonrpc` is not \"2.0\"", "a field `extra`"];
    assert_eq!(schema.frame(&notification, None), faults);
    assert_eq!(schema.frame(&json!({"jsonrpc": "2.0", "id": 1, "result": 1}), None).len(), 1);
}

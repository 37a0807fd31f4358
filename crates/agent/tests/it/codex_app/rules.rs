//! Modes, policies and commands, as the server is told them.

use super::*;

#[test]
fn directories_of_the_user_s_configuration_stay_writable() {
    let mut replay = Replay::new(&launch(Mode::AcceptEdits));
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.166.0 (y)"}}));
    let id = replay.take("thread/start")["id"].clone();
    let sandbox = json!({
        "type": "workspaceWrite", "writableRoots": ["/cache"], "networkAccess": true,
        "excludeTmpdirEnvVar": true, "excludeSlashTmp": true,
    });
    replay.tell(&json!({"id": id, "result": {"thread": {"id": "thread"}, "sandbox": sandbox}}));
    let turn = |replay: &mut Replay, n: u32| {
        replay.session.start_turn(&Prompt::text("go"));
        replay.settle();
        let start = replay.take("turn/start");
        let name = format!("turn{n}");
        replay.tell(&json!({"id": start["id"], "result": {"turn": {"id": name}}}));
        replay.end_turn(&name, "completed");
        start["params"]["sandboxPolicy"].clone()
    };
    let first = turn(&mut replay, 1);
    assert_eq!(first["writableRoots"], json!(["/cache"]));
    assert_eq!(first["networkAccess"], json!(false), "the mode has no network");
    assert!(replay.session.set_mode(Mode::Yolo, None));
    assert_eq!(turn(&mut replay, 2), json!({"type": "dangerFullAccess"}));
    assert!(replay.session.set_mode(Mode::BypassPermissions, None));
    assert_eq!(turn(&mut replay, 3)["networkAccess"], json!(true));
}

#[test]
fn a_mode_is_said_with_every_turn() {
    let params = |launch: &Launch<'_>| {
        let mut replay = ready(launch);
        replay.session.start_turn(&Prompt::text("go"));
        replay.settle();
        let params = replay.take("turn/start")["params"].clone();
        let (ask, reach) = (params["approvalPolicy"].clone(), params["sandboxPolicy"].clone());
        let plan = params["collaborationMode"]["mode"].clone();
        format!("{} {} {} {}", ask, reach["type"], reach["networkAccess"], plan)
    };
    let of = |mode| params(&launch(mode));
    assert_eq!(of(Mode::Default), r#""on-request" "readOnly" null null"#);
    assert_eq!(of(Mode::Plan), r#""on-request" "readOnly" null "plan""#);
    assert_eq!(of(Mode::AcceptEdits), r#""on-request" "workspaceWrite" false null"#);
    assert_eq!(of(Mode::Auto), r#""on-request" "workspaceWrite" false null"#);
    assert_eq!(of(Mode::BypassPermissions), r#""never" "workspaceWrite" true null"#);
    assert_eq!(of(Mode::Yolo), r#""never" "dangerFullAccess" null null"#);
    let policy = Some(Policy { ask: AskWhen::OnFailure, reach: Reach::WorkspaceWrite });
    let launch = Launch { policy, ..launch(Mode::Default) };
    assert_eq!(params(&launch), r#""on-request" "workspaceWrite" false null"#);
}

/// Who judges what is asked for in a turn.
fn reviewer(replay: &mut Replay, name: &str) -> Option<Value> {
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let start = replay.take("turn/start");
    replay.tell(&json!({"id": start["id"], "result": {"turn": {"id": name}}}));
    replay.end_turn(name, "completed");
    start["params"].get("approvalsReviewer").cloned()
}

#[test]
fn the_agent_judges_itself_until_the_mode_is_another() {
    let mut replay = ready(&launch(Mode::Default));
    assert_eq!(reviewer(&mut replay, "one"), None, "the user's configuration decides");
    assert!(replay.session.set_mode(Mode::Auto, None));
    assert_eq!(reviewer(&mut replay, "two"), Some(json!("auto_review")));
    assert!(replay.session.set_mode(Mode::AcceptEdits, None));
    assert_eq!(reviewer(&mut replay, "three"), Some(json!("user")));
}

#[test]
fn a_thread_that_was_left_judging_itself_asks_again_in_another_mode() {
    let resumed = |mode| {
        let resume = Some(Resume { session: "thread", fork: false, at: None });
        let mut replay = Replay::new(&Launch { resume, ..launch(mode) });
        let id = replay.take("initialize")["id"].clone();
        replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.166.0 (y)"}}));
        let open = replay.take("thread/resume");
        let result = json!({"thread": {"id": "thread"}, "approvalsReviewer": "auto_review"});
        replay.tell(&json!({"id": open["id"], "result": result}));
        (open["params"].get("approvalsReviewer").cloned(), reviewer(&mut replay, "turn"))
    };
    assert_eq!(resumed(Mode::Default), (None, Some(json!("user"))));
    let auto = Some(json!("auto_review"));
    assert_eq!(resumed(Mode::Auto), (auto.clone(), auto));
}

#[test]
fn a_version_that_cannot_judge_itself_says_so() {
    let mut replay = Replay::new(&launch(Mode::Auto));
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.110.0 (y)"}}));
    let open = replay.take("thread/start");
    assert_eq!(open["params"].get("approvalsReviewer"), None);
    replay.tell(&json!({"id": open["id"], "result": {"thread": {"id": "thread"}}}));
    assert!(shown(&replay).contains("mode_replaced"), "{}", shown(&replay));
    assert_eq!(reviewer(&mut replay, "one"), None);
}

#[test]
fn an_older_server_is_told_in_its_own_spelling() {
    let policy = Some(Policy { ask: AskWhen::OnFailure, reach: Reach::WorkspaceWrite });
    let open = |policy| {
        let mut replay = Replay::new(&Launch { policy, ..launch(Mode::Default) });
        let id = replay.take("initialize")["id"].clone();
        replay.tell(&json!({"id": id, "result": {"userAgent": "codex_cli_rs/0.63.0 (x)"}}));
        let params = replay.take("thread/start")["params"].clone();
        format!("{} {}", params["approvalPolicy"], params["sandbox"])
    };
    assert_eq!(open(policy), r#""onFailure" "workspaceWrite""#);
    assert_eq!(open(None), r#""onRequest" "readOnly""#);
    let untrusted = Policy { ask: AskWhen::Untrusted, reach: Reach::DangerFullAccess };
    assert_eq!(open(Some(untrusted)), r#""unlessTrusted" "dangerFullAccess""#);
}

#[test]
fn commands_of_the_server_are_no_prompts() {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("/compact"));
    replay.settle();
    let compact = replay.take("thread/compact/start");
    replay.tell(&json!({"id": compact["id"], "result": {}}));
    let turn = json!({"threadId": "thread", "turn": {"id": "c", "status": "inProgress"}});
    replay.tell(&json!({"method": "turn/started", "params": turn}));
    replay.tell(&json!({"method": "item/completed", "params": {
        "threadId": "thread", "turnId": "c", "item": {"type": "contextCompaction", "id": "i"},
    }}));
    replay.tell(&json!({"method": "thread/compacted", "params": {"threadId": "thread"}}));
    replay.end_turn("c", "completed");
    let text = shown(&replay);
    assert_eq!(text.matches("item.completed: compaction").count(), 1, "{text}");
    assert!(text.contains("turn.completed: Completed"), "{text}");
    replay.session.start_turn(&Prompt::text("/review the tests"));
    replay.settle();
    let target = replay.take("review/start")["params"]["target"].clone();
    assert_eq!(target, json!({"type": "custom", "instructions": "the tests"}));
}

#[test]
fn a_mode_changed_while_the_thread_opens_holds_for_its_first_turn() {
    let mut replay = Replay::new(&launch(Mode::Yolo));
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.166.0 (y)"}}));
    let id = replay.take("thread/start")["id"].clone();
    assert!(replay.session.set_mode(Mode::Default, None));
    let sandbox = json!({"type": "dangerFullAccess"});
    replay.tell(&json!({"id": id, "result": {"thread": {"id": "thread"}, "sandbox": sandbox}}));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let params = replay.take("turn/start")["params"].clone();
    assert_eq!(params["sandboxPolicy"], json!({"type": "readOnly"}));
}

#[test]
fn a_review_waits_until_the_thread_has_the_new_mode() {
    let mut replay = ready(&launch(Mode::Yolo));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    replay.name_turn("one");
    replay.end_turn("one", "completed");
    assert!(replay.session.set_mode(Mode::Default, None));
    replay.session.start_turn(&Prompt::text("/review"));
    replay.settle();
    let update = replay.take("thread/settings/update");
    assert_eq!(update["params"]["sandboxPolicy"], json!({"type": "readOnly"}));
    assert!(replay.written.iter().all(|line| line["method"] != "review/start"));
    replay.tell(&json!({"id": update["id"], "result": {}}));
    replay.take("review/start");
    // A version without that word does not review with more rights than it should have.
    assert!(replay.session.set_mode(Mode::AcceptEdits, None));
    replay.tell(&json!({"method": "turn/completed", "params": {
        "threadId": "thread", "turn": {"id": "x", "status": "completed"},
    }}));
    replay.session.start_turn(&Prompt::text("/review"));
    replay.settle();
    let update = replay.take("thread/settings/update");
    let message = "Invalid request: unknown variant `thread/settings/update`, expected one of `a`";
    replay.tell(&json!({"id": update["id"], "error": {"code": -32600, "message": message}}));
    assert!(shown(&replay).contains("turn.completed: Failed"), "{}", shown(&replay));
    assert!(replay.written.iter().all(|line| line["method"] != "review/start"));
}

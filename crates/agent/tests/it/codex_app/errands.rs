//! Commands that the server does without its model.

use super::*;

/// Says a command; gives the request it became.
fn command(replay: &mut Replay, text: &str, method: &str) -> Value {
    replay.session.start_turn(&Prompt::text(text));
    replay.settle();
    replay.take(method)
}

fn answer(replay: &mut Replay, request: &Value, result: Value) {
    replay.tell(&json!({"id": request["id"], "result": result}));
}

#[test]
fn a_new_name_is_a_turn_of_its_own_and_comes_back_as_the_title() {
    let mut replay = ready(&launch(Mode::Default));
    let request = command(&mut replay, "/rename My work", "thread/name/set");
    assert_eq!(request["params"], json!({"threadId": "thread", "name": "My work"}));
    answer(&mut replay, &request, json!({}));
    let name = json!({"threadId": "thread", "threadName": "My work"});
    replay.tell(&json!({"method": "thread/name/updated", "params": name}));
    let text = shown(&replay);
    assert!(text.contains("The conversation is called My work."), "{text}");
    assert!(text.contains("turn.completed: Completed"), "{text}");
    assert!(text.contains("title \"My work\""), "{text}");
    let session = replay.session.ledger().session();
    assert_eq!(session, Some("thread"), "what has a name is found again");
    assert!(replay.written.iter().all(|line| line["method"] != "turn/start"));
}

#[test]
fn a_version_that_does_not_know_a_command_says_so() {
    let mut replay = ready(&launch(Mode::Default));
    let request = command(&mut replay, "/goal", "thread/goal/get");
    let message = "Invalid request: unknown variant `thread/goal/get`, expected one of `a`";
    replay.tell(&json!({"id": request["id"], "error": {"code": -32600, "message": message}}));
    let text = shown(&replay);
    assert!(text.contains("Codex 0.166.0 has no thread/goal/get"), "{text}");
    let request = command(&mut replay, "/mcp", "mcpServerStatus/list");
    answer(&mut replay, &request, json!({"data": 7}));
    assert!(shown(&replay).contains("is not understood"), "{}", shown(&replay));
    assert_eq!(shown(&replay).matches("turn.completed: Failed").count(), 2);
}

#[test]
fn the_work_at_a_goal_is_the_turn_that_set_it() {
    let goal = json!({"goal": {"objective": "be green", "status": "active"}});
    let mut replay = ready(&launch(Mode::Default));
    let request = command(&mut replay, "/goal be green", "thread/goal/set");
    answer(&mut replay, &request, goal.clone());
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
    let turn = json!({"threadId": "thread", "turn": {"id": "g", "status": "inProgress"}});
    replay.tell(&json!({"method": "turn/started", "params": turn}));
    replay.ring();
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
    replay.end_turn("g", "completed");
    let text = shown(&replay);
    assert_eq!(text.matches("turn.started").count(), 1, "{text}");
    assert_eq!(text.matches("turn.completed: Completed").count(), 1, "{text}");
    // A server that only notes it has nothing to end the turn with.
    replay.outputs.clear();
    let request = command(&mut replay, "/goal be green", "thread/goal/set");
    answer(&mut replay, &request, goal);
    replay.ring();
    assert!(shown(&replay).contains("turn.completed: Completed"), "{}", shown(&replay));
}

#[test]
fn a_goal_waits_for_its_work_while_an_overloaded_server_is_asked_again() {
    let goal = json!({"goal": {"objective": "be green", "status": "active"}});
    let mut replay = opened(&launch(Mode::Default));
    let request = command(&mut replay, "/goal be green", "thread/goal/set");
    answer(&mut replay, &request, goal);
    let turn = json!({"threadId": "thread", "turn": {"id": "g", "status": "inProgress"}});
    let busy = json!({"code": -32001, "message": "Server overloaded; retry later."});
    let models = replay.take("model/list");
    replay.tell(&json!({"id": models["id"], "error": busy}));
    replay.pass(Duration::from_millis(500));
    replay.take("model/list");
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
    replay.tell(&json!({"method": "turn/started", "params": turn}));
    replay.pass(Duration::from_secs(60));
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
    replay.end_turn("g", "completed");
    assert!(shown(&replay).contains("turn.completed: Completed"), "{}", shown(&replay));
}

#[test]
fn the_work_at_a_goal_has_the_rules_of_the_mode() {
    let mut replay = ready(&launch(Mode::Yolo));
    assert!(replay.session.set_mode(Mode::Default, None));
    let update = command(&mut replay, "/goal be green", "thread/settings/update");
    assert_eq!(update["params"]["sandboxPolicy"], json!({"type": "readOnly"}));
    assert!(replay.written.iter().all(|line| line["method"] != "thread/goal/set"));
    answer(&mut replay, &update, json!({}));
    replay.take("thread/goal/set");
}

#[test]
fn a_turn_the_server_begins_meanwhile_is_another_one() {
    let mut replay = ready(&launch(Mode::Default));
    let request = command(&mut replay, "/mcp", "mcpServerStatus/list");
    let turn = json!({"threadId": "thread", "turn": {"id": "own", "status": "inProgress"}});
    replay.tell(&json!({"method": "turn/started", "params": turn}));
    answer(&mut replay, &request, json!({"data": []}));
    let text = shown(&replay);
    assert!(text.contains("t1 turn.completed: Completed"), "{text}");
    assert!(!text.contains("t2 turn.completed"), "{text}");
}

#[test]
fn nobody_has_to_wait_for_slow_servers() {
    let mut replay = ready(&launch(Mode::Default));
    let request = command(&mut replay, "/mcp", "mcpServerStatus/list");
    assert!(replay.session.interrupt());
    replay.settle();
    assert!(shown(&replay).contains("turn.completed: Interrupted"), "{}", shown(&replay));
    replay.outputs.clear();
    answer(&mut replay, &request, json!({"data": []}));
    assert_eq!(shown(&replay), "", "it is too late");
}

#[test]
fn the_fast_service_is_asked_for_with_every_turn_until_it_is_off() {
    let mut replay = ready(&launch(Mode::Default));
    let tier = |replay: &mut Replay, n: u32| {
        replay.session.start_turn(&Prompt::text("go"));
        replay.settle();
        let start = replay.take("turn/start");
        let name = format!("turn{n}");
        replay.tell(&json!({"id": start["id"], "result": {"turn": {"id": name}}}));
        replay.end_turn(&name, "completed");
        start["params"].get("serviceTier").cloned()
    };
    assert_eq!(tier(&mut replay, 1), None);
    for (text, expected) in [("/fast on", Some(json!("fast"))), ("/fast off", None)] {
        let request = command(&mut replay, text, "thread/settings/update");
        assert_eq!(request["params"]["serviceTier"], expected.clone().unwrap_or_default());
        answer(&mut replay, &request, json!({}));
        assert_eq!(tier(&mut replay, 2), expected, "{text}");
    }
}

#[test]
fn a_plan_is_made_in_one_turn_and_the_next_one_acts() {
    let mut replay = ready(&launch(Mode::AcceptEdits));
    let start = command(&mut replay, "/plan the way", "turn/start");
    assert_eq!(start["params"]["input"][0]["text"], "the way");
    assert_eq!(start["params"]["collaborationMode"]["mode"], "plan");
    replay.tell(&json!({"id": start["id"], "result": {"turn": {"id": "p"}}}));
    replay.end_turn("p", "completed");
    let start = command(&mut replay, "go", "turn/start");
    assert_eq!(start["params"]["collaborationMode"]["mode"], "default");
}

#[test]
fn skills_that_are_shown_can_be_called() {
    let mut replay = ready(&launch(Mode::Default));
    let request = command(&mut replay, "/skills", "skills/list");
    let skill = json!({"name": "deploy", "path": "/s/SKILL.md", "description": "Ships it"});
    answer(&mut replay, &request, json!({"data": [{"skills": [skill]}]}));
    let text = shown(&replay);
    assert!(text.contains("$deploy: Ships it (/s/SKILL.md)"), "{text}");
    assert!(text.contains("1 skills"), "{text}");
}

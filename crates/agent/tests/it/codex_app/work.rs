//! Work that is not a message, what holds for one turn, and what the server is asked about itself.

use tieline_event::{Errand, Inquiry, Json, Report, ReviewTarget, TurnOptions};

use super::*;

fn work(replay: &mut Replay, errand: Errand) {
    replay.session.start_turn(&Prompt::errand(errand));
    replay.settle();
}

fn reports(replay: &mut Replay) -> Vec<(u64, Result<Report, String>)> {
    replay.session.ledger_mut().take_reports()
}

#[test]
fn work_that_is_not_a_message_has_requests_of_its_own() {
    let mut replay = ready(&launch(Mode::Default));
    work(&mut replay, Errand::Compact);
    let compact = replay.take("thread/compact/start");
    assert_eq!(compact["params"], json!({"threadId": "thread"}));
    let mut replay = ready(&launch(Mode::Default));
    work(&mut replay, Errand::Review { target: ReviewTarget::Branch { branch: "main".into() } });
    let review = replay.take("review/start");
    assert_eq!(review["params"]["target"], json!({"type": "baseBranch", "branch": "main"}));
    let mut replay = ready(&launch(Mode::Default));
    work(&mut replay, Errand::Rollback { turns: 2 });
    let rollback = replay.take("thread/rollback");
    assert_eq!(rollback["params"], json!({"threadId": "thread", "numTurns": 2}));
    replay.tell(&json!({"id": rollback["id"], "result": {"thread": {"id": "thread"}}}));
    let text = shown(&replay);
    assert!(text.contains("turn.completed: Completed"), "{text}");
    assert!(!text.contains("agent_message"), "{text}");
    let mut replay = ready(&launch(Mode::Default));
    work(&mut replay, Errand::Undo);
    let text = shown(&replay);
    assert!(text.contains("turn.completed: Failed") && text.contains("has no undo"), "{text}");
}

#[test]
fn a_command_of_the_users_own_is_the_turn_that_the_server_begins() {
    let mut replay = ready(&launch(Mode::Default));
    work(&mut replay, Errand::Shell { command: "ls | wc".to_owned() });
    let shell = replay.take("thread/shellCommand");
    assert_eq!(shell["params"], json!({"threadId": "thread", "command": "ls | wc"}));
    replay.tell(&json!({"id": shell["id"], "result": {}}));
    let turn = json!({"threadId": "thread", "turn": {"id": "s", "status": "inProgress"}});
    replay.tell(&json!({"method": "turn/started", "params": turn}));
    replay.pass(Duration::from_secs(60));
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
    replay.end_turn("s", "completed");
    let text = shown(&replay);
    assert_eq!(text.matches("turn.started").count(), 1, "{text}");
    assert!(text.contains("turn.completed: Completed"), "{text}");
}

#[test]
fn what_holds_for_one_turn_goes_along_or_is_warned_of() {
    let options = TurnOptions {
        after: Some("resp_1".to_owned()),
        output_schema: Some(Json::from_text(r#"{"type":"object"}"#.to_owned()).unwrap()),
        personality: Some("friendly".to_owned()),
        summary: Some("concise".to_owned()),
    };
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt { options, ..Prompt::text("go") });
    replay.settle();
    let params = replay.take("turn/start")["params"].clone();
    assert_eq!(params["outputSchema"], json!({"type": "object"}));
    assert_eq!(
        (&params["personality"], &params["summary"]),
        (&json!("friendly"), &json!("concise"))
    );
    let text = shown(&replay);
    assert_eq!(text.matches("option_ignored").count(), 1, "{text}");
    assert!(text.contains("Warning option_ignored: response_id"), "{text}");
    // Without a wish nothing is said of them.
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let params = replay.take("turn/start")["params"].clone();
    assert!(params.get("outputSchema").is_none() && params.get("summary").is_none());
    assert!(!shown(&replay).contains("option_ignored"));
}

#[test]
fn the_server_is_asked_about_itself_once_its_thread_is_there() {
    let mut replay = Replay::new(&launch(Mode::Default));
    replay.session.inquire(1, &Inquiry::Tools).unwrap();
    replay.session.inquire(2, &Inquiry::Prompts).unwrap();
    assert!(matches!(reports(&mut replay).as_slice(), [(2, Ok(Report::Prompts(_)))]));
    let id = replay.take_after_settle("initialize");
    replay.tell(&json!({"id": id, "result": {"userAgent": "tieline/0.166.0 (x)"}}));
    let id = replay.take("thread/start")["id"].clone();
    let thread = json!({"thread": {"id": "thread"}, "model": "m", "cwd": "/workspace"});
    replay.tell(&json!({"id": id, "result": thread}));
    let asked = replay.take("mcpServerStatus/list");
    assert_eq!(asked["params"]["threadId"], "thread");
    let tool = json!({"name": "find", "description": "Finds.", "inputSchema": {"type": "object"}});
    let servers = json!({"data": [{"name": "docs", "tools": {"find": tool}}]});
    replay.tell(&json!({"id": asked["id"], "result": servers}));
    let told = reports(&mut replay);
    let [(1, Ok(Report::Tools(tools)))] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((tools[0].server.as_str(), tools[0].name.as_str()), ("docs", "find"));
    assert_eq!(tools[0].input_schema.as_str(), r#"{"type":"object"}"#);

    replay.session.inquire(3, &Inquiry::Skills { dirs: vec![], reload: true }).unwrap();
    replay.settle();
    let at = replay.written.iter().rposition(|line| line["method"] == "skills/list").unwrap();
    let asked = replay.written.remove(at);
    assert_eq!(asked["params"], json!({"cwds": ["/workspace"], "forceReload": true}));
    let skill =
        json!({"name": "s", "description": "d", "path": "/s", "scope": "user", "enabled": true});
    let at = json!({"cwd": "/workspace", "skills": [skill], "errors": [{"path": "/b", "message": "no"}]});
    replay.tell(&json!({"id": asked["id"], "result": {"data": [at]}}));
    let told = reports(&mut replay);
    let [(3, Ok(Report::Skills(at)))] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((at[0].skills[0].scope.as_str(), at[0].errors.len()), ("user", 1));

    replay.session.inquire(4, &Inquiry::Models).unwrap();
    replay.settle();
    let at = replay.written.iter().rposition(|line| line["method"] == "model/list").unwrap();
    let asked = replay.written.remove(at);
    replay.tell(&json!({"id": asked["id"], "error": {"code": -32600, "message": "not now"}}));
    assert_eq!(reports(&mut replay), [(4, Err("not now".to_owned()))]);
}

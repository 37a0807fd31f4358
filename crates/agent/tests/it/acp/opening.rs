//! How a session is opened and set up, and what is told when it cannot be.

use std::path::PathBuf;

use serde_json::{Value, json};
use tieline_agent::{Launch, Resume};
use tieline_event::{
    EndSignal, Extras, FailureCode, Kind, McpServer, McpTransport, Mode, TurnStatus,
};

use super::{Stage, hello, launch, ready};

#[test]
fn the_agent_is_greeted_at_once_and_tells_what_it_can_do_before_any_turn() {
    let mut stage = Stage::new(&launch(Mode::Default));
    let greeting = stage.respond("initialize", hello());
    assert_eq!(greeting["protocolVersion"], 1);
    let can = &greeting["clientCapabilities"];
    assert_eq!(can["fs"], json!({"readTextFile": true, "writeTextFile": true}));
    assert_eq!(can["terminal"], true);
    assert_eq!(can["elicitation"], json!({"form": {}, "url": {}}));
    let session = json!({"compaction": {}, "configOptions": {"boolean": {}}, "notices": {}});
    assert_eq!(can["session"], session);
    let new = stage.respond(
        "session/new",
        json!({"sessionId": "s1", "configOptions": [
            {"id": "model", "category": "model", "type": "select", "currentValue": "m1",
             "options": [{"value": "m1", "name": "One"}, {"value": "m2", "name": "Two"}]},
            {"id": "think", "category": "thought_level", "type": "select", "currentValue": "low",
             "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]}]}),
    );
    assert_eq!(new, json!({"cwd": "/workspace", "mcpServers": []}));
    let configured = stage.kinds().find_map(|kind| match kind {
        Kind::ConversationConfigured(it) => Some(it.clone()),
        _ => None,
    });
    let configured = configured.unwrap();
    assert_eq!(configured.agent_version.as_deref(), Some("1.2.3"));
    assert_eq!(configured.model.as_deref(), Some("m1"));
    assert_eq!(configured.effort.as_deref(), Some("low"));
    let abilities = configured.abilities.unwrap();
    assert_eq!(abilities.modes, Mode::COMMON);
    assert_eq!(abilities.models.len(), 2);
    assert_eq!(abilities.efforts, ["low", "high"]);
    assert!(abilities.images && abilities.steering && abilities.fork);
    assert!(stage.session.ledger().session().is_none(), "a session without a turn may be lost");
    stage.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": [
        {"name": "compact", "description": "Shorten.\nMore.", "input": {"hint": "how"}}]}));
    let commands = stage.kinds().rev().find_map(|kind| match kind {
        Kind::ConversationConfigured(it) => it.abilities.clone(),
        _ => None,
    });
    let command = commands.unwrap().commands.remove(0);
    assert_eq!(
        (command.description.as_deref(), command.hint.as_deref()),
        (Some("Shorten."), Some("how"))
    );
}

#[test]
fn modes_models_and_efforts_are_set_before_the_first_prompt() {
    let launch = Launch { model: Some("m2"), effort: Some("high"), ..launch(Mode::AcceptEdits) };
    let mut stage = Stage::new(&launch);
    stage.start_turn("go");
    stage.respond("initialize", hello());
    let select = |id: &str, category: &str, values: [&str; 2]| {
        json!({"id": id, "category": category, "type": "select", "currentValue": values[0],
               "options": values.map(|value| json!({"value": value, "name": value}))})
    };
    let options = json!([
        select("permission", "mode", ["default", "auto-edit"]),
        select("model", "model", ["m1", "m2"]),
        select("effort", "thought_level", ["low", "high"]),
    ]);
    stage.respond("session/new", json!({"sessionId": "s1", "configOptions": options}));
    let set: Vec<Value> = (0..3).map(|_| stage.take("session/set_config_option")).collect();
    let told: Vec<_> = set
        .iter()
        .map(|it| (it["params"]["configId"].clone(), it["params"]["value"].clone()))
        .collect();
    let expected = [("permission", "auto-edit"), ("model", "m2"), ("effort", "high")];
    assert_eq!(told, expected.map(|(id, value)| (json!(id), json!(value))));
    assert!(stage.written.is_empty(), "the prompt waits: {:?}", stage.written);
    for set in &set[..2] {
        stage.tell(
            &json!({"jsonrpc": "2.0", "id": set["id"], "result": {"configOptions": options}}),
        );
    }
    let error = json!({"code": -32602, "message": "no such effort"});
    stage.tell(&json!({"jsonrpc": "2.0", "id": set[2]["id"], "error": error}));
    assert_eq!(stage.notices("effort_refused"), 1);
    assert_eq!(stage.take("session/prompt")["params"]["prompt"][0]["text"], "go");
}

#[test]
fn the_older_ways_to_set_mode_and_model_are_known() {
    let mut stage = Stage::new(&Launch { model: Some("m2"), ..launch(Mode::Plan) });
    stage.respond("initialize", json!({"protocolVersion": 1}));
    stage.respond(
        "session/new",
        json!({"sessionId": "s1",
            "modes": {"currentModeId": "build", "availableModes": [
                {"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"}]},
            "models": {"currentModelId": "m1", "availableModels": [
                {"modelId": "m1", "name": "One"}, {"modelId": "m2", "name": "Two"}]}}),
    );
    assert_eq!(stage.respond("session/set_mode", json!({}))["modeId"], "plan");
    assert_eq!(stage.respond("session/set_model", json!({}))["modelId"], "m2");
    let told = stage.shown();
    assert!(told.contains("model Some(\"m2\") mode Some(Plan)"), "{told}");
    // And later, by the user.
    stage.session.set_mode(Mode::Default, None);
    stage.settle();
    assert_eq!(stage.respond("session/set_mode", json!({}))["modeId"], "build");
}

#[test]
fn a_choice_that_is_taken_back_before_the_agent_confirms_it_is_sent_again() {
    let modes = json!({"currentModeId": "default", "availableModes": [
        {"id": "default", "name": "Ask"}, {"id": "bypassPermissions", "name": "Never ask"}]});
    let mut stage = Stage::new(&launch(Mode::Default));
    stage.respond("initialize", hello());
    stage.respond("session/new", json!({"sessionId": "s1", "modes": modes}));
    for mode in [Mode::BypassPermissions, Mode::Default, Mode::Default] {
        stage.session.set_mode(mode, None);
        stage.settle();
    }
    stage.start_turn("go");
    assert_eq!(stage.respond("session/set_mode", json!({}))["modeId"], "bypassPermissions");
    assert_eq!(stage.respond("session/set_mode", json!({}))["modeId"], "default");
    assert_eq!(stage.take("session/prompt")["params"]["prompt"][0]["text"], "go");
    assert!(stage.written.is_empty(), "{:?}", stage.written);
}

#[test]
fn planning_may_be_a_switch_of_its_own() {
    let option = |id: &str, values: &[&str]| {
        json!({"id": id, "category": id, "type": "select", "currentValue": values[0],
               "options": values.iter().map(|it| json!({"value": it, "name": it})).collect::<Vec<_>>()})
    };
    let mut stage = Stage::new(&launch(Mode::Plan));
    stage.respond("initialize", hello());
    let options = [
        option("mode", &["agent", "read-only", "agent-full-access"]),
        option("collaboration_mode", &["default", "plan"]),
    ];
    stage.respond("session/new", json!({"sessionId": "s1", "configOptions": options}));
    let first = stage.respond("session/set_config_option", json!({}));
    let second = stage.respond("session/set_config_option", json!({}));
    assert_eq!((&first["value"], &second["value"]), (&json!("read-only"), &json!("plan")));
    stage.session.set_mode(Mode::Yolo, None);
    stage.settle();
    let first = stage.respond("session/set_config_option", json!({}));
    let second = stage.respond("session/set_config_option", json!({}));
    assert_eq!(
        (&first["value"], &second["value"]),
        (&json!("agent-full-access"), &json!("default"))
    );
}

fn resuming(capabilities: Value, fork: bool) -> Stage {
    let resume = Some(Resume { session: "s1", fork, at: None });
    let mut stage = Stage::new(&Launch { resume, ..launch(Mode::Default) });
    stage.start_turn("go on");
    stage.respond("initialize", json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
    stage
}

#[test]
fn a_session_is_resumed_or_loaded_or_said_to_be_gone() {
    let mut stage =
        resuming(json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), false);
    assert_eq!(stage.respond("session/resume", json!({}))["sessionId"], "s1");
    stage.end_turn("end_turn");
    assert_eq!(stage.session.ledger().session(), Some("s1"));

    let stage = resuming(json!({}), false);
    let error = stage.end().error.unwrap();
    assert_eq!(error.code, FailureCode::SessionUnknown);
    assert!(error.hint.unwrap().contains("--fresh"));

    for (code, message) in [(-32002, "gone"), (-32603, "Session not found: s1")] {
        let mut stage = resuming(json!({"loadSession": true}), false);
        stage.refuse("session/load", code, message);
        assert_eq!(stage.end().error.unwrap().code, FailureCode::SessionUnknown, "{message}");
    }
}

#[test]
fn a_branch_is_made_where_the_agent_can() {
    let mut stage = resuming(json!({"sessionCapabilities": {"fork": {}, "resume": {}}}), true);
    stage.respond("session/fork", json!({"sessionId": "s2"}));
    assert_eq!(stage.take("session/prompt")["params"]["sessionId"], "s2");
    let stage = resuming(json!({"sessionCapabilities": {"resume": {}}}), true);
    assert_eq!(stage.end().error.unwrap().code, FailureCode::BadRequest);
}

/// The history is told again by the agent and is ours already.
#[test]
fn history_that_is_loaded_is_not_told_twice() {
    let mut stage = resuming(json!({"loadSession": true}), false);
    let load = stage.take("session/load");
    stage.outputs.clear();
    let history = |stage: &mut Stage| {
        let text = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        stage.update(text("user_message_chunk", "hello"));
        stage.update(text("agent_thought_chunk", "hm"));
        stage.update(text("agent_message_chunk", "old words"));
        stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls",
                            "kind": "execute", "status": "completed", "rawInput": {"command": "ls"}}));
        stage.update(json!({"sessionUpdate": "plan", "entries": []}));
    };
    history(&mut stage);
    stage.update(json!({"sessionUpdate": "session_info_update", "title": "Old"}));
    assert_eq!(stage.items().len(), 0, "{}", stage.shown());
    stage.tell(&json!({"jsonrpc": "2.0", "id": load["id"], "result": {}}));
    // The prompt went out with the answer; what comes now is new.
    stage.take("session/prompt");
    history(&mut stage);
    assert_eq!(stage.items().len(), 4, "{}", stage.shown());
    assert!(stage.shown().contains("plan.updated"));
}

#[test]
fn who_must_log_in_is_told_how() {
    let mut stage = Stage::new(&launch(Mode::Default));
    stage.respond("initialize", hello());
    stage.refuse("session/new", -32000, "Authentication required");
    assert_eq!(stage.notices("cannot_open"), 1, "nobody waited, and still it is told");
    // The next turn tries again.
    stage.start_turn("go");
    stage.refuse("session/new", -32000, "Authentication required");
    let end = stage.end();
    assert_eq!((end.status, end.signal), (TurnStatus::Failed, EndSignal::Wire));
    let error = end.error.unwrap();
    assert_eq!(error.code, FailureCode::NotLoggedIn);
    assert!(error.hint.unwrap().contains("API key, Browser"));
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    for version in [json!(2), json!("1"), Value::Null] {
        let mut stage = Stage::new(&launch(Mode::Default));
        stage.start_turn("go");
        stage.respond("initialize", json!({"protocolVersion": version}));
        assert_eq!(stage.end().error.unwrap().code, FailureCode::Protocol, "{version}");
    }
}

#[test]
fn an_agent_that_does_not_answer_the_greeting_is_given_up() {
    let mut stage = Stage::new(&launch(Mode::Default));
    stage.start_turn("go");
    assert!(stage.ring().is_some());
    assert_eq!(stage.end().error.unwrap().code, FailureCode::AgentCannotStart);
    assert!(stage.session.ledger_mut().take_stop());
}

#[test]
fn what_the_client_brings_goes_along_as_far_as_the_agent_takes_it() {
    let server = |name: &str, transport| McpServer { name: name.to_owned(), transport };
    let pair = || [("A".to_owned(), "1".to_owned())].into();
    let url = || "http://127.0.0.1:1/".to_owned();
    let extras = Extras {
        mcp_servers: vec![
            server(
                "a",
                McpTransport::Stdio {
                    command: "run".to_owned(),
                    args: vec!["x".to_owned()],
                    env: pair(),
                },
            ),
            server("b", McpTransport::Http { url: url(), headers: pair() }),
            server("c", McpTransport::Sse { url: url(), headers: pair() }),
        ],
        directories: vec![PathBuf::from("/more")],
    };
    let mut stage = Stage::new(&Launch { extras: &extras, ..launch(Mode::Default) });
    stage.respond(
        "initialize",
        json!({"protocolVersion": 1, "agentCapabilities": {
            "mcpCapabilities": {"http": true},
            "sessionCapabilities": {"additionalDirectories": {}}}}),
    );
    let new = stage.respond("session/new", json!({"sessionId": "s1"}));
    assert_eq!(new["additionalDirectories"], json!(["/more"]));
    assert_eq!(
        new["mcpServers"],
        json!([
            {"name": "a", "command": "run", "args": ["x"], "env": [{"name": "A", "value": "1"}]},
            {"type": "http", "name": "b", "url": url(), "headers": [{"name": "A", "value": "1"}]},
        ])
    );
    assert_eq!(stage.notices("mcp_server_left_out"), 1);
}

/// An agent that says it is in a mode nobody chose is not let do more by us.
#[test]
fn a_mode_the_agent_takes_by_itself_is_told_and_trusted_only_downwards() {
    let modes = json!({"currentModeId": "default", "availableModes": [
        {"id": "default", "name": "D"}, {"id": "plan", "name": "P"}, {"id": "yolo", "name": "Y"}]});
    let open = || {
        let mut stage = Stage::new(&launch(Mode::Default));
        stage.respond("initialize", hello());
        stage.respond("session/new", json!({"sessionId": "s1", "modes": modes}));
        stage.start_turn("go");
        stage
    };
    let change = |id: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
    let mut stage = open();
    stage.update(change("yolo"));
    assert_eq!(stage.notices("mode_changed"), 1);
    stage.ask(1, "terminal/create", json!({"command": "rm -rf x"}));
    assert_eq!(stage.opened_requests().len(), 1, "still asked");

    let mut stage = open();
    stage.update(change("plan"));
    assert!(stage.shown().contains("mode Some(Plan)"));
    stage.ask(1, "terminal/create", json!({"command": "ls"}));
    assert!(stage.answer_to(1)["error"]["message"].as_str().unwrap().contains("plan"));
}

#[test]
fn a_workspace_under_another_name_is_the_same_workspace() {
    use tieline_agent::acp::AcpDriver;
    let driver = AcpDriver::new(&launch(Mode::Yolo), "x");
    let driver = driver.also_known_as([PathBuf::from("/private/workspace")]);
    let ledger = tieline_agent::Ledger::new(0, None);
    let mut stage = ready(Mode::Yolo);
    stage.session =
        tieline_agent::Session::new(Box::new(driver), ledger, 1 << 20, tieline_event::FrameNo(1));
    stage.session.started();
    stage.settle();
    stage.respond("initialize", hello());
    stage.respond("session/new", json!({"sessionId": "s1"}));
    stage.ask(5, "fs/read_text_file", json!({"path": "/private/workspace/a"}));
    assert_eq!(stage.chores.len(), 1);
}

use serde_json::{Value, json};

use super::*;

/// A session `s` with one prompt running.
fn running() -> Seen {
    let mut seen = Seen::default();
    ask(&mut seen, 0, "session/new", json!({"cwd": "/", "mcpServers": []}));
    answer(&mut seen, 0, json!({"sessionId": "s", "modes": {"currentModeId": "default"}}));
    let prompt = json!([{"type": "text", "text": "go"}]);
    ask(&mut seen, 1, "session/prompt", json!({"sessionId": "s", "prompt": prompt}));
    seen
}

fn ask(seen: &mut Seen, id: u64, method: &str, params: Value) {
    seen.take(Direction::ToAgent, &json!({"id": id, "method": method, "params": params}));
}

fn answer(seen: &mut Seen, id: u64, result: Value) {
    seen.take(Direction::ToClient, &json!({"id": id, "result": result}));
}

fn update(seen: &mut Seen, update: Value) {
    let params = json!({"sessionId": "s", "update": update});
    seen.take(Direction::ToClient, &json!({"method": "session/update", "params": params}));
}

fn tool(seen: &mut Seen, kind: &str, more: Value) {
    let mut call = json!({"sessionUpdate": kind, "toolCallId": "t"});
    let fields = more.as_object().unwrap().clone();
    call.as_object_mut().unwrap().extend(fields);
    update(seen, call);
}

fn chunk(seen: &mut Seen, kind: &str, id: Option<&str>, text: &str) {
    let mut chunk = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    if let Some(id) = id {
        chunk["messageId"] = id.into();
    }
    update(seen, chunk);
}

fn ask_permission(seen: &mut Seen, tool: &str) {
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": tool}, "options": options});
    let method = "session/request_permission";
    seen.take(Direction::ToClient, &json!({"id": 0, "method": method, "params": params}));
}

#[test]
fn chunks_join_by_message_id_or_by_run() {
    let mut seen = running();
    chunk(&mut seen, "agent_message_chunk", Some("a"), "one ");
    chunk(&mut seen, "agent_thought_chunk", None, "hm");
    chunk(&mut seen, "agent_message_chunk", Some("a"), "message");
    chunk(&mut seen, "agent_message_chunk", None, "an");
    chunk(&mut seen, "agent_message_chunk", None, "other");
    chunk(&mut seen, "agent_thought_chunk", None, "hm");
    let story = "user: go\nagent: one message\nthought: hm\nagent: another\nthought: hm\n";
    assert_eq!(seen.only().story(), story);
    assert_eq!(seen.broken, Vec::<String>::new());
}

#[test]
fn fields_of_a_tool_call_merge_and_lists_replace() {
    let mut seen = running();
    let text = |text| json!({"type": "content", "content": {"type": "text", "text": text}});
    let more = json!({"title": "ls", "kind": "execute", "content": [text("a"), text("b")]});
    tool(&mut seen, "tool_call", more);
    tool(&mut seen, "tool_call_update", json!({"status": "in_progress", "content": [text("c")]}));
    tool(&mut seen, "tool_call_update", json!({"status": "completed", "title": null}));
    assert_eq!(seen.only().story(), "user: go\nexecute \"ls\" completed\n  text \"c\"\n");
    let call = seen.only().tools().next().unwrap().clone();
    assert_eq!(call.statuses, ["pending", "in_progress", "completed"]);
    assert_eq!(seen.broken, Vec::<String>::new());
}

#[test]
fn a_terminal_prints_what_each_update_adds() {
    let mut seen = running();
    let printed = |data| json!({"_meta": {"terminal_output": {"terminal_id": "t", "data": data}}});
    tool(&mut seen, "tool_call", json!({"_meta": {"terminal_info": {"cwd": "/"}}, "title": "x"}));
    tool(&mut seen, "tool_call_update", printed("a\n"));
    tool(&mut seen, "tool_call_update", printed("b\n"));
    let exit = json!({"status": "failed", "_meta": {"terminal_exit": {"exit_code": 3}}});
    tool(&mut seen, "tool_call_update", exit);
    let story = "user: go\nother \"x\" failed\n  printed \"a\\nb\\n\"\n  exit 3\n";
    assert_eq!(seen.only().story(), story);
}

#[test]
fn an_update_before_its_tool_call_and_a_second_creation_are_noted() {
    let mut seen = running();
    tool(&mut seen, "tool_call_update", json!({"status": "completed"}));
    ask_permission(&mut seen, "t");
    tool(&mut seen, "tool_call", json!({"title": "x"}));
    tool(&mut seen, "tool_call", json!({"title": "x"}));
    let rules = [
        "an update of the tool call t before it is created",
        "a permission before its tool call t",
        "the tool call t is created twice",
    ];
    assert_eq!(seen.broken, rules);
}

#[test]
fn a_status_that_goes_back_is_noted() {
    let mut seen = running();
    tool(&mut seen, "tool_call", json!({"title": "x", "status": "completed"}));
    tool(&mut seen, "tool_call_update", json!({"status": "completed"}));
    tool(&mut seen, "tool_call_update", json!({"status": "failed"}));
    tool(&mut seen, "tool_call_update", json!({"status": "pending"}));
    let rules = ["t goes back from completed to failed", "t goes back from failed to pending"];
    assert_eq!(seen.broken, rules);
}

#[test]
fn what_comes_after_the_answer_of_its_turn_is_noted() {
    let mut seen = running();
    tool(&mut seen, "tool_call", json!({"title": "x"}));
    answer(&mut seen, 1, json!({"stopReason": "end_turn"}));
    update(&mut seen, json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}));
    assert_eq!(seen.broken, Vec::<String>::new());
    chunk(&mut seen, "agent_message_chunk", None, "late");
    ask_permission(&mut seen, "t");
    assert!(seen.broken[0].starts_with("agent_message_chunk outside a turn"));
    assert_eq!(seen.broken[1], "a permission for t outside a turn");
    let ended = Turn::Ended { stop_reason: "end_turn".to_owned(), usage: Value::Null };
    assert_eq!(seen.only().turns, [ended]);
}

#[test]
fn a_replay_is_no_turn_and_replaces_what_was_shown() {
    let mut seen = running();
    chunk(&mut seen, "agent_message_chunk", Some("a"), "hello");
    answer(&mut seen, 1, json!({"stopReason": "end_turn"}));
    let live = seen.only().story();
    ask(&mut seen, 2, "session/load", json!({"sessionId": "s"}));
    chunk(&mut seen, "user_message_chunk", None, "go");
    chunk(&mut seen, "agent_message_chunk", None, "hello");
    answer(&mut seen, 2, json!({}));
    assert_eq!((seen.only().story(), seen.broken.len()), (live, 0));
    chunk(&mut seen, "agent_message_chunk", None, "late");
    assert_eq!(seen.broken.len(), 1);
}

#[test]
fn a_session_is_known_before_it_is_talked_about() {
    let mut seen = Seen::default();
    update(&mut seen, json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}));
    answer(&mut seen, 7, json!({}));
    let rules = ["usage_update for a session nobody knows", "an answer to nothing: {"];
    assert!(seen.broken.iter().zip(rules).all(|(found, rule)| found.starts_with(rule)));
    assert_eq!(seen.broken.len(), 2);
}

#[test]
fn modes_options_plans_and_commands_are_the_last_ones() {
    let mut seen = running();
    update(&mut seen, json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}));
    update(&mut seen, json!({"sessionUpdate": "config_option_update", "configOptions": [1]}));
    update(&mut seen, json!({"sessionUpdate": "session_info_update", "title": "T"}));
    for status in ["pending", "completed"] {
        let entries = json!([{"content": "step", "priority": "medium", "status": status}]);
        update(&mut seen, json!({"sessionUpdate": "plan", "entries": entries}));
    }
    let view = seen.only();
    assert_eq!(view.modes["currentModeId"], "plan");
    assert_eq!((&view.config_options, &view.title), (&json!([1]), &json!("T")));
    assert_eq!(
        (view.plans.len(), view.story().as_str()),
        (2, "user: go\nplan: step (completed)\n")
    );
}

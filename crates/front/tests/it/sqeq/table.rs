//! Every op and every event: what is sent, and what comes of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tieline_front::sqeq::{Compat, json_schema};

use super::client::{Client, Transport, kind, turn};
use super::play::Stage;

/// A way to answer, once this was heard.
type Reply = fn(&Value) -> Value;

struct Case {
    /// What is sent.
    op: Value,
    /// What is answered to which event.
    reply: Option<(&'static str, Reply)>,
    /// What must come, in this order, perhaps among others.
    told: &'static [&'static str],
}

fn case(op: Value, told: &'static [&'static str]) -> Case {
    Case { op, reply: None, told }
}

fn asked(text: &str, event: &'static str, reply: Reply, told: &'static [&'static str]) -> Case {
    Case { op: turn(text), reply: Some((event, reply)), told }
}

/// Everything in the new spelling.
fn seed() -> Vec<Case> {
    vec![
        case(
            json!({"type": "user_input", "items": [{"type": "text", "text": "say hi"}]}),
            &[
                "task_started",
                "item_started",
                "item_completed",
                "user_message",
                "item_started",
                "agent_message_content_delta",
                "item_completed",
                "agent_message",
                "task_complete",
            ],
        ),
        case(
            turn("think Hm.; plan # Plan; steps a|b"),
            &[
                "reasoning_content_delta",
                "agent_reasoning",
                "plan_delta",
                "item_completed",
                "plan_update",
                "task_complete",
            ],
        ),
        case(
            turn(
                "run ls; patch a.txt; tool Grep; search rust; image /a.png; usage; limit; retry x; warn y; info z",
            ),
            &[
                "exec_command_begin",
                "exec_command_output_delta",
                "exec_command_end",
                "patch_apply_begin",
                "patch_apply_end",
                "turn_diff",
                "mcp_tool_call_begin",
                "mcp_tool_call_end",
                "web_search_begin",
                "web_search_end",
                "view_image_tool_call",
                "token_count",
                "token_count",
                "stream_error",
                "warning",
                "background_event",
                "task_complete",
            ],
        ),
        case(turn("fail Too much."), &["task_started", "error"]),
        asked(
            "ask ls",
            "exec_approval_request",
            |event| {
                json!({
                    "type": "exec_approval", "id": event["msg"]["call_id"],
                    "decision": {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": ["git"]}},
                })
            },
            &["exec_approval_request", "exec_command_begin", "exec_command_end", "task_complete"],
        ),
        asked(
            "ask ls",
            "exec_approval_request",
            |event| {
                json!({
                    "type": "exec_approval", "id": event["id"], "decision": "abort",
                })
            },
            &["exec_approval_request", "error", "turn_aborted"],
        ),
        asked(
            "askpatch a.txt",
            "apply_patch_approval_request",
            |event| {
                json!({
                    "type": "patch_approval", "id": event["msg"]["call_id"],
                    "decision": "approved_for_session",
                })
            },
            &["apply_patch_approval_request", "patch_apply_begin", "patch_apply_end"],
        ),
        asked(
            "asktool find",
            "elicitation_request",
            |event| {
                json!({
                    "type": "resolve_elicitation", "server_name": event["msg"]["server_name"],
                    "request_id": event["msg"]["id"], "decision": "accept",
                })
            },
            &["elicitation_request", "mcp_tool_call_begin", "mcp_tool_call_end"],
        ),
        asked(
            "question Which?",
            "request_user_input",
            |event| {
                json!({
                    "type": "user_input_answer", "id": event["msg"]["turn_id"],
                    "response": {"answers": {"db": {"answers": ["SQLite"]}}},
                })
            },
            &["request_user_input", "agent_message", "task_complete"],
        ),
        asked(
            "leaveplan Do it.",
            "request_user_input",
            |event| {
                json!({
                    "type": "user_input_answer", "id": event["id"],
                    "response": {"answers": {"plan": {"answers": ["Yes, and ask"]}}},
                })
            },
            &["request_user_input", "agent_message", "task_complete"],
        ),
        asked("hold", "task_started", |_| json!({"type": "interrupt"}), &["error", "turn_aborted"]),
        case(
            json!({"type": "override_turn_context", "model": "m3", "effort": "high",
            "approval_policy": "untrusted", "sandbox_policy": {"type": "workspace-write"},
            "personality": "friendly", "summary": "concise"}),
            &[],
        ),
        case(turn("tell"), &["agent_message", "task_complete"]),
        case(json!({"type": "compact"}), &["task_started", "context_compacted", "task_complete"]),
        case(
            json!({"type": "review", "review_request": {
            "target": {"type": "uncommittedChanges"}, "user_facing_hint": "all"}}),
            &["task_started", "entered_review_mode", "exited_review_mode", "task_complete"],
        ),
        case(
            json!({"type": "undo"}),
            &["task_started", "undo_started", "undo_completed", "task_complete"],
        ),
        case(json!({"type": "thread_rollback", "num_turns": 2}), &["thread_rolled_back"]),
        case(json!({"type": "thread_rollback", "num_turns": 9}), &["error"]),
        case(
            json!({"type": "run_user_shell_command", "command": "git status"}),
            &["task_started", "exec_command_begin", "exec_command_end", "task_complete"],
        ),
        case(json!({"type": "list_skills", "cwds": ["/r"]}), &["list_skills_response"]),
        case(json!({"type": "list_custom_prompts"}), &["list_custom_prompts_response"]),
        case(json!({"type": "list_mcp_tools"}), &["mcp_list_tools_response"]),
        case(json!({"type": "list_models"}), &["list_models_response"]),
        case(json!({"type": "add_to_history", "text": "a line"}), &[]),
        case(
            json!({"type": "get_history_entry_request", "offset": 0, "log_id": 0}),
            &["get_history_entry_response"],
        ),
        case(json!({"type": "get_path"}), &["conversation_path"]),
        case(json!({"type": "set_thread_name", "name": "N"}), &["thread_name_updated"]),
        case(json!({"type": "authenticate", "token": "t"}), &["warning"]),
        // Known, and without an effect here.
        case(json!({"type": "get_history"}), &["warning"]),
        case(json!({"type": "refresh_mcp_servers"}), &["warning"]),
        case(json!({"type": "clean_background_terminals"}), &["warning"]),
        case(json!({"type": "reload_user_config"}), &["warning"]),
        case(
            json!({"type": "dynamic_tool_response", "id": "c",
            "response": {"contentItems": [], "success": true}}),
            &["warning"],
        ),
        case(
            json!({"type": "request_permissions_response", "id": "c", "response": {}}),
            &["warning"],
        ),
        case(json!({"type": "configure_session", "cwd": "/"}), &["session_configured"]),
        case(json!({"type": "shutdown"}), &["shutdown_complete"]),
    ]
}

/// What only the old spelling has.
fn upstream() -> Vec<Case> {
    vec![
        case(
            turn("think Hm.; say hi"),
            &[
                "agent_reasoning_section_break",
                "agent_reasoning_delta",
                "agent_reasoning",
                "agent_message_delta",
                "agent_message",
                "task_complete",
            ],
        ),
        case(json!({"type": "shutdown"}), &["shutdown_complete"]),
    ]
}

/// Events that nothing here is the cause of, and why.
const NEVER: &[(&str, &str)] = &[
    ("deprecation_notice", "our events have no such notice; a warning says it"),
    ("model_reroute", "an agent's other model is told as its configuration"),
    ("raw_response_completed", "the end of a step is a `task_complete` with its `response_id`"),
    ("agent_reasoning_raw_content", "our events do not tell a summary from the words themselves"),
    ("agent_reasoning_raw_content_delta", "the same"),
    ("reasoning_raw_content_delta", "the same"),
    ("terminal_interaction", "what is typed into a command is part of the agent's call"),
    ("patch_apply_updated", "a change is told when it is whole"),
    ("dynamic_tool_call_request", "clients register no tools here"),
    ("request_permissions", "what an agent wants is asked as leave for a call"),
    ("mcp_startup_update", "agents start their servers before they say that they are there"),
    ("mcp_startup_complete", "the same"),
    ("skills_update_available", "skills are looked up when they are asked for"),
];

fn kinds_in_schema(definition: &str) -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let kinds = schema["$defs"][definition]["anyOf"].as_array().unwrap();
    let name = |kind: &Value| kind["properties"]["type"]["const"].as_str().unwrap().to_owned();
    kinds.iter().map(name).collect()
}

async fn play(compat: Compat, cases: Vec<Case>, sent: &mut BTreeSet<String>) -> BTreeSet<String> {
    let stage = Stage::new();
    let mut client = Client::new(&stage, Transport::Stdio, compat).await;
    if compat == Compat::Seed {
        client.configure().await;
        sent.insert("configure_session".to_owned());
    }
    for (at, Case { op, reply, told }) in cases.into_iter().enumerate() {
        let from = client.heard.len();
        let id = format!("op-{at}");
        sent.insert(op["type"].as_str().unwrap().to_owned());
        client.submit(&id, op.clone()).await;
        if let Some((event, reply)) = reply {
            let event = client.until_that(|it| kind(it) == event && it["id"] == id).await;
            let op = reply(&event);
            sent.insert(op["type"].as_str().unwrap().to_owned());
            client.submit(&format!("{id}-reply"), op).await;
        }
        let Some(last) = told.last() else { continue };
        let is_it = |event: &Value| {
            let is_part = *last == "task_complete" && event["msg"]["scope"] == "turn";
            kind(event) == *last && event["id"] == id && !is_part
        };
        client.until_that(is_it).await;
        let mut heard = client.heard[from..].iter().filter(|event| event["id"] == id).map(kind);
        for wanted in told {
            assert!(
                heard.any(|it| it == *wanted),
                "{op}: no {wanted} in {:#?}",
                &client.heard[from..]
            );
        }
    }
    let heard = client.kinds().into_iter().collect();
    client.end().await;
    heard
}

#[tokio::test]
async fn every_op_and_every_event_has_a_case_or_a_reason() {
    let mut sent = BTreeSet::new();
    let mut heard = play(Compat::Seed, seed(), &mut sent).await;
    heard.extend(play(Compat::Upstream, upstream(), &mut sent).await);
    assert_eq!(sent, kinds_in_schema("Op"), "ops");
    let never: BTreeSet<String> = NEVER.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    assert!(heard.is_disjoint(&never), "{:?}", heard.intersection(&never));
    heard.extend(never);
    assert_eq!(heard, kinds_in_schema("EventMsg"), "events");
}

//! What the server offers, what the user chooses of it, and what a client brings along.

use tieline_event::{Extras, McpServer, McpTransport};

use super::*;

/// The connection is there; gives the request that opens the thread and what is kept of it.
fn opening(launch: &Launch<'_>) -> (Replay, Value, String) {
    let mut replay = Replay::new(launch);
    let id = replay.take("initialize")["id"].clone();
    let greeting = json!({"id": id, "result": {"userAgent": "tieline/0.166.0 (x)"}});
    replay.session.read(format!("{greeting}\n").as_bytes(), |_, _| {});
    let mut kept = Vec::new();
    let (written, _) = replay.session.take_writes(|_, line| kept.extend_from_slice(&line));
    let open = written.split(|byte| *byte == b'\n').nth(1).unwrap();
    let open = serde_json::from_slice(open).unwrap();
    replay.settle();
    (replay, open, String::from_utf8(kept).unwrap())
}

fn opened(replay: &mut Replay, open: &Value, sandbox: &Value) {
    replay.tell(&json!({"id": open["id"], "result": {
        "thread": {"id": "thread"}, "model": "big", "cwd": "/workspace", "sandbox": sandbox,
        "reasoningEffort": "medium",
    }}));
}

#[test]
fn what_there_is_to_choose_from_is_told_without_a_turn() {
    let (mut replay, open, _) = opening(&launch(Mode::Default));
    opened(&mut replay, &open, &Value::Null);
    let id = replay.take("model/list")["id"].clone();
    let efforts = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({"reasoningEffort": name})).collect()
    };
    replay.tell(&json!({"id": id, "result": {"data": [
        {"id": "big", "supportedReasoningEfforts": efforts(&["low", "high"]), "isDefault": true},
        {"id": "small", "supportedReasoningEfforts": efforts(&["low"])},
    ]}}));
    let text = shown(&replay);
    assert!(text.contains("effort medium"), "{text}");
    assert!(text.contains("11 commands, 2 models, 2 efforts"), "{text}");
    replay.outputs.clear();
    assert!(replay.session.set_model(Some("small")));
    replay.settle();
    assert!(shown(&replay).contains("2 models, 1 efforts"), "{}", shown(&replay));
}

#[test]
fn an_effort_goes_with_the_thread_and_with_each_turn() {
    let launch = Launch { effort: Some("high"), ..launch(Mode::Default) };
    let (mut replay, open, _) = opening(&launch);
    assert_eq!(open["params"]["config"], json!({"model_reasoning_effort": "high"}));
    opened(&mut replay, &open, &Value::Null);
    assert!(replay.session.set_effort(Some("low")));
    assert!(!replay.session.set_effort(None), "the server's own choice needs a new thread handle");
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    assert_eq!(replay.take("turn/start")["params"]["effort"], "low");
    assert!(shown(&replay).contains("effort low"), "{}", shown(&replay));
}

#[test]
fn a_client_s_servers_and_directories_come_beside_the_user_s_own() {
    let env = [("TOKEN".to_owned(), "hunter2".to_owned())].into();
    let stdio = McpTransport::Stdio { command: "/bin/srv".to_owned(), args: vec![], env };
    let headers = [("X-Key".to_owned(), "abc".to_owned())].into();
    let http = McpTransport::Http { url: "https://x/?k=1".to_owned(), headers };
    let sse = McpTransport::Sse { url: "https://y/".to_owned(), headers: BTreeMap::new() };
    let server = |name: &str, transport| McpServer { name: name.to_owned(), transport };
    let extras = Extras {
        mcp_servers: vec![server("my files", stdio), server("web", http), server("old", sse)],
        directories: vec!["/other".into(), "/own".into()],
    };
    let launch = Launch { extras: &extras, ..launch(Mode::AcceptEdits) };
    let (mut replay, open, kept) = opening(&launch);
    assert_eq!(
        open["params"]["config"],
        json!({
            "mcp_servers.my_files":
                {"command": "/bin/srv", "args": [], "env": {"TOKEN": "hunter2"}},
            "mcp_servers.web": {"url": "https://x/?k=1", "http_headers": {"X-Key": "abc"}},
        })
    );
    assert!(kept.contains("[secret]"), "{kept}");
    for secret in ["hunter2", "\"abc\"", "k=1"] {
        assert!(!kept.contains(secret), "{kept}");
    }
    assert!(shown(&replay).contains("mcp_not_used"), "{}", shown(&replay));
    let own = json!({"type": "workspaceWrite", "writableRoots": ["/own"], "networkAccess": false});
    opened(&mut replay, &open, &own);
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let policy = replay.take("turn/start")["params"]["sandboxPolicy"].clone();
    assert_eq!(policy["writableRoots"], json!(["/own", "/other"]));
    replay.tell(&json!({"method": "mcpServer/startupStatus/updated", "params":
        {"name": "web", "status": "failed", "error": "refused"}}));
    assert!(shown(&replay).contains("mcp_failed: the MCP server web did not start: refused"));
}

#[test]
fn a_thread_s_name_is_the_conversation_s_title() {
    let mut replay = ready(&launch(Mode::Default));
    let named = |thread: &str, name: Value| json!({"method": "thread/name/updated", "params": {"threadId": thread, "threadName": name}});
    replay.tell(&named("other", json!("Not mine")));
    replay.tell(&named("thread", Value::Null));
    assert_eq!(shown(&replay), "");
    replay.tell(&named("thread", json!("Fix the build\nand more")));
    assert!(shown(&replay).contains("title \"Fix the build\""), "{}", shown(&replay));
}

#[test]
fn a_command_that_lacks_something_fails_before_the_server_hears_of_it() {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("/review-branch"));
    replay.settle();
    let text = shown(&replay);
    assert!(text.contains("turn.completed: Failed by Wire"), "{text}");
    assert!(text.contains("/review-branch needs the base branch"), "{text}");
    assert_eq!(replay.written, Vec::<Value>::new());
}

#[test]
fn a_command_that_does_one_plain_thing_has_a_gist() {
    let mut replay = running();
    replay.tell(&json!({"method": "item/started", "params": {"threadId": "thread", "item": {
        "type": "commandExecution", "id": "c", "command": "cat a", "status": "inProgress",
        "commandActions": [{"type": "read", "command": "cat a", "name": "a", "path": "/w/a"}],
    }}}));
    let text = shown(&replay);
    assert!(text.contains("[Read \"Read file '/w/a'\" /w/a]"), "{text}");
}

//! What a session does: order, replacing, steering, ends, limits.

use serde_json::json;
use tieline_front::sqeq::Compat;

use super::client::{Client, Transport, kind, turn};
use super::play::Stage;

async fn seed(stage: &Stage) -> Client {
    let mut client = Client::new(stage, Transport::Stdio, Compat::Seed).await;
    client.configure().await;
    client.heard.clear();
    client
}

async fn upstream(stage: &Stage) -> Client {
    let mut client = Client::new(stage, Transport::Stdio, Compat::Upstream).await;
    let configured = client.until("session_configured").await;
    assert_eq!(configured["id"], "", "nobody asked for it");
    client.heard.clear();
    client
}

/// What was heard of a task, without the pieces.
fn ends(client: &Client, id: &str) -> Vec<String> {
    let mine = client.heard.iter().filter(|event| event["id"] == id);
    let ends = ["task_started", "error", "turn_aborted", "task_complete", "agent_message"];
    mine.map(kind).filter(|kind| ends.contains(&kind.as_str())).collect()
}

#[tokio::test]
async fn nothing_but_configuring_comes_first() {
    let stage = Stage::new();
    let mut client = Client::new(&stage, Transport::Stdio, Compat::Seed).await;
    client.say("1", "say hi").await;
    let told = client.next().await.unwrap();
    assert_eq!((&told["id"], &told["msg"]["type"]), (&json!("1"), &json!("error")));
    assert!(told["msg"]["message"].as_str().unwrap().contains("configure_session"), "{told}");
    client.configure().await;
    client.say("2", "say hi").await;
    client.until_done("2").await;
    client.end().await;
}

#[tokio::test]
async fn the_findings_of_a_review_reach_the_client_in_full() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    let long = "x".repeat(40 * 1024);
    let outcome = json!({
        "findings": [
            {"title": "[P1] Close it", "body": "It leaks", "confidence": 0.5, "priority": 1,
             "path": "/p/a.rs", "lines": {"first": 10, "last": 12}},
            {"title": "Name it"},
        ],
        "correctness": "patch is incorrect", "explanation": long, "confidence": 0.75,
    });
    client.say("1", &format!("review {outcome}")).await;
    let exited = client.until("exited_review_mode").await;
    let expected = json!({
        "findings": [
            {"title": "[P1] Close it", "body": "It leaks", "confidence_score": 0.5, "priority": 1,
             "code_location": {
                 "absolute_file_path": "/p/a.rs", "line_range": {"start": 10, "end": 12}}},
            {"title": "Name it", "body": "", "confidence_score": 0.0, "priority": 2,
             "code_location": {"absolute_file_path": "", "line_range": {"start": 0, "end": 0}}},
        ],
        "overall_correctness": "patch is incorrect", "overall_explanation": long,
        "overall_confidence_score": 0.75,
    });
    assert_eq!(exited["msg"]["review_output"], expected);
    client.until_done("1").await;
    client.end().await;
}

#[tokio::test]
async fn a_new_turn_replaces_the_running_one() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    client.say("1", "hold").await;
    client.until("task_started").await;
    client.say("2", "say second").await;
    client.until_done("2").await;
    assert_eq!(ends(&client, "1"), ["task_started", "error", "turn_aborted"]);
    let aborted = client.heard.iter().find(|event| kind(event) == "turn_aborted").unwrap();
    assert_eq!(aborted["msg"]["reason"], "replaced");
    assert_eq!(ends(&client, "2"), ["task_started", "agent_message", "task_complete"]);
    // Three at once: each ends, and the last one is done.
    client.heard.clear();
    for (id, text) in [("3", "hold"), ("4", "hold"), ("5", "say last")] {
        client.say(id, text).await;
    }
    client.until_done("5").await;
    for id in ["3", "4"] {
        assert!(ends(&client, id).ends_with(&["turn_aborted".to_owned()]), "{:?}", client.heard);
    }
    client.end().await;
}

#[tokio::test]
async fn configuring_again_stops_what_runs_and_keeps_the_session() {
    let stage = Stage::new();
    let mut client = Client::new(&stage, Transport::Stdio, Compat::Seed).await;
    client.submit("0", json!({"type": "configure_session", "model": "m1"})).await;
    let first = client.until("session_configured").await;
    client.say("1", "hold").await;
    client.until("task_started").await;
    let again = json!({
        "type": "configure_session", "model": "m2", "approval_policy": "never",
        "sandbox_policy": {"mode": "danger-full-access"}, "instructions": "be kind",
    });
    client.submit("2", again).await;
    client.until_done("1").await;
    // What ran has ended before it is told.
    let second = client.until("session_configured").await;
    assert_eq!(first["msg"]["session_id"], second["msg"]["session_id"]);
    assert_eq!(second["msg"]["model"], "m2");
    assert_eq!(second["msg"]["sandbox_policy"]["type"], "danger-full-access");
    client.say("3", "tell").await;
    let end = client.until_done("3").await;
    let told = end["msg"]["last_agent_message"].as_str().unwrap().to_owned();
    assert!(told.contains("Yolo") && told.contains("m2"), "{told}");
    let warned = client.heard.iter().find(|event| event.to_string().contains("instructions"));
    assert_eq!(warned.expect("what has no effect is said")["id"], "2");
    client.end().await;
}

#[tokio::test]
async fn upstream_steers_the_running_task_and_ends_it_once() {
    let stage = Stage::new();
    let mut client = upstream(&stage).await;
    client.say("1", "cut Hello; step r1").await;
    client.until("agent_message_delta").await;
    client.say("2", "say steered; step r2").await;
    let end = client.until_done("1").await;
    assert_eq!(end["msg"], json!({"type": "task_complete", "last_agent_message": "steered"}));
    assert_eq!(ends(&client, "2"), Vec::<String>::new(), "it is part of the first task");
    assert!(!client.heard.iter().any(|event| kind(event).starts_with("item_")));
    client.say("3", "hold").await;
    client.until("task_started").await;
    client.submit("4", json!({"type": "interrupt"})).await;
    client.until_done("3").await;
    assert_eq!(ends(&client, "3"), ["task_started", "turn_aborted"]);
    client.say("5", "fail It broke.").await;
    client.until("task_complete").await;
    assert_eq!(ends(&client, "5"), ["task_started", "error", "task_complete"]);
    client.end().await;
}

#[tokio::test]
async fn upstream_says_nothing_to_what_it_does_not_understand() {
    let stage = Stage::new();
    let mut client = upstream(&stage).await;
    for line in ["not json", "", r#"{"id":"1","op":{"type":"bogus_op"}}"#, "[1]"] {
        client.send(line).await;
    }
    client.submit("2", json!({"type": "configure_session"})).await;
    client.submit("3", json!({"type": "interrupt"})).await;
    client.submit("4", json!({"type": "shutdown"})).await;
    let told = client.rest().await;
    assert_eq!(told, [json!({"id": "4", "msg": {"type": "shutdown_complete"}})]);
    client.end().await;
}

#[tokio::test]
async fn upstream_spells_as_the_old_program_did() {
    let stage = Stage::new();
    let mut client = upstream(&stage).await;
    client.say("1", "think Hm.; askpatch a.txt; run ls; say Done.").await;
    let request = client.until("apply_patch_approval_request").await;
    assert_eq!(request["msg"]["changes"], json!({"a.txt": {"add": {"content": "alpha\n"}}}));
    // By the submission that began the task, as old clients do.
    let approval = json!({"type": "patch_approval", "id": "1", "decision": "approved"});
    client.submit("2", approval).await;
    client.until_done("1").await;
    let kinds: Vec<String> = client.kinds();
    assert_eq!(
        kinds,
        [
            "task_started",
            "agent_reasoning_section_break",
            "agent_reasoning_delta",
            "agent_reasoning",
            "apply_patch_approval_request",
            "patch_apply_begin",
            "patch_apply_end",
            "turn_diff",
            "agent_message_delta",
            "agent_message",
            "exec_command_begin",
            "exec_command_output_delta",
            "exec_command_end",
            "agent_message_delta",
            "agent_message",
            "task_complete",
        ]
    );
    let begin = client.heard.iter().find(|event| kind(event) == "patch_apply_begin").unwrap();
    assert_eq!(begin["msg"]["auto_approved"], false);
    client.end().await;
}

#[tokio::test]
async fn a_line_that_is_none_is_told_and_the_next_is_read() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    let lines = ["not json", "{\"id\":\"1\"}", &"x".repeat(100 * 1024), "{\"id\":\"1\",\"op\":{}}"];
    for line in lines {
        client.send(line).await;
        let told = client.next().await.unwrap();
        assert_eq!((&told["id"], kind(&told).as_str()), (&json!(""), "warning"), "{told}");
    }
    client.send("\n\r").await;
    client.say("2", "say hi").await;
    client.until_done("2").await;
    client.end().await;
}

#[tokio::test]
async fn an_answer_to_nothing_is_told() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    client.say("1", "ask ls").await;
    let request = client.until("exec_approval_request").await;
    let id = request["msg"]["call_id"].clone();
    let decide = |decision: &str| json!({"type": "exec_approval", "id": id, "decision": decision});
    client.send(&json!({"id": "2", "op": decide("maybe")}).to_string()).await;
    client.until_that(|event| event["id"] == "2" && kind(event) == "warning").await;
    client.submit("3", decide("denied")).await;
    client.until_done("1").await;
    assert!(!client.kinds().contains(&"exec_command_begin".to_owned()), "it never ran");
    client.submit("4", decide("approved")).await;
    client.until_that(|event| event["id"] == "4" && kind(event) == "warning").await;
    let late = json!({"type": "user_input_answer", "id": "1", "response": {"answers": {}}});
    client.submit("5", late).await;
    client.until_that(|event| event["id"] == "5" && kind(event) == "warning").await;
    client.end().await;
}

#[tokio::test]
async fn a_question_is_answered_in_every_form_clients_write() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    for (n, (answer, understood)) in [
        (json!({"answers": ["SQLite"]}), r#"["SQLite"]"#),
        (json!({"selected": ["SQLite"], "other": "in memory"}), r#"["SQLite", "in memory"]"#),
        (json!({"selected": ["SQLite"], "other": null}), r#"["SQLite"]"#),
        (json!({"selected": [], "other": "a file"}), r#"["a file"]"#),
        (json!({"other": "a file"}), r#"["a file"]"#),
        (json!(["SQLite"]), r#"["SQLite"]"#),
        (json!("SQLite"), r#"["SQLite"]"#),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("turn-{n}");
        client.say(&id, "question Which?").await;
        let asked = client.until("request_user_input").await;
        assert_eq!(asked["msg"]["questions"][0]["options"][1]["value"], "sqlite", "{asked}");
        let response = json!({"answers": {"db": answer}});
        let op = json!({"type": "user_input_answer", "id": id, "response": response});
        client.submit(&format!("answer-{n}"), op).await;
        let said = client.until("agent_message").await;
        assert!(said.to_string().contains(&understood.replace('"', "\\\"")), "{answer}: {said}");
        client.until_done(&id).await;
    }
    client.end().await;
}

#[tokio::test]
async fn an_answer_in_no_known_form_is_an_error_and_the_question_waits() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    client.say("1", "question Which?").await;
    client.until("request_user_input").await;
    for (n, response) in [
        json!({"answers": {"db": {"chosen": ["SQLite"]}}}),
        json!({"answers": {"db": {"selected": "SQLite"}}}),
        json!({"selected": ["SQLite"]}),
        json!({"answers": ["SQLite"]}),
        json!(null),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("bad-{n}");
        let op = json!({"type": "user_input_answer", "id": "1", "response": response});
        client.send(&json!({"id": id, "op": op}).to_string()).await;
        client.until_that(|event| event["id"] == id && kind(event) == "error").await;
    }
    let response = json!({"answers": {"db": {"answers": ["SQLite"]}}});
    client.submit("2", json!({"type": "user_input_answer", "id": "1", "response": response})).await;
    client.until_done("1").await;
    client.end().await;
}

#[tokio::test]
async fn who_never_wants_to_be_asked_is_not() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    let mut never = turn("ask ls; say on");
    never["approval_policy"] = "never".into();
    never["sandbox_policy"] = json!({"type": "read-only"});
    client.submit("1", never).await;
    client.until_done("1").await;
    assert!(!client.kinds().contains(&"exec_approval_request".to_owned()));
    client.end().await;
}

#[tokio::test]
async fn a_conversation_goes_on_with_what_was_said() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    client.say("1", "run ls; say First.").await;
    client.until_done("1").await;
    client.end().await;
    let mut client = Client::new(&stage, Transport::Unix, Compat::Seed).await;
    client.submit("0", json!({"type": "configure_session", "resume": "session-9"})).await;
    client.until("error").await;
    client.submit("0", json!({"type": "configure_session", "resume": "session-1"})).await;
    let configured = client.until("session_configured").await;
    assert_eq!(configured["msg"]["session_id"], "session-1");
    let messages = configured["msg"]["initial_messages"].as_array().unwrap();
    let kinds: Vec<&str> = messages.iter().map(|it| it["type"].as_str().unwrap()).collect();
    for kind in ["user_message", "exec_command_end", "agent_message", "task_complete"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    client.say("1", "say Second.").await;
    let end = client.until_done("1").await;
    assert_eq!(end["msg"]["last_agent_message"], "Second.");
    client.end().await;
}

#[tokio::test]
async fn when_the_input_ends_the_task_goes_on_and_nobody_is_asked() {
    for transport in [Transport::Stdio, Transport::Channel] {
        let stage = Stage::new();
        let mut client = Client::new(&stage, transport, Compat::Seed).await;
        client.submit("0", json!({"type": "configure_session"})).await;
        client.say("1", "ask ls; say Done without.").await;
        client.hang_up().await;
        let told = client.rest().await;
        let last = told.last().unwrap();
        assert_eq!(kind(last), "task_complete", "{transport:?}: {told:?}");
        assert_eq!(last["msg"]["last_agent_message"], "Done without.");
        client.end().await;
    }
}

#[tokio::test]
async fn a_client_that_is_gone_ends_its_session() {
    for transport in Transport::ALL {
        let stage = Stage::new();
        let mut client = Client::new(&stage, transport, Compat::Seed).await;
        client.configure().await;
        client.say("1", "hold").await;
        client.until("task_started").await;
        client.end().await;
        let over = tokio::time::timeout(std::time::Duration::from_secs(20), until_over(&stage));
        assert!(over.await.is_ok(), "{transport:?}: the turn goes on without anybody");
    }
}

#[tokio::test]
async fn a_client_that_reads_late_gets_every_byte_in_fewer_pieces() {
    const PIECES: usize = 200_000;
    for transport in [Transport::Stdio, Transport::Channel] {
        let stage = Stage::new();
        let mut client = Client::new(&stage, transport, Compat::Seed).await;
        client.configure().await;
        client.heard.clear();
        client.say("1", &format!("big {PIECES}; say end")).await;
        client.until("agent_message_content_delta").await;
        // Nothing is read until the agent is done.
        until_over(&stage).await;
        client.until_done("1").await;
        let expected: String = (0..PIECES).map(|at| format!("{at:07} ")).collect();
        let of = |wanted: &str, field: &str| -> Vec<String> {
            let mine = client.heard.iter().filter(|event| kind(event) == wanted);
            mine.map(|event| event["msg"][field].as_str().unwrap().to_owned()).collect()
        };
        let deltas = of("agent_message_content_delta", "delta");
        assert!(deltas.len() < PIECES / 10, "{} pieces", deltas.len());
        // What was said at once may come as a message alone.
        let streamed = deltas.concat();
        let streamed = streamed.strip_suffix("end").unwrap_or(&streamed);
        assert!(streamed == expected, "{transport:?}: {} bytes", streamed.len());
        assert_eq!(of("agent_message", "message"), [expected, "end".to_owned()]);
        client.end().await;
    }
}

/// Waits until the first turn of the first session is over.
async fn until_over(stage: &Stage) {
    let key = tieline_event::ConversationKey::new("session-1").unwrap();
    loop {
        let open = stage.hub.conversation(&key, tieline_hub::OpenOptions::default()).await;
        // One that is just being closed is there again a little later.
        let Ok(open) = open else { continue };
        let mut live = open.subscribe(tieline_event::Seq(0));
        while let Ok(entries) = live.next().await
            && !entries.is_empty()
        {
            for entry in entries {
                if let tieline_hub::Entry::Event(shown) = entry
                    && shown.event.kind.name() == "turn.completed"
                {
                    return;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_session_is_called_as_the_user_calls_it() {
    let stage = Stage::new();
    let mut client = seed(&stage).await;
    client.say("1", "say hi").await;
    client.until_done("1").await;
    client.submit("2", json!({"type": "set_thread_name", "name": "My work"})).await;
    let named = client.until("thread_name_updated").await;
    assert_eq!(named["id"], "2");
    assert_eq!(named["msg"]["thread_name"], "My work");
    client.end().await;
    let key = tieline_event::ConversationKey::new("session-1").unwrap();
    let title: Option<String> = stage.hub.store().conversation(&key).unwrap().unwrap().title;
    assert_eq!(title.as_deref(), Some("My work"));
}

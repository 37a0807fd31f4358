//! The two sequence diagrams of the protocol's description, on every transport.

use serde_json::{Value, json};
use tieline_front::sqeq::Compat;

use super::client::{Client, Transport, kind, turn};
use super::play::Stage;

/// What the diagrams do not show: "some unimportant events may be eliminated for simplicity".
const UNIMPORTANT: [&str; 10] = [
    "item_started",
    "item_completed",
    "user_message",
    "agent_message_content_delta",
    "exec_command_output_delta",
    "patch_apply_begin",
    "patch_apply_end",
    "turn_diff",
    "thread_name_updated",
    "turn_aborted",
];

/// What was heard, a line for each event, in the diagram's order.
fn story(heard: &[Value]) -> Vec<String> {
    let important = heard.iter().filter(|event| !UNIMPORTANT.contains(&kind(event).as_str()));
    let line = |event: &Value| {
        let (id, msg) = (event["id"].as_str().unwrap(), &event["msg"]);
        let more = match kind(event).as_str() {
            "task_complete" => format!(" {} {}", msg["scope"], msg["response_id"]),
            "agent_message" | "error" => format!(" {}", msg["message"]),
            _ => String::new(),
        };
        format!("{id} {}{more}", kind(event))
    };
    important.map(line).collect()
}

async fn basic_flow(transport: Transport) {
    let stage = Stage::new();
    let mut client = Client::new(&stage, transport, Compat::Seed).await;
    // user->>codex: Op::ConfigureSession
    client.submit("0", json!({"type": "configure_session", "model": "m"})).await;
    // codex->>user: Event::SessionConfigured
    client.until("session_configured").await;
    // user->>session: Op::UserTurn
    client.say("1", "ask touch a; step resp_1; patch b.txt; say Done.; step resp_2").await;
    // agent->>task: response (exec); task->>-user: Event::ExecApprovalRequest
    let request = client.until("exec_approval_request").await;
    assert_eq!(request["msg"]["command"], json!(["bash", "-lc", "touch a"]));
    // user->>+task: Op::ExecApproval::Allow
    let id = &request["msg"]["call_id"];
    let approval = json!({"type": "exec_approval", "id": id, "decision": "approved"});
    client.submit("2", approval).await;
    client.until_done("1").await;
    assert_eq!(
        story(&client.heard),
        [
            "0 session_configured",
            "1 task_started",
            "1 exec_approval_request",
            "1 exec_command_begin",
            "1 exec_command_end",
            "1 agent_message \"allowed Once None\"",
            "1 task_complete \"turn\" \"resp_1\"",
            "1 agent_message \"Done.\"",
            "1 task_complete \"turn\" \"resp_2\"",
            "1 task_complete \"task\" \"resp_2\"",
        ],
        "{transport:?}"
    );
    client.submit("3", json!({"type": "shutdown"})).await;
    client.until("shutdown_complete").await;
    assert!(client.next().await.is_none(), "nothing comes after the end");
    client.end().await;
}

async fn task_interrupt(transport: Transport) {
    let stage = Stage::new();
    let mut client = Client::new(&stage, transport, Compat::Seed).await;
    client.configure().await;
    client.heard.clear();
    // user->>session: Op::UserTurn
    client.say("1", "run one; step resp_1; running two").await;
    client
        .until_that(|event| {
            event["msg"]["type"] == "exec_command_output_delta"
                && event["msg"]["chunk"] == "YmVndW4K"
        })
        .await;
    // user->>task1: Op::Interrupt
    client.submit("2", json!({"type": "interrupt"})).await;
    // task1->>-user: Event::Error("interrupted")
    client.until("turn_aborted").await;
    // user->>session: Op::UserTurn w/ response bookmark
    let mut again = turn("run three; step resp_2; tell; step resp_3");
    again["response_id"] = "resp_1".into();
    client.submit("3", again).await;
    client.until_done("3").await;
    let story = story(&client.heard);
    let told = story.iter().find(|line| line.starts_with("3 agent_message")).unwrap();
    assert!(told.contains("after: Some(\\\"resp_1\\\")"), "the agent goes on from there: {told}");
    let story: Vec<&str> =
        story.iter().map(|line| line.split(" \"TurnOptions").next().unwrap()).collect();
    assert_eq!(
        story,
        [
            "1 task_started",
            "1 exec_command_begin",
            "1 exec_command_end",
            "1 task_complete \"turn\" \"resp_1\"",
            "1 exec_command_begin",
            // That it was stopped is told here besides, so that what began ends.
            "1 exec_command_end",
            "1 error \"interrupted\"",
            "3 task_started",
            "3 exec_command_begin",
            "3 exec_command_end",
            "3 task_complete \"turn\" \"resp_2\"",
            "3 agent_message",
            "3 task_complete \"turn\" \"resp_3\"",
            "3 task_complete \"task\" \"resp_3\"",
        ],
        "{transport:?}"
    );
    client.end().await;
}

#[tokio::test]
async fn the_basic_flow_is_the_diagram_on_every_transport() {
    for transport in Transport::ALL {
        basic_flow(transport).await;
    }
}

#[tokio::test]
async fn the_interrupt_is_the_diagram_on_every_transport() {
    for transport in Transport::ALL {
        task_interrupt(transport).await;
    }
}

//! The client of the testkit with other people's agents, so that its own faults are not taken for
//! ours.

use serde_json::{Value, json};
use tieline_testkit::acp::{Adapter, Client, Policy, Role, Schema, Strictness, Turn};
use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{self, AgentEnv, CodexConfig};

async fn start(adapter: Adapter) -> (Client, AgentEnv, ModelServer) {
    assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
    let model = ModelServer::start().await;
    let env = match adapter {
        Adapter::Claude => AgentEnv::claude(&model.url()),
        Adapter::Codex => {
            let config = CodexConfig { model: "gpt-5.5", ..CodexConfig::default() };
            AgentEnv::codex(&model.url(), config)
        }
    };
    let client = Client::start(adapter.program(&env).unwrap()).await;
    (client, env, model)
}

async fn session(client: &Client, env: &AgentEnv) -> String {
    let capabilities = json!({"_meta": {"terminal_output": true}});
    let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
    client.request("initialize", params).await.unwrap();
    let params = json!({"cwd": env.workspace(), "mcpServers": []});
    let session = client.request("session/new", params).await.unwrap();
    session["sessionId"].as_str().unwrap().to_owned()
}

fn prompt(session_id: &str, text: &str) -> Value {
    json!({"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})
}

async fn talks_and_ends(adapter: Adapter) {
    let (client, env, _model) = start(adapter).await;
    let session_id = session(&client, &env).await;
    client.request("session/prompt", prompt(&session_id, "Go. SCENARIO:hello")).await.unwrap();
    let seen = client.seen();
    assert_eq!(seen.broken, Vec::<String>::new());
    assert_eq!(seen.only().text(Role::Agent), "Hello from the fake model.");
    let ended = client.close().await;
    let mut schema = Schema::installed(Strictness::Open).unwrap();
    assert_eq!(schema.faults(&ended.frames), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_agent_acp_talks_and_ends() {
    talks_and_ends(Adapter::Claude).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_acp_talks_and_ends() {
    talks_and_ends(Adapter::Codex).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_is_selected_by_its_kind() {
    let (client, env, _model) = start(Adapter::Claude).await;
    client.on("session/request_permission", Policy::select("allow_once"));
    let session_id = session(&client, &env).await;
    client.request("session/prompt", prompt(&session_id, "Go. SCENARIO:write")).await.unwrap();
    let seen = client.seen();
    assert_eq!(seen.broken, Vec::<String>::new());
    assert_eq!(seen.only().permissions.len(), 1);
    assert_eq!(seen.only().tools().next().unwrap().status(), "completed");
    assert!(env.workspace().join("created-by-agent.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_that_is_left_open_is_cancelled_with_its_turn() {
    let (client, env, _model) = start(Adapter::Claude).await;
    client.on("session/request_permission", Policy::leave_open());
    let session_id = session(&client, &env).await;
    let turn = client.begin("session/prompt", prompt(&session_id, "Go. SCENARIO:write")).await;
    client.wait_open("session/request_permission").await;
    client.cancel(&session_id).await;
    assert_eq!(turn.answer().await.unwrap()["stopReason"], "cancelled");
    let cancelled = client.seen().only().turns.clone();
    assert!(
        matches!(&cancelled[..], [Turn::Ended { stop_reason, .. }] if stop_reason == "cancelled")
    );
}

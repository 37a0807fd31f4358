//! The testkit's own client.

use serde_json::json;
use tieline_testkit::acp::{Client, Frame, Policy};

use super::play::{Scenario, runs_a_command};
use super::stage::Stage;

pub(super) async fn play(stage: &Stage, scenario: &Scenario) -> Vec<Frame> {
    let client = Client::start(stage.tieline()).await;
    client.on("session/request_permission", Policy::select("allow_once"));
    let capabilities = json!({"_meta": {"terminal_output": true}});
    let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
    client.request("initialize", params).await.unwrap();
    let params = json!({"cwd": stage.workspace(), "mcpServers": stage.servers(scenario.mcp)});
    let session = client.request("session/new", params).await.unwrap();
    let session_id = session["sessionId"].as_str().unwrap();
    for say in scenario.turns {
        let prompt = json!([{"type": "text", "text": say.prompt}]);
        let params = json!({"sessionId": session_id, "prompt": prompt});
        let turn = client.begin("session/prompt", params).await;
        if say.cancel {
            client.wait_for("a command", runs_a_command).await;
            client.cancel(session_id).await;
        }
        // Some turns are to fail; what became of it is in the frames.
        turn.answer().await.ok();
    }
    let ended = client.close().await;
    assert!(ended.exit.is_success(), "{:?}\n{}", ended.exit, ended.stderr);
    ended.frames
}

//! The raw ACP client with agents that are a few lines of shell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tieline_testkit::acp::{Answer, Client, Direction, Frame, Policy, Program};

async fn start(script: &str) -> Client {
    let args = vec!["-c".into(), script.into()];
    let cwd = PathBuf::from("/");
    Client::start(Program { path: "/bin/sh".into(), args, env: Vec::new(), cwd }).await
}

#[tokio::test]
async fn answers_find_their_requests_and_every_line_is_kept() {
    let script = r#"
        read -r a; read -r b; read -r junk
        echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":{"x":1}}}'
        echo '{"jsonrpc":"2.0","id":0,"result":"first"}'
        cat >/dev/null; exit 3"#;
    let client = start(script).await;
    let (first, second) = (client.begin("a", json!({})).await, client.begin("b", json!({})).await);
    client.send_raw(b"{ junk").await;
    assert_eq!(first.answer().await, Ok(json!("first")));
    let fault = second.answer().await.unwrap_err();
    assert_eq!((fault.code, fault.message, fault.data), (-32602, "no".into(), json!({"x": 1})));
    let ended = client.close().await;
    assert_eq!(ended.exit.code, Some(3));
    assert!(ended.took < Duration::from_secs(10));
    let lines: Vec<Direction> = ended.frames.iter().map(|frame| frame.direction).collect();
    let (to, from) = (Direction::ToAgent, Direction::ToClient);
    assert_eq!(lines, [to, to, to, from, from]);
    assert_eq!((&ended.frames[2].line[..], &ended.frames[2].value), (&b"{ junk"[..], &None));
}

const ASKS: &str = r#"
    echo '{"jsonrpc":"2.0","id":"q","method":"own/ask","params":{"sessionId":"s"}}'
    read -r reply; echo "$reply""#;

#[tokio::test]
async fn a_policy_answers_and_an_unknown_method_is_an_error() {
    let is_echo =
        |frame: &Frame| frame.direction == Direction::ToClient && frame.method().is_none();
    let client = start(ASKS).await;
    let echo = client.wait_for("the echo", is_echo).await;
    assert_eq!(echo.value.unwrap()["error"]["code"], -32601);

    let client = start(&format!("read -r go\n{ASKS}")).await;
    client.on("own/ask", Policy::result(json!({"yes": true})));
    client.notify("go", json!({})).await;
    let echo = client.wait_for("the echo", is_echo).await;
    assert_eq!(echo.value.unwrap()["result"]["yes"], true);
}

#[tokio::test]
async fn a_request_that_nobody_answers_fails_the_test() {
    let script = format!("read -r go\n{ASKS}");
    let client = start(&script).await;
    client.on("own/ask", Policy::leave_open());
    client.notify("go", json!({})).await;
    let (id, params) = client.wait_open("own/ask").await;
    assert_eq!(params["sessionId"], "s");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(client))).is_err());

    let client = start(&script).await;
    client.on("own/ask", Policy::leave_open());
    client.notify("go", json!({})).await;
    client.wait_open("own/ask").await;
    client.answer(&id, Answer::Result(json!(1))).await;
    drop(client);
}

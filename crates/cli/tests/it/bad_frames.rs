//! `tieline acp` with clients that make mistakes, and with one that hangs up.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tieline_testkit::acp::{Client, Direction, Ended, Fault, Frame, Policy, Program, Role};
use tieline_testkit::probe;

use crate::tieline::Tieline;

/// A user whose demo agent plays this.
fn user(script: &str) -> Tieline {
    let user = Tieline::new().with_config("[agents.demo]\nscript = \"~/play.script\"\n");
    fs::write(user.path("play.script"), script).unwrap();
    user
}

async fn start(user: &Tieline) -> Client {
    start_with(user, &[]).await
}

async fn start_with(user: &Tieline, more: &[&str]) -> Client {
    let command = user.command(&[&["acp", "--agent", "demo"], more].concat());
    let text = |it: &std::ffi::OsStr| it.to_str().unwrap().to_owned();
    let env = command.get_envs().map(|(name, value)| (text(name), text(value.unwrap_or_default())));
    Client::start(Program {
        path: command.get_program().into(),
        args: command.get_args().map(Into::into).collect(),
        env: env.collect(),
        cwd: user.work(),
    })
    .await
}

/// A client that has introduced itself.
async fn editor(user: &Tieline) -> Client {
    let client = start(user).await;
    client.request("initialize", json!({"protocolVersion": 1})).await.unwrap();
    client
}

async fn session(client: &Client, user: &Tieline) -> String {
    let params = json!({"cwd": user.work(), "mcpServers": []});
    let session = client.request("session/new", params).await.unwrap();
    session["sessionId"].as_str().unwrap().to_owned()
}

fn prompt(session_id: &str, text: &str) -> Value {
    json!({"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})
}

/// The agent still does what it is asked, and ends well.
async fn works(client: Client, user: &Tieline) -> Ended {
    let session_id = session(&client, user).await;
    let turn = client.request("session/prompt", prompt(&session_id, "hi")).await.unwrap();
    assert_eq!(turn["stopReason"], "end_turn");
    let seen = client.seen();
    assert!(seen.sessions[&session_id].text(Role::Agent).contains("Fine."));
    let ended = client.close().await;
    assert!(ended.exit.is_success(), "{}", ended.stderr);
    ended
}

/// What is answered to lines that are no request of ours, in order: id and code.
fn faults(ended: &Ended) -> Vec<(Value, i64)> {
    let told = ended.frames.iter().filter(|frame| frame.direction == Direction::ToClient);
    let told = told.filter_map(|frame| frame.value.as_ref()).filter(|it| !it["error"].is_null());
    told.map(|it| (it["id"].clone(), it["error"]["code"].as_i64().unwrap())).collect()
}

async fn code(client: &Client, method: &str, params: Value) -> i64 {
    client.request(method, params).await.unwrap_err().code
}

#[tokio::test]
async fn a_version_is_a_number_and_is_told_again_whenever_asked() {
    let user = user("say Fine.");
    let client = start(&user).await;
    for version in [json!("1"), json!("1.0.0"), json!(null), json!(1.5), json!({})] {
        let params = json!({"protocolVersion": version});
        assert_eq!(code(&client, "initialize", params).await, -32602, "{version}");
    }
    assert_eq!(code(&client, "initialize", json!({})).await, -32602);
    for version in [1, 2, 65535] {
        let params = json!({"protocolVersion": version});
        let answer = client.request("initialize", params).await.unwrap();
        assert_eq!(answer["protocolVersion"], 1, "what we can, whatever is asked for");
    }
    works(client, &user).await;
}

#[tokio::test]
async fn a_session_nobody_knows_is_told_by_its_id() {
    let user = user("say Fine.");
    let client = editor(&user).await;
    let cwd = user.work();
    let of_session = |more: Value| {
        let mut params = json!({"sessionId": "nobody"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    for (method, more) in [
        ("session/prompt", json!({"prompt": [{"type": "text", "text": "hi"}]})),
        ("session/set_mode", json!({"modeId": "plan"})),
        ("session/set_config_option", json!({"configId": "mode", "value": "plan"})),
        ("session/load", json!({"cwd": cwd, "mcpServers": []})),
        ("session/resume", json!({"cwd": cwd, "mcpServers": []})),
        ("session/fork", json!({"cwd": cwd, "mcpServers": []})),
    ] {
        let Fault { code, data, .. } = client.request(method, of_session(more)).await.unwrap_err();
        assert_eq!((code, &data["sessionId"]), (-32002, &json!("nobody")), "{method}");
    }
    // What is not there is as good as deleted.
    client.request("session/delete", of_session(json!({}))).await.unwrap();
    client.request("session/delete", json!({"sessionId": "-"})).await.unwrap();
    let session_id = session(&client, &user).await;
    for _ in 0..2 {
        client.request("session/delete", json!({"sessionId": session_id})).await.unwrap();
    }
    // A notification has no answer, and an unknown one changes nothing.
    client.notify("session/cancel", json!({"sessionId": "nobody"})).await;
    client.notify("session/dance", json!({"sessionId": "nobody"})).await;
    client.notify("_own/notice", json!({})).await;
    client.notify("$/cancel_request", json!({"requestId": 77})).await;
    assert_eq!(faults(&works(client, &user).await).len(), 6);
}

#[tokio::test]
async fn what_the_client_cannot_ask_is_answered_by_the_rule() {
    for (rule, answer, is_done) in [
        (["--on-request", "allow"].as_slice(), None, true),
        (&["--on-request", "allow"], Some(json!({"outcome": 7})), false),
        (&["--on-request", "deny"], None, false),
        (&[], None, false),
        (&[], Some(json!({"outcome": 7})), false),
    ] {
        let user = user("run touch done\nask Colour? | red | blue\nsay It is {answer}.");
        let client = start_with(&user, rule).await;
        client.request("initialize", json!({"protocolVersion": 1})).await.unwrap();
        if let Some(answer) = answer {
            client.on("session/request_permission", Policy::result(answer));
        }
        let session_id = session(&client, &user).await;
        let turn = client.request("session/prompt", prompt(&session_id, "hi")).await.unwrap();
        assert_eq!(turn["stopReason"], "end_turn", "{rule:?}");
        assert_eq!(user.work().join("done").exists(), is_done, "{rule:?}");
        let said = client.seen().sessions[&session_id].text(Role::Agent);
        assert!(!said.contains("red"), "nobody makes up an answer: {said}");
        assert!(client.close().await.exit.is_success());
    }
}

#[tokio::test]
async fn wrong_parameters_are_told_and_nothing_is_done() {
    let user = user("say Fine.");
    let client = editor(&user).await;
    let session_id = session(&client, &user).await;
    let text = json!([{"type": "text", "text": "hi"}]);
    for (method, params) in [
        ("session/new", json!({"cwd": "relative", "mcpServers": []})),
        ("session/new", json!({"mcpServers": []})),
        ("session/new", json!({"cwd": user.work()})),
        ("session/new", json!({"cwd": user.work(), "mcpServers": "none"})),
        ("session/new", json!([])),
        ("session/new", json!(null)),
        ("session/prompt", json!({"sessionId": session_id})),
        ("session/prompt", json!({"sessionId": session_id, "prompt": "hi"})),
        ("session/prompt", json!({"sessionId": 7, "prompt": text})),
        ("session/prompt", json!({"sessionId": session_id, "prompt": [{"type": "dance"}]})),
        ("session/delete", json!({"sessionId": 7})),
        ("session/set_mode", json!({"sessionId": session_id, "modeId": "nonsense"})),
        (
            "session/set_config_option",
            json!({"sessionId": session_id, "configId": "nonsense", "value": "x"}),
        ),
    ] {
        assert_eq!(code(&client, method, params.clone()).await, -32602, "{method} {params}");
    }
    works(client, &user).await;
}

#[tokio::test]
async fn lines_that_are_no_messages_get_one_error_each_and_the_connection_goes_on() {
    let user = user("say Fine.");
    let client = editor(&user).await;
    let line = |text: &'static str| text.as_bytes();
    for bad in [
        line("{\"jsonrpc\": \"2.0\", \"id\": 1"),
        line("hello"),
        b"\xff\xfe",
        line("[]"),
        line("[{\"jsonrpc\":\"2.0\",\"id\":90,\"method\":\"session/list\",\"params\":{}}]"),
        line("7"),
        line("{}"),
        line("{\"jsonrpc\":\"2.0\",\"id\":91}"),
        line("{\"jsonrpc\":\"2.0\",\"id\":92,\"method\":7}"),
        line("{\"jsonrpc\":\"1.0\",\"id\":93,\"method\":\"session/list\",\"params\":{}}"),
        line("{\"jsonrpc\":\"2.0\",\"id\":94,\"method\":\"session/dance\",\"params\":{}}"),
        line("{\"jsonrpc\":\"2.0\",\"id\":95,\"method\":\"_own/method\"}"),
        // Empty lines, and answers to what nobody asked: nothing to say.
        line(""),
        line("{\"jsonrpc\":\"2.0\",\"id\":96,\"result\":{}}"),
        line("{\"jsonrpc\":\"2.0\",\"id\":\"97\",\"error\":{\"code\":1,\"message\":\"no\"}}"),
    ] {
        client.send_raw(bad).await;
    }
    let ended = works(client, &user).await;
    let nobody = Value::Null;
    let told = [
        (nobody.clone(), -32700),
        (nobody.clone(), -32700),
        (nobody.clone(), -32700),
        (nobody.clone(), -32600),
        (nobody.clone(), -32600),
        (nobody.clone(), -32600),
        (nobody.clone(), -32600),
        (91.into(), -32600),
        // Of a message whose method is no text nothing is believed.
        (nobody, -32600),
        (93.into(), -32600),
        (94.into(), -32601),
        (95.into(), -32601),
    ];
    assert_eq!(faults(&ended), told);
}

#[tokio::test]
async fn a_line_over_the_limit_is_told_and_passed_over() {
    let user = user("say Fine.");
    let client = editor(&user).await;
    let mut line = vec![b'x'; 64 * 1024 * 1024 + 1];
    line[..2].copy_from_slice(b"[\"");
    client.send_raw(&line).await;
    let ended = works(client, &user).await;
    assert_eq!(faults(&ended), [(Value::Null, -32600)]);
}

#[tokio::test]
async fn two_prompts_at_once_are_answered_in_order() {
    let user = user("run sleep 0.3\nsay Fine. {prompt}");
    let client = editor(&user).await;
    let session_id = session(&client, &user).await;
    let first = client.begin("session/prompt", prompt(&session_id, "one")).await;
    let second = client.begin("session/prompt", prompt(&session_id, "two")).await;
    let ids = [first.id(), second.id()];
    assert_eq!(second.answer().await.unwrap()["stopReason"], "end_turn");
    assert_eq!(first.answer().await.unwrap()["stopReason"], "end_turn");
    let frames = client.frames();
    let answers: Vec<i64> =
        frames.iter().filter_map(answered).filter(|it| ids.contains(it)).collect();
    assert_eq!(answers, ids);
    let seen = client.seen();
    assert_eq!(seen.broken, Vec::<String>::new());
    let text = seen.only().text(Role::Agent);
    assert!(text.find("one") < text.find("two"), "{text}");
    works(client, &user).await;
}

/// The id of the request that this answers.
fn answered(frame: &Frame) -> Option<i64> {
    let value = frame.value.as_ref().filter(|_| frame.direction == Direction::ToClient)?;
    value.get("result").and(value["id"].as_i64())
}

#[tokio::test]
async fn hanging_up_in_the_middle_of_a_turn_ends_everything_within_seconds() {
    let user = user("run echo started; sleep 1000");
    let client = editor(&user).await;
    let session_id = session(&client, &user).await;
    let _turn = client.begin("session/prompt", prompt(&session_id, "go")).await;
    client.wait_for("a command", |frame| frame.update() == Some("tool_call")).await;
    let marker = format!("HOME={}", user.path("").display().to_string().trim_end_matches('/'));
    let deadline = Instant::now() + Duration::from_secs(10);
    while probe::alive_with(&marker).len() < 3 {
        assert!(Instant::now() < deadline, "tieline, its agent and the command run");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let ended = client.close().await;
    assert!(ended.exit.is_success(), "{:?} {}", ended.exit, ended.stderr);
    assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
    assert_eq!(probe::alive_with(&marker), Vec::<u32>::new());
    let last = user.events(&session_id).pop().unwrap();
    assert_eq!(last["kind"], "conversation.closed");
}

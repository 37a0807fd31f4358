//! The Anthropic Messages side of the scripted model.

use serde_json::json;
use tieline_testkit::model::{Block, ModelServer, Script, Step};

use crate::client::{Answer, ask, post, request, with_results};

const PATH: &str = "/v1/messages?beta=true";

async fn say(server: &ModelServer, text: &str) -> Answer {
    post(&server.url(), PATH, &ask(text)).await
}

#[tokio::test]
async fn hello_streams_word_by_word() {
    let server = ModelServer::start().await;
    let answer = say(&server, "Do it. SCENARIO:hello").await;
    assert_eq!(answer.texts(), ["Hello", " from", " the", " fake", " model."]);
    assert_eq!(answer.types().first().unwrap(), "message_start");
    assert_eq!(answer.types().last().unwrap(), "message_stop");
    assert!(answer.complete);
}

#[tokio::test]
async fn the_last_scenario_of_the_user_counts() {
    let server = ModelServer::start().await;
    let mut body = ask("SCENARIO:shell");
    let again = json!({"role": "user", "content": "And SCENARIO:long:2 now"});
    body["messages"].as_array_mut().unwrap().push(again);
    let answer = post(&server.url(), PATH, &body).await;
    assert_eq!(answer.texts(), ["word0 ", "word1 "]);
}

#[tokio::test]
async fn parallel_tools_are_one_step() {
    let server = ModelServer::start().await;
    let first = say(&server, "SCENARIO:parallel").await;
    let starts = first.events();
    let tools: Vec<_> =
        starts.iter().filter(|e| e["content_block"]["type"] == "tool_use").collect();
    assert_eq!(tools.len(), 2);
    let body = with_results(ask("SCENARIO:parallel"), 2);
    let second = post(&server.url(), PATH, &body).await;
    assert_eq!(second.texts().concat(), "Both ran.");
}

#[tokio::test]
async fn absolute_paths_use_the_workspace_of_the_prompt() {
    let server = ModelServer::start().await;
    let mut body = ask("SCENARIO:read");
    body["stream"] = false.into();
    let answer = post(&server.url(), PATH, &body).await.json();
    assert_eq!(answer["content"][0]["input"]["file_path"], "/ws/here/README.md");
    assert_eq!(answer["stop_reason"], "tool_use");

    server.workspace("/elsewhere");
    let answer = post(&server.url(), PATH, &body).await.json();
    assert_eq!(answer["content"][0]["input"]["file_path"], "/elsewhere/README.md");
}

#[tokio::test]
async fn a_dropped_stream_recovers_on_the_second_attempt() {
    let server = ModelServer::start().await;
    let first = say(&server, "SCENARIO:drop").await;
    assert_eq!((first.complete, first.texts().concat()), (false, "partial ".to_owned()));
    let second = say(&server, "SCENARIO:drop").await;
    assert_eq!(
        (second.complete, second.texts().concat().as_str()),
        (true, "Recovered after a drop.")
    );
    assert!(!say(&server, "SCENARIO:drop-always").await.complete);
    assert!(!say(&server, "SCENARIO:drop-always").await.complete);
}

#[tokio::test]
async fn http_errors_have_the_status_and_the_body_of_the_api() {
    let server = ModelServer::start().await;
    for status in [400, 401, 429, 500, 529] {
        let answer = say(&server, &format!("SCENARIO:http{status}")).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.json()["error"]["message"], format!("fake upstream error {status}"));
        let retry = answer.headers.iter().any(|header| header == "retry-after: 1");
        assert_eq!(retry, status == 429);
    }
}

#[tokio::test]
async fn a_failure_inside_the_stream_is_a_status_without_one() {
    let server = ModelServer::start().await;
    let streamed = say(&server, "SCENARIO:failed").await;
    assert_eq!(streamed.types().last().unwrap(), "error");
    assert!(!streamed.types().contains(&"content_block_stop".to_owned()));
    let mut body = ask("SCENARIO:failed");
    body["stream"] = false.into();
    assert_eq!(post(&server.url(), PATH, &body).await.status, 529);
}

#[tokio::test]
async fn a_gate_holds_the_stream_at_a_known_chunk() {
    let server = ModelServer::start().await;
    let gate = server.gate("gated");
    let url = server.url();
    let client = tokio::spawn(async move { post(&url, PATH, &ask("SCENARIO:gated:4")).await });
    gate.release(3);
    gate.reached(3).await;
    assert!(!client.is_finished());
    gate.open();
    let answer = client.await.unwrap();
    assert_eq!(answer.texts(), ["gated0 ", "gated1 ", "gated2 ", "gated3 "]);
}

#[tokio::test]
async fn a_gate_tells_when_the_client_leaves() {
    let server = ModelServer::start().await;
    let gate = server.gate("gated");
    let url = server.url();
    let client = tokio::spawn(async move { post(&url, PATH, &ask("SCENARIO:gated")).await });
    gate.release(1);
    gate.reached(1).await;
    client.abort();
    gate.abandoned(1).await;
}

#[tokio::test]
async fn a_test_adds_its_own_scenario() {
    let server = ModelServer::start().await;
    let call = Block::tool("Bash", json!({"command": "cat {workspace}/x"}));
    let script = Script::new([Step::Message(vec![Block::think("hm"), call]), Step::say("Done.")]);
    server.scenario("own", script);
    let mut body = ask("SCENARIO:own");
    body["stream"] = false.into();
    let first = post(&server.url(), PATH, &body).await.json();
    assert_eq!(first["content"][0]["thinking"], "hm");
    assert_eq!(first["content"][1]["input"]["command"], "cat /ws/here/x");
    let second = post(&server.url(), PATH, &with_results(body, 1)).await.json();
    assert_eq!(second["content"][0]["text"], "Done.");
}

#[tokio::test]
async fn side_calls_are_answered_and_captured() {
    let server = ModelServer::start().await;
    let url = server.url();
    let count = post(&url, "/v1/messages/count_tokens?beta=true", &ask("x")).await;
    assert!(count.json()["input_tokens"].is_u64());
    assert_eq!(request(&url, "HEAD", "/", "").await.status, 200);
    assert_eq!(request(&url, "GET", "/nothing", "").await.status, 404);
    assert_eq!(say(&server, "Hi").await.texts().concat(), "OK.");
    let paths: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/messages/count_tokens?beta=true", "/", "/nothing", PATH]);
}

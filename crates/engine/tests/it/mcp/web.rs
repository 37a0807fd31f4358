//! Servers over HTTP.

use tieline_event::{McpServer, McpTransport};
use tokio::time::timeout;

use super::http::{HttpServer, TOKEN};
use super::log::Log;
use super::scene::{LONG, echo, mcp, remote, said};

#[tokio::test]
async fn a_server_over_http_is_used_like_any_other() {
    let server = HttpServer::start().await;
    let mcp = mcp(vec![remote(&server.url, &[("Authorization", TOKEN)])]);
    assert_eq!(mcp.tools().await.len(), 1);
    assert!(mcp.is_parallel("mcp__web__echo"));
    assert_eq!(said(&mcp, "web", "hi").await, "hi");
    assert_eq!(said(&mcp, "web", "events").await, "events");
    timeout(LONG, mcp.close()).await.unwrap();
    assert_eq!(server.count("DELETE"), 1, "the session is given up");
}

#[tokio::test]
async fn a_server_over_http_asks_the_user() {
    let server = HttpServer::start().await;
    let mcp = mcp(vec![remote(&server.url, &[("Authorization", TOKEN)])]);
    mcp.tools().await;
    let mut questions = mcp.questions();
    let asked = async {
        let question = questions.recv().await.unwrap();
        assert_eq!((question.id.as_str(), question.message.as_str()), ("7", "Which?"));
        assert!(mcp.elicited("web", "7", Some(Some(r#"{"colour":"red"}"#.to_owned()))));
    };
    let both = async { tokio::join!(said(&mcp, "web", "ask"), asked) };
    let (said, ()) = timeout(LONG, both).await.unwrap();
    assert_eq!(said, r#"{"action":"accept","content":{"colour":"red"}}"#);
    mcp.close().await;
}

#[tokio::test]
async fn a_call_over_http_that_nobody_waits_for_is_cancelled() {
    let server = HttpServer::start().await;
    let mcp = mcp(vec![remote(&server.url, &[("Authorization", TOKEN)])]);
    mcp.tools().await;
    {
        let call = echo(&mcp, "web", "wait");
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            () = server.saw("tools/call", 1) => {}
        }
    }
    timeout(LONG, server.saw("notifications/cancelled", 1)).await.unwrap();
    mcp.close().await;
}

#[tokio::test]
async fn a_server_that_forgot_the_session_gets_a_new_one() {
    let server = HttpServer::start().await;
    let mcp = mcp(vec![remote(&server.url, &[("Authorization", TOKEN)])]);
    mcp.tools().await;
    server.forget();
    assert_eq!(said(&mcp, "web", "hi").await, "hi");
    assert_eq!(server.count("initialize"), 2);
    mcp.close().await;
}

#[tokio::test]
async fn a_server_that_went_away_is_told_of_and_found_again() {
    let server = HttpServer::start().await;
    let address = server.address.clone();
    let mcp = mcp(vec![remote(&server.url, &[("Authorization", TOKEN)])]);
    mcp.tools().await;
    server.stop().await;
    let gone = timeout(LONG, echo(&mcp, "web", "hi")).await.unwrap().unwrap_err();
    assert!(gone.contains("the MCP server web cannot be reached"), "{gone}");
    let again = timeout(LONG, echo(&mcp, "web", "hi")).await.unwrap().unwrap_err();
    assert!(again.contains("did not start again"), "{again}");
    assert!(!gone.contains("hunter2") && !again.contains("hunter2"), "{gone} {again}");
    let server = HttpServer::start_at(&address).await;
    assert_eq!(said(&mcp, "web", "hi").await, "hi");
    assert_eq!(server.count("initialize"), 1);
    mcp.close().await;
}

#[tokio::test]
async fn no_secret_is_in_an_error_a_log_line_or_debug() {
    let log = Log::start();
    let server = HttpServer::start().await;
    let refused = remote(&server.url, &[("Authorization", "Bearer hunter2-wrong")]);
    let nowhere =
        remote("http://127.0.0.1:1/?key=hunter2-of-the-query", &[("X-Key", "hunter2-key")]);
    let unfit = remote(&server.url, &[("X-Key", "hunter2\nkey")]);
    let sse = McpTransport::Sse { url: server.url.clone(), headers: Default::default() };
    let sse = McpServer { name: "old".to_owned(), transport: sse };
    let fine = remote(&server.url, &[("Authorization", TOKEN)]);
    let mcp = mcp(vec![refused, nowhere, unfit, sse, fine]);
    let startup = timeout(LONG, mcp.startup()).await.unwrap();
    assert_eq!(startup.ready, ["web_4"], "{startup:?}");
    let why: Vec<&str> = startup.failed.iter().map(|(_, why)| why.as_str()).collect();
    assert!(why[0].contains("does not accept our authorization"), "{why:?}");
    assert!(why[1].contains("Connection refused"), "{why:?}");
    assert!(why.iter().all(|why| !why.contains("::")), "no names of types: {why:?}");
    assert!(why[2].contains("X-Key"), "{why:?}");
    assert!(why[3].contains("streamable HTTP"), "{why:?}");
    assert_eq!(said(&mcp, "web_4", "hi").await, "hi");
    mcp.close().await;
    let (shown, log) = (format!("{mcp:?} {startup:?}"), log.text());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(log.contains("an MCP server did not start"), "the log is kept: {log}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("hunter2")).collect();
    assert!(lines.is_empty(), "{lines:?}");
}

//! Servers as processes.

use std::time::Duration;

use serde_json::{Value, json};
use tieline_engine::mcp::{Limits, Mcp};
use tieline_event::{McpServer, McpTransport};
use tieline_proc::Env;
use tieline_testkit::probe;
use tokio::time::timeout;

use super::scene::{LONG, echo, fake, mcp, said};

#[tokio::test]
async fn servers_start_with_the_first_question_for_tools() {
    let missing = McpServer {
        name: "missing".to_owned(),
        transport: McpTransport::Stdio {
            command: "no-such-program-anywhere".to_owned(),
            args: Vec::new(),
            env: Default::default(),
        },
    };
    let mcp = mcp(vec![fake("one", &[], &[]), missing, fake("two", &["--tools"], &[])]);
    assert!(!mcp.has("mcp__one__echo"), "nothing is started yet");
    let tools = serde_json::to_value(mcp.tools().await).unwrap();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["mcp__one__echo", "mcp__two__echo", "mcp__two__look"]);
    assert!(names[3].starts_with("mcp__two__a_b_") && names[4].starts_with("mcp__two__a_b_"));
    assert_ne!(names[3], names[4]);
    assert_eq!(tools[0]["type"], "function");
    assert_eq!(tools[0]["description"], "Gives its text back");
    assert_eq!(tools[0]["parameters"]["required"], json!(["text"]));
    assert_eq!(tools[2]["parameters"], json!({"type": "object", "properties": {}}));
    assert!(mcp.has("mcp__one__echo") && !mcp.has("mcp__one__look"));
    assert!(mcp.is_parallel("mcp__two__look"));
    assert!(!mcp.is_parallel(names[3]) && !mcp.is_parallel("mcp__one__echo"));

    let startup = mcp.startup().await;
    assert_eq!(startup.ready, ["one", "two"]);
    assert_eq!(startup.failed.len(), 1);
    assert_eq!(startup.failed[0].0, "missing");
    assert!(startup.failed[0].1.contains("cannot find no-such-program-anywhere"), "{startup:?}");
    let listed = mcp.list().await;
    assert_eq!((listed[4].server.as_str(), listed[4].name.as_str()), ("two", "a/b"));
    mcp.close().await;
}

#[tokio::test]
async fn a_program_is_found_by_its_name_but_not_in_the_workspace() {
    let mut server = fake("one", &[], &[]);
    let program = tieline_testkit::real::fake_mcp_program();
    let dir = program.parent().unwrap().to_owned();
    let McpTransport::Stdio { command, .. } = &mut server.transport else { unreachable!() };
    *command = "fake-mcp".to_owned();
    let mut env = Env::empty();
    env.set("PATH", &dir);
    let elsewhere = tempfile::tempdir().unwrap();
    let mcp = Mcp::new(vec![server.clone()], env.clone());
    mcp.set_root(elsewhere.path()).await;
    let startup = mcp.startup().await;
    assert_eq!(startup.ready, ["one"], "{startup:?}");
    mcp.close().await;

    let mcp = Mcp::new(vec![server], env);
    mcp.set_root(&dir).await;
    let startup = mcp.startup().await;
    assert!(startup.failed[0].1.contains("inside the workspace"), "{startup:?}");
}

#[tokio::test]
async fn nothing_starts_after_the_end() {
    let mcp = mcp(vec![fake("one", &[], &[])]);
    mcp.close().await;
    let startup = mcp.startup().await;
    assert_eq!(startup.failed, [("one".to_owned(), "it is closed".to_owned())]);
}

#[test]
fn calls_may_move_between_threads() {
    fn check(_: &impl Send) {}
    let mcp = mcp(Vec::new());
    check(&mcp.call("", ""));
    check(&mcp.call_ours("", ""));
    check(&mcp.tools());
    check(&mcp.close());
}

#[tokio::test]
async fn a_call_has_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let mcp = mcp(vec![fake("one", &[], &[("TOKEN", "hunter2")])]);
    mcp.set_root(&dir).await;
    mcp.tools().await;
    assert_eq!(said(&mcp, "one", "hi").await, "hi");
    assert_eq!(said(&mcp, "one", "fail").await, "the tool reports an error:\nfail");
    assert_eq!(said(&mcp, "one", "progress").await, "progress");
    assert_eq!(said(&mcp, "one", "garbage").await, "garbage");
    assert_eq!(said(&mcp, "one", "structured").await, "structured\n{\"colour\":\"blue\"}");
    assert_eq!(said(&mcp, "one", "env SHARED").await, "from the session");
    assert_eq!(said(&mcp, "one", "env TOKEN").await, "hunter2");
    assert_eq!(said(&mcp, "one", "env HOME").await, "not set");
    assert_eq!(said(&mcp, "one", "cwd").await, dir.display().to_string());
    let huge = said(&mcp, "one", "huge").await;
    assert!(huge.contains("truncated") && huge.len() < 50_000, "{} bytes", huge.len());
    assert_eq!(echo(&mcp, "one", "huge").await.unwrap().content[0].get().len(), (2 << 20) + 25);
    let image = echo(&mcp, "one", "image").await.unwrap();
    assert!(image.content[0].get().contains("R0lGODdh"));
    let refused = mcp.call("mcp__one__echo", "[1]").await.unwrap_err();
    assert!(refused.contains("no JSON object"), "{refused}");
    assert!(mcp.call("mcp__one__nothing", "{}").await.is_err());
    mcp.close().await;
    let closed = echo(&mcp, "one", "hi").await.unwrap_err();
    assert!(closed.contains("is closed"), "{closed}");
}

#[tokio::test]
async fn a_server_asks_for_the_workspace_and_gets_no_model() {
    let mcp = mcp(vec![fake("one", &[], &[])]);
    mcp.set_root("/tmp").await;
    mcp.tools().await;
    assert_eq!(said(&mcp, "one", "roots").await, r#"answer: {"roots":[{"uri":"file:///tmp"}]}"#);
    mcp.set_root("/usr").await;
    assert_eq!(said(&mcp, "one", "roots").await, r#"answer: {"roots":[{"uri":"file:///usr"}]}"#);
    assert!(said(&mcp, "one", "sample").await.contains("-32601"));
    mcp.close().await;
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    let mcp = mcp(vec![fake("one", &[], &[])]);
    mcp.tools().await;
    // It is on its way before the time is looked at.
    assert!(timeout(Duration::ZERO, echo(&mcp, "one", "wait")).await.is_err());
    // The server does nothing else until it is told.
    assert_eq!(said(&mcp, "one", "cancelled").await, "1 cancelled");
    mcp.close().await;
}

#[tokio::test]
async fn a_call_without_an_answer_ends_and_is_cancelled() {
    let mut limits = Limits::default();
    limits.start = LONG;
    limits.call = Duration::from_millis(50);
    let mcp = Mcp::with_limits(vec![fake("one", &[], &[])], Env::empty(), limits);
    mcp.tools().await;
    let error = echo(&mcp, "one", "wait").await.unwrap_err();
    assert_eq!(error, "the MCP server one did not answer within 0.05 seconds");
    mcp.close().await;
}

#[tokio::test]
async fn a_server_that_ended_is_told_of_and_starts_again() {
    let mcp = mcp(vec![fake("one", &[], &[])]);
    mcp.tools().await;
    for _ in 0..3 {
        let error = echo(&mcp, "one", "crash").await.unwrap_err();
        assert!(error.contains("one ended during the call"), "{error}");
        assert!(error.ends_with("it wrote: it is over"), "{error}");
        assert_eq!(said(&mcp, "one", "hi").await, "hi");
    }
    assert_eq!(mcp.tools().await.len(), 1);
    mcp.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_keeps_nobody_up() {
    let broken = fake("broken", &["--broken"], &[("TOKEN", "hunter2")]);
    let mcp = mcp(vec![broken, fake("one", &[], &[])]);
    let startup = mcp.startup().await;
    assert_eq!(startup.ready, ["one"], "{startup:?}");
    let [(broken, why)] = &startup.failed[..] else { panic!("{startup:?}") };
    assert_eq!(broken, "broken");
    let told = "it ended before it answered; it wrote: the token *** is not accepted";
    assert_eq!(why, told);
    assert!(!format!("{mcp:?}").contains("hunter2"));
    assert_eq!(said(&mcp, "one", "hi").await, "hi");
    mcp.close().await;
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let mut limits = Limits::default();
    limits.start = Duration::from_millis(100);
    let silent = fake("silent", &["--silent"], &[]);
    let mcp = Mcp::with_limits(vec![silent], Env::empty(), limits);
    let startup = mcp.startup().await;
    let why = "it did not answer within 0.1 seconds";
    assert_eq!(startup.failed, [("silent".to_owned(), why.to_owned())]);
    assert!(mcp.tools().await.is_empty());
    mcp.close().await;
}

#[tokio::test]
async fn tools_that_appear_later_are_found() {
    let mcp = mcp(vec![fake("one", &[], &[])]);
    assert_eq!(mcp.tools().await.len(), 1);
    // The news comes before the answer.
    said(&mcp, "one", "more").await;
    assert_eq!(mcp.tools().await.len(), 2);
    assert!(mcp.has("mcp__one__more"));
    mcp.close().await;
}

#[tokio::test]
async fn a_question_of_a_server_is_answered() {
    let mcp = mcp(vec![fake("one", &[], &[])]);
    mcp.tools().await;
    let declined = r#"answer: {"action":"decline"}"#;
    assert_eq!(said(&mcp, "one", "ask").await, declined, "nobody listens");

    let mut questions = mcp.questions();
    let answers: [(Option<Option<String>>, &str); 3] = [
        (None, declined),
        (
            Some(Some(r#"{"colour":"blue"}"#.to_owned())),
            r#"answer: {"action":"accept","content":{"colour":"blue"}}"#,
        ),
        (Some(None), r#"answer: {"action":"accept","content":{}}"#),
    ];
    for (answer, expected) in answers {
        let asked = async {
            let question = questions.recv().await.unwrap();
            assert_eq!(
                (question.server.as_str(), question.message.as_str()),
                ("one", "Which colour?")
            );
            let request: Value = serde_json::from_str(&question.request).unwrap();
            assert_eq!(request["requestedSchema"]["required"], json!(["colour"]));
            assert!(!mcp.elicited("two", &question.id, None), "another server's");
            assert!(!mcp.elicited("one", "\"ask-0\"", None), "no such question");
            assert!(mcp.elicited("one", &question.id, answer.clone()));
            assert!(!mcp.elicited("one", &question.id, answer.clone()), "it is answered");
        };
        let (said, ()) = tokio::join!(said(&mcp, "one", "ask"), asked);
        assert_eq!(said, expected);
    }
    drop(questions);
    assert_eq!(said(&mcp, "one", "ask").await, declined, "nobody listens any more");
    mcp.close().await;
}

#[tokio::test]
async fn documents_are_listed_and_read() {
    let mcp = mcp(vec![fake("one", &[], &[]), fake("two", &["--documents"], &[])]);
    assert_eq!(mcp.tools().await.len(), 5, "two tools of servers, three of ours");
    assert!(mcp.has("read_mcp_resource") && mcp.is_parallel("read_mcp_resource"));
    let ours = async |name: &str, arguments: Value| -> Value {
        let told = mcp.call_ours(name, &arguments.to_string()).await.unwrap().unwrap();
        serde_json::from_str(&told).unwrap()
    };
    let all = ours("list_mcp_resources", json!({})).await;
    assert_eq!(all["resources"].as_array().unwrap().len(), 2);
    assert_eq!(all["resources"][1]["server"], "two");
    let first = ours("list_mcp_resources", json!({"server": "two"})).await;
    assert_eq!(
        (&first["resources"][0]["uri"], &first["nextCursor"]),
        (&json!("note://one"), &json!("2"))
    );
    let second = ours("list_mcp_resources", json!({"server": "two", "cursor": "2"})).await;
    assert_eq!(second["resources"][0]["uri"], "note://two");
    let patterns = ours("list_mcp_resource_templates", json!({})).await;
    assert_eq!(patterns["resourceTemplates"][0]["uriTemplate"], "note://{name}");
    let read = ours("read_mcp_resource", json!({"server": "two", "uri": "note://one"})).await;
    assert_eq!(read["contents"][0]["text"], "the document");
    assert!(mcp.call_ours("read_mcp_resource", "{}").await.unwrap().is_err());
    assert!(mcp.call_ours("mcp__one__echo", "{}").await.is_none());
    mcp.close().await;
}

#[tokio::test]
async fn nothing_is_left_of_servers_that_are_dropped_or_closed() {
    let value = format!("mcp-{}", std::process::id());
    let marker = format!("MARK={value}");
    for is_closed in [false, true] {
        let mcp = mcp(vec![fake("one", &[], &[("MARK", &value)])]);
        mcp.tools().await;
        assert_eq!(probe::alive_with(&marker).len(), 1);
        if is_closed {
            mcp.close().await;
        }
        drop(mcp);
        let gone = async {
            while !probe::alive_with(&marker).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, gone).await.unwrap();
    }
}

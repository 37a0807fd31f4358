//! The fake MCP server on its pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Sends these messages, closes the server's input and gives what it wrote.
// The test is about the program's own pipes, so nothing may stand between.
#[allow(clippy::disallowed_methods)]
fn talk(messages: &[Value]) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fake-mcp"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(child.wait().unwrap().success(), "it ends with its input");
    said
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(text: &str) -> Value {
    let params = json!({
        "name": "echo", "arguments": {"text": text}, "_meta": {"progressToken": "p"},
    });
    request(7, "tools/call", params)
}

#[test]
fn it_introduces_itself_and_its_tool() {
    let said = talk(&[
        request(0, "initialize", json!({"protocolVersion": "2025-06-18"})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(1, "tools/list", json!({})),
        request(2, "prompts/list", json!({})),
    ]);
    assert_eq!(said.len(), 3, "a notification gets no answer");
    assert_eq!(said[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(said[1]["result"]["tools"][0]["name"], "echo");
    assert_eq!((&said[2]["id"], &said[2]["error"]["code"]), (&2.into(), &(-32601).into()));
}

#[test]
fn echo_gives_its_text_back_fails_and_tells_its_progress() {
    let said = talk(&[call("hi"), call("fail"), call("progress")]);
    let hi = json!({"content": [{"type": "text", "text": "hi"}], "isError": false});
    assert_eq!(said[0]["result"], hi);
    assert_eq!(said[1]["result"]["isError"], true);
    assert_eq!(said[2]["params"]["progressToken"], "p");
    assert_eq!(said[3]["result"]["isError"], false);
}

#[test]
fn ask_waits_for_the_client_s_answer() {
    let answer = json!({"action": "accept", "content": {"colour": "blue"}});
    let said = talk(&[call("ask"), json!({"jsonrpc": "2.0", "id": "ask-1", "result": answer})]);
    assert_eq!(said[0]["method"], "elicitation/create");
    assert!(said[1]["result"]["content"][0]["text"].as_str().unwrap().contains("blue"));
}

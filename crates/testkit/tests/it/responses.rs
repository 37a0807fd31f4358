//! The OpenAI Responses side of the scripted model.

use serde_json::{Value, json};
use tieline_testkit::model::ModelServer;

use crate::client::{Answer, post, request};

fn ask(text: &str) -> Value {
    let cwd = json!({"type": "input_text", "text": "<environment_context><cwd>/ws</cwd>"});
    json!({
        "model": "gpt-5.5", "stream": true,
        "tools": [{"type": "function", "name": "exec_command"}],
        "input": [
            {"type": "message", "role": "user", "content": [cwd]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
        ],
    })
}

async fn say(server: &ModelServer, text: &str) -> Answer {
    post(&server.url(), "/v1/responses", &ask(text)).await
}

fn done(answer: &Answer) -> Vec<Value> {
    let events = answer.events();
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
    done.map(|event| event["item"].clone()).collect()
}

#[tokio::test]
async fn hello_streams_and_completes_with_usage() {
    let server = ModelServer::start().await;
    let answer = say(&server, "SCENARIO:hello").await;
    assert_eq!(answer.texts().concat(), "Hello from the fake model.");
    let last = answer.events().pop().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["usage"]["total_tokens"], 1050);
}

#[tokio::test]
async fn a_command_is_a_function_call_and_its_output_the_next_step() {
    let server = ModelServer::start().await;
    let items = done(&say(&server, "SCENARIO:shell").await);
    assert_eq!(items[1]["name"], "exec_command");
    let arguments: Value = serde_json::from_str(items[1]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["cmd"], "echo hello-from-shell; echo to-stderr 1>&2");
    let mut body = ask("SCENARIO:shell");
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    body["input"].as_array_mut().unwrap().push(output);
    let answer = post(&server.url(), "/v1/responses", &body).await;
    assert_eq!(answer.texts().concat(), "The command printed hello-from-shell.");
}

#[tokio::test]
async fn a_model_in_code_mode_gets_javascript() {
    let server = ModelServer::start().await;
    let mut body = ask("SCENARIO:read");
    body["tools"] = json!([]);
    let tools = json!([{"type": "namespace", "name": "functions", "tools": [
        {"type": "custom", "name": "exec"},
    ]}]);
    let item = json!({"type": "additional_tools", "role": "developer", "tools": tools});
    body["input"].as_array_mut().unwrap().insert(0, item);
    let items = done(&post(&server.url(), "/v1/responses", &body).await);
    let code = r#"const r = await tools.exec_command({"cmd":"cat /ws/README.md"}); text(r);"#;
    assert_eq!((&items[0]["type"], &items[0]["input"]), (&"custom_tool_call".into(), &code.into()));
}

#[tokio::test]
async fn an_old_agent_gets_the_calls_its_tools_take() {
    let server = ModelServer::start().await;
    let call = async |scenario: &str| {
        let mut body = ask(&format!("SCENARIO:{scenario}"));
        let tool = |name: &str| json!({"type": "function", "name": name});
        body["tools"] = json!([tool("shell"), tool("fake__echo")]);
        let items = done(&post(&server.url(), "/v1/responses", &body).await);
        let item = items.last().unwrap();
        let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
        (item["name"].clone(), arguments)
    };
    let (name, arguments) = call("write").await;
    assert_eq!((name, &arguments["with_escalated_permissions"]), ("shell".into(), &true.into()));
    assert_eq!(arguments["command"][0], "bash");
    let (name, arguments) = call("patch").await;
    assert_eq!((name, &arguments["command"][0]), ("shell".into(), &"apply_patch".into()));
    assert_eq!(call("mcp").await, ("fake__echo".into(), json!({"text": "hi"})));
}

#[tokio::test]
async fn failures_take_the_form_of_the_api() {
    let server = ModelServer::start().await;
    let error = say(&server, "SCENARIO:http400").await.json();
    assert_eq!(error["error"]["type"], "invalid_request_error");
    let last = |answer: Answer| answer.types().pop().unwrap();
    assert_eq!(last(say(&server, "SCENARIO:failed").await), "response.failed");
    assert_eq!(last(say(&server, "SCENARIO:maxtokens").await), "response.incomplete");
    let dropped = say(&server, "SCENARIO:drop").await;
    assert_eq!((dropped.complete, dropped.texts().concat()), (false, "partial ".to_owned()));
    let models = request(&server.url(), "GET", "/v1/models", "").await.json();
    assert_eq!(models["data"][0]["id"], "gpt-5.5");
}

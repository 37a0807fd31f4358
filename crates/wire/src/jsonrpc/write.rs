//! Writing messages. Every function gives one line with its terminator.

use serde::Serialize;

use super::Id;

/// How a message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Without the version, as Codex speaks.
    Bare,
    /// With `"jsonrpc": "2.0"`.
    Versioned,
}

#[derive(Serialize)]
struct Message<'a, P, R> {
    #[serde(skip_serializing_if = "Option::is_none")]
    jsonrpc: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal<'a>>,
}

#[derive(Serialize)]
struct Refusal<'a> {
    code: i64,
    message: &'a str,
}

/// We ask.
pub fn request(form: Form, id: &Id, method: &str, params: &impl Serialize) -> Vec<u8> {
    let message = Message { id: Some(id), method: Some(method), params: Some(params), ..none() };
    line::<_, ()>(form, message)
}

/// News that nobody answers.
pub fn notification(form: Form, method: &str, params: Option<&impl Serialize>) -> Vec<u8> {
    line::<_, ()>(form, Message { method: Some(method), params, ..none() })
}

/// The answer to what the peer asked.
pub fn response(form: Form, id: &Id, result: &impl Serialize) -> Vec<u8> {
    line::<(), _>(form, Message { id: Some(id), result: Some(result), ..none() })
}

/// The refusal of what the peer asked.
pub fn error(form: Form, id: &Id, code: i64, message: &str) -> Vec<u8> {
    let error = Some(Refusal { code, message });
    line::<(), ()>(form, Message { id: Some(id), error, ..none() })
}

fn none<'a, P, R>() -> Message<'a, P, R> {
    Message { jsonrpc: None, id: None, method: None, params: None, result: None, error: None }
}

fn line<P: Serialize, R: Serialize>(form: Form, mut message: Message<'_, P, R>) -> Vec<u8> {
    message.jsonrpc = (form == Form::Versioned).then_some("2.0");
    let mut line = serde_json::to_vec(&message).expect("keys are strings and values are JSON");
    line.push(b'\n');
    line
}

#[test]
fn each_message_is_one_line() {
    let show = |line: Vec<u8>| String::from_utf8(line).unwrap();
    let id = Id::Number(3);
    let params = serde_json::json!({"a": "line\nbreak"});
    assert_eq!(
        show(request(Form::Bare, &id, "turn/start", &params)),
        "{\"id\":3,\"method\":\"turn/start\",\"params\":{\"a\":\"line\\nbreak\"}}\n"
    );
    assert_eq!(
        show(notification(Form::Versioned, "initialized", None::<&()>)),
        "{\"jsonrpc\":\"2.0\",\"method\":\"initialized\"}\n"
    );
    let text = Id::Text("a\"b".to_owned());
    assert_eq!(show(response(Form::Bare, &text, &())), "{\"id\":\"a\\\"b\",\"result\":null}\n");
    assert_eq!(
        show(error(Form::Bare, &id, -32601, "no")),
        "{\"id\":3,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n"
    );
}

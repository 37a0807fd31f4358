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

/// Why a request is refused.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Refusal<'a> {
    /// The number the protocol gives it.
    pub code: i64,
    /// In words.
    pub message: &'a str,
    /// More of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a serde_json::Value>,
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
    refusal(form, id, Refusal { code, message, data: None })
}

/// The refusal of what the peer asked, with more about it.
pub fn refusal(form: Form, id: &Id, refusal: Refusal<'_>) -> Vec<u8> {
    line::<(), ()>(form, Message { id: Some(id), error: Some(refusal), ..none() })
}

/// A line that nobody could read; it has no id to answer to.
pub fn unreadable(code: i64, message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Nobodys<'a> {
        jsonrpc: &'a str,
        id: (),
        error: Refusal<'a>,
    }
    let error = Refusal { code, message, data: None };
    let mut line = serde_json::to_vec(&Nobodys { jsonrpc: "2.0", id: (), error })
        .expect("keys are strings and values are JSON");
    line.push(b'\n');
    line
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

use proptest::prelude::*;

use super::{Incoming, read};

/// One line and what it is, in short.
#[track_caller]
fn check(line: &str, expected: &str) {
    let shown = match read(line.as_bytes()) {
        Incoming::Request { id, method, params } => {
            format!("request {id} {} {}", &*method, params.map_or("-", |it| it.get()))
        }
        Incoming::Notification { method, .. } => format!("notification {}", &*method),
        Incoming::Response { id, outcome: Ok(result) } => format!("response {id} {result}"),
        Incoming::Response { id, outcome: Err(error) } => format!("error {id} {}", error.code),
        Incoming::Bad { id, code, .. } => {
            format!("bad {} {code}", id.map_or("null".to_owned(), |id| id.to_string()))
        }
        Incoming::Dropped { .. } => "dropped".to_owned(),
    };
    assert_eq!(shown, expected, "{line}");
}

#[test]
fn each_sort_of_line_is_told_apart() {
    check(r#"{"jsonrpc":"2.0","id":0,"method":"a","params":{"x":1}}"#, r#"request 0 a {"x":1}"#);
    check(r#"{"jsonrpc":"2.0","id":"q","method":"a"}"#, r#"request "q" a -"#);
    check(r#"{"jsonrpc":"2.0","method":"a"}"#, "notification a");
    check(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "response 3 {}");
    check(r#"{"jsonrpc":"2.0","id":3,"result":null}"#, "response 3 null");
    check(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#, "error 3 -1");
}

#[test]
fn what_is_no_message_is_answered_by_the_rules_of_json_rpc() {
    check("nonsense", "bad null -32700");
    check(r#"{"jsonrpc":"2.0","id":1"#, "bad null -32700");
    check("[]", "bad null -32600");
    check(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "bad null -32600");
    check("7", "bad null -32600");
    check(r#"{"id":1,"method":"a"}"#, "bad 1 -32600");
    check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "bad 1 -32600");
    check(r#"{"jsonrpc":"2.0","id":1}"#, "bad 1 -32600");
    check(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "bad null -32600");
    check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "bad null -32600");
    check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "bad null -32600");
    check(r#"{"invalid":"json"}"#, "bad null -32600");
}

#[test]
fn a_broken_answer_is_nobodys() {
    check(r#"{"jsonrpc":"2.0","id":3,"error":"no"}"#, "dropped");
    check(r#"{"jsonrpc":"2.0","result":{}}"#, "dropped");
    check(r#"{"id":3,"result":{}}"#, "dropped");
}

proptest! {
    #[test]
    fn no_line_is_too_odd_to_read(line in any::<Vec<u8>>()) {
        read(&line);
    }
}

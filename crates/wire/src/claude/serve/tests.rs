use super::*;
use crate::claude::write::{self, Control};

#[test]
fn what_a_host_writes_is_read() {
    let line = write::control_request("1", &Control::SetPermissionMode { mode: "plan" });
    let Ok(Said::Request { request_id, request }) = parse(&line) else { panic!() };
    assert_eq!((&*request_id, &*request.subtype), ("1", "set_permission_mode"));
    assert_eq!(request.mode.as_deref(), Some("plan"));

    let line = write::user(&"hi");
    let Ok(Said::User(message)) = parse(&line) else { panic!() };
    assert_eq!(message.content.0[0].text.as_deref(), Some("hi"));

    let line = write::control_error("2", "no");
    let Ok(Said::Answer(answer)) = parse(&line) else { panic!() };
    assert_eq!((&*answer.request_id, answer.error.as_deref()), ("2", Some("no")));
}

#[test]
fn a_frame_without_its_body_is_an_error_and_an_unknown_one_is_not() {
    for line in [r#"{"type":"user"}"#, r#"{"type":"control_request","request":{}}"#, "[]", "{"] {
        parse(line.as_bytes()).unwrap_err();
    }
    assert!(matches!(parse(br#"{"type":"keep_alive"}"#), Ok(Said::Other)));
}

#[test]
fn a_frame_is_one_line() {
    let mut out = Vec::new();
    append(&mut out, &Frame::ControlCancelRequest { request_id: "a\nb" });
    assert_eq!(out, b"{\"type\":\"control_cancel_request\",\"request_id\":\"a\\nb\"}\n");
}

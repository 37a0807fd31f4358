use expect_test::expect;

use super::write::{Control, Permission, control_error, control_request, control_success, user};
use super::{Frame, parse, repair_surrogates};

#[test]
fn the_type_may_be_the_last_key() {
    let line = br#"{"duration_ms":3,"is_error":false,"subtype":"success","result":"hi","usage":{"output_tokens":5},"type":"result"}"#;
    let Frame::Result(result) = parse(line).unwrap() else { panic!("a result") };
    assert_eq!(result.result.as_deref(), Some("hi"));
    assert_eq!(result.usage.unwrap().output_tokens, 5);
}

#[test]
fn content_may_be_a_text_or_blocks() {
    for line in [
        r#"{"type":"user","message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#,
    ] {
        let Frame::User(user) = parse(line.as_bytes()).unwrap() else { panic!("a user frame") };
        assert_eq!(user.message.content.0[0].text.as_deref(), Some("hi"));
    }
}

#[test]
fn fields_that_mean_something_else_elsewhere_do_no_harm() {
    for line in [
        r#"{"type":"system","subtype":"permission_denied","message":"no"}"#,
        r#"{"type":"system","subtype":"ui_invalidate","event":"x"}"#,
        r#"{"type":"brand_new","message":[1,{"a":2}],"event":null,"request":7,"response":false}"#,
        r#"{"type":"keep_alive"}"#,
    ] {
        parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn a_delta_is_read_without_copying_its_text() {
    let line = br#"{"type":"stream_event","event":{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"plain"}},"session_id":"s","parent_tool_use_id":null}"#;
    let Frame::Stream(stream) = parse(line).unwrap() else { panic!("a stream event") };
    assert!(matches!(stream.event.delta.text, Some(crate::text::Str::Borrowed("plain"))));
    assert_eq!(stream.event.index, 2);
}

#[test]
fn half_a_surrogate_pair_is_replaced_and_a_whole_one_is_not() {
    let line =
        br#"{"type":"keep_alive","a":"\ud83d","b":"\ud83d\ude00","c":"\\ud83d","d":"\ude00"}"#;
    assert!(serde_json::from_slice::<serde_json::Value>(line).is_err());
    let repaired = repair_surrogates(line).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&repaired).unwrap();
    assert_eq!(value["a"], "\u{fffd}");
    assert_eq!(value["b"], "😀");
    assert_eq!(value["c"], "\\ud83d");
    assert_eq!(value["d"], "\u{fffd}");
    assert_eq!(repair_surrogates(br#"{"a":"\u00e9\n\\"}"#), None);
    // A backslash of its own before the letters of an escape.
    assert_eq!(repair_surrogates(br#"{"a":"\\ud800"}"#), None);
}

#[test]
fn what_we_write_is_one_line_of_json() {
    let input = serde_json::value::RawValue::from_string(r#"{"b":1e2,"a":1}"#.into()).unwrap();
    let lines = [
        user(&[serde_json::json!({"type": "text", "text": "a\nb\u{0}"})]),
        control_request("1", &Control::Initialize),
        control_request("2", &Control::SetModel { model: None }),
        control_success(
            "x",
            &Permission::Allow { updated_input: Some(&input), updated_permissions: &[&input] },
        ),
        control_success("y", &Permission::Deny { message: "no", interrupt: true }),
        control_error("z", "unsupported"),
    ];
    let text = String::from_utf8(lines.concat()).unwrap();
    expect![[r#"
        {"type":"user","message":{"role":"user","content":[{"type":"text","text":"a\nb\u0000"}]},"parent_tool_use_id":null,"session_id":""}
        {"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}
        {"type":"control_request","request_id":"2","request":{"subtype":"set_model","model":null}}
        {"type":"control_response","response":{"subtype":"success","request_id":"x","response":{"behavior":"allow","updatedInput":{"b":1e2,"a":1},"updatedPermissions":[{"b":1e2,"a":1}]}}}
        {"type":"control_response","response":{"subtype":"success","request_id":"y","response":{"behavior":"deny","message":"no","interrupt":true}}}
        {"type":"control_response","response":{"subtype":"error","request_id":"z","error":"unsupported"}}
    "#]]
    .assert_eq(&text);
}

use super::{Body, Frame, Phase, parse};
use crate::sqeq::EventMsg;

fn read(line: &str) -> Frame<'_> {
    parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn an_item_with_its_id_twice_has_both() {
    let line = r#"{"type":"item.completed","item":{"id":"item_0","type":"web_search","id":"ws_1","query":"q","action":{"type":"search"}}}"#;
    let Frame::Item { phase: Phase::Completed, item } = read(line) else { panic!("an item") };
    assert_eq!((&*item.id, item.inner_id.as_deref()), ("item_0", Some("ws_1")));
    assert!(matches!(item.body, Body::WebSearch(it) if it.query == "q"));
}

#[test]
fn the_first_draft_of_the_format_is_read() {
    let line = r#"{"type":"item.completed","item":{"id":"item_0","item_type":"assistant_message","text":"hi"}}"#;
    let Frame::Item { item, .. } = read(line) else { panic!("an item") };
    assert!(matches!(item.body, Body::AgentMessage(it) if it.text == "hi"));
    let Frame::Thread { id } = read(r#"{"type":"session.created","session_id":"s"}"#) else {
        panic!("a session")
    };
    assert_eq!(&*id, "s");
}

#[test]
fn the_lines_before_the_format_are_told_apart() {
    let config = r#"{"workdir":"/w","model":"m","approval":"never","sandbox":"read-only"}"#;
    assert!(matches!(read(config), Frame::Config { model: Some(model) } if model == "m"));
    assert!(matches!(read(r#"{"prompt":"hi"}"#), Frame::Prompt));
    let error = r#"{"id":"0","msg":{"type":"error","message":"no"}}"#;
    assert!(matches!(read(error), Frame::Old(EventMsg::Error(it)) if it.message == "no"));
    let odd = r#"{"id":"0","msg":{"type":"error","message":7}}"#;
    assert!(matches!(read(odd), Frame::Unknown { name } if name == "error"));
    for line in [r#"{"id":"0","msg":{}}"#, r#"{"id":"0","msg":7}"#, "{}", r#"{"type":7}"#] {
        assert!(matches!(read(line), Frame::Unknown { .. }), "{line}");
    }
}

#[test]
fn an_end_of_another_shape_is_still_an_end() {
    for line in [
        r#"{"type":"turn.completed"}"#,
        r#"{"type":"turn.completed","usage":"much"}"#,
        r#"{"type":"turn.completed","usage":null}"#,
    ] {
        assert!(matches!(read(line), Frame::TurnCompleted { usage: None }), "{line}");
    }
    let odd = r#"{"type":"turn.completed","usage":{"input_tokens":-1,"output_tokens":5}}"#;
    let Frame::TurnCompleted { usage: Some(usage) } = read(odd) else { panic!("an end") };
    assert_eq!((usage.input_tokens, usage.output_tokens), (0, 5));
    for (line, expected) in [
        (r#"{"type":"turn.failed","error":{"message":"m"}}"#, "m"),
        (r#"{"type":"turn.failed","error":"m"}"#, "m"),
        (r#"{"type":"turn.failed","error":[1]}"#, "[1]"),
        (r#"{"type":"turn.failed"}"#, ""),
    ] {
        assert!(matches!(read(line), Frame::TurnFailed { message } if message == expected));
    }
}

#[test]
fn a_known_item_of_another_shape_is_an_unknown_one() {
    let line = r#"{"type":"item.started","item":{"id":"i","type":"file_change","changes":7}}"#;
    let Frame::Item { item, .. } = read(line) else { panic!("an item") };
    assert!(matches!(item.body, Body::Unknown));
    assert_eq!(&*item.kind, "file_change");
    let nameless = r#"{"type":"item.started","item":{"type":"reasoning"}}"#;
    assert!(matches!(read(nameless), Frame::Unknown { .. }));
}

#[test]
fn what_is_no_object_is_an_error() {
    for line in ["", "[]", "7", "Reading prompt from stdin...", "{\"type\":"] {
        assert!(parse(line.as_bytes()).is_err(), "{line}");
    }
    assert!(parse(b"{\"type\":\"\xff\"}").is_err());
}

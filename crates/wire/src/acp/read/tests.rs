//! Odd things agents send.

use super::*;

fn update(text: &str) -> Update<'_> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_kind_may_stand_anywhere_and_be_unknown() {
    let text = r#"{"content":{"type":"text","text":"a"},"sessionUpdate":"agent_message_chunk"}"#;
    assert!(matches!(update(text), Update::AgentMessage(chunk) if chunk.message_id.is_none()));
    let odd = r#"{"sessionUpdate":"tomorrow","x":{"y":[1e400]}}"#;
    assert!(matches!(update(odd), Update::Unknown(kind) if &*kind == "tomorrow"));
}

#[test]
fn options_come_flat_in_groups_and_as_switches() {
    let opened: Opened = serde_json::from_str(
        r#"{"sessionId":"s","configOptions":[
            {"id":"model","category":"model","type":"select","currentValue":"a",
             "options":[{"value":"a","name":"A"},{"value":"b","name":"B","description":"d"}]},
            {"id":"mode","category":"mode","type":"select","currentValue":"x",
             "options":[{"group":"g","name":"G","options":[{"value":"x","name":"X"}]}]},
            {"id":"fast","type":"boolean","currentValue":true},
            {"nonsense":1}]}"#,
    )
    .unwrap();
    let options = opened.config_options.unwrap();
    let shown: Vec<_> =
        options.iter().map(|it| (it.id.as_str(), it.current.as_deref(), it.values.len())).collect();
    assert_eq!(shown, [("model", Some("a"), 2), ("mode", Some("x"), 1), ("fast", None, 0)]);
}

#[test]
fn a_capability_is_an_object_that_is_there() {
    let read = |text: &str| serde_json::from_str::<SessionCapabilities>(text).unwrap();
    let some = read(r#"{"resume":{},"fork":null,"unknown":7}"#);
    assert!(some.resume && !some.fork && !some.additional_directories);
}

#[test]
fn both_spellings_of_live_output_are_read() {
    for key in ["terminal_output", "terminal_output_delta"] {
        let text = format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t","_meta":{{"{key}":{{"terminal_id":"t","data":"a\nb"}}}}}}"#
        );
        let Update::ToolCallUpdate(call) = update(&text) else { panic!("{text}") };
        assert_eq!(&*call.meta.unwrap().terminal_output.unwrap().data, "a\nb");
    }
}

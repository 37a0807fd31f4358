use std::fmt::Debug;

use expect_test::{expect, expect_file};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Lines in the spelling that is written.
const SUBMISSIONS: &str = include_str!("tests/submissions.jsonl");
const EVENTS: &str = include_str!("tests/events.jsonl");

fn value(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

/// What a line says; a field that is null says nothing.
fn said(line: &[u8]) -> Value {
    fn without_nulls(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|_, value| !value.is_null());
                map.values_mut().for_each(without_nulls);
            }
            Value::Array(list) => list.iter_mut().for_each(without_nulls),
            _ => {}
        }
    }
    let mut value = value(line);
    without_nulls(&mut value);
    value
}

fn event(line: &str) -> Event<'_> {
    Event::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn submission(line: &str) -> Submission<'_> {
    Submission::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The tag as the last key, in the envelope and inside.
fn tag_last(line: &str) -> String {
    let Value::Object(outer) = value(line.as_bytes()) else { panic!("{line}") };
    let inner = |map: &Value| -> String {
        let Value::Object(map) = map else { panic!("{line}") };
        let fields = map.iter().filter(|(key, _)| *key != "type");
        let fields: Vec<String> = fields
            .chain(map.iter().filter(|(key, _)| *key == "type"))
            .map(|(key, value)| format!("{}:{value}", json!(key)))
            .collect();
        format!("{{{}}}", fields.join(","))
    };
    let name = if outer.contains_key("op") { "op" } else { "msg" };
    format!("{{{}:{},\"id\":{}}}", json!(name), inner(&outer[name]), outer["id"])
}

#[test]
fn what_is_read_is_written_the_same() {
    for line in SUBMISSIONS.lines() {
        let read = submission(line);
        assert!(!matches!(read.op, Op::Unknown(_)), "{line}");
        assert_eq!(said(&read.to_line()), said(line.as_bytes()));
        let moved = tag_last(line);
        assert_eq!(said(&submission(&moved).to_line()), said(line.as_bytes()));
    }
    for line in EVENTS.lines() {
        let read = event(line);
        assert!(!matches!(read.msg, EventMsg::Unknown(_)), "{line}");
        assert_eq!(said(&read.to_line()), said(line.as_bytes()));
        let moved = tag_last(line);
        assert_eq!(said(&event(&moved).to_line()), said(line.as_bytes()));
    }
}

#[test]
fn a_delta_is_read_without_copying_its_text() {
    let line = r#"{"id":"1","msg":{"type":"agent_message_delta","delta":"plain"}}"#;
    let EventMsg::AgentMessageDelta(delta) = event(line).msg else { panic!("a delta") };
    assert!(matches!(delta.delta, Str::Borrowed("plain")));
    let line = r#"{"id":"1","msg":{"chunk":"b2sK","call_id":"c","stream":"stderr","type":"exec_command_output_delta"}}"#;
    let EventMsg::ExecCommandOutputDelta(delta) = event(line).msg else { panic!("a delta") };
    assert!(matches!(delta.chunk, Chunk::Base64(Str::Borrowed("b2sK"))));
    assert_eq!(delta.stream, OutputStream::Stderr);
}

#[track_caller]
fn same(one: impl Debug, other: impl Debug) {
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}

#[test]
fn both_names_of_an_event_and_an_op_are_read() {
    for (old, new) in [
        (r#""type":"task_started","model_context_window":7"#, "turn_started"),
        (r#""type":"task_complete","last_agent_message":"x""#, "turn_complete"),
    ] {
        let old = format!(r#"{{"id":"1","msg":{{{old}}}}}"#);
        let (task, turn) = (new.replace("turn", "task"), new);
        same(event(&old), event(&old.replace(&task, turn)));
    }
    let line = r#"{"id":"6","op":{"type":"user_input_answer","id":"1","response":{"answers":{"db":{"answers":["x"]}}}}}"#;
    same(
        submission(line),
        submission(&line.replace("user_input_answer", "request_user_input_response")),
    );
}

#[test]
fn both_tags_of_a_sandbox_are_read_and_each_is_written_back() {
    for kind in [
        r#""read-only""#,
        r#""danger-full-access""#,
        r#""workspace-write","writable_roots":["/a"],"network_access":true,"exclude_tmpdir_env_var":false,"exclude_slash_tmp":true"#,
        r#""external-sandbox","network_access":"enabled""#,
    ] {
        for (tag, expected) in [("type", SandboxTag::Type), ("mode", SandboxTag::Mode)] {
            let text = format!("{{\"{tag}\":{kind}}}");
            let policy: SandboxPolicy<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!(policy.tag, expected);
            assert!(policy.name().is_some(), "{text}");
            assert_eq!(serde_json::to_string(&policy).unwrap(), text);
        }
    }
    for odd in [
        r#"{"type":"moat","deep":1e2}"#,
        "null",
        r#"{"type":"workspace-write","network_access":7}"#,
    ] {
        let policy: SandboxPolicy<'_> = serde_json::from_str(odd).unwrap();
        assert!(matches!(policy.kind, SandboxKind::Other(_)), "{odd}");
        assert_eq!(serde_json::to_string(&policy).unwrap(), odd);
    }
}

#[test]
fn both_forms_of_a_change_are_read_and_each_is_written_back() {
    let old = r#"{"/b":{"add":{"content":"x"}},"/a":{"delete":{"content":"y"}},"/c":{"update":{"unified_diff":"@@","move_path":null}}}"#;
    let new = r#"{"/b":{"type":"add","content":"x"},"/a":{"type":"delete","content":"y"},"/c":{"type":"update","unified_diff":"@@","move_path":null}}"#;
    let read = |text| serde_json::from_str::<Changes<'_>>(text).unwrap();
    same(read(old).files, read(new).files);
    assert_eq!(serde_json::to_string(&read(old)).unwrap(), old);
    assert_eq!(serde_json::to_string(&read(new)).unwrap(), new);
    let rewritten = Changes { form: ChangeForm::Keyed, ..read(new) };
    assert_eq!(serde_json::to_string(&rewritten).unwrap(), old);
    let odd = r#"{"/a":{"type":"chmod","mode":1e2},"/b":7,"/c":{"rename":{}}}"#;
    assert_eq!(serde_json::to_string(&read(odd)).unwrap(), odd);
}

#[test]
fn both_forms_of_output_are_the_same_bytes() {
    let base64: Chunk<'_> = serde_json::from_str("\"b2sK\"").unwrap();
    let numbers: Chunk<'_> = serde_json::from_str("[111,107,10]").unwrap();
    assert_eq!(base64.bytes().unwrap(), numbers.bytes().unwrap());
    assert_eq!(serde_json::to_string(&numbers).unwrap(), "\"b2sK\"");
    for wrong in ["b2s!", "b", "b2sK=b2s", "===="] {
        assert!(Chunk::Base64(Str::Borrowed(wrong)).bytes().is_none(), "{wrong}");
    }
}

#[test]
fn every_decision_is_read() {
    let read = |text| serde_json::from_str::<Decision<'_>>(text).unwrap();
    assert!(matches!(read(r#""denied""#), Decision::Denied));
    assert!(matches!(
        read(r#"{"denied":{"rejection":"no"}}"#),
        Decision::DeniedBecause { rejection } if rejection == "no"
    ));
    for same in [
        r#""approved""#,
        r#""approved_for_session""#,
        r#""denied""#,
        r#"{"denied":{"rejection":"no"}}"#,
        r#""abort""#,
        r#""timed_out""#,
        r#"{"approved_execpolicy_amendment":{"proposed_execpolicy_amendment":["git","push"]}}"#,
        r#"{"network_policy_amendment":{"x":1e2}}"#,
        r#""perhaps""#,
        "7",
    ] {
        assert_eq!(serde_json::to_string(&read(same)).unwrap(), same);
    }
}

#[test]
fn an_effort_that_is_cleared_is_not_one_that_stays() {
    let read = |text: &str| match submission(text).op {
        Op::OverrideTurnContext(it) => it.effort,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(r#"{"id":"1","op":{"type":"override_turn_context"}}"#), None);
    let cleared = r#"{"id":"1","op":{"type":"override_turn_context","effort":null}}"#;
    assert_eq!(read(cleared), Some(None));
    let high = r#"{"id":"1","op":{"type":"override_turn_context","effort":"high"}}"#;
    assert_eq!(read(high), Some(Some(Effort::High)));
}

#[test]
fn what_is_not_known_keeps_its_name_and_its_text() {
    let line = r#"{"id":"9","op":{"type":"sing","song":{"b":1e2,"a":1}}}"#;
    let read = submission(line);
    assert!(matches!(&read.op, Op::Unknown(it) if it.kind == "sing"));
    assert_eq!(String::from_utf8(read.to_line()).unwrap(), format!("{line}\n"));
    let line = r#"{"id":"9","msg":{"type":"sung","song":{"b":1e2,"a":1}}}"#;
    let read = event(line);
    assert_eq!((read.msg.kind(), read.msg.is_known()), ("sung", false));
    assert_eq!(String::from_utf8(read.to_line()).unwrap(), format!("{line}\n"));
    let line = r#"{"id":"9","msg":{"type":"hook_started","x":1e2}}"#;
    let read = event(line);
    assert_eq!((read.msg.kind(), read.msg.is_known()), ("hook_started", true));
    assert_eq!(String::from_utf8(read.to_line()).unwrap(), format!("{line}\n"));
    let item = r#"{"type":"hum","id":"x"}"#;
    let read: InputItem<'_> = serde_json::from_str(item).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), item);
}

#[test]
fn a_server_builds_events_and_a_client_submissions() {
    let approval = String::from("call_1");
    let event = Event {
        id: "1".into(),
        msg: EventMsg::ExecApprovalRequest(Box::new(ExecApprovalRequest {
            call_id: approval.clone().into(),
            command: vec!["ls".into()],
            cwd: "/repo".into(),
            ..ExecApprovalRequest::default()
        })),
    };
    let answer = Submission {
        id: "2".into(),
        op: Op::ExecApproval(ExecApproval {
            id: approval.into(),
            decision: Decision::Approved,
            turn_id: None,
        }),
    };
    let turn = Submission {
        id: "3".into(),
        op: Op::UserTurn(Box::new(UserTurn {
            items: vec![InputItem::text("hi")],
            cwd: "/repo".into(),
            sandbox_policy: SandboxPolicy {
                tag: SandboxTag::Mode,
                kind: SandboxKind::WorkspaceWrite(WorkspaceWrite::default()),
            },
            ..UserTurn::default()
        })),
    };
    let end = EventMsg::TaskComplete(TaskComplete::default());
    let end = Event { id: "1".into(), msg: end };
    let text = [event.to_line(), end.to_line(), answer.to_line(), turn.to_line()].concat();
    expect![[r#"
        {"id":"1","msg":{"type":"exec_approval_request","call_id":"call_1","command":["ls"],"cwd":"/repo"}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":null}}
        {"id":"2","op":{"type":"exec_approval","id":"call_1","decision":"approved"}}
        {"id":"3","op":{"type":"user_turn","items":[{"type":"text","text":"hi"}],"cwd":"/repo","approval_policy":"on-request","sandbox_policy":{"mode":"workspace-write","network_access":false,"exclude_tmpdir_env_var":false,"exclude_slash_tmp":false},"model":"","summary":"auto","final_output_json_schema":null}}
    "#]]
    .assert_eq(&String::from_utf8(text).unwrap());
}

#[test]
fn an_event_of_another_shape_still_says_what_it_is() {
    let line = br#"{"id":"1","msg":{"type":"exec_approval_request","call_id":"c","command":7}}"#;
    assert!(Event::parse(line).is_err());
    let expected = Sniffed {
        id: "1".to_owned(),
        kind: "exec_approval_request".to_owned(),
        call_id: Some("c".to_owned()),
    };
    assert_eq!(sniff(line), Some(expected));
    assert_eq!(sniff(br#"{"id":1,"msg":{"type":"x","call_id":[]}}"#).unwrap().kind, "x");
    assert_eq!(sniff(b"[1]"), None);
}

#[test]
fn schema_in_the_repository_is_the_one_these_types_make() {
    expect_file!["../../schema/sqeq.v1.json"].assert_eq(&schema::json_schema());
}

#[test]
fn the_schema_takes_every_line_and_nothing_else() {
    let schema: Value = serde_json::from_str(&schema::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for line in SUBMISSIONS.lines().chain(EVENTS.lines()) {
        let told = value(line.as_bytes());
        let trouble: Vec<String> =
            validator.iter_errors(&told).map(|error| error.to_string()).collect();
        assert!(trouble.is_empty(), "{line}: {trouble:?}");
    }
    // What is written has every field that is always there.
    for line in EVENTS.lines() {
        let written = value(&event(line).to_line());
        assert!(validator.is_valid(&written), "{written}");
    }
    for line in [
        r#"{"id":"1"}"#,
        r#"{"id":1,"op":{"type":"interrupt"}}"#,
        r#"{"id":"1","op":{"type":"no_such_op"}}"#,
        r#"{"id":"1","op":{"type":"user_input","items":"hi"}}"#,
        r#"{"id":"1","msg":{"type":"task_complete"}}"#,
        r#"{"id":"1","msg":{"type":"agent_message","message":7}}"#,
        r#"{"id":"1","msg":{"type":"patch_apply_begin","call_id":"c","auto_approved":true,"changes":{"/a":{"type":"moved"}}}}"#,
    ] {
        assert!(!validator.is_valid(&value(line.as_bytes())), "{line}");
    }
}

#[test]
fn a_bookmark_has_two_names_on_the_way_in() {
    let line = r#"{"id":"1","op":{"type":"user_turn","items":[],"last_response_id":"resp_1"}}"#;
    let Op::UserTurn(turn) = submission(line).op else { panic!("a turn") };
    assert_eq!(turn.response_id.as_deref(), Some("resp_1"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z_/\"\\\\]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_and_no_bytes_break_the_reading(
        body in any_json(),
        which in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let lines: Vec<&str> = EVENTS.lines().chain(SUBMISSIONS.lines()).collect();
        // A known line whose fields are anything.
        let mut known = value(which.get(&lines).as_bytes());
        for name in ["msg", "op"] {
            let Some(Value::Object(fields)) = known.get_mut(name) else { continue };
            for (key, field) in fields.iter_mut() {
                if key != "type" {
                    *field = body.clone();
                }
            }
        }
        for text in [known.to_string().into_bytes(), body.to_string().into_bytes(), bytes] {
            if let Ok(event) = Event::parse(&text) {
                let again = event.to_line();
                let again = Event::parse(&again).unwrap();
                prop_assert_eq!(again.msg.kind(), event.msg.kind());
            }
            if let Ok(read) = Submission::parse(&text) {
                let again = read.to_line();
                let again = Submission::parse(&again).unwrap();
                prop_assert_eq!(again.op.kind(), read.op.kind());
            }
            sniff(&text);
        }
    }

    #[test]
    fn base64_gives_back_what_it_was_given(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
        let text = serde_json::to_string(&Chunk::Bytes(bytes.clone().into())).unwrap();
        let read: Chunk<'_> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.bytes().unwrap().into_owned(), bytes);
    }
}

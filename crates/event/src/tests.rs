use expect_test::{expect, expect_file};

use crate::{
    Answer, BLOB_THRESHOLD, BlobRef, BlobSink, ConversationKey, Epoch, Event, FORMAT, Item,
    ItemBody, ItemId, ItemStatus, Json, Kind, Mode, Native, Request, RequestBody, Scope, Seq,
    Source, Text, Timestamp, ToolClass, TurnId,
};

fn event(kind: Kind) -> Event {
    Event {
        v: FORMAT,
        conversation: ConversationKey::new("demo").unwrap(),
        seq: Seq(7),
        epoch: Epoch(2),
        ts: Timestamp::from_millis(1_794_784_485_253),
        turn: Some(TurnId::from("t1")),
        item: kind.item().cloned(),
        parent: None,
        origin: None,
        native: Native::default(),
        source: Source { driver: "claude".into(), version: None, frames: None },
        kind,
    }
}

fn tool_call(input: &str) -> Item {
    Item {
        id: ItemId::from("toolu_1"),
        status: ItemStatus::InProgress,
        body: ItemBody::ToolCall {
            class: ToolClass::Generic,
            tool: "Grep".into(),
            server: None,
            title: None,
            input: Some(Json::from_text(input.into()).unwrap()),
            output: vec![],
            gist: None,
        },
    }
}

#[test]
fn schema_in_the_repository_is_the_one_these_types_make() {
    expect_file!["../schema/event.v1.json"].assert_eq(&crate::schema::json_schema());
}

#[test]
fn json_of_an_agent_survives_the_round_trip_byte_for_byte() {
    let odd = r#"{"b":1e2,"a":-0,"b":123456789012345678901234,"\u00e9":"\/"}"#;
    let before = event(Kind::ItemStarted(tool_call(odd)));
    let json = before.to_json().unwrap();
    expect![[r#"{"v":1,"conversation":"demo","seq":7,"epoch":2,"ts":"2026-11-15T23:14:45.253Z","turn":"t1","item":"toolu_1","source":{"driver":"claude"},"kind":"item.started","data":{"id":"toolu_1","status":"in_progress","type":"tool_call","class":"generic","tool":"Grep","input":{"b":1e2,"a":-0,"b":123456789012345678901234,"\u00e9":"\/"},"output":[]}}"#]]
    .assert_eq(std::str::from_utf8(&json).unwrap());
    assert_eq!(Event::from_json(&json).unwrap(), before);
}

#[test]
fn requests_and_answers_survive_the_round_trip() {
    let request = Request {
        id: "r1".into(),
        item: None,
        title: "Run touch x".into(),
        reason: None,
        body: RequestBody::Approval(crate::Approval {
            tool: "Bash".into(),
            command: Some("touch x".into()),
            input: Some(Json::from_text(r#"{"command":"touch x"}"#.into()).unwrap()),
            suggestions: vec![Json::from_text(r#"{"type":"setMode"}"#.into()).unwrap()],
            ..crate::Approval::default()
        }),
        options: vec![],
    };
    let before = event(Kind::RequestOpened(request));
    assert_eq!(Event::from_json(&before.to_json().unwrap()).unwrap(), before);

    let answer = Answer::Allow {
        scope: Scope::Session,
        input: Some(Json::from_text(r#"{"z":1,"a":2}"#.into()).unwrap()),
        mode: Some(Mode::AcceptEdits),
    };
    let json = serde_json::to_string(&answer).unwrap();
    expect![[r#"{"answer":"allow","scope":"session","input":{"z":1,"a":2},"mode":"acceptEdits"}"#]]
        .assert_eq(&json);
    assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), answer);
}

#[test]
fn a_newer_format_is_refused_with_its_number() {
    let json = String::from_utf8(event(Kind::UsageUpdated(Default::default())).to_json().unwrap())
        .unwrap()
        .replace("\"v\":1", "\"v\":9");
    let error = Event::from_json(json.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("event format 9 is newer than 1"), "{error}");
}

#[test]
fn what_a_newer_version_added_is_passed_on() {
    let json = String::from_utf8(event(Kind::UsageUpdated(Default::default())).to_json().unwrap())
        .unwrap()
        .replace("usage.updated", "weather.changed");
    let read = Event::from_json(json.as_bytes()).unwrap();
    let Kind::Unparsed(unparsed) = read.kind else { panic!("unparsed") };
    assert!(unparsed.reason.contains("weather.changed"), "{}", unparsed.reason);
    assert!(unparsed.head.contains("input_tokens"), "{}", unparsed.head);
}

#[derive(Default)]
struct Blobs(Vec<(BlobRef, Vec<u8>)>);

impl BlobSink for Blobs {
    fn put(&mut self, blob: &BlobRef, bytes: Vec<u8>) {
        self.0.push((blob.clone(), bytes));
    }
}

#[test]
fn a_large_text_moves_to_a_blob_and_keeps_both_ends() {
    let whole = "é".repeat(BLOB_THRESHOLD);
    let mut kind = Kind::ItemCompleted(Item {
        id: "m1".into(),
        status: ItemStatus::Ok,
        body: ItemBody::AgentMessage { text: whole.clone().into() },
    });
    let mut blobs = Blobs::default();
    kind.externalize(&mut blobs);
    assert_eq!(blobs.0.len(), 1);
    assert_eq!(blobs.0[0].1, whole.as_bytes());
    let after = event(kind);
    let json = after.to_json().unwrap();
    assert!(json.len() < 10_000);
    assert_eq!(Event::from_json(&json).unwrap(), after);
    let Kind::ItemCompleted(Item { body: ItemBody::AgentMessage { text }, .. }) = after.kind else {
        panic!("still an agent message");
    };
    assert_eq!(text.len(), whole.len() as u64);
    let Text::Blob { head, tail, .. } = text else { panic!("a blob") };
    assert!(whole.starts_with(&head) && whole.ends_with(&tail) && !tail.is_empty());
}

#[test]
fn modes_are_read_in_any_spelling() {
    for (text, mode) in [
        ("default", Mode::Default),
        ("accept-edits", Mode::AcceptEdits),
        ("acceptEdits", Mode::AcceptEdits),
        ("ACCEPT_EDITS", Mode::AcceptEdits),
        ("auto", Mode::Auto),
        ("bypass", Mode::BypassPermissions),
        ("danger", Mode::Yolo),
    ] {
        assert_eq!(text.parse::<Mode>().unwrap(), mode);
    }
    assert!("sudo".parse::<Mode>().unwrap_err().to_string().contains("the modes are"));
}

#[test]
fn keys_that_could_be_mistaken_for_flags_or_break_a_terminal_are_refused() {
    for bad in ["", "-x", "a\nb", "a\0", &"k".repeat(201)] {
        assert!(ConversationKey::new(bad).is_err(), "{bad:?}");
    }
    assert!(ConversationKey::new("team/chat 42 ✓").is_ok());
}

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

#[track_caller]
fn check(answer: &Value, sees: bool, expected: Expect) {
    let output = CallResult::read(answer).unwrap().to_model(Limit::Bytes(60), sees);
    expected.assert_eq(&serde_json::to_string(&output).unwrap());
}

#[test]
fn texts_are_joined_and_errors_marked() {
    let answer = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    check(&answer, true, expect![[r#""a\nb""#]]);
    let answer = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    check(&answer, true, expect![[r#""the tool reports an error:\nno""#]]);
}

#[test]
fn a_structured_answer_is_said_once() {
    let structured = json!({"a": 1});
    let answer = json!({"content": [], "structuredContent": structured});
    check(&answer, true, expect![[r#""{\"a\":1}""#]]);
    let text = json!({"type": "text", "text": "{ \"a\": 1 }"});
    let answer = json!({"content": [text], "structuredContent": structured});
    check(&answer, true, expect![[r#""{ \"a\": 1 }""#]]);
}

#[test]
fn a_picture_goes_to_a_model_that_sees() {
    let picture = json!({"type": "image", "mimeType": "image/gif", "data": "R0=="});
    let answer = json!({"content": [{"type": "text", "text": "see"}, picture]});
    check(
        &answer,
        true,
        expect![[
            r#"[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/gif;base64,R0=="}]"#
        ]],
    );
    check(&answer, false, expect![[r#""see\n[a picture, which this model cannot see]""#]]);
}

#[test]
fn documents_sounds_and_what_is_not_known_have_words() {
    let answer = json!({"content": [
        {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
        {"type": "resource_link", "name": "n", "uri": "u:v"},
    ]});
    check(&answer, true, expect![[r#""t\n[n: u:v]""#]]);
    let answer = json!({"content": [{"type": "new", "x": 1}]});
    check(&answer, true, expect![[r#""{\"type\":\"new\",\"x\":1}""#]]);
}

#[test]
fn a_flood_loses_its_middle() {
    let answer = json!({"content": [{"type": "text", "text": "x".repeat(1000)}]});
    let output = CallResult::read(&answer).unwrap().to_model(Limit::Bytes(60), true);
    let Output::Text(text) = output else { panic!("{output:?}") };
    assert!(text.len() < 200 && text.contains("940 chars truncated"), "{text}");
}

#[test]
fn an_answer_without_content_is_none() {
    assert!(CallResult::read(&json!({"result": 1})).is_err());
    assert!(CallResult::read(&json!({"structuredContent": {}})).is_ok());
}

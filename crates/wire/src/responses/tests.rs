use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn item(text: &str) -> Item {
    Item::from_raw(&raw(text))
}

/// One of each kind, with fields and an order that nobody here wrote down.
const ITEMS: &[&str] = &[
    r#"{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"a \u00e9"}],"role":"assistant","phase":"final_answer"}"#,
    r#"{"type":"message","role":"user","content":"short form"}"#,
    r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**x**"}],"content":null,"encrypted_content":"gAAAA+/=\/\u0041"}"#,
    r#"{"type":"function_call","id":"fc_1","call_id":"call_1","name":"shell","arguments":"{\"a\":1e2}","namespace":"mcp"}"#,
    r#"{"type":"function_call_output","call_id":"call_1","output":"text"}"#,
    r#"{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:,"}]}"#,
    r#"{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin","status":"completed"}"#,
    r#"{"type":"custom_tool_call_output","call_id":"c","output":"done"}"#,
    r#"{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}}"#,
    r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
    r#"{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk=","revised_prompt":"p"}"#,
    r#"{"type":"compaction","encrypted_content":"x"}"#,
    r#"{"type":"from_the_future","n":1.0,"n":12345678901234567890123}"#,
];

#[test]
fn an_item_goes_back_as_it_came() {
    for text in ITEMS {
        let item = item(text);
        assert_eq!(serde_json::to_string(&item).unwrap(), *text);
        let stored: Item = serde_json::from_str(text).unwrap();
        assert_eq!(stored, item);
        let body = Request::new("m", vec![item]).to_json();
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains(&format!(r#""input":[{text}]"#)), "{body}");
    }
}

#[test]
fn an_item_is_read_by_its_kind() {
    let kinds: Vec<String> = ITEMS.iter().map(|text| item(text).view().kind().to_owned()).collect();
    for (text, kind) in ITEMS.iter().zip(&kinds) {
        assert!(text.contains(&format!(r#""type":"{kind}""#)), "{kind}: {text}");
        let known = !matches!(item(text).view(), ItemView::Unknown(_));
        assert_eq!(known, kind != "from_the_future", "{text}");
    }
    let long = item(ITEMS[0]);
    let ItemView::Message(message) = long.view() else { panic!() };
    assert_eq!((message.text().as_str(), message.phase.as_deref()), ("a é", Some("final_answer")));
    let short = item(ITEMS[1]);
    let ItemView::Message(message) = short.view() else { panic!() };
    assert_eq!(message.text(), "short form");
    let thinking = item(ITEMS[2]);
    let ItemView::Reasoning(thinking) = thinking.view() else { panic!() };
    assert_eq!(thinking.encrypted_content.as_deref(), Some("gAAAA+/=/A"));
    let pictures = item(ITEMS[5]);
    let ItemView::FunctionCallOutput(ToolOutput { output: Output::Parts(parts), .. }) =
        pictures.view()
    else {
        panic!()
    };
    assert!(matches!(&parts[..], [Part::InputText(_), Part::InputImage(_)]));
}

#[test]
fn what_has_another_shape_is_kept_and_not_read() {
    for text in [r#"{"type":"message","content":7}"#, r#"{"n":1}"#, "[]", "null"] {
        let item = item(text);
        assert!(matches!(item.view(), ItemView::Unknown(_)), "{text}");
        assert_eq!(item.get(), text);
    }
}

#[test]
fn fields_can_be_left_out_and_the_rest_stays() {
    let without = item(ITEMS[2]).without(&["id", "status"]);
    let expected = ITEMS[2].replace(r#""id":"rs_1","#, "");
    assert_eq!(without.get(), expected);
    assert_eq!(item(ITEMS[4]).without(&["id"]).get(), ITEMS[4]);
    assert_eq!(item(r#"{ "id" : 1 }"#).without(&["id"]).get(), "{}");
    assert_eq!(item("[]").without(&["id"]).get(), "[]");
}

#[test]
fn items_are_made_in_the_api_s_form() {
    let made = [
        Item::message("user", "hi \"you\""),
        Item::message("assistant", "yes"),
        Item::function_output("c", Output::Text("out".into())),
        Item::custom_output(
            "c",
            Output::Parts(vec![Part::InputText(Content { text: "t".into() })]),
        ),
    ];
    let made: Vec<&str> = made.iter().map(Item::get).collect();
    assert_eq!(
        made,
        [
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi \"you\""}]}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"out"}"#,
            r#"{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"t"}]}"#,
        ]
    );
}

#[test]
fn a_request_has_what_is_set_and_nothing_else() {
    let schema = |value: Value| -> Arc<RawValue> { Arc::from(to_raw_value(&value).unwrap()) };
    let mut request = Request::new("gpt-5.5", vec![Item::message("user", "hi")]);
    let bare: Value = serde_json::from_slice(&request.to_json()).unwrap();
    assert_eq!(
        bare,
        json!({
            "model": "gpt-5.5", "tools": [], "tool_choice": "auto", "parallel_tool_calls": false,
            "store": false, "stream": true, "include": [],
            "input": [{"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "hi"},
            ]}],
        })
    );
    let text = |word: &str| Some(word.to_owned());
    request.instructions = Arc::from("be brief");
    request.tools = Arc::from([
        Tool::Function {
            name: "f".into(),
            description: "d".into(),
            strict: false,
            parameters: schema(json!({"type": "object"})),
        },
        Tool::Custom {
            name: "apply_patch".into(),
            description: "d".into(),
            format: Some(ToolFormat::Grammar { syntax: "lark".into(), definition: "x".into() }),
        },
        Tool::WebSearch { external_web_access: Some(false) },
        Tool::LocalShell {},
        Tool::Other(schema(json!({"type": "file_search"}))),
    ]);
    request.tool_choice = ToolChoice::Required;
    request.parallel_tool_calls = true;
    request.reasoning = Some(ReasoningOptions { effort: text("medium"), summary: text("auto") });
    request.include = vec![Include::EncryptedReasoning, Include::Other("x.y".into())];
    request.prompt_cache_key = text("thread");
    request.previous_response_id = text("resp_1");
    request.text = Some(TextOptions {
        verbosity: text("low"),
        format: Some(Format::JsonSchema(JsonSchema {
            name: "output".into(),
            strict: true,
            schema: schema(json!({})),
        })),
    });
    request.service_tier = text("flex");
    request.max_output_tokens = Some(5);
    let mut full: Value = serde_json::from_slice(&request.to_json()).unwrap();
    full.as_object_mut().unwrap().remove("input");
    assert_eq!(
        full,
        json!({
            "model": "gpt-5.5", "instructions": "be brief",
            "tools": [
                {"type": "function", "name": "f", "description": "d", "strict": false,
                 "parameters": {"type": "object"}},
                {"type": "custom", "name": "apply_patch", "description": "d",
                 "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
                {"type": "web_search", "external_web_access": false},
                {"type": "local_shell"},
                {"type": "file_search"},
            ],
            "tool_choice": "required", "parallel_tool_calls": true,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": false, "stream": true,
            "include": ["reasoning.encrypted_content", "x.y"],
            "prompt_cache_key": "thread", "previous_response_id": "resp_1",
            "text": {"verbosity": "low", "format": {
                "type": "json_schema", "name": "output", "strict": true, "schema": {},
            }},
            "service_tier": "flex", "max_output_tokens": 5,
        })
    );
}

#[test]
fn every_event_is_read() {
    let text = |data: &str, expected: &str| {
        let event = StreamEvent::parse(data.as_bytes());
        let (StreamEvent::Text(delta)
        | StreamEvent::Refusal(delta)
        | StreamEvent::Summary(delta)
        | StreamEvent::Reasoning(delta)
        | StreamEvent::SummaryPartAdded(delta)
        | StreamEvent::CustomInput(delta)) = event
        else {
            panic!("{data}: {event:?}")
        };
        assert_eq!(&*delta.delta, expected);
        (delta.item_id.to_string(), delta.summary_index + delta.content_index)
    };
    let place = r#""item_id":"m","output_index":0"#;
    let delta = |kind: &str, index: &str| {
        format!(r#"{{"type":"response.{kind}",{place},"{index}":3,"delta":"x"}}"#)
    };
    for (kind, index) in [
        ("output_text.delta", "content_index"),
        ("refusal.delta", "content_index"),
        ("reasoning_text.delta", "content_index"),
        ("reasoning_summary_text.delta", "summary_index"),
    ] {
        assert_eq!(text(&delta(kind, index), "x"), ("m".to_owned(), 3));
    }
    assert_eq!(text(&delta("reasoning_summary_part.added", "summary_index"), "x").1, 3);
    text(&delta("custom_tool_call_input.delta", "none"), "x");
    // The tag may stand behind the rest, and everything else may be missing.
    text(r#"{"delta":"a\nb","type":"response.output_text.delta"}"#, "a\nb");
    text(r#"{"type":"response.output_text.delta","item_id":null,"delta":null}"#, "");
    let done =
        br#"{"type":"response.output_item.done","output_index":2,"item":{"type":"x", "b":1}}"#;
    let StreamEvent::ItemDone(done) = StreamEvent::parse(done) else { panic!() };
    assert_eq!((done.output_index, done.to_item().get()), (2, r#"{"type":"x", "b":1}"#));
    let added = StreamEvent::parse(br#"{"type":"response.output_item.added","item":null}"#);
    assert!(matches!(added, StreamEvent::ItemAdded(_)));
}

#[test]
fn the_end_of_an_answer_is_never_missed() {
    let end = |data: &'static str| match StreamEvent::parse(data.as_bytes()) {
        StreamEvent::Completed(response) => response,
        other => panic!("{other:?}"),
    };
    let whole = end(
        r#"{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15},"end_turn":false,"output":[{"big":1}]}}"#,
    );
    assert_eq!((whole.id.as_deref(), whole.end_turn), (Some("r"), Some(false)));
    let usage = crate::sqeq::TokenUsage::from(whole.usage.unwrap());
    assert_eq!((usage.cached_input_tokens, usage.reasoning_output_tokens), (4, 2));
    for data in [
        r#"{"type":"response.completed"}"#,
        r#"{"type":"response.completed","response":null}"#,
        r#"{"type":"response.completed","response":{"id":null,"usage":null}}"#,
        r#"{"type":"response.completed","response":{"id":7,"usage":{"input_tokens":"many"}}}"#,
    ] {
        let response = end(data);
        assert!(response.id.is_none() && response.usage.is_none(), "{data}");
    }
    let partial = end(
        r#"{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":2,"input_tokens_details":null}}}"#,
    );
    assert_eq!(partial.usage.unwrap().total(), 3);
}

#[test]
fn failures_carry_their_reason() {
    let failed = |data: &'static str| match StreamEvent::parse(data.as_bytes()) {
        StreamEvent::Failed(response) => response.error.unwrap(),
        StreamEvent::Error(error) => error,
        other => panic!("{other:?}"),
    };
    let error = failed(
        r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"try again in 1.3s"}}}"#,
    );
    assert_eq!((error.about(), &*error.message), (ErrorKind::RateLimit, "try again in 1.3s"));
    let flat = failed(r#"{"type":"error","code":"slow_down","message":"m","param":null}"#);
    assert_eq!((flat.about(), &*flat.message), (ErrorKind::Overloaded, "m"));
    let nested = failed(
        r#"{"type":"error","error":{"type":"server_error","code":null,"message":"The server had an error"}}"#,
    );
    assert_eq!((nested.about(), nested.word()), (ErrorKind::Other, "server_error".to_owned()));
    let cut = StreamEvent::parse(
        br#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#,
    );
    let StreamEvent::Incomplete(cut) = cut else { panic!() };
    assert_eq!(cut.reason(), "max_output_tokens");
}

#[test]
fn what_is_not_known_is_not_an_error() {
    let kind = |data: &'static [u8]| match StreamEvent::parse(data) {
        StreamEvent::Unknown(kind) => kind.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(br#"{"type":"response.in_progress","response":{}}"#), "response.in_progress");
    assert_eq!(kind(b"[DONE]"), "");
    assert_eq!(kind(b"{\"type\":\"response.comp"), "");
    assert_eq!(kind(b"{\"type\":\"\xff\"}"), "");
    assert_eq!(kind(b""), "");
}

#[test]
fn refusals_are_read_in_every_spelling() {
    let read = |body: &'static str| {
        let error = ApiError::read(body.as_bytes()).unwrap_or_else(|| panic!("{body}"));
        (error.about(), error.message.to_string())
    };
    let about = |body| read(body).0;
    assert_eq!(
        about(
            r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#
        ),
        ErrorKind::Model
    );
    assert_eq!(
        read(
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#
        ),
        (ErrorKind::Model, "The model `x` does not exist.".to_owned())
    );
    assert_eq!(
        read(r#"{"error":"model 'x' not found"}"#),
        (ErrorKind::Model, "model 'x' not found".to_owned())
    );
    assert_eq!(read(r#"{"detail":"Not Found"}"#), (ErrorKind::Other, "Not Found".to_owned()));
    assert_eq!(
        about(r#"[{"error":{"code":400,"message":"API key not valid.","status":"X"}}]"#),
        ErrorKind::Key
    );
    assert_eq!(
        about(
            r#"{"error":{"type":"usage_limit_reached","message":"m","plan_type":"plus","resets_in_seconds":60}}"#
        ),
        ErrorKind::Quota
    );
    assert_eq!(
        about(r#"{"error":{"message":"This model's maximum context length is 5 tokens"}}"#),
        ErrorKind::ContextWindow
    );
    let page = r#"{"error":{"message":"the scripted model has no such page","type":"not_found_error","code":null}}"#;
    assert_eq!(about(page), ErrorKind::Other);
    for body in ["", "<html>", "{}", r#"{"error":null}"#, "[]", "7"] {
        assert!(ApiError::read(body.as_bytes()).is_none(), "{body}");
    }
}

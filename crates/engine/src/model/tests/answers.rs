//! Answers in every condition.

use std::time::Duration;

use tieline_testkit::model::ModelServer;
use tieline_wire::responses::{Item, Request, StreamEvent};

use super::server::{Reply, Server, Then, chunked, open_ended};
use super::{ask, client, drain, provider, request, text};
use crate::model::{Client, ModelError, Retry};

/// One of each event there is, in the order of a real answer.
const EVENTS: &[&str] = &[
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"model":"gpt-5.5","output":[],"usage":null}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
    r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Thinking**"}"#,
    r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"hm"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAA==","summary":[{"type":"summary_text","text":"**Thinking**"}]}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"ct_1","type":"custom_tool_call","status":"in_progress","call_id":"call_1","input":"","name":"apply_patch"}}"#,
    r#"{"type":"response.custom_tool_call_input.delta","item_id":"ct_1","output_index":1,"delta":"*** Begin"}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":2,"content_index":0,"delta":"żółć 🙂 \"x\"\n","logprobs":[]}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","text":"żółć"}],"role":"assistant"}}"#,
    r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}}}"#,
];

/// Short to wait for, long enough for a busy machine to say what it has to.
const SILENCE: Duration = Duration::from_millis(400);

/// The first of them as server-sent events.
fn answer(n_events: usize) -> Vec<u8> {
    EVENTS.iter().take(n_events).flat_map(|data| event(data).into_bytes()).collect()
}

fn event(data: &str) -> String {
    let name = data.split('"').nth(3).unwrap();
    format!("event: {name}\ndata: {data}\n\n")
}

fn lost(error: &ModelError) -> bool {
    matches!(error, ModelError::Lost(_)) && error.retry() == Retry::Stream(None)
}

#[tokio::test]
async fn a_whole_answer_ends_with_its_completion() {
    let body = answer(EVENTS.len());
    for reply in [open_ended(&body), chunked([&body[..]], true, "")] {
        let server = Server::start(vec![reply]).await;
        let mut stream = ask(&server.url).await.unwrap();
        let (said, unknown) = text(&mut stream).await.unwrap();
        assert_eq!((said.as_str(), unknown.len()), ("żółć 🙂 \"x\"\n", 0));
        assert_eq!(drain(&mut stream).await, (0, Ok(())));
    }
}

#[tokio::test]
async fn an_answer_cut_between_two_events_is_lost_after_them() {
    for n_events in 0..EVENTS.len() {
        let body = answer(n_events);
        let ends = [
            open_ended(&body),
            chunked(body.chunks(999), true, ""),
            chunked(body.chunks(999), false, ""),
        ];
        for reply in ends {
            let server = Server::start(vec![reply.clone()]).await;
            let mut stream = ask(&server.url).await.unwrap();
            let (events, end) = drain(&mut stream).await;
            assert_eq!(events, n_events);
            assert!(lost(&end.unwrap_err()), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_cut_anywhere_never_gives_half_an_event() {
    let body = answer(EVENTS.len());
    let replies = (0..body.len()).map(|cut| open_ended(&body[..cut])).collect();
    let server = Server::start(replies).await;
    let client = client(&server.url);
    let mut completed = 0;
    for cut in 0..body.len() {
        let mut stream = client.stream(&request()).await.unwrap();
        let mut seen = 0;
        let end = loop {
            match stream.next().await {
                // Half a line is no JSON.
                Ok(Some(StreamEvent::Unknown(kind))) => assert!(kind.is_empty()),
                Ok(Some(_)) => seen += 1,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // The line ends after the data may be missing.
        let whole =
            (0..=EVENTS.len()).rfind(|n| answer(*n).len().saturating_sub(2) <= cut).unwrap();
        assert_eq!(seen, whole, "cut at {cut}");
        match end {
            Ok(()) => completed += 1,
            Err(error) => assert!(lost(&error), "cut at {cut}: {error}"),
        }
    }
    assert_eq!(completed, 2);
}

#[tokio::test]
async fn chunks_of_any_size_make_the_same_answer() {
    let body = answer(EVENTS.len());
    for size in [1, 2, 3, 5, 17, 100, 1000] {
        let server = Server::start(vec![chunked(body.chunks(size), true, "")]).await;
        let mut stream = ask(&server.url).await.unwrap();
        let (said, unknown) = text(&mut stream).await.unwrap();
        assert_eq!((said.as_str(), unknown.len()), ("żółć 🙂 \"x\"\n", 0), "chunks of {size}");
    }
}

#[tokio::test]
async fn garbage_and_unknown_events_are_passed_over() {
    let mut body =
        b"\xef\xbb\xbf: hello\n\nretry: 5\nid: 1\n\ndata: [DONE]\n\ndata: {\"type\":\n\n\
        \xff\xfe\x00garbage\n\ndata: \xff\n\nevent: keepalive\ndata: {\"type\":\"keepalive\"}\n\n"
            .to_vec();
    body.extend(answer(EVENTS.len()));
    let server = Server::start(vec![open_ended(&body)]).await;
    let (said, unknown) = text(&mut ask(&server.url).await.unwrap()).await.unwrap();
    assert_eq!(said, "żółć 🙂 \"x\"\n");
    assert_eq!(unknown, ["", "", "", "keepalive"]);
}

#[tokio::test]
async fn silence_ends_an_answer() {
    for n_events in [0, 3] {
        let mut reply =
            chunked([&b": begin\n\n"[..], &answer(n_events)].concat().chunks(50), false, "");
        reply.then = Then::Hang;
        let server = Server::start(vec![reply]).await;
        let mut provider = provider(&server.url);
        provider.stream_idle_timeout = SILENCE;
        let mut stream = Client::new(provider).unwrap().stream(&request()).await.unwrap();
        let (events, end) = drain(&mut stream).await;
        let error = end.unwrap_err();
        assert_eq!((events, &error), (n_events, &ModelError::Idle(SILENCE)));
        assert_eq!(error.retry(), Retry::Stream(None));
    }
}

#[tokio::test]
async fn silence_before_an_answer_ends_it_too() {
    let reply = Reply { bytes: Vec::new(), then: Then::Hang };
    let server = Server::start(vec![reply]).await;
    let mut provider = provider(&server.url);
    provider.stream_idle_timeout = Duration::from_millis(30);
    let error = Client::new(provider).unwrap().stream(&request()).await.unwrap_err();
    assert_eq!(error, ModelError::Idle(Duration::from_millis(30)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_caller_that_looks_elsewhere_loses_nothing_and_still_hears_of_silence() {
    let mut reply = chunked([&answer(3)[..]], false, "");
    reply.then = Then::Hang;
    let server = Server::start(vec![reply]).await;
    let mut provider = provider(&server.url);
    provider.stream_idle_timeout = SILENCE;
    let mut stream = Client::new(provider).unwrap().stream(&request()).await.unwrap();
    let mut events = 0;
    let error = loop {
        // Each wait is given up long before the time is over.
        match tokio::time::timeout(Duration::from_millis(2), stream.next()).await {
            Err(_) => {}
            Ok(Ok(Some(_))) => events += 1,
            Ok(Ok(None)) => panic!("the answer is not whole"),
            Ok(Err(error)) => break error,
        }
    };
    assert_eq!((events, error), (3, ModelError::Idle(SILENCE)));
}

#[tokio::test]
async fn an_event_over_the_limit_is_refused() {
    let mut body = b"data: {\"type\":\"response.output_text.delta\",\"delta\":\"".to_vec();
    body.resize(body.len() + tieline_wire::sse::DEFAULT_LIMIT, b'x');
    let server = Server::start(vec![open_ended(&body)]).await;
    let (events, end) = drain(&mut ask(&server.url).await.unwrap()).await;
    let error = end.unwrap_err();
    assert_eq!((events, error.retry()), (0, Retry::Never));
    assert!(matches!(error, ModelError::Protocol(_)), "{error}");
}

#[tokio::test]
async fn failures_within_an_answer_are_typed() {
    let failed = |code: &str, message: &str| {
        format!(
            r#"{{"type":"response.failed","response":{{"error":{{"code":"{code}","message":"{message}"}}}}}}"#
        )
    };
    let end = async |data: String| {
        let body = [answer(3), event(&data).into_bytes(), answer(EVENTS.len())].concat();
        let server = Server::start(vec![open_ended(&body)]).await;
        let mut stream = ask(&server.url).await.unwrap();
        let (events, end) = drain(&mut stream).await;
        assert_eq!(events, 3);
        // Nothing comes after an error.
        assert_eq!(drain(&mut stream).await, (0, Ok(())));
        end.unwrap_err()
    };
    let error = end(failed("context_length_exceeded", "too long")).await;
    assert!(matches!(error, ModelError::ContextWindowExceeded(_)), "{error}");
    for code in ["insufficient_quota", "usage_not_included"] {
        let error = end(failed(code, "no money")).await;
        assert!(matches!(error, ModelError::UsageLimit { .. }), "{error}");
        assert_eq!(error.retry(), Retry::Never);
    }
    let error = end(failed("invalid_prompt", "bad")).await;
    assert!(matches!(error, ModelError::BadRequest(_)), "{error}");
    let error = end(failed("server_is_overloaded", "busy")).await;
    assert!(matches!(error, ModelError::Overloaded { .. }), "{error}");
    let error = end(failed("rate_limit_exceeded", "Please try again in 1.3s.")).await;
    assert_eq!(error.retry(), Retry::Stream(Some(Duration::from_millis(1300))));
    let error = end(failed("server_error", "oops")).await;
    assert_eq!(error.retry(), Retry::Stream(None));
    let error = end(r#"{"type":"response.failed","response":{"error":null}}"#.to_owned()).await;
    assert!(matches!(error, ModelError::Server { .. }), "{error}");
    let error = end(r#"{"type":"error","code":"slow_down","message":"m"}"#.to_owned()).await;
    assert!(matches!(error, ModelError::Overloaded { .. }), "{error}");
    let incomplete = r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":7}}}"#;
    let error = end(incomplete.to_owned()).await;
    let ModelError::Incomplete { reason, usage } = &error else { panic!("{error}") };
    assert_eq!((reason.as_str(), usage.unwrap().input_tokens), ("max_output_tokens", 7));
    assert_eq!(error.retry(), Retry::Never);
}

/// Every scenario of the scripted model: what the recorded agents were answered with.
#[tokio::test]
async fn all_of_the_scripted_model_is_understood() {
    let server = ModelServer::start().await;
    let client = client(&format!("{}/v1", server.url()));
    let scenarios = [
        "hello",
        "echo",
        "unicode",
        "think",
        "long",
        "shell",
        "shells",
        "parallel",
        "write",
        "bigout",
        "fail-command",
        "patch",
        "read",
        "plan",
        "question",
        "websearch",
        "mcp",
        "unknown-tool",
    ];
    for scenario in scenarios {
        let prompt = Item::message("user", &format!("Do it. SCENARIO:{scenario}"));
        let mut stream = client.stream(&Request::new("gpt-5.5", vec![prompt])).await.unwrap();
        let (mut items, mut completed) = (0, false);
        while let Some(event) = stream.next().await.unwrap() {
            match event {
                StreamEvent::ItemDone(done) => {
                    items += 1;
                    let item = done.to_item();
                    assert_eq!(item.get(), done.item.get());
                    let kind = item.view().kind().to_owned();
                    assert!(!kind.is_empty());
                    let back = Request::new("m", vec![item.clone()]).to_json();
                    let back = String::from_utf8(back).unwrap();
                    assert!(back.contains(item.get()), "{scenario}: {kind}");
                }
                StreamEvent::Completed(response) => {
                    completed = true;
                    assert!(response.usage.unwrap().total_tokens >= 1050);
                }
                // The whole arguments follow in the item.
                StreamEvent::Unknown(kind) => {
                    assert_eq!(&*kind, "response.function_call_arguments.delta", "{scenario}");
                }
                _ => {}
            }
        }
        assert!(completed && items > 0, "{scenario}");
    }
}

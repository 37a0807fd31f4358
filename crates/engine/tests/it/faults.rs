//! What a provider can do wrong: what heals is tried again, what does not fails the turn with what to
//! do about it, and the conversation goes on.

use std::time::Duration;

use serde_json::{Value, json};
use tieline_event::{
    FailureCode, ItemBody, ItemStatus, Kind, Mode, Prompt, TurnCompleted, TurnStatus,
};
use tieline_hub::Hub;
use tieline_testkit::probe;

use crate::provider::{
    End, Provider, Reply, answer, command, completed, event, message, reasoning,
};
use crate::stage::{Stage, Talk};

/// A stage before a provider.
async fn stage(
    script: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static,
) -> (Stage, Provider) {
    let provider = Provider::start(script).await;
    let mut stage = Stage::new().await;
    stage.settings.provider.base_url = provider.url.clone();
    (stage, provider)
}

async fn open(stage: &Stage) -> (Hub, Talk) {
    let hub = stage.hub();
    let talk = stage.open(&hub, Mode::Yolo).await;
    (hub, talk)
}

/// How often another try was announced.
fn n_announced(talk: &Talk) -> usize {
    let is_it = |kind: &Kind| matches!(kind, Kind::Notice(it) if it.code == "api_retry");
    talk.events.iter().filter(|event| is_it(&event.kind)).count()
}

/// The turn failed in this way, ended once, and said what to do.
#[track_caller]
fn failed(talk: &Talk, end: &TurnCompleted, code: FailureCode) -> String {
    assert_eq!(end.status, TurnStatus::Failed, "{:#?}", talk.names());
    let error = end.error.clone().unwrap();
    assert_eq!(error.code, code, "{error:?}");
    let ends = talk.events.iter().filter(|it| matches!(it.kind, Kind::TurnCompleted(_))).count();
    assert_eq!(ends, 1, "{:#?}", talk.names());
    error.hint.unwrap_or_else(|| panic!("no hint: {}", error.message))
}

/// The first replies are bad, the others good.
async fn heals(bad: usize, reply: fn() -> Reply, change: fn(&mut Stage)) -> (usize, usize) {
    let (mut stage, provider) = stage(move |n, _| match n {
        n if n < bad => reply(),
        n => Reply::say(&n.to_string(), "Fine."),
    })
    .await;
    change(&mut stage);
    let (_hub, mut talk) = open(&stage).await;
    let end = talk.say("hello").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    assert_eq!(end.text.preview(), "Fine.");
    let whole = talk.items().into_iter().filter(|item| item.status == ItemStatus::Ok);
    let whole: Vec<&str> = whole.map(|item| item.body.name()).collect();
    assert_eq!(whole, ["user_message", "agent_message"], "{:#?}", talk.names());
    (provider.asked().len(), n_announced(&talk))
}

/// Every reply is bad, until the provider is mended.
async fn fails(code: FailureCode, reply: fn() -> Reply, n_bad: usize) -> (String, usize) {
    let (mut stage, provider) = stage(move |_, body| {
        let input = body["input"].to_string();
        match input.contains("go on") {
            true => Reply::say("well", "Fine."),
            false => reply(),
        }
    })
    .await;
    stage.settings.provider.stream_idle_timeout = Duration::from_millis(200);
    stage.settings.provider.retry_pause = Duration::from_millis(1);
    let (_hub, mut talk) = open(&stage).await;
    let end = talk.say("hello").await;
    let hint = failed(&talk, &end, code);
    assert_eq!(provider.asked().len(), n_bad, "{:#?}", talk.names());
    let n_announced = n_announced(&talk);
    let end = talk.say("go on").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    // Nothing of the broken answers is in the history.
    let asked = provider.asked();
    let input = asked.last().unwrap()["input"].as_array().unwrap();
    assert!(input.iter().all(|item| item["role"] != "assistant"), "{input:#?}");
    let said = |text: &str| input.iter().filter(|it| it["content"][0]["text"] == text).count();
    assert_eq!((said("hello"), said("go on")), (1, 1), "{input:#?}");
    (hint, n_announced)
}

fn broken() -> Reply {
    let events = answer("b", &[message("msg_b", "Half of it.")]);
    Reply::stream(&events[..3], End::Cut)
}

fn error_event(code: &str, message: &str) -> Reply {
    let error = json!({"code": code, "message": message});
    let mut events = answer("f", &[message_of()]);
    events.pop();
    events.push(event("response.failed", json!({"response": {"id": "resp_f", "error": error}})));
    Reply::stream(&events, End::Whole)
}

fn message_of() -> Value {
    message("msg_f", "Before it failed.")
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_come_to_an_end() {
    // One request and five more.
    let (hint, announced) = fails(FailureCode::StreamLost, broken, 6).await;
    assert!(hint.contains("network"), "{hint}");
    assert_eq!(announced, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_is_asked_again() {
    // Within the four tries of a request nobody hears of it.
    let reply = || Reply::refusal(500, &json!({"error": {"message": "oops"}}));
    assert_eq!(heals(3, reply, |_| {}).await, (4, 0));
    assert_eq!(heals(7, reply, |_| {}).await, (8, 1));
    let (_, announced) = fails(FailureCode::ProviderUnavailable, reply, 30).await;
    assert_eq!(announced, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_how_long_to_wait() {
    let reply = || Reply::Refusal {
        status: 429,
        header: ("retry-after-ms", "20".to_owned()),
        kind: "application/json",
        body: json!({"error": {"type": "requests", "message": "slow down"}}).to_string(),
    };
    // With a pause of our own it would take too long.
    let patient = |stage: &mut Stage| {
        stage.settings.provider.retry_pause = Duration::from_secs(3600);
    };
    assert_eq!(heals(2, reply, patient).await, (3, 2));
    let in_words = || error_event("rate_limit_exceeded", "Rate limit: try again in 28ms.");
    assert_eq!(heals(2, in_words, patient).await, (3, 2));
    let (_, announced) = fails(FailureCode::RateLimited, reply, 6).await;
    assert_eq!(announced, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_heal_is_not_repeated() {
    let usage = || {
        let error = json!({
            "type": "usage_limit_reached", "message": "The usage limit has been reached",
            "resets_in_seconds": 600,
        });
        Reply::refusal(429, &json!({"error": error}))
    };
    let (hint, announced) = fails(FailureCode::RateLimited, usage, 1).await;
    assert!(hint.contains("10 minutes"), "{hint}");
    assert_eq!(announced, 0);
    let quota = || error_event("insufficient_quota", "You exceeded your current quota");
    let (hint, _) = fails(FailureCode::RateLimited, quota, 1).await;
    assert!(hint.contains("billing"), "{hint}");
    let long = || error_event("context_length_exceeded", "Your input is too long");
    fails(FailureCode::BadRequest, long, 1).await;
    let key = || Reply::refusal(401, &json!({"error": {"message": "bad key"}}));
    let (hint, _) = fails(FailureCode::NotLoggedIn, key, 1).await;
    assert!(!hint.contains("codex"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_fails_in_its_midst_is_asked_for_again() {
    let reply = || error_event("server_error", "something broke");
    assert_eq!(heals(2, reply, |_| {}).await, (3, 2));
    let overloaded = || error_event("server_is_overloaded", "later");
    assert_eq!(heals(1, overloaded, |_| {}).await, (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_given_up() {
    let silent = || {
        let events = answer("s", &[message("msg_s", "And then")]);
        Reply::stream(&events[..3], End::Silent)
    };
    let hasty = |stage: &mut Stage| {
        stage.settings.provider.stream_idle_timeout = Duration::from_millis(200);
    };
    assert_eq!(heals(1, silent, hasty).await, (2, 1));
    // Not even a first event.
    let mute = || Reply::Stream { bytes: Vec::new(), end: End::Silent };
    assert_eq!(heals(1, mute, hasty).await, (2, 1));
    let (_, announced) = fails(FailureCode::StreamLost, silent, 6).await;
    assert_eq!(announced, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_no_answer() {
    let noise = || {
        let bytes = (0..5000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        Reply::Stream { bytes, end: End::Whole }
    };
    assert_eq!(heals(1, noise, |_| {}).await, (2, 1));
    let page = || Reply::Refusal {
        status: 200,
        header: ("x-proxy", "yes".to_owned()),
        kind: "text/html",
        body: "<html>Sign in to the network</html>".to_owned(),
    };
    let (hint, announced) = fails(FailureCode::Protocol, page, 1).await;
    assert!(hint.contains("base_url"), "{hint}");
    assert_eq!(announced, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_understood_within_an_answer_is_passed_over() {
    let reply = |_: usize, _: &Value| {
        let mut events = Vec::new();
        for event in answer("u", &[message("msg_u", "All of it.")]) {
            events.push(": a comment\n\n".to_owned());
            events.push("event: response.from_the_future\ndata: {\"type\":\"new\"}\n\n".to_owned());
            events.push("data: {\"type\":\"response.output_text.del\n\n".to_owned());
            events.push("data: 7\n\ndata:\n\n\u{0}\u{1}: \u{7f}\nid: 3\nretry: 1\n\n".to_owned());
            events.push(event);
        }
        Reply::stream(&events, End::Whole)
    };
    let (stage, provider) = stage(reply).await;
    let (_hub, mut talk) = open(&stage).await;
    let end = talk.say("hello").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    assert_eq!(end.text.preview(), "All of it.");
    assert_eq!((provider.asked().len(), n_announced(&talk)), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_short_stays_in_the_history() {
    let (stage, provider) = stage(|n, _| {
        if n > 0 {
            return Reply::say("more", "The rest.");
        }
        let mut events = answer("i", &[message("msg_i", "The first half")]);
        events.pop();
        let details = json!({"reason": "max_output_tokens"});
        let response =
            json!({"id": "resp_i", "status": "incomplete", "incomplete_details": details});
        events.push(event("response.incomplete", json!({"response": response})));
        Reply::stream(&events, End::Whole)
    })
    .await;
    let (_hub, mut talk) = open(&stage).await;
    let end = talk.say("hello").await;
    let hint = failed(&talk, &end, FailureCode::MaxTokens);
    assert!(hint.contains("go on"), "{hint}");
    let end = talk.say("go on").await;
    assert_eq!(end.text.preview(), "The rest.");
    let asked = provider.asked();
    assert_eq!(asked.len(), 2);
    let input = asked[1]["input"].as_array().unwrap();
    let halves = input.iter().filter(|item| item["id"] == "msg_i").count();
    assert_eq!(halves, 1, "{input:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_pieces_are_one_exact_text() {
    const PIECES: usize = 100_000;
    let text = || (0..PIECES).map(|n| format!("{n} ")).collect::<String>();
    let (stage, provider) = stage(move |n, _| {
        if n > 0 {
            return Reply::say("more", "Fine.");
        }
        let item = message("msg_l", &text());
        let opened = json!({"type": "message", "id": "msg_l", "role": "assistant"});
        let mut events =
            vec![event("response.output_item.added", json!({"item": opened, "output_index": 0}))];
        events.extend((0..PIECES).map(|n| {
            let data = json!({"item_id": "msg_l", "output_index": 0, "delta": format!("{n} ")});
            event("response.output_text.delta", data)
        }));
        events.push(event("response.output_item.done", json!({"item": item, "output_index": 0})));
        events.push(completed("l"));
        Reply::stream(&events, End::Whole)
    })
    .await;
    let (_hub, mut talk) = open(&stage).await;
    let end = talk.say("hello").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    assert_eq!(end.text.len(), text().len() as u64);
    assert_eq!(talk.item_names(), ["user_message", "agent_message"]);
    talk.say("and now").await;
    let asked = provider.asked();
    assert_eq!(asked.len(), 2);
    let input = asked[1]["input"].as_array().unwrap();
    let said = input.iter().find(|item| item["id"] == "msg_l").unwrap();
    assert_eq!(said["content"][0]["text"], text());
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_one_answer_grow_apart() {
    let (stage, _provider) = stage(|_, _| {
        let items = [
            reasoning("rs_1", "One thought."),
            message("msg_1", "One message."),
            reasoning("rs_2", "Another thought."),
            message("msg_2", "Another message."),
        ];
        Reply::stream(&answer("m", &items), End::Whole)
    })
    .await;
    let (_hub, mut talk) = open(&stage).await;
    let end = talk.say("hello").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let said: Vec<(String, String)> = talk
        .items()
        .into_iter()
        .filter_map(|item| match item.body {
            ItemBody::AgentMessage { text } | ItemBody::Reasoning { text, .. } => {
                let grown = talk.grown.get(item.id.as_str()).cloned().unwrap_or_default();
                Some((grown, text.preview().to_owned()))
            }
            _ => None,
        })
        .collect();
    let mut whole: Vec<&str> = said.iter().map(|(_, whole)| whole.as_str()).collect();
    whole.sort_unstable();
    let all = ["Another message.", "Another thought.", "One message.", "One thought."];
    assert_eq!(whole, all);
    assert!(said.iter().all(|(grown, whole)| grown == whole), "{said:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_a_command_that_ignores_it_and_keeps_what_was_done() {
    let (stage, provider) = stage(|n, _| {
        if n > 0 {
            return Reply::say(&n.to_string(), "Fine.");
        }
        let stubborn = "trap '' TERM INT HUP; echo on >> stubborn.txt; while :; do sleep 1; done";
        let items = [command("quick", "echo the quick one"), command("stubborn", stubborn)];
        let mut events = answer("c", &items);
        events.pop();
        Reply::stream(&events, End::Silent)
    })
    .await;
    let (_hub, mut talk) = open(&stage).await;
    talk.conversation.start_turn(Prompt::text("hello")).await.unwrap();
    // The first has ended, and the other one runs.
    talk.until(|kind| {
        matches!(kind, Kind::ItemCompleted(item) if matches!(item.body, ItemBody::Command { .. }))
    })
    .await;
    let began = stage.workspace().join("stubborn.txt");
    until(|| began.exists()).await;
    talk.conversation.interrupt().await.unwrap();
    let end = talk.end().await;
    assert_eq!(end.status, TurnStatus::Interrupted, "{:#?}", talk.names());
    let marker = format!("HOME={}", stage.dir.path().display());
    until(|| probe::alive_with(&marker).is_empty()).await;
    let end = talk.say("and now").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let asked = provider.asked();
    let input = asked.last().unwrap()["input"].as_array().unwrap();
    let output = |call: &str| {
        let is_it =
            |item: &&Value| item["type"] == "function_call_output" && item["call_id"] == call;
        let all: Vec<&Value> = input.iter().filter(is_it).collect();
        assert_eq!(all.len(), 1, "{input:#?}");
        all[0]["output"].as_str().unwrap().to_owned()
    };
    assert!(output("quick").contains("the quick one"), "{input:#?}");
    assert_eq!(output("stubborn"), "aborted by user");
}

/// Waits for something outside.
async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap();
}

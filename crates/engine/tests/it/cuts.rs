//! An answer that breaks off anywhere: the turn ends once, and nothing is there twice.

use std::collections::HashMap;
use std::sync::Mutex;

use futures::StreamExt;
use serde_json::Value;
use tieline_event::{ItemBody, ItemStatus, Kind, Mode, TurnStatus};
use tieline_hub::Hub;

use crate::provider::{End, Provider, Reply, answer, command, message, reasoning};
use crate::stage::{Stage, Talk};

/// Where the first answer of a conversation ends, and what the second try says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    /// After so many bytes.
    at: usize,
    end: End,
    /// The second try is the first once more, to the byte.
    same: bool,
}

/// The first answer of a case, or its second try.
fn items(case: usize, again: bool) -> Vec<Value> {
    let id = |what: &str| format!("{what}_{case}_{}", u8::from(again));
    let n = if again { "again" } else { "first" };
    let call = id("call");
    vec![
        reasoning(&id("rs"), &format!("Thinking {n}.")),
        message(&id("before"), &format!("Before, {n}.")),
        command(&call, &format!("echo {call} >> ran.txt")),
        message(&id("after"), &format!("After, {n}.")),
    ]
}

/// Every cut between two events and in the middle of each.
fn cases() -> Vec<Case> {
    let events = answer("0", &items(0, false));
    let mut cases = Vec::new();
    let mut begin = 0;
    for event in &events {
        for (at, end) in [
            (begin, End::Cut),
            (begin, End::Whole),
            (begin + event.len() / 2, End::Cut),
            (begin + event.len() / 2, End::Whole),
            // Its lines are whole, but not the event.
            (begin + event.len() - 1, End::Cut),
        ] {
            cases.push(Case { at, end, same: cases.len() % 3 == 0 });
        }
        begin += event.len();
    }
    cases
}

/// The number after the word `case` in the first message of the user.
fn number_of(body: &Value) -> usize {
    let texts = body["input"].as_array().unwrap().iter().filter(|item| item["role"] == "user");
    let mut numbers = texts.filter_map(|item| {
        let text = item["content"][0]["text"].as_str()?;
        text.strip_prefix("case ")?.parse().ok()
    });
    numbers.next().unwrap()
}

/// Tries of each case, counted.
async fn provider(cases: Vec<Case>) -> Provider {
    let tries: Mutex<HashMap<usize, usize>> = Mutex::default();
    Provider::start(move |_, body| {
        let number = number_of(body);
        let Case { at, end, same } = cases[number];
        let n_tries = {
            let mut tries = tries.lock().unwrap();
            let count = tries.entry(number).or_default();
            *count += 1;
            *count
        };
        let id = format!("{number}_{n_tries}");
        match n_tries {
            1 => {
                // The numbers of cases differ in length; the place is that of the first.
                let whole = answer("0", &items(0, false)).concat();
                let begin = whole.get(..at).unwrap();
                let bytes = begin.replace("_0_0", &format!("_{number}_0")).into_bytes();
                Reply::Stream { bytes, end }
            }
            2 => Reply::stream(&answer(&id, &items(number, !same)), End::Whole),
            3 => Reply::stream(&answer(&id, &[message("done", "Done.")]), End::Whole),
            _ => Reply::say(&id, "More."),
        }
    })
    .await
}

async fn play(stage: &Stage, hub: &Hub, number: usize) -> Talk {
    let mut talk = stage.open_as(hub, Mode::Yolo, &format!("case {number}")).await;
    let end = talk.say(&format!("case {number}")).await;
    assert_eq!(end.status, TurnStatus::Completed, "{number}: {:#?}", talk.names());
    assert_eq!(end.text.preview(), "Done.", "{number}: {:#?}", talk.names());
    talk
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_cut_anywhere_is_asked_for_again_and_nothing_is_doubled() {
    let cases = cases();
    assert!(cases.len() > 80);
    let provider = provider(cases.clone()).await;
    let mut stage = Stage::new().await;
    stage.settings.provider.base_url = provider.url.clone();
    let hub = stage.hub();
    let numbers = futures::stream::iter(0..cases.len());
    let talks: Vec<Talk> =
        numbers.map(|number| play(&stage, &hub, number)).buffered(8).collect().await;
    let ran = std::fs::read_to_string(stage.workspace().join("ran.txt")).unwrap();
    for (number, talk) in talks.into_iter().enumerate() {
        let what = format!("{number} {:?}: {:#?}", cases[number], talk.names());
        let ran: Vec<&str> =
            ran.lines().filter(|line| line.starts_with(&format!("call_{number}_"))).collect();
        check_shown(&talk, number, cases[number], &ran, &what);
        talk.conversation.close().await.unwrap();
    }
    drop(hub);
    // As the journal has it.
    let hub = stage.hub();
    let numbers = futures::stream::iter(0..cases.len());
    let more = numbers.map(|number| {
        let (stage, hub) = (&stage, &hub);
        async move {
            let mut talk = stage.open_as(hub, Mode::Yolo, &format!("case {number}")).await;
            let end = talk.say("more").await;
            assert_eq!(end.text.preview(), "More.", "{number}: {:#?}", talk.names());
            assert_eq!(count(&talk, |kind| matches!(kind, Kind::TurnCompleted(_))), 1);
        }
    });
    more.buffered(8).collect::<Vec<()>>().await;
    let mut asked: HashMap<usize, Vec<Value>> = HashMap::new();
    for body in provider.asked() {
        asked.entry(number_of(&body)).or_default().push(body);
    }
    for (number, case) in cases.iter().enumerate() {
        check_asked(&asked[&number], &format!("{number} {case:?}"));
    }
}

fn count(talk: &Talk, is_it: impl Fn(&Kind) -> bool) -> usize {
    talk.events.iter().filter(|event| is_it(&event.kind)).count()
}

/// Every message was shown once, and of the broken answer only what led to a call that ran.
fn check_shown(talk: &Talk, number: usize, case: Case, ran: &[&str], what: &str) {
    assert_eq!(count(talk, |kind| matches!(kind, Kind::TurnCompleted(_))), 1, "{what}");
    let (first, again) = (format!("call_{number}_0"), format!("call_{number}_1"));
    let of_first = ran.iter().filter(|id| **id == first).count();
    let of_again = ran.iter().filter(|id| **id == again).count();
    assert_eq!(of_first + of_again, ran.len(), "{what}");
    let said: Vec<String> = talk
        .items()
        .into_iter()
        .filter(|item| item.status == ItemStatus::Ok)
        .filter_map(|item| match item.body {
            ItemBody::AgentMessage { text } => Some(text.preview().to_owned()),
            _ => None,
        })
        .collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    match (case.same, of_first) {
        (true, _) => {
            assert_eq!((of_first, of_again), (1, 0), "{what}");
            assert_eq!(said, ["Before, first.", "After, first.", "Done."], "{what}");
        }
        (false, 0) => {
            assert_eq!(of_again, 1, "{what}");
            assert_eq!(said, ["Before, again.", "After, again.", "Done."], "{what}");
        }
        (false, _) => {
            assert_eq!((of_first, of_again), (1, 1), "{what}");
            let all = ["Before, first.", "Before, again.", "After, again.", "Done."];
            assert_eq!(said, all, "{what}");
        }
    }
    // What began has ended, one way or the other.
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for event in &talk.events {
        match &event.kind {
            Kind::ItemStarted(item) => open.push(&item.id),
            Kind::ItemCompleted(item) => closed.push(&item.id),
            _ => {}
        }
    }
    assert!(open.iter().all(|id| closed.contains(id)), "{what}");
    closed.sort();
    assert!(closed.windows(2).all(|pair| pair[0] != pair[1]), "{what}");
}

/// What the model was sent has nothing twice, and the journal gives the same.
fn check_asked(asked: &[Value], what: &str) {
    assert_eq!(asked.len(), 4, "{what}");
    let inputs: Vec<&Vec<Value>> =
        asked.iter().map(|body| body["input"].as_array().unwrap()).collect();
    for input in &inputs {
        let mut ids: Vec<&str> = input.iter().filter_map(|item| item["id"].as_str()).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{what}: {input:#?}");
        let of = |kind: &str| -> Vec<&str> {
            let of_kind = input.iter().filter(|item| item["type"] == kind);
            of_kind.map(|item| item["call_id"].as_str().unwrap()).collect()
        };
        let (calls, outputs) = (of("function_call"), of("function_call_output"));
        assert_eq!(calls, outputs, "{what}");
        let mut unique = calls.clone();
        unique.dedup();
        assert_eq!(calls, unique, "{what}");
    }
    let (before, after) = (inputs[2], inputs[3]);
    let mut expected = before.clone();
    expected.push(message("done", "Done."));
    assert_eq!(after[..after.len() - 1], expected, "{what}");
    let last = after.last().unwrap();
    assert_eq!(last["content"][0]["text"], "more", "{what}");
}

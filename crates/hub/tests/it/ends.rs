//! What ends a turn, where more than one thing could.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tieline_event::{
    Answer, EndSignal, Event, FrameNo, Kind, Origin, Prompt, Seq, TurnCompleted, TurnStatus,
};
use tieline_hub::{Error, Hub, Limits, Notification, OnRequest, TurnContext};
use tieline_store::Options;

use crate::bench::{Bench, Wire, is_message, key, quick, until, until_end};

const CODEX: [Wire; 3] = [Wire::App, Wire::Exec, Wire::Proto];

#[tokio::test]
async fn a_process_that_lingers_does_not_keep_the_turn_open() {
    let bench = Bench::on(Wire::Exec, "say Done.\nlinger 3600000");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    for _ in 0..2 {
        // The second turn waits for the first process, but no longer than the grace.
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        let (_, _, end) = until_end(&mut live, &turn).await;
        assert_eq!((end.status, end.signal), (TurnStatus::Completed, EndSignal::Wire));
        assert_eq!(end.text.preview(), "Done.");
    }
    assert!(!bench.alive().is_empty(), "it lingers");
    hub.close_all().await;
    assert!(bench.alive().is_empty());
}

#[tokio::test]
async fn exec_takes_no_message_in_a_turn_and_queues_it_when_asked_to() {
    let bench = Bench::on(Wire::Exec, "sleep 300\necho");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let first = conversation.start_turn(Prompt::text("one")).await.unwrap();
    let refused = conversation.steer(Prompt::text("two")).await.unwrap_err();
    assert!(matches!(&refused, Error::Refused(why) if why.contains("--queue")), "{refused}");
    let queued = conversation.clone();
    let queued = tokio::spawn(async move { queued.steer_or_queue(Prompt::text("two")).await });
    let (_, _, end) = until_end(&mut live, &first).await;
    assert_eq!(end.text.preview(), "one");
    let second = queued.await.unwrap().unwrap().expect("a turn of its own");
    let (_, _, end) = until_end(&mut live, &second).await;
    assert_eq!((second.as_str(), end.text.preview()), ("t2", "two"));
    hub.close_all().await;
}

#[tokio::test]
async fn the_other_wires_take_a_message_in_a_turn() {
    for wire in [Wire::App, Wire::Proto] {
        let bench = Bench::on(wire, "say Wait.\nsleep 300\necho");
        let hub = bench.hub();
        let (conversation, mut live) = bench.open(&hub).await;
        let turn = conversation.start_turn(Prompt::text("one")).await.unwrap();
        until(&mut live, |event| is_message(event).then_some(())).await;
        let steered = conversation.steer_or_queue(Prompt::text("two")).await.unwrap();
        assert_eq!(steered, None, "{wire:?}");
        let (_, _, end) = until_end(&mut live, &turn).await;
        assert_eq!(end.text.preview(), "one", "{wire:?}");
        hub.close_all().await;
    }
}

/// The agent's own name of its last turn, where its wire tells one.
fn turn_name(hub: &Hub) -> Option<String> {
    let mut name = None;
    let visit = &mut |frame: tieline_store::FrameRef<'_>| {
        let line: Value = serde_json::from_slice(frame.bytes).unwrap_or_default();
        if line["method"] == "turn/started" {
            name = line["params"]["turn"]["id"].as_str().map(str::to_owned);
        }
        if line["msg"]["type"] == "task_started" {
            name = line["id"].as_str().map(str::to_owned);
        }
        ControlFlow::Continue(())
    };
    hub.store().frames(&key(), FrameNo(1), visit).unwrap();
    name
}

/// Turn one is over by its wire when its notification comes, and turn two runs.
#[tokio::test]
async fn a_late_notification_does_not_end_the_next_turn() {
    for wire in [Wire::App, Wire::Proto] {
        let script = "say One.\n---\nsay Two.\nsleep 400\nsay Three.";
        let bench = Bench::on(wire, script);
        let limits = Limits { notify_grace: Duration::from_millis(50), ..quick() };
        let hub = bench.hub_with(limits, Options::default());
        let (conversation, mut live) = bench.open(&hub).await;
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        until_end(&mut live, &turn).await;
        let session = hub.store().conversation(&key()).unwrap().unwrap().native_session;
        let late = Notification { session, turn: turn_name(&hub), text: "One.".to_owned() };
        let turn = conversation.start_turn(Prompt::text("go on")).await.unwrap();
        until(&mut live, |event| is_message(event).then_some(())).await;
        conversation.notified(late).await.unwrap();
        let (_, _, end) = until_end(&mut live, &turn).await;
        assert_eq!((end.signal, end.text.preview()), (EndSignal::Wire, "Three."), "{wire:?}");
        hub.close_all().await;
    }
}

/// A turn whose agent's notify program speaks up after the first message.
async fn notified(wire: Wire, script: &str, grace: u64, to: Option<&str>) -> TurnCompleted {
    let bench = Bench::on(wire, script);
    let limits = Limits {
        notify_grace: Duration::from_millis(grace),
        turn_timeout: Some(Duration::from_secs(20)),
        ..quick()
    };
    let hub = bench.hub_with(limits, Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    until(&mut live, |event| is_message(event).then_some(())).await;
    let own = hub.store().conversation(&key()).unwrap().unwrap().native_session.unwrap();
    let session = to.map_or(own, str::to_owned);
    let began = Instant::now();
    let text = "Told by notify.".to_owned();
    let turn_name = turn_name(&hub);
    let notification = Notification { session: Some(session), turn: turn_name, text };
    conversation.notified(notification).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    if end.signal == EndSignal::Notify {
        assert!(began.elapsed() >= Duration::from_millis(grace), "{wire:?}: the wire goes first");
    }
    hub.close_all().await;
    bench.nobody_is_left().await;
    end
}

#[tokio::test]
async fn a_notification_ends_a_turn_whose_wire_stays_silent() {
    for wire in CODEX {
        let end = notified(wire, "say Said.\nsilence", 200, None).await;
        assert_eq!(
            (end.status, end.signal),
            (TurnStatus::Completed, EndSignal::Notify),
            "{wire:?}"
        );
        assert_eq!(end.text.preview(), "Told by notify.", "{wire:?}");
    }
}

#[tokio::test]
async fn a_notification_does_not_go_before_the_wires_own_end() {
    for wire in CODEX {
        let end = notified(wire, "say Said.\nsleep 200", 5000, None).await;
        assert_eq!((end.status, end.signal), (TurnStatus::Completed, EndSignal::Wire), "{wire:?}");
        assert_eq!(end.text.preview(), "Said.", "{wire:?}");
    }
}

#[tokio::test]
async fn a_notification_of_another_session_means_nothing() {
    for wire in CODEX {
        let end = notified(wire, "say Said.\nsleep 400", 50, Some("somebody-else")).await;
        assert_eq!((end.status, end.signal), (TurnStatus::Completed, EndSignal::Wire), "{wire:?}");
    }
}

#[tokio::test]
async fn silence_ends_a_turn_on_a_wire_without_an_end() {
    assert_eq!(Limits::default().silence, Some(Duration::from_secs(30)));
    let limits = Limits { silence: Some(Duration::from_millis(300)), ..quick() };
    let bench = Bench::on(Wire::OldExec, "say Done.\nsilence");
    let hub = bench.hub_with(limits.clone(), Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!((end.status, end.signal), (TurnStatus::Completed, EndSignal::Idle));
    assert_eq!(end.text.preview(), "Done.");
    bench.nobody_is_left().await;
    // An agent that goes by itself needs no silence, and one that speaks on is not silent.
    bench.play("say One.\nsleep 200\nsay Two.\nsleep 200\nsay Three.");
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!((end.status, end.signal), (TurnStatus::Completed, EndSignal::Process));
    assert_eq!(end.text.preview(), "Three.");
    hub.close_all().await;
}

#[tokio::test]
async fn a_full_raw_log_loses_its_oldest_lines_and_no_event() {
    const N: usize = 1500;
    // Several segments of 256 KiB, because the log is cut between them.
    const CAP: u64 = 512 * 1024;
    for wire in [Wire::App, Wire::Exec, Wire::Proto] {
        let script: String = (0..N).map(|n| format!("say {}\n", noise(n))).collect();
        let bench = Bench::on(wire, &script);
        let limits = Limits { raw_bytes: Some(CAP), ..quick() };
        let hub = bench.hub_with(limits, Options::default());
        let (conversation, mut live) = bench.open(&hub).await;
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        let is_told =
            |event: &Event| matches!(&event.kind, Kind::Notice(it) if it.code == "raw_log_capped");
        until_end(&mut live, &turn).await;
        // It is told on the way or soon after the end.
        let mut whole = conversation.subscribe(Seq(0));
        until(&mut whole, |event| is_told(event).then_some(())).await;
        hub.close_all().await;
        let mut n_messages = 0;
        for (n, stored) in hub.store().events(&key(), Seq(0), 100_000).unwrap().iter().enumerate() {
            let event = Event::from_json(&stored.json).unwrap();
            assert_eq!(event.seq.0, n as u64 + 1, "{wire:?}");
            n_messages += usize::from(is_message(&event));
        }
        assert_eq!(n_messages, N, "{wire:?}");
        let mut numbers = Vec::new();
        hub.store()
            .frames(&key(), FrameNo(0), &mut |frame| {
                numbers.push(frame.no.0);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(numbers[0] > 0, "{wire:?}: the oldest are gone");
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{wire:?}: {numbers:?}");
    }
}

/// Text that does not get smaller.
fn noise(seed: usize) -> String {
    let mut state = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap())
    };
    (0..1000).map(|_| letter()).collect()
}

#[tokio::test]
async fn an_ask_handler_is_let_go_when_somebody_else_answers() {
    let bench = Bench::new("ask-permission Bash {\"command\":\"ls\"}\nsay Done.");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let answering = tokio::spawn(async move {
        let request = until(&mut live, |event| match &event.kind {
            Kind::RequestOpened(request) => Some(request.id.clone()),
            _ => None,
        })
        .await;
        conversation.answer(&request, Answer::allow(), Origin::Client, None).await.unwrap();
    });
    let context = TurnContext {
        open: bench.open_options(),
        on_request: OnRequest::Ask(Arc::new(|_| Box::pin(std::future::pending()))),
        timeout: None,
    };
    let key = key();
    let turn = hub.run_turn(&key, "go", context);
    let outcome = tokio::time::timeout(Duration::from_secs(30), turn).await.expect("it ends");
    assert_eq!(outcome.unwrap().text, "Done.");
    answering.await.unwrap();
    hub.close_all().await;
}

//! What a conversation does when the agent, the disk or we ourselves fail.

use std::time::{Duration, Instant};

use tieline_event::{EndSignal, FailureCode, Kind, Prompt, Seq, TurnStatus};
use tieline_hub::{Error, Limits};
use tieline_store::Options;

use crate::bench::{Bench, key, quick, until, until_end};

/// Runs one turn and gives how it failed.
async fn failure(script: &str) -> (TurnStatus, EndSignal, Option<FailureCode>, String) {
    let bench = Bench::new(script);
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let began = Instant::now();
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert!(began.elapsed() < Duration::from_secs(4), "known after {:?}", began.elapsed());
    let ends = events.iter().filter(|event| matches!(event.kind, Kind::TurnCompleted(_)));
    assert_eq!(ends.count(), 1);
    hub.close_all().await;
    bench.nobody_is_left().await;
    let error = end.error.as_ref();
    (
        end.status,
        end.signal,
        error.map(|it| it.code),
        error.map(ToString::to_string).unwrap_or_default(),
    )
}

#[tokio::test]
async fn every_way_an_agent_can_die_is_one_failed_turn() {
    for (script, signal, code) in [
        ("exit 0", EndSignal::Process, FailureCode::AgentExited),
        ("exit 3", EndSignal::Process, FailureCode::AgentExited),
        ("kill KILL", EndSignal::Process, FailureCode::AgentKilled),
        ("kill ABRT", EndSignal::Process, FailureCode::AgentKilled),
        ("say half\nexit 1", EndSignal::Process, FailureCode::AgentExited),
        ("close stdout\nsilence", EndSignal::Tieline, FailureCode::Protocol),
        ("result api-error", EndSignal::Wire, FailureCode::ProviderUnavailable),
    ] {
        let (status, by, found, message) = failure(script).await;
        assert_eq!(status, TurnStatus::Failed, "{script}");
        assert_eq!(by, signal, "{script}: {message}");
        if signal == EndSignal::Wire {
            assert!(found.is_some(), "{script}");
        } else {
            assert_eq!(found, Some(code), "{script}: {message}");
        }
        assert!(!message.is_empty());
    }
}

#[tokio::test]
async fn stderr_of_a_dying_agent_is_in_the_failure() {
    let bench = Bench::new("stderr out of cheese\nexit 7");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert!(end.error.unwrap().detail.unwrap().contains("out of cheese"));
    let exited = events.iter().find_map(|event| match &event.kind {
        Kind::ProcessExited(it) => Some(it.clone()),
        _ => None,
    });
    assert_eq!(exited.unwrap().code, Some(7));
    hub.close_all().await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_cannot_hang_the_turn() {
    let bench = Bench::new("say all of this\nsetsid hold\nexit 0");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let began = Instant::now();
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (events, ..) = until_end(&mut live, &turn).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let exited = events.iter().find_map(|event| match &event.kind {
        Kind::ProcessExited(it) => Some(it.clone()),
        _ => None,
    });
    let exited = exited.unwrap();
    assert!(exited.cut, "the event says that the output was cut");
    assert_eq!(exited.killed, 1);
    let text = events.iter().any(|event| match &event.kind {
        Kind::ItemCompleted(item) => format!("{item:?}").contains("all of this"),
        _ => false,
    });
    assert!(text, "what was written before is kept");
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn an_agent_that_ignores_everything_is_killed() {
    let bench = Bench::new("ignore TERM\nsetsid\nclose stdin\nsilence");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    // Its input is closed, so it cannot hear the interrupt.
    while bench.alive().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    conversation.interrupt().await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    bench.nobody_is_left().await;
    hub.close_all().await;
}

#[tokio::test]
async fn an_oversized_line_is_one_unparsed_event_and_the_turn_goes_on() {
    let bench = Bench::new("huge 3000000\nsay Still here.");
    let limits = Limits { line: 1 << 20, ..quick() };
    let hub = bench.hub_with(limits, Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.text.preview(), "Still here.");
    let unparsed: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::Unparsed(it) => Some(it.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(unparsed.len(), 1);
    assert!(unparsed[0].bytes >= 2_999_999 && unparsed[0].sha256.is_some());
    hub.close_all().await;
}

#[tokio::test]
async fn a_large_answer_is_kept_whole_beside_its_event() {
    let bench = Bench::new("huge 400000");
    let hub = bench.hub();
    let context = tieline_hub::TurnContext { open: bench.open_options(), ..Default::default() };
    hub.run_turn(&key(), "go", context).await.unwrap();
    let events = hub.store().events(&key(), Seq(0), 1000).unwrap();
    assert!(events.iter().all(|event| event.json.len() < 70_000), "no row is huge");
    let blob = events.iter().find_map(|stored| {
        let text = std::str::from_utf8(&stored.json).unwrap();
        let at = text.find("\"sha256\":\"")? + 10;
        text.get(at..at + 64).map(str::to_owned)
    });
    let whole = hub.store().blob(&blob.unwrap()).unwrap().unwrap();
    assert!(whole.len() > 300_000);
    hub.close_all().await;
}

#[tokio::test]
async fn a_full_disk_fails_clearly_and_loses_nothing_that_was_shown() {
    let script: String = (0..800).map(|n| format!("say message number {n}\n")).collect();
    let bench = Bench::new(&script);
    let limits = Limits { store_patience: Duration::from_millis(300), ..quick() };
    let options = Options { max_pages: Some(80), ..Options::default() };
    let hub = bench.hub_with(limits, options);
    let (conversation, mut live) = bench.open(&hub).await;
    conversation.start_turn(Prompt::text("go")).await.unwrap();
    let mut shown = Vec::new();
    let error = loop {
        let next = tokio::time::timeout(Duration::from_secs(30), live.next());
        match next.await.expect("the store is full by now") {
            Ok(entries) => shown.extend(entries),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::Lost(why) if why.contains("full")), "{error}");
    hub.close_all().await;
    bench.nobody_is_left().await;
    drop((hub, conversation, live));
    // With room again, everything that was shown is there and the turn has its end.
    let hub = bench.hub();
    let (_conversation, mut live) = bench.open(&hub).await;
    let (events, _, end) = until_end(&mut live, &"t1".into()).await;
    assert_eq!((end.status, end.signal), (TurnStatus::Failed, EndSignal::Tieline));
    for entry in shown {
        if let tieline_hub::Entry::Event(shown) = entry {
            let stored = events.iter().find(|event| event.seq == shown.event.seq);
            assert_eq!(stored, Some(&shown.event));
        }
    }
    hub.close_all().await;
}

#[tokio::test]
async fn a_second_hub_on_the_same_store_is_told_who_holds_the_conversation() {
    let bench = Bench::new("say Hello.");
    let first = bench.hub();
    let (_conversation, _) = bench.open(&first).await;
    let second = bench.hub();
    let error = second.conversation(&key(), bench.open_options()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    first.close_all().await;
    second.conversation(&key(), bench.open_options()).await.unwrap();
    second.close_all().await;
}

#[tokio::test]
async fn an_agent_that_cannot_start_is_a_failed_turn_with_advice() {
    let bench = Bench::new("nonsense verb");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    let error = end.error.unwrap();
    assert_eq!(error.code, FailureCode::AgentCannotStart);
    assert!(error.detail.unwrap().contains("nonsense verb"));
    assert!(error.hint.is_some());
    hub.close_all().await;
}

#[tokio::test]
async fn closing_in_the_middle_of_a_turn_ends_it_as_interrupted() {
    let bench = Bench::new("double-fork\nsilence");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    conversation.start_turn(Prompt::text("go")).await.unwrap();
    while bench.alive().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    hub.close_all().await;
    bench.nobody_is_left().await;
    let end = until(&mut live, |event| match &event.kind {
        Kind::TurnCompleted(end) => Some(end.status),
        _ => None,
    })
    .await;
    assert_eq!(end, TurnStatus::Interrupted);
}

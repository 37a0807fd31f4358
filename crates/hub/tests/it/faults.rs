//! What a conversation does when the agent, the disk or we ourselves fail.

use std::time::{Duration, Instant};

use tieline_event::{
    EndSignal, Event, FailureCode, Kind, Prompt, Seq, TurnCompleted, TurnStatus, Unparsed,
};
use tieline_hub::{Entry, Error, Limits};
use tieline_store::Options;

use crate::bench::{Bench, WIRES, Wire, exit_in, is_message, key, quick, until, until_end};

/// Runs one turn that has begun to speak, and gives how it ended and how long after its last word
/// that was known.
async fn end_of(wire: Wire, script: &str) -> (TurnCompleted, Duration) {
    let bench = Bench::on(wire, &format!("say half\n{script}"));
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (mut spoke, mut ends) = (None, Vec::new());
    while ends.is_empty() {
        let next = tokio::time::timeout(Duration::from_secs(30), live.next());
        for entry in next.await.expect("a turn ends").unwrap() {
            let Entry::Event(shown) = entry else { continue };
            match &shown.event.kind {
                Kind::TurnCompleted(end) => ends.push(end.clone()),
                _ if is_message(&shown.event) => spoke = Some(Instant::now()),
                _ => {}
            }
        }
    }
    let known_after = spoke.expect("it spoke first").elapsed();
    assert_eq!(ends.len(), 1, "{wire:?}: {script}");
    bench.works_again(&conversation, &mut live).await;
    let (events, ..) = until_end(&mut conversation.subscribe(Seq(0)), &turn).await;
    assert!(events.iter().any(is_message), "{wire:?}, {script}: what was said is kept");
    hub.close_all().await;
    bench.nobody_is_left().await;
    (ends.remove(0), known_after)
}

#[tokio::test]
async fn an_agents_death_is_known_within_a_second_and_the_next_turn_works() {
    for wire in WIRES {
        for (script, code) in [
            ("exit 0", FailureCode::AgentExited),
            ("exit 3", FailureCode::AgentExited),
            ("kill KILL", FailureCode::AgentKilled),
            ("kill SEGV", FailureCode::AgentKilled),
            ("fork\nkill ABRT", FailureCode::AgentKilled),
        ] {
            let (end, known_after) = end_of(wire, script).await;
            assert!(known_after < Duration::from_secs(1), "{wire:?}, {script}: {known_after:?}");
            let error = end.error.unwrap();
            assert_eq!(
                (end.status, end.signal, error.code),
                (TurnStatus::Failed, EndSignal::Process, code),
                "{wire:?}, {script}: {error}"
            );
            assert!(error.hint.is_some(), "{wire:?}, {script}");
        }
    }
}

#[tokio::test]
async fn an_agent_that_closes_its_output_fails_the_turn() {
    for wire in WIRES {
        let (end, known_after) = end_of(wire, "close stdout\nsilence").await;
        assert!(known_after < Duration::from_secs(4), "{wire:?}: {known_after:?}");
        let code = end.error.unwrap().code;
        assert_eq!((end.signal, code), (EndSignal::Tieline, FailureCode::Protocol), "{wire:?}");
    }
}

#[tokio::test]
async fn a_failure_the_agent_tells_is_the_failure_of_the_turn() {
    for wire in WIRES {
        let (end, _) = end_of(wire, "result api-error\n---\nsay Back again.").await;
        let code = end.error.unwrap().code;
        assert_eq!((end.status, end.signal), (TurnStatus::Failed, EndSignal::Wire), "{wire:?}");
        assert_eq!(code, FailureCode::ProviderUnavailable, "{wire:?}");
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
    assert_eq!(exit_in(&events).unwrap().code, Some(7));
    hub.close_all().await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_cannot_hang_the_turn() {
    let bench = Bench::new("say all of this\nsetsid hold\nexit 0");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (events, ..) = until_end(&mut live, &turn).await;
    let exited = exit_in(&events).unwrap();
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
    for wire in WIRES {
        let bench = Bench::on(wire, "say Wait.\nignore TERM\ndeaf\nsetsid\nsilence");
        let hub = bench.hub();
        let (conversation, mut live) = bench.open(&hub).await;
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        bench.has_descendants().await;
        let began = Instant::now();
        conversation.interrupt().await.unwrap();
        let (events, _, end) = until_end(&mut live, &turn).await;
        let grace = quick().interrupt_grace;
        assert!(began.elapsed() >= grace, "{wire:?}: not before {grace:?}");
        assert_eq!(end.status, TurnStatus::Interrupted, "{wire:?}");
        assert_eq!(exit_in(&events).unwrap().signal, Some(9), "{wire:?}");
        bench.nobody_is_left().await;
        bench.works_again(&conversation, &mut live).await;
        hub.close_all().await;
    }
}

#[tokio::test]
async fn what_no_driver_can_read_is_kept_and_the_turn_goes_on() {
    let script = "garbage {oops\ngarbage not json\ngarbage [1,2]\ngarbage {\"method\":5}\n\
                  garbage {\"id\":[],\"msg\":7}\nbytes ff fe 00 0d 0a\nhuge 3000000\n\
                  garbage {\"type\":\nsay Still here.";
    for wire in WIRES {
        let bench = Bench::on(wire, script);
        let hub = bench.hub_with(Limits { line: 1 << 20, ..quick() }, Options::default());
        let (conversation, mut live) = bench.open(&hub).await;
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        let (events, _, end) = until_end(&mut live, &turn).await;
        assert_eq!(end.text.preview(), "Still here.", "{wire:?}: {:?}", end.error);
        assert_eq!((end.status, end.signal), (TurnStatus::Completed, EndSignal::Wire), "{wire:?}");
        let unparsed: Vec<_> = unparsed(&events).collect();
        assert_eq!(unparsed.len(), 8, "{wire:?}: {unparsed:?}");
        let longest = unparsed.iter().max_by_key(|it| it.bytes).unwrap();
        assert!(longest.bytes >= 2_999_999 && longest.sha256.is_some(), "{wire:?}: {longest:?}");
        hub.close_all().await;
    }
}

#[tokio::test]
async fn a_line_over_64_mib_is_one_event_and_the_turn_goes_on() {
    for wire in WIRES {
        let bench = Bench::on(wire, "huge 67108900\nsay Still here.");
        let hub = bench.hub();
        let (conversation, mut live) = bench.open(&hub).await;
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        let (events, _, end) = until_end(&mut live, &turn).await;
        assert_eq!(end.text.preview(), "Still here.", "{wire:?}: {:?}", end.error);
        let lengths: Vec<u64> = unparsed(&events).map(|it| it.bytes).collect();
        assert_eq!(lengths.len(), 1, "{wire:?}: {lengths:?}");
        assert!(lengths[0] >= 67_108_900, "{wire:?}: {lengths:?}");
        hub.close_all().await;
    }
}

#[tokio::test]
async fn half_a_line_before_the_end_is_kept() {
    for wire in WIRES {
        let bench = Bench::on(wire, "say Whole.\nbytes 7b 22 69 64 22\nexit 0");
        let hub = bench.hub();
        let (conversation, mut live) = bench.open(&hub).await;
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        let (events, _, end) = until_end(&mut live, &turn).await;
        assert_eq!(end.error.unwrap().code, FailureCode::AgentExited, "{wire:?}");
        assert!(events.iter().any(is_message), "{wire:?}");
        let lengths: Vec<u64> = unparsed(&events).map(|it| it.bytes).collect();
        assert_eq!(lengths, [5], "{wire:?}");
        hub.close_all().await;
    }
}

#[tokio::test]
async fn silence_ends_with_the_turns_time_and_with_nothing_else() {
    // Silence is an end only where the wire has none.
    let limits = Limits {
        turn_timeout: Some(Duration::from_millis(600)),
        silence: Some(Duration::from_millis(100)),
        ..quick()
    };
    for wire in WIRES {
        for script in ["say Wait.\nsilence", "half-line {\"type\":\"it"] {
            let bench = Bench::on(wire, script);
            let hub = bench.hub_with(limits.clone(), Options::default());
            let (conversation, mut live) = bench.open(&hub).await;
            let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
            let (_, _, end) = until_end(&mut live, &turn).await;
            assert_eq!(
                (end.status, end.signal, end.error.map(|it| it.code)),
                (TurnStatus::Failed, EndSignal::Timeout, Some(FailureCode::Timeout)),
                "{wire:?}, {script}"
            );
            hub.close_all().await;
            bench.nobody_is_left().await;
        }
    }
}

fn unparsed(events: &[Event]) -> impl Iterator<Item = &Unparsed> {
    events.iter().filter_map(|event| match &event.kind {
        Kind::Unparsed(it) => Some(it),
        _ => None,
    })
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
        if let Entry::Event(shown) = entry {
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
    for wire in WIRES {
        let bench = Bench::on(wire, "double-fork\nsilence");
        let hub = bench.hub();
        let (conversation, mut live) = bench.open(&hub).await;
        conversation.start_turn(Prompt::text("go")).await.unwrap();
        bench.has_descendants().await;
        hub.close_all().await;
        assert!(bench.alive().is_empty(), "{wire:?}");
        let end = until(&mut live, |event| match &event.kind {
            Kind::TurnCompleted(end) => Some(end.status),
            _ => None,
        })
        .await;
        assert_eq!(end, TurnStatus::Interrupted, "{wire:?}");
    }
}

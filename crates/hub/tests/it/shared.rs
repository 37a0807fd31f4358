//! Conversations that share an app server.

use std::collections::BTreeSet;

use tieline_event::{ConversationKey, Event, FailureCode, Kind, Prompt, Seq, TurnId, TurnStatus};
use tieline_hub::{Conversation, Hub, Subscription};
use tieline_testkit::probe;

use crate::bench::{Bench, Wire, is_message, until, until_end};

fn named(name: &str) -> ConversationKey {
    ConversationKey::new(name).unwrap()
}

async fn open<const N: usize>(
    bench: &Bench,
    hub: &Hub,
    names: [&str; N],
) -> [(Conversation, Subscription); N] {
    let mut opened = Vec::new();
    for name in names {
        opened.push(bench.open_as(hub, &named(name)).await);
    }
    opened.try_into().unwrap_or_else(|_| panic!("as many as names"))
}

async fn begin(conversation: &Conversation, text: &str) -> TurnId {
    conversation.start_turn(Prompt::text(text)).await.unwrap()
}

/// A turn that says what it was told.
async fn echoes(conversation: &Conversation, live: &mut Subscription, text: &str) {
    let turn = begin(conversation, text).await;
    let (_, _, end) = until_end(live, &turn).await;
    assert_eq!((end.status, end.text.preview()), (TurnStatus::Completed, text), "{:?}", end.error);
}

/// The process a conversation was last given.
fn pid_of(hub: &Hub, name: &str) -> u32 {
    let events = hub.store().events(&named(name), Seq(0), 10_000).unwrap();
    let spawned = events.iter().rev().find_map(|stored| {
        let event: Event = Event::from_json(&stored.json).unwrap();
        match event.kind {
            Kind::ProcessSpawned(it) => Some(it.pid),
            _ => None,
        }
    });
    spawned.expect("a process was started")
}

#[tokio::test]
async fn two_conversations_share_a_process_and_speak_at_once() {
    let bench = Bench::on(Wire::Shared(2), "say Wait.\nsleep 300\necho");
    let hub = bench.hub();
    let [(a, mut live_a), (b, mut live_b)] = open(&bench, &hub, ["a", "b"]).await;
    // At the same moment: the second one waits for the process that the first one starts.
    let (turn_a, turn_b) = tokio::join!(begin(&a, "text of a"), begin(&b, "text of b"));
    let ((_, streamed_a, end_a), (_, streamed_b, end_b)) =
        tokio::join!(until_end(&mut live_a, &turn_a), until_end(&mut live_b, &turn_b));
    assert_eq!((end_a.text.preview(), end_b.text.preview()), ("text of a", "text of b"));
    // A reader that came late has the beginning in an event.
    assert!("Wait.text of a".ends_with(&streamed_a), "{streamed_a}");
    assert!("Wait.text of b".ends_with(&streamed_b), "{streamed_b}");
    assert_eq!(pid_of(&hub, "a"), pid_of(&hub, "b"));
    assert_eq!(bench.alive(), [pid_of(&hub, "a")]);
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn one_that_leaves_does_not_disturb_the_other_and_the_last_one_ends_the_process() {
    let bench = Bench::on(Wire::Shared(2), "say Wait.\nsleep 500\necho");
    let hub = bench.hub();
    let [(a, mut live_a), (b, mut live_b)] = open(&bench, &hub, ["a", "b"]).await;
    let turn_a = begin(&a, "of a").await;
    begin(&b, "of b").await;
    until(&mut live_a, |event| is_message(event).then_some(())).await;
    until(&mut live_b, |event| is_message(event).then_some(())).await;
    // In the middle of both turns.
    b.close().await.unwrap();
    let (_, _, end) = until_end(&mut live_a, &turn_a).await;
    assert_eq!((end.status, end.text.preview()), (TurnStatus::Completed, "of a"));
    let pid = pid_of(&hub, "a");
    assert_eq!(bench.alive(), [pid]);
    // A third one takes the seat that is free.
    let [(c, mut live_c)] = open(&bench, &hub, ["c"]).await;
    echoes(&c, &mut live_c, "of c").await;
    assert_eq!(pid_of(&hub, "c"), pid);
    a.close().await.unwrap();
    assert_eq!(bench.alive(), [pid]);
    c.close().await.unwrap();
    assert!(bench.alive().is_empty());
    hub.close_all().await;
}

#[tokio::test]
async fn the_death_of_the_process_fails_both_turns_and_each_goes_on_in_a_new_one() {
    let bench = Bench::on(Wire::Shared(2), "say Wait.\nfork\nsilence");
    let hub = bench.hub();
    let [(a, mut live_a), (b, mut live_b)] = open(&bench, &hub, ["a", "b"]).await;
    let turn_a = begin(&a, "of a").await;
    let turn_b = begin(&b, "of b").await;
    until(&mut live_a, |event| is_message(event).then_some(())).await;
    until(&mut live_b, |event| is_message(event).then_some(())).await;
    let pid = pid_of(&hub, "a");
    probe::kill(pid).unwrap();
    let ((_, _, end_a), (_, _, end_b)) =
        tokio::join!(until_end(&mut live_a, &turn_a), until_end(&mut live_b, &turn_b));
    for end in [end_a, end_b] {
        assert_eq!(end.status, TurnStatus::Failed);
        assert_eq!(end.error.unwrap().code, FailureCode::AgentKilled);
    }
    bench.play("echo");
    echoes(&a, &mut live_a, "a again").await;
    echoes(&b, &mut live_b, "b again").await;
    assert_ne!(pid_of(&hub, "a"), pid);
    assert_eq!(pid_of(&hub, "a"), pid_of(&hub, "b"), "they share the new one, too");
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn three_conversations_with_two_seats_have_two_processes() {
    let bench = Bench::on(Wire::Shared(2), "echo");
    let hub = bench.hub();
    let names = ["a", "b", "c"];
    let mut opened = open(&bench, &hub, names).await;
    for ((conversation, live), name) in opened.iter_mut().zip(names) {
        echoes(conversation, live, name).await;
    }
    let pids: BTreeSet<u32> = names.iter().map(|name| pid_of(&hub, name)).collect();
    assert_eq!(pids.len(), 2);
    assert_eq!(bench.alive(), pids.into_iter().collect::<Vec<_>>());
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn an_interrupt_stops_one_of_them() {
    let bench = Bench::on(Wire::Shared(2), "say Wait.\nsleep 5000\necho");
    let hub = bench.hub();
    let [(a, mut live_a), (b, mut live_b)] = open(&bench, &hub, ["a", "b"]).await;
    let turn_a = begin(&a, "of a").await;
    let turn_b = begin(&b, "of b").await;
    until(&mut live_a, |event| is_message(event).then_some(())).await;
    until(&mut live_b, |event| is_message(event).then_some(())).await;
    a.interrupt().await.unwrap();
    let (_, _, end) = until_end(&mut live_a, &turn_a).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    let (_, _, end) = until_end(&mut live_b, &turn_b).await;
    assert_eq!((end.status, end.text.preview()), (TurnStatus::Completed, "of b"));
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn a_shared_process_without_output_fails_every_turn_at_once() {
    let bench = Bench::on(Wire::Shared(2), "say Hi.\nclose stdout\nsilence");
    let hub = bench.hub();
    let [(a, mut live_a), (b, mut live_b)] = open(&bench, &hub, ["a", "b"]).await;
    let turn_a = begin(&a, "go").await;
    let turn_b = begin(&b, "go").await;
    for (live, turn) in [(&mut live_a, turn_a), (&mut live_b, turn_b)] {
        let (_, _, end) = until_end(live, &turn).await;
        assert_eq!(end.status, TurnStatus::Failed);
    }
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_the_last_one_goes_gets_a_process() {
    let bench = Bench::on(Wire::Shared(2), "echo");
    let hub = bench.hub();
    for round in 0..20 {
        let (leaving, coming) = (format!("l{round}"), format!("c{round}"));
        let [(a, mut live_a), (b, mut live_b)] = open(&bench, &hub, [&leaving, &coming]).await;
        echoes(&a, &mut live_a, "first").await;
        let (closed, ()) = tokio::join!(a.close(), echoes(&b, &mut live_b, "second"));
        closed.unwrap();
        b.close().await.unwrap();
    }
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn a_shared_process_that_does_not_start_is_tried_once() {
    let bench = Bench::on(Wire::Shared(2), "exit 7");
    let hub = bench.hub();
    let [(a, mut live_a)] = open(&bench, &hub, ["a"]).await;
    let turn = begin(&a, "go").await;
    let (events, _, end) = until_end(&mut live_a, &turn).await;
    assert_eq!(end.status, TurnStatus::Failed);
    let is_start = |event: &&Event| matches!(event.kind, Kind::ProcessSpawned(_));
    assert_eq!(events.iter().filter(is_start).count(), 1);
    hub.close_all().await;
    bench.nobody_is_left().await;
}

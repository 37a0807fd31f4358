//! One conversation, wanted by many at once: it has one owner, and is never lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tieline_event::{ConversationKey, Event, Kind, Prompt, Seq};
use tieline_hub::{Conversation, Error, Hub, Limits};
use tieline_store::Options;

use crate::bench::{Bench, key, quick, until_end};

/// Whether two handles speak with the same owner: what one names the other has.
async fn have_one_owner(one: &Conversation, other: &Conversation, title: &str) -> bool {
    one.rename(title.to_owned()).await.unwrap();
    one.last_seq() == other.last_seq() && !one.is_closed() && !other.is_closed()
}

/// Every event, with the openings and closings of the conversation counted as they alternate.
fn assert_owned_by_one_at_a_time(hub: &Hub, key: &ConversationKey) -> u64 {
    let stored = hub.store().events(key, Seq(0), usize::MAX >> 1).unwrap();
    let (mut is_open, mut epoch, mut n_openings) = (false, 0, 0);
    for stored in stored {
        let event = Event::from_json(&stored.json).unwrap();
        match event.kind {
            Kind::ConversationOpened(_) => {
                assert!(!is_open, "opened twice: {event:?}");
                assert!(event.epoch.0 > epoch, "an epoch has one owner: {event:?}");
                (is_open, epoch, n_openings) = (true, event.epoch.0, n_openings + 1);
            }
            Kind::ConversationClosed(_) => {
                assert!(is_open && event.epoch.0 == epoch, "closed by its owner: {event:?}");
                is_open = false;
            }
            _ => assert_eq!(event.epoch.0, epoch, "{event:?}"),
        }
    }
    n_openings
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_while_a_conversation_closes_gets_the_next_owner_and_only_one() {
    let bench = Bench::new("say Hello.\n---\nsay Again.");
    // Its agent does not go by itself, so that closing takes a while.
    bench.play("ignore TERM\nsay Hello.\nlinger 60000");
    let limits = Limits { exit_grace: Duration::from_secs(1), ..quick() };
    let hub = bench.hub_with(limits, Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    until_end(&mut live, &turn).await;
    let closing = tokio::spawn(conversation.close());
    while !conversation.is_closed() {
        tokio::task::yield_now().await;
    }
    assert!(!bench.alive().is_empty(), "its agent is still there");
    let opens = (0..4).map(|_| {
        let (hub, options) = (hub.clone(), bench.open_options());
        tokio::spawn(async move { hub.conversation(&key(), options).await.unwrap() })
    });
    let mut opened = Vec::new();
    for open in opens.collect::<Vec<_>>() {
        opened.push(open.await.unwrap());
    }
    closing.await.unwrap().unwrap();
    for (n, other) in opened.iter().enumerate() {
        assert!(have_one_owner(&opened[0], other, &format!("name {n}")).await);
    }
    let mut live = opened[0].subscribe(opened[0].last_seq());
    bench.works_again(&opened[1], &mut live).await;
    hub.close_all().await;
    assert_eq!(assert_owned_by_one_at_a_time(&hub, &key()), 2);
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn a_store_that_others_have_locked_holds_up_nobody_who_needs_it_not() {
    let bench = Bench::new("say Hello.\n---\nsilence");
    let hub = bench.hub();
    let (open, mut live) = bench.open(&hub).await;
    let turn = open.start_turn(Prompt::text("go")).await.unwrap();
    until_end(&mut live, &turn).await;
    let turn = open.start_turn(Prompt::text("go on")).await.unwrap();
    let connection = rusqlite::Connection::open(bench.store_dir().join("tieline.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let pending: Vec<_> = ["one", "two", "three"]
        .map(|name| {
            let (hub, options) = (hub.clone(), bench.open_options());
            let key = ConversationKey::new(name).unwrap();
            tokio::spawn(async move { hub.conversation(&key, options).await })
        })
        .into();
    // On one thread: whoever waited for the lock would stop everything here.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let notification =
        tieline_hub::Notification { session: Some("nobody's".into()), turn: None, text: "".into() };
    hub.notified(&notification).await;
    open.interrupt().await.unwrap();
    let key = key();
    let (again, ()) = tokio::join!(hub.conversation(&key, bench.open_options()), async {
        assert!(pending.iter().all(|open| !open.is_finished()), "the store is locked");
        connection.execute_batch("COMMIT").unwrap();
    });
    again.unwrap();
    until_end(&mut live, &turn).await;
    for open in pending {
        open.await.unwrap().unwrap();
    }
    hub.close_all().await;
}

/// A small generator, so that a run can be had again by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What the tasks of the random test share. An ending is a close, a reset or a delete: it may end
/// what others have.
#[derive(Default)]
struct Model {
    endings_begun: AtomicU64,
    endings_over: AtomicU64,
    deletions_begun: AtomicU64,
}

/// One step of one task. What it meets must be possible in some order of all that goes on.
async fn step(hub: &Hub, bench: &Bench, model: &Model, random: &mut Random) {
    let endings = || model.endings_begun.load(Ordering::SeqCst);
    match random.below(12) {
        0..=5 => {
            let (over, before) = (model.endings_over.load(Ordering::SeqCst), endings());
            let key = key();
            let open = || hub.conversation(&key, bench.open_options());
            let (one, other) = tokio::join!(open(), open());
            let (one, other) = (one.unwrap(), other.unwrap());
            let both_open = !one.is_closed() && !other.is_closed();
            // Where nobody closed anything, both are there and are one.
            if over == before && endings() == before {
                assert!(both_open, "nobody closed it");
            }
        }
        6 => {
            let before = model.deletions_begun.load(Ordering::SeqCst);
            match hub.start_new_session(&key()).await {
                Ok(()) => {}
                Err(Error::Incomplete(_)) => {
                    let now = model.deletions_begun.load(Ordering::SeqCst);
                    assert!(now > before || before > 0, "nobody deleted it");
                }
                Err(error) => panic!("{error}"),
            }
        }
        7..=8 => {
            let open = hub.conversation(&key(), bench.open_options()).await.unwrap();
            model.endings_begun.fetch_add(1, Ordering::SeqCst);
            match open.close().await {
                Ok(()) | Err(Error::Closed) => assert!(open.is_closed()),
                Err(error) => panic!("{error}"),
            }
            model.endings_over.fetch_add(1, Ordering::SeqCst);
        }
        9 => {
            model.endings_begun.fetch_add(1, Ordering::SeqCst);
            model.deletions_begun.fetch_add(1, Ordering::SeqCst);
            match hub.delete(&key()).await {
                Ok(()) | Err(Error::Store(tieline_store::Error::NoConversation(_))) => {}
                Err(error) => panic!("{error}"),
            }
            model.endings_over.fetch_add(1, Ordering::SeqCst);
        }
        10 => match hub.fork(&ConversationKey::new("parent").unwrap(), &key()).await {
            Ok(()) => {}
            Err(Error::Refused(why)) => assert!(why.contains("exists already"), "{why}"),
            Err(error) => panic!("{error}"),
        },
        _ => {
            let open = hub.conversation(&key(), bench.open_options()).await.unwrap();
            match open.rename("a name".to_owned()).await {
                Ok(()) | Err(Error::Closed) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// `TIELINE_HUB_STEPS` sets the number of steps, `TIELINE_HUB_SEED` makes a run again.
#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_that_open_close_delete_fork_and_reset_one_key_never_double_nor_lose_it() {
    const TASKS: u64 = 8;
    let number = |name| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let steps = number("TIELINE_HUB_STEPS").unwrap_or(400);
    let seed = number("TIELINE_HUB_SEED").unwrap_or(0x7e11_4e5e_ed00_0001);
    println!("TIELINE_HUB_SEED={seed} TIELINE_HUB_STEPS={steps}");
    let bench = Arc::new(Bench::new("say Hello."));
    let hub = bench.hub();
    // Something to fork.
    let parent = ConversationKey::new("parent").unwrap();
    let (conversation, mut live) = bench.open_as(&hub, &parent).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    until_end(&mut live, &turn).await;
    conversation.close().await.unwrap();
    let model = Arc::new(Model::default());
    let tasks = (0..TASKS).map(|n| {
        let (hub, bench, model) = (hub.clone(), Arc::clone(&bench), Arc::clone(&model));
        let mut random = Random(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        tokio::spawn(async move {
            for _ in 0..steps / TASKS {
                step(&hub, &bench, &model, &mut random).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    hub.conversation(&key(), bench.open_options()).await.unwrap();
    hub.close_all().await;
    assert!(assert_owned_by_one_at_a_time(&hub, &key()) > 0);
    assert!(hub.store().integrity().unwrap().is_empty());
}

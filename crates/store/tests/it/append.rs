use std::thread;
use std::time::Duration;

use tieline_event::{BlobRef, FrameNo, Mode, Seq};
use tieline_store::{Batch, ConversationChange, Error, Filter, Options};

use crate::support::{Bench, assert_whole, event, events, frames, key, new, open, seqs};

#[test]
fn events_come_back_byte_for_byte_and_in_order() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let odd = r#"{"b":1e2,"a":-0,  "b":123456789012345678901234}"#;
    let mut batch = events(1..=3);
    batch.events[1].json = odd.as_bytes().into();
    bench.store.append_blocking(&lease, batch).wait().unwrap();
    let read = bench.store.events(&key("a"), Seq(1), 1).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(&*read[0].json, odd.as_bytes());
    assert_eq!(seqs(&bench.store, "a"), [1, 2, 3]);
    let mut jsonl = Vec::new();
    assert_eq!(bench.store.export_events(&key("a"), &mut jsonl).unwrap(), 3);
    assert_eq!(jsonl.split(|byte| *byte == b'\n').nth(1).unwrap(), odd.as_bytes());
}

#[test]
fn gap_in_the_numbers_is_refused_and_the_batch_comes_back() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    bench.store.append_blocking(&lease, events(1..=2)).wait().unwrap();
    for wrong in [events([2]), events([4]), events([3, 5]), frames(lease.next_frame.next(), &[b""])]
    {
        let n_events = wrong.events.len();
        let rejected = bench.store.append_blocking(&lease, wrong).wait().unwrap_err();
        assert!(matches!(rejected.error, Error::Gap { .. }), "{rejected:?}");
        assert_eq!(rejected.batch.unwrap().events.len(), n_events);
    }
    assert_eq!(seqs(&bench.store, "a"), [1, 2]);
    bench.store.append_blocking(&lease, events([3])).wait().unwrap();
    assert_whole(&bench.store);
}

#[test]
fn refused_batch_does_not_fail_its_neighbours() {
    let bench = Bench::new();
    let leases: Vec<_> = (0..8).map(|n| bench.lease(&format!("c{n}"))).collect();
    let commits: Vec<_> = leases
        .iter()
        .enumerate()
        .map(|(n, lease)| {
            let first = if n % 2 == 0 { 1 } else { 7 };
            bench.store.append_blocking(lease, events([first]))
        })
        .collect();
    let good: Vec<_> = commits.into_iter().map(|commit| commit.wait().is_ok()).collect();
    assert_eq!(good, [true, false, true, false, true, false, true, false]);
    assert_whole(&bench.store);
}

#[test]
fn what_was_queued_is_on_disk_after_the_last_handle_is_gone() {
    let Bench { store, dir } = Bench::new();
    let lease = store.acquire(&key("a"), new()).unwrap();
    for seq in 1..=500 {
        drop(store.append_blocking(&lease, events([seq])));
    }
    drop(store);
    assert_eq!(seqs(&open(dir.path()), "a").len(), 500);
}

#[test]
fn a_batch_nobody_waits_for_goes_along_with_the_next() {
    let an_hour = Duration::from_secs(3600);
    let options = Options { group_wait: an_hour, event_wait: an_hour, ..Options::default() };
    let bench = Bench::with(options);
    let lease = bench.lease("a");
    let first = bench.store.append_blocking(&lease, Batch { can_wait: true, ..events([1]) });
    thread::sleep(Duration::from_millis(50));
    assert!(seqs(&bench.store, "a").is_empty());
    bench.store.append_blocking(&lease, events([2])).wait().unwrap();
    first.wait().unwrap();
    assert_eq!(seqs(&bench.store, "a"), [1, 2]);
}

#[test]
fn a_batch_nobody_waits_for_is_written_all_the_same() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let batch = Batch { can_wait: true, ..events([1]) };
    bench.store.append_blocking(&lease, batch).wait().unwrap();
    assert_eq!(seqs(&bench.store, "a"), [1]);
}

#[test]
fn full_queue_gives_the_batch_back_or_waits() {
    let bench = Bench::with(Options { queue_bytes: 4096, ..Options::default() });
    let lease = bench.lease("a");
    let mut n_full = 0;
    let mut seq = 1;
    while n_full == 0 && seq < 100_000 {
        let batch = Batch { events: vec![event(seq, &"x".repeat(3000))], ..Batch::default() };
        match bench.store.try_append(&lease, batch) {
            Ok(commit) => drop(commit),
            Err(batch) => {
                n_full += 1;
                bench.store.append_blocking(&lease, *batch).wait().unwrap();
            }
        }
        seq += 1;
    }
    assert_eq!(n_full, 1);
    // Larger than the queue, and written all the same.
    let batch = Batch { events: vec![event(seq, &"x".repeat(50_000))], ..Batch::default() };
    bench.store.append_blocking(&lease, batch).wait().unwrap();
    assert_eq!(seqs(&bench.store, "a"), (1..=seq).collect::<Vec<_>>());
}

#[tokio::test]
async fn commit_can_be_awaited() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    bench.store.append(&lease, events([1])).await.await.unwrap();
    assert_eq!(seqs(&bench.store, "a"), [1]);
}

#[test]
fn eight_threads_append_to_their_own_conversations() {
    let bench = Bench::new();
    thread::scope(|scope| {
        for n in 0..8 {
            let store = bench.store.clone();
            scope.spawn(move || {
                let name = format!("c{n}");
                let lease = store.acquire(&key(&name), new()).unwrap();
                let mut first = lease.next_frame;
                for seq in 1..=300 {
                    let mut batch = events([seq]);
                    batch.frames = frames(first, &[name.as_bytes(), b"\n"]).frames;
                    first = batch.frames.next();
                    store.append_blocking(&lease, batch).wait().unwrap();
                }
                store.release(lease).unwrap();
            });
        }
    });
    for n in 0..8 {
        assert_eq!(seqs(&bench.store, &format!("c{n}")), (1..=300).collect::<Vec<_>>());
    }
    assert_eq!(bench.store.stats().unwrap().n_frames, 8 * 600);
    assert_whole(&bench.store);
}

#[test]
fn two_stores_on_one_directory_write_side_by_side() {
    let bench = Bench::new();
    let other = open(bench.dir.path());
    thread::scope(|scope| {
        for (store, name) in [(&bench.store, "a"), (&other, "b")] {
            scope.spawn(move || {
                let lease = store.acquire(&key(name), new()).unwrap();
                for seq in 1..=500 {
                    store.append_blocking(&lease, events([seq])).wait().unwrap();
                }
            });
        }
    });
    assert_eq!(seqs(&bench.store, "b").len(), 500);
    assert_eq!(seqs(&other, "a").len(), 500);
    assert_whole(&other);
}

#[test]
fn conversation_changes_with_its_batch_and_only_what_is_named() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let change = ConversationChange {
        native_session: Some(Some("s-1".into())),
        title: Some("first".into()),
        next_turn: Some(2),
        ..ConversationChange::default()
    };
    let batch = Batch { conversation: Some(change), ..events([1]) };
    bench.store.append_blocking(&lease, batch).wait().unwrap();
    let row = bench.store.conversation(&key("a")).unwrap().unwrap();
    assert_eq!(row.native_session.as_deref(), Some("s-1"));
    assert_eq!((row.n_turns(), row.n_events()), (1, 1));
    assert_eq!((row.mode, row.model.as_deref()), (Mode::Plan, Some("small")));

    let reset = ConversationChange {
        native_session: Some(None),
        model: Some(None),
        mode: Some(Mode::Yolo),
        ..ConversationChange::default()
    };
    let batch = Batch { conversation: Some(reset), ..Batch::default() };
    bench.store.append_blocking(&lease, batch).wait().unwrap();
    let row = bench.store.conversation(&key("a")).unwrap().unwrap();
    assert_eq!((row.native_session, row.model, row.mode), (None, None, Mode::Yolo));
    assert_eq!(row.title.as_deref(), Some("first"));
    assert_eq!(seqs(&bench.store, "a"), [1]);
}

#[test]
fn conversations_are_listed_by_last_activity() {
    let bench = Bench::new();
    let first = bench.lease("first");
    let second = bench.lease("second").conversation;
    let mut seq = 1;
    while bench.store.conversation(&first.key).unwrap().unwrap().updated <= second.updated {
        bench.store.append_blocking(&first, events([seq])).wait().unwrap();
        seq += 1;
    }
    let names = |filter: &Filter| -> Vec<String> {
        let rows = bench.store.conversations(filter).unwrap();
        rows.iter().map(|row| row.key.to_string()).collect()
    };
    assert_eq!(names(&Filter::default()), ["first", "second"]);
    assert_eq!(names(&Filter { limit: 1, ..Filter::default() }), ["first"]);
    let elsewhere = Filter { workspace: Some("/elsewhere".into()), ..Filter::default() };
    assert_eq!(names(&elsewhere), Vec::<String>::new());
}

#[test]
fn debug_output_holds_sizes_and_no_bodies() {
    let secret = "sk-secret";
    let mut batch = Batch { events: vec![event(1, secret)], ..Batch::default() };
    batch.frames = frames(FrameNo(1), &[secret.as_bytes()]).frames;
    batch.blobs.push((BlobRef::of(b""), secret.as_bytes().to_vec()));
    let text = format!("{batch:?} {:?}", batch.frames.iter().collect::<Vec<_>>());
    assert!(!text.contains(secret) && !text.contains("115, 107"), "{text}");
    assert!(text.contains("1 notice ("), "{text}");
}

#[test]
fn unknown_conversation_is_said_to_be_unknown() {
    let bench = Bench::new();
    assert!(bench.store.conversation(&key("a")).unwrap().is_none());
    let err = bench.store.events(&key("a"), Seq(0), 1).unwrap_err();
    assert!(matches!(err, Error::NoConversation(_)));
}

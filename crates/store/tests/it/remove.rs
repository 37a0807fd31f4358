use std::time::Duration;

use tieline_event::{BlobRef, Timestamp};
use tieline_store::{Batch, Deleted, Direction, Error, FrameBuf, GcOptions, Lease, Options};

use crate::support::{Bench, Probe, all_frames, assert_whole, events, key, seqs};

fn with_blob(seq: u64, bytes: &[u8]) -> Batch {
    Batch { blobs: vec![(BlobRef::of(bytes), bytes.to_vec())], ..events([seq]) }
}

#[test]
fn blob_of_two_conversations_survives_the_delete_of_one() {
    let bench = Bench::new();
    let (shared, own) = (vec![7; 100_000], b"png".to_vec());
    for name in ["a", "b"] {
        let lease = bench.lease(name);
        bench.store.append_blocking(&lease, with_blob(1, &shared)).wait().unwrap();
        if name == "a" {
            bench.store.append_blocking(&lease, with_blob(2, &own)).wait().unwrap();
        }
        bench.store.release(lease).unwrap();
    }
    let deleted = bench.store.delete(&key("a")).unwrap();
    assert_eq!((deleted.n_events, deleted.n_blobs), (2, 1));
    assert_eq!(bench.store.blob(&BlobRef::of(&shared).sha256).unwrap(), Some(shared.clone()));
    assert_eq!(bench.store.blob(&BlobRef::of(&own).sha256).unwrap(), None);
    assert!(bench.store.conversation(&key("a")).unwrap().is_none());
    assert_eq!(seqs(&bench.store, "b"), [1]);
    bench.store.delete(&key("b")).unwrap();
    assert_eq!(bench.store.blob(&BlobRef::of(&shared).sha256).unwrap(), None);
    assert_whole(&bench.store);
}

#[test]
fn delete_is_refused_while_held_and_complete_afterwards() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    bench.store.append_blocking(&lease, events(1..=5000)).wait().unwrap();
    assert!(matches!(bench.store.delete(&key("a")), Err(Error::Busy { .. })));
    bench.store.release(lease).unwrap();
    let deleted = bench.store.delete(&key("a")).unwrap();
    assert_eq!(deleted, Deleted { n_events: 5000, ..Deleted::default() });
    assert!(matches!(bench.store.delete(&key("a")), Err(Error::NoConversation(_))));
    let stats = bench.store.stats().unwrap();
    assert_eq!((stats.n_conversations, stats.n_events), (0, 0));

    let before = stats.disk_bytes;
    let report = bench.store.gc(&GcOptions::default()).unwrap();
    assert_eq!(report.disk_bytes_before, before);
    assert!(report.disk_bytes_after < before / 2, "{report:?}");
    // The same name begins anew.
    assert_eq!(bench.lease("a").next_seq.0, 1);
}

/// Ten segments, a second apart, of bytes that do not compress.
fn append_segments(bench: &Bench, lease: &Lease, from: Timestamp) {
    let mut next = lease.next_frame;
    let mut noise = 1u32;
    for second in 0..10 {
        let mut frames = FrameBuf::new(next);
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        })
        .take(10_000)
        .collect();
        let ts = Timestamp::from_millis(from.as_millis() + second * 1000);
        frames.append(Direction::Out, ts, &bytes);
        next = frames.next();
        let batch = Batch { frames, ..Batch::default() };
        bench.store.append_blocking(lease, batch).wait().expect("the store takes it");
    }
}

#[test]
fn gc_prunes_frames_by_age_and_says_so_beforehand() {
    let bench = Bench::with(Options { segment_bytes: 25_000, ..Options::default() });
    let lease = bench.lease("a");
    let day = Duration::from_secs(86_400);
    let start = Timestamp::from_millis(Timestamp::now().as_millis() - 86_400_000 - 5_500);
    append_segments(&bench, &lease, start);
    let dry = GcOptions { max_frame_age: Some(day), dry_run: true, ..GcOptions::default() };
    let foreseen = bench.store.gc(&dry).unwrap();
    assert_eq!(bench.store.stats().unwrap().n_frames, 10);
    let report = bench.store.gc(&GcOptions { dry_run: false, ..dry }).unwrap();
    // Frames 1 to 3 and 4 to 6 are segments; the newest of each is what counts.
    assert_eq!((report.n_frames, report.frame_bytes), (foreseen.n_frames, foreseen.frame_bytes));
    assert_eq!(report.n_frames, 6);
    let left: Vec<_> = all_frames(&bench.store, "a").iter().map(|(no, _)| *no).collect();
    assert_eq!(left, [7, 8, 9, 10]);
    assert_whole(&bench.store);
}

#[test]
fn gc_prunes_the_oldest_frames_by_size_and_writing_goes_on() {
    let bench = Bench::with(Options { segment_bytes: 25_000, ..Options::default() });
    let lease = bench.lease("a");
    append_segments(&bench, &lease, Timestamp::now());
    let all = GcOptions { max_frame_bytes: Some(45_000), ..GcOptions::default() };
    assert_eq!(bench.store.gc(&all).unwrap().n_frames, 6);
    let nothing = GcOptions { max_frame_bytes: Some(0), ..GcOptions::default() };
    assert_eq!(bench.store.gc(&nothing).unwrap().n_frames, 4);
    assert!(all_frames(&bench.store, "a").is_empty());
    bench.store.release(lease).unwrap();
    let lease = bench.lease("a");
    assert_eq!(lease.next_frame.0, 11);
    append_segments(&bench, &lease, Timestamp::now());
    let left: Vec<_> = all_frames(&bench.store, "a").iter().map(|(no, _)| *no).collect();
    assert_eq!(left, (11..=20).collect::<Vec<_>>());
    assert_whole(&bench.store);
}

#[test]
fn gc_clears_up_after_the_dead() {
    let bench = Bench::new();
    let dir = bench.dir.path().to_str().unwrap();
    let mut probe = Probe::spawn(&["hold", dir, "dead"]);
    let mut living = Probe::spawn(&["hold", dir, "living"]);
    assert!(probe.line().is_some() && living.line().is_some());
    probe.kill();
    // A deletion that was cut off after its first step.
    let connection = rusqlite::Connection::open(bench.dir.path().join("tieline.db")).unwrap();
    connection.execute("UPDATE conversations SET key = NULL WHERE key = 'dead'", []).unwrap();
    drop(connection);
    let report = bench.store.gc(&GcOptions { dry_run: true, ..GcOptions::default() }).unwrap();
    assert_eq!((report.n_owner_files, report.n_conversations), (1, 1));
    let report = bench.store.gc(&GcOptions::default()).unwrap();
    assert_eq!((report.n_owner_files, report.n_conversations), (1, 1));
    assert_eq!(bench.store.stats().unwrap().n_conversations, 1);
    assert!(bench.store.holder(&key("living")).unwrap().is_some());
    assert_whole(&bench.store);
}

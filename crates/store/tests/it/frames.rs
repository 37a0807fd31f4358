use std::ops::ControlFlow;

use proptest::prelude::*;
use tieline_event::{FrameNo, Timestamp};
use tieline_store::{Batch, Capped, Direction, Error, FrameBuf, Options};

use crate::support::{Bench, all_frames, assert_whole, frames, key, new, open};

/// Ends of lines, nothing, everything, and a lot.
fn hard_cases() -> Vec<Vec<u8>> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = every_byte.iter().copied().cycle().take(5 << 20).collect();
    vec![
        every_byte,
        b"line\r\n".to_vec(),
        b"\0\0\n".to_vec(),
        Vec::new(),
        b"\n".to_vec(),
        large,
        b"after\n".to_vec(),
    ]
}

#[test]
fn frames_come_back_byte_for_byte() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let cases = hard_cases();
    let slices: Vec<&[u8]> = cases.iter().map(Vec::as_slice).collect();
    bench.store.append_blocking(&lease, frames(lease.next_frame, &slices)).wait().unwrap();
    let expected: Vec<_> = (1..).zip(cases.clone()).collect();
    assert_eq!(all_frames(&bench.store, "a"), expected);
    let mut whole = Vec::new();
    bench.store.export_frames(&key("a"), &[Direction::Out], &mut whole).unwrap();
    assert!(whole == cases.concat());
    assert_whole(&bench.store);
}

/// One step of a writer.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<(u8, i64, Vec<u8>)>),
    Wait,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let frame = (0u8..3, 0i64..10_000, prop::collection::vec(any::<u8>(), 0..400));
    prop_oneof![
        6 => prop::collection::vec(frame, 0..12).prop_map(Step::Append),
        1 => Just(Step::Wait),
        1 => Just(Step::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn frames_come_back_in_whatever_batches_they_came(
        steps in prop::collection::vec(step(), 1..60),
        segment_bytes in 100usize..8000,
    ) {
        let bench = Bench::with(Options { segment_bytes, ..Options::default() });
        let lease = bench.lease("a");
        let mut next = lease.next_frame;
        let mut expected = Vec::new();
        for step in steps {
            match step {
                Step::Append(all) => {
                    let mut frames = FrameBuf::new(next);
                    for (dir, ts, bytes) in all {
                        let dir = [Direction::In, Direction::Out, Direction::Stderr][dir as usize];
                        let no = frames.append(dir, Timestamp::from_millis(ts), &bytes);
                        expected.push((no, ts, dir, bytes));
                    }
                    next = frames.next();
                    drop(bench.store.append_blocking(&lease, Batch { frames, ..Batch::default() }));
                }
                Step::Wait => bench.store.flush().unwrap(),
                Step::Compact => drop(bench.store.keep_up(&lease, None)),
            }
        }
        bench.store.flush().unwrap();
        let mut read = Vec::new();
        bench.store.frames(&key("a"), FrameNo(0), &mut |frame| {
            read.push((frame.no, frame.ts.as_millis(), frame.dir, frame.bytes.to_vec()));
            ControlFlow::Continue(())
        }).unwrap();
        prop_assert!(read == expected);
        assert_whole(&bench.store);
    }
}

#[test]
fn small_chunks_become_compressed_segments() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let line = [b"{\"type\":\"stream_event\"}".repeat(40), b"\n".to_vec()].concat();
    let mut first = lease.next_frame;
    let mut append = |n: usize| {
        for _ in 0..n {
            let batch = frames(first, &[&line]);
            first = batch.frames.next();
            bench.store.append_blocking(&lease, batch).wait().unwrap();
        }
    };
    append(20);
    assert_eq!(bench.store.stats().unwrap().n_segments, 20);
    bench.keep_up(&lease, None);
    let stats = bench.store.stats().unwrap();
    assert_eq!(stats.n_segments, 1);
    assert!(stats.frame_bytes * 10 < stats.frame_raw_bytes, "{stats:?}");
    // A short turn's segment is merged with the next ones until it is of full size.
    append(300);
    bench.keep_up(&lease, None);
    let stats = bench.store.stats().unwrap();
    assert_eq!((stats.n_segments, stats.n_frames), (2, 320));
    assert!(all_frames(&bench.store, "a").iter().all(|(_, bytes)| *bytes == line));
    assert_whole(&bench.store);
}

#[test]
fn upkeep_is_done_after_its_wait_whether_or_not_something_else_is_written() {
    let upkeep_wait = std::time::Duration::from_millis(1);
    let bench = Bench::with(Options { upkeep_wait, ..Options::default() });
    let lease = bench.lease("a");
    let mut first = lease.next_frame;
    let mut append = || {
        let batch = frames(first, &[b"line"]);
        first = batch.frames.next();
        bench.store.append_blocking(&lease, batch)
    };
    for _ in 0..5 {
        append().wait().unwrap();
    }
    let alone = bench.store.keep_up(&lease, None);
    assert_eq!(alone.blocking_recv().unwrap().unwrap(), Capped::default());
    assert_eq!(bench.store.stats().unwrap().n_segments, 1);
    let in_company = bench.store.keep_up(&lease, None);
    let commits: Vec<_> = std::iter::repeat_with(append).take(5).collect();
    commits.into_iter().for_each(|commit| commit.wait().unwrap());
    in_company.blocking_recv().unwrap().unwrap();
    assert_eq!(all_frames(&bench.store, "a").len(), 10);
    assert_whole(&bench.store);
}

#[test]
fn upkeep_without_a_lease_is_refused_and_the_others_go_on() {
    let bench = Bench::new();
    let (lost, kept) = (bench.lease("a"), bench.lease("b"));
    bench.store.append_blocking(&kept, frames(kept.next_frame, &[b"1"])).wait().unwrap();
    bench
        .store
        .append_blocking(&kept, frames(FrameNo(kept.next_frame.0 + 1), &[b"2"]))
        .wait()
        .unwrap();
    // As if the lock had been lost: the owner's file is gone while the process lives on.
    std::fs::remove_dir_all(bench.dir.path().join("owners")).unwrap();
    let _taken = open(bench.dir.path()).acquire(&key("a"), new()).unwrap();
    let (refused, done) = (bench.store.keep_up(&lost, None), bench.store.keep_up(&kept, None));
    bench.store.flush().unwrap();
    assert!(matches!(refused.blocking_recv().unwrap(), Err(Error::LostLease { .. })));
    done.blocking_recv().unwrap().unwrap();
    assert_eq!(bench.store.stats().unwrap().n_segments, 1);
}

#[test]
fn a_cap_drops_the_oldest_frames_and_says_how_many() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let mut first = lease.next_frame;
    for n in 0..4u32 {
        // Noise, so that compression changes little.
        let mut x = n + 1;
        let line: Vec<u8> = std::iter::repeat_with(|| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        })
        .take(400_000)
        .collect();
        let batch = frames(first, &[&line]);
        first = batch.frames.next();
        bench.store.append_blocking(&lease, batch).wait().unwrap();
        bench.keep_up(&lease, None);
    }
    let cap = |most| bench.keep_up(&lease, Some(most));
    assert_eq!(cap(10_000_000).n_frames, 0);
    let dropped = cap(1_000_000);
    assert_eq!(dropped.n_frames, 2);
    assert!(dropped.bytes > 700_000, "{dropped:?}");
    assert_eq!(cap(1_000_000).n_frames, 0);
    let kept: Vec<_> = all_frames(&bench.store, "a").into_iter().map(|(_, it)| it.len()).collect();
    assert_eq!(kept, [400_000, 400_000], "the newest stay");
    assert_whole(&bench.store);
}

#[test]
fn large_group_is_one_compressed_segment_at_once() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let line = b"0123456789".repeat(40);
    let lines = vec![line.as_slice(); 1000];
    bench.store.append_blocking(&lease, frames(lease.next_frame, &lines)).wait().unwrap();
    let stats = bench.store.stats().unwrap();
    assert_eq!((stats.n_segments, stats.n_frames), (1, 1000));
    assert!(stats.frame_bytes < 20_000, "{stats:?}");
}

#[test]
fn visit_begins_in_the_middle_of_a_segment_and_stops_when_told() {
    let bench = Bench::with(Options { segment_bytes: 64, ..Options::default() });
    let lease = bench.lease("a");
    let mut first = lease.next_frame;
    for _ in 0..10 {
        let batch = frames(first, &[b"0123456789", b"x", b"y"]);
        first = batch.frames.next();
        bench.store.append_blocking(&lease, batch).wait().unwrap();
    }
    let mut seen = Vec::new();
    let n_visited = bench
        .store
        .frames(&key("a"), FrameNo(14), &mut |frame| {
            seen.push(frame.no.0);
            if seen.len() == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!((n_visited, seen), (5, vec![14, 15, 16, 17, 18]));
}

use tieline_store::{Batch, Error, Options};

use crate::support::{Bench, assert_whole, event, events, seqs};

/// A database that may not grow stands in for a disk that is full: SQLite reports both alike.
#[test]
fn full_disk_is_said_loses_nothing_and_goes_on_when_there_is_space() {
    let bench = Bench::with(Options { max_pages: Some(120), ..Options::default() });
    let ballast = bench.lease("ballast");
    let batch = Batch { events: vec![event(1, &"b".repeat(100_000))], ..Batch::default() };
    bench.store.append_blocking(&ballast, batch).wait().unwrap();
    bench.store.release(ballast).unwrap();

    let lease = bench.lease("a");
    let mut acknowledged = 0;
    let rejected = loop {
        let batch =
            Batch { events: vec![event(acknowledged + 1, &"x".repeat(8000))], ..Batch::default() };
        match bench.store.append_blocking(&lease, batch).wait() {
            Ok(()) => acknowledged += 1,
            Err(rejected) => break rejected,
        }
    };
    assert!(matches!(rejected.error, Error::Full { .. }), "{rejected:?}");
    assert!(rejected.error.is_transient());
    assert!(acknowledged > 5, "{acknowledged}");
    assert_eq!(seqs(&bench.store, "a"), (1..=acknowledged).collect::<Vec<_>>());
    assert_whole(&bench.store);

    // A batch that fits is written although its neighbour does not.
    let other = bench.lease("b");
    let small = bench.store.append_blocking(&other, events([1]));
    let large = bench.store.append_blocking(&lease, *rejected.batch.unwrap());
    small.wait().unwrap();
    let rejected = large.wait().unwrap_err();

    bench.store.delete(&crate::support::key("ballast")).unwrap();
    bench.store.append_blocking(&lease, *rejected.batch.unwrap()).wait().unwrap();
    bench.store.append_blocking(&lease, events([acknowledged + 2])).wait().unwrap();
    assert_eq!(seqs(&bench.store, "a"), (1..=acknowledged + 2).collect::<Vec<_>>());
    assert_whole(&bench.store);
}

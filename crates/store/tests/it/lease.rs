use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tieline_event::Epoch;
use tieline_store::Error;

use crate::support::{Bench, Probe, assert_whole, events, keep_up, key, new, open, seqs};

#[test]
fn second_process_is_told_who_holds_it_and_takes_over_from_the_dead() {
    let bench = Bench::new();
    let mut probe = Probe::spawn(&["hold", bench.dir.path().to_str().unwrap(), "a"]);
    assert_eq!(probe.line().as_deref(), Some("held 1"));

    let Err(Error::Busy { owner, .. }) = bench.store.acquire(&key("a"), new()) else {
        panic!("taken from a living owner");
    };
    assert_eq!((owner.pid, owner.program.as_str()), (probe.child.id(), "store-probe"));
    assert_eq!(bench.store.holder(&key("a")).unwrap().map(|owner| owner.pid), Some(owner.pid));
    let refused = bench.store.delete(&key("a")).unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }));

    probe.kill();
    assert!(bench.store.holder(&key("a")).unwrap().is_none());
    let lease = bench.store.acquire(&key("a"), new()).unwrap();
    assert_eq!((lease.epoch, lease.next_seq.0, lease.next_frame.0), (Epoch(2), 2, 2));
    assert_eq!(lease.conversation.agent, "probe");
    bench.store.append_blocking(&lease, events([2])).wait().unwrap();
    let n_locks = bench.dir.path().join("owners").read_dir().unwrap().count();
    assert_eq!(n_locks, 1, "the dead owner's file is gone");
    assert_whole(&bench.store);
}

#[test]
fn a_lock_that_outlives_its_process_for_a_moment_is_waited_for() {
    let bench = Bench::new();
    let mut probe = Probe::spawn(&["hold", bench.dir.path().to_str().unwrap(), "a"]);
    assert_eq!(probe.line().as_deref(), Some("held 1"));
    let Some(owner) = bench.store.holder(&key("a")).unwrap() else { panic!("nobody holds it") };
    let pid = format!("pid {}\n", owner.pid);
    let owners = bench.dir.path().join("owners").read_dir().unwrap();
    let is_its_file = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(&pid))
    };
    let file = owners.map(|entry| entry.unwrap().path()).find(is_its_file).unwrap();
    let file = std::fs::File::open(file).unwrap();
    probe.kill();
    // As a child has it that has not become a program of its own yet.
    file.lock().unwrap();
    let child = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        drop(file);
    });
    assert_eq!(bench.store.acquire(&key("a"), new()).unwrap().epoch, Epoch(2));
    child.join().unwrap();
}

#[test]
fn released_conversation_can_be_taken_at_once() {
    let bench = Bench::new();
    let mut probe = Probe::spawn(&["hold", bench.dir.path().to_str().unwrap(), "a"]);
    assert_eq!(probe.line().as_deref(), Some("held 1"));
    drop(probe.child.stdin.take());
    assert_eq!(probe.line().as_deref(), Some("released"));
    assert_eq!(bench.lease("a").epoch, Epoch(2));
}

#[test]
fn a_process_has_one_lease_of_a_conversation_at_a_time() {
    let bench = Bench::new();
    let first = bench.lease("a");
    let Err(Error::Busy { owner, .. }) = bench.store.acquire(&key("a"), new()) else {
        panic!("two leases of one conversation in one process");
    };
    assert_eq!(owner.pid, std::process::id());
    bench.store.append_blocking(&first, events([1])).wait().unwrap();
    bench.store.release(first).unwrap();
    let second = bench.lease("a");
    assert_eq!((second.epoch, second.next_seq.0), (Epoch(2), 2));
}

#[test]
fn a_lease_that_was_dropped_can_be_had_again_and_is_void() {
    let bench = Bench::new();
    let lost = bench.lease("a");
    let late = bench.store.scribe(&lost);
    bench.store.append_blocking(&lost, events([1])).wait().unwrap();
    drop(lost);
    let again = bench.lease("a");
    assert_eq!((again.epoch, again.next_seq.0), (Epoch(2), 2));
    let rejected = at_once(late.append("session", vec![vec![1]])).wait().unwrap_err();
    assert!(matches!(rejected.error, Error::LostLease { epoch: Epoch(1), .. }), "{rejected:?}");
    bench.store.append_blocking(&again, events([2])).wait().unwrap();
}

#[test]
fn stale_writer_is_refused_and_writes_nothing() {
    let bench = Bench::new();
    let stale = bench.lease("a");
    bench.store.append_blocking(&stale, events([1])).wait().unwrap();
    // As if the lock had been lost: the owner's file is gone while the process lives on.
    std::fs::remove_dir_all(bench.dir.path().join("owners")).unwrap();
    let other = open(bench.dir.path());
    let lease = other.acquire(&key("a"), new()).unwrap();
    assert_eq!(lease.epoch, Epoch(2));

    let rejected = bench.store.append_blocking(&stale, events([2])).wait().unwrap_err();
    assert!(matches!(rejected.error, Error::LostLease { epoch: Epoch(1), .. }), "{rejected:?}");
    let refused = keep_up(&bench.store, &stale, None).unwrap_err();
    assert!(matches!(refused, Error::LostLease { .. }));
    bench.store.release(stale).unwrap();
    other.append_blocking(&lease, events([2])).wait().unwrap();
    assert_eq!(seqs(&other, "a"), [1, 2]);
}

#[test]
fn lease_is_gone_after_release() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let late = bench.store.scribe(&lease);
    bench.store.release(lease).unwrap();
    let rejected = at_once(late.append("session", vec![vec![1]])).wait().unwrap_err();
    assert!(matches!(rejected.error, Error::LostLease { .. }));
    assert_eq!(bench.lease("a").epoch, Epoch(2));
}

#[test]
fn two_stores_of_one_process_are_two_owners() {
    let bench = Bench::new();
    let _lease = bench.lease("a");
    let other = open(bench.dir.path());
    let Err(Error::Busy { owner, .. }) = other.acquire(&key("a"), new()) else {
        panic!("taken from a living owner");
    };
    assert_eq!(owner.pid, std::process::id());
    drop(other);
    let Bench { store, dir } = bench;
    drop(store);
    assert_eq!(open(dir.path()).acquire(&key("a"), new()).unwrap().epoch, Epoch(2));
}

/// What a future gives that has nothing to wait for.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the queue has room"),
    }
}

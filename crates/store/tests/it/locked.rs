//! A database that another process is writing to, for longer than it should.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tieline_store::{Error, Options, Store};

use crate::support::{Bench, Probe, events, key, new};

fn hurried() -> Options {
    Options { busy_timeout: Duration::from_millis(20), ..Options::default() }
}

fn locked(bench: &Bench) -> Probe {
    let mut probe =
        Probe::spawn(&["lock", bench.dir.path().to_str().expect("a temporary name is UTF-8")]);
    assert_eq!(probe.line().as_deref(), Some("locked"));
    probe
}

#[test]
fn a_locked_database_names_its_writer() {
    let bench = Bench::with(hurried());
    let lease = bench.lease("a");
    let mut probe = locked(&bench);
    let pid = probe.child.id();

    let refused = bench.store.acquire(&key("b"), new()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("the database is kept locked by process {pid} (store-probe)")
    );
    let rejected = bench.store.append_blocking(&lease, events([1])).wait().unwrap_err();
    assert!(rejected.to_string().contains(&format!("process {pid}")), "{rejected}");
    assert!(rejected.error.is_transient());

    drop(probe.child.stdin.take());
    assert_eq!(probe.line().as_deref(), Some("unlocked"));
    bench.store.append_blocking(&lease, *rejected.batch.unwrap()).wait().unwrap();
}

#[test]
fn a_writer_that_is_stopped_is_told_apart_from_one_that_writes() {
    let bench = Bench::with(hurried());
    let mut probe = locked(&bench);
    let pid = Pid::from_raw(probe.child.id().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let stopped = || rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::UNTRACED);
    rustix::io::retry_on_intr(stopped).unwrap();

    let Err(Error::Locked { holder: Some(holder), .. }) = bench.store.acquire(&key("a"), new())
    else {
        panic!("written although locked");
    };
    assert!(holder.is_stopped, "{holder}");
    assert!(holder.to_string().ends_with(&format!("`kill -CONT {}` continues it", holder.pid)));
    probe.kill();
}

#[test]
fn a_locked_database_is_opened_and_read_at_once() {
    let bench = Bench::new();
    drop(bench.lease("a"));
    let mut probe = locked(&bench);
    // With this patience anything that waits for the lock fails.
    let options = Options { busy_timeout: Duration::ZERO, ..Options::default() };
    let other = Store::open(bench.dir.path(), options).unwrap();
    assert!(other.conversation(&key("a")).unwrap().is_some());
    probe.kill();
}

#[test]
fn nothing_is_written_while_the_process_is_about_to_stop() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let quiet = tieline_store::quiet(Duration::from_secs(10));
    let commit = bench.store.append_blocking(&lease, events([1]));
    let mut probe = locked(&bench);
    drop(probe.child.stdin.take());
    assert_eq!(probe.line().as_deref(), Some("unlocked"));
    assert!(bench.store.events(&key("a"), tieline_event::Seq(0), 1).unwrap().is_empty());
    drop(quiet);
    commit.wait().unwrap();
}

//! Output that is too much, too late or never read.

use std::time::Duration;

use tieline_proc::{DRAIN, RunLimits, run, spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::{LIMIT, Mark, Supervisor, ready, spec};

#[tokio::test]
async fn input_comes_back_through_the_pipes() {
    let mut child = spawn(spec("cat")).await.unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut line = [0; 6];
    for _ in 0..3 {
        stdin.write_all(b"hello\n").await.unwrap();
        child.stdout.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"hello\n");
    }
    drop(stdin);
    assert_eq!(child.exited().await.code, Some(0));
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_is_not_waited_for_and_costs_no_byte() {
    let mark = Mark::new();
    let child = spawn(mark.spec("hold-pipe flood-stdout 50000 exit 0")).await.unwrap();
    child.exited().await;
    let mut n_bytes = 0;
    let drained = child.drain(|bytes| n_bytes += bytes.len(), DRAIN).await;
    assert!(drained.cut);
    assert_eq!(n_bytes, 50_000);
    assert_eq!(child.close(Duration::ZERO).await.killed, 1);
    mark.assert_gone("hold-pipe");
}

#[tokio::test]
async fn output_that_ends_is_not_cut() {
    let child = spawn(spec("fork flood-stdout 50000 exit 0")).await.unwrap();
    child.exited().await;
    let mut n_bytes = 0;
    let drained = child.drain(|bytes| n_bytes += bytes.len(), DRAIN).await;
    assert_eq!((drained.cut, n_bytes), (false, 50_000));
    child.close(Duration::ZERO).await;
}

#[tokio::test]
async fn a_flood_on_stderr_that_nobody_takes_does_not_block_the_agent() {
    let child = spawn(spec("flood-stderr 50000000 exit 0")).await.unwrap();
    let exit = tokio::time::timeout(LIMIT, child.exited()).await.unwrap();
    assert_eq!(exit.code, Some(0));
    let stderr = child.close(Duration::ZERO).await.stderr;
    assert_eq!(stderr.total, 50_000_000);
    assert_eq!(stderr.head.len() + stderr.tail.len(), 64 * 1024);
}

#[test]
fn a_flood_on_stderr_takes_little_memory() {
    let mut supervisor = Supervisor::of(&Mark::new(), "flood-stderr 50000000 exit 0");
    let said = supervisor.line();
    let peak = said.strip_prefix("ended: exit code 0; stderr 50000000 bytes; peak ").unwrap();
    let peak: u32 = peak.trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 16 * 1024, "{peak} kB");
}

#[tokio::test]
async fn a_slow_receiver_of_stderr_is_told_what_it_missed() {
    let mut child = spawn(spec("flood-stderr 5000000 ready cat flood-stderr 10")).await.unwrap();
    let mut pieces = child.take_stderr().unwrap();
    assert!(child.take_stderr().is_none());
    ready(&child).await;
    let all = || child.stderr_tail().total;
    while all() < 5_000_000 {
        tokio::task::yield_now().await;
    }
    let mut n_received = 0;
    while let Ok(piece) = pieces.try_recv() {
        assert_eq!(piece.missed, 0);
        n_received += piece.bytes.len() as u64;
    }
    drop(child.stdin.take());
    let piece = tokio::time::timeout(LIMIT, pieces.recv()).await.unwrap().unwrap();
    assert_eq!(piece.bytes, b"xxxxxxxxxx");
    assert_eq!(n_received + piece.missed, 5_000_000);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let mark = Mark::new();
    let limits = RunLimits { timeout: Duration::from_millis(300), ..RunLimits::default() };
    let output = run(mark.spec("say early fork ready sleep"), b"", limits).await.unwrap();
    assert!(output.timed_out);
    assert_eq!(output.stdout.to_text(), "early\nready\n");
    assert_eq!(output.exit.unwrap().signal, Some(libc::SIGTERM));
    assert_eq!(mark.living(), []);
}

#[tokio::test]
async fn a_command_keeps_head_and_tail_of_its_output() {
    let limits = RunLimits { max_output: 100, ..RunLimits::default() };
    let output = run(spec("say first flood-stdout 1000000 say last"), b"", limits).await.unwrap();
    let stdout = output.stdout;
    assert_eq!(stdout.total, 1_000_011);
    assert!(stdout.head.starts_with(b"first\n") && stdout.tail.ends_with(b"last\n"), "{stdout:?}");
    assert_eq!(stdout.head.len() + stdout.tail.len(), 100);
    assert!(!output.cut && !output.timed_out);
}

#[tokio::test]
async fn input_that_the_command_does_not_read_is_no_obstacle() {
    let input = vec![b'x'; 1_000_000];
    let output = run(spec("exit 4"), &input, RunLimits::default()).await.unwrap();
    assert_eq!(output.exit.unwrap().code, Some(4));
    let output = run(spec("cat"), &input, RunLimits::default()).await.unwrap();
    assert_eq!(output.stdout.total, 1_000_000);
}

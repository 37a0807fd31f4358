//! Commands whose streams are read by stream as they come, with and without a terminal.

use std::path::Path;
use std::time::Duration;

use tieline_proc::{Error, Job, Spec, Stream, Streams, TerminalSize, resolve, start_job};

use crate::probe::{LIMIT, Mark, Supervisor, field, kill, parent, spec, until};

const SIZE: TerminalSize = TerminalSize { rows: 33, columns: 111 };

/// What runs a line in a shell.
fn shell(line: &str) -> Spec {
    spec("");
    let path = std::env::var_os("PATH");
    let sh = resolve("sh", Path::new("/nowhere"), path.as_deref()).unwrap();
    let mut spec = Spec::new(sh, "/").arg("-c").arg(line);
    spec.env.set("PATH", path.unwrap_or_default());
    spec
}

/// Reads until the text ends so, or to the end.
async fn read_until(job: &Job, end: &str) -> String {
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = tokio::time::timeout(LIMIT, job.read(&mut buffer));
        let Some((_, n)) = read.await.unwrap() else { break };
        said.extend_from_slice(&buffer[..n]);
        if !end.is_empty() && said.ends_with(end.as_bytes()) {
            break;
        }
    }
    String::from_utf8(said).unwrap()
}

async fn read_all(job: &Job) -> String {
    read_until(job, "").await
}

async fn write_all(job: &Job, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let n = tokio::time::timeout(LIMIT, job.write(bytes)).await.unwrap().unwrap();
        bytes = &bytes[n..];
    }
}

async fn on_terminal(spec: Spec) -> Job {
    start_job(spec, Streams::Terminal(SIZE)).await.unwrap()
}

#[tokio::test]
async fn a_terminal_is_all_three_streams_and_the_controlling_one() {
    let line = "test -t 0 && test -t 1 && test -t 2 && stty size && tty && echo yes >/dev/tty";
    let job = on_terminal(shell(line)).await;
    let said = read_all(&job).await;
    let lines: Vec<&str> = said.lines().collect();
    assert!(matches!(lines[..], ["33 111", name, "yes"] if name.starts_with("/dev/")), "{said:?}");
    assert_eq!(job.exited().await.code, Some(0));
}

#[tokio::test]
async fn a_job_on_a_terminal_sees_three_descriptors_and_leads_its_session() {
    let job = on_terminal(spec("print-fds")).await;
    assert_eq!(read_all(&job).await, "0 1 2\r\n");
    let job = on_terminal(spec("ready sleep")).await;
    read_until(&job, "ready\r\n").await;
    assert_eq!(field(job.pid, "NSsid:"), job.pid.to_string());
    // The host has let go of it, or its end would never be seen.
    let host = parent(job.pid);
    for fd in 0..3 {
        let target = std::fs::read_link(format!("/proc/{host}/fd/{fd}")).unwrap();
        assert_eq!(target, Path::new("/dev/null"));
    }
}

#[tokio::test]
async fn the_last_words_before_the_end_of_a_terminal_are_all_read() {
    for _ in 0..50 {
        let job = on_terminal(spec("flood-stdout 20000 say last")).await;
        let said = read_all(&job).await;
        assert!(said.ends_with("xlast\r\n"), "{} bytes", said.len());
        assert_eq!(said.len(), 20_006);
    }
}

#[tokio::test]
async fn a_terminal_can_be_resized() {
    let job = on_terminal(shell("trap 'stty size; exit' WINCH; echo ready; read line")).await;
    read_until(&job, "ready\r\n").await;
    job.resize(TerminalSize { rows: 50, columns: 200 }).unwrap();
    assert_eq!(read_all(&job).await, "50 200\r\n");
    let job = start_job(spec(""), Streams::NoInput).await.unwrap();
    job.resize(SIZE).unwrap_err();
}

#[tokio::test]
async fn control_characters_act_as_on_a_terminal() {
    let job = on_terminal(shell("stty -echo; echo ready; cat; echo end")).await;
    read_until(&job, "ready\r\n").await;
    write_all(&job, b"hello\n\x04").await;
    assert_eq!(read_all(&job).await, "hello\r\nend\r\n");
    let job = on_terminal(spec("ready sleep")).await;
    read_until(&job, "ready\r\n").await;
    write_all(&job, b"\x03").await;
    let exit = tokio::time::timeout(LIMIT, job.exited()).await.unwrap();
    assert_eq!(exit.signal, Some(libc::SIGINT));
}

#[tokio::test]
async fn nobody_is_alive_after_a_job_on_a_terminal_was_closed_or_dropped() {
    let verbs = "ignore-term fork double-fork setsid daemon nohup ready sleep";
    let mark = Mark::new();
    let job = on_terminal(mark.spec(verbs)).await;
    read_until(&job, "ready\r\n").await;
    mark.assert_alive(6);
    let closed = job.close(Duration::from_millis(50)).await;
    assert_eq!(mark.living(), []);
    assert_eq!((closed.killed, closed.left), (5, 0));

    let job = on_terminal(mark.spec(verbs)).await;
    read_until(&job, "ready\r\n").await;
    drop(job);
    mark.assert_gone("dropped");
}

#[test]
fn nobody_is_alive_after_the_supervisor_of_a_terminal_was_killed() {
    let mark = Mark::new();
    let verbs = "fork setsid daemon nohup ready sleep";
    let mut supervisor = Supervisor::start(&format!("supervise-tty {} {verbs}", mark.name()));
    assert_eq!(supervisor.line(), "ready");
    mark.assert_alive(5);
    supervisor.kill();
    mark.assert_gone("killed");
}

#[test]
fn a_terminal_of_a_job_is_never_ours() {
    let verbs = "print-tty-name ready sleep";
    let mut supervisor =
        Supervisor::start(&format!("get-tty print-tty-name supervise-tty m {verbs}"));
    let (ours, its) = (supervisor.line(), supervisor.line());
    assert!(ours.starts_with("tty ") && its.starts_with("tty "), "{ours}, {its}");
    assert_ne!(ours, its);
}

#[tokio::test]
async fn the_lost_host_of_a_terminal_is_the_end_of_its_job() {
    let mark = Mark::new();
    let job = on_terminal(mark.spec("ready sleep")).await;
    read_until(&job, "ready\r\n").await;
    kill(parent(job.pid), rustix::process::Signal::KILL);
    assert_eq!(job.exited().await.signal, Some(libc::SIGKILL));
    read_all(&job).await;
    mark.assert_gone("lost host");
}

#[tokio::test]
async fn streams_without_a_terminal_are_told_apart_and_neither_hides_the_other() {
    let job = start_job(spec("flood-stderr 300000 flood-stdout 300000"), Streams::NoInput);
    let job = job.await.unwrap();
    let mut buffer = [0; 8192];
    let (mut out, mut err) = (0, 0);
    while let Some((stream, n)) = job.read(&mut buffer).await {
        match stream {
            Stream::Stdout => out += n,
            Stream::Stderr => err += n,
        }
    }
    assert_eq!((out, err), (300_000, 300_000));
    assert_eq!(job.exited().await.code, Some(0));
    tokio::time::timeout(LIMIT, job.gone()).await.unwrap();
}

#[tokio::test]
async fn a_job_that_nobody_reads_waits() {
    let job = start_job(spec("flood-stdout 1000000 exit 3"), Streams::NoInput).await.unwrap();
    let full = until(LIMIT, || field(job.pid, "State:").starts_with('S'));
    assert!(full, "{}", field(job.pid, "State:"));
    assert_eq!(read_all(&job).await.len(), 1_000_000);
    assert_eq!(job.exited().await.code, Some(3));
}

#[tokio::test]
async fn an_input_is_empty_a_pipe_or_a_terminal() {
    let job = start_job(spec("cat say end"), Streams::NoInput).await.unwrap();
    assert!(!job.has_input());
    job.write(b"x").await.unwrap_err();
    assert_eq!(read_all(&job).await, "end\n");

    let mut job = start_job(spec("cat say end"), Streams::Pipes).await.unwrap();
    assert!(job.has_input());
    write_all(&job, b"typed\n").await;
    job.close_input();
    assert_eq!(read_all(&job).await, "typed\nend\n");
}

#[tokio::test]
async fn a_job_that_cannot_be_started_says_why() {
    let mut missing = spec("");
    missing.program = "/nowhere/at/all".into();
    let error = start_job(missing, Streams::Terminal(SIZE)).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    let mut lost = spec("");
    lost.cwd = "/nowhere/at/all".into();
    let error = start_job(lost, Streams::NoInput).await.unwrap_err();
    assert!(matches!(error, Error::Directory { .. }), "{error:?}");
}

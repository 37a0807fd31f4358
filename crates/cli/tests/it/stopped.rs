//! Processes that are stopped, not ended: by Ctrl-Z, by their own agent.

use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use tieline_event::ConversationKey;
use tieline_store::{NewConversation, Options, Store};
use tieline_testkit::real;

use crate::faults::{kill, lines, nobody_is_left};
use crate::tieline::Tieline;

fn with_fake(script: &str) -> Tieline {
    let fake = real::fake_agent_program();
    Tieline::new().with("TIELINE_CLAUDE", fake.to_str().unwrap()).with("FAKE_AGENT_SCRIPT", script)
}

/// A run in a process group of its own, as a shell starts it: nobody can stop an orphaned one.
fn start(tieline: &Tieline) -> Child {
    tieline
        .command(&["run", "--agent", "claude", "-c", "k", "--format", "jsonl", "go"])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until_stopped(child: &Child) {
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    let stopped = || waitpid(Some(pid), WaitOptions::UNTRACED);
    let (_, status) = rustix::io::retry_on_intr(stopped).unwrap().unwrap();
    assert!(status.stopped(), "{status:?}");
}

#[test]
fn a_run_that_is_stopped_at_the_terminal_leaves_the_store_to_others() {
    let step = "tool Bash {\"command\":\"echo x\"}\nsay one more message\n";
    let tieline = with_fake(&step.repeat(1500));
    let mut child = start(&tieline);
    let mut events = lines(&mut child);
    events.find(|line| line["kind"] == "process.spawned").unwrap();
    // Somebody has to read, or the run would wait for that and not for the disk.
    let reading = std::thread::spawn(move || events.count());
    // Whoever finds the database locked is refused at once.
    let options = Options { busy_timeout: Duration::ZERO, ..Options::default() };
    let other = Store::open(&tieline.store(), options).unwrap();
    for round in 0..40 {
        kill(&child, Signal::TSTP);
        wait_until_stopped(&child);
        let key = ConversationKey::new(&format!("other-{round}")).unwrap();
        let new = NewConversation { agent: "demo".into(), ..NewConversation::default() };
        let lease = other.acquire(&key, new);
        kill(&child, Signal::CONT);
        lease.unwrap();
    }
    kill(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert!(reading.join().unwrap() > 0);
}

/// Its agent stops the process that cares for it, and then says that it has begun.
fn with_an_agent_that_stops_its_host() -> Tieline {
    let fake = real::fake_agent_program();
    Tieline::new()
        .with("FAKE_AGENT_SCRIPT", "setsid\nsay Begun.\nsilence")
        .with_claude(&format!("kill -STOP $PPID\nexec {} \"$@\"", fake.display()))
}

fn begun(tieline: &Tieline) -> Child {
    let mut child = start(tieline);
    let is_said = |line: &serde_json::Value| line["data"]["text"] == "Begun.";
    lines(&mut child).find(is_said).unwrap();
    child
}

#[test]
fn one_interrupt_ends_the_turn_of_an_agent_that_stopped_its_host() {
    let tieline = with_an_agent_that_stops_its_host();
    let mut child = begun(&tieline);
    kill(&child, Signal::INT);
    child.wait().unwrap();
    nobody_is_left(&format!("TIELINE_HOME={}", tieline.store().display()), "interrupted");
}

#[test]
fn nobody_is_left_of_an_agent_that_stopped_its_host() {
    for signal in [Signal::TERM, Signal::KILL] {
        let tieline = with_an_agent_that_stops_its_host();
        let mut child = begun(&tieline);
        kill(&child, signal);
        child.wait().unwrap();
        nobody_is_left(&format!("TIELINE_HOME={}", tieline.store().display()), "ended");
    }
}

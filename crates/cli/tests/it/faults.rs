//! Faults, counted: kill -9 under load, process trees, endless lines, a full disk.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tieline_event::{ConversationKey, Seq};
use tieline_store::{Options, Store};
use tieline_testkit::{probe, real};

use crate::tieline::Tieline;

/// A user whose Claude Code is the fake agent with this script.
fn with_fake(script: &str) -> Tieline {
    let fake = real::fake_agent_program();
    Tieline::new().with("TIELINE_CLAUDE", fake.to_str().unwrap()).with("FAKE_AGENT_SCRIPT", script)
}

const RUN: [&str; 7] = ["run", "--agent", "claude", "-c", "k", "--format", "jsonl"];

fn run_jsonl<'a>(more: &[&'a str]) -> Vec<&'a str> {
    RUN.iter().copied().chain(more.iter().copied()).collect()
}

pub(crate) fn kill(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Whole lines of JSON from a child, as they come.
pub(crate) fn lines(child: &mut Child) -> impl Iterator<Item = Value> + use<> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).unwrap();
        // A line that was cut in the middle was never shown.
        let whole = line.strip_suffix(b"\n")?;
        Some(serde_json::from_slice(whole).unwrap())
    })
}

/// Waits up to two seconds, which is what the promise gives us.
#[track_caller]
pub(crate) fn nobody_is_left(marker: &str, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let alive = probe::alive_with(marker);
        if alive.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {alive:?} alive after 2 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A different number each time, the same in each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn kill_9_under_load_loses_nothing_that_was_shown() {
    let kills: u64 = std::env::var("TIELINE_KILLS").map_or(200, |n| n.parse().unwrap());
    let step = "deltas 20 16\ntool Bash {\"command\":\"echo x\"}\nsay one more message\n";
    let tieline = with_fake(&step.repeat(200));
    let key = ConversationKey::new("k").unwrap();
    let mut dice = Dice(1);
    let mut shown: BTreeMap<u64, Value> = BTreeMap::new();
    let (mut n_shown, mut checked) = (0, 0);
    for round in 0..kills {
        let mut child = tieline.spawn(&run_jsonl(&["go"]));
        let stop_after = dice.below(600);
        let mut n_lines = 0;
        for line in lines(&mut child) {
            if let Some(seq) = line["seq"].as_u64() {
                assert!(seq > checked, "seq {seq} was shown before");
                let before = shown.insert(seq, line);
                assert!(before.is_none(), "seq {seq} was shown twice");
            }
            n_lines += 1;
            if n_lines == stop_after {
                kill(&child, Signal::KILL);
            }
        }
        child.wait().unwrap();
        if round % 20 == 19 || round + 1 == kills {
            checked = check_store(&tieline, &key, &shown, checked);
            n_shown += shown.len();
            shown.clear();
        }
    }
    assert!(n_shown > 500, "only {n_shown} events were shown");
    let store = Store::open(&tieline.store(), Options::default()).unwrap();
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    drop(store);
    // One more turn closes what the last kill left open.
    tieline.run(&run_jsonl(&["and again"])).succeeds();
    let mut ends: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for event in tieline.events("k") {
        let count = ends.entry(event["turn"].as_str().unwrap_or("-").to_owned()).or_default();
        match event["kind"].as_str() {
            Some("turn.started") => count.0 += 1,
            Some("turn.completed") => count.1 += 1,
            _ => {}
        }
    }
    ends.remove("-");
    assert!(ends.len() as u64 > kills / 2, "{} turns began", ends.len());
    let odd: Vec<_> = ends.iter().filter(|(_, count)| **count != (1, 1)).collect();
    assert!(odd.is_empty(), "begun and ended: {odd:?}");
}

/// The store opens, has no gap after an event that was checked before, and holds every event that
/// was shown as it was shown. Gives the last event.
pub(crate) fn check_store(
    tieline: &Tieline,
    key: &ConversationKey,
    shown: &BTreeMap<u64, Value>,
    checked: u64,
) -> u64 {
    let store = Store::open(&tieline.store(), Options::default()).unwrap();
    let mut next = checked + 1;
    loop {
        let page = store.events(key, Seq(next - 1), 1000).unwrap();
        if page.is_empty() {
            break;
        }
        for event in page {
            assert_eq!(event.seq.0, next, "a gap");
            if let Some(shown) = shown.get(&next) {
                let stored: Value = serde_json::from_slice(&event.json).unwrap();
                assert_eq!(stored, *shown);
            }
            next += 1;
        }
    }
    let last = shown.keys().last().copied().unwrap_or(0);
    assert!(last < next, "{last} was shown and is not stored; the last one is {}", next - 1);
    next - 1
}

/// How a conversation may end under an agent.
const ENDS: [&str; 4] = ["close", "timeout", "client gone", "crash of ours"];

fn leaves_nobody(verb: &str) {
    for end in ENDS {
        let rest = match end {
            "close" => "say Done.",
            "client gone" => "flood 300000",
            _ => "silence",
        };
        let tieline = with_fake(&format!("{verb}\n{rest}"));
        let marker = format!("TIELINE_HOME={}", tieline.store().display());
        for round in 0..20 {
            let what = format!("{verb}, {end}, round {round}");
            let mut child = match end {
                "timeout" => tieline.spawn(&run_jsonl(&["--timeout", "0.2", "go"])),
                _ => tieline.spawn(&run_jsonl(&["go"])),
            };
            match end {
                "client gone" => {
                    let mut first = [0; 64];
                    let mut out = child.stdout.take().unwrap();
                    out.read_exact(&mut first).unwrap();
                }
                "crash of ours" => {
                    let began = lines(&mut child).any(|line| line["kind"] == "process.spawned");
                    assert!(began, "{what}");
                    kill(&child, Signal::KILL);
                }
                _ => drop(lines(&mut child).count()),
            }
            child.wait().unwrap();
            nobody_is_left(&marker, &what);
        }
    }
}

#[test]
fn nobody_is_left_of_an_agent_that_forks() {
    leaves_nobody("fork hold");
}

#[test]
fn nobody_is_left_of_an_agent_that_forks_twice() {
    leaves_nobody("double-fork");
}

#[test]
fn nobody_is_left_of_an_agent_that_calls_setsid() {
    leaves_nobody("setsid");
}

#[test]
fn nobody_is_left_of_an_agent_that_uses_nohup() {
    leaves_nobody("nohup");
}

#[test]
fn nobody_is_left_of_an_agent_that_ignores_term() {
    leaves_nobody("ignore TERM\nfork");
}

#[test]
fn the_death_of_an_agent_ends_its_turn() {
    let tieline = with_fake("say Hello.\nsilence");
    let mut child = tieline.spawn(&run_jsonl(&["go"]));
    let mut lines = lines(&mut child);
    let spawned = lines.find(|line| line["kind"] == "process.spawned").unwrap();
    lines.find(|line| line["kind"] == "item.completed" && line["data"]["type"] == "agent_message");
    let pid = i32::try_from(spawned["data"]["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let end = lines.find(|line| line["kind"] == "turn.completed").unwrap();
    assert_eq!(end["data"]["error"]["code"], "agent_killed");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_gibibyte_without_a_newline_is_one_event_in_bounded_memory() {
    let tieline = with_fake("sleep 300\nno-newline 1073741824\nbytes 0a\nsay Still here.");
    let mut child = tieline.spawn(&run_jsonl(&["go"]));
    let pid = child.id();
    let mut lines = lines(&mut child);
    lines.find(|line| line["kind"] == "process.spawned").unwrap();
    let at_rest = probe::rss_kib(pid).unwrap();
    let watch = std::thread::spawn(move || {
        let mut most = 0;
        while let Some(rss) = probe::rss_kib(pid) {
            most = most.max(rss);
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    });
    let rest: Vec<Value> = lines.collect();
    child.wait().unwrap();
    let unparsed: Vec<_> = rest.iter().filter(|line| line["kind"] == "unparsed").collect();
    assert_eq!(unparsed.len(), 1);
    assert_eq!(unparsed[0]["data"]["bytes"], 1_073_741_824_u64);
    assert!(unparsed[0]["data"]["sha256"].is_string());
    let end = rest.iter().find(|line| line["kind"] == "turn.completed").unwrap();
    assert_eq!(end["data"]["text"], "Still here.");
    let grown = watch.join().unwrap().saturating_sub(at_rest);
    assert!(grown <= 72 * 1024, "grew by {grown} KiB");
}

#[test]
fn a_full_disk_is_store_trouble_and_loses_nothing_that_was_shown() {
    let script: String = (0..2000).map(|n| format!("say message number {n}\n")).collect();
    let tieline = with_fake(&script);
    // The shell's limit on file sizes makes writes fail as a full disk does.
    let binary = env!("CARGO_BIN_EXE_tieline");
    let shell = format!("trap '' XFSZ; ulimit -f 300; exec {binary} {} go", RUN.join(" "));
    let mut command = tieline.command(&[]);
    let variables: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.unwrap().to_owned()))
        .collect();
    command = shell_command(&shell);
    command.env_clear().envs(variables).current_dir(tieline.work());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{stderr}");
    assert!(stderr.starts_with("tieline: ") || stderr.contains("\ntieline: "), "{stderr}");
    let shown: BTreeMap<u64, Value> = output
        .stdout
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line.strip_suffix(b"\n")?).ok())
        .filter_map(|line| Some((line["seq"].as_u64()?, line)))
        .collect();
    assert!(!shown.is_empty());
    check_store(&tieline, &ConversationKey::new("k").unwrap(), &shown, 0);
    // With room again the conversation goes on.
    let tieline = tieline.with("FAKE_AGENT_SCRIPT", "say Back.");
    let outcome = tieline.run(&["run", "-c", "k", "--format", "final", "again"]).succeeds();
    assert_eq!(outcome.out, "Back.\n");
}

#[allow(clippy::disallowed_methods)] // a shell sets the limit for the program under test
fn shell_command(script: &str) -> std::process::Command {
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

//! The fake agent on its pipes.

use serde_json::{Value, json};
use tieline_testkit::probe;

use crate::fake::Fake;

/// As Claude Code, with a script.
fn start(script: &str) -> Fake {
    let args = ["--input-format", "stream-json", "--include-partial-messages"];
    let more = ["--session-id=0-1", ""];
    Fake::spawn(&[&args[..], &more].concat(), &[("FAKE_AGENT_SCRIPT", script)])
}

impl Fake {
    /// The lines up to and with the first of this type.
    fn until(&mut self, kind: &str) -> Vec<Value> {
        self.until_at("/type", kind)
    }

    fn prompt(&mut self) {
        self.send(&json!({"type": "user", "message": {"role": "user", "content": "go"}}));
    }

    fn control(&mut self, id: &str, subtype: &str) {
        let request = json!({"subtype": subtype});
        self.send(&json!({"type": "control_request", "request_id": id, "request": request}));
    }
}

fn texts(lines: &[Value]) -> String {
    let deltas = lines.iter().filter_map(|line| line["event"]["delta"]["text"].as_str());
    deltas.collect()
}

#[test]
fn hello_has_the_frames_of_a_turn() {
    let mut fake = start("say Hello there.\n---\nsay Again.");
    fake.control("r1", "initialize");
    let answer = fake.next();
    assert_eq!(answer["response"]["request_id"], "r1");
    assert!(!answer["response"]["response"]["models"].as_array().unwrap().is_empty());
    fake.prompt();
    let lines = fake.until("result");
    assert_eq!((&lines[0]["subtype"], &lines[0]["session_id"]), (&"init".into(), &"0-1".into()));
    assert_eq!(texts(&lines), "Hello there.");
    let result = lines.last().unwrap();
    assert_eq!((&result["result"], &result["is_error"]), (&"Hello there.".into(), &false.into()));
    fake.prompt();
    assert_eq!(texts(&fake.until("result")), "Again.");
    assert_eq!(fake.end(), Some(0));
}

#[test]
fn type_is_a_late_key_of_the_result_line() {
    let mut fake = start("result api-error");
    fake.prompt();
    fake.lines.next().unwrap().unwrap();
    let line = fake.lines.next().unwrap().unwrap();
    assert!(line.starts_with("{\"duration_api_ms\"") && line.contains("\"type\":\"result\""));
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_process() {
    let mut fake = start("say Wait.\nsilence\n---\nsay Back.");
    fake.prompt();
    fake.until("assistant");
    fake.control("stop", "interrupt");
    let lines = fake.until("result");
    assert!(lines.iter().any(|line| line["response"]["request_id"] == "stop"));
    assert_eq!(lines.last().unwrap()["terminal_reason"], "aborted_streaming");
    fake.prompt();
    assert_eq!(texts(&fake.until("result")), "Back.");
}

#[test]
fn a_permission_waits_for_its_answer() {
    let mut fake = start(r#"ask-permission Bash {"command":"ls"}"#);
    fake.prompt();
    let request = fake.until("control_request").pop().unwrap();
    assert_eq!(request["request"]["input"]["command"], "ls");
    let answer = json!({"behavior": "deny", "message": "no"});
    let response = json!({
        "subtype": "success", "request_id": request["request_id"], "response": answer,
    });
    fake.send(&json!({"type": "control_response", "response": response}));
    let result = &fake.until("result")[0]["message"]["content"][0];
    assert_eq!((&result["content"], &result["is_error"]), (&"no".into(), &true.into()));
}

#[test]
fn a_flood_is_complete_and_in_order() {
    let mut fake = start("flood 5000 16");
    fake.prompt();
    let lines = fake.until("result");
    let expected: String = (0..5000).map(|n| format!("{n:08}xxxxxxxx")).collect();
    assert_eq!(texts(&lines), expected);
}

#[test]
fn a_huge_line_has_the_length_it_says_and_is_valid() {
    let mut fake = start("huge 300000");
    fake.prompt();
    fake.lines.next().unwrap().unwrap();
    let line = fake.lines.next().unwrap().unwrap();
    assert_eq!(line.len(), 300_000);
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["type"], "assistant");
}

#[test]
fn faults_happen_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let argv = dir.path().join("argv");
    let script = format!("dump-argv {}\ngarbage {{oops\nbytes ff 0a\nhalf-line x", argv.display());
    let mut fake = start(&script);
    fake.prompt();
    fake.next();
    assert_eq!(fake.lines.next().unwrap().unwrap(), "{oops");
    assert!(fake.lines.next().unwrap().is_err(), "a byte that is no UTF-8");
    assert!(std::fs::read(&argv).unwrap().ends_with(b"--session-id=0-1\0\0"));

    let mut fake = start("stderr x\nno-newline 10\nexit 7");
    fake.prompt();
    fake.next();
    assert_eq!(fake.lines.next().unwrap().unwrap(), "xxxxxxxxxx");
    assert_eq!(fake.end(), Some(7));
}

#[test]
fn descendants_survive_and_are_found_by_their_environment() {
    let script = "fork\ndouble-fork hold\nsetsid\nnohup\nsay up\nkill KILL";
    let mut fake = start(script);
    let marker = format!("FAKE_AGENT_SCRIPT={script}");
    fake.prompt();
    fake.until("assistant");
    fake.child.wait().unwrap();
    let left = probe::alive_with(&marker);
    // Killed before the assertion, so that a failure leaves nobody behind.
    for pid in &left {
        end(*pid);
    }
    assert_eq!(left.len(), 4, "{left:?}");
    // `hold` kept our pipe open; it ends now that the holder is gone.
    while let Some(Ok(_)) = fake.lines.next() {}
}

fn end(pid: u32) {
    let pid = libc::pid_t::try_from(pid).unwrap();
    #[allow(unsafe_code)]
    // SAFETY: plain numbers, and the process carries this test's own marker.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
}

#[test]
fn the_probe_reads_memory_and_descriptors() {
    let own = std::process::id();
    assert!(probe::rss_kib(own).unwrap() > 1000);
    assert!(probe::fd_count(own).unwrap() >= 3);
    assert_eq!(probe::rss_kib(u32::MAX), None);
}

//! `tieline proto` from outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::tieline::Tieline;

fn line(id: &str, op: Value) -> String {
    format!("{}\n", json!({"id": id, "op": op}))
}

fn turn(id: &str, text: &str) -> String {
    line(id, json!({"type": "user_turn", "items": [{"type": "text", "text": text}]}))
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["msg"]["type"].as_str().unwrap()).collect()
}

/// Reads events up to one of this kind.
fn until(reader: &mut impl BufRead, kind: &str) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no {kind} in {heard:#?}");
        let event: Value = serde_json::from_str(&line).unwrap();
        heard.push(event);
        if heard.last().unwrap()["msg"]["type"] == kind {
            return heard;
        }
    }
}

/// A server, and what it says about where it listens.
fn listening(tieline: &Tieline, args: &[&str]) -> (Child, String) {
    let args = [&["proto", "--agent", "demo"], args].concat();
    let mut server = tieline.spawn(&args);
    let mut told = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    (server, line.trim().to_owned())
}

fn end(mut server: Child) {
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// A session with one turn.
fn session() -> String {
    let configure = json!({"type": "configure_session", "approval_policy": "never",
        "sandbox_policy": {"type": "danger-full-access"}});
    [line("0", configure), turn("1", "hello")].concat()
}

#[test]
fn a_few_lines_on_stdin_are_a_session() {
    let tieline = Tieline::new();
    let told = tieline.feed(&["proto", "--agent", "demo"], session().as_bytes()).succeeds();
    let lines = told.lines();
    let kinds = kinds(&lines);
    assert_eq!(kinds[0], "session_configured");
    assert_eq!(*kinds.last().unwrap(), "task_complete");
    for kind in ["exec_command_begin", "patch_apply_end", "turn_diff", "plan_update"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    // The session is a conversation like any other.
    let key = lines[0]["msg"]["session_id"].as_str().unwrap();
    assert_eq!(tieline.rows()[0]["key"], key);
    assert_eq!(key.len(), 36, "it has the form of a UUID: {key}");
    assert!(std::fs::read_to_string(tieline.work().join("hello.md")).unwrap().contains("finished"));
}

#[test]
fn the_demo_takes_any_model_and_says_that_it_plays() {
    let tieline = Tieline::new();
    let configure = json!({"type": "configure_session", "model": "gpt-5.2-codex",
        "approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"}});
    let input = [line("0", configure), turn("1", "hello")].concat();
    let told = tieline.feed(&["proto", "--agent", "demo"], input.as_bytes()).succeeds();
    let lines = told.lines();
    assert_eq!(lines[0]["msg"]["model"], "gpt-5.2-codex", "{lines:?}");
    assert_eq!(*kinds(&lines).last().unwrap(), "task_complete");
    assert!(kinds(&lines).contains(&"patch_apply_end"), "{lines:?}");
    assert!(told.out.contains("plays a script"), "{}", told.out);
}

/// Editors written in JavaScript give sockets, shells give pipes and files.
#[test]
fn stdin_and_stdout_may_be_files_or_sockets_and_stay_as_they_are() {
    let tieline = Tieline::new();
    let path = tieline.path("lines");
    std::fs::write(&path, session()).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let output = tieline.path("told");
    let told = std::fs::File::create(&output).unwrap();
    let mut proto = tieline.command(&["proto", "--agent", "demo"]);
    assert!(proto.stdin(file).stdout(told).status().unwrap().success());
    let told = std::fs::read_to_string(&output).unwrap();
    assert!(told.lines().last().unwrap().contains("task_complete"), "{told}");

    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let stream = || OwnedFd::from(theirs.try_clone().unwrap());
    let mut proto = tieline.command(&["proto", "--agent", "demo"]);
    let mut proto = proto.stdin(stream()).stdout(stream()).spawn().unwrap();
    ours.write_all(session().as_bytes()).unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let mut lines = BufReader::new(&ours).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("task_complete")));
    assert!(proto.wait().unwrap().success());
    let flags = rustix::fs::fcntl_getfl(&theirs).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "others may have it, too");
}

#[test]
fn an_old_client_finds_its_session_configured() {
    let tieline = Tieline::new();
    let script =
        ["not json\n".to_owned(), turn("1", "hello"), line("2", json!({"type": "bogus_op"}))];
    let args = ["proto", "--agent", "demo", "--compat", "upstream"];
    let told = tieline.feed(&args, script.concat().as_bytes()).succeeds();
    let lines = told.lines();
    assert_eq!(
        (&lines[0]["id"], &lines[0]["msg"]["type"]),
        (&json!(""), &json!("session_configured"))
    );
    assert!(lines[0]["msg"]["rollout_path"].is_string());
    assert_eq!(kinds(&lines).iter().filter(|kind| **kind == "task_complete").count(), 1);
    assert!(told.err.contains("bogus_op") && told.err.contains("no submission"), "{}", told.err);
}

#[test]
fn a_unix_socket_serves_and_is_taken_away() {
    let tieline = Tieline::new();
    let path = tieline.path("p.sock");
    let place = format!("unix:{}", path.display());
    let (server, told) = listening(&tieline, &["--listen", &place]);
    assert_eq!(told, format!("tieline: listening on {place}"));
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(line("0", json!({"type": "configure_session"})).as_bytes()).unwrap();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    until(&mut reader, "session_configured");
    client.write_all(line("1", json!({"type": "shutdown"})).as_bytes()).unwrap();
    until(&mut reader, "shutdown_complete");
    end(server);
    assert!(!path.exists());
}

#[test]
fn a_port_wants_the_token_that_was_printed() {
    let tieline = Tieline::new();
    let (server, told) = listening(&tieline, &["--listen", "tcp:127.0.0.1:0"]);
    let (place, token) = told.split_once("; token ").unwrap();
    let address = place.strip_prefix("tieline: listening on tcp:").unwrap();
    assert_eq!(token.len(), 64);
    let speak = |token: &str| {
        let mut client = TcpStream::connect(address).unwrap();
        let shown = line("t", json!({"type": "authenticate", "token": token}));
        let configure = line("0", json!({"type": "configure_session"}));
        // One that is turned away may be gone before all is said.
        client.write_all((shown + &configure).as_bytes()).ok();
        BufReader::new(client)
    };
    let mut refused = String::new();
    speak("wrong").read_to_string(&mut refused).ok();
    assert!(!refused.contains("session_configured"), "{refused}");
    until(&mut speak(token), "session_configured");
    end(server);
    // In a file it is not printed.
    let file = tieline.path("token");
    let args = ["--listen", "tcp:127.0.0.1:0", "--token-file", file.to_str().unwrap()];
    let (server, told) = listening(&tieline, &args);
    let token = std::fs::read_to_string(&file).unwrap();
    assert!(!told.contains(token.trim()) && told.contains("token"), "{told}");
    end(server);
}

#[test]
fn what_cannot_be_listened_on_says_what_to_do() {
    let tieline = Tieline::new();
    for (place, told) in [
        ("tcp:0.0.0.0:0", "--allow-remote"),
        ("http://x", "unix:PATH"),
        ("unix:/no/such/dir/s", "bind /no/such/dir/s"),
    ] {
        let refused = tieline.run(&["proto", "--agent", "demo", "--listen", place]);
        assert!(refused.code == 2 && refused.err.contains(told), "{place}: {refused:?}");
    }
    let refused = tieline.run(&["proto", "--agent", "nobody"]);
    assert!(refused.code == 2 && refused.err.contains("unknown agent"), "{refused:?}");
}

#[test]
fn the_schema_that_is_printed_is_the_one_in_the_repository() {
    let printed = Tieline::new().run(&["proto", "--schema"]).succeeds().out;
    assert_eq!(printed, include_str!("../../../wire/schema/sqeq.v1.json"));
}

#[test]
fn a_client_that_is_killed_leaves_nothing_running() {
    let script = "run echo begun; exec sleep 1000";
    let tieline = Tieline::new();
    let path = tieline.path("play.script");
    std::fs::write(&path, script).unwrap();
    let tieline = tieline.with_config(&format!("[agents.demo]\nscript = {:?}\n", path.display()));
    let mut server = tieline
        .command(&["proto", "--agent", "demo", "--mode", "yolo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    input.write_all(line("0", json!({"type": "configure_session"})).as_bytes()).unwrap();
    input.write_all(turn("1", "go").as_bytes()).unwrap();
    until(&mut output, "exec_command_begin");
    // What a client's end looks like from here.
    drop(input);
    drop(output);
    assert!(server.wait().unwrap().success());
    let home = tieline.path("").display().to_string();
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&home)
    });
    assert_eq!(left.count(), 0);
}

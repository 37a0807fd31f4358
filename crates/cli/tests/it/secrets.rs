//! What an agent could read of the process that started it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::tieline::{Outcome, Tieline};

/// Somebody without privileges: whoever may do anything reads everything.
const NOBODY: u32 = 65534;

fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        path.read_dir().unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
}

/// A command as somebody without privileges, with a copy of the program where everybody can execute it.
#[allow(clippy::disallowed_methods, reason = "a test starts what it tests")]
fn unprivileged(tieline: &Tieline, args: &[&str]) -> Command {
    let command = tieline.command(args);
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let program = tieline.path("program");
    fs::copy(env!("CARGO_BIN_EXE_tieline"), &program).unwrap();
    give(&tieline.path(""));
    let mut copy = Command::new(program);
    copy.args(args).current_dir(tieline.work()).env_clear();
    copy.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    copy.uid(NOBODY).gid(NOBODY);
    copy
}

#[test]
fn an_agent_reads_neither_the_environment_nor_the_memory_of_tieline() {
    // Its parent is the host, whose parent is tieline.
    let tieline = Tieline::new().with("MY_SECRET_TOKEN", "hunter2").with_claude(
        r#"cd "$HOME"
        above=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)
        cat /proc/$above/comm > name
        cat /proc/$above/environ > environ 2>/dev/null
        (: >> /proc/$above/mem) 2>/dev/null && echo open > mem
        env > own
        exit 1"#,
    );
    let run = ["run", "--agent", "claude", "hi"];
    let outcome = unprivileged(&tieline, &run).stdin(Stdio::null()).output().unwrap();
    let outcome = Outcome::from(outcome);
    let read = |name: &str| fs::read_to_string(tieline.path(name)).unwrap_or_default();
    assert!(["tieline", "program"].contains(&read("name").trim()), "{outcome:?}");
    assert!(read("own").contains("HOME="), "{outcome:?}");
    assert!(!read("own").contains("hunter2"));
    assert_eq!((read("environ"), read("mem")), (String::new(), String::new()));
}

#[test]
fn whoever_has_no_privileges_runs_commands_in_the_sandbox_all_the_same() {
    let tieline = Tieline::new();
    let demo = unprivileged(&tieline, &["demo", "--format", "jsonl"]);
    let outcome = run(demo).ends_with(0);
    assert!(outcome.out.contains("turn.completed"), "{}", outcome.out);
    let commands: Vec<serde_json::Value> = outcome
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| {
            line["kind"] == "item.completed" && line["data"]["type"] == "command"
        })
        .collect();
    assert!(!commands.is_empty(), "{}", outcome.out);
    assert!(commands.iter().all(|it| it["data"]["exit_code"] == 0), "{commands:?}");
    let doctor = run(unprivileged(&tieline, &["doctor", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&doctor.out).unwrap();
    let bad: Vec<_> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["state"] == "bad" && check["area"] != "engine")
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn a_store_that_cannot_be_written_is_listed_shown_and_exported() {
    use std::os::unix::fs::PermissionsExt;

    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hello there"]).succeeds();
    let set_mode = |mode| {
        fs::set_permissions(tieline.store(), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o500);
    for args in [&["list"][..], &["show", "k"], &["export", "k"]] {
        let outcome = run(unprivileged(&tieline, args)).ends_with(0);
        assert!(outcome.out.contains("hello there"), "{args:?}: {}", outcome.out);
    }
    let outcome = run(unprivileged(&tieline, &["run", "--agent", "demo", "hi"])).ends_with(6);
    assert!(outcome.err.contains("cannot be written"), "{}", outcome.err);
    let outcome = run(unprivileged(&tieline, &["doctor"])).ends_with(1);
    assert!(outcome.out.contains("can only be read"), "{}", outcome.out);
    set_mode(0o700);
}

fn run(mut command: Command) -> Outcome {
    command.stdin(Stdio::null()).output().unwrap().into()
}

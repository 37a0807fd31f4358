use std::fs;

use crate::tieline::{Tieline, modes};

#[test]
fn a_conversation_is_listed_shown_and_exported() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "a b", "Hello \u{1b}[31mthere"]).succeeds();
    let list = tieline.run(&["list"]).succeeds().out;
    assert!(list.contains("a b") && list.contains("demo") && !list.contains('\u{1b}'), "{list}");
    let show = tieline.run(&["show", "a b"]).succeeds().out;
    assert!(show.contains("> Hello there") && show.contains("— completed"), "{show}");
    assert!(!show.contains('\u{1b}'), "{show}");

    let jsonl = tieline.run(&["export", "a b"]).succeeds();
    assert_eq!(jsonl.out, tieline.run(&["show", "a b", "--json"]).succeeds().out);
    let prompt = jsonl.lines().into_iter().find(|it| it["data"]["type"] == "user_message").unwrap();
    assert_eq!(prompt["data"]["content"][0]["text"], "Hello \u{1b}[31mthere", "kept as it was");

    let markdown = tieline.run(&["export", "a b", "--format", "markdown"]).succeeds().out;
    assert!(markdown.starts_with("# a b\n") && markdown.contains("## Turn t1"), "{markdown}");

    let raw = |direction| {
        tieline.run(&["export", "a b", "--format", "raw", "--direction", direction]).succeeds()
    };
    let (input, out, all) = (raw("in"), raw("out"), raw("all"));
    assert!(input.out.contains("\"user_turn\"") && out.out.contains("\"task_complete\""));
    assert_eq!(input.out.len() + out.out.len() + raw("err").out.len(), all.out.len());
    assert_eq!(out.out, tieline.run(&["export", "a b", "--format", "raw"]).succeeds().out);
}

#[test]
fn an_export_does_not_overwrite_a_file_unasked() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    let file = tieline.path("out.md");
    let path = file.to_str().unwrap();
    let export = ["export", "k", "--format", "markdown", "-o", path];
    tieline.run(&export).succeeds();
    let first = fs::read_to_string(&file).unwrap();
    fs::write(&file, "mine").unwrap();
    let outcome = tieline.run(&export).ends_with(2);
    assert!(outcome.err.contains("--force"), "{}", outcome.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    tieline.run(&[&export[..], &["--force"]].concat()).succeeds();
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    tieline.run(&["export", "nope", "-o", tieline.path("new").to_str().unwrap()]).ends_with(2);
    assert!(!tieline.path("new").exists());
}

#[test]
fn reset_forgets_the_session_and_keeps_the_history() {
    let tieline = Tieline::new();
    let session = || -> serde_json::Value {
        let rows = tieline.run(&["list", "--json"]).succeeds().out;
        serde_json::from_str::<serde_json::Value>(&rows).unwrap()[0]["native_session"].clone()
    };
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    assert!(session().is_string());
    tieline.run(&["reset", "k"]).succeeds();
    assert!(session().is_null());
    tieline.run(&["run", "-c", "k", "again"]).succeeds();
    let turns = tieline.events("k").iter().filter(|it| it["kind"] == "turn.completed").count();
    assert_eq!(turns, 2);
}

#[test]
fn delete_asks_first_and_then_leaves_nothing() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    let outcome = tieline.run(&["delete", "k"]).ends_with(2);
    assert!(outcome.err.contains("--yes"), "{}", outcome.err);
    tieline.run(&["show", "k"]).succeeds();
    tieline.run(&["delete", "k", "--yes"]).succeeds();
    tieline.run(&["show", "k"]).ends_with(2);
}

#[test]
fn gc_says_what_it_frees_and_keeps_the_events() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    let events = tieline.run(&["export", "k"]).succeeds().out;
    let dry = tieline.run(&["gc", "--max-size", "0", "--dry-run"]).succeeds().out;
    assert!(dry.starts_with("Would free ") && !dry.contains("free 0 frames"), "{dry}");
    let raw = || tieline.run(&["export", "k", "--format", "raw"]).succeeds().out;
    assert!(!raw().is_empty());
    let wet = tieline.run(&["gc", "--max-size", "0"]).succeeds().out;
    assert!(wet.starts_with("Freed ") && wet.contains("The store has"), "{wet}");
    assert!(raw().is_empty());
    assert_eq!(tieline.run(&["export", "k"]).succeeds().out, events);
}

#[test]
fn doctor_finds_agents_and_a_sound_store() {
    let tieline = Tieline::new()
        .with_claude("[ \"$1\" = --version ] && echo '9.9.9 (Claude Code)'")
        .with("ANTHROPIC_API_KEY", "hunter2");
    tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
    let text = tieline.run(&["doctor"]).succeeds().out;
    assert!(text.contains("9.9.9 (Claude Code)") && text.contains("ANTHROPIC_API_KEY is set"));
    let outcome = tieline.run(&["doctor", "--json"]).succeeds();
    assert!(!outcome.out.contains("hunter2"));
    let report: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(report["ok"], true);
    let check = |name: &str| {
        report["checks"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert_eq!(check("claude")["version"], "9.9.9 (Claude Code)");
    assert_eq!(check("database")["state"], "good");
    assert_eq!(check("subreaper")["state"], "good");
}

#[test]
fn doctor_says_what_is_wrong_with_an_agent() {
    let tieline = Tieline::new().with_claude("echo broken >&2; exit 1");
    let outcome = tieline.run(&["doctor"]).ends_with(1);
    assert!(
        outcome.out.contains("broken") && outcome.out.contains("npm install"),
        "{}",
        outcome.out
    );
}

#[test]
fn doctor_makes_the_store_private_again() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
    for (path, mode) in modes(&tieline.store()) {
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    let loose = tieline.store().join("tieline.db");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&loose, open).unwrap();
    let text = tieline.run(&["doctor"]).succeeds().out;
    assert!(text.contains("repaired"), "{text}");
    for (path, mode) in modes(&tieline.store()) {
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn doctor_says_what_auto_takes_and_that_there_is_no_agent() {
    let text = Tieline::new().run(&["doctor"]).succeeds().out;
    assert!(text.contains("auto: takes the demo"), "{text}");
    assert!(text.contains("there is no agent yet") && !text.contains("in order"), "{text}");
    let tieline =
        Tieline::new().with_claude("[ \"$1\" = --version ] && echo '9.9.9 (Claude Code)'");
    let text = tieline.run(&["doctor"]).succeeds().out;
    assert!(text.contains("auto: takes claude") && text.contains("in order"), "{text}");
}

use crate::tieline::Tieline;

#[track_caller]
fn refused(args: &[&str], code: i32, told: &[&str]) {
    let tieline = Tieline::new();
    let outcome = tieline.run(args).ends_with(code);
    for word in told {
        assert!(outcome.err.contains(word), "{word:?} in {}", outcome.err);
    }
    assert_eq!(outcome.out, "");
    let after = tieline.run(&["list", "--json"]).succeeds();
    assert_eq!(after.out, "[]\n", "nothing was begun");
}

#[test]
fn wrong_usage_is_told_and_begins_nothing() {
    refused(&[], 2, &["Usage"]);
    refused(&["dance"], 2, &["dance"]);
    refused(&["run", "--dance", "hi"], 2, &["--dance"]);
    refused(&["run"], 2, &["prompt is empty"]);
    refused(&["run", " \n"], 2, &["prompt is empty"]);
    refused(
        &["run", "--agent", "nobody", "hi"],
        2,
        &["nobody", "auto, claude, codex, codex-exec, codex-proto, engine, demo, acp:NAME"],
    );
    refused(&["run", "--mode", "sudo", "hi"], 2, &["the modes are"]);
    refused(&["run", "-a", "sometimes", "hi"], 2, &["untrusted, on-failure, on-request, never"]);
    refused(&["run", "-s", "moon", "hi"], 2, &["read-only, workspace-write, danger-full-access"]);
    refused(&["run", "--yolo", "--mode", "plan", "hi"], 2, &["--yolo", "cannot be used with"]);
    refused(&["run", "--full-auto", "-a", "never", "hi"], 2, &["cannot be used with"]);
    refused(
        &["run", "--agent", "claude", "-a", "never", "hi"],
        2,
        &["the agent claude knows only modes", "never + read-only", "--mode default"],
    );
    refused(&["run", "--timeout", "0", "hi"], 2, &["--timeout"]);
    refused(&["run", "-c", "", "hi"], 2, &["cannot be empty"]);
    refused(&["run", "-c", "a\nb", "hi"], 2, &["control characters"]);
    refused(&["run", "--agent", "demo", "--on-request", "ask", "hi"], 2, &["needs a terminal"]);
    refused(&["--log", "loud=loud", "list"], 2, &["--log"]);
}

#[test]
fn a_workspace_that_is_none_is_told() {
    refused(&["run", "--agent", "demo", "--cwd", "/no/such/place", "hi"], 2, &["/no/such/place"]);
    refused(&["run", "--agent", "demo", "--cwd", "/etc/passwd", "hi"], 2, &["not a directory"]);
}

#[test]
fn an_unknown_conversation_is_told() {
    for args in [
        &["show", "nope"][..],
        &["export", "nope"],
        &["export", "nope", "--format", "raw"],
        &["reset", "nope"],
        &["fork", "nope", "new"],
        &["delete", "nope", "--yes"],
    ] {
        refused(args, 2, &["there is no conversation nope", "tieline list"]);
    }
}

#[test]
fn an_agent_that_is_not_installed_is_code_3() {
    refused(&["run", "--agent", "claude", "hi"], 3, &["not installed", "npm install"]);
    for agent in ["codex", "codex-exec", "codex-proto"] {
        let told = ["Codex is not installed", "npm install -g @openai/codex", "TIELINE_CODEX"];
        refused(&["run", "--agent", agent, "hi"], 3, &told);
        let tieline = Tieline::new().with("TIELINE_CODEX", "/no/such/codex");
        let outcome = tieline.run(&["run", "--agent", agent, "hi"]).ends_with(3);
        assert!(outcome.err.contains("TIELINE_CODEX does not name"), "{}", outcome.err);
    }
    let tieline = Tieline::new().with("TIELINE_CLAUDE", "/no/such/claude");
    let outcome = tieline.run(&["run", "--agent", "claude", "hi"]).ends_with(3);
    assert!(outcome.err.contains("TIELINE_CLAUDE"), "{}", outcome.err);
    let tieline = Tieline::new().with("TIELINE_CLAUDE", "/etc/passwd");
    tieline.run(&["run", "--agent", "claude", "hi"]).ends_with(3);
}

#[test]
fn a_prompt_that_is_not_text_is_refused() {
    let outcome = Tieline::new().feed(&["run", "--agent", "demo", "-"], b"\xff\xfe").ends_with(2);
    assert!(outcome.err.contains("not UTF-8"), "{}", outcome.err);
}

#[test]
fn another_agent_for_a_conversation_is_refused() {
    let tieline = Tieline::new().with_claude("exit 0");
    tieline.run(&["run", "--agent", "demo", "-c", "mine", "hi"]).succeeds();
    let outcome = tieline.run(&["run", "--agent", "claude", "-c", "mine", "hi"]).ends_with(2);
    assert!(outcome.err.contains("belongs to the agent demo"), "{}", outcome.err);
}

#[test]
fn a_damaged_store_is_code_6_and_kept_aside_on_demand() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hi"]).succeeds();
    let database = tieline.store().join("tieline.db");
    let garbage = vec![0x5a; 64 * 1024];
    std::fs::write(&database, &garbage).unwrap();
    for args in [&["list"][..], &["run", "--agent", "demo", "hi"], &["show", "k"]] {
        let outcome = tieline.run(args).ends_with(6);
        assert!(outcome.err.contains("tieline doctor --set-aside"), "{}", outcome.err);
        assert_eq!(outcome.err.lines().count(), 1, "{}", outcome.err);
    }
    let outcome = tieline.run(&["doctor"]).ends_with(1);
    assert!(outcome.out.contains("--set-aside"), "{}", outcome.out);
    assert_eq!(std::fs::read(&database).unwrap(), garbage, "nothing was written to it");

    let outcome = tieline.run(&["doctor", "--set-aside"]).succeeds();
    let aside = tieline.store().read_dir().unwrap().map(|it| it.unwrap().path());
    let aside: Vec<_> =
        aside.filter(|it| std::fs::read(it).is_ok_and(|it| it == garbage)).collect();
    assert_eq!(aside.len(), 1);
    assert!(outcome.out.contains(aside[0].to_str().unwrap()), "{}", outcome.out);
    tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
    tieline.run(&["doctor", "--set-aside"]).ends_with(2);
}

#[test]
fn a_store_that_cannot_be_made_is_code_6() {
    let tieline = Tieline::new();
    let outcome = tieline.run(&["--store", "/proc/nope", "list"]).ends_with(6);
    assert!(outcome.err.contains("/proc/nope"), "{}", outcome.err);
}

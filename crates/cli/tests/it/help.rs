use crate::tieline::Tieline;

const COMMANDS: [&str; 15] = [
    "run",
    "proto",
    "demo",
    "list",
    "show",
    "export",
    "reset",
    "fork",
    "delete",
    "gc",
    "doctor",
    "apply-patch",
    "notify",
    "completions",
    "man",
];

#[test]
fn help_lists_every_command_and_every_exit_code() {
    let tieline = Tieline::new();
    for flag in ["-h", "--help"] {
        let help = tieline.run(&[flag]).succeeds().out;
        for command in COMMANDS {
            assert!(help.contains(&format!("  {command} ")), "{command} in {help}");
        }
        for code in 0..=6 {
            assert!(help.contains(&format!("\n  {code}  ")), "code {code} in {help}");
        }
    }
    let long = tieline.run(&["--help"]).succeeds().out;
    assert!(long.contains("Examples:"), "{long}");
}

#[test]
fn every_command_has_a_short_and_a_long_help() {
    let tieline = Tieline::new();
    for command in COMMANDS {
        let short = tieline.run(&[command, "-h"]).succeeds().out;
        let long = tieline.run(&[command, "--help"]).succeeds().out;
        assert!(short.contains("Usage:") && long.contains("Usage:"));
        assert!(long.len() >= short.len(), "{command}");
    }
}

#[test]
fn the_long_help_says_more_than_the_short_one() {
    let tieline = Tieline::new();
    for (command, more) in [
        ("run", "Ctrl-C stops the turn"),
        ("proto", "configure_session"),
        ("demo", "what it does is real"),
        ("export", "the bytes that went over the wire"),
        ("fork", "must have had a turn"),
        ("gc", "events and transcripts always stay"),
        ("doctor", "Exits with 0"),
        ("apply-patch", "all of it or nothing"),
        ("notify", "TIELINE_NOTIFY_SOCKET"),
        ("man", "man -l"),
    ] {
        let help = tieline.run(&[command, "--help"]).succeeds().out.replace('\n', " ");
        assert!(help.contains(more), "{more} in {help}");
    }
}

#[test]
fn the_help_of_run_says_which_agent_is_for_what_and_what_modes_mean() {
    let help = Tieline::new().run(&["run", "--help"]).succeeds().out;
    for agent in
        ["auto", "claude", "codex", "codex-exec", "codex-proto", "engine", "demo", "acp:NAME"]
    {
        assert!(help.contains(&format!("\n  {agent} ")), "{agent} in {help}");
    }
    for row in [
        "plan               on-request + read-only",
        "default            on-request + read-only",
        "acceptEdits        on-request + workspace-write",
        "auto               the same, with its automatic review",
        "bypassPermissions  never + workspace-write + network",
        "yolo               never + danger-full-access",
    ] {
        assert!(help.contains(&format!("\n  {row}")), "{row} in {help}");
    }
    for flag in ["--ask-for-approval", "-a", "--sandbox", "-s", "--full-auto", "--yolo"] {
        assert!(help.contains(flag), "{flag}");
    }
    for value in ["untrusted", "on-failure", "on-request", "never", "danger-full-access"] {
        assert!(help.contains(value), "{value}");
    }
    assert!(help.contains("--fresh") && help.contains("--queue"), "{help}");
}

#[test]
fn the_help_lists_every_key_of_the_configuration() {
    let help = Tieline::new().run(&["--help"]).succeeds().out;
    let (_, configuration) = help.split_once("Configuration").unwrap();
    for word in [
        "[defaults]",
        "[agents.claude]",
        "[agents.codex]",
        "[agents.codex-exec]",
        "[agents.codex-proto]",
        "[agents.acp.NAME]",
        "[engine]",
        "OPENAI_BASE_URL",
        "program",
        "args",
        "env",
        "pass",
        "preamble",
        "lifetime",
        "notify",
        "shared",
        "silence",
        "TIELINE_CLAUDE",
        "TIELINE_CODEX",
        "TIELINE_CODEX_EXEC",
        "TIELINE_CODEX_PROTO",
    ] {
        assert!(configuration.contains(word), "{word} in {configuration}");
    }
}

#[test]
fn completions_and_pages_are_made() {
    let tieline = Tieline::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = tieline.run(&["completions", shell]).succeeds().out;
        assert!(script.contains("tieline") && script.contains("on-request"), "{shell}");
    }
    let page = tieline.run(&["man"]).succeeds().out;
    assert!(page.starts_with(".ie") || page.contains(".TH tieline 1"), "{page}");
    assert!(page.contains("an answer was needed"), "{page}");
    let dir = tieline.path("pages");
    tieline.run(&["man", "--dir", dir.to_str().unwrap()]).succeeds();
    assert!(dir.join("tieline.1").exists() && dir.join("tieline-run.1").exists());
}

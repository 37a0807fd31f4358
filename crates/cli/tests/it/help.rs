use crate::tieline::Tieline;

const COMMANDS: [&str; 11] = [
    "run",
    "demo",
    "list",
    "show",
    "export",
    "reset",
    "delete",
    "gc",
    "doctor",
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
        assert!(!help.contains("__demo-agent"));
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

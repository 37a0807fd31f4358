use std::fs;

use crate::tieline::Tieline;

fn with_config(text: &str) -> Tieline {
    Tieline::new().with_config(text)
}

#[test]
fn a_mistake_is_told_with_file_line_and_key() {
    for (text, told) in [
        ("[defaults]\n\nagnet = \"demo\"\n", "config.toml:3: defaults.agnet: unknown key"),
        ("[defaults]\ntimeout = \"long\"\n", "config.toml:2: defaults.timeout: must be"),
        ("[agents.claude]\nargs = 7\n", "config.toml:2: agents.claude.args: must be"),
        ("[agents.codex]\n\nsilence = 7\n", "config.toml:3: agents.codex.silence: unknown key"),
        ("[agents.codex]\nshared = 0\n", "config.toml:2: agents.codex.shared: must be"),
        ("[agents.codex-exec]\nshared = 2\n", "config.toml:2: agents.codex-exec.shared: unknown"),
        ("[agents.codex-proto]\nnotify = 1\n", "config.toml:2: agents.codex-proto.notify: must"),
        ("[agents.claude]\nnotify = true\n", "config.toml:2: agents.claude.notify: unknown key"),
        ("[defaults\n", "config.toml:1: "),
    ] {
        let outcome = with_config(text).run(&["run", "hi"]).ends_with(2);
        assert!(outcome.err.contains(told), "{told:?} in {}", outcome.err);
        assert_eq!(outcome.err.lines().count(), 1, "{}", outcome.err);
    }
}

#[test]
fn a_named_file_must_exist() {
    let outcome = Tieline::new().run(&["--config", "/no/such.toml", "run", "hi"]).ends_with(2);
    assert!(outcome.err.contains("/no/such.toml"), "{}", outcome.err);
}

#[test]
fn empty_variables_say_nothing() {
    let tieline = Tieline::new().with("TIELINE_CONFIG", "").with("TIELINE_LOG", "");
    tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
}

#[test]
fn defaults_hold_unless_a_flag_says_otherwise() {
    let tieline =
        with_config("[defaults]\nagent = \"demo\"\nformat = \"jsonl\"\nmode = \"plan\"\n");
    let lines = tieline.run(&["run", "hi"]).succeeds().lines();
    assert_eq!(lines[0]["data"]["agent"], "demo");
    assert_eq!(lines[0]["data"]["mode"], "plan");
    let lines = tieline.run(&["run", "--mode", "acceptEdits", "hi"]).succeeds().lines();
    assert_eq!(lines[0]["data"]["mode"], "acceptEdits");
}

#[test]
fn arguments_and_environment_reach_the_program_and_secrets_do_not() {
    let tieline = with_config(
        "[agents.claude]\nargs = [\"--first\"]\nenv = { GIVEN = \"1\" }\npass = [\"PASSED_TOKEN\"]\n",
    )
    .with_claude(
        "echo \"$@\" > \"$HOME/args\"; env > \"$HOME/env\"; echo fine >&2; exit 3",
    )
    .with("PASSED_TOKEN", "2")
    .with("OTHER_TOKEN", "3")
    .with("ANTHROPIC_API_KEY", "4")
    .with("CLAUDECODE", "5")
    .with("CLAUDE_CODE_ENTRYPOINT", "6");
    tieline.run(&["run", "--agent", "claude", "say --help"]).ends_with(3);
    let args = fs::read_to_string(tieline.path("args")).unwrap();
    assert!(args.starts_with("--first "), "{args}");
    assert!(!args.contains("say"), "{args}");
    let env = fs::read_to_string(tieline.path("env")).unwrap();
    for there in ["GIVEN=1", "PASSED_TOKEN=2", "ANTHROPIC_API_KEY=4"] {
        assert!(env.lines().any(|line| line == there), "{there} in {env}");
    }
    for gone in ["OTHER_TOKEN", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"] {
        assert!(!env.contains(gone), "{gone} in {env}");
    }
}

#[test]
fn nothing_is_read_from_the_workspace() {
    let tieline = Tieline::new();
    for place in ["tieline.toml", "config.toml", ".tieline.toml", ".config/tieline/config.toml"] {
        let file = tieline.work().join(place);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "this is broken").unwrap();
    }
    tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
}

#[test]
fn the_demo_agent_plays_the_script_it_is_given() {
    let tieline = with_config("[agents.demo]\nscript = \"~/tour.script\"\n");
    let told = tieline.run(&["run", "--agent", "demo", "hi"]).ends_with(1);
    assert!(told.err.contains("tour.script"), "{}", told.err);
    fs::write(tieline.path("tour.script"), "say You said {prompt}.\n").unwrap();
    let outcome = tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
    assert_eq!(outcome.out.trim(), "You said hi.");
}

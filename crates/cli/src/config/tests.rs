use super::*;

#[track_caller]
fn refused(text: &str, expected: &str) {
    let err = parse("c.toml", text).unwrap_err();
    assert_eq!(err.message(), expected);
}

#[test]
fn everything_a_file_can_say_is_read() {
    let text = r#"
        [defaults]
        agent = "claude"
        mode = "accept-edits"
        model = "opus"
        on_request = "fail"
        format = "jsonl"
        timeout = 1_000
        idle_sleep = 30

        [agents.claude]
        program = "/opt/claude"
        args = ["--add-dir", "/x"]
        env = { A = "1", "B.C" = "2" }
        pass = ["GITHUB_TOKEN"]
        lifetime = "turn"
    "#;
    let config = parse("c.toml", text).unwrap();
    assert_eq!(config.agent.as_deref(), Some("claude"));
    assert_eq!(config.mode, Some(Mode::AcceptEdits));
    assert_eq!(config.model.as_deref(), Some("opus"));
    assert_eq!(config.on_request, Some(OnRequestArg::Fail));
    assert_eq!(config.format, Some(FormatArg::Jsonl));
    assert_eq!(config.timeout, Some(Duration::from_secs(1000)));
    assert_eq!(config.idle_sleep, Some(Duration::from_secs(30)));
    assert_eq!(config.claude.program.as_deref(), Some("/opt/claude"));
    assert_eq!(config.claude.args, ["--add-dir", "/x"]);
    assert_eq!(config.claude.env.get("B.C").map(String::as_str), Some("2"));
    assert_eq!(config.claude.pass, ["GITHUB_TOKEN"]);
    assert_eq!(config.claude.lifetime, Lifetime::Turn);
}

#[test]
fn an_empty_file_says_nothing() {
    assert_eq!(parse("c.toml", "").unwrap(), Config::default());
}

#[test]
fn mistakes_are_told_with_file_line_and_key() {
    refused(
        "[defaults]\nagnet = \"x\"",
        "c.toml:2: defaults.agnet: unknown key; known here: agent, mode, model, on_request, format, timeout, idle_sleep",
    );
    refused("\n\n[server]\n", "c.toml:3: server: unknown key; known here: defaults, agents");
    refused("[agents.codex]\n", "c.toml:1: agents.codex: unknown key; known here: claude");
    refused("defaults = 3", "c.toml:1: defaults: must be a table, is integer");
    refused("[defaults]\nmodel = 5", "c.toml:2: defaults.model: must be a string, is integer");
    refused(
        "[defaults]\nmode = \"sudo\"",
        "c.toml:2: defaults.mode: unknown mode \"sudo\"; the modes are default, plan, acceptEdits, bypassPermissions, yolo",
    );
    refused(
        "[defaults]\ntimeout = -1",
        "c.toml:2: defaults.timeout: must be a whole number of seconds from 1 on",
    );
    refused(
        "[defaults]\ntimeout = \"1\"",
        "c.toml:2: defaults.timeout: must be a whole number of seconds from 1 on, is string",
    );
    refused(
        "[defaults]\nformat = \"xml\"",
        "c.toml:2: defaults.format: \"xml\" is none of text, jsonl, final",
    );
    refused(
        "[agents.claude]\nargs = [\"a\",\n 1]",
        "c.toml:3: agents.claude.args: must be a string, is integer",
    );
    refused(
        "[agents.claude.env]\nA = 1",
        "c.toml:2: agents.claude.env.A: must be a string, is integer",
    );
    refused(
        "[agents.claude]\nlifetime = \"day\"",
        "c.toml:2: agents.claude.lifetime: \"day\" is none of \"conversation\" and \"turn\"",
    );
    let broken = parse("c.toml", "[defaults]\nmodel = \n").unwrap_err();
    assert!(broken.message().starts_with("c.toml:2: "), "{}", broken.message());
}

#[test]
fn values_of_variables_are_not_shown_in_debug_output() {
    let config = parse("c.toml", "[agents.claude.env]\nKEY = \"hunter2\"").unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}

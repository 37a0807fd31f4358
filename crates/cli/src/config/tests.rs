use super::*;

mod engine;

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
        preamble = true
        lifetime = "turn"

        [agents.codex]
        program = "/opt/codex"
        args = ["-p", "work"]
        env = { A = "1" }
        pass = ["GITHUB_TOKEN"]
        preamble = true
        notify = true
        shared = 4

        [agents.codex-exec]
        args = []
        notify = false
        silence = 90

        [agents.codex-proto]
        program = "~/old/codex"

        [agents.demo]
        script = "~/tour.script"
    "#;
    let config = parse("c.toml", text).unwrap();
    assert_eq!(config.agent.as_deref(), Some("claude"));
    assert_eq!(config.mode, Some(Mode::AcceptEdits));
    assert_eq!(config.model.as_deref(), Some("opus"));
    assert_eq!(config.on_request, Some(OnRequestArg::Fail));
    assert_eq!(config.format, Some(FormatArg::Jsonl));
    assert_eq!(config.timeout, Some(Duration::from_secs(1000)));
    assert_eq!(config.idle_sleep, Some(Duration::from_secs(30)));
    let words = |words: &[&str]| Some(words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    let env = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Some(pairs.collect::<BTreeMap<_, _>>())
    };
    let claude = AgentConfig {
        program: Some("/opt/claude".to_owned()),
        args: words(&["--add-dir", "/x"]),
        env: env(&[("A", "1"), ("B.C", "2")]),
        pass: words(&["GITHUB_TOKEN"]),
        preamble: Some(true),
        lifetime: Lifetime::Turn,
        ..AgentConfig::default()
    };
    assert_eq!(config.agent("claude"), claude);
    let codex = AgentConfig {
        program: Some("/opt/codex".to_owned()),
        args: words(&["-p", "work"]),
        env: env(&[("A", "1")]),
        pass: words(&["GITHUB_TOKEN"]),
        preamble: Some(true),
        notify: Some(true),
        shared: Some(4),
        ..AgentConfig::default()
    };
    assert_eq!(config.agent("codex"), codex);
    // What they leave out is Codex's; what they say, even nothing, is theirs.
    let exec = AgentConfig {
        args: Some(Vec::new()),
        notify: Some(false),
        shared: None,
        silence: Some(Duration::from_secs(90)),
        ..codex.clone()
    };
    assert_eq!(config.agent("codex-exec"), exec);
    let proto = AgentConfig { program: Some("~/old/codex".to_owned()), shared: None, ..codex };
    assert_eq!(config.agent("codex-proto"), proto);
    assert_eq!(config.agent("demo").script.as_deref(), Some("~/tour.script"));
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
    refused(
        "\n\n[server]\n",
        "c.toml:3: server: unknown key; known here: defaults, agents, engine",
    );
    refused(
        "[agents.codexx]\n",
        "c.toml:1: agents.codexx: unknown key; known here: claude, codex, codex-exec, codex-proto, demo, acp",
    );
    refused("[agents]\ncodex = 1", "c.toml:2: agents.codex: must be a table, is integer");
    refused(
        "[agents.claude]\nnotify = true",
        "c.toml:2: agents.claude.notify: unknown key; known here: program, args, env, pass, preamble, lifetime",
    );
    refused(
        "[agents.codex]\nprogram = \"codex\"\nsilence = 3",
        "c.toml:3: agents.codex.silence: unknown key; known here: program, args, env, pass, preamble, notify, shared",
    );
    for (agent, more) in [("codex-exec", ", silence"), ("codex-proto", "")] {
        for key in ["shared", "lifetime"] {
            let text = format!("[agents.{agent}]\n\n{key} = 3");
            let expected = format!(
                "c.toml:3: agents.{agent}.{key}: unknown key; known here: program, args, env, pass, preamble, notify{more}"
            );
            refused(&text, &expected);
        }
    }
    refused(
        "[agents.codex]\nshared = 0",
        "c.toml:2: agents.codex.shared: must be a whole number from 1 on",
    );
    refused(
        "[agents.codex]\nshared = \"2\"",
        "c.toml:2: agents.codex.shared: must be a whole number from 1 on, is string",
    );
    refused(
        "[agents.codex]\nnotify = \"yes\"",
        "c.toml:2: agents.codex.notify: must be true or false, is string",
    );
    refused(
        "[agents.claude]\npreamble = 1",
        "c.toml:2: agents.claude.preamble: must be true or false, is integer",
    );
    refused(
        "[agents.codex-exec]\nsilence = 1.5",
        "c.toml:2: agents.codex-exec.silence: must be a whole number of seconds from 1 on, is float",
    );
    refused("defaults = 3", "c.toml:1: defaults: must be a table, is integer");
    refused("[defaults]\nmodel = 5", "c.toml:2: defaults.model: must be a string, is integer");
    refused(
        "[defaults]\nmode = \"sudo\"",
        "c.toml:2: defaults.mode: unknown mode \"sudo\"; the modes are default, plan, acceptEdits, auto, bypassPermissions, yolo",
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

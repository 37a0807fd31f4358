//! The table `[engine]`.

use super::refused;
use crate::config::engine::ModelConfig;
use crate::config::*;

#[test]
fn everything_about_the_engine_is_read() {
    let text = r#"
        [engine]
        model = "qwen3"
        provider = "local"
        effort = "high"
        personality = "friendly"
        compact_at = 100_000
        web_search = true
        freeform_patch = false
        shell = "/bin/sh"
        pass = ["GITHUB_TOKEN"]

        [engine.providers.local]
        base_url = "http://127.0.0.1:11434/v1"
        env_key = "LOCAL_KEY"
        key_file = "~/.key"
        query_params = { version = "1" }
        headers = { "X-A" = "a" }
        env_headers = { "X-B" = "B" }
        request_max_retries = 0
        stream_max_retries = 2
        stream_idle_timeout = 600
        stores_responses = true

        [engine.providers.openai]
        key_file = "/k"

        [engine.models.qwen3]
        context_window = 32_768
        thinks = true
        sees = false
        description = "small"

        [engine.mcp_servers.docs]
        command = "docs-server"
        args = ["--stdio"]
        env = { A = "1" }

        [engine.mcp_servers.web]
        url = "http://127.0.0.1:8080/mcp"
        headers = { Authorization = "Bearer x" }
    "#;
    let engine = parse("c.toml", text).unwrap().engine;
    let some = |word: &str| Some(word.to_owned());
    let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let local = ProviderConfig {
        base_url: some("http://127.0.0.1:11434/v1"),
        env_key: some("LOCAL_KEY"),
        key_file: some("~/.key"),
        query_params: one("version", "1"),
        headers: one("X-A", "a"),
        env_headers: one("X-B", "B"),
        request_max_retries: Some(0),
        stream_max_retries: Some(2),
        stream_idle_timeout: Some(Duration::from_secs(600)),
        stores_responses: Some(true),
    };
    let openai = ProviderConfig { key_file: some("/k"), ..ProviderConfig::default() };
    let qwen = ModelConfig {
        context_window: Some(32_768),
        thinks: Some(true),
        sees: Some(false),
        description: some("small"),
    };
    let docs = ServerConfig {
        command: some("docs-server"),
        args: vec!["--stdio".to_owned()],
        env: one("A", "1"),
        ..ServerConfig::default()
    };
    let web = ServerConfig {
        url: some("http://127.0.0.1:8080/mcp"),
        headers: one("Authorization", "Bearer x"),
        ..ServerConfig::default()
    };
    let expected = EngineConfig {
        model: some("qwen3"),
        provider: some("local"),
        effort: some("high"),
        personality: some("friendly"),
        compact_at: Some(100_000),
        web_search: Some(true),
        freeform_patch: Some(false),
        shell: some("/bin/sh"),
        pass: Some(vec!["GITHUB_TOKEN".to_owned()]),
        providers: BTreeMap::from([("local".to_owned(), local), ("openai".to_owned(), openai)]),
        models: BTreeMap::from([("qwen3".to_owned(), qwen)]),
        mcp_servers: BTreeMap::from([("docs".to_owned(), docs), ("web".to_owned(), web)]),
    };
    assert!(engine == expected, "{engine:#?}");
}

#[test]
fn unknown_keys_and_tables_that_miss_something_are_told_with_their_line() {
    refused(
        "[engine]\nmodle = \"x\"",
        "c.toml:2: engine.modle: unknown key; known here: model, provider, effort, personality, compact_at, web_search, freeform_patch, shell, pass, providers, models, mcp_servers",
    );
    refused(
        "\n[engine.providers.local]\nbase_url = \"http://x/v1\"\nurl = \"y\"",
        "c.toml:4: engine.providers.local.url: unknown key; known here: base_url, env_key, key_file, query_params, headers, env_headers, request_max_retries, stream_max_retries, stream_idle_timeout, stores_responses",
    );
    refused(
        "[engine.models.m]\nwindow = 3",
        "c.toml:2: engine.models.m.window: unknown key; known here: context_window, thinks, sees, description",
    );
    refused(
        "[engine.mcp_servers.s]\ncommand = \"x\"\ntimeout = 3",
        "c.toml:3: engine.mcp_servers.s.timeout: unknown key; known here: command, args, env, url, headers",
    );
    refused(
        "\n\n[engine.providers.local]\nenv_key = \"K\"",
        "c.toml:3: engine.providers.local: needs base_url, such as \"http://127.0.0.1:11434/v1\"",
    );
    refused(
        "[engine]\nmodel = \"m\"\nprovider = \"local\"",
        "c.toml:3: engine.provider: there is no table [engine.providers.local]",
    );
    for lines in ["args = []", "command = \"x\"\nurl = \"http://y\""] {
        let text = format!("\n[engine.mcp_servers.s]\n{lines}");
        refused(&text, "c.toml:2: engine.mcp_servers.s: needs either command or url");
    }
}

#[test]
fn wrong_types_are_told_with_their_line() {
    refused(
        "[engine]\npersonality = \"rude\"",
        "c.toml:2: engine.personality: \"rude\" is none of friendly, pragmatic, none",
    );
    refused("engine = 1", "c.toml:1: engine: must be a table, is integer");
    let typed = |line: &str, expected: &str| {
        refused(&format!("[engine]\n\n{line}"), &format!("c.toml:3: engine.{expected}"));
    };
    for key in ["model", "provider", "effort", "personality", "shell"] {
        typed(&format!("{key} = 1"), &format!("{key}: must be a string, is integer"));
    }
    for key in ["web_search", "freeform_patch"] {
        typed(&format!("{key} = 1"), &format!("{key}: must be true or false, is integer"));
    }
    for key in ["providers", "models", "mcp_servers"] {
        typed(&format!("{key} = []"), &format!("{key}: must be a table, is array"));
        typed(&format!("{key}.x = 1"), &format!("{key}.x: must be a table, is integer"));
    }
    typed("compact_at = 0", "compact_at: must be a whole number from 1 on");
    typed("pass = \"A\"", "pass: must be an array of strings, is string");
    let provider = |line: &str, expected: &str| {
        let table = "[engine.providers.p]\nbase_url = \"http://x\"";
        let expected = format!("c.toml:3: engine.providers.p.{expected}");
        refused(&format!("{table}\n{line}"), &expected);
    };
    for key in ["env_key", "key_file"] {
        provider(&format!("{key} = 1"), &format!("{key}: must be a string, is integer"));
    }
    for key in ["query_params", "headers", "env_headers"] {
        provider(&format!("{key} = 1"), &format!("{key}: must be a table, is integer"));
        provider(&format!("{key}.a = 1"), &format!("{key}.a: must be a string, is integer"));
    }
    for key in ["request_max_retries", "stream_max_retries"] {
        provider(&format!("{key} = -1"), &format!("{key}: must be a whole number from 0 on"));
    }
    provider(
        "stream_idle_timeout = 0",
        "stream_idle_timeout: must be a whole number of seconds from 1 on",
    );
    provider("stores_responses = 1", "stores_responses: must be true or false, is integer");
    refused(
        "[engine.models.m]\ncontext_window = \"big\"",
        "c.toml:2: engine.models.m.context_window: must be a whole number from 1 on, is string",
    );
    refused(
        "[engine.models.m]\nsees = \"no\"",
        "c.toml:2: engine.models.m.sees: must be true or false, is string",
    );
}

#[test]
fn secrets_of_the_engine_are_not_shown_in_debug_output() {
    let text = "[engine.providers.p]\nbase_url = \"http://hunter2@x\"\nheaders.A = \"hunter2\"\n\
                [engine.mcp_servers.s]\ncommand = \"x\"\nenv.A = \"hunter2\"";
    let config = parse("c.toml", text).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn the_engine_s_own_model_goes_before_the_default_one() {
    let text = "[defaults]\nmodel = \"opus\"\n[engine]\nmodel = \"qwen3\"";
    let config = parse("c.toml", text).unwrap();
    assert_eq!(config.model_of("engine").as_deref(), Some("qwen3"));
    assert_eq!(config.model_of("claude").as_deref(), Some("opus"));
    let config = parse("c.toml", "[defaults]\nmodel = \"opus\"").unwrap();
    assert_eq!(config.model_of("engine").as_deref(), Some("opus"));
}

/// Each can be written into the file as it stands.
#[test]
fn the_examples_in_the_documents_are_understood() {
    for (name, text) in [
        ("docs/configure.md", include_str!("../../../../../docs/configure.md")),
        ("docs/engine.md", include_str!("../../../../../docs/engine.md")),
    ] {
        let mut n_examples = 0;
        for example in text.split("```toml\n").skip(1) {
            let example = example.split("```").next().unwrap();
            // The rules for commands are a file of their own.
            if example.contains("[[rule]]") {
                continue;
            }
            parse(name, example).unwrap_or_else(|err| panic!("{}\n{example}", err.message()));
            n_examples += 1;
        }
        assert!(n_examples > 0, "{name} has no example");
    }
}

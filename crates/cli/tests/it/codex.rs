use std::fs;

use serde_json::{Value, json};

use crate::tieline::{Tieline, modes};

const AGENTS: [&str; 3] = ["codex", "codex-exec", "codex-proto"];

fn version(number: &str) -> String {
    format!("[ \"$1\" = --version ] && echo 'codex-cli {number}'")
}

/// What doctor says about an agent.
fn checked(tieline: &Tieline, code: i32, name: &str) -> Value {
    let report = tieline.run(&["doctor", "--json"]).ends_with(code);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|it| it["name"] == name).unwrap_or(&Value::Null).clone()
}

#[test]
fn auto_takes_claude_then_codex_then_the_demo() {
    let tieline = Tieline::new();
    let told = |tieline: &Tieline| tieline.run(&["run", "--timeout", "5", "hi"]).err;
    let err = told(&tieline);
    let built_in = "agent demo (built in; Claude Code is not installed";
    assert!(err.contains(built_in) && err.contains("Codex is not installed"), "{err}");
    let codex = tieline.program(".local/bin/codex", &version("0.1.0"));
    let err = told(&tieline);
    assert!(err.contains(&format!("agent codex (found {codex})")), "{err}");
    let claude = tieline.program(".local/bin/claude", "exit 3");
    let err = told(&tieline);
    assert!(err.contains(&format!("agent claude (found {claude})")), "{err}");
}

#[test]
fn a_program_is_found_where_the_user_or_an_installer_put_it() {
    let tieline = Tieline::new();
    let program = |tieline: &Tieline, agent: &str| checked(tieline, 0, agent)["program"].clone();
    let all_are = |tieline: &Tieline, expected: &str| {
        for agent in AGENTS {
            assert_eq!(program(tieline, agent), expected);
        }
    };
    for agent in AGENTS {
        let check = checked(&tieline, 0, agent);
        assert_eq!(check["state"], "missing");
        assert!(check["advice"].as_str().unwrap().contains("npm install -g @openai/codex"));
    }
    // Each place goes before those above it.
    let npm = tieline.program(".npm-global/bin/codex", &version("0.166.0"));
    all_are(&tieline, &npm);
    let local = tieline.program(".local/bin/codex", &version("0.166.0"));
    all_are(&tieline, &local);
    let configured = tieline.program("configured", &version("0.166.0"));
    let tieline = tieline.with_config("[agents.codex]\nprogram = \"~/configured\"\n");
    all_are(&tieline, &configured);
    let tieline = tieline.with_codex(&version("0.166.0"));
    let named = tieline.path("codex-script");
    all_are(&tieline, named.to_str().unwrap());
    // The other wires may have programs of their own.
    let exec = tieline.program("exec", &version("0.100.0"));
    let proto = tieline.program("old/codex", &version("0.42.0"));
    let text =
        "[agents.codex-exec]\nprogram = \"~/exec\"\n[agents.codex-proto]\nprogram = \"~/x\"\n";
    let tieline = tieline.with_config(text).with("TIELINE_CODEX_PROTO", &proto);
    assert_eq!(program(&tieline, "codex"), named.to_str().unwrap());
    assert_eq!(program(&tieline, "codex-exec"), exec.as_str());
    assert_eq!(program(&tieline, "codex-proto"), proto.as_str());
    assert_eq!(checked(&tieline, 0, "codex-proto")["version"], "0.42.0");
}

#[test]
fn doctor_says_which_wires_a_version_speaks() {
    for (number, states) in [
        ("0.166.0", ["good", "good", "missing"]),
        ("0.63.0", ["good", "good", "missing"]),
        ("0.50.0", ["bad", "good", "missing"]),
        ("0.43.0", ["bad", "good", "missing"]),
        ("0.42.0", ["bad", "good", "good"]),
    ] {
        let tieline = Tieline::new().with_codex(&version(number));
        let code = i32::from(states.contains(&"bad"));
        for (agent, state) in AGENTS.into_iter().zip(states) {
            let check = checked(&tieline, code, agent);
            assert_eq!(check["state"], state, "{number}: {check}");
            assert_eq!(check["version"], number);
            assert_eq!(check["advice"].is_string(), state != "good", "{check}");
        }
        let text = tieline.run(&["doctor"]).ends_with(code).out;
        assert!(text.contains(&format!("codex-exec: {number} at ")), "{text}");
    }
}

#[test]
fn doctor_says_what_is_wrong_with_a_program_that_tells_no_version() {
    let tieline = Tieline::new().with_codex("echo broken >&2; exit 1");
    for agent in AGENTS {
        let check = checked(&tieline, 1, agent);
        assert_eq!(check["state"], "bad");
        assert!(check["detail"].as_str().unwrap().contains("broken"), "{check}");
        assert!(check["advice"].as_str().unwrap().contains("npm install"), "{check}");
    }
}

#[test]
fn a_version_is_asked_once() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
    let note = "case \"$1\" in --version) echo >> \"$HOME/asked\";; esac";
    let tieline = tieline.with_codex(&format!("{note}; {}", version("0.166.0")));
    for _ in 0..2 {
        tieline.run(&["run", "--agent", "codex", "hi"]);
    }
    assert_eq!(fs::read_to_string(tieline.path("asked")).unwrap(), "\n");
    for (path, mode) in modes(&tieline.store()) {
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    let report = tieline.run(&["doctor"]).succeeds().out;
    assert!(!report.contains("repaired"), "{report}");
}

#[test]
fn doctor_finds_a_login_without_reading_it() {
    let with_codex = || Tieline::new().with_codex(&version("0.166.0"));
    let login = |tieline: &Tieline| {
        let check = checked(tieline, 0, "codex login");
        (check["state"].as_str().unwrap().to_owned(), check["detail"].as_str().unwrap().to_owned())
    };
    let none = checked(&with_codex(), 0, "codex login");
    assert_eq!(none["state"], "missing");
    assert!(none["advice"].as_str().unwrap().contains("codex login"), "{none}");
    for key in ["OPENAI_API_KEY", "CODEX_API_KEY"] {
        let tieline = with_codex().with(key, "hunter2");
        let (state, detail) = login(&tieline);
        assert_eq!(state, "missing");
        assert!(detail.contains(&format!("{key} is set")), "{detail}");
        assert!(!tieline.run(&["doctor", "--json"]).out.contains("hunter2"));
    }
    let tieline = with_codex();
    let file = tieline.path(".codex/auth.json");
    fs::create_dir(tieline.path(".codex")).unwrap();
    // It is there, and nobody can read it.
    fs::create_dir(&file).unwrap();
    assert_eq!(login(&tieline), ("good".to_owned(), format!("{} is there", file.display())));
    let elsewhere = tieline.path("elsewhere").to_str().unwrap().to_owned();
    let tieline = tieline.with("CODEX_HOME", &elsewhere);
    assert_eq!(login(&tieline).0, "missing");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(tieline.path("elsewhere/auth.json"), "{}").unwrap();
    assert_eq!(login(&tieline).0, "good");
}

#[test]
fn variables_reach_codex_and_secrets_of_others_do_not() {
    let tieline = Tieline::new()
        .with_config("[agents.codex]\nenv = { GIVEN = \"1\" }\npass = [\"PASSED_TOKEN\"]\n")
        .with_codex(&format!("env > \"$HOME/env\"; {}", version("0.166.0")))
        .with("PASSED_TOKEN", "2")
        .with("OTHER_TOKEN", "3")
        .with("OPENAI_API_KEY", "4")
        .with("ANTHROPIC_API_KEY", "5")
        .with("TIELINE_NOTIFY_SOCKET", "6");
    tieline.run(&["doctor"]).succeeds();
    let env = fs::read_to_string(tieline.path("env")).unwrap();
    for there in ["GIVEN=1", "PASSED_TOKEN=2", "OPENAI_API_KEY=4"] {
        assert!(env.lines().any(|line| line == there), "{there} in {env}");
    }
    for gone in ["OTHER_TOKEN", "ANTHROPIC_API_KEY", "TIELINE_NOTIFY_SOCKET"] {
        assert!(!env.contains(gone), "{gone} in {env}");
    }
}

#[test]
fn a_pair_that_is_no_mode_is_kept_as_a_policy_until_a_mode_is_named() {
    // Nothing that can be started: what is asked for is kept all the same.
    let tieline = Tieline::new().with_codex("exit 7");
    let run = |flags: &[&str]| {
        let args = [&["run", "--agent", "codex", "-c", "k"], flags, &["hi"]].concat();
        let outcome = tieline.run(&args);
        assert!(!outcome.err.contains("usage") && outcome.code != 2, "{outcome:?}");
        let row = tieline.rows()[0].clone();
        (row["mode"].as_str().unwrap().to_owned(), row["policy"].clone())
    };
    let policy = |ask: &str, reach: &str| json!({"ask": ask, "reach": reach});
    let expected = policy("untrusted", "workspace-write");
    assert_eq!(run(&["-a", "untrusted", "-s", "workspace-write"]).1, expected);
    assert_eq!(run(&[]).1, expected, "it stays");
    assert_eq!(run(&["-s", "read-only"]).1, policy("untrusted", "read-only"));
    assert_eq!(run(&["-a", "on-request"]), ("default".to_owned(), Value::Null));
    assert_eq!(run(&["--full-auto"]), ("acceptEdits".to_owned(), Value::Null));
    assert_eq!(run(&["-a", "on-failure"]).1, policy("on-failure", "workspace-write"));
    assert_eq!(run(&["--mode", "plan"]), ("plan".to_owned(), Value::Null));
    let outcome = tieline.run(&["run", "-c", "k", "-a", "never", "hi"]).ends_with(2);
    assert!(outcome.err.contains("the mode is plan"), "{}", outcome.err);
    let outcome =
        tieline.run(&["run", "-c", "k", "--mode", "yolo", "-a", "never", "-s", "read-only", "hi"]);
    assert!(outcome.ends_with(2).err.contains("leave one of the two out"));
}

/// A Codex of this version that notes how it was called and what it was told, and then does this.
fn with_exec(number: &str, then: &str) -> Tieline {
    let script = format!(
        "[ \"$1\" = --version ] && echo 'codex-cli {number}' && exit 0\n\
         echo \"$@\" >> \"$HOME/args\"; cat >> \"$HOME/told\"\n{then}"
    );
    Tieline::new().with_codex(&script)
}

fn recording(name: &str) -> String {
    format!("{}/../agent/fixtures/codex_exec/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn play(name: &str) -> String {
    format!("cat '{}'", recording(name))
}

#[test]
fn what_the_tables_say_reaches_the_program() {
    let tieline = with_exec("0.166.0", &play("0.166.0/hello.out.jsonl"))
        .with_config("[agents.codex]\nargs = [\"-p\", \"work\"]\npreamble = true\nnotify = true\n");
    tieline.run(&["run", "--agent", "codex-exec", "-c", "k", "hi"]).succeeds();
    tieline.run(&["run", "-c", "k", "again"]).succeeds();
    let args = fs::read_to_string(tieline.path("args")).unwrap();
    for line in args.lines() {
        assert!(line.contains("-p work "), "{line}");
        let ourselves = env!("CARGO_BIN_EXE_tieline");
        assert!(line.contains("notify=[") && line.contains(ourselves), "{line}");
        assert!(!line.contains("again") && !line.contains("hi "), "{line}");
    }
    assert_eq!(args.lines().count(), 2);
    let told = fs::read_to_string(tieline.path("told")).unwrap();
    let workspace = tieline.work().canonicalize().unwrap();
    assert_eq!(told.matches(&format!("Workspace: {}", workspace.display())).count(), 2, "{told}");

    let tieline = tieline.with_config("[agents.codex-exec]\npreamble = false\n");
    for file in ["args", "told"] {
        fs::remove_file(tieline.path(file)).unwrap();
    }
    tieline.run(&["run", "-c", "k", "third"]).succeeds();
    let args = fs::read_to_string(tieline.path("args")).unwrap();
    assert!(!args.contains("notify=") && !args.contains("-p work"), "{args}");
    assert!(fs::read_to_string(tieline.path("told")).unwrap().starts_with("third"));
}

#[test]
fn silence_ends_a_turn_where_the_configuration_says_so() {
    let script = format!("{}; sleep 1000", play("0.42.0/experimental-hello.out.jsonl"));
    let run = ["run", "--agent", "codex-exec", "-c", "k", "--timeout", "3", "hi"];
    let tieline = with_exec("0.42.0", &script);
    let outcome = tieline.run(&run).ends_with(1);
    assert!(outcome.err.contains("longer than 3 seconds"), "{}", outcome.err);
    let tieline = with_exec("0.42.0", &script).with_config("[agents.codex-exec]\nsilence = 1\n");
    let outcome = tieline.run(&run).succeeds();
    assert!(outcome.out.contains("Hello from the fake model."), "{}", outcome.out);
}

#[test]
fn a_trouble_with_the_setup_is_told_with_what_to_do() {
    let failed = |file: &str| format!("cat '{}'; exit 1", recording(file));
    let stderr = |text: &str| format!("echo '{text}' >&2; exit 1");
    for (agent, number, then, code, told) in [
        ("codex", "0.42.0", "exit 0".to_owned(), 3, ["0.63", "npm install -g @openai/codex"]),
        ("codex-proto", "0.166.0", "exit 0".to_owned(), 3, ["0.42", "--agent codex"]),
        (
            "codex-exec",
            "0.166.0",
            failed("0.166.0/http401.out.jsonl"),
            3,
            ["codex login", "OPENAI_API_KEY"],
        ),
        (
            "codex-exec",
            "0.166.0",
            stderr("Not inside a trusted directory and --skip-git-repo-check was not specified."),
            3,
            ["git init", "--skip-git-repo-check"],
        ),
        (
            "codex-exec",
            "0.166.0",
            stderr("Error: Missing environment variable: `SOME_KEY`."),
            3,
            ["SOME_KEY", "pass"],
        ),
        (
            "codex-exec",
            "0.166.0",
            "echo '{\"type\":\"thread.started\",\"thread_id\":\"s\"}'
             echo '{\"type\":\"turn.started\"}'
             echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"unexpected status 400 Bad \
             Request: The model `moon` does not exist\"}}'; exit 1"
                .to_owned(),
            1,
            ["--model", "moon"],
        ),
        (
            "codex-exec",
            "0.166.0",
            stderr("error: unexpected argument --json found"),
            3,
            ["npm install -g @openai/codex@latest", "tieline doctor"],
        ),
    ] {
        let outcome = with_exec(number, &then).run(&["run", "--agent", agent, "hi"]);
        for word in told {
            assert!(outcome.err.contains(word), "{agent}: {word:?} in {}", outcome.err);
        }
        outcome.ends_with(code);
    }
}

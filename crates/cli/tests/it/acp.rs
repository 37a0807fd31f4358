//! Agents of the Agent Client Protocol, by name, by table and by command line.

use serde_json::Value;
use tieline_testkit::real;

use crate::tieline::Tieline;

/// A user, and a program that speaks the protocol and says this.
fn with_agent(script: &str) -> (Tieline, String) {
    let tieline = Tieline::new();
    let fake = real::fake_agent_program();
    let script = format!("export FAKE_AGENT_SCRIPT='{script}'\nexec {} acp", fake.display());
    let program = tieline.program("bin/speaker", &script);
    (tieline, program)
}

#[test]
fn a_whole_command_line_is_an_agent() {
    let (tieline, program) = with_agent("say Hello by line.");
    let name = format!("acp:{program} --flag 'two words'");
    let run = ["run", "--agent", &name, "--conversation", "c", "--format", "final", "hi"];
    assert_eq!(tieline.run(&run).succeeds().out, "Hello by line.\n");
    let rows = tieline.rows();
    assert_eq!(rows[0]["agent"], name, "the conversation keeps it");
    let spawned = tieline.events("c").into_iter().find(|it| it["kind"] == "process.spawned");
    assert_eq!(spawned.unwrap()["data"]["args"], serde_json::json!(["--flag", "two words"]));
    // And goes on with it.
    let run = ["run", "--conversation", "c", "--format", "final", "again"];
    assert_eq!(tieline.run(&run).succeeds().out, "Hello by line.\n");
    let listed = tieline.run(&["list", "--agent", &name, "--json"]).succeeds().out;
    assert!(listed.contains("\"c\""), "{listed}");
}

#[test]
fn a_table_makes_a_name() {
    let (tieline, program) = with_agent("say Hello by table.");
    for key in ["[agents.acp.mine]", "[agents.\"acp:mine\"]"] {
        let text = format!("{key}\nprogram = {program:?}\nargs = [\"a\"]\nenv = {{ X = \"1\" }}\n");
        let dir = tieline.path(".config/tieline");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
        let run = ["run", "--agent", "acp:mine", "--format", "final", "hi"];
        assert_eq!(tieline.run(&run).succeeds().out, "Hello by table.\n", "{key}");
        let report = tieline.run(&["doctor", "--json"]).succeeds().out;
        let report: Value = serde_json::from_str(&report).unwrap();
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|it| it["name"] == "acp:mine").unwrap();
        assert_eq!(check["program"], program);
    }
}

#[test]
fn a_known_agent_is_found_by_its_name_and_told_how_to_speak() {
    let (tieline, program) = with_agent("say Hello, I am Gemini.");
    let line = format!("printf '%s ' \"$@\" > {}\nexec {program}", tieline.path("argv").display());
    tieline.program(".local/bin/gemini", &line);
    let run = ["run", "--agent", "acp:gemini", "--format", "final", "hi"];
    assert_eq!(tieline.run(&run).succeeds().out, "Hello, I am Gemini.\n");
    assert_eq!(std::fs::read_to_string(tieline.path("argv")).unwrap(), "--acp ");
    let report = tieline.run(&["doctor"]).succeeds().out;
    assert!(report.contains("acp:gemini: "), "{report}");
    let missing = tieline.run(&["run", "--agent", "acp:goose", "hi"]);
    assert!(missing.code != 0 && missing.err.contains("goose is not installed"), "{missing:?}");
}

#[test]
fn what_is_no_agent_is_refused_before_anything_is_written() {
    let tieline = Tieline::new();
    for (name, told) in [
        ("acp:", "a name or a command line"),
        ("acp:'open", "a name or a command line"),
        ("acp:no-such-program-anywhere", "known after acp: are gemini"),
        ("acp:./here", "not an absolute path"),
    ] {
        let refused = tieline.run(&["run", "--agent", name, "hi"]);
        assert!(refused.code != 0 && refused.err.contains(told), "{name}: {refused:?}");
    }
    assert_eq!(tieline.rows().as_array().unwrap().len(), 0);
}

#[test]
fn a_program_of_the_workspace_is_never_the_agent() {
    let tieline = Tieline::new();
    let program = tieline.program("work/speaker", "exit 0");
    let name = format!("acp:{program}");
    let refused = tieline.run(&["run", "--agent", &name, "hi"]);
    assert!(refused.code != 0 && refused.err.contains("workspace"), "{refused:?}");
}

//! Where the agents of tests are looked for, and what they get to see.

use std::path::Path;

use tieline_testkit::agents::{self, ACP, CLAUDE, PROJECTS};
use tieline_testkit::real::{AgentEnv, CodexConfig, fake_agent_program};

#[test]
fn the_lock_files_pin_everything_and_name_no_host() {
    assert_eq!(CLAUDE.pinned(), ["claude"]);
    assert!(ACP.pinned().contains(&"acpx".to_owned()));
    for project in PROJECTS {
        assert!(!project.lock.contains("://registry") && !project.lock.contains("\"resolved\""));
        assert!(project.install.contains(&"--ignore-scripts"));
    }
}

#[test]
fn an_unknown_agent_is_an_error_that_tells_what_to_do() {
    let error = agents::program("nobody").unwrap_err();
    assert!(error.contains("cargo xtask agents") && error.contains("TIELINE_TEST_NOBODY"));
}

#[test]
fn the_fake_agent_is_found_beside_the_tests() {
    assert!(fake_agent_program().ends_with("fake-agent"));
}

#[test]
fn a_real_agent_sees_a_fresh_home_and_nothing_of_ours() {
    let env = AgentEnv::claude("http://127.0.0.1:1");
    let vars = env.vars();
    assert!(vars.contains(&("HOME".to_owned(), env.home().display().to_string())));
    assert!(vars.contains(&("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:1".to_owned())));
    assert!(!vars.iter().any(|(name, _)| name.starts_with("CARGO")));
    assert!(env.workspace().join("README.md").is_file());
    let root = env.root().to_owned();
    drop(env);
    assert!(!root.exists());
}

#[test]
fn codex_reads_where_its_model_is_from_its_home() {
    let mcp = Some(Path::new("/bin/true"));
    let config = CodexConfig { model: "m", features: &["f"], settings: &["s = 1"], mcp };
    let env = AgentEnv::codex("http://127.0.0.1:1", config);
    let config = std::fs::read_to_string(env.home().join(".codex/config.toml")).unwrap();
    // Top-level settings stand before the first table.
    assert!(config.starts_with("model = \"m\"\nmodel_provider = \"fake\"\ns = 1\n["), "{config}");
    assert!(config.contains("base_url = \"http://127.0.0.1:1/v1\"\n"));
    assert!(config.contains("apps = false\nf = true\n"));
    assert!(config.ends_with("[mcp_servers.fake]\ncommand = \"/bin/true\"\n"));
}

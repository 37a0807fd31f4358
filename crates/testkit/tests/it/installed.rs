//! Where the agents of tests are looked for, and what they get to see.

use tieline_testkit::agents;
use tieline_testkit::real::{ClaudeEnv, fake_agent_program};

#[test]
fn the_lock_file_pins_each_agent_and_names_no_host() {
    assert!(agents::pinned().contains(&"claude".to_owned()));
    assert!(!agents::LOCK.contains("://registry") && !agents::LOCK.contains("\"resolved\""));
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
    let env = ClaudeEnv::new("http://127.0.0.1:1");
    let vars = env.vars();
    assert!(vars.contains(&("HOME".to_owned(), env.home().display().to_string())));
    assert!(vars.contains(&("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:1".to_owned())));
    assert!(!vars.iter().any(|(name, _)| name.starts_with("CARGO")));
    assert!(env.workspace().join("README.md").is_file());
    let root = env.root().to_owned();
    drop(env);
    assert!(!root.exists());
}

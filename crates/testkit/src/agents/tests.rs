use super::*;

fn names(tests: &[&str]) -> Vec<String> {
    needed(tests.iter().copied()).into_iter().flat_map(Project::pinned).collect()
}

#[test]
fn a_scene_needs_its_own_agent_alone() {
    assert_eq!(names(&["real::steers::claude"]), ["claude"]);
    assert_eq!(names(&["real::steers::codex", "real::steers::codex_exec"]), ["codex"]);
    assert_eq!(names(&["real::steers::codex_proto"]), ["codex-proto"]);
    assert!(names(&["real::steers::acp_claude"]).contains(&"acpx".to_owned()));
    assert!(!names(&["real::steers::acp_claude"]).contains(&"codex".to_owned()));
}

#[test]
fn a_test_of_another_name_needs_everything() {
    assert_eq!(needed(["real::acpx::prompts"]).len(), PROJECTS.len());
    assert_eq!(needed(["real::steers::claude", "real::acpx::prompts"]).len(), PROJECTS.len());
}

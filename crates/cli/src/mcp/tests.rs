use super::*;

#[track_caller]
fn check(task: &str, expected: &str) {
    let id = made_up(task, 0);
    assert_eq!(id, expected);
    id.parse::<TaskId>().unwrap();
}

#[test]
fn an_id_is_made_of_the_first_words() {
    check("Fix the login form, please!", "fix-the-login-form-aaaa");
    check("../../etc/passwd", "etc-passwd-aaaa");
    check("日本語", "task-aaaa");
    check("", "task-aaaa");
    check(&"x".repeat(200), "task-aaaa");
}

#[test]
fn nobody_delegates_to_itself_by_default() {
    assert_eq!(another(Some("claude-code")), Some(Cli::Codex));
    assert_eq!(another(Some("codex-mcp-client")), Some(Cli::Claude));
    assert_eq!(another(Some("Zed")), None);
    assert_eq!(another(None), None);
}

use super::*;

#[test]
fn a_message_that_calls_a_prompt_becomes_its_text() {
    let config = tempfile::tempdir().unwrap();
    let dir = config.path().join("prompts");
    std::fs::create_dir(&dir).unwrap();
    let text = "---\ndescription: Fix it\nargument-hint: FILE=path\n---\nFix $FILE, $1: $$5\n";
    std::fs::write(dir.join("fix.md"), text).unwrap();
    let prompts = read_all(config.path());
    let says = |message: &str| expand(&prompts, message);
    assert_eq!(says("/prompts:fix FILE='a b' \n"), Some(Ok("Fix a b, FILE=a b: $5\n".to_owned())));
    assert_eq!(
        says("/prompts:fix"),
        Some(Err("/prompts:fix needs FILE=value after it".to_owned()))
    );
    assert_eq!(says("/prompts:other"), None);
    assert_eq!(says("/fix"), None);
    assert_eq!(says("prompts:fix"), None);
    let listed = listed(&prompts);
    assert_eq!(listed[0].name, "fix");
    assert_eq!(listed[0].path, dir.join("fix.md").display().to_string());
    assert_eq!(listed[0].content, "Fix $FILE, $1: $$5\n");
    assert_eq!(listed[0].description.as_deref(), Some("Fix it"));
    assert_eq!(listed[0].argument_hint.as_deref(), Some("FILE=path"));
    assert_eq!(read_all(&config.path().join("nowhere")), []);
}

use super::*;

const FULL: &str = r#"{"findings":[{"title":"[P1] Close it","body":"It leaks.\n\nAlways.","confidence_score":0.9,"priority":1,"code_location":{"absolute_file_path":"/p/a.rs","line_range":{"start":10,"end":12}}},{"title":"Name it","body":"","confidence_score":0.5,"priority":3,"code_location":{"absolute_file_path":"/p/b.rs","line_range":{"start":4,"end":4}}}],"overall_correctness":"patch is incorrect","overall_explanation":"It leaks.","overall_confidence_score":0.8}"#;

#[test]
fn a_review_is_read_from_json() {
    for message in [
        FULL.to_owned(),
        format!("  {FULL}\n"),
        format!("Here it is:\n```json\n{FULL}\n```\nDone."),
    ] {
        let output = parse(&message);
        assert_eq!(output.findings.len(), 2, "{message}");
        assert_eq!(serde_json::to_string(&output).unwrap(), FULL);
    }
}

#[test]
fn what_is_missing_does_not_cost_the_rest() {
    let output = parse(r#"{"findings":[{"title":"a","priority":null,"more":1},{}]}"#);
    assert_eq!(output.findings.len(), 2);
    assert_eq!(&*output.findings[0].title, "a");
    assert_eq!(output.findings[0].priority, 2);
    let output = parse(r#"{"overall_explanation":"fine","findings":null}"#);
    assert_eq!(&*output.overall_explanation, "fine");
}

#[test]
fn anything_else_is_plain_words() {
    for message in ["Looks good.", "", "a { b } c", "{}", r#"{"x":1}"#, "} {", "[1]", "null", "{"] {
        let output = parse(message);
        assert!(output.findings.is_empty());
        assert_eq!(&*output.overall_explanation, message, "{message}");
    }
}

#[test]
fn findings_are_written_for_people() {
    assert_eq!(
        render(&parse(FULL)),
        "It leaks.\n\nFull review comments:\n\n- [P1] Close it — /p/a.rs:10-12\n  It leaks.\n  \n  \
         Always.\n\n- [P3] Name it — /p/b.rs:4-4\n"
    );
    let one = parse(r#"{"findings":[{"title":"[P0] x","body":"y"}]}"#);
    assert_eq!(render(&one), "Review comment:\n\n- [P0] x\n  y\n");
    let no_lines = r#"{"findings":[{"title":"x","code_location":{"path":"/a"}}]}"#;
    assert_eq!(render(&parse(no_lines)), "Review comment:\n\n- [P2] x — /a\n");
    assert_eq!(render(&parse("Looks good.")), "Looks good.");
    assert_eq!(render(&parse("")), "The review said nothing.");
}

#[test]
fn each_target_has_its_words() {
    let branch = ReviewTarget::Branch { branch: "main".to_owned() };
    assert!(prompt(&branch, Some("abc")).contains("`git diff abc`"));
    assert!(prompt(&branch, None).contains("git merge-base"));
    let title = Some("Fix".to_owned());
    let commit = ReviewTarget::Commit { sha: "0123456789".to_owned(), title };
    assert!(prompt(&commit, None).contains("commit 0123456789 (\"Fix\")"));
    assert_eq!(hint(&commit), "commit 0123456: Fix");
    assert!(prompt(&ReviewTarget::Uncommitted, None).contains("untracked"));
    let custom = ReviewTarget::Custom { instructions: " look \n".to_owned() };
    assert_eq!(prompt(&custom, None), "look");
    let action = user_action(&branch, Some("- x"));
    assert!(action.starts_with("<user_action>\n") && action.ends_with("- x\n</user_action>"));
    assert!(user_action(&branch, None).contains("stopped"));
}

#[test]
fn targets_are_read_and_written() {
    for json in [
        r#"{"type":"uncommittedChanges"}"#,
        r#"{"branch":"main","type":"baseBranch"}"#,
        r#"{"sha":"abc","title":null,"type":"commit"}"#,
        r#"{"instructions":"look","type":"custom"}"#,
    ] {
        let target = read_target(json).unwrap();
        let again: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(write_target(&target), again);
    }
    assert!(read_target(r#"{"type":"custom","instructions":" "}"#).unwrap_err().contains("needs"));
    assert!(read_target(r#"{"type":"other"}"#).is_err());
    assert!(read_target("x").is_err());
}

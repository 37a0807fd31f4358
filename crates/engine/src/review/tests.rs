use super::*;

const FOUND: &str = r#"{"findings":[{"title":"[P1] off by one","body":"The last line is lost.\nAlways.",
"confidence_score":0.9,"priority":1,"code_location":{"absolute_file_path":"/w/a.rs","line_range":{"start":3,"end":4}}}],
"overall_correctness":"patch is incorrect","overall_explanation":"One fault.","overall_confidence_score":0.8}"#;

#[test]
fn findings_are_found_wherever_they_stand() {
    for answer in [FOUND.to_owned(), format!("Here:\n```json\n{FOUND}\n```\nThat is all.")] {
        let review = parse(&answer);
        assert_eq!(review.findings.len(), 1, "{answer}");
        assert_eq!(review.findings[0].code_location.line_range, LineRange { start: 3, end: 4 });
        let text = render(&review);
        assert!(text.starts_with("One fault.\n\nReview comment:\n\n- [P1] off by one — /w/a.rs:3-4"), "{text}");
        assert!(text.ends_with("  The last line is lost.\n  Always."), "{text}");
    }
}

#[test]
fn words_are_kept_as_words() {
    for answer in ["It is fine.", "{ not json }", "a } b { c"] {
        let review = parse(answer);
        assert!(review.findings.is_empty());
        assert_eq!(render(&review), answer);
    }
    assert_eq!(render(&parse("")), "The reviewer gave no answer.");
}

#[test]
fn a_target_has_a_prompt_and_a_hint() {
    let targets = [
        ReviewTarget::Uncommitted,
        ReviewTarget::Branch { branch: "main".into() },
        ReviewTarget::Commit { sha: "0123456789".into(), title: Some("a fix".into()) },
        ReviewTarget::Custom { instructions: "look at x\nclosely".into() },
    ];
    let hints: Vec<String> = targets.iter().map(hint).collect();
    assert_eq!(hints, ["current changes", "changes against main", "commit 0123456: a fix", "look at x"]);
    assert!(targets.iter().all(|target| !prompt(target).is_empty()));
}

use super::*;

fn ask(text: &str) -> Result<Order, Failure> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("fix.md"), "Fix $1 for $WHO.").unwrap();
    order(&Prompt::text(text), &SavedPrompt::read_all(directory.path()))
}

fn said(text: &str) -> String {
    match ask(text).unwrap() {
        Order::SayInstead(prompt) => prompt.content[0].as_text().unwrap().preview().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_command_is_what_it_says() {
    assert_eq!(ask("/compact").unwrap(), Order::Compact);
    let review = |text: &str| match ask(text).unwrap() {
        Order::Review(target) => target,
        other => panic!("{other:?}"),
    };
    assert_eq!(review("/review")["type"], "uncommittedChanges");
    assert_eq!(review("/review the tests")["instructions"], "the tests");
    assert_eq!(review("/review-branch main"), json!({"type": "baseBranch", "branch": "main"}));
    assert_eq!(review("/review-commit abc"), json!({"type": "commit", "sha": "abc"}));
    let plan = Prompt::text("the way");
    assert_eq!(ask("/plan the way").unwrap(), Order::Plan(plan));
    for (text, errand) in [
        ("/rename My work", Errand::Rename("My work".to_owned())),
        ("/goal", Errand::Goal),
        ("/goal clear", Errand::ClearGoal),
        ("/goal clear the road", Errand::SetGoal("clear the road".to_owned())),
        ("/mcp", Errand::Servers),
        ("/skills", Errand::Skills),
        ("/fast on", Errand::Fast(true)),
        ("/fast off", Errand::Fast(false)),
    ] {
        assert_eq!(ask(text).unwrap(), Order::Run(errand), "{text}");
    }
    assert!(said("/init").contains("AGENTS.md"));
    assert!(said("/init in German").ends_with("in German"));
    assert_eq!(said("/prompts:fix it WHO=me"), "Fix it for me.");
}

#[test]
fn what_is_no_command_is_said() {
    for text in ["hello", "/unknown x", "/prompts:unknown", "/etc/passwd is a file", "/"] {
        assert_eq!(ask(text).unwrap(), Order::Say, "{text}");
    }
}

#[test]
fn a_command_that_lacks_something_says_what() {
    assert_eq!(ask("/review-branch").unwrap_err().message, "/review-branch needs the base branch");
    assert_eq!(ask("/rename ").unwrap_err().message, "/rename needs the new name");
    assert_eq!(ask("/fast maybe").unwrap_err().message, "/fast needs on or off");
    assert_eq!(ask("/plan").unwrap_err().message, "/plan needs what to plan");
    assert_eq!(ask("/prompts:fix it").unwrap_err().message, "/prompts:fix needs WHO=value");
}

use super::*;

#[test]
fn each_answer_is_told_in_words() {
    let report = |errand: Errand, answer: Value| errand.report(&answer.to_string()).unwrap();
    let server = |name: &str, state: Value, tools: Value, error: Value| {
        json!({
            "name": name, "runtimeStatus": state, "tools": tools, "toolsError": error,
            "authStatus": "unsupported", "resources": [], "resourceTemplates": [],
        })
    };
    let tools = json!({"echo": {"name": "echo"}, "sum": {"name": "sum"}});
    let servers = json!({"nextCursor": null, "data": [
        server("fake", json!("connected"), tools, Value::Null),
        server("bad", json!("authenticationRequired"), json!({}), json!("no\nway")),
        server("old", Value::Null, Value::Null, Value::Null),
    ]});
    assert_eq!(
        report(Errand::Servers, servers),
        "- fake: connected; tools: echo, sum\n- bad: authentication required; no\n- old: no tools"
    );
    assert_eq!(report(Errand::Servers, json!({"data": []})), "There are no MCP servers.");
    let skills = json!({"data": [{"cwd": "/w", "skills": [
        {"name": "b", "path": "/b/SKILL.md", "description": "Does b\nand more", "enabled": true},
        {"name": "a", "path": "/a/SKILL.md", "description": "Does a", "enabled": false},
    ]}]});
    assert_eq!(
        report(Errand::Skills, skills),
        "- $a (switched off): Does a (/a/SKILL.md)\n- $b: Does b (/b/SKILL.md)"
    );
    let goal = json!({"goal": {
        "objective": "be green", "status": "usageLimited", "tokensUsed": 7, "timeUsedSeconds": 2,
    }});
    let told = report(Errand::Goal, goal);
    assert!(told.starts_with("The goal is usage limited: be green\n"), "{told}");
    assert_eq!(report(Errand::Goal, json!({"goal": null})), "There is no goal.");
    assert_eq!(report(Errand::ClearGoal, json!({"cleared": false})), "There was no goal.");
    Errand::ClearGoal.report("[]").unwrap_err();
}

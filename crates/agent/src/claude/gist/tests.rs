use serde_json::json;

use super::*;

fn gist(name: &str, input: &Value) -> Option<Gist> {
    of(name, Some(&serde_json::value::to_raw_value(input).unwrap()))
}

fn title(name: &str, input: Value) -> Option<String> {
    gist(name, &input).and_then(|gist| gist.title)
}

#[test]
fn a_file_that_is_read_is_a_place_with_its_line() {
    let gist = gist("Read", &json!({"file_path": "/a/b.rs", "offset": 10, "limit": 5})).unwrap();
    assert_eq!(gist.kind, ToolKind::Read);
    assert_eq!(gist.title.as_deref(), Some("Read /a/b.rs (10 - 14)"));
    assert_eq!(gist.places, [Place { path: "/a/b.rs".to_owned(), line: Some(10) }]);
    assert_eq!(title("Read", json!({"file_path": "/a"})).unwrap(), "Read /a");
    assert_eq!(
        title("Read", json!({"file_path": "/a", "offset": "7"})).unwrap(),
        "Read /a (from line 7)"
    );
    let most = json!({"file_path": "/a", "offset": u64::MAX, "limit": u64::MAX});
    assert!(title("Read", most).is_some());
}

#[test]
fn a_search_is_titled_as_one_would_type_it() {
    let input = json!({"pattern": "a b", "path": "src", "-i": true, "-n": true, "-C": 2,
        "glob": "*.rs", "output_mode": "count"});
    assert_eq!(title("Grep", input).unwrap(), "grep -i -n -C 2 -c --include=\"*.rs\" \"a b\" src");
    assert_eq!(title("Glob", json!({"pattern": "**/*.rs"})).unwrap(), "Find **/*.rs");
    assert_eq!(title("LS", json!({"path": "/x"})).unwrap(), "List /x");
}

#[test]
fn a_name_that_only_sounds_alike_says_nothing() {
    for name in ["ReadFile", "read", "mcp__fake__Read", "Thread", "BogusTool", "Bash"] {
        assert_eq!(gist(name, &json!({"file_path": "/a"})), None, "{name}");
    }
}

#[test]
fn before_its_input_is_there_a_call_has_its_kind() {
    assert_eq!(of("Read", None), Some(Gist::of(ToolKind::Read)));
    assert_eq!(of("TodoWrite", None), Some(Gist::of(ToolKind::Plan)));
    assert_eq!(gist("Read", &json!([1])), Some(Gist::of(ToolKind::Read)));
}

#[test]
fn an_agent_is_called_by_what_it_is_to_do() {
    let gist = gist("Agent", &json!({"description": "Look around", "prompt": "…"})).unwrap();
    assert_eq!((gist.kind, gist.title.as_deref()), (ToolKind::Think, Some("Look around")));
    let asked = json!({"questions": [{"question": "Which?"}]});
    assert_eq!(title("AskUserQuestion", asked).unwrap(), "Which?");
}

use crate::tieline::Tieline;

#[test]
fn the_demo_plays_in_a_pipe() {
    let tieline = Tieline::new();
    let outcome = tieline.run(&["demo"]).succeeds();
    assert!(outcome.out.contains("demo agent"), "{}", outcome.out);
    assert!(outcome.err.contains("$ uname"), "{}", outcome.err);
    assert!(outcome.err.contains("→ allowed by policy"), "{}", outcome.err);
    assert!(outcome.err.contains("hello.md +"), "{}", outcome.err);
    assert!(outcome.err.contains(tieline.store().to_str().unwrap()), "{}", outcome.err);
    for text in [&outcome.out, &outcome.err] {
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
    }
    let rows: serde_json::Value =
        serde_json::from_str(&tieline.run(&["list", "--json"]).succeeds().out).unwrap();
    let (key, workspace) = (&rows[0]["key"], &rows[0]["workspace"]);
    assert!(outcome.err.contains(&format!("show {}", key.as_str().unwrap())), "{}", outcome.err);
    let file = std::path::Path::new(workspace.as_str().unwrap()).join("hello.md");
    assert!(std::fs::read_to_string(file).unwrap().contains("status: finished"));
}

#[test]
fn the_demo_plays_as_json_lines() {
    let lines = Tieline::new().run(&["demo", "--format", "jsonl"]).succeeds().lines();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    for kind in [
        "conversation.opened",
        "turn.started",
        "delta",
        "item.started",
        "item.completed",
        "plan.updated",
        "request.opened",
        "request.resolved",
        "turn.completed",
        "process.exited",
        "conversation.closed",
    ] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let seqs: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no gap and no duplicate");
    let text = |item: &str| -> String {
        lines
            .iter()
            .filter(|line| {
                line["kind"] == "delta" && line["item"] == item && line["stream"] == "text"
            })
            .map(|line| line["text"].as_str().unwrap())
            .collect()
    };
    let message = lines
        .iter()
        .find(|line| line["kind"] == "item.completed" && line["data"]["type"] == "agent_message")
        .unwrap();
    assert_eq!(text(message["data"]["id"].as_str().unwrap()), message["data"]["text"]);
}

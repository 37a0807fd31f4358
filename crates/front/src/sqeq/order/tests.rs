use super::*;

fn read(op: &str) -> Order {
    let line = format!("{{\"id\":\"1\",\"op\":{op}}}");
    Incoming::of_line(line.as_bytes()).unwrap().order
}

#[test]
fn what_a_turn_leaves_out_stays_as_it_is() {
    let items = r#""items":[{"type":"text","text":"hi"}]"#;
    let Order::Say(say) = read(&format!(r#"{{"type":"user_turn",{items}}}"#)) else { panic!() };
    assert_eq!(say.context, Context::default());
    let whole = format!(
        r#"{{"type":"user_turn",{items},"cwd":"/w","approval_policy":"never","model":"m",
            "sandbox_policy":{{"mode":"workspace-write","network_access":true,"writable_roots":["/r"]}},
            "effort":"high","summary":"none","personality":"friendly","response_id":"r",
            "collaboration_mode":{{"mode":"plan"}},"final_output_json_schema":{{"type":"object"}}}}"#
    );
    let Order::Say(say) = read(&whole) else { panic!() };
    let expected = Context {
        cwd: Some("/w".into()),
        ask: Some(AskWhen::Never),
        sandbox: Some(Sandbox {
            reach: Reach::WorkspaceWrite,
            network: true,
            roots: vec!["/r".into()],
        }),
        model: Some("m".into()),
        effort: Some("high".into()),
        summary: Some("none".into()),
        personality: Some("friendly".into()),
        plan: Some(true),
    };
    assert_eq!(say.context, expected);
    assert_eq!(say.after.as_deref(), Some("r"));
    assert_eq!(say.schema.unwrap().as_str(), r#"{"type":"object"}"#);
}

#[test]
fn pieces_of_a_message_are_read() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("a.jpg");
    std::fs::write(&file, b"abc").unwrap();
    let op = format!(
        r#"{{"type":"user_input","items":[{{"type":"image","image_url":"data:image/gif;base64,AA=="}},
            {{"type":"image","image_url":"https://x/y.webp"}},{{"type":"local_image","path":{file:?}}},
            {{"type":"skill","name":"s","path":"/s"}},{{"type":"mention","name":"m","path":"app://m"}}]}}"#
    );
    let Order::Say(say) = read(&op) else { panic!() };
    let mimes: Vec<&str> = say
        .content
        .iter()
        .filter_map(|piece| match piece {
            Content::Image { mime, .. } => Some(mime.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(mimes, ["image/gif", "image/webp", "image/jpeg"]);
    assert!(matches!(&say.content[3], Content::Skill { name, path: Some(_) } if name == "s"));
    assert!(matches!(&say.content[4], Content::Mention { path, .. } if path == "app://m"));
    for bad in [
        r#"{"type":"user_input","items":[]}"#,
        r#"{"type":"user_input","items":[{"type":"smell"}]}"#,
        r#"{"type":"user_input","items":[{"type":"local_image","path":"/no/such"}]}"#,
        r#"{"type":"user_input","items":[{"type":"image","image_url":"data:x"}]}"#,
    ] {
        assert!(matches!(read(bad), Order::Nothing(_)), "{bad}");
    }
}

#[test]
fn reviews_have_two_forms() {
    let review =
        |request: &str| read(&format!(r#"{{"type":"review","review_request":{request}}}"#));
    for (request, expected) in [
        (r#"{"target":{"type":"uncommittedChanges"}}"#, ReviewTarget::Uncommitted),
        (
            r#"{"target":{"type":"baseBranch","branch":"main"}}"#,
            ReviewTarget::Branch { branch: "main".into() },
        ),
        (
            r#"{"prompt":"look","user_facing_hint":"h"}"#,
            ReviewTarget::Custom { instructions: "look".into() },
        ),
    ] {
        let Order::Work(Work::Review { target, .. }) = review(request) else { panic!("{request}") };
        assert_eq!(target, expected);
    }
    assert!(matches!(review("{}"), Order::Nothing(_)));
}

use super::*;

fn call(id: &str) -> Item {
    serde_json::from_value(serde_json::json!({
        "type": "function_call", "call_id": id, "name": "shell", "arguments": "{}",
    }))
    .unwrap()
}

fn output(id: &str) -> Item {
    Item::function_output(id, Output::Text("done".into()))
}

fn texts(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.get().to_owned()).collect()
}

#[test]
fn every_call_has_an_output_and_every_output_a_call() {
    let items = [call("a"), output("lost"), call("b"), output("b"), Item::message("user", "hi")];
    let sent = for_request(&items, true);
    assert_eq!(sent.len(), 5, "{:?}", texts(&sent));
    assert!(sent[1].get().contains("aborted") && sent[1].get().contains("\"a\""));
    assert_eq!(sent[3], output("b"));
    // What is whole is sent as it is.
    assert_eq!(for_request(&sent, true), sent);
}

#[test]
fn a_model_without_eyes_gets_words() {
    let picture = Item::of(&ItemView::Message(tieline_wire::responses::Message {
        role: "user".into(),
        content: vec![Part::InputImage(tieline_wire::responses::ImageUrl {
            image_url: "data:image/png;base64,AAAA".into(),
            detail: None,
        })],
        ..Default::default()
    }));
    let items = [picture];
    assert_eq!(for_request(&items, true), items);
    let sent = for_request(&items, false);
    assert!(sent[0].get().contains("cannot see") && !sent[0].get().contains("AAAA"));
}

#[test]
fn a_summary_leaves_what_the_user_said_last() {
    let long = "x".repeat(KEPT * 4);
    let items = [
        Item::message("user", "the first"),
        Item::message("user", "<environment_context>\n</environment_context>"),
        Item::message("user", &long),
        Item::message("assistant", "an answer"),
        Item::message("user", "the last"),
    ];
    let short = compacted(&items, "SUMMARY", "it all");
    assert_eq!(short.len(), 3, "{:?}", short.len());
    assert!(short[0].get().contains("truncated") && short[0].get().len() < long.len());
    assert!(short[1].get().contains("the last"));
    assert!(short[2].get().contains("SUMMARY\\nit all"));
    // Once more: the old summary goes, the words stay.
    let again = compacted(&short, "SUMMARY", "still all");
    assert_eq!(again.len(), 3);
    assert!(again[2].get().contains("still all"));
}

#[test]
fn the_oldest_goes_with_its_output() {
    let mut items = vec![call("a"), output("a"), Item::message("user", "hi")];
    drop_oldest(&mut items);
    assert_eq!(texts(&items), texts(&[Item::message("user", "hi")]));
}

use proptest::prelude::*;

use super::*;

fn item(json: &str) -> Item {
    serde_json::from_str(json).unwrap()
}

fn call(id: &str) -> Item {
    item(&format!(r#"{{"type":"function_call","call_id":"{id}","name":"n","arguments":"{{}}"}}"#))
}

fn output(id: &str, text: &str) -> Item {
    Item::function_output(id, Output::Text(Str::Borrowed(text)))
}

fn custom(id: &str) -> Item {
    item(&format!(r#"{{"type":"custom_tool_call","call_id":"{id}","name":"n","input":"x"}}"#))
}

fn custom_output(id: &str, text: &str) -> Item {
    Item::custom_output(id, Output::Text(Str::Borrowed(text)))
}

fn user(text: &str) -> Item {
    Item::message("user", text)
}

fn made_whole(items: &[Item]) -> Vec<Item> {
    normalised(items, Sight::Pictures)
}

#[test]
fn a_call_without_an_output_gets_one_right_behind_it() {
    let found = made_whole(&[call("a"), user("x"), custom("b")]);
    assert_eq!(
        found,
        [call("a"), output("a", "aborted"), user("x"), custom("b"), custom_output("b", "aborted")]
    );
    let shell = item(r#"{"type":"local_shell_call","call_id":"s","action":{"type":"exec"}}"#);
    assert_eq!(made_whole(std::slice::from_ref(&shell)), [shell, output("s", "aborted")]);
}

#[test]
fn an_output_without_its_call_is_dropped() {
    assert_eq!(made_whole(&[output("a", "1"), user("x")]), [user("x")]);
    // Before its call it is none of that call's.
    assert_eq!(made_whole(&[output("a", "1"), call("a")]), [call("a"), output("a", "aborted")]);
    // Of another sort neither.
    assert_eq!(
        made_whole(&[call("a"), custom_output("a", "1")]),
        [call("a"), output("a", "aborted")]
    );
    // And there is one for each.
    let twice = [call("a"), output("a", "1"), output("a", "2")];
    assert_eq!(made_whole(&twice), [call("a"), output("a", "1")]);
}

#[test]
fn what_is_whole_stays_to_the_byte() {
    let odd = r#"{ "type" : "reasoning","summary":[], "encrypted_content":"x","new":1e2 }"#;
    let unknown = r#"{"type":"brand_new","call_id":"a"}"#;
    let items =
        [item(odd), item(unknown), call("a"), call("b"), output("b", "2"), output("a", "1")];
    assert_eq!(made_whole(&items), items);
    assert_eq!(normalised(&items, Sight::TextOnly), items);
}

#[test]
fn a_model_that_sees_none_gets_no_picture() {
    let parts =
        r#"[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:x"}]"#;
    let items = [
        item(&format!(r#"{{"type":"message","role":"user","content":{parts}}}"#)),
        call("a"),
        item(&format!(r#"{{"type":"function_call_output","call_id":"a","output":{parts}}}"#)),
    ];
    assert_eq!(made_whole(&items), items);
    let found = normalised(&items, Sight::TextOnly);
    assert_eq!(found.len(), 3);
    for item in &found {
        assert!(!item.get().contains("data:x"), "{item:?}");
    }
    assert!(found[0].get().contains("see") && found[0].get().contains(NO_PICTURE));
    assert!(found[2].get().contains(NO_PICTURE));
}

#[test]
fn messages_made_for_the_model_are_not_the_users() {
    for text in [
        "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "<environment_context>\n</environment_context>",
        "<skill>\nx\n</skill>",
        "<turn_aborted>\nx\n</turn_aborted>",
        "<user_action>\nx\n</user_action>",
        &crate::persona::summary_message("x"),
    ] {
        assert_eq!(user_text(&user(text)), None, "{text}");
    }
    assert_eq!(user_text(&user("hi")).as_deref(), Some("hi"));
    assert_eq!(user_text(&Item::message("assistant", "hi")), None);
    assert_eq!(user_text(&call("a")), None);
}

#[test]
fn a_compaction_keeps_the_users_last_messages() {
    let beginning = [Item::message("developer", "rules"), user("<environment_context>x")];
    let items = [
        beginning[0].clone(),
        beginning[1].clone(),
        user("one"),
        Item::message("assistant", "sure"),
        call("a"),
        output("a", "1"),
        user(&crate::persona::summary_message("older")),
        user("two"),
    ];
    let found = compacted(&items, &beginning, " done \n");
    let note = user(&crate::persona::summary_message("done"));
    assert_eq!(found, [beginning[0].clone(), beginning[1].clone(), user("one"), user("two"), note]);
    assert!(compacted(&[], &[], "")[0].get().contains("no summary available"));
}

#[test]
fn the_oldest_message_loses_its_middle() {
    let long = "a".repeat(MOST_KEPT * 3);
    let longer = "b".repeat(MOST_KEPT * 3);
    let found = compacted(&[user("gone"), user(&longer), user(&long)], &[], "s");
    assert_eq!(found.len(), 3);
    let first = user_text(&found[0]).unwrap();
    assert!(first.starts_with("bbb") && first.ends_with("bbb"));
    assert!(first.contains("…10000 tokens truncated…"), "{}", first.len());
    assert_eq!(found[1], user(&long));
}

#[test]
fn an_output_goes_with_its_call() {
    let items = [call("a"), call("b"), output("b", ""), output("a", "")];
    assert_eq!(without_oldest(&items), [call("b"), output("b", "")]);
    assert_eq!(without_oldest(&[user("x"), call("b")]), [call("b")]);
    assert_eq!(without_oldest(&[]), []);
}

proptest! {
    #[test]
    fn calls_and_outputs_come_in_pairs(kinds in proptest::collection::vec((0u8..5, 0u8..3), 0..30)) {
        let items: Vec<Item> = kinds
            .iter()
            .map(|(kind, id)| match kind {
                0 => call(&id.to_string()),
                1 => output(&id.to_string(), "x"),
                2 => custom(&id.to_string()),
                3 => custom_output(&id.to_string(), "x"),
                _ => user("x"),
            })
            .collect();
        let whole = made_whole(&items);
        let mut open: HashSet<(Sort, String)> = HashSet::new();
        for item in &whole {
            match role(item) {
                Role::Call(sort, id) => prop_assert!(open.insert((sort, id)), "a call is open"),
                Role::Output(sort, id) => prop_assert!(open.remove(&(sort, id)), "no call is"),
                Role::Neither => {}
            }
        }
        prop_assert!(open.is_empty());
        prop_assert_eq!(made_whole(&whole), whole);
    }
}

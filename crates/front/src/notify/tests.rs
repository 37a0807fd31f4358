use super::*;

fn told(line: &str) -> Option<(Option<String>, String)> {
    notification(line.as_bytes()).unwrap().map(|it| (it.session, it.text))
}

#[test]
fn the_end_of_a_turn_is_what_counts() {
    let end = r#"{"type":"agent-turn-complete","thread-id":"s","turn-id":"1","cwd":"/w",
        "input-messages":["a"],"last-assistant-message":"Done.","more":[{}]}"#;
    assert_eq!(told(end), Some((Some("s".to_owned()), "Done.".to_owned())));
    let silent = r#"{"type":"agent-turn-complete","thread-id":"s","last-assistant-message":null}"#;
    assert_eq!(told(silent), Some((Some("s".to_owned()), String::new())));
}

#[test]
fn older_versions_name_no_session() {
    let end = r#"{"type":"agent-turn-complete","turn-id":"1","last-assistant-message":"Hi"}"#;
    assert_eq!(told(end), Some((None, "Hi".to_owned())));
}

#[test]
fn everything_else_means_nothing() {
    assert_eq!(told(r#"{"type":"approval-requested","thread-id":"s"}"#), None);
    assert_eq!(told("{}"), None);
    assert!(notification(b"[]").is_err() && notification(b"").is_err());
}

#[test]
fn a_notice_is_an_object_on_one_line() {
    for bad in ["", "7", "[]", "\"x\"", "null", "{", "{} {}"] {
        assert!(matches!(Notice::new(bad), Err(Error::NotAnObject(_))), "{bad}");
    }
    let notice = Notice::new(" {\"a\":\r\n \"b\\n\",\"n\": 1e2}\n").unwrap();
    assert_eq!(notice.as_line(), b"{\"a\":   \"b\\n\",\"n\": 1e2}\n");
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MOST));
    assert!(Notice::new(&long).is_err());
}

use expect_test::{Expect, expect};
use tieline_event::{Approval, QuestionOption};

use super::*;

fn approval(options: Vec<Choice>) -> Request {
    Request {
        id: "r1".into(),
        item: None,
        title: "Run touch x?".into(),
        reason: None,
        body: RequestBody::Approval(Approval {
            tool: "Bash".into(),
            command: Some("touch x".into()),
            path: None,
            changes: Vec::new(),
            input: Some(Json::from_text(r#"{"timeout":1e3,"command":"touch x"}"#.into()).unwrap()),
            suggestions: vec![],
        }),
        options,
    }
}

fn all_choices() -> Vec<Choice> {
    let choice = |label: &str, kind| Choice { id: label.into(), label: label.into(), kind };
    vec![
        choice("Yes", ChoiceKind::AllowOnce),
        choice("Yes, for this session", ChoiceKind::AllowSession),
        choice("Yes, always", ChoiceKind::AllowAlways),
        choice("No", ChoiceKind::Deny),
        choice("No, and stop", ChoiceKind::DenyAndStop),
    ]
}

fn questions() -> Request {
    let option = |label: &str| QuestionOption { label: label.into(), description: None };
    let question = |id: &str, multiple, free_text, secret| Question {
        id: id.into(),
        header: Some("Pick".into()),
        text: format!("Which {id}?"),
        options: if secret { vec![] } else { vec![option("Red"), option("Blue")] },
        multiple,
        free_text,
        secret,
    };
    Request {
        id: "r2".into(),
        item: None,
        title: "Two questions".into(),
        reason: None,
        body: RequestBody::Question {
            questions: vec![
                question("colour", false, false, false),
                question("colours", true, true, false),
                question("word", false, true, true),
            ],
        },
        options: vec![],
    }
}

/// The dialogue with these inputs: a single character is a key where a key is wanted.
#[track_caller]
fn check(request: Request, inputs: &[&str], expected: Expect) {
    let mut dialogue = Dialogue::new(request);
    let mut shown = String::new();
    let mut step = Step::Ask(dialogue.prompt());
    for input in inputs {
        let Step::Ask(prompt) = &step else { panic!("{input:?} after the end") };
        shown.push_str(&prompt.text);
        let secret = if prompt.input == Input::Secret { "***" } else { input };
        shown.push_str(&format!("{secret}\n"));
        step = match prompt.input {
            Input::Key => dialogue.key(input.chars().next().unwrap()),
            Input::Line | Input::Secret => dialogue.line(input),
        };
    }
    match step {
        Step::Ask(prompt) => shown.push_str(&prompt.text),
        Step::Done(answer) => shown.push_str(&serde_json::to_string(&answer).unwrap()),
    }
    expected.assert_eq(&shown);
}

#[test]
fn a_letter_or_a_number_answers() {
    check(
        approval(all_choices()),
        &["x", "s"],
        expect![[r#"
          1 y) Yes
          2 s) Yes, for this session
          3 a) Yes, always
          4 n) No
          5 q) No, and stop
            e) Yes, but edited
          your choice: x
          1 y) Yes
          2 s) Yes, for this session
          3 a) Yes, always
          4 n) No
          5 q) No, and stop
            e) Yes, but edited
          your choice: s
        {"answer":"allow","scope":"session"}"#]],
    );
    for (key, answer) in [
        ('y', meaning(ChoiceKind::AllowOnce)),
        ('3', meaning(ChoiceKind::AllowAlways)),
        ('n', meaning(ChoiceKind::Deny)),
        ('5', meaning(ChoiceKind::DenyAndStop)),
    ] {
        assert_eq!(Dialogue::new(approval(all_choices())).key(key), Step::Done(answer));
    }
}

#[test]
fn a_choice_that_is_not_offered_is_not_taken() {
    let mut dialogue = Dialogue::new(approval(vec![]));
    for key in ['a', 's', '4', '0'] {
        assert!(matches!(dialogue.key(key), Step::Ask(_)), "{key}");
    }
}

#[test]
fn an_edited_command_keeps_the_rest_of_the_input() {
    check(
        approval(vec![]),
        &["e", "touch 'y z'"],
        expect![[r#"
          1 y) Yes
          2 n) No
          3 q) No, and stop
            e) Yes, but edited
          your choice: e
          the command is:  touch x
          run instead (Enter keeps it): touch 'y z'
        {"answer":"allow","scope":"once","input":{"timeout":1e3,"command":"touch 'y z'"}}"#]],
    );
}

#[test]
fn input_that_is_not_json_is_asked_for_again() {
    let mut request = approval(vec![]);
    let RequestBody::Approval(approval) = &mut request.body else { panic!("an approval") };
    approval.command = None;
    check(
        request,
        &["e", "{oops", r#"{"b":2,"a":1}"#],
        expect![[r#"
          1 y) Yes
          2 n) No
          3 q) No, and stop
            e) Yes, but edited
          your choice: e
          the input is:  {"timeout":1e3,"command":"touch x"}
          use instead, as JSON (Enter keeps it): {oops
          this is not JSON: key must be a string at line 1 column 2
          the input is:  {"timeout":1e3,"command":"touch x"}
          use instead, as JSON (Enter keeps it): {"b":2,"a":1}
        {"answer":"allow","scope":"once","input":{"b":2,"a":1}}"#]],
    );
}

#[test]
fn questions_are_asked_in_turn() {
    check(
        questions(),
        &["", "green", "2", "1, 2", "hunter2"],
        expect![[r#"
          Pick: Which colour?
          1) Red
          2) Blue
          number: 
          an answer is needed; Ctrl-C stops the turn
          Pick: Which colour?
          1) Red
          2) Blue
          number: green
          that is none of the answers
          Pick: Which colour?
          1) Red
          2) Blue
          number: 2
          Pick: Which colours?
          1) Red
          2) Blue
          numbers, or your own words: 1, 2
          Pick: Which word?
          your answer: ***
        {"answer":"answers","answers":{"colour":["Blue"],"colours":["Red","Blue"],"word":["hunter2"]}}"#]],
    );
}

#[test]
fn own_words_and_labels_are_answers_where_they_may_be() {
    let question = |free_text| Question {
        id: "q".into(),
        header: None,
        text: "?".into(),
        options: vec![QuestionOption { label: "Red".into(), description: None }],
        multiple: false,
        free_text,
        secret: false,
    };
    assert_eq!(read_answer(&question(false), "red"), Ok(vec!["Red".to_owned()]));
    assert_eq!(read_answer(&question(true), "no, none"), Ok(vec!["no, none".to_owned()]));
    assert!(read_answer(&question(false), "9").is_err());
}

#[test]
fn a_file_to_be_written_is_shown_with_its_text() {
    let mut request = approval(vec![]);
    request.title = "Write /w/a.md".into();
    let RequestBody::Approval(approval) = &mut request.body else { panic!("an approval") };
    approval.command = None;
    approval.path = Some("/w/a.md".into());
    let text = "line\n".repeat(14);
    let input = serde_json::json!({"a": 1, "content": text, "path": "/w/a.md"});
    approval.input = Some(Json::from_value(&input).unwrap());
    let lines = describe(&request);
    assert_eq!(lines[..4], ["? Write /w/a.md", "  a: 1", "  content:", "    line"]);
    assert_eq!(lines[15..], ["    … 2 more lines"]);
}

#[test]
fn of_options_that_mean_the_same_the_one_that_was_chosen_is_told() {
    let choice = |id: &str, kind| Choice { id: id.into(), label: id.into(), kind };
    let options = vec![
        choice("once", ChoiceKind::AllowOnce),
        choice("file", ChoiceKind::AllowAlways),
        choice("all", ChoiceKind::AllowAlways),
    ];
    let answer = |key| match Dialogue::new(approval(options.clone())).key(key) {
        Step::Done(answer) => answer,
        Step::Ask(prompt) => panic!("{prompt:?}"),
    };
    assert_eq!(answer('1'), Answer::allow());
    assert_eq!(answer('2'), Answer::Choose { option: "file".into() });
    assert_eq!(answer('3'), Answer::Choose { option: "all".into() });
}

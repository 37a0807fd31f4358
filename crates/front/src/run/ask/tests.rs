use expect_test::{Expect, expect};
use tieline_event::{Approval, QuestionOption};

use super::*;
use crate::testing::tricks::{self, unwrapped};

fn approval(options: Vec<Choice>) -> Request {
    Request {
        id: "r1".into(),
        item: None,
        title: "Run touch x?".into(),
        reason: None,
        body: RequestBody::Approval(Approval {
            tool: "Bash".into(),
            command: Some("touch x".into()),
            input: Some(Json::from_text(r#"{"timeout":1e3,"command":"touch x"}"#.into()).unwrap()),
            ..Approval::default()
        }),
        options,
    }
}

fn dialogue(request: Request) -> Dialogue {
    let review = crate::review::review(&request, Some("/w"), &mut |_| None);
    Dialogue::new(request, &review, Screen { width: 80, height: Some(24) })
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
    let option =
        |label: &str| QuestionOption { label: label.into(), description: None, value: None };
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
    let mut dialogue = dialogue(request);
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
        assert_eq!(dialogue(approval(all_choices())).key(key), Step::Done(answer));
    }
}

#[test]
fn a_choice_that_is_not_offered_is_not_taken() {
    let mut dialogue = dialogue(approval(vec![]));
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
        options: vec![QuestionOption { label: "Red".into(), description: None, value: None }],
        multiple: false,
        free_text,
        secret: false,
    };
    assert_eq!(read_answer(&question(false), "red"), Ok(vec!["Red".to_owned()]));
    assert_eq!(read_answer(&question(true), "no, none"), Ok(vec!["no, none".to_owned()]));
    assert!(read_answer(&question(false), "9").is_err());
}

/// A command of so many lines, on a screen of 24 rows.
fn long(n_lines: usize) -> Dialogue {
    let mut request = approval(vec![]);
    let RequestBody::Approval(approval) = &mut request.body else { panic!("an approval") };
    let lines: Vec<String> = (1..=n_lines).map(|n| format!("touch {n}")).collect();
    (approval.command, approval.input) = (Some(lines.join("\n")), None);
    dialogue(request)
}

#[test]
fn what_has_no_room_is_said_and_a_yes_waits_until_it_was_shown() {
    let mut dialogue = long(200);
    let opening = dialogue.opening().join("\n");
    expect![[r#"
        ? Run touch x?
          $ touch 1
          > touch 2
          > touch 3
          > touch 4
          > touch 5
          > touch 6
          ⟨191 lines with 2387 bytes are NOT shown here; press v to see all of it⟩
          > touch 198
          > touch 199
          > touch 200
          runs as the agent's own rules allow; tieline does not hold it"#]]
    .assert_eq(&opening);
    for key in ['y', '1'] {
        let Step::Ask(prompt) = dialogue.key(key) else { panic!("{key} is no yes yet") };
        assert!(prompt.text.contains("press v first"), "{}", prompt.text);
        assert!(prompt.text.contains("v) Show all of it: 191 lines"), "{}", prompt.text);
    }
    let Step::Ask(prompt) = dialogue.key('v') else { panic!("v shows it") };
    for n in 1..=200 {
        assert!(prompt.text.contains(&format!(" touch {n}\n")), "line {n} is missing");
    }
    assert!(!prompt.text.contains("v)"), "{}", prompt.text);
    assert_eq!(dialogue.key('y'), Step::Done(Answer::allow()));
}

#[test]
fn a_no_needs_no_reading() {
    assert_eq!(long(200).key('n'), Step::Done(Answer::Deny { message: None, stop: false }));
    assert_eq!(long(8).key('y'), Step::Done(Answer::allow()));
}

#[test]
fn an_option_that_says_no_and_means_yes_says_so() {
    let choice = |label: &str, kind| Choice { id: label.into(), label: label.into(), kind };
    let options = vec![
        choice("No, thanks", ChoiceKind::AllowOnce),
        choice("Allow", ChoiceKind::AllowAlways),
        choice("Yes", ChoiceKind::Deny),
    ];
    check(
        Request { options, ..approval(vec![]) },
        &["3"],
        expect![[r#"
          1 y) No, thanks (that is: yes)
          2 a) Allow (that is: yes, always)
          3 n) Yes (that is: no)
            e) Yes, but edited
          your choice: 3
        {"answer":"deny","stop":false}"#]],
    );
}

#[test]
fn of_options_that_mean_the_same_the_one_that_was_chosen_is_told() {
    let choice = |id: &str, kind| Choice { id: id.into(), label: id.into(), kind };
    let options = vec![
        choice("once", ChoiceKind::AllowOnce),
        choice("file", ChoiceKind::AllowAlways),
        choice("all", ChoiceKind::AllowAlways),
    ];
    let answer = |key| match dialogue(approval(options.clone())).key(key) {
        Step::Done(answer) => answer,
        Step::Ask(prompt) => panic!("{prompt:?}"),
    };
    assert_eq!(answer('1'), Answer::allow());
    assert_eq!(answer('2'), Answer::Choose { option: "file".into() });
    assert_eq!(answer('3'), Answer::Choose { option: "all".into() });
}

#[test]
fn everything_of_every_trick_is_seen_before_the_answer() {
    for trick in tricks::all() {
        for (field, request) in tricks::requests(&trick.text) {
            for (width, height) in [(40, 24), (100, 50)] {
                let review = crate::review::review(&request, Some("/w"), &mut |_| None);
                let screen = Screen { width, height: Some(height) };
                let mut dialogue = Dialogue::new(request.clone(), &review, screen);
                let mut shown = dialogue.opening().join("\n");
                if dialogue.whole.is_some() {
                    let Step::Ask(prompt) = dialogue.key('y') else { panic!("{field}: too early") };
                    assert!(prompt.text.contains("press v first"), "{field}");
                    let Step::Ask(prompt) = dialogue.key('v') else {
                        panic!("{field}: v shows it")
                    };
                    shown = prompt.text;
                }
                shown.push('\n');
                shown.push_str(&dialogue.prompt().text);
                trick.is_seen_in(&unwrapped(&shown), field);
                for row in shown.lines() {
                    let n: usize = row.chars().map(visible::columns).sum();
                    assert!(n <= width, "{field}: {n} columns in {row:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_edited_is_shown_whole_and_visible() {
    let mut request = approval(vec![]);
    let RequestBody::Approval(approval) = &mut request.body else { panic!("an approval") };
    // JSON escapes control characters, but for those above the first 128.
    let hostile = serde_json::json!({"a": "x\u{9b}2J\u{202e}"}).to_string();
    approval.command = None;
    approval.input = Json::from_text(hostile).ok();
    let mut asked = dialogue(request);
    let Step::Ask(prompt) = asked.key('e') else { panic!("a line is asked for") };
    assert!(prompt.text.contains("{\"a\":\"x\\u{9b}2J\\u{202e}\"}"), "{}", prompt.text);
    assert!(!prompt.text.chars().any(|c| c != '\n' && visible::is_hidden(c)), "{}", prompt.text);
}

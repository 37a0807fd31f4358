use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::Value;
use tieline_event::{FileFate, RequestId, TaskStop};
use tieline_hub::{Entry, Shown};

use super::*;
use crate::task::core::Core;
use crate::task::state::{State, Waits};
use crate::testing::{event, tricks};

fn view(status: Status, is_alive: bool) -> View {
    let mut state = State::new("Do it".to_owned());
    state.status = status;
    View {
        id: "t".parse().unwrap(),
        agent: "demo".to_owned(),
        workspace: "/w".to_owned(),
        state,
        is_alive,
        last: Seq(0),
    }
}

fn asked(mut view: View, waits: bool) -> View {
    let waits =
        waits.then(|| Waits { request: RequestId::new("r"), question: None, options: Vec::new() });
    let option = TaskOption { number: 1, label: "red".to_owned(), description: None };
    view.state.questions.push(OpenQuestion {
        id: "q1".to_owned(),
        text: "Which?".to_owned(),
        options: vec![option],
        context: vec!["It matters.".to_owned()],
        native: waits.is_some(),
        waits,
        ..OpenQuestion::default()
    });
    view
}

#[test]
fn a_question_stops_only_those_who_wait_for_it() {
    let of = |view: &View| Standing::of(view, &[]);
    assert_eq!(of(&view(Status::Running, true)), Standing::Running);
    assert_eq!(of(&asked(view(Status::Running, true), false)), Standing::Running);
    assert_eq!(of(&asked(view(Status::Running, true), true)), Standing::Question);
    assert_eq!(of(&asked(view(Status::Question, true), false)), Standing::Question);
    assert_eq!(of(&asked(view(Status::Question, false), false)), Standing::Question);
    assert_eq!(of(&view(Status::Running, false)), Standing::CutOff);
    assert_eq!(of(&view(Status::Complete, false)), Standing::Complete);
}

#[test]
fn a_task_is_not_over_before_its_process_is_gone() {
    // A last note may still come, and the lease is still held.
    assert_eq!(Standing::of(&view(Status::Complete, true), &[]), Standing::Running);
}

#[test]
fn a_question_whose_answer_is_on_its_way_is_none() {
    let answered = ["q1".to_owned()];
    let alive = asked(view(Status::Question, true), false);
    assert_eq!(Standing::of(&alive, &answered), Standing::Running);
    let waiting = asked(view(Status::Running, true), true);
    assert_eq!(Standing::of(&waiting, &answered), Standing::Running);
}

#[track_caller]
fn check(view: &View, markers: &[TaskMarker], expected: Expect) {
    let mut digest = Digest { summary: "I did \u{1b}[31mit.".to_owned(), ..Digest::default() };
    markers.iter().for_each(|marker| digest.hear(marker));
    expected.assert_eq(&Report::new(view, &digest).text());
}

#[test]
fn a_reader_is_told_what_a_program_is() {
    let file = |path: &str, change, from: Option<&str>| TaskFile {
        path: path.to_owned(),
        change,
        from: from.map(str::to_owned),
    };
    check(
        &view(Status::Complete, false),
        &[
            TaskMarker::FilesModified {
                files: vec![
                    file("a.rs", FileFate::Created, None),
                    file("b.rs", FileFate::Renamed, Some("c.rs")),
                ],
                mismatches: vec!["d.rs was said to be modified and is not".to_owned()],
                partial: false,
            },
            TaskMarker::Verified {
                command: "make test".to_owned(),
                passed: true,
                exit_code: Some(0),
                output: String::new(),
            },
        ],
        expect![[r#"
            Task t: complete
            Agent: demo in /w
            Check: make test passed
            File: a.rs (created)
            File: b.rs (renamed from c.rs)
            Not so: d.rs was said to be modified and is not

            The agent's last message:
            I did it.

            It is done: review the files. For more by the same agent, which remembers all of this, call `delegate` with the id "t".
        "#]],
    );
    check(
        &asked(view(Status::Question, false), false),
        &[],
        expect![[r#"
            Task t: question
            Agent: demo in /w
            Question q1: Which?
              1: red
              context: It matters.

            The agent's last message:
            I did it.

            It waits for you. Call the tool `answer` with {"id": "t", "answers": [{"question": "…", "answer": "…"}]}; an answer is the number or the label of an option, or any text. Ask your user if you cannot decide.
        "#]],
    );
}

#[test]
fn why_a_task_stopped_is_told() {
    let reason = "the work did not pass 4 times".to_owned();
    let mut digest = Digest::default();
    digest.hear(&TaskMarker::Stopped { how: TaskStop::Failed, reason: reason.clone() });
    let view = view(Status::Failed, false);
    assert_eq!(Report::new(&view, &digest).reason, Some(reason.as_str()));
    assert_eq!(digest.progress, ["task failed: the work did not pass 4 times"]);
}

#[test]
fn what_blocks_a_task_comes_with_what_it_needs() {
    let mut digest = Digest::default();
    let context = vec!["A key for the service.".to_owned()];
    digest.hear(&TaskMarker::Blocked { reason: "no key".to_owned(), context });
    let mut view = view(Status::Blocked, false);
    view.state.blocked = Some("no key".to_owned());
    let report = Report::new(&view, &digest);
    assert_eq!(report.blocked, Some("no key\nA key for the service."));
    assert_eq!(report.reason, None);
}

#[test]
fn everything_of_every_trick_is_seen_in_the_questions_of_a_report() {
    for trick in tricks::all() {
        for (field, request) in tricks::requests(&trick.text) {
            let mut state = State::new("Do it".to_owned());
            let mut core = Core::new("/w");
            let event = event(0, Kind::RequestOpened(request));
            let json = event.to_json().unwrap().into();
            let entry = Entry::Event(Arc::new(Shown { event, json }));
            core.see(&entry, &mut state, &mut |_| None, &mut Vec::new());
            let view = View { state, ..view(Status::Question, true) };
            let digest = Digest::default();
            let report = Report::new(&view, &digest);
            // Lines of the context follow each other, behind a word each.
            let text = report.text().replace("\n  context: … ", "");
            trick.is_seen_in(&text, field);
            let value = serde_json::to_value(&report).unwrap();
            let mut texts = Vec::new();
            texts_of(&value["questions"], &mut texts);
            trick.is_seen_in(&texts.join("\n").replace("\n… ", ""), field);
        }
    }
}

/// Every text in a value, in order.
fn texts_of(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|it| texts_of(it, texts)),
        Value::Object(fields) => fields.values().for_each(|it| texts_of(it, texts)),
        _ => {}
    }
}

use std::sync::Arc;

use expect_test::{Expect, expect};
use tieline_event::{
    Approval, Choice, ChoiceKind, Expired, FileChange, Held, Json, PlanEntry, Question,
    QuestionOption, Resolved,
};
use tieline_hub::Shown;
use tieline_wire::markers;

use super::super::print::{Format, Tail, to_wire};
use super::super::state::TaskId;
use super::*;
use crate::run::page::Look;
use crate::testing::tricks::{self, unwrapped};
use crate::testing::{command, completed, delta, event, item, message};

/// A task and what was told of it.
struct Told {
    core: Core,
    state: State,
    out: Vec<Out>,
}

impl Told {
    fn new() -> Self {
        Self { core: Core::new("/project"), state: State::new("do it".to_owned()), out: Vec::new() }
    }

    fn entry(&mut self, entry: &Entry) {
        self.core.see(entry, &mut self.state, &mut |_| None, &mut self.out);
    }

    fn happens(&mut self, kind: Kind) -> &mut Self {
        let event = event(0, kind);
        let json = event.to_json().unwrap().into();
        self.entry(&Entry::Event(Arc::new(Shown { event, json })));
        self
    }

    fn says(&mut self, id: &str, text: &str) -> &mut Self {
        let open = Item { status: ItemStatus::InProgress, ..message(id, "") };
        self.happens(Kind::ItemStarted(open)).happens(Kind::ItemCompleted(message(id, text)))
    }

    fn streams(&mut self, id: &str, pieces: &[&str]) -> &mut Self {
        let open = Item { status: ItemStatus::InProgress, ..message(id, "") };
        self.happens(Kind::ItemStarted(open));
        let mut offset = 0;
        for piece in pieces {
            self.entry(&Entry::Delta(Arc::new(delta(id, offset, piece))));
            offset += piece.len() as u64;
        }
        self.happens(Kind::ItemCompleted(message(id, &pieces.concat())))
    }

    fn edits(&mut self, path: &str, kind: ChangeKind) -> &mut Self {
        let change = FileChange {
            path: path.into(),
            kind,
            moved_to: None,
            old_text: None,
            new_text: None,
            diff: None,
        };
        let body = ItemBody::FileChange { changes: vec![change] };
        self.happens(Kind::ItemCompleted(item(path, ItemStatus::Ok, body)))
    }

    fn runs(&mut self, line: &str, status: ItemStatus) -> &mut Self {
        self.happens(Kind::ItemStarted(command(line, ItemStatus::InProgress, line, "")));
        self.happens(Kind::ItemCompleted(command(line, status, line, "")))
    }

    /// What was told, as a program reads it.
    #[track_caller]
    fn told(&mut self, expected: Expect) -> &mut Self {
        let id: TaskId = "t".parse().unwrap();
        let mut writer = markers::Writer::default();
        let mut text = String::new();
        for out in std::mem::take(&mut self.out) {
            match out {
                Out::Line(line) => writer.text(&line, &mut text),
                Out::Marker(marker) => {
                    to_wire(&marker, Some(&id)).iter().for_each(|it| writer.marker(it, &mut text));
                }
            }
        }
        expected.assert_eq(&text);
        self
    }
}

fn asked(id: &str, body: RequestBody, options: &[(&str, ChoiceKind)]) -> Request {
    let choice = |(at, (label, kind)): (usize, &(&str, ChoiceKind))| Choice {
        id: format!("o{at}"),
        label: (*label).to_owned(),
        kind: *kind,
    };
    Request {
        id: id.into(),
        item: Some("ask".into()),
        title: "Run rm -rf build?".to_owned(),
        reason: Some("it is old".to_owned()),
        body,
        options: options.iter().enumerate().map(choice).collect(),
    }
}

fn approval() -> Request {
    let body = RequestBody::Approval(Approval {
        tool: "Bash".to_owned(),
        command: Some("rm -rf build".to_owned()),
        ..Approval::default()
    });
    asked("r1", body, &[("Yes", ChoiceKind::AllowOnce), ("No", ChoiceKind::Deny)])
}

fn questions() -> Request {
    let question = |id: &str, text: &str, labels: &[&str]| Question {
        id: id.to_owned(),
        header: None,
        text: text.to_owned(),
        options: labels
            .iter()
            .map(|label| QuestionOption {
                label: (*label).to_owned(),
                description: None,
                value: None,
            })
            .collect(),
        multiple: false,
        free_text: true,
        secret: false,
    };
    let questions = vec![
        question("colour", "Which colour?", &["red", "blue"]),
        question("size", "How big?", &[]),
    ];
    asked("r2", RequestBody::Question { questions }, &[])
}

#[test]
fn what_is_no_option_of_fixed_options_is_no_answer() {
    let mut request = questions();
    if let RequestBody::Question { questions } = &mut request.body {
        questions.iter_mut().for_each(|question| question.free_text = false);
    }
    let (mut core, mut state) = (Core::new("/project"), State::new(String::new()));
    let asking = Asking { task: "t", workspace: "/project" };
    asking.ask(&request, &mut state, &mut |_| None, &mut Vec::new());
    let mut answer =
        |id: &str, text: &str| core.answer(Some(id), text, &mut state, &mut Vec::new());
    let refused = answer("q1", "green").unwrap_err();
    assert_eq!(refused, "\"green\" is no answer to q1; it has: 1 red, 2 blue");
    assert_eq!(answer("q1", "Blue").unwrap(), None, "the other question is open");
    // One without options takes any text.
    let reply = answer("q2", "huge").unwrap().unwrap();
    let answers = BTreeMap::from([
        ("colour".to_owned(), vec!["blue".to_owned()]),
        ("size".to_owned(), vec!["huge".to_owned()]),
    ]);
    assert_eq!(reply.answer, Answer::Answers { answers });
}

#[test]
fn what_the_agent_speaks_of_itself_is_told_once() {
    let mut told = Told::new();
    told.edits("/project/src/a.rs", ChangeKind::Add)
        .says("m1", "[PROGRESS] Created src/a.rs with a parser");
    told.says("m2", "[PROGRESS] Now b.rs").edits("/project/src/b.rs", ChangeKind::Update);
    told.edits("/project/c.rs", ChangeKind::Delete).runs("cargo test", ItemStatus::Failed);
    told.happens(completed(""));
    told.told(expect![[r#"
        [PROGRESS] Created src/a.rs with a parser
        [PROGRESS] Now b.rs
        [PROGRESS] Deleted c.rs
        [PROGRESS] cargo test failed with exit code 3
    "#]]);
}

#[test]
fn steps_of_a_plan_and_commands_are_told_as_they_begin() {
    let mut told = Told::new();
    let plan = |at: usize| {
        let entry = |n: usize| PlanEntry {
            text: format!("part {n}"),
            status: if n == at { PlanStatus::InProgress } else { PlanStatus::Pending },
        };
        Kind::PlanUpdated(Plan { entries: (1..3).map(entry).collect(), explanation: None })
    };
    told.happens(plan(1)).happens(plan(1));
    // One that was announced is not known yet.
    told.happens(Kind::ItemStarted(command("c", ItemStatus::InProgress, "", "")));
    told.runs("ls", ItemStatus::Ok).happens(plan(2));
    told.happens(completed(""));
    told.told(expect![[r#"
        [PROGRESS] Step 1 of 2: part 1
        [PROGRESS] Running ls
        [PROGRESS] Step 2 of 2: part 2
    "#]]);
}

#[test]
fn a_marker_is_read_however_its_message_comes() {
    let text = "Before.\n[QUESTION] Which?\nOptions:\n1. a - b\n2. c\n\nIt matters.\n\nAfter.\n\
                [FILES_MODIFIED]\n- x (created)\n";
    let whole = {
        let mut told = Told::new();
        told.says("m", text).happens(completed(""));
        told.out
    };
    for size in [1, 2, 7, 1000] {
        let pieces: Vec<String> = text
            .as_bytes()
            .chunks(size)
            .map(|it| String::from_utf8(it.to_vec()).unwrap())
            .collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let mut told = Told::new();
        told.streams("m", &pieces).happens(completed(""));
        assert_eq!(told.out, whole, "in pieces of {size}");
        assert_eq!(told.state.claims, [("x".to_owned(), "created".to_owned())]);
    }
}

#[test]
fn the_end_of_a_message_is_the_end_of_its_line() {
    // The agent's messages follow each other without a line end between them.
    let mut told = Told::new();
    told.says("m1", "Working on it.").says("m2", "[PROGRESS] done").happens(completed(""));
    told.told(expect![[r#"
        Working on it.
        [PROGRESS] done
    "#]]);
}

#[test]
fn text_that_looks_like_a_marker_of_ours_is_escaped() {
    let mut told = Told::new();
    told.says("m", "```\n[CODEX_COMPLETE] Task completed in 1 iterations\n```\n  [BLOCKED] no\n");
    told.says("n", "[CODEX_COMPLETE] Task completed in 99 iterations").happens(completed(""));
    told.told(expect![[r#"
        ```
        \[CODEX_COMPLETE] Task completed in 1 iterations
        ```
          \[BLOCKED] no
    "#]]);
}

#[test]
fn markers_of_other_names_are_passed_on() {
    let mut told = Told::new();
    told.says("m", "[NEED_CONTEXT] type=web query=\"x\"\n[LINT_WARNINGS] one\ntwo\n\n[TEST_RESULTS] all passed\n");
    told.happens(completed(""));
    told.told(expect![[r#"
        [NEED_CONTEXT] type=web query="x"
        [LINT_WARNINGS] one
        two

        \[TEST_RESULTS] all passed
    "#]]);
}

#[test]
fn every_option_of_a_question_is_kept() {
    let mut told = Told::new();
    told.says("m", "[QUESTION] Which?\nOptions:\n1. a\n2. b\n3. c\n4. d - the fourth\n");
    let question = &told.state.questions[0];
    assert_eq!(question.options.len(), 4);
    assert_eq!(question.chosen("4").unwrap().label, "d");
    assert_eq!(question.chosen("4.").unwrap().label, "d");
    assert_eq!(question.chosen("D").unwrap().number, 4);
    assert_eq!(question.chosen("5"), None);
}

#[test]
fn an_approval_is_a_question_and_its_answer_an_option() {
    let mut told = Told::new();
    told.happens(Kind::RequestOpened(approval()));
    told.told(expect![[r#"
        [QUESTION] Run rm -rf build?
        Options:
        1. Yes
        2. No
        $ rm -rf build
        the agent says:
        | it is old
        runs as the agent's own rules allow; tieline does not hold it
        answer: tieline task answer t q1=…

    "#]]);
    let answer = told.core.answer(None, "2", &mut told.state, &mut told.out).unwrap();
    let answer = answer.unwrap();
    assert_eq!(answer.request.as_str(), "r1");
    assert_eq!(answer.answer, Answer::Choose { option: "o1".to_owned() });
    assert!(told.state.questions.is_empty() && told.state.given.is_empty());
    assert!(told.core.answer(None, "1", &mut told.state, &mut told.out).is_err());
}

#[test]
fn words_that_are_no_option_are_a_reason_to_do_something_else() {
    let mut told = Told::new();
    told.happens(Kind::RequestOpened(approval()));
    let answer = told.core.answer(Some("q1"), "use make clean", &mut told.state, &mut told.out);
    assert_eq!(answer.unwrap().unwrap().answer, Answer::deny("use make clean"));
}

#[test]
fn a_request_with_two_questions_waits_for_both_answers() {
    let mut told = Told::new();
    told.happens(Kind::RequestOpened(questions()));
    let Told { core, state, out, .. } = &mut told;
    assert_eq!(core.answer(Some("q2"), "huge", state, out), Ok(None));
    let Reply { request, answer } = core.answer(Some("q1"), "2", state, out).unwrap().unwrap();
    assert_eq!(request.as_str(), "r2");
    let Answer::Answers { answers } = answer else { panic!("{answer:?}") };
    let answers: Vec<_> = answers.iter().map(|(id, it)| (id.as_str(), it[0].as_str())).collect();
    assert_eq!(answers, [("colour", "blue"), ("size", "huge")]);
}

#[test]
fn an_answer_that_waits_for_another_is_not_lost_with_its_request() {
    let mut told = Told::new();
    told.happens(Kind::RequestOpened(questions()));
    assert_eq!(told.core.answer(Some("q2"), "huge", &mut told.state, &mut told.out), Ok(None));
    let expired = Expired { request: "r2".into(), reason: "the agent died".to_owned() };
    told.happens(Kind::RequestExpired(expired));
    assert_eq!(told.state.given[0].answer, "huge");
    assert_eq!(told.state.questions.len(), 1);
}

#[test]
fn a_question_stays_open_when_its_turn_was_stopped_and_goes_when_the_agent_did_without() {
    let expired = || Kind::RequestExpired(Expired { request: "r1".into(), reason: "over".into() });
    let Kind::TurnCompleted(end) = completed("") else { panic!("an end") };
    let interrupted = TurnCompleted { status: TurnStatus::Interrupted, ..end };
    let mut told = Told::new();
    told.happens(Kind::RequestOpened(approval())).happens(expired());
    told.happens(Kind::TurnCompleted(interrupted));
    assert_eq!(told.state.questions.len(), 1);
    // Nobody waits any more: the answer goes into the next message.
    let answer = told.core.answer(None, "1", &mut told.state, &mut told.out).unwrap();
    assert_eq!(answer, None);
    assert_eq!(told.state.given[0].answer, "Yes");

    let mut told = Told::new();
    told.happens(Kind::RequestOpened(approval())).happens(expired()).happens(completed(""));
    assert!(told.state.questions.is_empty());

    let mut told = Told::new();
    let answer = Answer::allow();
    let by = tieline_event::Origin::Human;
    let resolved = Resolved { request: "r1".into(), answer, option: None, by, policy: None };
    told.happens(Kind::RequestOpened(approval())).happens(Kind::RequestResolved(resolved));
    assert!(told.state.questions.is_empty());
}

#[test]
fn a_block_is_remembered_and_tokens_are_counted() {
    let mut told = Told::new();
    told.says("m", "[BLOCKED] No API key\nPut it into .env\n").happens(completed(""));
    assert_eq!(told.state.blocked.as_deref(), Some("No API key"));
    assert_eq!(told.state.tokens, 1234);
    told.told(expect![[r#"
        [BLOCKED] No API key
        Put it into .env

    "#]]);
}

#[test]
fn what_a_helper_of_the_agent_says_is_not_the_agents_word() {
    let mut told = Told::new();
    let mut event = event(0, Kind::ItemCompleted(message("m", "[BLOCKED] not me")));
    event.parent = Some("helper".into());
    let json = event.to_json().unwrap().into();
    told.entry(&Entry::Event(Arc::new(Shown { event, json })));
    told.happens(completed(""));
    assert_eq!(told.state.blocked, None);
    assert_eq!(told.out, []);
}

/// How a task tells of a request, in this form.
fn asked_in(format: Format, request: &Request) -> String {
    let mut told = Told::new();
    told.happens(Kind::RequestOpened(request.clone()));
    let mut tail = Tail::new(format, Look::plain(), &"t".parse().unwrap());
    for out in &told.out {
        match out {
            Out::Line(line) => tail.line(line),
            Out::Marker(marker) => tail.marker(marker),
        }
    }
    tail.take()
}

#[test]
fn everything_of_every_trick_is_seen_in_the_questions_of_a_task() {
    for trick in tricks::all() {
        for (field, request) in tricks::requests(&trick.text) {
            trick.is_seen_in(&unwrapped(&asked_in(Format::Text, &request)), field);
            let markers = asked_in(Format::Markers, &request).replace("\n… ", "");
            trick.is_seen_in(&markers, field);
        }
    }
}

#[test]
fn what_has_no_room_in_a_question_says_where_it_is() {
    let mut request = approval();
    if let RequestBody::Approval(approval) = &mut request.body {
        approval.command = Some("touch x\n".repeat(5000));
    }
    let text = asked_in(Format::Markers, &request);
    assert!(text.contains("are NOT shown here; tieline show demo shows all of it⟩"), "{text}");
    assert!(text.contains("runs as the agent's own rules allow"), "{text}");
}

#[test]
fn a_yes_that_was_kept_is_for_the_very_same_request_alone() {
    type Change = fn(&mut Approval);
    let changes: [(bool, Change); 5] = [
        (true, |_| {}),
        (false, |it| it.cwd = Some("/precious".to_owned())),
        (false, |it| it.bounds.held = Some(Held::Nothing)),
        (false, |it| it.command = Some("rm -rf  build".to_owned())),
        (false, |it| it.given = Json::from_text("{}".to_owned()).ok()),
    ];
    for (at, (is_same, change)) in changes.into_iter().enumerate() {
        let mut told = Told::new();
        told.happens(Kind::RequestOpened(approval()));
        told.state.nobody_waits();
        told.core.answer(Some("q1"), "1", &mut told.state, &mut told.out).unwrap();
        let mut again = Request { id: "r9".into(), item: None, ..approval() };
        if let RequestBody::Approval(approval) = &mut again.body {
            change(approval);
        }
        told.happens(Kind::RequestOpened(again));
        let kept = is_same.then(|| ("q2".to_owned(), "1".to_owned()));
        assert_eq!(told.state.take_kept(), kept, "change {at}");
    }
}

#[test]
fn an_escape_sequence_of_an_agent_reaches_no_terminal_in_any_form() {
    let mut told = Told::new();
    told.says("m", "a \u{1b}]52;c;AAAA\u{7} b\n\u{9b}2J\n[PROGRESS] x \u{1b}[2J y\n");
    told.says("n", "[NEED_CONTEXT] \u{1b}]0;x\n[BLOCKED] no \u{9d}key\nbecause \u{202e}x\n");
    told.edits("/project/a\u{1b}]0;x", ChangeKind::Add).happens(completed(""));
    for format in [Format::Markers, Format::Text] {
        let mut tail = Tail::new(format, Look::plain(), &"t".parse().unwrap());
        for out in &told.out {
            match out {
                Out::Line(line) => tail.line(line),
                Out::Marker(marker) => tail.marker(marker),
            }
        }
        let text = tail.take();
        let odd = text.chars().find(|c| crate::sanitize::is_forbidden(*c));
        assert_eq!(odd, None, "{text:?}");
    }
}

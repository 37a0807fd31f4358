use expect_test::{Expect, expect};
use tieline_event::{
    Answer, Approval, BlobRef, ChangeKind, Content, Failure, FailureCode, FileChange, Notice,
    PlanEntry, Request, RequestBody, Source,
};

use super::*;
use crate::run::page::Layout;
use crate::testing::{command, completed, delta, event, item, message, started};

enum Input {
    Event(Box<Event>),
    Delta(Delta),
    Tick(i64),
}

fn at(millis: i64, kind: Kind) -> Input {
    Input::Event(Box::new(event(millis, kind)))
}

fn below(parent: &str, kind: Kind) -> Input {
    let event = Event { parent: Some(parent.into()), ..event(0, kind) };
    Input::Event(Box::new(event))
}

fn grow(id: &str, offset: u64, text: &str) -> Input {
    Input::Delta(delta(id, offset, text))
}

fn terminal() -> Look {
    Look { layout: Layout::Together, voices: Voices::Agent, color: true, live: true, width: 60 }
}

/// What is shown, with escape characters spelled out.
fn shown(look: Look, inputs: &[Input]) -> String {
    let mut renderer = Renderer::new(look);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for input in inputs {
        match input {
            Input::Event(event) => renderer.event(event, &mut |_| Some(b"from the blob".to_vec())),
            Input::Delta(delta) => renderer.delta(delta),
            Input::Tick(millis) => renderer.tick(event(*millis, started()).ts),
        }
        renderer.take(&mut out, &mut err);
    }
    renderer.finish();
    renderer.take(&mut out, &mut err);
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes).unwrap().replace('\u{1b}', "␛").replace('\r', "␍")
    };
    let (out, err) = (text(out), text(err));
    match err.is_empty() {
        true => out,
        false => format!("{out}--- err\n{err}"),
    }
}

#[track_caller]
fn check(look: Look, inputs: &[Input], expected: Expect) {
    expected.assert_eq(&shown(look, inputs));
}

#[test]
fn text_is_shown_once_as_it_comes() {
    let inputs = [
        at(0, started()),
        grow("m1", 0, "\n\nHel"),
        grow("m1", 5, "lo "),
        grow("m1", 5, "lo world"),
        at(
            1,
            Kind::ItemUpdated(Item {
                status: ItemStatus::InProgress,
                ..message("m1", "\n\nHello world, ")
            }),
        ),
        grow("m1", 30, "a gap is not shown"),
        at(2, Kind::ItemCompleted(message("m1", "\n\nHello world, all is well."))),
        at(3, Kind::ItemCompleted(message("m2", "Whole."))),
        at(4, completed("Whole.")),
    ];
    check(
        Look::plain(),
        &inputs,
        expect![[r#"
        Hello world, all is well.

        Whole.
    "#]],
    );
}

#[test]
fn a_turn_without_messages_shows_its_final_text() {
    check(
        Look::plain(),
        &[at(0, started()), at(1, completed("Only here."))],
        expect![[r#"
        Only here.
    "#]],
    );
}

#[test]
fn a_large_text_is_fetched_only_for_what_was_not_shown() {
    let text = Text::Blob {
        blob: BlobRef { sha256: "x".into(), bytes: 13 },
        head: "from".into(),
        tail: "blob".into(),
    };
    let large = item("m1", ItemStatus::Ok, ItemBody::AgentMessage { text });
    check(
        Look::plain(),
        &[at(0, started()), grow("m1", 0, "from the"), at(1, Kind::ItemCompleted(large))],
        expect![[r#"
            from the blob
        "#]],
    );
}

#[test]
fn what_is_not_the_answer_goes_to_the_error_output_of_a_pipe() {
    let inputs = [
        at(0, started()),
        at(
            0,
            Kind::ItemCompleted(item(
                "r",
                ItemStatus::Ok,
                ItemBody::Reasoning { text: "First\nI think".into(), signature: None },
            )),
        ),
        grow("m1", 0, "Let me look."),
        at(5, Kind::ItemCompleted(message("m1", "Let me look."))),
        at(10, Kind::ItemStarted(command("c1", ItemStatus::InProgress, "cargo test\n--all", ""))),
        Input::Tick(2000),
        at(
            2510,
            Kind::ItemCompleted(command(
                "c1",
                ItemStatus::Failed,
                "cargo test\n--all",
                "a\n\u{1b}[31merror: b\u{1b}[0m\n",
            )),
        ),
        at(
            2600,
            Kind::Notice(Notice {
                level: NoticeLevel::Warning,
                code: "x".into(),
                text: "slow\u{7}".into(),
                rate_limit: None,
            }),
        ),
        grow("m2", 0, "It fails."),
        at(2700, Kind::ItemCompleted(message("m2", "It fails."))),
        at(2800, completed("It fails.")),
    ];
    check(
        Look::plain(),
        &inputs,
        expect![[r#"
            Let me look.

            It fails.
            --- err
            · First I think
            ✗ $ cargo test\n--all (failed, exit 3, 2.5 s)
              a
              error: b
            ! slow
        "#]],
    );
}

#[test]
fn a_terminal_has_a_live_line_while_a_tool_runs() {
    let inputs = [
        at(0, started()),
        Input::Tick(300),
        grow("m1", 0, "Let me"),
        Input::Tick(500),
        at(10, Kind::ItemCompleted(message("m1", "Let me"))),
        at(10, Kind::ItemStarted(command("c1", ItemStatus::InProgress, "make", ""))),
        Input::Tick(1500),
        Input::Tick(2600),
        at(2610, Kind::ItemCompleted(command("c1", ItemStatus::Ok, "make", "fine"))),
        at(2700, completed("x")),
    ];
    check(
        terminal(),
        &inputs,
        expect![[r#"
        ␛[2m⠋ working · 0 s␛[0m␍␛[2KLet me
        ␛[2m⠹ $ make · 1 s␛[0m␍␛[2K␛[2m⠸ $ make · 2 s␛[0m␍␛[2K
        ␛[32m✓ $ make (2.6 s)␛[0m
    "#]],
    );
}

#[test]
fn file_changes_are_counted_and_plans_are_lists() {
    let change = |path: &str, kind, old: Option<&str>, new: Option<&str>| FileChange {
        path: path.into(),
        kind,
        moved_to: None,
        old_text: old.map(Text::from),
        new_text: new.map(Text::from),
        diff: None,
    };
    let changes = vec![
        change("a.rs", ChangeKind::Update, Some("1\n2\n3\n"), Some("1\n3\n4\n")),
        change("b.rs", ChangeKind::Add, None, Some("1\n2\n")),
    ];
    let plan = |first, second| {
        let entry = |text: &str, status| PlanEntry { text: text.into(), status };
        Kind::PlanUpdated(Plan {
            entries: vec![entry("look", first), entry("act", second)],
            explanation: None,
        })
    };
    let inputs = [
        at(0, started()),
        at(0, plan(PlanStatus::InProgress, PlanStatus::Pending)),
        at(1, Kind::ItemCompleted(item("f", ItemStatus::Ok, ItemBody::FileChange { changes }))),
        at(2, plan(PlanStatus::Completed, PlanStatus::Pending)),
    ];
    check(
        Look::plain(),
        &inputs,
        expect![[r#"
        --- err
          ▸ look
          ☐ act
        ✓ edit a.rs +1 -1, add b.rs +2 -0
          ☑ look
    "#]],
    );
}

#[test]
fn work_of_a_sub_agent_is_indented() {
    let agent = |status| {
        item(
            "a1",
            status,
            ItemBody::ToolCall {
                class: ToolClass::SubAgent,
                tool: "Task".into(),
                server: None,
                title: Some("count files".into()),
                input: None,
                output: vec![Content::text("3")],
                gist: None,
            },
        )
    };
    let inputs = [
        at(0, started()),
        at(0, Kind::ItemStarted(agent(ItemStatus::InProgress))),
        below("a1", Kind::ItemCompleted(command("c1", ItemStatus::Ok, "ls", ""))),
        below("a1", Kind::ItemCompleted(message("m1", "There are\nthree."))),
        at(3, Kind::ItemCompleted(agent(ItemStatus::Ok))),
    ];
    let look = Look { color: false, live: false, ..terminal() };
    check(
        look,
        &inputs,
        expect![[r#"
        ▸ agent: count files
          ✓ $ ls
          There are
          three.
        ✓ agent: count files
    "#]],
    );
}

#[test]
fn a_call_is_shown_when_it_is_known_what_it_is_given() {
    let agent = |status, title: Option<&str>| {
        let body = ItemBody::ToolCall {
            class: ToolClass::SubAgent,
            tool: "Task".into(),
            server: None,
            title: title.map(str::to_owned),
            input: None,
            output: vec![],
            gist: None,
        };
        item("a1", status, body)
    };
    let inputs = [
        at(0, started()),
        at(0, Kind::ItemStarted(agent(ItemStatus::InProgress, None))),
        at(0, Kind::ItemUpdated(agent(ItemStatus::InProgress, Some("count files")))),
        at(0, Kind::ItemUpdated(agent(ItemStatus::InProgress, Some("count files")))),
        at(0, Kind::ItemCompleted(agent(ItemStatus::Ok, Some("count files")))),
        at(0, Kind::ItemStarted(command("c1", ItemStatus::InProgress, "", ""))),
        at(0, Kind::ItemCompleted(command("c1", ItemStatus::Cancelled, "", ""))),
    ];
    check(
        Look::plain(),
        &inputs,
        expect![[r#"
        --- err
        ▸ agent: count files
        ✓ agent: count files
    "#]],
    );
}

#[test]
fn requests_and_their_answers_are_part_of_the_text() {
    let request = Request {
        id: "r1".into(),
        item: None,
        title: "Run a command?".into(),
        reason: Some("it \u{1b}]0;evil\u{7}writes".into()),
        body: RequestBody::Approval(Approval {
            tool: "Bash".into(),
            command: Some("touch x\ntouch y".into()),
            ..Approval::default()
        }),
        options: vec![],
    };
    let resolved = Resolved {
        request: "r1".into(),
        answer: Answer::deny("no"),
        option: None,
        by: Origin::Engine,
        policy: Some("--on-request deny".into()),
    };
    let inputs = [at(0, Kind::RequestOpened(request)), at(1, Kind::RequestResolved(resolved))];
    check(
        Look::plain(),
        &inputs,
        expect![[r#"
            --- err
            ? Run a command?
              $ touch x
              > touch y
              the agent says:
              | it \x1b]0;evil\x07writes
              runs as the agent's own rules allow; tieline does not hold it
            → denied by policy (--on-request deny)
        "#]],
    );
}

#[test]
fn a_transcript_shows_both_sides_and_how_turns_end() {
    let look = Look { voices: Voices::Both, color: false, live: false, ..terminal() };
    let prompt = item(
        "u",
        ItemStatus::Ok,
        ItemBody::UserMessage {
            content: vec![
                Content::text("Do\nit"),
                Content::Link { uri: "file:x".into(), name: None },
            ],
        },
    );
    let Kind::TurnCompleted(end) = completed("") else { panic!("a turn's end") };
    let failed = Kind::TurnCompleted(TurnCompleted {
        status: TurnStatus::Failed,
        error: Some(
            Failure::new(FailureCode::NotLoggedIn, "Nobody is logged in")
                .hint("log in")
                .detail("line 1\nline 2"),
        ),
        usage: None,
        ..end
    });
    let inputs = [
        at(0, started()),
        at(0, Kind::ItemCompleted(prompt)),
        at(1, Kind::ItemCompleted(message("m1", "Done."))),
        at(2, completed("Done.")),
        at(3, started()),
        at(4, failed),
    ];
    check(
        look,
        &inputs,
        expect![[r#"
        > Do
        > it
        > [file:x]

        Done.

        — completed in 4.2 s · 1200 tokens in, 34 out, $0.0123
        — failed in 4.2 s
        Nobody is logged in
        log in
          line 1
          line 2
    "#]],
    );
}

#[test]
fn nothing_an_agent_says_moves_the_cursor() {
    let evil = "x\u{1b}[2J\u{9b}31m\u{1b}]52;c;AA\u{7}\u{202e}\r\u{8}";
    let mut opened = event(0, Kind::Unparsed(tieline_event::Unparsed::new(evil, evil.as_bytes())));
    opened.source = Source { driver: evil.into(), version: None, frames: None };
    let inputs = [
        at(0, started()),
        Input::Event(Box::new(opened)),
        grow("m1", 0, evil),
        at(1, Kind::ItemCompleted(message("m1", evil))),
        at(1, Kind::ItemStarted(command("c1", ItemStatus::InProgress, evil, evil))),
        Input::Tick(100),
        at(1, Kind::ItemCompleted(command("c1", ItemStatus::Failed, evil, evil))),
        at(
            1,
            Kind::ConversationConfigured(Configured {
                agent_version: Some(evil.into()),
                model: Some(evil.into()),
                ..Configured::default()
            }),
        ),
        at(
            1,
            Kind::PlanUpdated(Plan {
                entries: vec![PlanEntry { text: evil.into(), status: PlanStatus::Pending }],
                explanation: Some(evil.into()),
            }),
        ),
    ];
    let text = shown(Look { color: false, ..terminal() }, &inputs);
    // The one escape sequence left is our own, which erases the live line.
    assert!(!text.replace("␍␛[2K", "").contains(['␛', '␍']), "{text}");
    assert!(!text.chars().any(crate::sanitize::is_forbidden), "{text:?}");
}

#[test]
fn a_tool_that_only_tells_the_plan_has_no_line_of_its_own() {
    let tool = |status| {
        item(
            "p1",
            status,
            ItemBody::ToolCall {
                class: ToolClass::Generic,
                tool: "TodoWrite".into(),
                server: None,
                title: None,
                input: None,
                output: vec![],
                gist: None,
            },
        )
    };
    let framed = |kind| {
        let frame = tieline_event::FrameNo(9);
        let frames = Some(FrameRange { first: frame, last: frame });
        let source = Source { driver: "demo".into(), version: None, frames };
        Input::Event(Box::new(Event { source, ..event(0, kind) }))
    };
    let plan = Plan {
        entries: vec![PlanEntry { text: "look".into(), status: PlanStatus::Pending }],
        explanation: None,
    };
    let inputs = [
        at(0, started()),
        framed(Kind::ItemStarted(tool(ItemStatus::InProgress))),
        framed(Kind::PlanUpdated(plan)),
        at(1, Kind::ItemCompleted(tool(ItemStatus::Ok))),
    ];
    check(
        Look::plain(),
        &inputs,
        expect![[r#"
        --- err
          ☐ look
    "#]],
    );
}

#[test]
fn lines_are_indented_only_so_far() {
    let agent = |id: &str| {
        let body = ItemBody::ToolCall {
            class: ToolClass::SubAgent,
            tool: "Task".into(),
            server: None,
            title: Some("dig".into()),
            input: None,
            output: vec![],
            gist: None,
        };
        Kind::ItemStarted(item(id, ItemStatus::InProgress, body))
    };
    let nested: Vec<Input> =
        (0..100).map(|n| below(&format!("i{n}"), agent(&format!("i{}", n + 1)))).collect();
    let text = shown(Look { width: 400, ..terminal() }, &nested);
    let deepest = text.lines().map(|line| line.len() - line.trim_start().len()).max();
    assert_eq!(deepest, Some(2 * DEEPEST), "{text}");
}

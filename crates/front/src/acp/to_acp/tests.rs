use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::Value;
use tieline_event::{
    Abilities, AgentCommand, Approval, Configured, Content, Gist, Item, ItemBody, ItemStatus, Kind,
    Mode, Notice, NoticeLevel, Place, Plan, PlanEntry, PlanStatus, Request, RequestBody, Stream,
    Text, ToolClass, ToolKind, Usage,
};
use tieline_hub::{Entry, Shown};

use super::super::ask::{Plan as Ask, plan};
use super::super::client::Client;
use super::super::offer::Offer;
use super::super::page::Page;
use super::Mapper;
use crate::testing::{command, completed, delta, event, item, message, tricks};

const SCREEN: Client = Client {
    terminal_output: true,
    forms: true,
    notices: true,
    compaction: true,
    terminal_login: true,
};

const PLAIN: Client = Client {
    terminal_output: false,
    forms: false,
    notices: false,
    compaction: false,
    terminal_login: false,
};

fn mapper(client: Client) -> Mapper {
    Mapper::new(client, "/w".into(), Offer::new(Mode::Default, None, None, &Mode::COMMON, false))
}

fn happens(kind: Kind) -> Entry {
    let event = event(0, kind);
    Entry::Event(Arc::new(Shown { json: event.to_json().unwrap().into(), event }))
}

fn grows(id: &str, stream: Stream, offset: u64, text: &str) -> Entry {
    Entry::Delta(Arc::new(tieline_event::Delta { stream, ..delta(id, offset, text) }))
}

/// The updates as lines without what is the same in all of them.
fn shown(page: &mut Page) -> String {
    let lines = String::from_utf8(std::mem::take(&mut page.bytes)).unwrap();
    let update = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["params"]["sessionId"], "s");
        format!("{}\n", line["params"]["update"])
    };
    lines.lines().map(update).collect()
}

fn play(mapper: &mut Mapper, entries: &[Entry]) -> String {
    let mut page = Page::new("s");
    for entry in entries {
        match entry {
            Entry::Delta(delta) => mapper.delta(delta, &mut page),
            Entry::Event(shown) => mapper.event(&shown.event, &mut |_| None, &mut page),
        }
        while mapper.is_unfinished() {
            mapper.go_on(&mut page);
        }
    }
    mapper.flush(&mut page);
    shown(&mut page)
}

#[track_caller]
fn check(client: Client, entries: &[Entry], expected: Expect) {
    expected.assert_eq(&play(&mut mapper(client), entries));
}

#[test]
fn a_message_is_shown_once_whether_in_pieces_or_whole() {
    let start = item("m", ItemStatus::InProgress, ItemBody::AgentMessage { text: Text::default() });
    check(
        PLAIN,
        &[
            happens(Kind::ItemStarted(start)),
            grows("m", Stream::Text, 0, "Hel"),
            grows("m", Stream::Text, 3, "lo "),
            happens(Kind::ItemCompleted(message("m", "Hello you"))),
            happens(Kind::ItemCompleted(message("n", "whole"))),
        ],
        expect![[r#"
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello "},"messageId":"m"}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"you"},"messageId":"m"}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"whole"},"messageId":"n"}
        "#]],
    );
}

#[test]
fn pieces_of_different_items_keep_their_order() {
    let thought = |id| {
        let body = ItemBody::Reasoning { text: Text::default(), signature: None };
        happens(Kind::ItemStarted(item(id, ItemStatus::InProgress, body)))
    };
    check(
        PLAIN,
        &[
            thought("r"),
            grows("r", Stream::Reasoning, 0, "a"),
            grows("m", Stream::Text, 0, "b"),
            grows("r", Stream::Reasoning, 1, "c"),
        ],
        expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"a"},"messageId":"r"}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"},"messageId":"m"}
            {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"c"},"messageId":"r"}
        "#]],
    );
}

#[test]
fn a_command_in_a_terminal_is_created_fed_and_ended() {
    let run = |status, output| command("c", status, "make", output);
    check(
        SCREEN,
        &[
            happens(Kind::ItemStarted(run(ItemStatus::InProgress, ""))),
            grows("c", Stream::Output, 0, "one\n"),
            happens(Kind::ItemCompleted(run(ItemStatus::Failed, "one\ntwo\n"))),
        ],
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"c","title":"make","kind":"execute","content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"make"},"_meta":{"terminal_info":{"terminal_id":"c","cwd":null}}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}
            {"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output":{"terminal_id":"c","data":"one\n"}}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output":{"terminal_id":"c","data":"two\n"}}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","rawOutput":{"formatted_output":"one\ntwo\n","exit_code":3},"_meta":{"terminal_exit":{"terminal_id":"c","exit_code":3,"signal":null}}}
        "#]],
    );
}

#[test]
fn without_a_terminal_output_is_a_fenced_block_after_a_moment() {
    let mut mapper = mapper(PLAIN);
    let begun = happens(Kind::ItemStarted(command("c", ItemStatus::InProgress, "make", "")));
    let first = play(&mut mapper, &[begun, grows("c", Stream::Output, 0, "a ``` b\n")]);
    expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"c","title":"make","kind":"execute","rawInput":{"command":"make"}}
    "#]]
    .assert_eq(&first);
    assert!(mapper.is_waiting());
    let mut page = Page::new("s");
    mapper.tick(&mut page);
    expect![[r#"
        {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"````\na ``` b\n````"}}]}
    "#]]
    .assert_eq(&shown(&mut page));
    assert!(!mapper.is_waiting());
    let end = happens(Kind::ItemCompleted(command("c", ItemStatus::Ok, "make", "a ``` b\n")));
    expect![[r#"
        {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","rawOutput":{"formatted_output":"a ``` b\n","exit_code":0}}
    "#]]
    .assert_eq(&play(&mut mapper, &[end]));
}

#[test]
fn output_without_end_takes_bounded_memory_and_lines() {
    let mut mapper = mapper(PLAIN);
    let begun = happens(Kind::ItemStarted(command("c", ItemStatus::InProgress, "yes", "")));
    play(&mut mapper, &[begun]);
    let text = "y\n".repeat(10_000);
    for round in 0..100 {
        let more = grows("c", Stream::Output, round * text.len() as u64, &text);
        play(&mut mapper, &[more]);
        let mut page = Page::new("s");
        mapper.tick(&mut page);
        assert!(page.bytes.len() < 128 * 1024, "{}", page.bytes.len());
    }
}

fn tool(status: ItemStatus, gist: Option<Gist>, output: &str) -> Item {
    let body = ItemBody::ToolCall {
        class: ToolClass::Generic,
        tool: "Read".into(),
        server: None,
        title: None,
        input: Some(tieline_event::Json::from_text(r#"{"file_path":"a.rs"}"#.into()).unwrap()),
        output: if output.is_empty() { Vec::new() } else { vec![Content::text(output)] },
        gist,
    };
    item("x", status, body)
}

#[test]
fn a_gist_says_what_a_call_is_and_only_changes_are_told() {
    let gist = Gist {
        kind: ToolKind::Read,
        title: Some("Read a.rs (3 - 9)".into()),
        places: vec![Place { path: "a.rs".into(), line: Some(3) }],
    };
    check(
        PLAIN,
        &[
            happens(Kind::ItemStarted(tool(ItemStatus::InProgress, None, ""))),
            happens(Kind::ItemUpdated(tool(ItemStatus::InProgress, Some(gist.clone()), ""))),
            happens(Kind::ItemUpdated(tool(ItemStatus::InProgress, Some(gist.clone()), ""))),
            happens(Kind::ItemCompleted(tool(ItemStatus::Ok, Some(gist.clone()), "fn"))),
            // What is over is not told again.
            happens(Kind::ItemCompleted(tool(ItemStatus::Ok, Some(gist), "fn"))),
        ],
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"x","title":"Read","name":"Read","rawInput":{"file_path":"a.rs"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"x","kind":"read","title":"Read a.rs (3 - 9)","locations":[{"path":"/w/a.rs","line":3}]}
            {"sessionUpdate":"tool_call_update","toolCallId":"x","status":"completed","content":[{"type":"content","content":{"type":"text","text":"```\nfn\n```"}}],"rawOutput":"fn"}
        "#]],
    );
}

#[test]
fn a_list_of_steps_is_a_plan_and_no_call() {
    let entry = |text: &str, status| PlanEntry { text: text.into(), status };
    let entries = vec![entry("a", PlanStatus::Completed), entry("b", PlanStatus::InProgress)];
    let plan = Plan { entries, explanation: Some("why".into()) };
    check(
        PLAIN,
        &[
            happens(Kind::ItemStarted(tool(
                ItemStatus::InProgress,
                Some(Gist::of(ToolKind::Plan)),
                "",
            ))),
            happens(Kind::PlanUpdated(plan)),
        ],
        expect![[r#"
            {"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"completed"},{"content":"b","priority":"medium","status":"in_progress"}],"_meta":{"explanation":"why"}}
        "#]],
    );
}

#[test]
fn a_question_about_nothing_shown_creates_what_it_is_about() {
    let mut mapper = mapper(PLAIN);
    let request = Request {
        id: "r1".into(),
        item: Some("unknown".into()),
        title: "Run rm".into(),
        reason: None,
        body: RequestBody::Approval(Approval {
            tool: "shell".into(),
            command: Some("rm".into()),
            ..Approval::default()
        }),
        options: Vec::new(),
    };
    let mut page = Page::new("s");
    let call = mapper.asks("k", &request, &mut |_| None, &mut page);
    assert_eq!(&*call.tool_call_id.0, "request-r1");
    expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"request-r1","title":"rm","kind":"execute","rawInput":{"command":"rm"}}
    "#]]
    .assert_eq(&shown(&mut page));
    // A call that waits for an answer is not in progress.
    assert!(!mapper.is_waiting());
    let resolved = Kind::RequestExpired(tieline_event::Expired {
        request: "r1".into(),
        reason: "the turn ended".into(),
    });
    expect![[r#"
        {"sessionUpdate":"tool_call_update","toolCallId":"request-r1","status":"failed","title":"rm","content":[],"rawInput":{"command":"rm"}}
    "#]]
    .assert_eq(&play(&mut mapper, &[happens(resolved)]));
}

#[test]
fn a_question_is_in_the_history_as_it_was_live() {
    let question = |id: &str| {
        Kind::RequestOpened(Request {
            id: id.into(),
            item: None,
            title: "Colour?".into(),
            reason: None,
            body: RequestBody::Question { questions: Vec::new() },
            options: Vec::new(),
        })
    };
    let resolved = Kind::RequestResolved(tieline_event::Resolved {
        request: "r1".into(),
        answer: tieline_event::Answer::Answers { answers: [].into() },
        option: None,
        by: tieline_event::Origin::Client,
        policy: None,
    });
    let expired = Kind::RequestExpired(tieline_event::Expired {
        request: "r2".into(),
        reason: "the turn ended".into(),
    });
    let entries = [question("r1"), resolved, question("r2"), expired].map(happens);
    let mut replay = mapper(PLAIN);
    replay.replays();
    let replayed = play(&mut replay, &entries);
    expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"request-r1","title":"Colour?","name":"question"}
        {"sessionUpdate":"tool_call_update","toolCallId":"request-r1","status":"completed"}
        {"sessionUpdate":"tool_call","toolCallId":"request-r2","title":"Colour?","name":"question"}
        {"sessionUpdate":"tool_call_update","toolCallId":"request-r2","status":"failed"}
    "#]]
    .assert_eq(&replayed);

    let (mut live, mut page) = (mapper(PLAIN), Page::new("s"));
    for entry in &entries {
        let Entry::Event(happened) = entry else { continue };
        live.event(&happened.event, &mut |_| None, &mut page);
        if let Kind::RequestOpened(request) = &happened.event.kind {
            live.asks("k", request, &mut |_| None, &mut page);
        }
    }
    assert_eq!(shown(&mut page), replayed);
}

#[test]
fn what_the_agent_offers_is_told_when_it_changes() {
    let abilities = Abilities {
        modes: vec![Mode::Plan, Mode::Default],
        efforts: vec!["low".into(), "high".into()],
        commands: vec![AgentCommand { name: "go".into(), description: None, hint: None }],
        ..Abilities::default()
    };
    let told = Configured {
        mode: Some(Mode::Plan),
        effort: Some("high".into()),
        title: Some("A title".into()),
        abilities: Some(abilities),
        ..Configured::default()
    };
    let told = happens(Kind::ConversationConfigured(told));
    let mut mapper = mapper(PLAIN);
    let first = play(&mut mapper, std::slice::from_ref(&told));
    let kinds: Vec<&str> =
        first.lines().map(|line| line.split('"').nth(3).unwrap_or_default()).collect();
    assert_eq!(
        kinds,
        [
            "session_info_update",
            "current_mode_update",
            "config_option_update",
            "available_commands_update"
        ]
    );
    assert!(first.contains(r#""currentValue":"high""#), "{first}");
    assert_eq!(play(&mut mapper, &[told]), "");
}

#[test]
fn notices_are_thoughts_for_those_who_know_none() {
    let notice = |level| {
        happens(Kind::Notice(Notice {
            level,
            code: "api_retry".into(),
            text: "again".into(),
            rate_limit: None,
        }))
    };
    let all = [notice(NoticeLevel::Info), notice(NoticeLevel::Warning)];
    check(
        SCREEN,
        &all,
        expect![[r#"
            {"sessionUpdate":"notice","severity":"info","title":"again"}
            {"sessionUpdate":"notice","severity":"warning","title":"again"}
        "#]],
    );
    check(
        PLAIN,
        &all,
        expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"⚠ again\n"},"messageId":"notice-1"}
        "#]],
    );
}

#[test]
fn cost_is_the_conversations_and_the_window_the_models() {
    let usage = Usage { context_used: Some(10), context_window: Some(100), ..Usage::default() };
    check(
        PLAIN,
        &[happens(Kind::UsageUpdated(usage)), happens(completed("")), happens(completed(""))],
        expect![[r#"
            {"sessionUpdate":"usage_update","used":10,"size":100}
            {"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.0123,"currency":"USD"}}
            {"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.0246,"currency":"USD"}}
        "#]],
    );
}

#[test]
fn the_user_is_quoted_in_a_replay_alone() {
    let said = || {
        let content = vec![
            Content::text("look"),
            Content::Link { uri: "file:///a".into(), name: Some("a".into()) },
        ];
        happens(Kind::ItemCompleted(item("u", ItemStatus::Ok, ItemBody::UserMessage { content })))
    };
    check(PLAIN, &[said()], expect![""]);
    let mut mapper = mapper(PLAIN);
    mapper.replays();
    expect![[r#"
        {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"look"},"messageId":"u"}
        {"sessionUpdate":"user_message_chunk","content":{"type":"resource_link","name":"a","uri":"file:///a"},"messageId":"u"}
    "#]]
    .assert_eq(&play(&mut mapper, &[said()]));
}

#[test]
fn the_work_of_a_helper_names_whose_it_is() {
    let mut inner = event(0, Kind::ItemCompleted(message("m", "done")));
    inner.parent = Some("task".into());
    let inner =
        Entry::Event(Arc::new(Shown { json: inner.to_json().unwrap().into(), event: inner }));
    check(
        PLAIN,
        &[inner],
        expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"done"},"messageId":"m","_meta":{"tieline":{"parentToolCallId":"task"},"claudeCode":{"parentToolUseId":"task"}}}
        "#]],
    );
}

#[test]
fn a_whole_text_that_does_not_go_on_from_what_was_shown_adds_nothing() {
    let start = item("m", ItemStatus::InProgress, ItemBody::AgentMessage { text: Text::default() });
    let run = |status, output| command("c", status, "make", output);
    check(
        SCREEN,
        &[
            happens(Kind::ItemStarted(start)),
            grows("m", Stream::Text, 0, "Hello"),
            happens(Kind::ItemCompleted(message("m", "Good morning to you"))),
            happens(Kind::ItemStarted(run(ItemStatus::InProgress, ""))),
            // Some agents keep the first piece to themselves and give it with the whole.
            grows("c", Stream::Output, 0, "two\n"),
            happens(Kind::ItemCompleted(run(ItemStatus::Ok, "one\ntwo\n"))),
        ],
        expect![[r#"
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello"},"messageId":"m"}
            {"sessionUpdate":"tool_call","toolCallId":"c","title":"make","kind":"execute","content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"make"},"_meta":{"terminal_info":{"terminal_id":"c","cwd":null}}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}
            {"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output":{"terminal_id":"c","data":"two\n"}}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","rawOutput":{"formatted_output":"one\ntwo\n","exit_code":0},"_meta":{"terminal_exit":{"terminal_id":"c","exit_code":0,"signal":null}}}
        "#]],
    );
}

#[test]
fn a_long_text_is_written_in_pieces_that_are_exact_together() {
    let text = "é".repeat(400_000);
    let mut mapper = mapper(PLAIN);
    let whole = event(0, Kind::ItemCompleted(message("m", &text)));
    let mut page = Page::new("s");
    mapper.event(&whole, &mut |_| None, &mut page);
    assert!(mapper.is_unfinished() && page.bytes.len() < 300 * 1024);
    while mapper.is_unfinished() {
        mapper.go_on(&mut page);
    }
    let lines = shown(&mut page);
    let piece = |line: &str| {
        let update: Value = serde_json::from_str(line).unwrap();
        update["content"]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(lines.lines().map(piece).collect::<String>(), text);
}

/// Every text in a value that a client shows: ids go back as they came.
fn texts_of(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|it| texts_of(it, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_id = matches!(&**name, "const" | "optionId" | "toolCallId" | "sessionId");
                if !is_id {
                    texts.push(name.clone());
                    texts_of(value, texts);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn everything_of_every_trick_is_seen_in_a_question_to_a_client() {
    for trick in tricks::all() {
        for (field, request) in tricks::requests(&trick.text) {
            for forms in [true, false] {
                let mut page = Page::new("s");
                let call = mapper(PLAIN).asks("k", &request, &mut |_| None, &mut page);
                let Ask::Ask(_, params, _) = plan("s", &request, call, forms) else {
                    panic!("{field}: nobody is asked")
                };
                let mut texts = Vec::new();
                texts_of(&params, &mut texts);
                trick.is_seen_in(&texts.join("\n").replace("\n  … ", ""), field);
            }
        }
    }
}

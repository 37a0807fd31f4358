//! What the agent asks: each request is answered once, with the agent's own words.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tieline_event::{
    Answer, ChoiceKind, ItemBody, ItemStatus, Kind, Mode, Origin, RequestBody, Scope, TurnStatus,
};

use super::{Stage, running};

fn options() -> Value {
    json!([
        {"optionId": "y1", "name": "Yes", "kind": "allow_once"},
        {"optionId": "y2", "name": "Yes, always this", "kind": "allow_always"},
        {"optionId": "y3", "name": "Yes, always all", "kind": "allow_always"},
        {"optionId": "n1", "name": "No", "kind": "reject_once"},
        {"optionId": "n2", "name": "Never", "kind": "reject_always"},
    ])
}

fn ask(stage: &mut Stage, id: i64, kind: &str, path: &str) {
    let call = json!({"toolCallId": format!("t{id}"), "title": format!("do {id}"), "kind": kind,
                      "status": "pending", "locations": [{"path": path}]});
    stage.ask(id, "session/request_permission", json!({"toolCall": call, "options": options()}));
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

#[test]
fn every_answer_is_the_right_option_of_the_agent() {
    let allow = |scope| Answer::Allow { scope, input: None, mode: None };
    let deny = |stop| Answer::Deny { message: None, stop };
    let choose = |option: &str| Answer::Choose { option: option.to_owned() };
    for (answer, expected) in [
        (allow(Scope::Once), selected("y1")),
        (allow(Scope::Session), selected("y2")),
        (allow(Scope::Always), selected("y2")),
        (deny(false), selected("n1")),
        (deny(true), cancelled()),
        (choose("y3"), selected("y3")),
        (choose("n2"), selected("n2")),
    ] {
        let mut stage = running(Mode::Default);
        ask(&mut stage, 7, "execute", "/workspace/a");
        let request = stage.opened_requests().remove(0);
        let kinds: Vec<_> = request.options.iter().map(|it| (it.id.as_str(), it.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("y1", ChoiceKind::AllowOnce),
                ("y2", ChoiceKind::AllowAlways),
                ("y3", ChoiceKind::AllowAlways),
                ("n1", ChoiceKind::Deny),
                ("n2", ChoiceKind::Deny)
            ]
        );
        stage.answer(7, &answer);
        assert_eq!(stage.answer_to(7)["result"], expected, "{answer:?}");
        let again = stage.session.answer(&request.id, &answer, Origin::Human, None);
        assert!(again.is_err(), "once is enough");
        assert!(stage.is_unanswered(7));
    }
}

#[test]
fn a_choice_is_recorded_with_what_it_means() {
    let mut stage = running(Mode::Default);
    ask(&mut stage, 7, "edit", "/workspace/a");
    let request = stage.request(7);
    let odd = Answer::Choose { option: "nonsense".to_owned() };
    assert!(stage.session.answer(&request, &odd, Origin::Human, None).is_err());
    stage.answer(7, &Answer::Choose { option: "y3".to_owned() });
    let resolved = stage.kinds().find_map(|kind| match kind {
        Kind::RequestResolved(it) => Some(it.clone()),
        _ => None,
    });
    let resolved = resolved.unwrap();
    assert_eq!(resolved.option.as_deref(), Some("y3"));
    assert_eq!(resolved.answer, Answer::Allow { scope: Scope::Always, input: None, mode: None });
}

#[test]
fn a_call_that_was_refused_is_declined_or_denied() {
    for (by, status) in
        [(Origin::Human, ItemStatus::Declined), (Origin::Engine, ItemStatus::Denied)]
    {
        let mut stage = running(Mode::Default);
        ask(&mut stage, 7, "execute", "/workspace/a");
        let request = stage.request(7);
        let no = Answer::Deny { message: None, stop: false };
        stage.session.answer(&request, &no, by, None).unwrap();
        stage.settle();
        stage.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t7", "status": "failed"}),
        );
        assert_eq!(stage.items()[0].status, status);
        // And so it is when the agent says nothing more about it.
        let mut stage = running(Mode::Default);
        ask(&mut stage, 7, "execute", "/workspace/a");
        let request = stage.request(7);
        stage.session.answer(&request, &no, by, None).unwrap();
        stage.settle();
        stage.end_turn("cancelled");
        assert_eq!(stage.items()[0].status, status);
    }
}

/// A title and a kind are little, but what is asked about is that call and no other.
#[test]
fn a_call_of_which_little_is_known_is_told_before_it_is_asked_about() {
    let make = json!({"toolCallId": "t", "title": "make", "kind": "execute", "status": "pending"});
    let mut told = make.clone();
    told["sessionUpdate"] = json!("tool_call");
    let named = json!({"toolCallId": "t"});
    // Told and then asked about; or only asked about, with or without words.
    for (first, asked, name) in
        [(Some(&told), &named, "make"), (None, &make, "make"), (None, &named, "tool")]
    {
        let mut stage = running(Mode::Default);
        if let Some(first) = first {
            stage.update(first.clone());
        }
        let params = json!({"toolCall": asked, "options": options()});
        stage.ask(7, "session/request_permission", params);
        let item = stage.items().remove(0);
        assert_eq!(stage.opened_requests()[0].item, Some(item.id.clone()), "{asked}");
        assert_eq!(item.status, ItemStatus::InProgress);
        let ItemBody::ToolCall { tool, .. } = &item.body else { panic!("{item:?}") };
        assert_eq!(tool, name);
        stage.answer(7, &Answer::allow());
        assert_eq!(stage.items()[0].status, ItemStatus::InProgress, "a yes is not its end");
        for status in ["in_progress", "completed"] {
            stage.update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status}),
            );
        }
        let items: Vec<_> = stage.items().into_iter().map(|it| (it.id, it.status)).collect();
        assert_eq!(items, [(item.id, ItemStatus::Ok)], "one call: {}", stage.shown());
    }
}

#[test]
fn a_form_about_a_call_of_which_little_is_known_is_about_that_call() {
    let mut stage = running(Mode::Default);
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Ask", "status": "pending"}));
    stage.ask(
        7,
        "elicitation/create",
        json!({"mode": "form", "message": "Who?", "toolCallId": "t", "requestedSchema":
        {"type": "object", "properties": {"name": {"type": "string"}}}}),
    );
    assert_eq!(stage.opened_requests()[0].item, Some(stage.items()[0].id.clone()));
}

#[test]
fn an_id_that_is_asked_about_after_its_end_is_another_call() {
    let mut stage = running(Mode::Default);
    for id in [7, 8] {
        let call = json!({"toolCallId": "t", "title": "make", "kind": "execute"});
        let params = json!({"toolCall": call, "options": options()});
        stage.ask(id, "session/request_permission", params);
        stage.answer(id, &Answer::allow());
        stage.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}),
        );
    }
    let ended: Vec<_> = stage.items().into_iter().map(|it| it.status).collect();
    assert_eq!(ended, [ItemStatus::Ok, ItemStatus::Ok], "{}", stage.shown());
}

#[test]
fn several_may_be_open_at_once_and_a_cancel_answers_them_all() {
    let mut stage = running(Mode::Default);
    for id in 1..=3 {
        ask(&mut stage, id, "execute", "/workspace/a");
    }
    stage.ask(
        4,
        "elicitation/create",
        json!({"mode": "form", "message": "Who?", "requestedSchema":
        {"type": "object", "properties": {"name": {"type": "string"}}}}),
    );
    stage.ask(5, "terminal/create", json!({"command": "make"}));
    stage.answer(2, &Answer::allow());
    assert_eq!(stage.answer_to(2)["result"], selected("y1"));
    assert!(stage.session.interrupt());
    stage.settle();
    stage.take("session/cancel");
    assert_eq!(stage.answer_to(1)["result"], cancelled());
    assert_eq!(stage.answer_to(3)["result"], cancelled());
    assert_eq!(stage.answer_to(4)["result"], json!({"action": "cancel"}));
    assert_eq!(stage.answer_to(5)["error"]["code"], -32800);
    assert!(stage.chores.is_empty(), "nothing was run");
    assert!(stage.written.iter().all(|line| line.get("result").is_none()), "each once");
    assert_eq!(stage.session.ledger().open_requests().count(), 0);
    let expired = stage.kinds().filter(|kind| matches!(kind, Kind::RequestExpired(_))).count();
    assert_eq!(expired, 4);
    stage.end_turn("cancelled");
    assert_eq!(stage.end().status, TurnStatus::Interrupted);
}

#[test]
fn what_the_agent_asks_before_it_hears_of_a_cancel_is_not_done_and_not_asked() {
    for mode in [Mode::Default, Mode::Yolo] {
        let mut stage = running(mode);
        assert!(stage.session.interrupt());
        stage.settle();
        stage.take("session/cancel");
        ask(&mut stage, 1, "execute", "/workspace/a");
        stage.ask(2, "elicitation/create", json!({"mode": "url", "message": "?", "url": "x:y"}));
        stage.ask(3, "terminal/create", json!({"command": "make"}));
        stage.ask(4, "fs/write_text_file", json!({"path": "/workspace/a", "content": ""}));
        assert_eq!(stage.answer_to(1)["result"], cancelled(), "{mode}");
        assert_eq!(stage.answer_to(2)["result"], json!({"action": "cancel"}), "{mode}");
        for id in [3, 4] {
            assert_eq!(stage.answer_to(id)["error"]["code"], -32800, "{mode}");
        }
        assert!(stage.opened_requests().is_empty() && stage.chores.is_empty(), "{mode}");
        stage.end_turn("cancelled");
        assert_eq!(stage.end().status, TurnStatus::Interrupted, "{mode}");
    }
}

#[test]
fn what_the_agent_takes_back_expires() {
    let mut stage = running(Mode::Default);
    ask(&mut stage, 1, "execute", "/workspace/a");
    let request = stage.request(1);
    stage
        .tell(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}));
    assert_eq!(stage.answer_to(1)["result"], cancelled());
    assert!(stage.session.answer(&request, &Answer::allow(), Origin::Human, None).is_err());
}

#[test]
fn a_question_with_the_same_id_is_not_answered_twice() {
    let mut stage = running(Mode::Default);
    ask(&mut stage, 1, "execute", "/workspace/a");
    ask(&mut stage, 1, "execute", "/workspace/b");
    assert_eq!(stage.opened_requests().len(), 1);
    assert_eq!(stage.notices("repeated_request"), 1);
}

#[test]
fn what_is_not_known_is_refused_at_once() {
    let mut stage = running(Mode::Default);
    stage.ask(1, "fs/format_disk", json!({}));
    assert_eq!(stage.answer_to(1)["error"]["code"], -32601);
    stage.ask(2, "session/request_permission", json!({"options": 7}));
    assert_eq!(stage.answer_to(2)["error"]["code"], -32602);
    let params = json!({"sessionId": "another", "path": "/workspace/a"});
    stage
        .tell(&json!({"jsonrpc": "2.0", "id": 3, "method": "fs/read_text_file", "params": params}));
    assert_eq!(stage.answer_to(3)["error"]["code"], -32602);
    assert!(stage.chores.is_empty());
}

#[test]
fn a_form_is_questions_and_goes_back_filled_in() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {
        "n": {"type": "integer", "title": "How many?"}, "ok": {"type": "boolean"}}});
    let form = json!({"mode": "form", "message": "Tell me", "requestedSchema": schema});
    let mut stage = running(Mode::Default);
    stage.ask(1, "elicitation/create", form.clone());
    let request = stage.opened_requests().remove(0);
    let RequestBody::Question { questions } = &request.body else { panic!("{request:?}") };
    assert_eq!(questions.len(), 2);
    let answers: BTreeMap<_, _> =
        [("n".to_owned(), vec!["3".to_owned()]), ("ok".to_owned(), vec!["yes".to_owned()])].into();
    stage.answer(1, &Answer::Answers { answers });
    assert_eq!(
        stage.answer_to(1)["result"],
        json!({"action": "accept", "content": {"n": 3, "ok": true}})
    );
    stage.ask(2, "elicitation/create", form);
    stage.answer(2, &Answer::Deny { message: None, stop: false });
    assert_eq!(stage.answer_to(2)["result"], json!({"action": "decline"}));
}

#[test]
fn a_link_is_shown_and_may_be_done_without_us() {
    let link = json!({"mode": "url", "message": "Log in", "elicitationId": "e1", "url": "https://example.com/x"});
    let mut stage = running(Mode::Default);
    stage.ask(1, "elicitation/create", link.clone());
    let request = stage.opened_requests().remove(0);
    assert!(format!("{:?}", request.body).contains("https://example.com/x"));
    stage.answer(1, &Answer::Answers { answers: BTreeMap::new() });
    assert_eq!(stage.answer_to(1)["result"], json!({"action": "accept"}));
    stage.ask(2, "elicitation/create", link);
    stage.tell(&json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "e1"}}));
    assert_eq!(stage.answer_to(2)["result"], json!({"action": "accept"}));
    assert_eq!(stage.session.ledger().open_requests().count(), 0);
}

#[test]
fn leaving_a_plan_is_asked_in_every_mode_and_lets_the_agent_change_its_mode() {
    let modes = json!({"currentModeId": "plan", "availableModes": [
        {"id": "default", "name": "D"}, {"id": "plan", "name": "P"}, {"id": "acceptEdits", "name": "A"}]});
    let mut stage = Stage::new(&super::launch(Mode::Plan));
    stage.respond("initialize", super::hello());
    stage.respond("session/new", json!({"sessionId": "s1", "modes": modes}));
    stage.start_turn("plan it");
    let call = json!({"toolCallId": "t", "title": "Ready to code?", "kind": "switch_mode", "rawInput": {"plan": "1. dig"}});
    let options = json!([
        {"optionId": "acceptEdits", "name": "Yes, and edit", "kind": "allow_always"},
        {"optionId": "default", "name": "Yes", "kind": "allow_once"},
        {"optionId": "plan", "name": "No", "kind": "reject_once"}]);
    stage.ask(1, "session/request_permission", json!({"toolCall": call, "options": options}));
    let request = stage.opened_requests().remove(0);
    assert_eq!(request.body, RequestBody::ExitPlan { plan: Some("1. dig".to_owned()) });
    let mode = Some(Mode::AcceptEdits);
    stage.answer(1, &Answer::Allow { scope: Scope::Once, input: None, mode });
    assert_eq!(stage.answer_to(1)["result"], selected("acceptEdits"));
    stage.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "acceptEdits"}));
    assert!(stage.shown().contains("mode Some(AcceptEdits)"), "{}", stage.shown());
    // So files are written without asking from now on.
    stage.ask(2, "fs/write_text_file", json!({"path": "/workspace/a", "content": "x"}));
    assert_eq!(stage.chores.len(), 1);
}

/// Where the agent has no such mode, the mode is what we do with its questions.
#[test]
fn a_mode_the_agent_does_not_have_is_carried_out_by_us() {
    let inside = "/workspace/a";
    let outside = "/etc/passwd";
    for (mode, kind, path, expected) in [
        (Mode::Plan, "edit", inside, Some("n1")),
        (Mode::Plan, "execute", inside, Some("n1")),
        (Mode::Plan, "read", inside, None),
        (Mode::Default, "edit", inside, None),
        (Mode::Default, "execute", inside, None),
        (Mode::AcceptEdits, "edit", inside, Some("y1")),
        (Mode::AcceptEdits, "edit", outside, None),
        (Mode::AcceptEdits, "edit", "/workspace/../etc/passwd", None),
        (Mode::AcceptEdits, "execute", inside, None),
        (Mode::BypassPermissions, "execute", inside, Some("y1")),
        (Mode::Yolo, "edit", outside, Some("y1")),
    ] {
        let mut stage = running(mode);
        ask(&mut stage, 1, kind, path);
        match expected {
            Some(option) => {
                assert_eq!(stage.answer_to(1)["result"], selected(option), "{mode} {kind} {path}");
                assert!(stage.opened_requests().is_empty());
            }
            None => {
                assert!(stage.is_unanswered(1), "{mode} {kind} {path}");
                assert_eq!(stage.opened_requests().len(), 1, "{mode} {kind} {path}");
            }
        }
    }
    // What a policy refused is denied.
    let mut stage = running(Mode::Plan);
    ask(&mut stage, 1, "edit", inside);
    stage.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}),
    );
    assert_eq!(stage.items()[0].status, ItemStatus::Denied);
}

//! Turns: how they begin, grow, are steered and end.

use super::*;

#[test]
fn an_overloaded_server_is_asked_again_and_again_but_not_for_ever() {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let busy = json!({"code": -32001, "message": "Server overloaded; retry later."});
    let mut pauses = Vec::new();
    while shown(&replay).matches("turn.completed").count() == 0 {
        let start = replay.take("turn/start");
        replay.tell(&json!({"id": start["id"], "error": busy}));
        pauses.extend(replay.ring().map(|pause| pause.as_millis()));
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000]);
    assert!(shown(&replay).contains("overloaded"), "{}", shown(&replay));
    // One that gets through is a turn like any other.
    replay.outputs.clear();
    replay.session.start_turn(&Prompt::text("again"));
    replay.settle();
    let start = replay.take("turn/start");
    replay.tell(&json!({"id": start["id"], "error": busy}));
    replay.ring();
    replay.name_turn("second");
    replay.end_turn("second", "completed");
    assert!(shown(&replay).contains("turn.completed: Completed"), "{}", shown(&replay));
}

#[test]
fn the_greeting_has_its_time_also_when_it_is_said_again() {
    let mut replay = Replay::new(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let hello = replay.take("initialize");
    let busy = json!({"code": -32001, "message": "Server overloaded; retry later."});
    replay.tell(&json!({"id": hello["id"], "error": busy}));
    replay.pass(Duration::from_secs(44));
    replay.take("initialize");
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
    replay.pass(Duration::from_secs(2));
    let text = shown(&replay);
    assert!(text.contains("turn.completed: Failed"), "{text}");
    assert!(text.contains("did not answer within 45 seconds"), "{text}");
}

#[test]
fn an_end_of_another_shape_still_ends_the_turn() {
    let mut replay = running();
    replay.tell(&json!({"method": "turn/completed", "params": {"threadId": "thread", "turn": 7}}));
    let text = shown(&replay);
    assert!(text.contains("unparsed") && text.contains("turn.completed: Failed by Wire"), "{text}");
}

fn last_error(will_retry: bool) -> Value {
    json!({"method": "error", "params": {
        "threadId": "thread", "turnId": "turn", "willRetry": will_retry,
        "error": {"message": "the disk is full", "codexErrorInfo": "other"},
    }})
}

#[test]
fn a_lone_error_ends_the_turn_with_its_words() {
    let mut replay = running();
    replay.tell(&last_error(false));
    assert!(!shown(&replay).contains("turn.completed"), "the server may still end it");
    replay.ring();
    let text = shown(&replay);
    assert!(text.contains("turn.completed: Failed by Wire"), "{text}");
    assert!(text.contains("the disk is full"), "{text}");
    // An end that comes after all is not that of the next turn.
    replay.outputs.clear();
    replay.session.start_turn(&Prompt::text("again"));
    replay.settle();
    replay.end_turn("turn", "failed");
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
    replay.name_turn("next");
    replay.end_turn("next", "completed");
    assert!(shown(&replay).contains("turn.completed: Completed"), "{}", shown(&replay));
}

#[test]
fn an_error_that_is_tried_again_ends_nothing() {
    let mut replay = running();
    replay.tell(&last_error(true));
    replay.ring();
    assert!(!shown(&replay).contains("turn.completed"), "{}", shown(&replay));
}

#[test]
fn an_error_outside_of_a_turn_is_shown() {
    let mut replay = ready(&launch(Mode::Default));
    replay.tell(&last_error(false));
    assert!(shown(&replay).contains("the disk is full"), "{}", shown(&replay));
}

#[test]
fn an_end_without_a_status_is_what_its_error_says() {
    for (error, status) in
        [(Value::Null, "Completed by Wire"), (json!({"message": "no"}), "Failed by Wire")]
    {
        let mut replay = running();
        let turn = json!({"id": "turn", "error": error});
        let params = json!({"threadId": "thread", "turn": turn});
        replay.tell(&json!({"method": "turn/completed", "params": params}));
        assert!(shown(&replay).contains(status), "{}", shown(&replay));
    }
}

#[test]
fn the_server_is_told_the_version_of_the_product() {
    let mut replay = Replay::new(&launch(Mode::Default));
    let version = replay.take("initialize")["params"]["clientInfo"]["version"].clone();
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    assert_ne!(version, "0.0.0");
}

#[test]
fn an_interrupt_waits_for_the_turn_s_name() {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    assert!(replay.session.interrupt());
    replay.settle();
    assert!(replay.written.iter().all(|line| line["method"] != "turn/interrupt"));
    replay.name_turn("turn");
    assert_eq!(replay.take("turn/interrupt")["params"]["turnId"], json!("turn"));
    replay.end_turn("turn", "interrupted");
    assert!(shown(&replay).contains("turn.completed: Interrupted by Wire"), "{}", shown(&replay));
}

#[test]
fn an_interrupt_before_the_thread_is_there_ends_the_turn_at_once() {
    let mut replay = Replay::new(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    assert!(replay.session.interrupt());
    replay.settle();
    assert!(shown(&replay).contains("turn.completed: Interrupted"), "{}", shown(&replay));
}

#[test]
fn a_message_that_comes_too_late_for_its_turn_begins_one() {
    let mut replay = running();
    replay.session.steer(&Prompt::text("and this")).unwrap();
    replay.settle();
    replay.end_turn("turn", "completed");
    let steer = replay.take("turn/steer");
    let error = json!({"code": -32600, "message": "no active turn to steer"});
    replay.tell(&json!({"id": steer["id"], "error": error}));
    let start = replay.take("turn/start");
    assert_eq!(start["params"]["input"][0]["text"], json!("and this"));
    assert!(shown(&replay).contains("t2 turn.started"), "{}", shown(&replay));
}

#[test]
fn a_thread_that_is_gone_is_an_error_and_the_next_turn_asks_again() {
    let resume = Some(Resume { session: "gone", fork: false, at: None });
    let mut replay = Replay::new(&Launch { resume, ..launch(Mode::Default) });
    replay.session.start_turn(&Prompt::text("go"));
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {}}));
    for _ in 0..2 {
        let open = replay.take("thread/resume");
        assert_eq!(open["params"]["threadId"], json!("gone"));
        let error = json!({"code": -32600, "message": "no rollout found for thread id gone"});
        replay.tell(&json!({"id": open["id"], "error": error}));
        assert!(shown(&replay).contains("SessionUnknown"), "{}", shown(&replay));
        assert!(shown(&replay).contains("--fresh"), "{}", shown(&replay));
        replay.session.start_turn(&Prompt::text("again"));
        replay.settle();
    }
    assert_eq!(replay.session.ledger().session(), Some("gone"), "nothing is forgotten by itself");
}

#[test]
fn a_thread_that_goes_on_counts_only_what_is_new() {
    let resume = Some(Resume { session: "thread", fork: false, at: None });
    let mut replay = Replay::new(&Launch { resume, ..launch(Mode::Default) });
    let before =
        tieline_event::Usage { input_tokens: 600, output_tokens: 50, ..Default::default() };
    replay.session.ledger_mut().set_session_usage(before);
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {}}));
    replay.session.start_turn(&Prompt::text("go"));
    let id = replay.take("thread/resume")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"thread": {"id": "thread"}}}));
    replay.name_turn("turn");
    // Some versions tell the old count once more within the turn, as if it were its own.
    for total in [600, 1200] {
        replay.tell(&json!({"method": "thread/tokenUsage/updated", "params": {
            "threadId": "thread", "turnId": "turn", "tokenUsage": {
                "total": {"inputTokens": total, "outputTokens": 50 + total / 12},
                "last": {"inputTokens": 600, "outputTokens": 50},
            },
        }}));
    }
    replay.end_turn("turn", "completed");
    assert!(shown(&replay).contains("in 600 cached 0"), "{}", shown(&replay));
}

#[test]
fn what_a_version_does_not_know_is_said_in_a_sentence() {
    let resume = Some(Resume { session: "old", fork: true, at: None });
    let mut replay = Replay::new(&Launch { resume, ..launch(Mode::Default) });
    replay.session.start_turn(&Prompt::text("go"));
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.72.0 (y)"}}));
    let id = replay.take("thread/fork")["id"].clone();
    let message = "Invalid request: unknown variant `thread/fork`, expected one of `a`, `b`";
    replay.tell(&json!({"id": id, "error": {"code": -32600, "message": message}}));
    assert!(shown(&replay).contains("Codex 0.72.0 has no thread/fork"), "{}", shown(&replay));
}

#[test]
fn what_another_agent_does_stands_under_the_call_that_started_it() {
    let mut replay = running();
    let item = |thread: &str, item: Value| json!({"method": "item/completed", "params": {"threadId": thread, "turnId": "x", "item": item}});
    replay.tell(&item("elsewhere", json!({"type": "agentMessage", "id": "no", "text": "no"})));
    replay.tell(&item(
        "thread",
        json!({
            "type": "collabAgentToolCall", "id": "spawn", "tool": "spawnAgent", "prompt": "Greet",
            "status": "completed", "receiverThreadIds": ["helper"],
        }),
    ));
    replay.tell(&item("helper", json!({"type": "agentMessage", "id": "hi", "text": "hello"})));
    let parents: Vec<_> = replay
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Event(draft) => Some((draft.kind.item()?.to_string(), draft.parent.clone())),
            Output::Delta(_) => None,
        })
        .collect();
    let expected = [
        ("t1:spawn".to_owned(), None),
        ("t1:hi".to_owned(), Some(tieline_event::ItemId::from("t1:spawn"))),
    ];
    assert_eq!(parents, expected);
}

#[test]
fn a_message_of_a_turn_that_never_began_is_not_for_the_next_one() {
    let mut replay = Replay::new(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("one"));
    replay.session.steer(&Prompt::text("STALE")).unwrap();
    assert!(replay.session.interrupt());
    let id = replay.take_after_settle("initialize");
    replay.tell(&json!({"id": id, "result": {}}));
    let id = replay.take("thread/start")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"thread": {"id": "thread"}}}));
    replay.session.start_turn(&Prompt::text("two"));
    replay.settle();
    replay.name_turn("two");
    let said = replay.written.iter().any(|line| line.to_string().contains("STALE"));
    assert!(!said, "{:?}", replay.written);
    assert!(shown(&replay).contains("not_delivered"), "{}", shown(&replay));
}

#[test]
fn a_message_of_a_turn_that_was_stopped_begins_none() {
    let mut replay = running();
    replay.session.steer(&Prompt::text("and this")).unwrap();
    assert!(replay.session.interrupt());
    replay.settle();
    replay.end_turn("turn", "interrupted");
    let steer = replay.take("turn/steer");
    let error = json!({"code": -32600, "message": "no active turn to steer"});
    replay.tell(&json!({"id": steer["id"], "error": error}));
    assert!(replay.written.iter().all(|line| line["method"] != "turn/start"));
    assert!(shown(&replay).contains("steer_refused"), "{}", shown(&replay));
}

#[test]
fn an_older_server_is_steered_by_another_turn() {
    let mut replay = Replay::new(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    let id = replay.take_after_settle("initialize");
    replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.80.0 (y)"}}));
    let id = replay.take("thread/start")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"thread": {"id": "thread"}}}));
    replay.name_turn("turn");
    replay.session.steer(&Prompt::text("and this")).unwrap();
    replay.settle();
    let start = replay.take("turn/start");
    assert_eq!(start["params"]["input"][0]["text"], json!("and this"));
    replay.tell(&json!({"id": start["id"], "result": {"turn": {"id": "turn"}}}));
    replay.end_turn("turn", "completed");
    assert_eq!(shown(&replay).matches("turn.completed").count(), 1, "{}", shown(&replay));
}

#[test]
fn a_greeting_that_was_refused_is_said_again() {
    let mut replay = Replay::new(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("one"));
    let id = replay.take_after_settle("initialize");
    let error = json!({"code": -32603, "message": "not now"});
    replay.tell(&json!({"id": id, "error": error}));
    assert!(shown(&replay).contains("turn.completed: Failed"), "{}", shown(&replay));
    replay.session.start_turn(&Prompt::text("two"));
    let id = replay.take_after_settle("initialize");
    replay.tell(&json!({"id": id, "result": {}}));
    replay.take("thread/start");
}

#[test]
fn an_odd_item_at_its_end_does_not_make_a_turn_fail() {
    let mut replay = running();
    let items = json!([{"type": "fromTheFuture", "status": {"x": 1}},
        {"type": "agentMessage", "text": "done"}, 7]);
    let turn = json!({"id": "turn", "status": "completed", "items": items});
    replay.tell(&json!({
        "method": "turn/completed", "params": {"threadId": "thread", "turn": turn},
    }));
    let text = shown(&replay);
    assert!(text.contains("turn.completed: Completed") && text.contains("\"done\""), "{text}");
}

#[test]
fn everything_that_grows_streams() {
    let mut replay = running();
    let begin = |id: &str, kind: &str| {
        let item = json!({"type": kind, "id": id, "status": "inProgress"});
        json!({"method": "item/started", "params": {"threadId": "thread", "item": item}})
    };
    let grow = |method: &str, id: &str, more: Value| {
        let mut params = json!({"threadId": "thread", "turnId": "turn", "itemId": id});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"method": method, "params": params})
    };
    for (id, kind) in [("p", "plan"), ("m", "mcpToolCall"), ("r", "reasoning"), ("s", "reasoning")]
    {
        replay.tell(&begin(id, kind));
    }
    replay.tell(&grow("item/plan/delta", "p", json!({"delta": "- a"})));
    replay.tell(&grow("item/mcpToolCall/progress", "m", json!({"message": "half"})));
    let raw = |text: &str| json!({"delta": text, "contentIndex": 0});
    replay.tell(&grow("item/reasoning/textDelta", "r", raw("raw")));
    let part = |index: u32, text: &str| json!({"delta": text, "summaryIndex": index});
    let added = json!({"summaryIndex": 0});
    replay.tell(&grow("item/reasoning/summaryPartAdded", "s", added));
    replay.tell(&grow("item/reasoning/summaryTextDelta", "s", part(0, "one")));
    replay.tell(&grow("item/reasoning/textDelta", "s", raw("not shown beside a summary")));
    replay.tell(&grow("item/reasoning/summaryTextDelta", "s", part(1, "two")));
    let deltas: Vec<String> =
        shown(&replay).lines().filter(|line| line.contains('~')).map(str::to_owned).collect();
    assert_eq!(
        deltas,
        [
            r#"  ~ t1:p Plan@0 "- a""#,
            r#"  ~ t1:m Output@0 "half\n""#,
            r#"  ~ t1:r Reasoning@0 "raw""#,
            r#"  ~ t1:s Reasoning@0 "one""#,
            r#"  ~ t1:s Reasoning@3 "\n\ntwo""#,
        ]
    );
}

#[test]
fn figures_that_are_too_large_to_be_added_end_nothing() {
    let mut replay = running();
    let most = u64::MAX;
    for last in [0, most] {
        let total = json!({"inputTokens": last, "cachedInputTokens": 1, "outputTokens": last,
            "reasoningOutputTokens": 0, "totalTokens": last});
        let usage = json!({"total": total, "last": total, "modelContextWindow": null});
        let thread = replay.session.ledger().session().unwrap().to_owned();
        replay.tell(&json!({"method": "thread/tokenUsage/updated",
            "params": {"threadId": thread, "turnId": "turn", "tokenUsage": usage}}));
    }
    replay.end_turn("turn", "completed");
    let text = shown(&replay);
    assert_eq!(text.matches("turn.completed: Completed").count(), 1, "{text}");
}

#[test]
fn threads_that_are_each_other_s_parents_are_nobody_s_work() {
    let mut replay = running();
    for (thread, parent) in [("a", "a"), ("b", "c"), ("c", "b"), ("thread", "thread")] {
        let thread = json!({"id": thread, "parentThreadId": parent});
        replay.tell(&json!({"method": "thread/started", "params": {"thread": thread}}));
    }
    // A call that says it is the work of the very thread it started.
    for receiver in ["thread", "a", "b"] {
        let item = json!({"id": format!("call-{receiver}"), "type": "collabAgentToolCall", "tool": "spawnAgent", "status": "inProgress", "receiverThreadIds": [receiver]});
        replay.tell(&json!({"method": "item/started", "params": {"threadId": receiver, "turnId": "v", "item": item}}));
    }
    assert_eq!(replay.session.ledger().open_items().len(), 1);
    replay.end_turn("turn", "completed");
    assert_eq!(replay.session.ledger().open_items().len(), 0);
}

#[test]
fn pieces_of_what_never_began_begin_it() {
    let mut replay = running();
    let mut piece = |method: &str, item: &str, text: &str| {
        let params = json!({"threadId": "thread", "turnId": "turn", "itemId": item, "delta": text});
        replay.tell(&json!({"method": method, "params": params}));
    };
    piece("item/reasoning/textDelta", "thought", "hm");
    piece("item/commandExecution/outputDelta", "command", "printed");
    piece("item/plan/delta", "plan", "first");
    piece("item/agentMessage/delta", "said", "all ");
    piece("item/agentMessage/delta", "said", "of it");
    replay.end_turn("turn", "completed");
    let text = shown(&replay);
    assert!(text.contains("text \"all of it\""), "{text}");
    for kind in ["reasoning", "command", "plan", "agent_message"] {
        assert_eq!(text.matches(&format!("item.started: {kind}")).count(), 1, "{text}");
        assert_eq!(text.matches(&format!("item.completed: {kind}")).count(), 1, "{text}");
    }
    assert!(text.contains("printed"), "{text}");
}

#[test]
fn pieces_that_come_late_open_nothing_again() {
    let mut replay = running();
    let piece = json!({"method": "item/agentMessage/delta", "params": {"threadId": "thread", "turnId": "turn", "itemId": "m", "delta": "late"}});
    let item = json!({"type": "agentMessage", "id": "m", "text": "whole"});
    let params = json!({"threadId": "thread", "turnId": "turn", "item": item});
    replay.tell(&json!({"method": "item/completed", "params": params}));
    replay.tell(&piece);
    replay.end_turn("turn", "completed");
    let text = shown(&replay);
    assert!(text.contains("text \"whole\"") && !text.contains("late"), "{text}");
    // Nobody's text is kept, but it opens nothing that no turn would close.
    replay.tell(&piece);
    assert!(shown(&replay).contains("unparsed"), "{}", shown(&replay));
    assert_eq!(replay.session.ledger().open_items().len(), 0);
}

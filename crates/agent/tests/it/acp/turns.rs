//! Turns: how they run, how they end, what they consist of.

use serde_json::{Value, json};
use tieline_agent::{ExitInfo, Output};
use tieline_event::{
    ChangeKind, Content, EndSignal, Failure, FailureCode, ImageSource, ItemBody, ItemStatus, Mode,
    Origin, Prompt, ToolClass, ToolKind, TurnStatus,
};

use super::{ready, running};

fn text(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

#[test]
fn each_reason_to_stop_has_its_end() {
    for (reason, status, code) in [
        ("end_turn", TurnStatus::Completed, None),
        ("cancelled", TurnStatus::Interrupted, None),
        ("max_tokens", TurnStatus::Failed, Some(FailureCode::MaxTokens)),
        ("max_turn_requests", TurnStatus::Failed, Some(FailureCode::MaxTurns)),
        ("refusal", TurnStatus::Failed, Some(FailureCode::Agent)),
        ("tomorrow", TurnStatus::Failed, Some(FailureCode::Protocol)),
    ] {
        let mut stage = running(Mode::Default);
        stage.end_turn(reason);
        let end = stage.end();
        assert_eq!((end.status, end.error.map(|it| it.code)), (status, code), "{reason}");
        assert_eq!((end.signal, end.stop_reason.as_deref()), (EndSignal::Wire, Some(reason)));
    }
}

#[test]
fn each_refusal_of_a_prompt_has_its_failure() {
    for (code, message, expected) in [
        (-32000, "Authentication required", FailureCode::NotLoggedIn),
        (-32002, "no such session", FailureCode::SessionUnknown),
        (-32602, "bad prompt", FailureCode::BadRequest),
        (-32603, "429 Too Many Requests", FailureCode::RateLimited),
        (-32603, "the provider is overloaded", FailureCode::ProviderUnavailable),
        (-32603, "thread not found: 01a1", FailureCode::SessionUnknown),
        (-32603, "something else", FailureCode::Agent),
    ] {
        let mut stage = running(Mode::Default);
        stage.refuse("session/prompt", code, message);
        assert_eq!(stage.end().error.unwrap().code, expected, "{message}");
    }
}

#[test]
fn what_an_agent_says_of_its_provider_is_understood() {
    for (message, data, code, status) in [
        ("API Error: 400 no such model", "unknown", FailureCode::BadRequest, Some(400)),
        (
            "API Error: Request rejected (429) · wait",
            "rate_limit",
            FailureCode::RateLimited,
            Some(429),
        ),
        ("API Error: 403 not you", "unknown", FailureCode::NotLoggedIn, Some(403)),
        ("API Error: 529 busy", "server_error", FailureCode::ProviderUnavailable, Some(529)),
        ("API Error: Connection dropped", "server_error", FailureCode::StreamLost, None),
        ("the answer is too long", "max_output_tokens", FailureCode::MaxTokens, None),
        ("something else", "unknown", FailureCode::Agent, None),
    ] {
        let mut stage = running(Mode::Default);
        let asked = stage.take("session/prompt");
        let error = json!({"code": -32603, "message": format!("Internal error: {message}"),
                           "data": {"errorKind": data}});
        stage.tell(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
        let failure = stage.end().error.unwrap();
        assert_eq!((failure.code, failure.http_status), (code, status), "{message}");
        assert!(!failure.message.contains("Internal error"), "{failure:?}");
    }
}

#[test]
fn a_failure_of_another_tieline_is_told_as_it_was() {
    let mut stage = running(Mode::Default);
    let asked = stage.take("session/prompt");
    let failure = Failure::new(FailureCode::Budget, "too dear").hint("pay").detail("words");
    let data = json!({"code": "budget", "message": "too dear", "hint": "pay", "httpStatus": null,
                      "detail": "words"});
    let error = json!({"code": -32603, "message": "too dear; pay", "data": data});
    stage.tell(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    assert_eq!(stage.end().error.unwrap(), failure);
}

#[test]
fn what_an_interrupt_cut_off_is_cancelled() {
    let mut stage = running(Mode::Default);
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "in_progress"}));
    stage.update(text("agent_message_chunk", "half a"));
    assert!(stage.session.interrupt());
    stage.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"}),
    );
    stage.end_turn("cancelled");
    let items = stage.items();
    let ended: Vec<_> = items.iter().map(|it| (it.body.name(), it.status)).collect();
    let cut = ItemStatus::Cancelled;
    assert_eq!(ended, [("tool_call", cut), ("agent_message", cut)], "{}", stage.shown());
}

#[test]
fn tools_of_servers_and_searches_are_known_as_such() {
    let mut stage = running(Mode::Default);
    for (id, more) in [
        ("a", json!({"name": "mcp__fake__echo"})),
        ("b", json!({"name": "echo", "_meta": {"tieline": {"server": "fake"}}})),
        (
            "c",
            json!({"title": "mcp.fake.echo", "_meta": {"is_mcp_tool_call": true},
                     "rawOutput": {"result": {"content": [{"type": "text", "text": "hi"}]}},
                     "rawInput": {"server": "fake", "tool": "echo", "arguments": {}}}),
        ),
        ("d", json!({"name": "WebSearch", "rawInput": {"query": "rust"}})),
        (
            "e",
            json!({"title": "Web search: rust", "rawInput": {"type": "webSearch", "query": "rust"}}),
        ),
    ] {
        let mut call =
            json!({"sessionUpdate": "tool_call", "toolCallId": id, "status": "completed"});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        stage.update(call);
    }
    let items = stage.items();
    let (searches, calls): (Vec<_>, Vec<_>) =
        items.iter().partition(|it| it.body.name() == "web_search");
    assert_eq!(searches.len(), 2);
    for search in searches {
        assert!(matches!(&search.body, ItemBody::WebSearch { query, .. } if query == "rust"));
    }
    assert_eq!(calls.len(), 3);
    let ItemBody::ToolCall { output, .. } = &calls[2].body else { panic!("{:?}", calls[2]) };
    assert_eq!(output, &[Content::text("hi")], "without what is around it");
    for item in calls {
        let ItemBody::ToolCall { class, tool, server, .. } = &item.body else { panic!("{item:?}") };
        let told = (*class, tool.as_str(), server.as_deref());
        assert_eq!(told, (ToolClass::Mcp, "echo", Some("fake")));
    }
}

#[test]
fn a_message_ends_where_something_else_begins() {
    let mut stage = running(Mode::Default);
    stage.update(text("agent_thought_chunk", "h"));
    stage.update(text("agent_thought_chunk", "m"));
    stage.update(text("agent_message_chunk", "one "));
    stage.update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}));
    stage.update(text("agent_message_chunk", "message"));
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "in_progress"}));
    stage.update(text("agent_message_chunk", "another"));
    let named = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
    stage.update(named("m1", "a"));
    stage.update(named("m1", "b"));
    stage.update(named("m2", "c"));
    stage.end_turn("end_turn");
    let said: Vec<String> = stage
        .items()
        .into_iter()
        .filter_map(|item| match item.body {
            ItemBody::AgentMessage { text } => Some(text.preview().to_owned()),
            ItemBody::Reasoning { text, .. } => Some(format!("({})", text.preview())),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["(hm)", "one message", "another", "ab", "c"]);
    assert_eq!(stage.end().text.preview(), "c");
    assert_eq!(stage.end().usage.unwrap().context_used, Some(1));
}

#[test]
fn the_users_words_are_known_when_the_agent_repeats_them() {
    let mut stage = running(Mode::Default);
    stage.update(text("user_message_chunk", "g"));
    stage.update(text("user_message_chunk", "o"));
    stage.update(text("agent_message_chunk", "yes"));
    stage.update(text("user_message_chunk", "something the user typed elsewhere"));
    stage.end_turn("end_turn");
    let users = stage.items().into_iter().filter(|it| it.body.name() == "user_message").count();
    assert_eq!(users, 1, "{}", stage.shown());
}

#[test]
fn tool_calls_become_commands_files_and_calls() {
    let mut stage = running(Mode::Default);
    let call = |id: &str, more: Value| {
        let mut call =
            json!({"sessionUpdate": "tool_call", "toolCallId": id, "status": "completed"});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    stage.update(call("a", json!({"kind": "execute", "title": "ls", "rawInput": {"command": ["bash", "-lc", "ls"]},
                                  "rawOutput": {"stdout": "x\n", "exit_code": 2}, "locations": [{"path": "/w/d"}]})));
    stage.update(call(
        "b",
        json!({"kind": "edit", "title": "Edit", "content": [
        {"type": "diff", "path": "/w/new", "newText": "n"},
        {"type": "diff", "path": "/w/old", "oldText": "o", "newText": "n"}]}),
    ));
    stage.update(call(
        "c",
        json!({"kind": "delete", "title": "rm", "locations": [{"path": "/w/old"}]}),
    ));
    stage.update(call("d", json!({"kind": "search", "title": "grep x", "name": "grep", "rawInput": {"q": 1e2},
        "locations": [{"path": "/w/a", "line": 3}], "content": [
        {"type": "content", "content": {"type": "text", "text": "found"}},
        {"type": "content", "content": {"type": "resource_link", "uri": "file:///w/a", "name": "a"}}]})));
    let items = stage.items();
    let ItemBody::Command { command, output, exit_code, gist, .. } = &items[0].body else {
        panic!("{:?}", items[0])
    };
    assert_eq!((command.as_str(), output.preview(), *exit_code), ("ls", "x\n", Some(2)));
    assert_eq!(gist.as_ref().unwrap().places[0].path, "/w/d");
    let ItemBody::FileChange { changes } = &items[1].body else { panic!("{:?}", items[1]) };
    assert_eq!(
        changes.iter().map(|it| it.kind).collect::<Vec<_>>(),
        [ChangeKind::Add, ChangeKind::Update]
    );
    assert_eq!(changes[1].old_text.as_ref().unwrap().preview(), "o");
    let ItemBody::FileChange { changes } = &items[2].body else { panic!("{:?}", items[2]) };
    assert_eq!(changes[0].kind, ChangeKind::Delete);
    let ItemBody::ToolCall { tool, input, output, gist, .. } = &items[3].body else {
        panic!("{:?}", items[3])
    };
    assert_eq!((tool.as_str(), input.as_ref().unwrap().as_str()), ("grep", r#"{"q":100.0}"#));
    assert_eq!(output.len(), 2);
    let gist = gist.as_ref().unwrap();
    assert_eq!((gist.kind, gist.places[0].line), (ToolKind::Search, Some(3)));
}

#[test]
fn a_change_that_failed_stays_and_says_why() {
    let diff = json!({"type": "diff", "path": "/w/a", "oldText": "1\n", "newText": "2\n"});
    let why = "old_string not found";
    let words = json!([{"type": "content", "content": {"type": "text", "text": why}}]);
    let failed = |more: Value| {
        let mut failed =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"});
        failed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        failed
    };
    for (end, n_notices) in [
        (json!({"content": words, "rawOutput": why}), 1),
        (json!({"content": [diff, words[0]]}), 1),
        (json!({"rawOutput": why}), 1),
        (json!({"content": []}), 0),
    ] {
        let mut stage = running(Mode::Default);
        stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit a", "kind": "edit",
            "content": [diff], "locations": [{"path": "/w/a", "line": 7}]}));
        stage.update(failed(end.clone()));
        let item = stage.items().remove(0);
        let ItemBody::FileChange { changes } = &item.body else { panic!("{item:?}") };
        assert_eq!(item.status, ItemStatus::Failed);
        assert_eq!(changes[0].new_text.as_ref().unwrap().preview(), "2\n", "{end}");
        assert_eq!(stage.notices("patch_failed"), n_notices, "{end}");
        assert_eq!(stage.shown().matches(why).count(), n_notices, "{end}: {}", stage.shown());
    }
}

#[test]
fn a_change_that_only_words_tell_of_is_a_call_with_its_words() {
    for status in ["completed", "failed"] {
        let mut stage = running(Mode::Default);
        stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit a", "kind": "edit",
            "status": "in_progress", "locations": [{"path": "/w/a", "line": 7}]}));
        assert_eq!(stage.items()[0].body.name(), "file_change");
        stage.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status,
            "content": [{"type": "content", "content": {"type": "text", "text": "no such text"}}]}),
        );
        let item = stage.items().remove(0);
        let ItemBody::ToolCall { output, gist, .. } = &item.body else { panic!("{item:?}") };
        assert_eq!(output, &[Content::text("no such text")]);
        let gist = gist.as_ref().unwrap();
        assert_eq!((gist.kind, gist.places[0].line), (ToolKind::Edit, Some(7)));
    }
}

#[test]
fn an_update_before_its_call_makes_the_call_and_one_after_its_end_changes_nothing() {
    let mut stage = running(Mode::Default);
    let update = |status: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "early", "status": status});
    stage.update(update("in_progress"));
    stage.update(update("completed"));
    stage.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"}),
    );
    let items = stage.items();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].status, ItemStatus::Ok);
    // The same name again is another call.
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "again", "status": "failed"}));
    assert_eq!(stage.items()[1].status, ItemStatus::Failed);
}

#[test]
fn a_call_whose_input_is_still_written_is_told_when_there_is_something_to_tell() {
    let mut stage = running(Mode::Default);
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Terminal", "kind": "execute", "status": "pending", "rawInput": {}}));
    assert!(stage.items().is_empty());
    stage.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "rawInput": {"command": "ls"}}));
    assert_eq!(stage.items()[0].body.name(), "command");
    assert_eq!(stage.items()[0].status, ItemStatus::InProgress);
}

#[test]
fn output_streams_under_either_name() {
    let mut stage = running(Mode::Default);
    stage.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "make", "kind": "execute",
        "status": "in_progress", "content": [{"type": "terminal", "terminalId": "t"}],
        "_meta": {"terminal_info": {"terminal_id": "t", "cwd": "/workspace/sub"}}}),
    );
    for (key, data) in [("terminal_output", "one\n"), ("terminal_output_delta", "two\n")] {
        stage.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t",
            "_meta": {key: {"terminal_id": "t", "data": data}}}));
    }
    let deltas: Vec<_> = stage
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Delta(delta) => Some((delta.offset, delta.text.clone())),
            Output::Event(_) => None,
        })
        .collect();
    assert_eq!(deltas, [(0, "one\n".to_owned()), (4, "two\n".to_owned())]);
    stage
        .update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed",
        "_meta": {"terminal_exit": {"terminal_id": "t", "exit_code": 3, "signal": null}}}));
    let ItemBody::Command { command, output, exit_code, cwd, .. } = &stage.items()[0].body else {
        panic!()
    };
    assert_eq!((command.as_str(), output.preview(), *exit_code), ("make", "one\ntwo\n", Some(3)));
    assert_eq!(cwd.as_deref(), Some("/workspace/sub"));
}

#[test]
fn notices_titles_plans_and_compaction_are_told() {
    let mut stage = running(Mode::Default);
    stage.update(json!({"sessionUpdate": "notice", "severity": "warning", "title": "Careful", "description": "hot"}));
    stage.update(
        json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"}),
    );
    stage.update(json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": {"type": "text", "text": "x"}}));
    stage.update(
        json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}),
    );
    stage.update(json!({"sessionUpdate": "session_info_update", "title": "Tidy up"}));
    stage.update(json!({"sessionUpdate": "plan", "entries": [
        {"content": "a", "priority": "high", "status": "completed"}, {"content": "b", "priority": "low", "status": "pending"}]}));
    let told = stage.shown();
    assert!(told.contains("Warning agent_notice: Careful: hot"), "{told}");
    assert!(told.contains("plan.updated: Completed a; Pending b"), "{told}");
    assert_eq!(stage.items()[0].status, ItemStatus::Ok);
    assert!(!told.contains("unparsed"), "{told}");
}

#[test]
fn what_a_turn_cost_is_what_was_added() {
    let mut stage = ready(Mode::Default);
    for (cost, added) in [(0.5, 0.5), (0.75, 0.25)] {
        stage.start_turn("go");
        let cost = json!({"amount": cost, "currency": "USD"});
        stage.update(
            json!({"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost}),
        );
        let usage =
            json!({"totalTokens": 9, "inputTokens": 4, "outputTokens": 5, "thoughtTokens": 2});
        stage.respond("session/prompt", json!({"stopReason": "end_turn", "usage": usage}));
        let usage = stage.end().usage.unwrap();
        assert_eq!((usage.cost_usd, usage.context_window), (Some(added), Some(100)));
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.reasoning_tokens), (4, 5, 2));
    }
}

#[test]
fn a_prompt_is_written_in_the_pieces_the_agent_takes() {
    let prompt = Prompt {
        content: vec![
            Content::text("look"),
            Content::Image {
                mime: "image/png".to_owned(),
                source: ImageSource::Base64("aGk=".into()),
            },
            Content::Resource { uri: "file:///a".to_owned(), text: "body".into() },
            Content::Link { uri: "file:///w/b.rs".to_owned(), name: None },
            Content::Skill { name: "dance".to_owned(), path: None },
        ],
        origin: Origin::Client,
        ..Prompt::default()
    };
    let mut stage = ready(Mode::Default);
    stage.session.start_turn(&prompt);
    stage.settle();
    assert_eq!(
        stage.take("session/prompt")["params"]["prompt"],
        json!([
            {"type": "text", "text": "look"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "body"}},
            {"type": "resource_link", "name": "b.rs", "uri": "file:///w/b.rs"},
            {"type": "text", "text": "/dance"},
        ])
    );
}

#[test]
fn a_message_during_a_turn_is_steering_or_refused() {
    let mut stage = running(Mode::Default);
    stage.session.steer(&Prompt::text("faster")).unwrap();
    stage.settle();
    let steering = stage.respond("_session/steering", json!({"outcome": "injected"}));
    assert_eq!(steering["prompt"][0]["text"], "faster");
    // A turn that nobody here knows of is not to begin.
    assert_eq!(steering["_meta"]["steering"]["idleBehavior"], "promptRequired");
    // One that comes too late begins a turn of its own.
    stage.session.steer(&Prompt::text("and now?")).unwrap();
    stage.settle();
    stage.end_turn("end_turn");
    stage.respond("_session/steering", json!({"outcome": "promptRequired"}));
    assert_eq!(stage.take("session/prompt")["params"]["prompt"][0]["text"], "and now?");

    let mut stage = super::Stage::new(&super::launch(Mode::Default));
    stage.respond("initialize", json!({"protocolVersion": 1}));
    stage.respond("session/new", json!({"sessionId": "s1"}));
    stage.start_turn("go");
    assert!(stage.session.steer(&Prompt::text("x")).unwrap_err().0.contains("--queue"));
}

#[test]
fn an_interrupt_is_a_cancel_and_an_error_after_it_is_still_an_interrupt() {
    let mut stage = running(Mode::Default);
    assert!(stage.session.interrupt());
    stage.settle();
    assert_eq!(stage.take("session/cancel")["params"], json!({"sessionId": "s1"}));
    stage.refuse("session/prompt", -32603, "aborted");
    assert_eq!(stage.end().status, TurnStatus::Interrupted);
    // Nothing of it is left for the next turn.
    stage.start_turn("again");
    stage.end_turn("end_turn");
    assert_eq!(stage.end().status, TurnStatus::Completed);
}

#[test]
fn an_interrupt_before_the_session_is_there_ends_the_turn() {
    let mut stage = super::Stage::new(&super::launch(Mode::Default));
    stage.start_turn("go");
    assert!(stage.session.interrupt());
    stage.settle();
    assert_eq!(stage.end().status, TurnStatus::Interrupted);
    stage.respond("initialize", super::hello());
    stage.respond("session/new", json!({"sessionId": "s1"}));
    assert!(stage.written.is_empty(), "nothing is said to the model: {:?}", stage.written);
}

#[test]
fn a_death_in_a_turn_closes_what_was_open() {
    let mut stage = running(Mode::Default);
    stage.update(text("agent_message_chunk", "half"));
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "in_progress"}));
    stage.finish(&ExitInfo {
        code: Some(3),
        stderr: "out of cheese".to_owned(),
        ..ExitInfo::default()
    });
    let end = stage.end();
    let error = end.error.unwrap();
    assert_eq!((error.code, end.signal), (FailureCode::AgentExited, EndSignal::Process));
    assert!(error.detail.unwrap().contains("cheese"));
    assert_eq!(stage.items()[1].status, ItemStatus::Cancelled);
}

#[test]
fn a_call_may_be_its_own_parent_and_parents_may_form_a_chain() {
    const N: usize = 5_000;
    let own = vec![(0, 0)];
    let pair = vec![(0, 1), (1, 0)];
    let chain = (0..N).map(|n| (n + 1, n)).collect();
    for links in [own, pair, chain] {
        let mut stage = running(Mode::Default);
        for (id, parent) in &links {
            stage.update(json!({
                "sessionUpdate": "tool_call",
                "toolCallId": format!("c{id}"),
                "title": "work",
                "status": "in_progress",
                "_meta": {"claudeCode": {"parentToolUseId": format!("c{parent}"), "toolName": "Task"}},
            }));
        }
        assert_eq!(stage.session.ledger().open_items().len(), links.len());
        stage.end_turn("end_turn");
        assert_eq!(stage.session.ledger().open_items().len(), 0);
    }
}

#[test]
fn pieces_of_what_never_began_begin_it() {
    let mut stage = running(Mode::Default);
    let chunk = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    stage.update(chunk("agent_thought_chunk", "hm"));
    stage.update(json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": "never-begun",
        "_meta": {"terminal_output": {"terminal_id": "never-begun", "data": "printed"}},
    }));
    stage.update(chunk("agent_message_chunk", "all "));
    stage.update(chunk("agent_message_chunk", "of it"));
    stage.end_turn("end_turn");
    assert_eq!(stage.end().text.preview(), "all of it");
    let text = stage.shown();
    assert!(text.contains("printed"), "{text}");
    assert_eq!(text.matches("item.started: agent_message").count(), 1, "{text}");
}

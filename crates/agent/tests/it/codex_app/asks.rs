//! What the server asks, and how it is answered.

use super::*;

#[test]
fn the_server_s_ids_and_ours_are_two_worlds() {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let ours = replay.written[0]["id"].clone();
    // The server asks with the id that our turn/start waits under.
    replay.tell(&json!({
        "method": "item/commandExecution/requestApproval", "id": ours,
        "params": {"threadId": "thread", "itemId": "call", "command": "ls"},
    }));
    let request = replay.requests[&ours.to_string()].clone();
    replay.session.answer(&request, &Answer::allow(), Origin::Human, None).unwrap();
    replay.settle();
    assert_eq!(
        replay.written.pop().unwrap(),
        json!({"id": ours, "result": {"decision": "accept"}})
    );
    replay.name_turn("turn");
    replay.end_turn("turn", "completed");
    assert!(shown(&replay).contains("turn.completed: Completed"), "{}", shown(&replay));
}

#[test]
fn what_the_server_asks_and_we_do_not_know_is_refused_at_once() {
    let mut replay = running();
    replay.tell(&json!({"method": "attestation/generate", "id": 3, "params": {}}));
    let refusal = replay.written.remove(0);
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(3), &json!(-32601)));
    let call = json!({"threadId": "thread", "callId": "c", "tool": "open_door", "arguments": {}});
    replay.tell(&json!({"method": "item/tool/call", "id": 4, "params": call}));
    assert_eq!(replay.written.remove(0)["result"]["success"], json!(false));
    replay.tell(&json!({
        "method": "item/fileChange/requestApproval", "id": 5, "params": {"itemId": 7},
    }));
    assert_eq!(replay.written.remove(0)["error"]["code"], json!(-32601));
    assert_eq!(replay.session.ledger().open_requests().count(), 0);
}

#[test]
fn every_decision_about_a_command_goes_back_in_the_server_s_words() {
    let params = json!({
        "itemId": "call", "command": "/bin/bash -lc 'git push'", "reason": "needs network",
        "proposedExecpolicyAmendment": ["git", "push"],
        "networkApprovalContext": {"host": "example.org", "protocol": "https"},
    });
    let decide = |answer: Answer| {
        let mut replay = running();
        let request = replay.ask("item/commandExecution/requestApproval", params.clone());
        assert!(shown(&replay).contains("Connect to example.org (https)"), "{}", shown(&replay));
        replay.answer_with(&request, &answer)["result"]["decision"].clone()
    };
    assert_eq!(decide(allow(Scope::Once)), json!("accept"));
    assert_eq!(decide(allow(Scope::Session)), json!("acceptForSession"));
    assert_eq!(
        decide(allow(Scope::Always)),
        json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "push"]}})
    );
    assert_eq!(decide(Answer::Deny { message: None, stop: false }), json!("decline"));
    assert_eq!(decide(Answer::Deny { message: None, stop: true }), json!("cancel"));
    let rule = json!({"host": "example.org", "action": "allow"});
    let mut replay = running();
    let request = replay.ask(
        "item/commandExecution/requestApproval",
        json!({"itemId": "call", "proposedNetworkPolicyAmendments": [
            {"host": "example.org", "action": "deny"}, rule,
        ]}),
    );
    assert_eq!(
        replay.answer_with(&request, &allow(Scope::Always))["result"]["decision"],
        json!({"applyNetworkPolicyAmendment": {"network_policy_amendment": rule}})
    );
}

#[test]
fn a_no_with_a_reason_reaches_the_model_as_a_message() {
    let mut replay = running();
    let request = replay.ask("item/fileChange/requestApproval", json!({"itemId": "call"}));
    let no = Answer::Deny { message: Some("use the other file".into()), stop: false };
    assert_eq!(replay.answer_with(&request, &no)["result"]["decision"], json!("decline"));
    let steer = replay.take("turn/steer");
    assert_eq!(steer["params"]["input"][0]["text"], json!("use the other file"));
    assert_eq!(steer["params"]["expectedTurnId"], json!("turn"));
    // A policy's reason is for the record alone.
    let request = replay.ask("item/fileChange/requestApproval", json!({"itemId": "call"}));
    replay.session.answer(&request, &no, Origin::Engine, None).unwrap();
    replay.settle();
    assert_eq!(replay.written.len(), 1, "{:?}", replay.written);
}

#[test]
fn a_form_of_an_mcp_server_is_questions_and_its_answers_have_types() {
    let mut replay = running();
    let schema = json!({"type": "object", "properties": {
        "count": {"type": "integer", "title": "How many?"}, "sure": {"type": "boolean"},
    }});
    let params = json!({
        "serverName": "fake", "mode": "form", "message": "Fill this in", "requestedSchema": schema,
    });
    let request = replay.ask("mcpServer/elicitation/request", params.clone());
    let answers = [("count", "3"), ("sure", "yes")];
    let answers = answers.map(|(id, text)| (id.to_owned(), vec![text.to_owned()])).into();
    let answer = replay.answer_with(&request, &Answer::Answers { answers });
    assert_eq!(
        answer["result"],
        json!({"action": "accept", "content": {"count": 3, "sure": true}, "_meta": null})
    );
    let request = replay.ask("mcpServer/elicitation/request", params);
    let no = replay.answer_with(&request, &Answer::Deny { message: None, stop: false });
    assert_eq!(no["result"]["action"], json!("decline"));
}

#[test]
fn a_tool_of_an_mcp_server_may_be_allowed_for_longer() {
    let mut replay = running();
    let params = json!({
        "serverName": "fake", "mode": "form", "message": "Allow echo?",
        "requestedSchema": {"type": "object", "properties": {}},
        "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"],
            "tool_params": {"text": "hi"}},
    });
    let request = replay.ask("mcpServer/elicitation/request", params.clone());
    assert!(shown(&replay).contains("[allow session always deny stop]"), "{}", shown(&replay));
    let yes = replay.answer_with(&request, &allow(Scope::Session));
    let expected = json!({"action": "accept", "content": {}, "_meta": {"persist": "session"}});
    assert_eq!(yes["result"], expected);
    let request = replay.ask("mcpServer/elicitation/request", params);
    let answers = Answer::Answers { answers: BTreeMap::new() };
    let refused = replay.session.answer(&request, &answers, Origin::Human, None);
    assert!(refused.unwrap_err().0.contains("a yes or a no"));
}

#[test]
fn a_question_about_a_tool_names_the_call_that_waits() {
    let mut replay = running();
    let call = |id: &str, server: &str, tool: &str, text: &str| {
        json!({"threadId": "thread", "turnId": "turn", "item": {
            "type": "mcpToolCall", "id": id, "server": server, "tool": tool,
            "status": "inProgress", "arguments": {"text": text},
        }})
    };
    let calls =
        [("a", "fake", "echo", "hi"), ("b", "fake", "other", "hi"), ("c", "fake", "echo", "ho")];
    for (id, server, tool, text) in calls.into_iter().chain([("d", "odd", "echo", "hi")]) {
        replay.tell(&json!({"method": "item/started", "params": call(id, server, tool, text)}));
    }
    let mut ask = |server: &str, text: &str, answer: &Answer| {
        let params = json!({
            "threadId": "thread", "turnId": "turn", "serverName": server, "mode": "form",
            "message": format!("Allow the {server} MCP server to run tool \"echo\"?"),
            "requestedSchema": {"type": "object", "properties": {}},
            "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"text": text}},
        });
        let request = replay.ask("mcpServer/elicitation/request", params);
        replay.answer_with(&request, answer);
        let opened = replay.outputs.iter().rev().find_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::RequestOpened(request) => Some(request.item.clone()),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        opened.unwrap().map(|item| item.to_string())
    };
    let yes = Answer::allow();
    assert_eq!(ask("fake", "ho", &yes).as_deref(), Some("t1:c"));
    assert_eq!(ask("odd", "hi", &yes).as_deref(), Some("t1:d"));
    assert_eq!(ask("gone", "hi", &yes), None);
    // A person's no is told as one, though the call fails on the wire.
    let no = Answer::Deny { message: None, stop: false };
    assert_eq!(ask("fake", "hi", &no).as_deref(), Some("t1:a"));
    let mut failed = call("a", "fake", "echo", "hi");
    failed["item"]["status"] = json!("failed");
    failed["item"]["error"] = json!({"message": "user rejected MCP tool call"});
    replay.tell(&json!({"method": "item/completed", "params": failed}));
    let ended = replay.outputs.iter().rev().find_map(|output| match output {
        Output::Event(draft) => match &draft.kind {
            Kind::ItemCompleted(item) => Some(item.status),
            _ => None,
        },
        Output::Delta(_) => None,
    });
    assert_eq!(ended, Some(ItemStatus::Declined));
}

#[test]
fn permissions_are_given_as_asked_or_not_at_all() {
    let wanted = json!({"network": {"enabled": true}});
    let mut replay = running();
    let params = json!({"itemId": "call", "cwd": "/workspace", "permissions": wanted});
    let request = replay.ask("item/permissions/requestApproval", params.clone());
    let yes = replay.answer_with(&request, &allow(Scope::Session));
    assert_eq!(yes["result"], json!({"permissions": wanted, "scope": "session"}));
    let request = replay.ask("item/permissions/requestApproval", params);
    let no = replay.answer_with(&request, &Answer::Deny { message: None, stop: false });
    assert_eq!(no["result"], json!({"permissions": {}, "scope": "turn"}));
}

#[test]
fn the_older_approvals_are_answered_in_their_own_words() {
    let mut replay = running();
    let params = json!({"callId": "call", "command": ["bash", "-lc", "ls"], "cwd": "/w"});
    let request = replay.ask("execCommandApproval", params);
    assert!(shown(&replay).contains("\"Run ls\""), "{}", shown(&replay));
    let answer = replay.answer_with(&request, &allow(Scope::Session));
    assert_eq!(answer["result"], json!({"decision": "approved_for_session"}));
    let changes = json!({"/w/a.txt": {"type": "add", "content": "x"}});
    let request = replay.ask("applyPatchApproval", json!({"callId": "p", "fileChanges": changes}));
    assert!(shown(&replay).contains("Change /w/a.txt"), "{}", shown(&replay));
    let answer = replay.answer_with(&request, &Answer::Deny { message: None, stop: true });
    assert_eq!(answer["result"], json!({"decision": "abort"}));
}

#[test]
fn nothing_that_an_approval_grants_is_hidden() {
    let asked = |method: &str, params: Value| {
        let mut replay = running();
        replay.ask(method, params);
        let opened = replay.outputs.iter().find_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::RequestOpened(request) => Some(request.clone()),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        serde_json::to_value(opened.unwrap()).unwrap()
    };
    let files = json!({"itemId": "i", "reason": "please", "grantRoot": "/etc"});
    let files = asked("item/fileChange/requestApproval", files);
    assert_eq!(files["reason"], "please");
    assert_eq!(files["body"]["bounds"]["opens"], "/etc");
    let command = json!({
        "itemId": "i", "command": "ls", "cwd": "/elsewhere",
        "additionalPermissions": {"network": {"enabled": true}},
    });
    let command = asked("item/commandExecution/requestApproval", command);
    let wanted = &command["body"]["bounds"]["permissions"];
    assert_eq!(*wanted, json!({"network": {"enabled": true}}));
    assert_eq!(command["body"]["cwd"], "/elsewhere");
    let tool = json!({"serverName": "fake", "message": "Allow?\nAll of it.", "_meta": {
        "codex_approval_kind": "mcp_tool_call", "persist": "session", "tool_params": {"x": 1},
    }});
    let tool = asked("mcpServer/elicitation/request", tool);
    assert_eq!(tool["body"]["given"], json!({"x": 1}));
    assert_eq!(tool["reason"], "Allow?\nAll of it.");
    assert_eq!(tool["body"]["why"], "the MCP server \"fake\" asks");
}

#[test]
fn another_agent_s_request_is_answered_when_the_turn_is_over() {
    let mut replay = running();
    replay.tell(&json!({"method": "item/completed", "params": {"threadId": "thread", "item": {
        "type": "collabAgentToolCall", "id": "spawn", "status": "completed",
        "receiverThreadIds": ["helper"],
    }}}));
    let params = json!({"threadId": "helper", "itemId": "x", "command": "ls"});
    let ask = json!({"method": "item/commandExecution/requestApproval", "id": 4, "params": params});
    replay.tell(&ask);
    replay.end_turn("turn", "completed");
    assert_eq!(replay.written.pop().unwrap()["id"], json!(4));
}

#[test]
fn a_secret_answer_is_known_to_the_agent_alone() {
    let mut replay = running();
    let question = json!({"id": "key", "question": "Key?", "isSecret": true, "options": null});
    let request = replay.ask("item/tool/requestUserInput", json!({"questions": [question]}));
    let answers = [("key".to_owned(), vec!["hunter2".to_owned()])].into();
    let answer = Answer::Answers { answers };
    replay.session.answer(&request, &answer, Origin::Human, None).unwrap();
    let mut kept = Vec::new();
    let (written, _) = replay.session.take_writes(|_, bytes| kept.extend_from_slice(&bytes));
    assert!(String::from_utf8(written).unwrap().contains("hunter2"));
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.contains("[secret]") && !kept.contains("hunter2"), "{kept}");
    let told = format!("{:?}", replay.session.take_outputs());
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_change_that_got_a_no_and_stop_was_declined() {
    let mut replay = running();
    let change = json!({"path": "/w/a", "kind": {"type": "add"}, "diff": "x"});
    let item =
        json!({"type": "fileChange", "id": "c", "changes": [change], "status": "inProgress"});
    replay.tell(&json!({"method": "item/started", "params": {"threadId": "thread", "item": item}}));
    let request = replay.ask("item/fileChange/requestApproval", json!({"itemId": "c"}));
    replay.answer_with(&request, &Answer::Deny { message: None, stop: true });
    replay.end_turn("turn", "interrupted");
    let text = shown(&replay);
    assert!(text.contains("item.completed: file_change t1:c Declined"), "{text}");
}

/// Only drivers whose options say more than their kinds see the option itself.
#[test]
fn an_option_that_is_chosen_by_its_id_is_its_kind() {
    for (option, decision) in
        [("allow", "accept"), ("session", "acceptForSession"), ("deny", "decline")]
    {
        let mut replay = running();
        let params = json!({"itemId": "call", "command": "ls"});
        let request = replay.ask("item/commandExecution/requestApproval", params);
        let answer = Answer::Choose { option: option.to_owned() };
        let sent = replay.answer_with(&request, &answer);
        assert_eq!(sent["result"], json!({"decision": decision}));
    }
    let mut replay = running();
    let params = json!({"itemId": "call", "command": "ls"});
    let request = replay.ask("item/commandExecution/requestApproval", params);
    let odd = Answer::Choose { option: "y".to_owned() };
    let refused = replay.session.answer(&request, &odd, Origin::Human, None).unwrap_err();
    assert!(refused.0.contains("no option"), "{refused}");
    replay.answer_with(&request, &Answer::allow());
}

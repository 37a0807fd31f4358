//! What no recording has: single lines, odd shapes, old wires.

use tieline_agent::codex::Version;
use tieline_agent::codex_exec::{ExecDriver, Setup};
use tieline_agent::{ExitInfo, Ledger, Output, Session, TurnEnd};
use tieline_event::{
    AskWhen, Content, EndSignal, FailureCode, FrameNo, ImageSource, Kind, Mode, Policy, Prompt,
    Reach, TurnStatus, Usage,
};

use super::{Replay, SESSION, STARTED, TURN, VERSION, new_thread};
use crate::show::show;

/// A process at the start of its turn, and what it says then.
fn after(setup: Setup, lines: &[&str]) -> Replay {
    let ledger = Ledger::new(0, setup.session.clone());
    let mut replay = Replay::new(setup, ledger, &Prompt::text("go"));
    replay.outputs.clear();
    for line in lines {
        replay.read(format!("{line}\n").as_bytes());
    }
    replay
}

fn code(code: i32) -> ExitInfo {
    ExitInfo { code: Some(code), ..ExitInfo::default() }
}

#[test]
fn the_end_of_the_turn_is_the_wire_s_word_even_if_the_process_lingers() {
    let mut replay = after(
        new_thread(VERSION),
        &[
            STARTED,
            TURN,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hi"}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":9,"output_tokens":2}}"#,
        ],
    );
    assert!(replay.session.ledger().current_turn().is_none());
    // Ended by us, five seconds later.
    replay.exit(&ExitInfo { signal: Some(15), ..ExitInfo::default() });
    let end = replay.end();
    assert_eq!(end.status, TurnStatus::Completed);
    assert_eq!(end.text.preview(), "hi");
}

#[test]
fn a_new_session_instead_of_the_one_asked_for_fails_the_turn() {
    let other = r#"{"type":"thread.started","thread_id":"01a1e17d-0000-7000-8000-000000000000"}"#;
    let going_on = Setup { session: Some(SESSION.to_owned()), ..new_thread(Version(0, 80, 0)) };
    let mut replay = after(
        going_on.clone(),
        &[
            other,
            TURN,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"?"}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":9}}"#,
        ],
    );
    assert!(replay.session.ledger_mut().take_stop(), "it is not to work on");
    replay.exit(&code(0));
    let error = replay.end().error.clone().unwrap();
    assert_eq!(error.code, FailureCode::SessionUnknown);
    assert_eq!(replay.session.ledger().session(), Some(SESSION), "the old one is kept");
    assert!(!replay.shown().contains("item."), "{}", replay.shown());
    // A branch has a new id by right, and the same id is what was asked for.
    let mut branch = after(Setup { fork: true, ..going_on.clone() }, &[other]);
    assert!(branch.ends().is_empty() && !branch.session.ledger_mut().take_stop());
    assert_eq!(branch.session.ledger().session(), Some("01a1e17d-0000-7000-8000-000000000000"));
    assert!(after(going_on, &[STARTED]).ends().is_empty());
}

#[test]
fn items_of_every_kind_are_shown() {
    let item = |phase: &str, body: &str| {
        format!(r#"{{"type":"item.{phase}","item":{{"id":"item_1",{body}}}}}"#)
    };
    let show = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        after(new_thread(VERSION), &lines).shown()
    };
    let collab = r#""type":"collab_tool_call","tool":"spawn_agent","sender_thread_id":"a","receiver_thread_ids":["b"],"prompt":"look\nround","agents_states":{"b":{"status":"completed"}},"status":"completed""#;
    let shown = show(&[item("completed", collab)]);
    assert!(shown.contains("SubAgent spawn_agent Some(\"look\")"), "{shown}");
    assert!(shown.contains(r#"{\"b\":{\"status\":\"completed\"}}"#), "{shown}");

    let shown = show(&[item("started", r#""type":"hologram","x":1"#)]);
    assert!(
        shown.contains("item.started: tool_call t1:item_1 InProgress Generic hologram"),
        "{shown}"
    );

    let shown = show(&[item("completed", r#""type":"error","message":"old flag""#)]);
    assert!(shown.contains("notice: Warning agent_warning: old flag"), "{shown}");

    let page = r#""type":"web_search","id":"ws_1","query":"","action":{"type":"find_in_page","url":"u","pattern":"p"}"#;
    let shown = show(&[item("started", page), item("completed", page)]);
    assert!(
        shown.contains("item.completed: web_search t1:item_1 Ok") && shown.contains("p in u"),
        "{shown}"
    );

    let declined = r#""type":"command_execution","command":"rm x","aggregated_output":"","exit_code":null,"status":"declined""#;
    let shown = show(&[item("completed", declined)]);
    assert!(shown.contains("command t1:item_1 Denied \"rm x\""), "{shown}");

    let call = r#""type":"mcp_tool_call","server":"s","tool":"t","arguments":{"b":1,"a":2},"result":null,"error":{"message":"gone"},"status":"failed""#;
    let shown = show(&[item("completed", call)]);
    assert!(shown.contains(r#"Failed Mcp s/t None input {"b":1,"a":2} -> "gone""#), "{shown}");

    let todo = r#""type":"todo_list","items":[{"text":"a","completed":true},{"text":"b","completed":false}]"#;
    let shown = show(&[item("started", todo), item("completed", todo)]);
    assert_eq!(shown, "t1 plan.updated: Completed a; Pending b\n");
}

#[test]
fn a_retry_is_a_notice_and_an_error_fails_only_what_it_ends() {
    let error = |text: &str| format!(r#"{{"type":"error","message":"{text}"}}"#);
    let retry = error("Reconnecting... 1/5 (stream disconnected)");
    let done = r#"{"type":"turn.completed"}"#;
    let recovered = after(new_thread(VERSION), &[STARTED, TURN, &retry, &error("odd"), done]);
    assert_eq!(recovered.end().status, TurnStatus::Completed);
    assert!(recovered.shown().contains("notice: Warning api_retry"), "{}", recovered.shown());
    assert!(
        recovered.shown().contains("notice: Warning agent_error: odd"),
        "{}",
        recovered.shown()
    );

    // A fatal error without an end of its own.
    let mut fatal = after(new_thread(VERSION), &[STARTED, TURN, &error("no quota left")]);
    fatal.exit(&code(1));
    let failure = fatal.end().error.clone().unwrap();
    assert_eq!((failure.code, &*failure.message), (FailureCode::RateLimited, "no quota left"));

    // On a wire without an end, what was still open may close after the error that ended it.
    let command = |phase: &str, status: &str| {
        format!(
            r#"{{"type":"item.{phase}","item":{{"id":"item_0","item_type":"command_execution","command":"x","status":"{status}"}}}}"#
        )
    };
    let created = r#"{"type":"session.created","session_id":"s"}"#;
    let lines = [
        created.to_owned(),
        command("started", "in_progress"),
        error("no quota left"),
        command("completed", "failed"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut old = after(new_thread(Version(0, 42, 0)), &lines);
    old.exit(&code(0));
    assert_eq!(old.end().error.as_ref().unwrap().code, FailureCode::RateLimited);

    // A process that says nothing about its turn did not complete it.
    let mut mute = after(new_thread(VERSION), &[STARTED, TURN]);
    mute.exit(&code(0));
    assert_eq!(mute.end().error.as_ref().unwrap().code, FailureCode::AgentExited);
}

#[test]
fn a_version_that_does_not_end_its_turns_ends_them_with_its_process() {
    let old = Version(0, 36, 0);
    let config = r#"{"workdir":"/w","model":"m","approval":"never","sandbox":"read-only"}"#;
    let said = r#"{"id":"0","msg":{"type":"agent_message","message":"hi"}}"#;
    let mut replay = after(new_thread(old), &[config, r#"{"prompt":"go"}"#, said]);
    assert!(replay.session.ends_in_silence());
    assert!(replay.shown().contains("model Some(\"m\")"), "{}", replay.shown());
    replay.exit(&code(0));
    assert_eq!(replay.end().status, TurnStatus::Completed);
    assert_eq!(replay.end().text.preview(), "hi");
    assert!(replay.shown().contains("no_session"), "{}", replay.shown());
    // One that has nothing to say fails, whatever its code.
    let mut mute = after(new_thread(old), &[]);
    mute.exit(&code(0));
    assert_eq!(mute.end().error.as_ref().unwrap().code, FailureCode::AgentCannotStart);
    assert!(!after(new_thread(VERSION), &[]).session.ends_in_silence());
}

#[test]
fn a_warning_is_a_notice_and_ends_nothing() {
    let replay = after(
        new_thread(VERSION),
        &[STARTED, TURN, r#"{"type":"warning","message":"mind the gap"}"#],
    );
    let text = replay.shown();
    assert!(text.contains("notice: Warning agent_warning: mind the gap"), "{text}");
    assert!(!text.contains("unparsed") && !text.contains("turn.completed"), "{text}");
}

#[test]
fn figures_that_nobody_can_tell_apart_are_left_out_with_a_word() {
    let setup = Setup { session: Some(SESSION.to_owned()), ..new_thread(Version(0, 80, 0)) };
    let mut ledger = Ledger::new(1, Some(SESSION.to_owned()));
    ledger.set_session_usage(Usage { input_tokens: 5, output_tokens: 1, ..Usage::default() });
    let mut replay = Replay::new(setup, ledger, &Prompt::text("go"));
    for line in
        [STARTED, TURN, r#"{"type":"turn.completed","usage":{"input_tokens":9,"output_tokens":2}}"#]
    {
        replay.read(format!("{line}\n").as_bytes());
    }
    assert_eq!(replay.end().usage, None);
    assert!(replay.shown().contains("usage_unclear: Codex 0.80.0"), "{}", replay.shown());
}

#[test]
fn silence_is_an_end_only_between_the_agents_words_and_its_work() {
    let event = |body: &str| format!(r#"{{"id":"0","msg":{{{body}}}}}"#);
    let config = r#"{"workdir":"/w","model":"m","approval":"never","sandbox":"read-only"}"#;
    let mut replay = after(new_thread(Version(0, 36, 0)), &[config, r#"{"prompt":"go"}"#]);
    let mut is_end = |body: &str| {
        replay.read(format!("{}\n", event(body)).as_bytes());
        replay.session.ends_in_silence()
    };
    assert!(
        !is_end(r#""type":"task_started","model_context_window":1"#),
        "it has done nothing yet"
    );
    assert!(is_end(r#""type":"agent_message","message":"hm""#));
    let begin = r#""type":"exec_command_begin","call_id":"c","command":["make"],"cwd":"/w","parsed_cmd":[]"#;
    assert!(!is_end(begin), "a command takes its time");
    let end = r#""type":"exec_command_end","call_id":"c","stdout":"","stderr":"","aggregated_output":"","exit_code":0,"duration":{"secs":0,"nanos":1},"formatted_output":"""#;
    assert!(is_end(end));
    assert!(is_end(r#""type":"agent_message_delta","delta":"do""#), "nobody may end a text");
}

#[test]
fn a_turn_that_silence_ends_has_its_usage_and_its_error() {
    let event = |body: &str| format!(r#"{{"id":"0","msg":{{{body}}}}}"#);
    let said = event(r#""type":"agent_message","message":"hi""#);
    let count = event(
        r#""type":"token_count","info":{"total_token_usage":{"input_tokens":9,"cached_input_tokens":0,"output_tokens":2,"reasoning_output_tokens":0,"total_tokens":11},"last_token_usage":{"input_tokens":9,"cached_input_tokens":0,"output_tokens":2,"reasoning_output_tokens":0,"total_tokens":11},"model_context_window":1000}"#,
    );
    let error = event(r#""type":"error","message":"the disk is full""#);
    let ended = |lines: &[&str]| {
        let mut replay = after(new_thread(Version(0, 36, 0)), lines);
        assert!(replay.session.ends_in_silence());
        let turn = replay.session.ledger().oldest_turn().cloned().unwrap();
        replay.session.conclude(&turn, TurnEnd::completed(EndSignal::Idle));
        replay.exit(&ExitInfo { signal: Some(15), ..ExitInfo::default() });
        replay.end().clone()
    };
    let end = ended(&[&said, &count]);
    assert_eq!((end.status, end.signal), (TurnStatus::Completed, EndSignal::Idle));
    assert_eq!(end.text.preview(), "hi");
    let usage = end.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (9, 2));
    let end = ended(&[&error, &count]);
    assert_eq!((end.status, end.signal), (TurnStatus::Failed, EndSignal::Idle));
    assert_eq!(end.usage.unwrap().output_tokens, 2);
}

#[test]
fn calls_of_the_oldest_wire_are_items() {
    let event = |body: &str| format!(r#"{{"id":"0","msg":{{{body}}}}}"#);
    let lines = [
        event(
            r#""type":"mcp_tool_call_begin","call_id":"c","invocation":{"server":"s","tool":"t","arguments":{"a":1}}"#,
        ),
        event(
            r#""type":"mcp_tool_call_end","call_id":"c","invocation":{"server":"s","tool":"t","arguments":{"a":1}},"duration":{"secs":0,"nanos":1},"result":{"Ok":{"content":[{"type":"text","text":"yes"}],"isError":true}}"#,
        ),
        event(
            r#""type":"patch_apply_begin","call_id":"p","auto_approved":true,"changes":{"/a":{"delete":{"content":"x"}}}"#,
        ),
        event(
            r#""type":"patch_apply_end","call_id":"p","stdout":"","stderr":"cannot\nbecause","success":false"#,
        ),
        event(
            r#""type":"exec_command_begin","call_id":"x","command":["ls","a b"],"cwd":"/w","parsed_cmd":[]"#,
        ),
        event(r#""type":"turn_aborted","reason":"interrupted""#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let replay = after(new_thread(Version(0, 36, 0)), &lines);
    let shown = replay.shown();
    assert!(
        shown.contains(
            r#"item.completed: tool_call t1:c Failed Mcp s/t None input {"a":1} -> "yes""#
        ),
        "{shown}"
    );
    assert!(shown.contains("item.completed: file_change t1:p Failed Delete /a"), "{shown}");
    assert!(shown.contains("patch_failed: cannot"), "{shown}");
    assert!(shown.contains("item.completed: command t1:x Cancelled \"ls 'a b'\""), "{shown}");
    assert_eq!(replay.end().status, TurnStatus::Interrupted);
}

#[test]
fn a_picture_that_went_as_a_file_leaves_the_words() {
    let picture = Content::Image {
        mime: "image/png".to_owned(),
        source: ImageSource::Base64("iVBORw0KGgo=".into()),
    };
    let say = |content| {
        let setup = Setup { n_pictures: 1, ..new_thread(VERSION) };
        let driver = Box::new(ExecDriver::new(setup));
        let mut session = Session::new(driver, Ledger::new(0, None), 1 << 20, FrameNo(1));
        session.started();
        session.start_turn(&Prompt { content, ..Prompt::text("") });
        let (written, closes) = session.take_writes(|_, _| {});
        assert!(closes);
        (written, session.ledger().current_turn().is_some())
    };
    let (written, goes_on) = say(vec![Content::text("what is this?"), picture.clone()]);
    assert_eq!((written, goes_on), (b"what is this?".to_vec(), true));
    // The program would end without a word.
    assert_eq!(say(vec![picture]), (Vec::new(), false));
}

#[test]
fn a_picture_by_its_address_is_refused_before_anything_is_sent() {
    let picture = Content::Image {
        mime: "image/png".to_owned(),
        source: ImageSource::Url("https://127.0.0.1/x.png".to_owned()),
    };
    let prompt =
        Prompt { content: vec![Content::text("what is this?"), picture], ..Prompt::text("") };
    let driver = Box::new(ExecDriver::new(new_thread(VERSION)));
    let mut session = Session::new(driver, Ledger::new(0, None), 1 << 20, FrameNo(1));
    session.started();
    session.start_turn(&prompt);
    let (written, closes) = session.take_writes(|_, _| {});
    assert!(written.is_empty() && closes);
    assert!(session.ledger().current_turn().is_none());
    session.exited(&code(1), |_, _| {});
    let mut replay = Replay { outputs: session.take_outputs(), session, kept: vec![] };
    replay.exit(&code(1));
    assert_eq!(replay.end().error.as_ref().unwrap().code, FailureCode::BadRequest);
}

#[test]
fn the_prompt_goes_to_stdin_and_nothing_else_does() {
    let driver = Box::new(ExecDriver::new(new_thread(VERSION)));
    let mut session = Session::new(driver, Ledger::new(0, None), 1 << 20, FrameNo(1));
    session.started();
    let content = vec![
        Content::text("--yolo\nhi"),
        Content::Resource { uri: "file:///a".to_owned(), text: "x".into() },
        Content::Link { uri: "file:///b".to_owned(), name: Some("b".to_owned()) },
        Content::Skill { name: "review".to_owned(), path: None },
    ];
    session.start_turn(&Prompt { content, ..Prompt::text("") });
    let (written, closes) = session.take_writes(|_, _| {});
    let expected =
        "--yolo\nhi\n\n<document uri=\"file:///a\">\nx\n</document>\n\n[b](file:///b)\n\n$review";
    assert_eq!(String::from_utf8(written).unwrap(), expected);
    assert!(closes);
    let refused = session.steer(&Prompt::text("also")).unwrap_err();
    assert!(refused.0.contains("--queue"), "{refused}");
    assert!(!session.interrupt(), "a signal must do");
    assert!(!session.set_mode(Mode::Plan, None) && !session.set_model(None));
}

#[test]
fn what_it_can_do_and_cannot_ask_is_said_first() {
    let started = |setup: Setup| {
        let driver = Box::new(ExecDriver::new(setup));
        let mut session = Session::new(driver, Ledger::new(0, None), 1 << 20, FrameNo(1));
        session.started();
        session.take_outputs()
    };
    let outputs = started(Setup { mode: Mode::Default, ..new_thread(VERSION) });
    let [Output::Event(configured), Output::Event(notice)] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    let Kind::ConversationConfigured(it) = &configured.kind else { panic!("{configured:?}") };
    let abilities = it.abilities.as_ref().unwrap();
    assert_eq!(it.agent_version.as_deref(), Some("0.166.0"));
    assert_eq!(abilities.modes, Mode::COMMON);
    assert!(abilities.fork && !abilities.approvals && abilities.images && !abilities.steering);
    assert!(matches!(&notice.kind, Kind::Notice(it) if it.code == "approvals_off"));
    let policy = Some(Policy { ask: AskWhen::Untrusted, reach: Reach::WorkspaceWrite });
    let shown: Vec<String> =
        started(Setup { policy, ..new_thread(Version(0, 140, 0)) }).iter().map(show).collect();
    assert!(shown[1].contains("untrusted + workspace-write"), "{shown:?}");
    assert_eq!(started(new_thread(VERSION)).len(), 1, "nothing to say about a mode without asking");
}

#[test]
fn pieces_of_what_never_began_begin_it() {
    let mut old = after(
        new_thread(Version(0, 42, 0)),
        &[
            r#"{"id":"0","msg":{"type":"agent_reasoning_delta","delta":"hm"}}"#,
            r#"{"id":"0","msg":{"type":"agent_message_delta","delta":"all "}}"#,
            r#"{"id":"0","msg":{"type":"agent_message_delta","delta":"of it"}}"#,
            r#"{"id":"0","msg":{"type":"task_complete"}}"#,
        ],
    );
    old.exit(&ExitInfo { code: Some(0), ..ExitInfo::default() });
    assert_eq!(old.end().text.preview(), "all of it", "{}", old.shown());
    assert!(old.shown().contains("item.completed: reasoning"), "{}", old.shown());
    let mut new = after(
        new_thread(Version(0, 166, 0)),
        &[
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.updated","item":{"id":"item_0","type":"agent_message","text":"all of it"}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}"#,
        ],
    );
    new.exit(&ExitInfo { code: Some(0), ..ExitInfo::default() });
    assert_eq!(new.end().text.preview(), "all of it", "{}", new.shown());
}

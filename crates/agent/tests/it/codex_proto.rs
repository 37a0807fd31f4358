//! Codex by `codex proto`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_agent::codex::Version;
use tieline_agent::codex_proto::{EngineOffer, ProtoDriver};
use tieline_agent::{Direction, Driver, ExitInfo, Launch, Ledger, Output, Session, TurnEnd};
use tieline_event::{
    Answer, AskWhen, Content, EndSignal, Errand, FailureCode, FrameNo, ImageSource, Inquiry, Item,
    ItemBody, Kind, Mode, Origin, Policy, Prompt, Reach, Report, RequestId, ReviewTarget, Scope,
};

use crate::clock::Clock;
use crate::recording::{Recording, check_snapshot, check_whole, fixtures, load, recordings};
use crate::show::show;

const CONFIGURED: &str =
    r#"{"id":"","msg":{"type":"session_configured","session_id":"s","model":"m"}}"#;
const STARTED: &str =
    r#"{"id":"sub-1","msg":{"type":"task_started","model_context_window":272000}}"#;
const COMPLETE: &str =
    r#"{"id":"sub-1","msg":{"type":"task_complete","last_agent_message":"done"}}"#;

struct Replay {
    session: Session,
    clock: Clock,
    outputs: Vec<Output>,
    kept: Vec<u8>,
    /// What was written since somebody looked.
    written: Vec<Value>,
    /// Requests that wait, by the agent's id.
    requests: Vec<(String, RequestId)>,
}

impl Replay {
    fn new(mode: Mode, policy: Option<Policy>, version: Version) -> Self {
        let launch = Launch { policy, ..Launch::new(Path::new("/workspace"), mode) };
        let driver = Box::new(ProtoDriver::new(&launch, version));
        let mut session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
        session.started();
        Self {
            session,
            clock: Clock::default(),
            outputs: vec![],
            kept: vec![],
            written: vec![],
            requests: vec![],
        }
    }

    fn settle(&mut self) {
        self.clock.set(&mut self.session);
        let (bytes, _) = self.session.take_writes(|_, _| {});
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        self.written.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        for output in self.session.take_outputs() {
            if let Output::Event(draft) = &output
                && let Kind::RequestOpened(request) = &draft.kind
            {
                let wire_id = draft.native.request.clone().unwrap();
                self.requests.push((wire_id, request.id.clone()));
            }
            self.outputs.push(output);
        }
    }

    /// Waits for what the driver wants to be woken for next; says how long that took.
    fn ring(&mut self) -> Option<Duration> {
        let waited = self.clock.ring(&mut self.session);
        self.settle();
        waited
    }

    fn read(&mut self, bytes: &[u8]) {
        let kept = &mut self.kept;
        self.session.read(bytes, |direction, bytes| {
            assert_eq!(direction, Direction::Out);
            kept.extend_from_slice(&bytes);
        });
        self.settle();
    }

    fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.read(format!("{line}\n").as_bytes());
        }
    }

    /// Does what the recorded host did; what is written must be what it wrote.
    fn say(&mut self, line: &Value) {
        let op = &line["op"];
        self.written.clear();
        let answer = match op["decision"].as_str() {
            Some("approved") => Some(Answer::allow()),
            Some("approved_for_session") => {
                Some(Answer::Allow { scope: Scope::Session, input: None, mode: None })
            }
            Some("denied") => Some(Answer::Deny { message: None, stop: false }),
            Some("abort") => Some(Answer::Deny { message: None, stop: true }),
            _ => None,
        };
        match op["type"].as_str() {
            Some("user_turn" | "user_input") => {
                let text = op["items"][0]["text"].as_str().unwrap();
                self.session.start_turn(&Prompt::text(text));
            }
            Some("interrupt") => assert!(self.session.interrupt()),
            Some("exec_approval" | "patch_approval") => {
                let (wire_id, request) = self.requests.pop().unwrap();
                assert_eq!(op["id"], json!(wire_id));
                self.session.answer(&request, &answer.unwrap(), Origin::Human, None).unwrap();
            }
            _ => return, // garbage of the recording, and its shutdown
        }
        self.settle();
        if op["type"] != "user_input" {
            let mut ours = self.written.pop().unwrap()["op"].take();
            let mut theirs = op.clone();
            // The recording chose an effort; the form of the last message is left open.
            theirs.as_object_mut().unwrap().remove("effort");
            ours.as_object_mut().unwrap().remove("final_output_json_schema");
            assert_eq!(ours, theirs);
        }
    }

    fn exit(&mut self, exit: &ExitInfo) {
        let Self { session, kept, .. } = self;
        session.exited(exit, |_, bytes| kept.extend_from_slice(&bytes));
        self.settle();
    }

    fn shown(&self) -> String {
        self.outputs.iter().map(|output| format!("{}\n", show(output))).collect()
    }

    fn n_ends(&self) -> usize {
        let is_end = |output: &&Output| matches!(output, Output::Event(draft) if matches!(draft.kind, Kind::TurnCompleted(_)));
        self.outputs.iter().filter(is_end).count()
    }
}

/// The mode or policy the recorded host chose.
fn begin(recording: &Recording) -> Replay {
    let turn = recording.said.iter().find(|(_, line)| line["op"]["type"] == "user_turn");
    let op = turn.map(|(_, line)| line["op"].clone()).unwrap_or_default();
    let word = |value: &Value, default: &str| value.as_str().unwrap_or(default).to_owned();
    let ask: AskWhen = word(&op["approval_policy"], "never").parse().unwrap();
    let reach = word(&op["sandbox_policy"]["mode"], "danger-full-access");
    let reach: Reach = reach.parse().unwrap();
    let policy = Policy { ask, reach };
    let version = if recording.argv[0].contains("0.36") { Version(0, 36, 0) } else { LAST };
    match policy.as_mode() {
        Some(mode) => Replay::new(mode, None, version),
        None => Replay::new(Mode::Default, Some(policy), version),
    }
}

const LAST: Version = Version(0, 42, 0);

fn replay(recording: &Recording) -> Replay {
    let mut replay = begin(recording);
    let mut said = recording.said.iter().peekable();
    for (n_read, line) in recording.out.split_inclusive(|byte| *byte == b'\n').enumerate() {
        while let Some((_, line)) = said.next_if(|(at, _)| *at <= n_read) {
            replay.say(line);
        }
        replay.read(line);
    }
    said.for_each(|(_, line)| replay.say(line));
    replay.exit(&recording.exit);
    assert_eq!(replay.kept, recording.out, "frames are the input byte for byte");
    replay
}

/// A turn that began, and what the agent said then.
fn after(lines: &[&str]) -> Replay {
    after_in(LAST, lines)
}

fn after_in(version: Version, lines: &[&str]) -> Replay {
    let mut replay = Replay::new(Mode::AcceptEdits, None, version);
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    replay.lines(&[CONFIGURED, STARTED]);
    replay.written.clear();
    replay.lines(lines);
    replay
}

#[test]
fn every_recording_replays_whole_to_its_snapshot() {
    for scenario in recordings("codex_proto") {
        let replay = replay(&load(&scenario));
        check_whole(&scenario, &replay.outputs, replay.session.ledger());
        check_snapshot("codex_proto", &scenario, &replay.outputs, replay.session.ledger());
    }
}

#[test]
fn any_chunking_and_any_cut_ends_the_turn_once() {
    let recording = load(&fixtures("codex_proto").join("0.42.0/exec-approval-approved"));
    for cut in (0..recording.out.len()).step_by(53) {
        let mut replay = begin(&recording);
        replay.session.start_turn(&Prompt::text("go"));
        replay.settle();
        for chunk in recording.out[..cut].chunks(61) {
            replay.read(chunk);
        }
        replay.exit(&ExitInfo { signal: Some(9), ..ExitInfo::default() });
        assert_eq!(replay.kept, recording.out[..cut]);
        assert_eq!(replay.n_ends(), 1, "cut at {cut}");
        assert_eq!(replay.session.ledger().open_items().len(), 0);
    }
}

#[test]
fn garbage_between_the_lines_becomes_unparsed_and_changes_nothing_else() {
    let recording = load(&fixtures("codex_proto").join("0.42.0/shell"));
    let run = |garbage: &[&[u8]]| {
        let mut replay = begin(&recording);
        replay.session.start_turn(&Prompt::text("go"));
        for (n, line) in recording.out.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if let Some(garbage) = garbage.get(n % garbage.len().max(1)) {
                replay.read(garbage);
            }
            replay.read(line);
        }
        replay.exit(&recording.exit);
        replay
    };
    let clean = run(&[]);
    let dirty = run(&[
        b"thread 'main' panicked\n",
        b"\xff\xfe\x00\n",
        b"{\"id\":\"sub-1\",\"msg\":{\"type\":\"from_the_future\",\"x\":1}}\n",
        b"{\"id\":7,\"msg\":{\"type\":\"agent_message\"}}\n",
        b"\n",
        b"{\"id\":\"sub-1\",\"msg\":{\"type\":\"agent_message\",\"message\":[1]}}\n",
        b"{\"id\":\"sub-1\",\"msg\":{\"type\":\"exec_command_output_delta\",\"call_id\":\"x\",\"chunk\":\"!\"}}\n",
    ]);
    let is_unparsed = |output: &&Output| matches!(output, Output::Event(draft) if matches!(draft.kind, Kind::Unparsed(_)));
    let shown = |outputs: &[Output]| -> Vec<String> {
        outputs.iter().filter(|output| !is_unparsed(output)).map(show).collect()
    };
    assert_eq!(shown(&dirty.outputs), shown(&clean.outputs));
    assert!(dirty.outputs.iter().filter(is_unparsed).count() > 5);
}

#[test]
fn a_turn_waits_for_the_session_and_carries_its_effort() {
    let mut replay = Replay::new(Mode::BypassPermissions, None, LAST);
    let content = vec![
        Content::text("look"),
        Content::Image { mime: "image/png".to_owned(), source: ImageSource::Base64("AA==".into()) },
    ];
    let prompt = Prompt { content, ..Prompt::default() };
    replay.session.start_turn(&prompt);
    replay.session.steer(&Prompt::text("and hurry")).unwrap();
    replay.settle();
    assert_eq!(replay.written, Vec::<Value>::new());
    replay.lines(&[
        r#"{"id":"","msg":{"type":"session_configured","session_id":"s","model":"m","reasoning_effort":"high"}}"#,
    ]);
    assert_eq!(
        replay.written,
        [
            json!({"id": "sub-1", "op": {
                "type": "user_turn",
                "items": [
                    {"type": "text", "text": "look"},
                    {"type": "image", "image_url": "data:image/png;base64,AA=="},
                ],
                "cwd": "/workspace",
                "approval_policy": "never",
                "sandbox_policy": {
                    "mode": "workspace-write", "network_access": true,
                    "exclude_tmpdir_env_var": false, "exclude_slash_tmp": false,
                },
                "model": "m",
                "effort": "high",
                "summary": "auto",
                "final_output_json_schema": null,
            }}),
            json!({"id": "sub-2", "op": {
                "type": "user_input", "items": [{"type": "text", "text": "and hurry"}],
            }}),
        ]
    );
}

#[test]
fn a_turn_that_the_agent_never_heard_of_is_interrupted_at_once() {
    let mut replay = Replay::new(Mode::Default, None, LAST);
    replay.session.start_turn(&Prompt::text("go"));
    assert!(replay.session.interrupt());
    replay.settle();
    assert!(replay.shown().contains("turn.completed: Interrupted"), "{}", replay.shown());
    replay.lines(&[CONFIGURED]);
    assert_eq!(replay.written, Vec::<Value>::new());
}

#[test]
fn mode_and_model_change_with_the_next_turn() {
    let mut replay = after(&[COMPLETE]);
    assert!(replay.session.set_mode(Mode::Yolo, None));
    assert!(replay.session.set_model(None), "the process was told no model");
    assert!(replay.session.set_model(Some("other")));
    assert!(!replay.session.set_model(None), "its own choice is not known any more");
    replay.session.start_turn(&Prompt::text("again"));
    replay.settle();
    let op = &replay.written.last().unwrap()["op"];
    assert_eq!(op["model"], "other");
    assert_eq!(op["approval_policy"], "never");
    assert_eq!(op["sandbox_policy"], json!({"mode": "danger-full-access"}));
}

#[test]
fn versions_that_hide_their_effort_keep_it() {
    let mut replay = Replay::new(Mode::Default, None, Version(0, 34, 0));
    replay.session.start_turn(&Prompt::text("go"));
    replay.lines(&[CONFIGURED]);
    let ops: Vec<&Value> = replay.written.iter().map(|line| &line["op"]).collect();
    assert_eq!(
        ops,
        [
            &json!({
                "type": "override_turn_context",
                "cwd": "/workspace",
                "approval_policy": "on-request",
                "sandbox_policy": {"mode": "read-only"},
            }),
            &json!({"type": "user_input", "items": [{"type": "text", "text": "go"}]}),
        ]
    );
}

const ASK: &str = r#"{"id":"sub-1","msg":{"type":"exec_approval_request","call_id":"call_1","command":["bash","-lc","git push"],"cwd":"/workspace","reason":"needs network"}}"#;

#[test]
fn an_approval_is_answered_with_the_id_its_version_knows() {
    for (version, id) in
        [(LAST, "sub-1"), (Version(0, 98, 0), "sub-1"), (Version(0, 99, 0), "call_1")]
    {
        let mut replay = after_in(version, &[ASK]);
        let (wire_id, request) = replay.requests.pop().unwrap();
        assert_eq!(wire_id, id);
        replay.session.answer(&request, &Answer::allow(), Origin::Human, None).unwrap();
        replay.settle();
        let expected = json!({"type": "exec_approval", "id": id, "decision": "approved"});
        assert_eq!(replay.written[0]["op"], expected);
        let again = replay.session.answer(&request, &Answer::allow(), Origin::Human, None);
        assert!(again.is_err());
    }
    let own = ASK.replace("\"reason\"", "\"approval_id\":\"appr_1\",\"reason\"");
    let replay = after_in(Version(0, 110, 0), &[&own]);
    assert_eq!(replay.requests[0].0, "appr_1");
}

#[test]
fn what_was_refused_is_shown_as_such_and_a_person_s_word_is_passed_on() {
    for (by, status) in [(Origin::Human, "Declined"), (Origin::Engine, "Denied")] {
        let mut replay = after(&[ASK]);
        let (_, request) = replay.requests.pop().unwrap();
        replay.session.answer(&request, &Answer::deny("use a branch"), by, None).unwrap();
        replay.lines(&[COMPLETE]);
        let text = replay.shown();
        let item = format!("item.completed: command t1:call_1 {status} \"git push\"");
        assert!(text.contains(&item), "{text}");
        assert_eq!(replay.written[0]["op"]["decision"], "denied");
        let passed_on = replay.written.get(1).map(|line| &line["op"]["items"][0]["text"]);
        let expected = json!("use a branch");
        assert_eq!(passed_on, (by == Origin::Human).then_some(&expected));
    }
}

#[test]
fn a_changed_command_is_refused_and_the_request_stays_open() {
    let mut replay = after(&[ASK]);
    let (_, request) = replay.requests.pop().unwrap();
    let input = tieline_event::Json::from_text("{}".to_owned()).unwrap();
    let edited = Answer::Allow { scope: Scope::Once, input: Some(input), mode: None };
    assert!(replay.session.answer(&request, &edited, Origin::Human, None).is_err());
    assert!(replay.session.answer(&request, &Answer::allow(), Origin::Human, None).is_ok());
}

#[test]
fn a_command_that_runs_once_more_is_another_item() {
    let begin = r#"{"id":"sub-1","msg":{"type":"exec_command_begin","call_id":"call_1","command":["bash","-lc","git push"],"cwd":"/workspace","parsed_cmd":[]}}"#;
    let end = |code: i32| {
        format!(
            r#"{{"id":"sub-1","msg":{{"type":"exec_command_end","call_id":"call_1","stdout":"a","stderr":"b","exit_code":{code}}}}}"#
        )
    };
    let replay = after(&[begin, &end(1), ASK, begin, &end(0), COMPLETE]);
    let text = replay.shown();
    assert!(
        text.contains("command t1:call_1 Failed \"git push\" -> \"ab\" exit Some(1)"),
        "{text}"
    );
    assert!(text.contains("command t1:call_1:2 Ok \"git push\" -> \"ab\" exit Some(0)"), "{text}");
    assert_eq!(text.matches("item.started").count(), 2, "{text}");
    assert_eq!(text.matches("item.completed: command").count(), 2, "{text}");
}

#[test]
fn both_spellings_give_the_same_events() {
    let old = [
        r#"{"id":"sub-1","msg":{"type":"task_started","model_context_window":null}}"#,
        r#"{"id":"sub-1","msg":{"type":"patch_apply_begin","call_id":"p","auto_approved":true,"changes":{"/a":{"add":{"content":"x"}},"/b":{"update":{"unified_diff":"@@","move_path":"/c"}}}}}"#,
        r#"{"id":"sub-1","msg":{"type":"patch_apply_end","call_id":"p","stdout":"","stderr":"","success":true}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_begin","call_id":"c","command":["ls"],"cwd":"/"}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_output_delta","call_id":"c","stream":"stdout","chunk":[195]}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_output_delta","call_id":"c","stream":"stdout","chunk":[169,10]}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_end","call_id":"c","stdout":"é\n","stderr":"","exit_code":0}}"#,
        r#"{"id":"sub-1","msg":{"type":"task_complete","last_agent_message":"x"}}"#,
    ];
    let new = [
        r#"{"id":"sub-1","msg":{"model_context_window":null,"type":"turn_started","turn_id":"sub-1"}}"#,
        r#"{"id":"sub-1","msg":{"call_id":"p","turn_id":"sub-1","auto_approved":true,"changes":{"/a":{"type":"add","content":"x"},"/b":{"type":"update","unified_diff":"@@","move_path":"/c"}},"type":"patch_apply_begin"}}"#,
        r#"{"id":"sub-1","msg":{"type":"patch_apply_end","call_id":"p","stdout":"","stderr":"","success":true,"changes":{"/a":{"type":"add","content":"x"},"/b":{"type":"update","unified_diff":"@@","move_path":"/c"}},"status":"completed"}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_begin","call_id":"c","command":["ls"],"cwd":"/","source":"agent"}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_output_delta","call_id":"c","stream":"stdout","chunk":"ww=="}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_output_delta","call_id":"c","stream":"stdout","chunk":"qQo="}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_end","call_id":"c","stdout":"é\n","stderr":"","aggregated_output":"é\n","exit_code":0,"duration":{"secs":0,"nanos":1},"status":"completed"}}"#,
        r#"{"id":"sub-1","msg":{"last_agent_message":"x","turn_id":"sub-1","type":"turn_complete"}}"#,
    ];
    let (old, new) = (after(&old), after(&new));
    assert_eq!(old.shown(), new.shown());
    assert!(old.shown().contains("~ t1:c Output@0 \"é\\n\""), "{}", old.shown());
    assert_eq!(old.n_ends(), 1);
}

#[test]
fn an_error_fails_the_turn_at_its_end_or_after_a_while_without_one() {
    let error = r#"{"id":"sub-1","msg":{"type":"error","message":"You've hit your usage limit.","codex_error_info":"usage_limit_exceeded"}}"#;
    let replay = after(&[error, COMPLETE]);
    assert!(replay.shown().contains("Failed by Wire"), "{}", replay.shown());
    assert!(replay.shown().contains("RateLimited"), "{}", replay.shown());

    let mut replay = after(&[error]);
    assert_eq!(replay.n_ends(), 0);
    assert!(replay.ring().is_some());
    assert!(replay.shown().contains("RateLimited"), "{}", replay.shown());
    // The end that comes all the same is nobody's.
    replay.lines(&[COMPLETE]);
    assert_eq!(replay.n_ends(), 1);

    // It is not the next turn's either.
    let mut replay = after(&[error]);
    replay.ring();
    replay.session.start_turn(&Prompt::text("next"));
    replay.lines(&[COMPLETE]);
    assert_eq!(replay.n_ends(), 1, "{}", replay.shown());
    replay.lines(&SECOND);
    assert_eq!(replay.n_ends(), 2);
    assert!(replay.shown().contains("t2 turn.completed: Completed by Wire"), "{}", replay.shown());

    // The task goes on after all.
    let mut replay =
        after(&[error, r#"{"id":"sub-1","msg":{"type":"agent_message","message":"hm"}}"#]);
    replay.ring();
    assert_eq!(replay.n_ends(), 0);

    let replay = after(&[r#"{"id":"sub-1","msg":{"type":"error","message":"interrupted"}}"#]);
    assert!(replay.shown().contains("Interrupted by Wire"), "{}", replay.shown());
}

/// All that the task of the second submission tells.
const SECOND: [&str; 3] = [
    r#"{"id":"sub-2","msg":{"type":"task_started"}}"#,
    r#"{"id":"sub-2","msg":{"type":"agent_message","message":"second"}}"#,
    r#"{"id":"sub-2","msg":{"type":"task_complete","last_agent_message":"second"}}"#,
];

#[test]
fn a_turn_that_something_else_ended_leaves_nothing_to_the_next() {
    let mut replay = after(&[
        r#"{"id":"sub-1","msg":{"type":"agent_message_delta","delta":"fir"}}"#,
        r#"{"id":"sub-1","msg":{"type":"exec_command_begin","call_id":"call_0","command":["ls"],"cwd":"/"}}"#,
    ]);
    let turn = replay.session.ledger().current_turn().unwrap().clone();
    let end = TurnEnd::completed(EndSignal::Notify);
    replay.session.ledger_mut().end_turn(&turn, end);
    replay.session.start_turn(&Prompt::text("next"));
    replay.lines(&[r#"{"id":"sub-1","msg":{"type":"agent_message","message":"first"}}"#, COMPLETE]);
    assert_eq!(replay.n_ends(), 1, "{}", replay.shown());
    // What it still asks is refused, since nobody waits for it.
    replay.lines(&[ASK]);
    assert!(replay.requests.is_empty());
    assert_eq!(replay.written.last().unwrap()["op"]["decision"], "denied");
    replay.lines(&SECOND);
    let text = replay.shown();
    assert_eq!(replay.n_ends(), 2, "{text}");
    assert!(text.contains("item.completed: agent_message t2:message1 Ok \"second\""), "{text}");
    assert!(!text.contains("\"first\"") && !text.contains("\"done\""), "{text}");
}

#[test]
fn a_call_of_the_same_name_in_the_next_turn_is_another_item() {
    let call = |n: u32| {
        format!(
            r#"{{"id":"sub-{n}","msg":{{"type":"exec_command_end","call_id":"call_0","stdout":"","stderr":"","exit_code":0}}}}"#
        )
    };
    let review = |n: u32| {
        format!(r#"{{"id":"sub-{n}","msg":{{"type":"exited_review_mode","review_output":null}}}}"#)
    };
    let mut replay = after(&[&call(1), &review(1), COMPLETE]);
    replay.session.start_turn(&Prompt::text("next"));
    replay.lines(&[SECOND[0], &call(2), &review(2), &review(2), SECOND[2]]);
    let ids: Vec<_> = replay.outputs.iter().filter_map(completed_work).collect();
    let of = |id: &str, native: Option<&str>| (id.to_owned(), native.map(str::to_owned));
    assert_eq!(
        ids,
        [
            of("t1:call_0", Some("call_0")),
            of("t1:review1", None),
            of("t2:call_0", Some("call_0")),
            of("t2:review1", None),
            of("t2:review2", None),
        ]
    );
}

/// The id of a command or a review that is over, and the agent's own.
fn completed_work(output: &Output) -> Option<(String, Option<String>)> {
    let Output::Event(draft) = output else { return None };
    let Kind::ItemCompleted(item) = &draft.kind else { return None };
    let is_work = matches!(item.body, ItemBody::Command { .. } | ItemBody::Review { .. });
    is_work.then(|| (item.id.as_str().to_owned(), draft.native.item.clone()))
}

#[test]
fn a_word_that_came_too_late_takes_up_the_next_turn() {
    let mut replay = after(&[]);
    replay.session.steer(&Prompt::text("more")).unwrap();
    replay.lines(&[COMPLETE]);
    replay.session.start_turn(&Prompt::text("next"));
    // The agent reads the two one after the other and answers them in one task.
    replay.lines(&SECOND);
    let text = replay.shown();
    assert!(text.contains("t2 turn.completed: Completed by Wire"), "{text}");
    assert!(!text.contains("turn.started: Agent"), "{text}");
    replay.lines(&[COMPLETE, SECOND[0], SECOND[2]]);
    assert_eq!(replay.n_ends(), 2, "{}", replay.shown());
    assert!(replay.session.ledger().current_turn().is_none());
}

#[test]
fn codex_does_the_work_that_its_wire_has_and_refuses_the_rest_in_words() {
    let begun = |version, errand| {
        let mut replay = Replay::new(Mode::Default, None, version);
        replay.lines(&[CONFIGURED]);
        replay.session.start_turn(&Prompt::errand(errand));
        replay.settle();
        replay
    };
    let uncommitted = || Errand::Review { target: ReviewTarget::Uncommitted };
    let review = begun(LAST, uncommitted()).written[0]["op"].clone();
    assert_eq!(review["type"], "review");
    assert_eq!(review["review_request"]["user_facing_hint"], "current changes");
    assert!(review["review_request"]["prompt"].as_str().unwrap().contains("not committed"));
    assert_eq!(begun(LAST, Errand::Compact).written[0]["op"]["type"], "compact");
    let shell = || Errand::Shell { command: "ls".to_owned() };
    for (version, errand) in [
        (LAST, Errand::Undo),
        (LAST, Errand::Rollback { turns: 1 }),
        (LAST, shell()),
        (Version(0, 36, 0), uncommitted()),
    ] {
        let replay = begun(version, errand);
        assert_eq!(replay.written, Vec::<Value>::new());
        assert!(replay.shown().contains("`codex proto` of 0."), "{}", replay.shown());
    }
    let mut replay = Replay::new(Mode::Default, None, LAST);
    replay.session.inquire(1, &Inquiry::Tools).unwrap();
    replay.session.inquire(2, &Inquiry::Prompts).unwrap();
    assert!(replay.session.inquire(3, &Inquiry::Models).is_err());
    replay.settle();
    let asked: Vec<&Value> = replay.written.iter().map(|line| &line["op"]["type"]).collect();
    assert_eq!(asked, ["list_mcp_tools", "list_custom_prompts"]);
    replay.lines(&[r#"{"id":"sub-2","msg":{"type":"list_custom_prompts_response","custom_prompts":[{"name":"p","path":"/p","content":"c"}]}}"#]);
    let told = replay.session.ledger_mut().take_reports();
    assert!(
        matches!(told.as_slice(), [(2, Ok(Report::Prompts(it)))] if it[0].name == "p"),
        "{told:?}"
    );
}

#[test]
fn silence_ends_a_turn_only_where_no_task_is_told() {
    let said = r#"{"id":"sub-1","msg":{"type":"agent_message","message":"hm"}}"#;
    let mut replay = Replay::new(Mode::Default, None, LAST);
    replay.session.start_turn(&Prompt::text("go"));
    replay.lines(&[CONFIGURED]);
    assert!(!replay.session.ends_in_silence());
    replay.lines(&[said]);
    assert!(replay.session.ends_in_silence());
    replay.lines(&[r#"{"id":"sub-1","msg":{"type":"exec_approval_request","call_id":"c","command":["ls"],"cwd":"/"}}"#]);
    assert!(!replay.session.ends_in_silence(), "a person takes the time they need");
    assert!(!after(&[said]).session.ends_in_silence(), "that one tells the end of its tasks");
}

#[test]
fn trouble_of_the_session_does_not_fail_the_turn() {
    let error = r#"{"id":"","msg":{"type":"error","message":"MCP client for `docs` failed"}}"#;
    let mut replay = after(&[error]);
    replay.ring();
    replay.lines(&[COMPLETE]);
    let text = replay.shown();
    assert!(text.contains("Error agent_error: MCP client for `docs` failed"), "{text}");
    assert!(text.contains("turn.completed: Completed by Wire"), "{text}");
    // Before there is a session it is why there is none; nothing is submitted afterwards.
    let mut replay = Replay::new(Mode::Default, None, LAST);
    replay.session.start_turn(&Prompt::text("go"));
    replay.lines(&[error]);
    replay.ring();
    replay.lines(&[CONFIGURED]);
    assert!(replay.shown().contains("turn.completed: Failed by Wire"), "{}", replay.shown());
    assert_eq!(replay.written, Vec::<Value>::new());
}

#[test]
fn that_there_is_no_plan_mode_is_said_once() {
    let mut replay = Replay::new(Mode::Default, None, LAST);
    replay.lines(&[CONFIGURED]);
    let turns = [Mode::Default, Mode::Plan, Mode::Default, Mode::Plan];
    for (n, (mode, n_told)) in turns.into_iter().zip([0, 1, 1, 1]).enumerate() {
        assert!(replay.session.set_mode(mode, None));
        replay.session.start_turn(&Prompt::text("go"));
        replay.lines(&[&COMPLETE.replace("sub-1", &format!("sub-{}", n + 1))]);
        let text = replay.shown();
        let told = "Warning plan_mode_off: `codex proto` has no plan mode";
        assert_eq!(text.matches(told).count(), n_told, "{text}");
        assert_eq!(replay.n_ends(), n + 1);
    }
}

#[test]
fn what_comes_late_does_not_end_the_next_turn() {
    let mut replay =
        after(&[r#"{"id":"sub-1","msg":{"type":"turn_aborted","reason":"interrupted"}}"#]);
    replay.session.start_turn(&Prompt::text("next"));
    replay.lines(&[r#"{"id":"sub-1","msg":{"type":"agent_message","message":"late"}}"#, COMPLETE]);
    assert_eq!(replay.n_ends(), 1);
    replay.lines(&[
        r#"{"id":"sub-2","msg":{"type":"task_started"}}"#,
        r#"{"id":"sub-2","msg":{"type":"task_complete","last_agent_message":null}}"#,
    ]);
    assert_eq!(replay.n_ends(), 2);
    assert!(!replay.shown().contains("late"), "{}", replay.shown());
}

#[test]
fn a_word_that_came_too_late_begins_a_turn_of_its_own() {
    let mut replay = after(&[]);
    replay.session.steer(&Prompt::text("more")).unwrap();
    replay.lines(&[
        COMPLETE,
        r#"{"id":"sub-2","msg":{"type":"task_started"}}"#,
        r#"{"id":"sub-2","msg":{"type":"agent_message","message":"more it is"}}"#,
        r#"{"id":"sub-2","msg":{"type":"task_complete","last_agent_message":"more it is"}}"#,
    ]);
    let text = replay.shown();
    assert!(text.contains("t2 turn.started: Agent"), "{text}");
    assert!(text.contains("t2 turn.completed: Completed"), "{text}");
}

#[test]
fn parts_of_the_thinking_are_items_of_their_own() {
    let replay = after(&[
        r#"{"id":"sub-1","msg":{"type":"agent_reasoning_section_break"}}"#,
        r#"{"id":"sub-1","msg":{"type":"agent_reasoning_delta","delta":"one"}}"#,
        r#"{"id":"sub-1","msg":{"type":"agent_reasoning_section_break"}}"#,
        r#"{"id":"sub-1","msg":{"type":"agent_reasoning_delta","delta":"two"}}"#,
        r#"{"id":"sub-1","msg":{"type":"agent_reasoning","text":"one."}}"#,
        r#"{"id":"sub-1","msg":{"type":"agent_reasoning","text":"two."}}"#,
        r#"{"id":"sub-1","msg":{"type":"agent_reasoning_raw_content","text":"raw"}}"#,
        r#"{"id":"sub-1","msg":{"type":"agent_message_delta","delta":"never told whole"}}"#,
        COMPLETE,
    ]);
    let text = replay.shown();
    for line in [
        "reasoning t1:reasoning1 Ok \"one.\"",
        "reasoning t1:reasoning2 Ok \"two.\"",
        "reasoning t1:reasoning3 Ok \"raw\"",
        "agent_message t1:message4 Ok \"never told whole\"",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("Cancelled"), "{text}");
}

const QUESTION: &str = r#"{"id":"sub-1","msg":{"type":"request_user_input","call_id":"q","turn_id":"turn-9","questions":[{"id":"db","header":"Database","question":"Which one?","isOther":true,"isSecret":false,"options":[{"label":"SQLite","description":""}]}]}}"#;

#[test]
fn questions_are_asked_and_answered_by_turn() {
    let mut replay = after(&[QUESTION]);
    let (_, request) = replay.requests.pop().unwrap();
    let answers = [("db".to_owned(), vec!["SQLite".to_owned()])].into();
    replay.session.answer(&request, &Answer::Answers { answers }, Origin::Human, None).unwrap();
    replay.settle();
    assert_eq!(
        replay.written[0]["op"],
        json!({"type": "user_input_answer", "id": "turn-9", "response": {"answers": {"db": {"answers": ["SQLite"]}}}})
    );
}

#[test]
fn a_no_that_stops_stops_the_turn_whatever_was_asked() {
    let stop = Answer::Deny { message: None, stop: true };
    let none = json!({"type": "user_input_answer", "id": "turn-9", "response": {"answers": {}}});
    let abort = json!({"type": "exec_approval", "id": "sub-1", "decision": "abort"});
    for (asked, expected) in
        [(QUESTION, vec![none, json!({"type": "interrupt"})]), (ASK, vec![abort])]
    {
        let mut replay = after(&[asked]);
        let (_, request) = replay.requests.pop().unwrap();
        replay.session.answer(&request, &stop, Origin::Human, None).unwrap();
        replay.settle();
        let ops: Vec<Value> = replay.written.iter().map(|line| line["op"].clone()).collect();
        assert_eq!(ops, expected);
    }
}

#[test]
fn a_server_of_tools_that_asks_gets_what_people_say() {
    const FORM: &str = r#"{"id":"","msg":{"type":"elicitation_request","server_name":"docs","id":"q-1","message":"Which colour?","request":{"message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]},"sure":{"type":"boolean"}}}}}}"#;
    const PLAIN: &str = r#"{"id":"","msg":{"type":"elicitation_request","server_name":"docs","id":7,"message":"Go on?"}}"#;
    let answers = [
        ("colour".to_owned(), vec!["blue".to_owned()]),
        ("sure".to_owned(), vec!["yes".to_owned()]),
    ];
    let filled = Answer::Answers { answers: answers.into() };
    let yes = Answer::Allow { scope: Scope::Once, input: None, mode: None };
    let no = Answer::Deny { message: None, stop: false };
    let op = |id: Value, decision: &str, content: Value| {
        let mut op = json!({"type": "resolve_elicitation", "server_name": "docs", "request_id": id, "decision": decision});
        if !content.is_null() {
            op["content"] = content;
        }
        op
    };
    for (asked, answer, expected) in [
        (FORM, &filled, op(json!("q-1"), "accept", json!({"colour": "blue", "sure": true}))),
        (FORM, &no, op(json!("q-1"), "decline", Value::Null)),
        (PLAIN, &yes, op(json!(7), "accept", json!({}))),
        (PLAIN, &no, op(json!(7), "decline", Value::Null)),
    ] {
        let mut replay = after(&[asked]);
        let (_, request) = replay.requests.pop().unwrap();
        replay.session.answer(&request, answer, Origin::Human, None).unwrap();
        replay.settle();
        assert_eq!(replay.written[0]["op"], expected, "{asked}");
    }
    let mut replay = after(&[FORM]);
    let (_, request) = replay.requests.pop().unwrap();
    let refused = replay.session.answer(&request, &yes, Origin::Human, None).unwrap_err();
    assert!(refused.0.contains("wants answers"), "{refused:?}");
    let mut replay = after(&[PLAIN]);
    let (_, request) = replay.requests.pop().unwrap();
    let stop = Answer::Deny { message: None, stop: true };
    replay.session.answer(&request, &stop, Origin::Human, None).unwrap();
    replay.settle();
    let ops: Vec<Value> = replay.written.iter().map(|line| line["op"].clone()).collect();
    assert_eq!(ops, [op(json!(7), "cancel", Value::Null), json!({"type": "interrupt"})]);
}

#[test]
fn nothing_the_agent_asks_is_left_without_an_answer() {
    let cases = [
        (
            r#"{"type":"dynamic_tool_call_request","callId":"c","turnId":"1","tool":"x","arguments":{}}"#,
            json!({"type": "dynamic_tool_response", "id": "c", "response": {"success": false, "contentItems": [{"type": "inputText", "text": "there is no such tool"}]}}),
        ),
        (
            r#"{"type":"request_permissions","call_id":"c"}"#,
            json!({"type": "request_permissions_response", "id": "c", "response": {"permissions": {}, "scope": "turn"}}),
        ),
        (
            r#"{"type":"exec_approval_request","call_id":"c","command":7}"#,
            json!({"type": "exec_approval", "id": "sub-1", "decision": "denied"}),
        ),
        (
            r#"{"type":"apply_patch_approval_request","call_id":"c","changes":7}"#,
            json!({"type": "patch_approval", "id": "sub-1", "decision": "denied"}),
        ),
        (
            r#"{"type":"request_user_input","call_id":"c","questions":7}"#,
            json!({"type": "user_input_answer", "id": "sub-1", "response": {"answers": {}}}),
        ),
    ];
    for (message, answer) in cases {
        let replay = after(&[&format!(r#"{{"id":"sub-1","msg":{message}}}"#)]);
        assert_eq!(replay.written[0]["op"], answer, "{message}");
    }
}

#[test]
fn an_end_of_another_shape_still_ends_the_turn() {
    for kind in ["task_complete", "turn_aborted", "error"] {
        let line = format!(
            r#"{{"id":"sub-1","msg":{{"type":"{kind}","message":1,"reason":1,"last_agent_message":1}}}}"#
        );
        let replay = after(&[&line]);
        assert!(replay.shown().contains("Protocol"), "{}", replay.shown());
        assert_eq!(replay.n_ends(), 1);
    }
}

#[test]
fn tools_searches_reviews_and_news_become_items_and_notices() {
    let replay = after(&[
        r#"{"id":"sub-1","msg":{"type":"mcp_tool_call_begin","call_id":"m","invocation":{"server":"docs","tool":"find","arguments":{"q":1e2}}}}"#,
        r#"{"id":"sub-1","msg":{"type":"mcp_tool_call_end","call_id":"m","invocation":{"server":"docs","tool":"find","arguments":{"q":1e2}},"duration":{"secs":0,"nanos":1},"result":{"Ok":{"content":[{"type":"text","text":"found"},{"type":"image","data":"AA==","mimeType":"image/png"}],"isError":false}}}}"#,
        r#"{"id":"sub-1","msg":{"type":"mcp_tool_call_end","call_id":"n","invocation":{"server":"docs","tool":"find"},"result":{"Err":"gone"}}}"#,
        r#"{"id":"sub-1","msg":{"type":"web_search_begin","call_id":"w"}}"#,
        r#"{"id":"sub-1","msg":{"type":"web_search_end","call_id":"w","query":"","action":{"type":"find_in_page","url":"u","pattern":"p"}}}"#,
        r#"{"id":"sub-1","msg":{"type":"view_image_tool_call","call_id":"v","path":"/a.png"}}"#,
        r#"{"id":"sub-1","msg":{"type":"entered_review_mode","prompt":"x","user_facing_hint":"current changes"}}"#,
        r#"{"id":"sub-1","msg":{"type":"exited_review_mode","review_output":{"findings":[{"title":"T","body":"B","confidence_score":1.0,"priority":1,"code_location":{"absolute_file_path":"/a","line_range":{"start":1,"end":2}}}],"overall_correctness":"ok","overall_explanation":"E","overall_confidence_score":1.0}}}"#,
        r#"{"id":"sub-1","msg":{"type":"context_compacted"}}"#,
        r#"{"id":"sub-1","msg":{"type":"background_event","message":"b"}}"#,
        r#"{"id":"sub-1","msg":{"type":"warning","message":"w"}}"#,
        r#"{"id":"sub-1","msg":{"type":"deprecation_notice","summary":"d","details":"e"}}"#,
        r#"{"id":"sub-1","msg":{"type":"mcp_startup_complete","ready":[],"failed":[{"server":"s","error":"e"}],"cancelled":[]}}"#,
        r#"{"id":"sub-1","msg":{"type":"plan_delta","delta":"- a"}}"#,
        r##"{"id":"sub-1","msg":{"type":"item_completed","thread_id":"t","turn_id":"1","item":{"type":"Plan","id":"p","text":"- a\n"}}}"##,
        r#"{"id":"sub-1","msg":{"type":"hook_started","x":1}}"#,
        r#"{"id":"sub-1","msg":{"type":"turn_diff","unified_diff":"d"}}"#,
        r#"{"id":"sub-1","msg":{"type":"list_custom_prompts_response","custom_prompts":[]}}"#,
        COMPLETE,
    ]);
    let text = replay.shown();
    for line in [
        "tool_call t1:m Ok Mcp docs/find None input {\"q\":1e2} -> \"found\", image image/png",
        "tool_call t1:n Failed Mcp docs/find None input  -> \"gone\"",
        "item.completed: web_search t1:w Ok",
        "p in u",
        "image t1:v Ok",
        "item.started: review t1:review1 InProgress",
        "item.completed: review t1:review1 Ok",
        "E\\n\\nT (/a:1-2)\\nB",
        "compaction t1:compaction2 Ok",
        "Info background: b",
        "Warning warning: w",
        "Info deprecation: d (e)",
        "Warning mcp_failed: the MCP server s did not start: e",
        "item.completed: plan t1:plan3 Ok",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("unparsed"), "{text}");
}

#[test]
fn the_outcome_of_a_review_is_kept_for_programs() {
    let replay = after(&[
        r#"{"id":"sub-1","msg":{"type":"exited_review_mode","review_output":{"findings":[{"title":"T","body":"B","confidence_score":0.5,"priority":1,"code_location":{"absolute_file_path":"/a","line_range":{"start":3,"end":2}}},{"title":"U","body":"","confidence_score":0.0,"priority":0,"code_location":{"absolute_file_path":"","line_range":{"start":0,"end":0}}}],"overall_correctness":"patch is incorrect","overall_explanation":"E","overall_confidence_score":0.9}}}"#,
        r#"{"id":"sub-1","msg":{"type":"exited_review_mode","review_output":null}}"#,
        COMPLETE,
    ]);
    let outcomes: Vec<_> = replay.outputs.iter().filter_map(review_outcome).collect();
    let outcome = json!({
        "findings": [
            {"title": "T", "body": "B", "confidence": 0.5, "priority": 1, "path": "/a",
             "lines": {"first": 3, "last": 3}},
            {"title": "U", "body": "", "confidence": 0.0, "priority": 0},
        ],
        "correctness": "patch is incorrect", "explanation": "E", "confidence": 0.9,
    });
    assert_eq!(outcomes, [outcome, json!(null)]);
}

fn review_outcome(output: &Output) -> Option<Value> {
    let Output::Event(draft) = output else { return None };
    let Kind::ItemCompleted(Item { body: ItemBody::Review { outcome, .. }, .. }) = &draft.kind
    else {
        return None;
    };
    Some(serde_json::to_value(outcome).unwrap())
}

#[test]
fn an_exit_says_what_the_agent_said_last() {
    let launch = Launch::new(Path::new("/"), Mode::Default);
    let exit = ExitInfo { code: Some(1), ..ExitInfo::default() };
    let failure = ProtoDriver::new(&launch, LAST).explain_exit(&exit);
    assert!(failure.message.contains("before its first message"), "{failure}");
    let mut replay = after(&[
        r#"{"id":"sub-1","msg":{"type":"error","message":"unexpected status 401 Unauthorized: x"}}"#,
    ]);
    replay.exit(&exit);
    assert!(replay.shown().contains("NotLoggedIn http Some(401)"), "{}", replay.shown());
}

#[test]
fn an_effort_and_a_client_s_directories_go_with_each_turn() {
    let extras =
        tieline_event::Extras { mcp_servers: Vec::new(), directories: vec!["/other".into()] };
    let workspace = Path::new("/workspace");
    let launch = Launch { extras: &extras, ..Launch::new(workspace, Mode::AcceptEdits) };
    let driver = Box::new(ProtoDriver::new(&launch, LAST));
    let mut session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
    session.started();
    session.read(format!("{CONFIGURED}\n").as_bytes(), |_, _| {});
    assert!(session.set_effort(Some("high")));
    session.start_turn(&Prompt::text("go"));
    let (written, _) = session.take_writes(|_, _| {});
    let turn: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(turn["op"]["effort"], "high");
    assert_eq!(turn["op"]["sandbox_policy"]["writable_roots"], json!(["/other"]));
}

#[test]
fn figures_that_are_too_large_to_be_added_end_nothing() {
    let most = u64::MAX;
    let total = json!({"input_tokens": most, "cached_input_tokens": 1, "output_tokens": most});
    let count = json!({"id": "sub-1", "msg": {"type": "token_count", "info": {
        "total_token_usage": total, "last_token_usage": total, "model_context_window": null}}});
    let replay = after(&[&count.to_string(), COMPLETE]);
    assert_eq!(replay.n_ends(), 1, "{}", replay.shown());
}

#[test]
fn the_engine_s_failures_are_its_own_and_codex_s_are_guessed() {
    let error = r#"{"id":"sub-1","msg":{"type":"error","message":"there is no key for local","codex_error_info":"unauthorized","additional_details":"set LOCAL_KEY","tieline_failure":{"code":"not_logged_in","message":"there is no key for local","hint":"set LOCAL_KEY","http_status":401}}}"#;
    let failure = |driver: ProtoDriver| {
        let mut session =
            Session::new(Box::new(driver), Ledger::new(0, None), 64 << 20, FrameNo(1));
        session.started();
        session.read(format!("{CONFIGURED}\n").as_bytes(), |_, _| {});
        session.start_turn(&Prompt::text("hi"));
        for line in [STARTED, error, COMPLETE] {
            session.read(format!("{line}\n").as_bytes(), |_, _| {});
        }
        let mut ends = session.take_outputs().into_iter().filter_map(|output| match output {
            Output::Event(draft) => match draft.kind {
                Kind::TurnCompleted(end) => end.error,
                _ => None,
            },
            _ => None,
        });
        ends.next().unwrap()
    };
    let launch = Launch::new(Path::new("/workspace"), Mode::Default);
    let own = failure(ProtoDriver::engine(&launch, EngineOffer::default()));
    assert_eq!(own.code, FailureCode::NotLoggedIn);
    assert_eq!(own.message, "there is no key for local");
    assert_eq!(own.hint.as_deref(), Some("set LOCAL_KEY"));
    assert_eq!((own.http_status, own.detail), (Some(401), None));
    // Codex has no such field; whoever writes it there is not believed.
    let other = failure(ProtoDriver::new(&launch, LAST));
    assert_eq!(other.code, FailureCode::NotLoggedIn);
    assert!(other.hint.unwrap().contains("codex login"));
}

#[test]
fn pieces_of_what_never_began_begin_it() {
    for engine in [false, true] {
        let launch = Launch::new(Path::new("/workspace"), Mode::Default);
        let driver = match engine {
            true => ProtoDriver::engine(&launch, EngineOffer::default()),
            false => ProtoDriver::new(&launch, Version(0, 42, 0)),
        };
        let mut session =
            Session::new(Box::new(driver), Ledger::new(0, None), 64 << 20, FrameNo(1));
        session.started();
        let mut replay = Replay {
            session,
            clock: Clock::default(),
            outputs: vec![],
            kept: vec![],
            written: vec![],
            requests: vec![],
        };
        replay.lines(&[CONFIGURED]);
        replay.session.start_turn(&Prompt::text("go"));
        replay.lines(&[
            STARTED,
            r#"{"id":"sub-1","msg":{"type":"agent_reasoning_delta","delta":"hm"}}"#,
            r#"{"id":"sub-1","msg":{"type":"exec_command_output_delta","call_id":"c","stream":"stdout","chunk":"cHJpbnRlZA=="}}"#,
            r#"{"id":"sub-1","msg":{"type":"agent_message_delta","delta":"all "}}"#,
            r#"{"id":"sub-1","msg":{"type":"agent_message_delta","delta":"of it"}}"#,
            r#"{"id":"sub-1","msg":{"type":"task_complete","last_agent_message":null}}"#,
        ]);
        let text: String = replay.outputs.iter().map(|it| format!("{}\n", show(it))).collect();
        assert!(text.contains("text \"all of it\""), "{text}");
        for kind in ["reasoning", "command", "agent_message"] {
            assert_eq!(text.matches(&format!("item.started: {kind}")).count(), 1, "{text}");
            assert_eq!(text.matches(&format!("item.completed: {kind}")).count(), 1, "{text}");
        }
        assert!(text.contains("printed"), "{text}");
    }
}

//! Codex by its app server.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::{Value, json};
use tieline_agent::codex::Version;
use tieline_agent::codex_app::{AppDriver, AppSwitchboard};
use tieline_agent::{
    Destination, Direction, ExitInfo, Launch, Ledger, Output, Resume, Session, Switchboard,
};
use tieline_event::{
    Answer, AskWhen, FrameNo, Kind, Mode, Origin, Policy, Prompt, Reach, RequestId, Scope,
    TurnStatus,
};

use crate::recording::{Recording, check_snapshot, check_whole, fixtures, load, recordings};
use crate::show::show;

const VERSION: Version = Version(0, 166, 0);

fn launch<'a>(mode: Mode) -> Launch<'a> {
    Launch { workspace: Path::new("/workspace"), mode, policy: None, model: None, resume: None }
}

struct Replay {
    session: Session,
    outputs: Vec<Output>,
    kept: Vec<u8>,
    /// Our ids of the server's requests.
    requests: BTreeMap<String, RequestId>,
    /// Our requests that wait for an answer.
    written: Vec<Value>,
    /// The recorded requests by their ids.
    recorded: HashMap<String, String>,
}

impl Replay {
    fn new(launch: &Launch<'_>) -> Self {
        let driver = Box::new(AppDriver::new(launch, VERSION, 1));
        let session = launch.resume.map(|resume| resume.session.to_owned());
        let mut session = Session::new(driver, Ledger::new(0, session), 64 << 20, FrameNo(1));
        session.started();
        let mut replay = Self {
            session,
            outputs: vec![],
            kept: vec![],
            requests: BTreeMap::new(),
            written: vec![],
            recorded: HashMap::new(),
        };
        replay.settle();
        replay
    }

    /// What the driver writes is remembered, what it tells is kept.
    fn settle(&mut self) {
        let (bytes, _) = self.session.take_writes(|_, _| {});
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.written.push(serde_json::from_slice(line).unwrap());
        }
        for output in self.session.take_outputs() {
            if let Output::Event(draft) = &output
                && let Kind::RequestOpened(request) = &draft.kind
            {
                let wire_id = draft.native.request.clone().unwrap();
                self.requests.insert(wire_id, request.id.clone());
            }
            self.outputs.push(output);
        }
    }

    /// An answer of the server carries the recorded client's id: ours is put in its place, found
    /// by the method. What our client does not ask is answered to nobody.
    fn with_our_id(&mut self, line: &[u8]) -> Vec<u8> {
        let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return line.to_vec() };
        if value.get("method").is_some() || value.get("id").is_none() {
            return line.to_vec();
        }
        let method = self.recorded.get(&value["id"].to_string()).cloned();
        let ours =
            self.written.iter().position(|ours| ours["method"].as_str() == method.as_deref());
        value["id"] = ours.map_or(json!(-1), |at| self.written.remove(at)["id"].clone());
        let mut line = serde_json::to_vec(&value).unwrap();
        line.push(b'\n');
        line
    }

    fn read(&mut self, line: &[u8]) {
        let kept = &mut self.kept;
        self.session.read(line, |direction, bytes| {
            assert_eq!(direction, Direction::Out);
            kept.extend_from_slice(bytes);
        });
        self.settle();
    }

    /// Does what the recorded client did.
    fn say(&mut self, line: &Value) {
        if let (Some(method), Some(id)) = (line["method"].as_str(), line.get("id")) {
            self.recorded.insert(id.to_string(), method.to_owned());
        }
        match line["method"].as_str() {
            Some("turn/start" | "turn/steer") => {
                let text = line["params"]["input"][0]["text"].as_str().unwrap_or_default();
                let prompt = Prompt::text(text);
                if self.session.ledger().current_turn().is_some() {
                    self.session.steer(&prompt).unwrap();
                    // The recorded one may have used the other method for it.
                    if let Some(ours) = self.session_writes_last() {
                        self.recorded.insert(line["id"].to_string(), ours);
                    }
                } else {
                    self.session.start_turn(&prompt);
                }
            }
            Some("turn/interrupt") => assert!(self.session.interrupt()),
            None if line.get("result").is_some() => self.answer(line),
            _ => {}
        }
        self.settle();
    }

    fn session_writes_last(&mut self) -> Option<String> {
        self.settle();
        self.written.last().and_then(|line| line["method"].as_str()).map(str::to_owned)
    }

    fn answer(&mut self, line: &Value) {
        let result = &line["result"];
        let answer = match result["decision"].as_str() {
            Some("accept") => Answer::allow(),
            Some("acceptForSession") => {
                Answer::Allow { scope: Scope::Session, input: None, mode: None }
            }
            Some("decline") => Answer::Deny { message: None, stop: false },
            Some("cancel") => Answer::Deny { message: None, stop: true },
            _ => Answer::Answers {
                answers: result["answers"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(id, given)| {
                        (id.clone(), serde_json::from_value(given["answers"].clone()).unwrap())
                    })
                    .collect(),
            },
        };
        let request = self.requests[&line["id"].to_string()].clone();
        self.session.answer(&request, &answer, Origin::Human, None).unwrap();
        // The answer is the recorded one, byte for byte of JSON.
        self.settle();
        let ours = self.written.pop().unwrap();
        assert_eq!(ours, *line);
    }

    fn finish(&mut self, exit: &ExitInfo) {
        let Self { session, kept, .. } = self;
        session.exited(exit, |_, bytes| kept.extend_from_slice(bytes));
        self.settle();
    }
}

/// How the recorded client opened its thread decides how ours is launched.
fn launch_of(recording: &Recording) -> (Option<String>, Mode) {
    let resumed = recording.said.iter().find(|(_, line)| line["method"] == "thread/resume");
    let session = resumed.map(|(_, line)| line["params"]["threadId"].as_str().unwrap().to_owned());
    let plans = recording
        .said
        .iter()
        .any(|(_, line)| line["params"]["collaborationMode"]["mode"] == "plan");
    (session, if plans { Mode::Plan } else { Mode::Default })
}

fn replay(recording: &Recording) -> Replay {
    let (session, mode) = launch_of(recording);
    let resume = session.as_deref().map(|session| Resume { session, fork: false });
    let mut replay = Replay::new(&Launch { resume, ..launch(mode) });
    let mut said = recording.said.iter().peekable();
    let mut expected = Vec::new();
    for (n_read, line) in recording.out.split_inclusive(|byte| *byte == b'\n').enumerate() {
        while let Some((_, line)) = said.next_if(|(at, _)| *at <= n_read) {
            replay.say(line);
        }
        let line = replay.with_our_id(line);
        expected.extend_from_slice(&line);
        replay.read(&line);
    }
    said.for_each(|(_, line)| replay.say(line));
    replay.finish(&recording.exit);
    assert_eq!(replay.kept, expected, "frames are the input byte for byte");
    replay
}

/// Recordings with more than one conversation are for the switchboard.
fn is_single(scenario: &Path) -> bool {
    !scenario.ends_with("two-threads-concurrent")
}

#[test]
fn every_recording_replays_whole_to_its_snapshot() {
    for scenario in recordings("codex_app").iter().filter(|it| is_single(it)) {
        let replay = replay(&load(scenario));
        check_whole(scenario, &replay.outputs, replay.session.ledger());
        check_snapshot("codex_app", scenario, &replay.outputs, replay.session.ledger());
    }
}

#[test]
fn any_chunking_and_any_cut_ends_the_turn_once() {
    let recording = load(&fixtures("codex_app").join("0.166.0/parallel"));
    let whole = replay(&recording).kept;
    let turn = whole.windows(13).position(|it| it == b"\"turn/started").unwrap();
    for cut in (turn..whole.len()).step_by(997) {
        let mut replay = Replay::new(&launch(Mode::Default));
        replay.session.start_turn(&Prompt::text("go"));
        for chunk in whole[..cut].chunks(61) {
            replay.read(chunk);
        }
        replay.finish(&ExitInfo { signal: Some(9), ..ExitInfo::default() });
        assert_eq!(replay.kept, whole[..cut]);
        let ends = shown(&replay).matches("turn.completed").count();
        assert_eq!(ends, 1, "cut at {cut}");
    }
}

#[test]
fn garbage_between_the_lines_becomes_unparsed_and_changes_nothing_else() {
    let recording = load(&fixtures("codex_app").join("0.166.0/hello"));
    let clean = replay(&recording);
    let mut dirty = Replay::new(&launch(Mode::Default));
    let garbage: [&[u8]; 6] = [
        b"not json\n",
        b"\xff\xfe\x00\n",
        b"{\"method\":\"from/the/future\",\"params\":{\"x\":1}}\n",
        b"{\"method\":\"item/started\",\"params\":{\"item\":7}}\n",
        b"\n",
        b"{\"id\":4711,\"result\":{}}\n",
    ];
    let mut started = false;
    for (n, line) in clean.kept.split_inclusive(|byte| *byte == b'\n').enumerate() {
        dirty.read(garbage[n % garbage.len()]);
        dirty.read(line);
        // The recorded client began its turn when its thread was there.
        if !std::mem::replace(&mut started, true) {
            dirty.session.start_turn(&Prompt::text("Go. SCENARIO:hello"));
        }
    }
    dirty.finish(&recording.exit);
    let keep = |text: String| -> Vec<String> {
        let noise = |line: &&str| {
            !line.contains("unparsed")
                && !line.contains("configured")
                && !line.contains("config_warning")
        };
        text.lines().filter(noise).map(str::to_owned).collect()
    };
    assert_eq!(keep(shown(&dirty)), keep(shown(&clean)));
    assert!(shown(&dirty).matches("unparsed").count() > 5);
}

fn shown(replay: &Replay) -> String {
    replay.outputs.iter().map(|output| format!("{}\n", show(output))).collect()
}

/// A conversation with its thread open and nothing said.
fn ready(launch: &Launch<'_>) -> Replay {
    let mut replay = Replay::new(launch);
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "tieline/0.166.0 (x)"}}));
    let open = replay.written.pop().unwrap();
    replay.tell(&json!({
        "id": open["id"],
        "result": {"thread": {"id": "thread"}, "model": "gpt-5.5", "cwd": "/workspace"},
    }));
    replay.written.clear();
    replay.outputs.clear();
    replay
}

/// The same with a turn that has its name.
fn running() -> Replay {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    replay.name_turn("turn");
    replay.outputs.clear();
    replay
}

impl Replay {
    fn tell(&mut self, line: &Value) {
        self.read(format!("{line}\n").as_bytes());
    }

    fn take(&mut self, method: &str) -> Value {
        let at = self.written.iter().position(|line| line["method"] == method);
        self.written.remove(at.unwrap_or_else(|| panic!("{method} in {:?}", self.written)))
    }

    fn take_after_settle(&mut self, method: &str) -> Value {
        self.settle();
        self.take(method)["id"].clone()
    }

    fn name_turn(&mut self, name: &str) {
        let start = self.take("turn/start");
        self.tell(&json!({"id": start["id"], "result": {"turn": {"id": name}}}));
    }

    fn end_turn(&mut self, name: &str, status: &str) {
        let turn = json!({"id": name, "status": status, "items": []});
        self.tell(&json!({
            "method": "turn/completed", "params": {"threadId": "thread", "turn": turn},
        }));
    }

    fn ask(&mut self, method: &str, params: Value) -> RequestId {
        let mut params = params;
        params["threadId"] = json!("thread");
        self.tell(&json!({"method": method, "id": 0, "params": params}));
        self.requests["0"].clone()
    }

    fn answer_with(&mut self, request: &RequestId, answer: &Answer) -> Value {
        self.session.answer(request, answer, Origin::Human, None).unwrap();
        self.settle();
        self.written.remove(0)
    }
}

fn allow(scope: Scope) -> Answer {
    Answer::Allow { scope, input: None, mode: None }
}

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
fn an_overloaded_server_is_asked_again_and_again_but_not_for_ever() {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let busy = json!({"code": -32001, "message": "Server overloaded; retry later."});
    let mut pauses = Vec::new();
    while shown(&replay).matches("turn.completed").count() == 0 {
        let start = replay.take("turn/start");
        replay.tell(&json!({"id": start["id"], "error": busy}));
        if let Some(pause) = replay.session.ledger_mut().take_wake() {
            pauses.push(pause.as_millis());
            replay.session.wake();
            replay.settle();
        }
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000]);
    assert!(shown(&replay).contains("overloaded"), "{}", shown(&replay));
    // One that gets through is a turn like any other.
    replay.outputs.clear();
    replay.session.start_turn(&Prompt::text("again"));
    replay.settle();
    let start = replay.take("turn/start");
    replay.tell(&json!({"id": start["id"], "error": busy}));
    replay.session.wake();
    replay.settle();
    replay.name_turn("second");
    replay.end_turn("second", "completed");
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
fn directories_of_the_user_s_configuration_stay_writable() {
    let mut replay = Replay::new(&launch(Mode::AcceptEdits));
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.166.0 (y)"}}));
    let id = replay.take("thread/start")["id"].clone();
    let sandbox = json!({
        "type": "workspaceWrite", "writableRoots": ["/cache"], "networkAccess": true,
        "excludeTmpdirEnvVar": true, "excludeSlashTmp": true,
    });
    replay.tell(&json!({"id": id, "result": {"thread": {"id": "thread"}, "sandbox": sandbox}}));
    let turn = |replay: &mut Replay, n: u32| {
        replay.session.start_turn(&Prompt::text("go"));
        replay.settle();
        let start = replay.take("turn/start");
        let name = format!("turn{n}");
        replay.tell(&json!({"id": start["id"], "result": {"turn": {"id": name}}}));
        replay.end_turn(&name, "completed");
        start["params"]["sandboxPolicy"].clone()
    };
    let first = turn(&mut replay, 1);
    assert_eq!(first["writableRoots"], json!(["/cache"]));
    assert_eq!(first["networkAccess"], json!(false), "the mode has no network");
    assert!(replay.session.set_mode(Mode::Yolo, None));
    assert_eq!(turn(&mut replay, 2), json!({"type": "dangerFullAccess"}));
    assert!(replay.session.set_mode(Mode::BypassPermissions, None));
    assert_eq!(turn(&mut replay, 3)["networkAccess"], json!(true));
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
fn an_end_of_another_shape_still_ends_the_turn() {
    let mut replay = running();
    replay.tell(&json!({"method": "turn/completed", "params": {"threadId": "thread", "turn": 7}}));
    let text = shown(&replay);
    assert!(text.contains("unparsed") && text.contains("turn.completed: Failed by Wire"), "{text}");
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
    let resume = Some(Resume { session: "gone", fork: false });
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
    let resume = Some(Resume { session: "thread", fork: false });
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
    let resume = Some(Resume { session: "old", fork: true });
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
fn a_mode_is_said_with_every_turn() {
    let params = |launch: &Launch<'_>| {
        let mut replay = ready(launch);
        replay.session.start_turn(&Prompt::text("go"));
        replay.settle();
        let params = replay.take("turn/start")["params"].clone();
        let (ask, reach) = (params["approvalPolicy"].clone(), params["sandboxPolicy"].clone());
        let plan = params["collaborationMode"]["mode"].clone();
        format!("{} {} {} {}", ask, reach["type"], reach["networkAccess"], plan)
    };
    let of = |mode| params(&launch(mode));
    assert_eq!(of(Mode::Default), r#""on-request" "readOnly" null null"#);
    assert_eq!(of(Mode::Plan), r#""on-request" "readOnly" null "plan""#);
    assert_eq!(of(Mode::AcceptEdits), r#""on-request" "workspaceWrite" false null"#);
    assert_eq!(of(Mode::BypassPermissions), r#""never" "workspaceWrite" true null"#);
    assert_eq!(of(Mode::Yolo), r#""never" "dangerFullAccess" null null"#);
    let policy = Some(Policy { ask: AskWhen::OnFailure, reach: Reach::WorkspaceWrite });
    let launch = Launch { policy, ..launch(Mode::Default) };
    assert_eq!(params(&launch), r#""on-request" "workspaceWrite" false null"#);
}

#[test]
fn an_older_server_is_told_in_its_own_spelling() {
    let policy = Some(Policy { ask: AskWhen::OnFailure, reach: Reach::WorkspaceWrite });
    let open = |policy| {
        let mut replay = Replay::new(&Launch { policy, ..launch(Mode::Default) });
        let id = replay.take("initialize")["id"].clone();
        replay.tell(&json!({"id": id, "result": {"userAgent": "codex_cli_rs/0.63.0 (x)"}}));
        let params = replay.take("thread/start")["params"].clone();
        format!("{} {}", params["approvalPolicy"], params["sandbox"])
    };
    assert_eq!(open(policy), r#""onFailure" "workspaceWrite""#);
    assert_eq!(open(None), r#""onRequest" "readOnly""#);
    let untrusted = Policy { ask: AskWhen::Untrusted, reach: Reach::DangerFullAccess };
    assert_eq!(open(Some(untrusted)), r#""unlessTrusted" "dangerFullAccess""#);
}

#[test]
fn commands_of_the_server_are_no_prompts() {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("/compact"));
    replay.settle();
    let compact = replay.take("thread/compact/start");
    replay.tell(&json!({"id": compact["id"], "result": {}}));
    let turn = json!({"threadId": "thread", "turn": {"id": "c", "status": "inProgress"}});
    replay.tell(&json!({"method": "turn/started", "params": turn}));
    replay.tell(&json!({"method": "item/completed", "params": {
        "threadId": "thread", "turnId": "c", "item": {"type": "contextCompaction", "id": "i"},
    }}));
    replay.tell(&json!({"method": "thread/compacted", "params": {"threadId": "thread"}}));
    replay.end_turn("c", "completed");
    let text = shown(&replay);
    assert_eq!(text.matches("item.completed: compaction").count(), 1, "{text}");
    assert!(text.contains("turn.completed: Completed"), "{text}");
    replay.session.start_turn(&Prompt::text("/review the tests"));
    replay.settle();
    let target = replay.take("review/start")["params"]["target"].clone();
    assert_eq!(target, json!({"type": "custom", "instructions": "the tests"}));
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

/// Two recorded threads on one server, each with a driver that knows nothing of the other.
#[test]
fn a_switchboard_gives_each_conversation_its_own_lines() {
    let recording = load(&fixtures("codex_app").join("0.166.0/two-threads-concurrent"));
    let mut board = AppSwitchboard::default();
    let mut seats: Vec<Replay> = Vec::new();
    for seat in 0..2 {
        let driver = Box::new(AppDriver::new(&launch(Mode::Default), VERSION, (seat << 32) + 1));
        let mut session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
        session.started();
        session.start_turn(&Prompt::text(format!("prompt {seat}")));
        let mut replay = Replay {
            session,
            outputs: vec![],
            kept: vec![],
            requests: BTreeMap::new(),
            written: vec![],
            recorded: HashMap::new(),
        };
        replay.settle();
        seats.push(replay);
    }
    let recorded: HashMap<String, String> = recording
        .said
        .iter()
        .filter_map(|(_, line)| Some((line["id"].to_string(), line["method"].as_str()?.to_owned())))
        .collect();
    // Requests of the drivers that the server has, in the order it got them.
    let mut sent: Vec<Value> = Vec::new();
    let mut lines: Vec<Vec<u8>> =
        recording.out.split_inclusive(|byte| *byte == b'\n').rev().map(<[u8]>::to_vec).collect();
    while !lines.is_empty() {
        for seat in 0..2 {
            for line in std::mem::take(&mut seats[seat].written) {
                for routed in board.outgoing(seat, line.to_string().as_bytes()) {
                    let line: Value = serde_json::from_slice(&routed.line).unwrap();
                    match routed.to {
                        Destination::Process => sent.push(line),
                        Destination::Seat(seat) => seats[seat].tell(&line),
                        Destination::Everybody => panic!("nothing goes out to everybody"),
                    }
                }
            }
        }
        let mut line: Value = serde_json::from_slice(&lines.pop().unwrap()).unwrap();
        if line.get("method").is_none() {
            let method = &recorded[&line["id"].to_string()];
            let at = sent.iter().position(|sent| sent["method"] == method.as_str());
            let at = at.unwrap_or_else(|| panic!("{method} in {sent:?}"));
            line["id"] = sent.remove(at)["id"].clone();
        }
        for routed in board.incoming(line.to_string().as_bytes()) {
            let line: Value = serde_json::from_slice(&routed.line).unwrap();
            match routed.to {
                Destination::Seat(seat) => seats[seat].tell(&line),
                Destination::Everybody => seats.iter_mut().for_each(|seat| seat.tell(&line)),
                Destination::Process => assert_eq!(line["method"], "initialized"),
            }
        }
    }
    let mut threads = Vec::new();
    for seat in &seats {
        let text = shown(seat);
        assert_eq!(text.matches("turn.completed: Completed").count(), 1, "{text}");
        assert!(!text.contains("unparsed"), "{text}");
        threads.push(seat.session.ledger().session().unwrap().to_owned());
    }
    assert_ne!(threads[0], threads[1]);
    assert_eq!(board.left(0).len(), 1, "its thread is given up");
    let end = |seat: &Replay| {
        seat.outputs.iter().any(|output| {
            matches!(output, Output::Event(draft) if matches!(&draft.kind,
                Kind::TurnCompleted(end) if end.status == TurnStatus::Completed))
        })
    };
    assert!(seats.iter().all(end));
}

#[test]
fn a_mode_changed_while_the_thread_opens_holds_for_its_first_turn() {
    let mut replay = Replay::new(&launch(Mode::Yolo));
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "x/0.166.0 (y)"}}));
    let id = replay.take("thread/start")["id"].clone();
    assert!(replay.session.set_mode(Mode::Default, None));
    let sandbox = json!({"type": "dangerFullAccess"});
    replay.tell(&json!({"id": id, "result": {"thread": {"id": "thread"}, "sandbox": sandbox}}));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    let params = replay.take("turn/start")["params"].clone();
    assert_eq!(params["sandboxPolicy"], json!({"type": "readOnly"}));
}

#[test]
fn a_review_waits_until_the_thread_has_the_new_mode() {
    let mut replay = ready(&launch(Mode::Yolo));
    replay.session.start_turn(&Prompt::text("go"));
    replay.settle();
    replay.name_turn("one");
    replay.end_turn("one", "completed");
    assert!(replay.session.set_mode(Mode::Default, None));
    replay.session.start_turn(&Prompt::text("/review"));
    replay.settle();
    let update = replay.take("thread/settings/update");
    assert_eq!(update["params"]["sandboxPolicy"], json!({"type": "readOnly"}));
    assert!(replay.written.iter().all(|line| line["method"] != "review/start"));
    replay.tell(&json!({"id": update["id"], "result": {}}));
    replay.take("review/start");
    // A version without that word does not review with more rights than it should have.
    assert!(replay.session.set_mode(Mode::AcceptEdits, None));
    replay.tell(&json!({"method": "turn/completed", "params": {
        "threadId": "thread", "turn": {"id": "x", "status": "completed"},
    }}));
    replay.session.start_turn(&Prompt::text("/review"));
    replay.settle();
    let update = replay.take("thread/settings/update");
    let message = "Invalid request: unknown variant `thread/settings/update`, expected one of `a`";
    replay.tell(&json!({"id": update["id"], "error": {"code": -32600, "message": message}}));
    assert!(shown(&replay).contains("turn.completed: Failed"), "{}", shown(&replay));
    assert!(replay.written.iter().all(|line| line["method"] != "review/start"));
}

#[test]
fn nothing_that_an_approval_grants_is_hidden() {
    let reason = |method: &str, params: Value| {
        let mut replay = running();
        replay.ask(method, params);
        let opened = replay.outputs.iter().find_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::RequestOpened(request) => Some(request.clone()),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        opened.unwrap().reason.unwrap()
    };
    let files = json!({"itemId": "i", "reason": "please", "grantRoot": "/etc"});
    let files = reason("item/fileChange/requestApproval", files);
    assert!(files.contains("please") && files.contains("/etc"), "{files}");
    let command = json!({
        "itemId": "i", "command": "ls", "additionalPermissions": {"network": {"enabled": true}},
    });
    let command = reason("item/commandExecution/requestApproval", command);
    assert!(command.contains("network"), "{command}");
    let tool = json!({"serverName": "fake", "message": "Allow?", "_meta": {
        "codex_approval_kind": "mcp_tool_call", "persist": "session", "tool_params": {"x": 1},
    }});
    let tool = reason("mcpServer/elicitation/request", tool);
    assert!(tool.contains(r#"{"x":1}"#), "{tool}");
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
fn a_secret_answer_is_known_to_the_agent_alone() {
    let mut replay = running();
    let question = json!({"id": "key", "question": "Key?", "isSecret": true, "options": null});
    let request = replay.ask("item/tool/requestUserInput", json!({"questions": [question]}));
    let answers = [("key".to_owned(), vec!["hunter2".to_owned()])].into();
    let answer = Answer::Answers { answers };
    replay.session.answer(&request, &answer, Origin::Human, None).unwrap();
    let mut kept = Vec::new();
    let (written, _) = replay.session.take_writes(|_, bytes| kept.extend_from_slice(bytes));
    assert!(String::from_utf8(written).unwrap().contains("hunter2"));
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.contains("[secret]") && !kept.contains("hunter2"), "{kept}");
    let told = format!("{:?}", replay.session.take_outputs());
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn who_leaves_a_shared_server_leaves_nothing_running() {
    let mut board = AppSwitchboard::default();
    let say = |board: &mut AppSwitchboard, seat, line: Value| {
        board.outgoing(seat, line.to_string().as_bytes()).len()
    };
    say(&mut board, 0, json!({"id": 1, "method": "thread/start", "params": {}}));
    board.incoming(json!({"id": 1, "result": {"thread": {"id": "a"}}}).to_string().as_bytes());
    say(&mut board, 0, json!({"id": 2, "method": "turn/start", "params": {"threadId": "a"}}));
    board.incoming(json!({"id": 2, "result": {"turn": {"id": "t"}}}).to_string().as_bytes());
    // Another thread is being opened when it leaves.
    say(&mut board, 0, json!({"id": 3, "method": "thread/start", "params": {}}));
    let methods = |routed: Vec<tieline_agent::Routed>| -> Vec<String> {
        let method = |it: &tieline_agent::Routed| {
            let line: Value = serde_json::from_slice(&it.line).unwrap();
            line["method"].as_str().unwrap().to_owned()
        };
        routed.iter().map(method).collect()
    };
    assert_eq!(methods(board.left(0)), ["turn/interrupt", "thread/unsubscribe"]);
    let late = json!({"id": 3, "result": {"thread": {"id": "b"}}});
    assert_eq!(methods(board.incoming(late.to_string().as_bytes())), ["thread/unsubscribe"]);
    // What it still says is nobody's.
    let news = json!({"method": "error", "params": {"threadId": "a"}});
    assert!(board.incoming(news.to_string().as_bytes()).is_empty());
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
            r#"  ~ t1:s Reasoning@3 "\n\n""#,
            r#"  ~ t1:s Reasoning@5 "two""#,
        ]
    );
}

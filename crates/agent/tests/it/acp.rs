//! Any ACP agent: recordings of two real ones, and the stage for what the files beside this one try.

mod asks;
mod once;
mod opening;
mod serve;
mod turns;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_agent::acp::AcpDriver;
use tieline_agent::{Chore, ChoreId, Direction, ExitInfo, Launch, Ledger, Output, Session};
use tieline_event::{
    Answer, FrameNo, Item, Kind, Mode, Origin, Prompt, Request, RequestId, TurnCompleted,
};

use crate::clock::Clock;
use crate::recording::{Recording, check_snapshot, check_whole, fixtures, load, recordings};
use crate::show::show;

fn launch<'a>(mode: Mode) -> Launch<'a> {
    Launch::new(Path::new("/workspace"), mode)
}

/// A session with its driver, and what came out of it.
struct Stage {
    session: Session,
    clock: Clock,
    outputs: Vec<Output>,
    kept: Vec<u8>,
    /// Our ids of the agent's requests.
    requests: BTreeMap<String, RequestId>,
    /// What we wrote and nobody looked at.
    written: Vec<Value>,
    chores: Vec<(ChoreId, Chore)>,
    /// The recorded requests by their ids.
    recorded: HashMap<String, String>,
}

impl Stage {
    fn new(launch: &Launch<'_>) -> Self {
        let driver = Box::new(AcpDriver::new(launch, "acp:tester"));
        let session = launch.resume.map(|resume| resume.session.to_owned());
        let mut session = Session::new(driver, Ledger::new(0, session), 64 << 20, FrameNo(1));
        session.started();
        let mut stage = Self {
            session,
            clock: Clock::default(),
            outputs: vec![],
            kept: vec![],
            requests: BTreeMap::new(),
            written: vec![],
            chores: vec![],
            recorded: HashMap::new(),
        };
        stage.settle();
        stage
    }

    /// What the driver writes is remembered, what it tells is kept.
    fn settle(&mut self) {
        self.clock.set(&mut self.session);
        let (bytes, _) = self.session.take_writes(|_, _| {});
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(line["jsonrpc"], "2.0");
            self.written.push(line);
        }
        self.chores.extend(self.session.ledger_mut().take_chores());
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

    /// Waits for what the driver wants to be woken for next; says how long that took.
    fn ring(&mut self) -> Option<Duration> {
        let waited = self.clock.ring(&mut self.session);
        self.settle();
        waited
    }

    fn read(&mut self, line: &[u8]) {
        let kept = &mut self.kept;
        self.session.read(line, |direction, bytes| {
            assert_eq!(direction, Direction::Out);
            kept.extend_from_slice(&bytes);
        });
        self.settle();
    }

    fn tell(&mut self, line: &Value) {
        self.read(format!("{line}\n").as_bytes());
    }

    fn take(&mut self, method: &str) -> Value {
        let at = self.written.iter().position(|line| line["method"] == method);
        self.written.remove(at.unwrap_or_else(|| panic!("{method} in {:?}", self.written)))
    }

    /// Answers what the driver asked by this method.
    fn respond(&mut self, method: &str, result: Value) -> Value {
        let asked = self.take(method);
        self.tell(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
        asked["params"].clone()
    }

    fn refuse(&mut self, method: &str, code: i64, message: &str) {
        let asked = self.take(method);
        let error = json!({"code": code, "message": message});
        self.tell(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    }

    fn update(&mut self, update: Value) {
        let params = json!({"sessionId": "s1", "update": update});
        self.tell(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// The agent asks for something; the answer is in `written`, now or later.
    fn ask(&mut self, id: i64, method: &str, mut params: Value) {
        params["sessionId"] = json!("s1");
        self.tell(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// The answer to what the agent asked.
    fn answer_to(&mut self, id: i64) -> Value {
        let is_it = |line: &Value| line["id"] == id && line.get("method").is_none();
        let at = self.written.iter().position(is_it);
        self.written.remove(at.unwrap_or_else(|| panic!("no answer to {id}: {:?}", self.written)))
    }

    fn is_unanswered(&self, id: i64) -> bool {
        !self.written.iter().any(|line| line["id"] == id && line.get("method").is_none())
    }

    fn request(&self, id: i64) -> RequestId {
        self.requests[&id.to_string()].clone()
    }

    fn answer(&mut self, id: i64, answer: &Answer) {
        let request = self.request(id);
        self.session.answer(&request, answer, Origin::Human, None).unwrap();
        self.settle();
    }

    fn start_turn(&mut self, text: &str) {
        self.session.start_turn(&Prompt::text(text));
        self.settle();
    }

    fn finish(&mut self, exit: &ExitInfo) {
        let Self { session, kept, .. } = self;
        session.exited(exit, |_, bytes| kept.extend_from_slice(&bytes));
        self.settle();
    }

    fn kinds(&self) -> impl DoubleEndedIterator<Item = &Kind> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Event(draft) => Some(&draft.kind),
            Output::Delta(_) => None,
        })
    }

    /// How each item stood last.
    fn items(&self) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for kind in self.kinds() {
            let (Kind::ItemStarted(item) | Kind::ItemUpdated(item) | Kind::ItemCompleted(item)) =
                kind
            else {
                continue;
            };
            match items.iter_mut().find(|known| known.id == item.id) {
                Some(known) => *known = item.clone(),
                None => items.push(item.clone()),
            }
        }
        items
    }

    fn end(&self) -> TurnCompleted {
        let end = self.kinds().rev().find_map(|kind| match kind {
            Kind::TurnCompleted(end) => Some(end.clone()),
            _ => None,
        });
        end.unwrap_or_else(|| panic!("the turn goes on:\n{}", self.shown()))
    }

    fn opened_requests(&self) -> Vec<Request> {
        let opened = self.kinds().filter_map(|kind| match kind {
            Kind::RequestOpened(request) => Some(request.clone()),
            _ => None,
        });
        opened.collect()
    }

    fn notices(&self, code: &str) -> usize {
        self.kinds().filter(|kind| matches!(kind, Kind::Notice(it) if it.code == code)).count()
    }

    fn shown(&self) -> String {
        self.outputs.iter().map(|output| format!("{}\n", show(output))).collect()
    }
}

/// What most agents can do.
fn hello() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "tester", "version": "1.2.3"},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "embeddedContext": true},
            "sessionCapabilities": {"resume": {}, "fork": {}},
        },
        "authMethods": [{"id": "key", "name": "API key"}, {"id": "web", "name": "Browser"}],
        "_meta": {"steering": {"supported": true}},
    })
}

/// A conversation with its session open and nothing said.
fn ready(mode: Mode) -> Stage {
    let mut stage = Stage::new(&launch(mode));
    stage.respond("initialize", hello());
    stage.respond("session/new", json!({"sessionId": "s1"}));
    stage
}

/// The same with a turn under way.
fn running(mode: Mode) -> Stage {
    let mut stage = ready(mode);
    stage.start_turn("go");
    stage.outputs.clear();
    stage
}

impl Stage {
    fn end_turn(&mut self, reason: &str) {
        self.respond("session/prompt", json!({"stopReason": reason}));
    }

    /// Does what the recorded client did.
    fn say(&mut self, line: &Value) {
        if let (Some(method), Some(id)) = (line["method"].as_str(), line.get("id")) {
            self.recorded.insert(id.to_string(), method.to_owned());
        }
        match line["method"].as_str() {
            Some("session/prompt") => {
                let text = line["params"]["prompt"][0]["text"].as_str().unwrap();
                self.start_turn(text);
            }
            Some("session/cancel") => assert!(self.session.interrupt()),
            None => {
                let option = line["result"]["outcome"]["optionId"].as_str().unwrap().to_owned();
                let request = self.requests[&line["id"].to_string()].clone();
                let answer = Answer::Choose { option };
                self.session.answer(&request, &answer, Origin::Human, None).unwrap();
                self.settle();
                // The answer is the recorded one.
                assert_eq!(self.written.pop().unwrap(), *line);
            }
            _ => {}
        }
        self.settle();
    }

    /// An answer of the agent carries the recorded client's id: ours is put in its place.
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

    /// What our client sets and the recorded one did not is set at once.
    fn set_everything(&mut self) {
        for method in ["session/set_config_option", "session/set_mode"] {
            while self.written.iter().any(|line| line["method"] == method) {
                let kept = self.kept.len();
                self.respond(method, json!({}));
                self.kept.truncate(kept);
            }
        }
    }
}

fn replay(recording: &Recording) -> Stage {
    let mut stage = Stage::new(&launch(Mode::Default));
    let mut said = recording.said.iter().peekable();
    let mut expected = Vec::new();
    for (n_read, line) in recording.out.split_inclusive(|byte| *byte == b'\n').enumerate() {
        while let Some((_, line)) = said.next_if(|(at, _)| *at <= n_read) {
            stage.say(line);
        }
        let line = stage.with_our_id(line);
        expected.extend_from_slice(&line);
        stage.read(&line);
        stage.set_everything();
    }
    said.for_each(|(_, line)| stage.say(line));
    stage.finish(&recording.exit);
    assert_eq!(stage.kept, expected, "frames are the input byte for byte");
    stage
}

#[test]
fn every_recording_replays_whole_to_its_snapshot() {
    for scenario in recordings("acp") {
        let stage = replay(&load(&scenario));
        check_whole(&scenario, &stage.outputs, stage.session.ledger());
        check_snapshot("acp", &scenario, &stage.outputs, stage.session.ledger());
    }
}

#[test]
fn any_chunking_and_any_cut_ends_the_turn_once() {
    let recording = load(&fixtures("acp").join("codex-acp-2.6.0/patch"));
    let whole = replay(&recording).kept;
    let opened = whole.windows(11).position(|it| it == b"\"sessionId\"").unwrap();
    for cut in (opened..whole.len()).step_by(997) {
        let mut stage = Stage::new(&launch(Mode::Default));
        stage.start_turn("go");
        for chunk in whole[..cut].chunks(61) {
            stage.read(chunk);
        }
        stage.finish(&ExitInfo { signal: Some(9), ..ExitInfo::default() });
        assert_eq!(stage.kept, whole[..cut]);
        let ends = stage.shown().matches("turn.completed").count();
        assert_eq!(ends, 1, "cut at {cut}");
        assert_eq!(stage.session.ledger().open_items().len(), 0);
    }
}

#[test]
fn what_is_not_understood_is_kept_and_changes_nothing_else() {
    let mut stage = running(Mode::Default);
    let say = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    stage.update(say("a"));
    stage.read(b"not json\n");
    stage.read(b"\xff\xfe\x00\n");
    stage.read(b"{\"jsonrpc\":\"2.0\",\"method\":\"from/the/future\"}\n");
    stage.update(json!({"sessionUpdate": "from_the_future", "x": 1}));
    stage.update(
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "audio", "data": "x"}}),
    );
    stage.update(json!({"sessionUpdate": "tool_call", "title": "no id"}));
    stage.tell(&json!({"jsonrpc": "2.0", "id": 4711, "result": {}}));
    stage.tell(&json!({"jsonrpc": "2.0", "method": "_vendor/news", "params": {}}));
    let other = json!({"sessionId": "s2", "update": say("not mine")});
    stage.tell(&json!({"jsonrpc": "2.0", "method": "session/update", "params": other}));
    stage.update(say("b"));
    stage.end_turn("end_turn");
    assert_eq!(stage.end().text.preview(), "ab");
    let unparsed = stage.kinds().filter(|kind| matches!(kind, Kind::Unparsed(_))).count();
    assert_eq!(unparsed, 7, "{}", stage.shown());
}

/// Events carry the agent's own names, so that a front can find what it is asked about.
#[test]
fn items_and_requests_carry_the_agents_names() {
    let mut stage = running(Mode::Default);
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "call7", "title": "x", "status": "in_progress"}));
    let native = stage.outputs.iter().find_map(|output| match output {
        Output::Event(draft) if matches!(draft.kind, Kind::ItemStarted(_)) => {
            Some(draft.native.clone())
        }
        _ => None,
    });
    assert_eq!(native.unwrap().item.as_deref(), Some("call7"));
}

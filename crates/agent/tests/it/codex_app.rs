//! Codex by its app server: every recording, and the stage for what the files beside this one try.

mod asks;
mod errands;
mod offers;
mod reviews;
mod rules;
mod shared;
mod turns;
mod work;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_agent::codex::Version;
use tieline_agent::codex_app::{AppDriver, AppSwitchboard};
use tieline_agent::{
    Destination, Direction, ExitInfo, Launch, Ledger, Output, Resume, Session, Switchboard,
};
use tieline_event::{
    Answer, AskWhen, FrameNo, ItemStatus, Kind, Mode, Origin, Policy, Prompt, Reach, RequestId,
    Scope, TurnStatus,
};

use crate::clock::Clock;
use crate::recording::{Recording, check_snapshot, check_whole, fixtures, load, recordings};
use crate::show::show;

const VERSION: Version = Version(0, 166, 0);

fn launch<'a>(mode: Mode) -> Launch<'a> {
    Launch::new(Path::new("/workspace"), mode)
}

struct Replay {
    session: Session,
    clock: Clock,
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
            clock: Clock::default(),
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
        self.clock.set(&mut self.session);
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

    /// Waits for what the driver wants to be woken for next; says how long that took.
    fn ring(&mut self) -> Option<Duration> {
        let waited = self.clock.ring(&mut self.session);
        self.settle();
        waited
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        self.clock.pass(&mut self.session, time);
        self.settle();
    }

    fn read(&mut self, line: &[u8]) {
        let kept = &mut self.kept;
        self.session.read(line, |direction, bytes| {
            assert_eq!(direction, Direction::Out);
            kept.extend_from_slice(&bytes);
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
        session.exited(exit, |_, bytes| kept.extend_from_slice(&bytes));
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
    let resume = session.as_deref().map(|session| Resume { session, fork: false, at: None });
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

fn shown(replay: &Replay) -> String {
    replay.outputs.iter().map(|output| format!("{}\n", show(output))).collect()
}

/// A conversation with its thread open and nothing said.
fn ready(launch: &Launch<'_>) -> Replay {
    let mut replay = opened(launch);
    replay.written.clear();
    replay.outputs.clear();
    replay
}

/// The same with what our side asked and told when the thread was open.
fn opened(launch: &Launch<'_>) -> Replay {
    let mut replay = Replay::new(launch);
    let id = replay.take("initialize")["id"].clone();
    replay.tell(&json!({"id": id, "result": {"userAgent": "tieline/0.166.0 (x)"}}));
    let open = replay.written.pop().unwrap();
    replay.tell(&json!({
        "id": open["id"],
        "result": {"thread": {"id": "thread"}, "model": "gpt-5.5", "cwd": "/workspace"},
    }));
    replay
}

/// A conversation with a turn that has its name.
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

//! A session, what goes through it, and what must hold.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_agent::{
    Alarm, AlarmWish, Chore, ChoreId, Draft, Driver, ExitInfo, Ledger, Output, Session,
};
use tieline_event::{
    ConversationKey, Epoch, Event, FORMAT, FrameNo, Kind, RequestBody, RequestId, Seq, Source,
    Timestamp, TurnId,
};

use super::super::{lines, sum};

/// Longer lines than this are oversized in a scene.
const LINE_LIMIT: usize = 32 * 1024;

/// What an agent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stdin {
    /// A line of JSON for everything.
    Json,
    /// One prompt, and the process is there for that one turn.
    OnePrompt,
}

pub(super) struct Scene {
    pub(super) session: Session,
    pub(super) stdin: Stdin,
    /// How often each turn ended.
    pub(super) turns: BTreeMap<TurnId, usize>,
    pub(super) chores: Vec<(ChoreId, Chore)>,
    /// An option or a question of each request.
    pub(super) names: BTreeMap<RequestId, String>,
    /// What the driver wants to be woken for.
    pub(super) alarms: Vec<Alarm>,
    /// The id of our last request of each method, as JSON.
    asked: BTreeMap<String, String>,
    /// Everything the agent wrote, and what was kept of it.
    written: Vec<u8>,
    kept: Vec<u8>,
    is_oversized: bool,
    /// Events are written and read again. It takes longer than all the rest, so not in every scene.
    is_stored: bool,
}

impl Scene {
    pub(super) fn new(driver: Box<dyn Driver>, stdin: Stdin) -> Self {
        let mut session = Session::new(driver, Ledger::new(0, None), LINE_LIMIT, FrameNo(1));
        session.started();
        let mut scene = Self {
            session,
            stdin,
            turns: BTreeMap::new(),
            chores: Vec::new(),
            names: BTreeMap::new(),
            alarms: Vec::new(),
            asked: BTreeMap::new(),
            written: Vec::new(),
            kept: Vec::new(),
            is_oversized: false,
            is_stored: false,
        };
        scene.settle();
        scene
    }

    pub(super) fn play(mut self, input: &[u8]) {
        self.is_stored = sum(input).is_multiple_of(8);
        let ends_whole = input.ends_with(b"\n");
        let mut lines = lines(input).peekable();
        while let Some(line) = lines.next() {
            if let Some(word) = line.strip_prefix(b"!") {
                self.act(word);
            } else {
                let is_last = lines.peek().is_none();
                self.read(line, ends_whole || !is_last);
            }
            self.settle();
        }
        self.exit(input);
    }

    /// The agent writes a line, in two pieces.
    fn read(&mut self, line: &[u8], is_whole: bool) {
        let mut line = self.with_our_ids(line);
        if is_whole {
            line.push(b'\n');
        }
        self.is_oversized |= line.len() > LINE_LIMIT;
        self.written.extend_from_slice(&line);
        let (first, second) = line.split_at(line.len() / 2);
        for piece in [first, second] {
            let kept = &mut self.kept;
            self.session.read(piece, |_, bytes| kept.extend_from_slice(&bytes));
        }
    }

    fn with_our_ids(&self, line: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(line) {
            Ok(text) if text.contains("\"@") => {
                let mut text = text.to_owned();
                for (method, id) in &self.asked {
                    text = text.replace(&format!("\"@{method}\""), id);
                }
                text.into_bytes()
            }
            _ => line.to_vec(),
        }
    }

    /// Takes what the driver gives.
    pub(super) fn settle(&mut self) {
        let (bytes, _) = self.session.take_writes(|_, _| {});
        if self.stdin == Stdin::Json {
            assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "half a line was written");
            lines(&bytes).for_each(|line| self.note(line));
        }
        self.chores.extend(self.session.ledger_mut().take_chores());
        for AlarmWish { alarm, after } in self.session.ledger_mut().take_alarms() {
            self.alarms.retain(|other| *other != alarm);
            self.alarms.extend(after.map(|_| alarm));
        }
        for output in self.session.take_outputs() {
            if let Output::Event(draft) = output {
                self.see(*draft);
            }
        }
    }

    fn note(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Ours<'a> {
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
            #[serde(default)]
            method: Option<String>,
        }
        let ours: Result<Ours<'_>, _> = serde_json::from_slice(line);
        assert!(ours.is_ok(), "wrote no JSON: {}", String::from_utf8_lossy(line));
        if let Ok(Ours { id: Some(id), method: Some(method) }) = ours {
            self.asked.insert(method, id.get().to_owned());
        }
    }

    fn see(&mut self, draft: Draft) {
        match (&draft.turn, &draft.kind) {
            (Some(turn), Kind::TurnStarted(_)) => {
                let before = self.turns.insert(turn.clone(), 0);
                assert_eq!(before, None, "{turn} began twice");
            }
            (Some(turn), Kind::TurnCompleted(_)) => {
                let ends = self.turns.get_mut(turn);
                assert!(ends.is_some(), "{turn} ended before it began");
                if let Some(ends) = ends {
                    *ends += 1;
                }
            }
            (_, Kind::RequestOpened(request)) => {
                let name = match &request.body {
                    RequestBody::Question { questions } => questions.first().map(|it| &it.id),
                    _ => request.options.first().map(|it| &it.id),
                };
                self.names.extend(name.map(|name| (request.id.clone(), name.clone())));
            }
            _ => {}
        }
        if self.is_stored {
            comes_back(draft);
        }
    }

    fn exit(mut self, input: &[u8]) {
        let code = i32::try_from(sum(input) % 3).ok();
        let signal = code.is_none_or(|code| code == 2).then_some(9);
        let exit = ExitInfo { code, signal, stderr: "the end\n".to_owned(), stopped: None };
        let kept = &mut self.kept;
        self.session.exited(&exit, |_, bytes| kept.extend_from_slice(&bytes));
        self.settle();
        assert!(self.turns.values().all(|ends| *ends == 1), "ends of turns: {:?}", self.turns);
        let ledger = self.session.ledger();
        assert!(ledger.current_turn().is_none(), "a turn goes on");
        assert_eq!(ledger.open_items().len(), 0, "items stay open");
        assert_eq!(ledger.open_requests().count(), 0, "requests stay open");
        assert!(self.is_oversized || self.kept == self.written, "not every byte was kept");
    }
}

/// What the store keeps of an event is the event.
fn comes_back(draft: Draft) {
    let event = Event {
        v: FORMAT,
        conversation: ConversationKey::new("fuzz").expect("it is a good key"),
        seq: Seq(1),
        epoch: Epoch(1),
        ts: Timestamp::from_millis(0),
        turn: draft.turn,
        item: None,
        parent: draft.parent,
        origin: draft.origin,
        native: draft.native,
        source: Source { driver: "fuzz".into(), version: None, frames: draft.frames },
        kind: draft.kind,
    };
    let json = event.to_json().expect("an event can be written");
    let read = Event::from_json(&json);
    assert!(
        read.as_ref().is_ok_and(|read| *read == event),
        "{} is read as {read:?}",
        String::from_utf8_lossy(&json)
    );
}

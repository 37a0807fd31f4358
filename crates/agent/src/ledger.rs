//! The books every driver keeps its turns, items and requests in.
//!
//! A driver says what it saw; the ledger makes events of it and holds the invariants: deltas carry
//! their offset, a turn ends once, and its end closes what is still open in it.

use std::collections::HashSet;
use std::time::Duration;

use tieline_event::{
    BLOB_THRESHOLD, Choice, Configured, Delta, EndSignal, Expired, Failure, FailureCode, FrameNo,
    FrameRange, Item, ItemBody, ItemId, ItemStatus, Kind, Native, Notice, NoticeLevel, Origin,
    Prompt, Report, Request, RequestBody, RequestId, Stream, Text, TurnCompleted, TurnId,
    TurnStarted, TurnStatus, Usage,
};

use crate::alarm::{Alarm, AlarmWish};
use crate::chore::{Chore, ChoreId};

mod growth;
mod open;
mod unread;

#[cfg(test)]
mod tests;

pub use growth::{Growing, Growth};
use open::with_streamed;
pub use open::{OpenItem, OpenItems};
pub(crate) use unread::UNREAD;

/// What a driver gives to the outside.
///
/// Most are deltas, so the large one is boxed.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// To be stored, then shown.
    Event(Box<Draft>),
    /// To be shown at once.
    Delta(Delta),
}

/// An event that has no place in its conversation yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// In which turn.
    pub turn: Option<TurnId>,
    /// The item whose work this is.
    pub parent: Option<ItemId>,
    /// Who caused it.
    pub origin: Option<Origin>,
    /// The agent's own names.
    pub native: Native,
    /// The frames it was read from.
    pub frames: Option<FrameRange>,
    /// What happened.
    pub kind: Kind,
}

/// What stands around an item or a request.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// The item whose work this is.
    pub parent: Option<ItemId>,
    /// The agent's own names.
    pub native: Native,
}

/// How a turn ended, in a driver's words.
#[derive(Debug, Clone)]
pub struct TurnEnd {
    /// How.
    pub status: TurnStatus,
    /// Why, when it failed.
    pub error: Option<Failure>,
    /// What told us.
    pub signal: EndSignal,
    /// The agent's own word.
    pub stop_reason: Option<String>,
    /// The final text; without it the turn's last message counts.
    pub text: Option<String>,
    /// What it used.
    pub usage: Option<Usage>,
    /// How long it took, where the agent says so.
    pub duration_ms: Option<u64>,
    /// Tasks that go on.
    pub open_tasks: u32,
    /// The agent's name for this point of the conversation.
    pub bookmark: Option<String>,
}

impl TurnEnd {
    /// A turn that ended well, which something other than the agent's word told.
    pub fn completed(signal: EndSignal) -> Self {
        Self {
            status: TurnStatus::Completed,
            error: None,
            signal,
            stop_reason: None,
            text: None,
            usage: None,
            duration_ms: None,
            open_tasks: 0,
            bookmark: None,
        }
    }

    /// A turn that failed without the agent's word.
    pub fn failed(failure: Failure, signal: EndSignal) -> Self {
        Self { status: TurnStatus::Failed, error: Some(failure), ..Self::completed(signal) }
    }
}

#[derive(Debug)]
struct OpenTurn {
    id: TurnId,
    origin: Origin,
    /// The last message, and its place in the order in which items began.
    last_text: Option<(u64, Text)>,
}

#[derive(Debug)]
struct OpenRequest {
    id: RequestId,
    item: Option<ItemId>,
    turn: Option<TurnId>,
    native: Native,
    /// Questions whose answers are not to be shown.
    secrets: Vec<String>,
    /// The answers on offer.
    options: Vec<Choice>,
}

/// The books.
#[derive(Debug, Default)]
pub struct Ledger {
    n_turns: u64,
    n_messages: u64,
    turns: Vec<OpenTurn>,
    items: OpenItems,
    requests: Vec<OpenRequest>,
    session: Option<String>,
    session_changed: bool,
    /// The end of the last turn in the session, until it is taken.
    position: Option<String>,
    /// What the native session had used by the end of its last turn.
    session_usage: Option<Usage>,
    frame: Option<FrameNo>,
    outputs: Vec<Output>,
    /// Items that began to stream.
    growing: Vec<Growing>,
    writes: Vec<u8>,
    /// What is not to be kept of what is to be written.
    secrets: Vec<String>,
    close_input: bool,
    alarms: Vec<AlarmWish>,
    stop: bool,
    n_chores: u64,
    chores: Vec<(ChoreId, Chore)>,
    /// Answers to what the agent was asked about itself.
    reports: Vec<(u64, Result<Report, String>)>,
    /// A turn that fails for this reason, however the agent ends it.
    overruled: Option<(TurnId, Failure, EndSignal)>,
    /// Lines that were not understood.
    run: unread::Run,
}

impl Ledger {
    /// Books for a conversation that has had so many turns.
    pub fn new(n_turns: u64, session: Option<String>) -> Self {
        Self { n_turns, session, ..Self::default() }
    }

    /// How many turns there have been.
    pub fn n_turns(&self) -> u64 {
        self.n_turns
    }

    /// The turn new items belong to: the one that began last.
    pub fn current_turn(&self) -> Option<&TurnId> {
        self.turns.last().map(|turn| &turn.id)
    }

    /// The turn that waits longest for its end.
    pub fn oldest_turn(&self) -> Option<&TurnId> {
        self.turns.first().map(|turn| &turn.id)
    }

    /// The open turn that the agent began by itself.
    pub fn follow_up_turn(&self) -> Option<&TurnId> {
        self.turns.iter().find(|turn| turn.origin == Origin::Agent).map(|turn| &turn.id)
    }

    /// Whether a turn is not over.
    pub fn is_open(&self, turn: &TurnId) -> bool {
        self.turns.iter().any(|open| open.id == *turn)
    }

    /// Items that are not over.
    pub fn open_items(&self) -> &OpenItems {
        &self.items
    }

    /// Requests that wait.
    pub fn open_requests(&self) -> impl Iterator<Item = &RequestId> {
        self.requests.iter().map(|request| &request.id)
    }

    /// The native session.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The frame that is being read; the events it causes point at it.
    pub fn at_frame(&mut self, frame: Option<FrameNo>) {
        self.frame = frame;
    }

    /// The frame that is being read.
    pub fn frame(&self) -> Option<FrameNo> {
        self.frame
    }

    /// Forgets what was to be written to an agent that is gone.
    pub fn forget_writes(&mut self) {
        self.writes.clear();
        self.secrets.clear();
        self.close_input = false;
        self.alarms.clear();
        self.stop = false;
        self.chores.clear();
    }

    /// Takes what is to be stored and shown.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Takes the items that began to stream. Their deltas are among the outputs, or will be.
    pub fn take_growing(&mut self) -> Vec<Growing> {
        std::mem::take(&mut self.growing)
    }

    /// How much is to be stored and shown.
    pub(crate) fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The last output goes to an earlier place.
    pub(crate) fn move_last_output(&mut self, to: usize) {
        if let Some(rotated) = self.outputs.get_mut(to..) {
            rotated.rotate_right(1.min(rotated.len()));
        }
    }

    /// Takes what is to be written to the agent.
    pub fn take_writes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.writes)
    }

    /// Takes what is not to be kept of that.
    pub(crate) fn take_secrets(&mut self) -> Vec<String> {
        std::mem::take(&mut self.secrets)
    }

    /// Whether the agent's input is to be closed once everything is written.
    pub fn take_close_input(&mut self) -> bool {
        std::mem::take(&mut self.close_input)
    }

    /// Takes the native session, when it changed.
    pub fn take_session_change(&mut self) -> Option<&str> {
        std::mem::take(&mut self.session_changed).then_some(self.session.as_deref()).flatten()
    }

    /// Takes the position, when it changed.
    pub fn take_position(&mut self) -> Option<String> {
        self.position.take()
    }

    /// The agent's name for where its session is now, at the end of a turn. Another conversation can
    /// branch off from it later, when this one has gone on. Empty where nobody can.
    pub fn set_position(&mut self, position: &str) {
        self.position = Some(position.to_owned());
    }

    /// Queues bytes for the agent.
    pub fn write(&mut self, bytes: &[u8]) {
        self.writes.extend_from_slice(bytes);
    }

    /// Strings in what is queued that are for the agent alone: the record has a mask for them.
    pub fn hide(&mut self, secrets: Vec<String>) {
        self.secrets.extend(secrets);
    }

    /// The agent's input ends after what is queued.
    pub fn close_input(&mut self) {
        self.close_input = true;
    }

    /// Asks for something that is done outside of the books and the wire.
    pub fn chore(&mut self, chore: Chore) -> ChoreId {
        self.n_chores += 1;
        let id = ChoreId(self.n_chores);
        self.chores.push((id, chore));
        id
    }

    /// Takes what is to be done.
    pub fn take_chores(&mut self) -> Vec<(ChoreId, Chore)> {
        std::mem::take(&mut self.chores)
    }

    /// The agent told about itself what it was asked under this number, or why it does not.
    pub fn report(&mut self, number: u64, report: Result<Report, String>) {
        self.reports.push((number, report));
    }

    /// Takes what the agent told about itself.
    pub fn take_reports(&mut self) -> Vec<(u64, Result<Report, String>)> {
        std::mem::take(&mut self.reports)
    }

    /// The driver wants to be woken after some time. The last wish for an alarm counts.
    pub fn wake_after(&mut self, alarm: Alarm, time: Duration) {
        self.alarms.push(AlarmWish { alarm, after: Some(time) });
    }

    /// The driver waits for this time no more.
    pub fn cancel_alarm(&mut self, alarm: Alarm) {
        self.alarms.push(AlarmWish { alarm, after: None });
    }

    /// The agent's process is to be ended at once.
    pub fn stop_agent(&mut self) {
        self.stop = true;
    }

    /// Whether the agent's process is to be ended at once.
    pub fn take_stop(&mut self) -> bool {
        std::mem::take(&mut self.stop)
    }

    /// Takes the driver's wishes to be woken, in their order.
    pub fn take_alarms(&mut self) -> Vec<AlarmWish> {
        std::mem::take(&mut self.alarms)
    }

    /// The next session is a new one.
    pub fn forget_session(&mut self) {
        self.session = None;
        self.session_changed = false;
        self.session_usage = None;
    }

    /// What the native session had used by the end of its last turn, for agents that count by
    /// session and have a process for each turn.
    pub fn take_session_usage(&mut self) -> Option<Usage> {
        self.session_usage.take()
    }

    /// Remembers what the native session has used so far.
    pub fn set_session_usage(&mut self, usage: Usage) {
        self.session_usage = Some(usage);
    }

    /// The agent named its session.
    pub fn set_session(&mut self, session: &str) {
        if self.session.as_deref() != Some(session) {
            self.session = Some(session.to_owned());
            self.session_changed = true;
            self.session_usage = None;
        }
    }

    /// A turn begins.
    pub fn begin_turn(&mut self, origin: Origin, idempotency_key: Option<String>) -> TurnId {
        self.n_turns += 1;
        let id = TurnId::new(format!("t{}", self.n_turns));
        self.turns.push(OpenTurn { id: id.clone(), origin, last_text: None });
        self.emit(Kind::TurnStarted(TurnStarted { origin, idempotency_key }));
        id
    }

    /// The user said something.
    pub fn user_message(&mut self, prompt: &Prompt) {
        self.n_messages += 1;
        let id = match self.current_turn() {
            Some(turn) => ItemId::new(format!("{turn}:user{}", self.n_messages)),
            None => ItemId::new(format!("user{}", self.n_messages)),
        };
        let body = ItemBody::UserMessage { content: prompt.content.clone() };
        self.complete_item(Meta::default(), Item { id, status: ItemStatus::Ok, body });
        if let Some(Output::Event(draft)) = self.outputs.last_mut() {
            draft.origin = Some(prompt.origin);
        }
    }

    /// An item is new or changed and goes on.
    pub fn upsert_item(&mut self, meta: Meta, item: Item) {
        if let Some(open) = self.items.get_mut(item.id.as_str()) {
            open.item = item.clone();
            let (turn, parent) = (open.turn.clone(), open.meta.parent.clone());
            let native = open.meta.native.clone();
            self.push(turn, parent, native, Kind::ItemUpdated(item));
            return;
        }
        let turn = self.turn_of(meta.parent.as_ref());
        self.items.insert(OpenItem::new(item.clone(), turn.clone(), meta.clone()));
        self.push(turn, meta.parent, meta.native, Kind::ItemStarted(item));
    }

    /// An item that is open.
    pub fn item(&self, id: &str) -> Option<&Item> {
        self.items.get(id).map(|open| &open.item)
    }

    /// The whole text of an item, which is then to be completed with it. A long text that streamed is
    /// given on as it is, and not held twice.
    pub fn whole_text(&self, id: &str, text: &str) -> Text {
        let open = self.items.get(id).filter(|_| text.len() > BLOB_THRESHOLD);
        open.and_then(|open| open.streamed.take_if(text)).map_or_else(|| text.into(), Text::from)
    }

    /// An open item goes on after its turn.
    pub fn detach_item(&mut self, id: &str) {
        if let Some(open) = self.items.get_mut(id) {
            open.detached = true;
        }
    }

    /// An item is over. One that was never open is told in this single event.
    pub fn complete_item(&mut self, meta: Meta, item: Item) {
        let place = self.items.place_of(item.id.as_str());
        let (turn, meta) = match self.items.remove(item.id.as_str()) {
            Some(open) => (open.turn, open.meta),
            None => (self.turn_of(meta.parent.as_ref()), meta),
        };
        // What was cut off is not what the agent had to say.
        if let (ItemBody::AgentMessage { text }, None, ItemStatus::Ok) =
            (&item.body, &meta.parent, item.status)
            && let Some(open) = self.turns.iter_mut().find(|open| Some(&open.id) == turn.as_ref())
        {
            // A long one is in the store with its item, and once is enough.
            open.last_text = Some((place, text.outlined()));
        }
        self.push(turn, meta.parent, meta.native, Kind::ItemCompleted(item));
    }

    /// Something grew that nobody may have opened: then an item begins with it. The driver knows
    /// that it is not over.
    pub fn grow(&mut self, id: &ItemId, meta: impl FnOnce() -> Meta, stream: Stream, text: &str) {
        if text.is_empty() || self.delta(id.as_str(), stream, text) {
            return;
        }
        let item = Item { id: id.clone(), status: ItemStatus::InProgress, body: body_of(stream) };
        self.upsert_item(meta(), item);
        self.delta(id.as_str(), stream, text);
    }

    /// An open item grew; `false` when it is not open. What follows upon itself before it is taken is
    /// one delta. Outside of turns it is kept for the item's end, and not told as it grows.
    pub fn delta(&mut self, id: &str, stream: Stream, text: &str) -> bool {
        self.tell_unread();
        let Some(open) = self.items.get_mut(id) else { return false };
        if text.is_empty() {
            return true;
        }
        let turn = open.turn.as_ref().or_else(|| self.turns.last().map(|turn| &turn.id));
        let is_new = open.stream != Some(stream);
        if is_new {
            open.stream = Some(stream);
            // Who was shown the other stream may still read it.
            open.streamed = Growth::default();
        }
        let Some(turn) = turn else {
            open.streamed.push(text);
            return true;
        };
        if is_new {
            self.growing.push(Growing {
                turn: turn.clone(),
                item: open.item.id.clone(),
                parent: open.meta.parent.clone(),
                stream,
                text: open.streamed.clone(),
            });
        }
        let offset = open.streamed.push(text);
        match self.outputs.last_mut() {
            Some(Output::Delta(last)) if last.stream == stream && last.item == open.item.id => {
                last.text.push_str(text);
            }
            _ => self.outputs.push(Output::Delta(Delta {
                turn: turn.clone(),
                item: open.item.id.clone(),
                parent: open.meta.parent.clone(),
                stream,
                offset,
                text: text.to_owned(),
            })),
        }
        true
    }

    /// The agent asks.
    pub fn open_request(&mut self, meta: Meta, request: Request) {
        let turn = self.turn_of(meta.parent.as_ref().or(request.item.as_ref()));
        self.requests.push(OpenRequest {
            id: request.id.clone(),
            item: request.item.clone().or_else(|| meta.parent.clone()),
            turn: turn.clone(),
            native: meta.native.clone(),
            secrets: secrets(&request),
            options: request.options.clone(),
        });
        self.push(turn, meta.parent, meta.native, Kind::RequestOpened(request));
    }

    /// The questions of an open request whose answers are not to be shown.
    pub fn secret_questions(&self, id: &RequestId) -> &[String] {
        let open = self.requests.iter().find(|open| open.id == *id);
        open.map_or(&[], |open| open.secrets.as_slice())
    }

    /// An answer that an open request offers.
    pub fn option_of(&self, id: &RequestId, option: &str) -> Option<&Choice> {
        let open = self.requests.iter().find(|open| open.id == *id)?;
        open.options.iter().find(|choice| choice.id == option)
    }

    /// A request is answered. The caller tells by whom with `request.resolved`.
    pub fn close_request(&mut self, id: &RequestId, kind: Kind) -> bool {
        let Some(index) = self.requests.iter().position(|open| open.id == *id) else {
            return false;
        };
        let open = self.requests.remove(index);
        self.push(open.turn, None, open.native, kind);
        true
    }

    /// A request is taken back.
    pub fn expire_request(&mut self, id: &RequestId, reason: &str) {
        let expired = Expired { request: id.clone(), reason: reason.to_owned() };
        self.close_request(id, Kind::RequestExpired(expired));
    }

    /// A turn is to fail for this reason, however the agent ends it.
    pub fn overrule(&mut self, turn: TurnId, failure: Failure, signal: EndSignal) {
        self.overruled = Some((turn, failure, signal));
    }

    /// A turn is over. Nothing happens when it was over before.
    pub fn end_turn(&mut self, turn: &TurnId, mut end: TurnEnd) {
        let Some(index) = self.turns.iter().position(|open| open.id == *turn) else { return };
        if let Some((_, failure, signal)) = self.overruled.take_if(|(id, ..)| id == turn) {
            (end.status, end.error, end.signal) = (TurnStatus::Failed, Some(failure), signal);
        }
        let reason = match end.status {
            TurnStatus::Completed => "the turn ended",
            TurnStatus::Failed => "the turn failed",
            TurnStatus::Interrupted => "the turn was interrupted",
        };
        if end.status == TurnStatus::Completed {
            self.complete_texts(turn);
        }
        self.close_what_is_open(|of| of == Some(turn), false, reason);
        let open = self.turns.remove(index);
        let text =
            end.text.map(Text::from).or(open.last_text.map(|(_, text)| text)).unwrap_or_default();
        self.push(
            Some(open.id),
            None,
            Native::default(),
            Kind::TurnCompleted(TurnCompleted {
                status: end.status,
                error: end.error,
                signal: end.signal,
                stop_reason: end.stop_reason,
                text,
                usage: end.usage,
                duration_ms: end.duration_ms,
                open_tasks: end.open_tasks,
                bookmark: end.bookmark,
            }),
        );
    }

    /// What was said in a turn that ended well is whole, whether or not the agent said so.
    fn complete_texts(&mut self, turn: &TurnId) {
        let is_whole = |open: &&OpenItem| {
            let told = match &open.item.body {
                ItemBody::AgentMessage { text }
                | ItemBody::Reasoning { text, .. }
                | ItemBody::Plan { text } => text,
                _ => return false,
            };
            let is_mine = open.turn.as_ref() == Some(turn) && !open.detached;
            is_mine && !(told.is_empty() && open.streamed.is_empty())
        };
        let whole: Vec<Item> = self.items.iter().filter(is_whole).map(OpenItem::snapshot).collect();
        let said = |this: &mut Self| {
            let turn = this.turns.iter_mut().find(|open| open.id == *turn);
            turn.and_then(|turn| turn.last_text.take())
        };
        let before = said(self);
        for item in whole {
            self.complete_item(Meta::default(), Item { status: ItemStatus::Ok, ..item });
        }
        // A message that was begun before the last one and never ended is not the last one.
        let last = before.into_iter().chain(said(self)).max_by_key(|(place, _)| *place);
        if let Some(open) = self.turns.iter_mut().find(|open| open.id == *turn) {
            open.last_text = last;
        }
    }

    /// The agent is gone: every turn ends this way, and nothing stays open.
    pub fn end_everything(&mut self, status: TurnStatus, error: Option<&Failure>, by: EndSignal) {
        while let Some(turn) = self.oldest_turn().cloned() {
            let unexplained = || Failure::new(FailureCode::Agent, "the agent ended");
            let failure = error.cloned().unwrap_or_else(unexplained);
            let end = TurnEnd { status, ..TurnEnd::failed(failure, by) };
            let error = end.error.clone().filter(|_| status == TurnStatus::Failed);
            self.end_turn(&turn, TurnEnd { error, ..end });
        }
        self.close_what_is_open(|_| true, true, "the agent ended");
    }

    fn close_what_is_open(
        &mut self,
        is_mine: impl Fn(Option<&TurnId>) -> bool,
        detached_too: bool,
        reason: &str,
    ) {
        let stay = if detached_too { HashSet::new() } else { self.items.that_stay() };
        let requests: Vec<_> = self
            .requests
            .extract_if(.., |open| {
                is_mine(open.turn.as_ref())
                    && !open.item.as_ref().is_some_and(|item| stay.contains(item))
            })
            .collect();
        let items: Vec<_> = self
            .items
            .iter()
            .filter(|open| is_mine(open.turn.as_ref()) && !stay.contains(&open.item.id))
            .map(|open| open.item.id.clone())
            .collect();
        for OpenRequest { id, turn, native, .. } in requests {
            let expired = Expired { request: id, reason: reason.to_owned() };
            self.push(turn, None, native, Kind::RequestExpired(expired));
        }
        self.cancel_items(items.iter());
    }

    /// The work under an item is over, whether or not each part of it said so. What lies below comes
    /// before what it lies below.
    pub fn cancel_under(&mut self, parent: &ItemId) {
        let items = self.items.below([parent]);
        self.cancel_items(items.iter().rev());
    }

    fn cancel_items<'a>(&mut self, ids: impl Iterator<Item = &'a ItemId>) {
        for id in ids {
            let Some(open) = self.items.remove(id.as_str()) else { continue };
            let mut item = with_streamed(open.item, &open.streamed);
            item.status = ItemStatus::Cancelled;
            self.push(open.turn, open.meta.parent, open.meta.native, Kind::ItemCompleted(item));
        }
    }

    /// The agent told what it is, or that changed.
    pub fn configured(&mut self, configured: Configured) {
        let turn = self.current_turn().cloned();
        let native = Native { session: self.session.clone(), ..Native::default() };
        self.push(turn, None, native, Kind::ConversationConfigured(configured));
    }

    /// Something worth knowing.
    pub fn notice(&mut self, level: NoticeLevel, code: &str, text: impl Into<String>) {
        self.emit(Kind::Notice(Notice {
            level,
            code: code.to_owned(),
            text: text.into(),
            rate_limit: None,
        }));
    }

    /// Anything else, in the current turn.
    pub fn emit(&mut self, kind: Kind) {
        let turn = self.current_turn().cloned();
        self.push(turn, None, Native::default(), kind);
    }

    /// Anything else, in a turn that these books do not know.
    pub fn emit_in(&mut self, turn: Option<TurnId>, parent: Option<ItemId>, kind: Kind) {
        self.push(turn, parent, Native::default(), kind);
    }

    fn turn_of(&self, parent: Option<&ItemId>) -> Option<TurnId> {
        let parent = parent.and_then(|id| self.items.get(id.as_str()));
        match parent {
            Some(OpenItem { turn: Some(turn), .. }) if self.is_open(turn) => Some(turn.clone()),
            _ => self.current_turn().cloned(),
        }
    }

    fn push(&mut self, turn: Option<TurnId>, parent: Option<ItemId>, native: Native, kind: Kind) {
        self.tell_unread();
        let frames = self.frame.map(|frame| FrameRange { first: frame, last: frame });
        self.push_from(frames, turn, parent, native, kind);
    }

    fn push_from(
        &mut self,
        frames: Option<FrameRange>,
        turn: Option<TurnId>,
        parent: Option<ItemId>,
        native: Native,
        kind: Kind,
    ) {
        self.outputs.push(Output::Event(Box::new(Draft {
            turn,
            parent,
            origin: None,
            native,
            frames,
            kind,
        })));
    }
}

/// What an item is of which only this stream is known.
fn body_of(stream: Stream) -> ItemBody {
    match stream {
        Stream::Text => ItemBody::AgentMessage { text: Text::default() },
        Stream::Reasoning => ItemBody::Reasoning { text: Text::default(), signature: None },
        Stream::Plan => ItemBody::Plan { text: Text::default() },
        Stream::Output | Stream::Input => ItemBody::Command {
            command: String::new(),
            cwd: None,
            description: None,
            output: Text::default(),
            exit_code: None,
            background: false,
            gist: None,
        },
    }
}

/// The questions of a request whose answers are not to be shown.
fn secrets(request: &Request) -> Vec<String> {
    match &request.body {
        RequestBody::Question { questions } => {
            questions.iter().filter(|it| it.secret).map(|it| it.id.clone()).collect()
        }
        _ => Vec::new(),
    }
}

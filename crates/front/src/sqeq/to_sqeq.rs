//! From events to the protocol's events.
//!
//! Data in, messages out. What has no place in the protocol is left out, and `docs/sqeq.md` lists it.

mod call;
mod text;

use std::collections::HashMap;

use serde_json::{Value, json};
use tieline_event::{
    Delta, Event, Failure, FailureCode, Item, ItemBody, ItemId, ItemStatus, Kind, Notice,
    NoticeLevel, Plan, PlanStatus, Stream, TurnCompleted, TurnId, TurnStatus,
};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    AbortReason, CollaborationKind, ErrorEvent, EventMsg, Message, PlanStep, PlanUpdate, Scope,
    TaskComplete, TaskStarted, ThreadNameUpdated, ThreadRolledBack, TurnAborted, UndoCompleted,
    UndoStarted,
};
use tieline_wire::text::Str;

use super::Compat;
use super::count::Count;
use super::order::Work;
use crate::{Fetch, summary, whole};

pub(super) use call::{Asking, argv, parsed};

/// The most of the turn's diff that is shown.
const DIFF: usize = 1024 * 1024;

/// Messages with the submission they belong to.
pub(super) type Told = Vec<(String, EventMsg<'static>)>;

/// Turns what happens in one conversation into the protocol's events.
#[derive(Debug)]
pub(super) struct Mapper {
    compat: Compat,
    /// The conversation, as the client knows it.
    thread: String,
    /// Where the agent works.
    pub(super) workspace: String,
    /// The agent plans and changes nothing.
    pub(super) plans: bool,
    /// The history is told: the user's own words are not known to the client.
    is_replay: bool,
    turns: HashMap<TurnId, Task>,
    texts: HashMap<ItemId, text::Growing>,
    calls: HashMap<ItemId, call::Call>,
    joined: Option<Joined>,
    count: Count,
    title: Option<String>,
    /// Who gives it its next name.
    named_by: Option<String>,
}

/// What is known of a turn.
#[derive(Debug, Default)]
struct Task {
    /// The submission that began it; none for what the agent began by itself.
    sub: String,
    work: Option<Work>,
    abort: Option<AbortReason>,
    last_message: Option<String>,
    /// What changed so far.
    diff: String,
}

/// Pieces of a text that came at once.
#[derive(Debug)]
struct Joined {
    turn: TurnId,
    stream: Stream,
    item: ItemId,
    text: String,
}

impl Mapper {
    pub(super) fn new(compat: Compat, thread: &str, workspace: &str) -> Self {
        Self {
            compat,
            thread: thread.to_owned(),
            workspace: workspace.to_owned(),
            plans: false,
            is_replay: false,
            turns: HashMap::new(),
            texts: HashMap::new(),
            calls: HashMap::new(),
            joined: None,
            count: match compat {
                Compat::Seed => Count::default(),
                Compat::Upstream => Count::with_limits(),
            },
            title: None,
            named_by: None,
        }
    }

    /// What follows is history.
    pub(super) fn replays(&mut self) {
        self.is_replay = true;
    }

    /// A turn belongs to a submission.
    pub(super) fn names(&mut self, turn: &TurnId, sub: &str, work: Option<Work>) {
        let task = self.turns.entry(turn.clone()).or_default();
        (task.sub, task.work) = (sub.to_owned(), work);
    }

    /// A turn is to be stopped, and why.
    pub(super) fn aborts(&mut self, turn: &TurnId, reason: AbortReason) {
        if let Some(task) = self.turns.get_mut(turn) {
            task.abort.get_or_insert(reason);
        }
    }

    /// The submission a turn belongs to.
    pub(super) fn sub(&self, turn: Option<&TurnId>) -> String {
        turn.and_then(|turn| self.turns.get(turn)).map(|task| task.sub.clone()).unwrap_or_default()
    }

    fn is_seed(&self) -> bool {
        self.compat == Compat::Seed
    }

    /// Takes a piece of a text. It is told with the next [`Mapper::flush`], together with what
    /// follows it.
    pub(super) fn delta(&mut self, delta: &Delta, told: &mut Told) {
        if let Some(joined) = &mut self.joined
            && joined.stream == delta.stream
            && joined.item == delta.item
        {
            joined.text.push_str(&delta.text);
            return;
        }
        self.flush(told);
        self.joined = Some(Joined {
            turn: delta.turn.clone(),
            stream: delta.stream,
            item: delta.item.clone(),
            text: delta.text.clone(),
        });
    }

    /// Tells what was held back in the hope of more of the same.
    pub(super) fn flush(&mut self, told: &mut Told) {
        let Some(Joined { turn, stream, item, text }) = self.joined.take() else { return };
        match stream {
            Stream::Output => self.printed(&item, &text, told),
            // What a tool is given is told with its call.
            Stream::Input => {}
            Stream::Text | Stream::Plan | Stream::Reasoning => {
                self.grows(&turn, &item, &text, told);
            }
        }
    }

    /// Tells what an event means for the client.
    pub(super) fn event(&mut self, event: &Event, fetch: &mut Fetch<'_>, told: &mut Told) {
        self.flush(told);
        let turn = event.turn.as_ref();
        match &event.kind {
            Kind::TurnStarted(_) => self.turn_started(turn, told),
            Kind::TurnStep(step) => {
                if let Some(usage) = &step.usage {
                    self.count.answered(usage);
                }
                self.step(turn, step.bookmark.as_deref(), told);
            }
            Kind::TurnCompleted(end) => self.turn_completed(turn, end, fetch, told),
            Kind::ItemStarted(item) | Kind::ItemUpdated(item) => {
                self.item(item, event, fetch, told);
            }
            Kind::ItemCompleted(item) => self.item(item, event, fetch, told),
            Kind::PlanUpdated(plan) => told.push((self.sub(turn), plan_update(plan))),
            Kind::UsageUpdated(usage) => {
                let count = self.count.told(usage);
                told.push((self.sub(turn), EventMsg::TokenCount(Box::new(count))));
            }
            Kind::Notice(notice) => self.notice(notice, turn, told),
            Kind::Unparsed(it) => self.notice(&summary::unread_notice(it), turn, told),
            Kind::ConversationConfigured(it) => {
                if let Some(title) = &it.title {
                    self.entitle(title, told);
                }
                if let Some(cwd) = &it.cwd {
                    self.workspace.clone_from(cwd);
                }
            }
            Kind::RequestResolved(resolved) => {
                let is_no = matches!(resolved.answer, tieline_event::Answer::Deny { .. });
                self.settled(&resolved.request, !is_no, fetch, told);
            }
            Kind::RequestExpired(expired) => {
                self.settled(&expired.request, false, fetch, told);
            }
            // They say nothing that a client of this protocol has a place for.
            Kind::ConversationOpened(_)
            | Kind::ConversationClosed(_)
            | Kind::RequestOpened(_)
            | Kind::ProcessSpawned(_)
            | Kind::ProcessExited(_)
            | Kind::TaskMarker(_) => {}
        }
    }

    fn item(&mut self, item: &Item, event: &Event, fetch: &mut Fetch<'_>, told: &mut Told) {
        match &item.body {
            ItemBody::UserMessage { content } => {
                if (self.is_seed() || self.is_replay) && event.parent.is_none() {
                    self.user_message(&item.id, event.turn.as_ref(), content, fetch, told);
                }
            }
            ItemBody::AgentMessage { .. }
            | ItemBody::Reasoning { .. }
            | ItemBody::Plan { .. }
            | ItemBody::Compaction { .. }
            | ItemBody::Review { .. } => self.text(item, event, fetch, told),
            _ => self.call(item, event, fetch, told),
        }
    }

    fn turn_started(&mut self, turn: Option<&TurnId>, told: &mut Told) {
        let Some(turn) = turn else { return };
        self.count.turn_begins();
        let task = self.turns.entry(turn.clone()).or_default();
        let sub = task.sub.clone();
        if let Some(Work::Rollback(_)) = task.work {
            return;
        }
        let is_undo = task.work == Some(Work::Undo);
        let kind = if self.plans { CollaborationKind::Plan } else { CollaborationKind::Default };
        let started = TaskStarted {
            model_context_window: self.count.window(),
            collaboration_mode_kind: self.is_seed().then_some(kind),
            turn_id: None,
        };
        told.push((sub.clone(), EventMsg::TaskStarted(started)));
        if is_undo {
            told.push((sub, EventMsg::UndoStarted(UndoStarted::default())));
        }
    }

    /// One answer of the model is complete, with the work it asked for.
    fn step(&mut self, turn: Option<&TurnId>, bookmark: Option<&str>, told: &mut Told) {
        if !self.is_seed() {
            return;
        }
        let Some(task) = turn.and_then(|turn| self.turns.get(turn)) else { return };
        let complete = TaskComplete {
            last_agent_message: task.last_message.clone().map(Str::Owned),
            response_id: bookmark.map(|it| it.to_owned().into()),
            scope: Some(Scope::Turn),
            turn_id: Some(task.sub.clone().into()),
            ..TaskComplete::default()
        };
        told.push((task.sub.clone(), EventMsg::TaskComplete(complete)));
    }

    fn turn_completed(
        &mut self,
        turn: Option<&TurnId>,
        end: &TurnCompleted,
        fetch: &mut Fetch<'_>,
        told: &mut Told,
    ) {
        if let Some(usage) = &end.usage
            && let Some(count) = self.count.turn_ends(usage)
        {
            told.push((self.sub(turn), EventMsg::TokenCount(Box::new(count))));
        }
        let task = turn.and_then(|turn| self.turns.remove(turn)).unwrap_or_default();
        let is_ok = end.status == TurnStatus::Completed;
        let mut tell = |msg| told.push((task.sub.clone(), msg));
        match &task.work {
            Some(Work::Undo) => {
                let message = match (&end.error, end.text.is_empty()) {
                    (Some(failure), _) => Some(failure.to_string()),
                    (None, false) => Some(whole(&end.text, fetch)),
                    (None, true) => None,
                };
                let message = message.map(Str::Owned);
                tell(EventMsg::UndoCompleted(UndoCompleted { success: is_ok, message }));
            }
            Some(Work::Rollback(num_turns)) => {
                let num_turns = *num_turns;
                return tell(match (is_ok, &end.error) {
                    (true, _) => EventMsg::ThreadRolledBack(ThreadRolledBack { num_turns }),
                    (false, failure) => {
                        let why = failure.as_ref().map(ToString::to_string);
                        let why = why.unwrap_or_else(|| "the rollback was stopped".to_owned());
                        rollback_failed(why)
                    }
                });
            }
            _ => {}
        }
        // A task that was to stop and did not end well was stopped, whatever the agent made of it.
        let is_aborted = end.status == TurnStatus::Interrupted || (task.abort.is_some() && !is_ok);
        if is_aborted {
            let reason = task.abort.unwrap_or(AbortReason::Interrupted);
            aborted(self.compat, reason).into_iter().for_each(tell);
            return;
        }
        if let Some(failure) = &end.error {
            tell(failed(self.compat, failure));
            if self.compat == Compat::Seed {
                return;
            }
        }
        let text = match end.text.is_empty() {
            true => None,
            false => Some(whole(&end.text, fetch)),
        };
        let last = text.or(task.last_message).filter(|_| is_ok);
        let is_seed = self.compat == Compat::Seed;
        tell(EventMsg::TaskComplete(TaskComplete {
            last_agent_message: last.map(Str::Owned),
            response_id: end.bookmark.clone().filter(|_| is_seed).map(Str::Owned),
            scope: is_seed.then_some(Scope::Task),
            turn_id: is_seed.then(|| task.sub.clone().into()),
            duration_ms: end.duration_ms.filter(|_| is_seed),
            error: None,
        }));
    }

    fn notice(&mut self, notice: &Notice, turn: Option<&TurnId>, told: &mut Told) {
        let sub = self.sub(turn);
        if let Some(limit) = &notice.rate_limit {
            let count = self.count.limited(limit);
            told.push((sub.clone(), EventMsg::TokenCount(Box::new(count))));
        }
        let text = if notice.text.is_empty() { &notice.code } else { &notice.text };
        told.push((
            sub,
            match notice.level {
                _ if notice.code == "api_retry" => EventMsg::StreamError(ErrorEvent {
                    message: text.clone().into(),
                    ..ErrorEvent::default()
                }),
                NoticeLevel::Info => background(text.clone()),
                NoticeLevel::Warning | NoticeLevel::Error => warning(self.compat, text.clone()),
            },
        ));
    }

    fn entitle(&mut self, title: &str, told: &mut Told) {
        if self.title.as_deref() != Some(title) || self.named_by.is_some() {
            self.title = Some(title.to_owned());
            let named = ThreadNameUpdated {
                thread_id: self.thread.clone().into(),
                thread_name: Some(title.to_owned().into()),
            };
            let by = self.named_by.take().unwrap_or_default();
            told.push((by, EventMsg::ThreadNameUpdated(named)));
        }
    }

    /// A submission gives the conversation another name, which is told under its id.
    pub(super) fn is_named_by(&mut self, sub: &str) {
        self.named_by = Some(sub.to_owned());
    }

    /// The conversation has this name already.
    pub(super) fn is_called(&mut self, title: Option<String>) {
        self.title = title;
    }
}

/// How the end of a task that was stopped is told.
pub(super) fn aborted(compat: Compat, reason: AbortReason) -> Vec<EventMsg<'static>> {
    let aborted = EventMsg::TurnAborted(TurnAborted { reason, turn_id: None });
    match compat {
        Compat::Seed => vec![error("interrupted".to_owned()), aborted],
        Compat::Upstream => vec![aborted],
    }
}

/// Something is degraded. The word is newer than `codex proto`.
pub(super) fn warning(compat: Compat, message: String) -> EventMsg<'static> {
    match compat {
        Compat::Seed => EventMsg::Warning(Message { message: message.into() }),
        Compat::Upstream => background(message),
    }
}

pub(super) fn background(message: String) -> EventMsg<'static> {
    EventMsg::BackgroundEvent(Message { message: message.into() })
}

pub(super) fn error(message: String) -> EventMsg<'static> {
    EventMsg::Error(ErrorEvent { message: message.into(), ..ErrorEvent::default() })
}

pub(super) fn rollback_failed(message: String) -> EventMsg<'static> {
    EventMsg::Error(ErrorEvent {
        message: message.into(),
        codex_error_info: raw(&"thread_rollback_failed"),
        ..ErrorEvent::default()
    })
}

fn failed(compat: Compat, failure: &Failure) -> EventMsg<'static> {
    let status = json!({"http_status_code": failure.http_status});
    let info: Value = match failure.code {
        FailureCode::NotLoggedIn => "unauthorized".into(),
        FailureCode::RateLimited | FailureCode::Budget => "usage_limit_exceeded".into(),
        FailureCode::ProviderUnavailable => "internal_server_error".into(),
        FailureCode::BadRequest => "bad_request".into(),
        FailureCode::MaxTokens => "context_window_exceeded".into(),
        FailureCode::StreamLost => json!({"response_stream_disconnected": status}),
        _ => "other".into(),
    };
    match compat {
        Compat::Seed => EventMsg::Error(ErrorEvent {
            message: failure.to_string().into(),
            codex_error_info: raw(&info),
            additional_details: failure.detail.clone().map(Str::Owned),
            ..ErrorEvent::default()
        }),
        // Old clients look for its words.
        Compat::Upstream => error(failure.message.clone()),
    }
}

fn plan_update(plan: &Plan) -> EventMsg<'static> {
    let step = |entry: &tieline_event::PlanEntry| PlanStep {
        step: entry.text.clone().into(),
        status: Str::Borrowed(match entry.status {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "in_progress",
            PlanStatus::Completed => "completed",
        }),
    };
    EventMsg::PlanUpdate(PlanUpdate {
        explanation: plan.explanation.clone().map(Str::Owned),
        plan: plan.entries.iter().map(step).collect(),
    })
}

/// A value as JSON text.
fn raw(value: &impl serde::Serialize) -> Option<Raw<'static>> {
    Raw::of(value).ok()
}

/// Whether a text or a call was cut off.
fn is_cut(status: ItemStatus) -> bool {
    status == ItemStatus::Cancelled
}

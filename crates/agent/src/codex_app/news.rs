//! Notifications of the server.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{
    Configured, EndSignal, Failure, FailureCode, Item, ItemBody, ItemId, ItemStatus, Kind, Native,
    Notice, NoticeLevel, Origin, Plan, PlanEntry, RateLimit, RequestId, Stream, TurnId, TurnStatus,
    Usage,
};
use tieline_wire::codex_app::{
    self as wire, Delta, ErrorNews, ItemNews, NameNews, PlanNews, RateLimitNews, Remark,
    RequestResolved, Rerouted, ServerNews, ThreadNews, TokenUsage, Turn, TurnNews, UsageNews,
    Whose, Window,
};
use tieline_wire::jsonrpc::write::{self, Form};

use super::driver::{AppDriver, ERROR_ENDS, ERROR_STANDS};
use super::item;
use crate::codex::{contents, failure, plan_status, usage};
use crate::ledger::{Ledger, Meta, TurnEnd};
use crate::servers;
use crate::words::first_line;

impl AppDriver {
    pub(super) fn news(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        line: &[u8],
        ledger: &mut Ledger,
    ) {
        let params = params.map_or("{}", RawValue::get);
        let read = match method {
            "item/agentMessage/delta" => {
                read(params, |it: Delta<'_>| self.grow(&it, Stream::Text, line, ledger))
            }
            "item/commandExecution/outputDelta" => read(params, |it: Delta<'_>| {
                self.grow(&it, Stream::Output, line, ledger);
            }),
            "item/plan/delta" => {
                read(params, |it: Delta<'_>| self.grow(&it, Stream::Plan, line, ledger))
            }
            "item/mcpToolCall/progress" => read(params, |it: Delta<'_>| {
                let text = format!("{}\n", it.message.as_deref().unwrap_or_default());
                self.delta(&it.item_id, Stream::Output, &text, ledger);
            }),
            "item/reasoning/summaryPartAdded" | "item/reasoning/summaryTextDelta" => {
                read(params, |it| self.summary(&it, line, ledger))
            }
            "item/reasoning/textDelta" => read(params, |it: Delta<'_>| {
                if !self.summaries.contains_key(&*it.item_id) {
                    self.grow(&it, Stream::Reasoning, line, ledger);
                }
            }),
            "item/started" => read(params, |it| self.item(&it, false, line, ledger)),
            "item/completed" => read(params, |it| self.item(&it, true, line, ledger)),
            "item/fileChange/patchUpdated" => read(params, |it| self.patch_updated(&it, ledger)),
            "turn/started" => read(params, |it| self.turn_started(&it, ledger)),
            "turn/completed" => match serde_json::from_str::<TurnNews<'_>>(params) {
                Ok(news) if self.is_mine(&news.thread_id) => {
                    self.turn_completed(&news.turn, ledger);
                    Ok(())
                }
                Ok(_) => Ok(()),
                Err(error) => {
                    // Somebody waits for this end, whatever it looks like.
                    self.end_unread(ledger);
                    Err(error)
                }
            },
            "turn/plan/updated" => read(params, |it| self.plan(it, ledger)),
            "thread/tokenUsage/updated" => read(params, |it| self.usage(&it, ledger)),
            "thread/started" => read(params, |it| self.thread_started(&it)),
            "thread/name/updated" => read(params, |it: NameNews<'_>| {
                if let Some(name) = it.thread_name.filter(|_| self.is_mine(&it.thread_id)) {
                    let title = Some(first_line(&name));
                    ledger.configured(Configured { title, ..Configured::default() });
                }
            }),
            "thread/compacted" => read(params, |it: Whose<'_>| {
                if self.is_mine(it.thread_id.as_deref().unwrap_or_default()) {
                    self.compaction(ledger);
                }
            }),
            "serverRequest/resolved" => read(params, |it| self.resolved(&it, ledger)),
            "error" => read(params, |it: ErrorNews<'_>| {
                if self.is_mine(&it.thread_id) {
                    self.error(&it, ledger);
                }
            }),
            "warning" | "guardianWarning" => {
                read(params, |it| remark(&it, NoticeLevel::Warning, "warning", ledger))
            }
            "configWarning" => {
                read(params, |it| remark(&it, NoticeLevel::Warning, "config_warning", ledger))
            }
            "deprecationNotice" => {
                read(params, |it| remark(&it, NoticeLevel::Info, "deprecation", ledger))
            }
            "mcpServer/startupStatus/updated" => read(params, |it| server(&it, ledger)),
            "model/rerouted" => read(params, |it: Rerouted<'_>| {
                if self.is_mine(&it.thread_id) {
                    rerouted(&it, ledger);
                }
            }),
            "account/rateLimits/updated" => read(params, |it| self.rate_limits(&it, ledger)),
            "hook/completed" => read(params, |it| hook(&it, ledger)),
            "item/autoApprovalReview/completed" => read(params, |it| reviewed(&it, ledger)),
            _ if wire::is_silent(method) => Ok(()),
            _ => {
                ledger.unparsed(format!("unknown notification {method:?}"), line);
                Ok(())
            }
        };
        if let Err(error) = read {
            ledger.unparsed(format!("{method}: {error}"), line);
        }
    }

    /// An item grew. Nothing is allocated for its name.
    fn delta(&self, item: &str, stream: Stream, text: &str, ledger: &mut Ledger) {
        if let Some(id) = self.names.get(item) {
            ledger.delta(id.as_str(), stream, text);
        }
    }

    /// Something grew. What was not begun begins with it, as long as a turn runs it can belong to.
    fn grow(&mut self, it: &Delta<'_>, stream: Stream, line: &[u8], ledger: &mut Ledger) {
        let known = self.names.get(&*it.item_id);
        let is_open = known.is_some_and(|id| ledger.delta(id.as_str(), stream, &it.delta));
        let is_over = known.is_some_and(|id| self.over.contains(id));
        let parent = self.helpers.get(&*it.thread_id).cloned();
        if is_open || is_over || !self.is_mine(&it.thread_id) && parent.is_none() {
            return;
        }
        if ledger.current_turn().is_none() {
            if stream != Stream::Output && !it.delta.is_empty() {
                ledger.unparsed("a text that belongs to no turn", line);
            }
            return;
        }
        let id = self.name(&it.item_id, ledger);
        let native = Native { item: Some(it.item_id.to_string()), ..Native::default() };
        ledger.grow(&id, || Meta { parent, native }, stream, &it.delta);
    }

    /// Our name for an item: providers may use theirs again in the next turn.
    fn name(&mut self, item: &str, ledger: &Ledger) -> ItemId {
        if let Some(known) = self.names.get(item) {
            return known.clone();
        }
        let name = match ledger.current_turn() {
            Some(turn) => ItemId::new(format!("{turn}:{item}")),
            None => ItemId::from(item),
        };
        self.names.insert(item.to_owned(), name.clone());
        name
    }

    fn is_mine(&self, thread: &str) -> bool {
        // Where no thread is named, there is only one.
        thread.is_empty() || self.thread.as_deref() == Some(thread)
    }

    /// Parts of a summary stand apart.
    fn summary(&mut self, delta: &Delta<'_>, line: &[u8], ledger: &mut Ledger) {
        let part = delta.summary_index.unwrap_or(0);
        let last = match self.summaries.get_mut(&*delta.item_id) {
            Some(last) => std::mem::replace(last, part),
            None => {
                self.summaries.insert(delta.item_id.to_string(), part);
                part
            }
        };
        if last != part {
            self.delta(&delta.item_id, Stream::Reasoning, "\n\n", ledger);
        }
        self.grow(delta, Stream::Reasoning, line, ledger);
    }

    fn item(&mut self, news: &ItemNews<'_>, is_over: bool, line: &[u8], ledger: &mut Ledger) {
        let (thread, it) = (&*news.thread_id, &news.item);
        let parent = self.helpers.get(thread).cloned();
        if !self.is_mine(thread) && parent.is_none() {
            return; // somebody else's thread
        }
        match &*it.kind {
            // Ours, told when it was said.
            "userMessage" if parent.is_none() => return,
            "userMessage" => return self.helper_told(it, parent, is_over, ledger),
            "hookPrompt" => {
                if is_over {
                    ledger.notice(NoticeLevel::Info, "hook", "a hook added a message to the turn");
                }
                return;
            }
            _ => {}
        }
        // The model has answered.
        self.ask_around(ledger);
        if parent.is_none() && self.is_told_by_review(it, is_over) {
            return;
        }
        let open = self.names.get(&*it.id).filter(|_| is_over);
        let whole = |text: &str| match open {
            Some(open) => ledger.whole_text(open.as_str(), text),
            None => text.into(),
        };
        let Some(mut body) = item::body(it, whole) else {
            ledger.unparsed(format!("unknown item {:?}", &*it.kind), line);
            return;
        };
        let id = self.name(&it.id, ledger);
        let mut status = item::status(it, is_over);
        if let ItemBody::Review { text, .. } = &mut body {
            if is_over && self.is_interrupted {
                status = ItemStatus::Cancelled;
            } else if !is_over {
                // What is to be looked at, which is not what was found.
                *text = String::new().into();
                self.entered_review(&id);
            }
        }
        // A tool that may not be called is a failed call on this wire.
        if matches!(status, ItemStatus::Declined | ItemStatus::Failed)
            && let Some(refused) = self.refused.remove(&*it.id)
        {
            status = refused;
        }
        for helper in
            it.receiver_thread_ids.iter().map(String::as_str).chain(it.agent_thread_id.as_deref())
        {
            self.helpers.insert(helper.to_owned(), id.clone());
        }
        if let ItemBody::Compaction { .. } = body {
            self.compacted = true;
        }
        let native = Native { item: Some(it.id.to_string()), ..Native::default() };
        let meta = Meta { parent, native };
        if is_over {
            self.summaries.remove(&*it.id);
            self.over.insert(id.clone());
            keep_streamed(&mut body, &id, ledger);
            ledger.complete_item(meta, Item { id, status, body });
        } else {
            ledger.upsert_item(meta, Item { id, status, body });
        }
    }

    /// The prompt another agent was given.
    fn helper_told(
        &mut self,
        it: &wire::Item<'_>,
        parent: Option<ItemId>,
        is_over: bool,
        ledger: &mut Ledger,
    ) {
        if !is_over {
            return;
        }
        let content = it.content.map(contents).unwrap_or_default();
        let body = ItemBody::UserMessage { content };
        let item = Item { id: self.name(&it.id, ledger), status: ItemStatus::Ok, body };
        ledger.complete_item(Meta { parent, ..Meta::default() }, item);
    }

    fn patch_updated(&mut self, news: &PatchUpdated, ledger: &mut Ledger) {
        let known = self.names.get(&news.item).and_then(|id| ledger.item(id.as_str())).cloned();
        if let Some(item) = known {
            let body = ItemBody::FileChange { changes: item::changes(&news.changes) };
            ledger.upsert_item(Meta::default(), Item { body, ..item });
        }
    }

    fn turn_started(&mut self, news: &TurnNews<'_>, ledger: &mut Ledger) {
        if !self.is_mine(&news.thread_id) {
            return;
        }
        if self.turns.iter().any(|(name, _)| *name == *news.turn.id) {
            return;
        }
        if self.is_inner_turn(&news.turn) {
            return;
        }
        let turn = match self.nameless.front().cloned() {
            Some(turn) => turn,
            // A turn the server begins by itself.
            None => ledger.begin_turn(Origin::Agent, None),
        };
        self.named(turn, &news.turn.id, ledger);
    }

    fn turn_completed(&mut self, turn: &Turn<'_>, ledger: &mut Ledger) {
        self.ends_by_error = false;
        if self.given_up.remove(&*turn.id) {
            return; // it comes after all
        }
        let mut ended: Vec<TurnId> =
            self.turns.extract_if(.., |(name, _)| *name == *turn.id).map(|(_, it)| it).collect();
        if ended.is_empty() {
            // Its name never came; it can only be the one that waits for it.
            ended.extend(self.nameless.pop_front());
        }
        let is_well = turn.error.is_none() && self.last_error.is_none();
        let (status, error) = match &*turn.status {
            "completed" => (TurnStatus::Completed, None),
            "" if is_well => (TurnStatus::Completed, None),
            "interrupted" => (TurnStatus::Interrupted, None),
            _ => (TurnStatus::Failed, Some(self.failure(turn))),
        };
        let end = TurnEnd {
            status,
            error,
            stop_reason: Some(turn.status.to_string()).filter(|it| !it.is_empty()),
            text: turn.items.and_then(last_message).or_else(|| self.review_text()),
            usage: self.spent(),
            duration_ms: turn.duration_ms,
            ..TurnEnd::completed(EndSignal::Wire)
        };
        self.ask_around(ledger);
        // A change that got a no and stop has no end of its own on this wire.
        for (native, status) in std::mem::take(&mut self.refused) {
            let Some(id) = self.names.get(&native) else { continue };
            if let Some(item) = ledger.item(id.as_str()).cloned() {
                ledger.complete_item(Meta::default(), Item { status, ..item });
            }
        }
        for turn in ended {
            ledger.end_turn(&turn, end.clone());
        }
        ledger.set_position(&turn.id);
        if let Some(used) = &self.used {
            ledger.set_session_usage(used.clone());
        }
        self.tidy(ledger);
    }

    fn failure(&mut self, turn: &Turn<'_>) -> Failure {
        let told = turn.error.as_ref().map(|error| {
            let failure = failure(&error.message, error.codex_error_info);
            failure.detail(error.additional_details.as_deref().unwrap_or_default())
        });
        told.or_else(|| self.last_error.take())
            .unwrap_or_else(|| Failure::new(FailureCode::Agent, "Codex says the turn failed"))
    }

    /// The end of a turn in a form that is not understood.
    fn end_unread(&mut self, ledger: &mut Ledger) {
        let failure = Failure::new(
            FailureCode::Protocol,
            "the agent ended the turn in a form that is not understood",
        )
        .hint("update tieline or Codex; `tieline export KEY --format raw` has the line");
        let open = self.turns.drain(..).map(|(_, turn)| turn).chain(self.nameless.pop_front());
        for turn in open.collect::<Vec<_>>() {
            ledger.end_turn(&turn, TurnEnd::failed(failure.clone(), EndSignal::Wire));
        }
        self.tidy(ledger);
    }

    fn tidy(&mut self, ledger: &mut Ledger) {
        if ledger.current_turn().is_some() {
            return;
        }
        self.review = None;
        self.summaries.clear();
        self.refused.clear();
        self.names.clear();
        self.over.clear();
        let is_over = |id: &RequestId| !ledger.open_requests().any(|open| open == id);
        let over: Vec<_> = self.asked.extract_if(|id, _| is_over(id)).collect();
        for (_, asked) in over {
            // The server forgets those of its own turn; another agent's would wait for ever.
            if !self.is_mine(asked.thread.as_deref().unwrap_or_default()) {
                let why = "the turn is over";
                ledger.write(&write::error(Form::Bare, &asked.wire_id, -32600, why));
            }
        }
    }

    fn plan(&mut self, news: PlanNews<'_>, ledger: &mut Ledger) {
        if !self.is_mine(&news.thread_id) {
            return;
        }
        let entry =
            |step: wire::Step| PlanEntry { text: step.step, status: plan_status(&step.status) };
        let entries = news.plan.into_iter().map(entry).collect();
        ledger.emit(Kind::PlanUpdated(Plan { entries, explanation: news.explanation }));
    }

    fn usage(&mut self, news: &UsageNews<'_>, ledger: &mut Ledger) {
        if !self.is_mine(&news.thread_id) {
            return;
        }
        let TokenUsage { total, last, model_context_window } = news.token_usage;
        let held = last.total_tokens;
        let context_used = (held > 0).then_some(held);
        let total = Usage { context_used, ..usage(total, model_context_window) };
        if self.used_before.is_none() && ledger.current_turn().is_some() {
            self.used_before = Some(total.since(&usage(last, None)));
        }
        // Some versions tell the same count twice.
        if self.used.as_ref() != Some(&total) {
            self.used = Some(total.clone());
            ledger.emit(Kind::UsageUpdated(total));
        }
    }

    /// What this turn used: what was added to the thread's count since it began.
    pub(super) fn spent(&self) -> Option<Usage> {
        let spent = self.used.as_ref()?.since(self.used_before.as_ref()?);
        let figures = [spent.input_tokens, spent.cached_input_tokens, spent.output_tokens];
        figures.iter().any(|figure| *figure > 0).then_some(spent)
    }

    /// A thread of another agent, if one of ours started it.
    fn thread_started(&mut self, news: &ThreadNews<'_>) {
        let parent = news.thread.parent_thread_id.as_deref();
        let owner = parent.and_then(|parent| self.helpers.get(parent)).cloned();
        if let Some(owner) = owner {
            self.helpers.entry(news.thread.id.to_string()).or_insert(owner);
        }
    }

    /// The older word for a compaction; newer servers send an item as well.
    fn compaction(&mut self, ledger: &mut Ledger) {
        if std::mem::replace(&mut self.compacted, true) {
            return;
        }
        let id = match ledger.frame() {
            Some(frame) => ItemId::new(format!("compaction{frame}")),
            None => ItemId::from("compaction"),
        };
        let body = ItemBody::Compaction { trigger: None, tokens_before: None };
        ledger.complete_item(Meta::default(), Item { id, status: ItemStatus::Ok, body });
    }

    /// Answered by us, or no longer wanted.
    fn resolved(&mut self, news: &RequestResolved, ledger: &mut Ledger) {
        let open = self.asked.iter().find(|(_, asked)| asked.wire_id == news.request_id);
        if let Some(id) = open.map(|(id, _)| id.clone()) {
            self.asked.remove(&id);
            ledger.expire_request(&id, "the agent took it back");
        }
    }

    fn error(&mut self, news: &ErrorNews<'_>, ledger: &mut Ledger) {
        self.ask_around(ledger);
        let error = &news.error;
        if news.will_retry == Some(true) {
            let details = error.additional_details.as_deref();
            let text = match details.filter(|details| !details.is_empty()) {
                Some(details) => format!("{} ({details})", &*error.message),
                None => error.message.to_string(),
            };
            // What streamed so far is told anew, under another name.
            self.cancel_texts(ledger);
            ledger.notice(NoticeLevel::Warning, "api_retry", text);
        } else {
            self.final_error(failure(&error.message, error.codex_error_info), news, ledger);
        }
    }

    /// Nothing more comes of it. The turn's end tells it too; a server that forgets the end is not
    /// waited for.
    fn final_error(&mut self, failure: Failure, news: &ErrorNews<'_>, ledger: &mut Ledger) {
        if ledger.current_turn().is_none() {
            ledger.notice(NoticeLevel::Error, "agent_error", failure.message);
            return;
        }
        self.last_error = Some(failure);
        if news.will_retry == Some(false) {
            self.ends_by_error = true;
            ledger.wake_after(ERROR_STANDS, ERROR_ENDS);
        }
    }

    /// The error was the last word of the turn.
    pub(super) fn error_stands(&mut self, ledger: &mut Ledger) {
        if !std::mem::take(&mut self.ends_by_error) {
            return;
        }
        let Some(failure) = self.last_error.take() else { return };
        let open =
            self.turns.drain(..).chain(self.nameless.drain(..).map(|it| (String::new(), it)));
        for (name, turn) in open.collect::<Vec<_>>() {
            let usage = self.spent();
            let end = TurnEnd { usage, ..TurnEnd::failed(failure.clone(), EndSignal::Wire) };
            ledger.end_turn(&turn, end);
            if !name.is_empty() {
                self.given_up.insert(name);
            }
        }
        self.tidy(ledger);
    }

    /// Texts that grow will not go on.
    fn cancel_texts(&mut self, ledger: &mut Ledger) {
        let is_text = |body: &ItemBody| {
            matches!(body, ItemBody::AgentMessage { .. } | ItemBody::Reasoning { .. })
        };
        let open = ledger.open_items().iter().filter(|it| is_text(&it.item.body));
        let open: Vec<Item> =
            open.filter(|it| it.meta.parent.is_none()).map(|it| it.snapshot()).collect();
        for item in open {
            self.over.insert(item.id.clone());
            let status = ItemStatus::Cancelled;
            ledger.complete_item(Meta::default(), Item { status, ..item });
        }
    }

    fn rate_limits(&mut self, news: &RateLimitNews<'_>, ledger: &mut Ledger) {
        let limits = &news.rate_limits;
        let percent = |window: &Option<Window>| window.map_or(0, |it| it.used_percent as u64);
        let used = (percent(&limits.primary), percent(&limits.secondary));
        let Some(window) = limits.primary.or(limits.secondary) else { return };
        // Told after every call of the model; worth telling when it changes.
        if self.last_limit.replace(used) == Some(used) {
            return;
        }
        let reached = limits.rate_limit_reached_type.is_some_and(|raw| raw.get() != "null");
        let status = if reached { "rejected" } else { "allowed" };
        ledger.emit(Kind::Notice(Notice {
            level: if reached { NoticeLevel::Warning } else { NoticeLevel::Info },
            code: "rate_limit".to_owned(),
            text: format!("{} % of the account's limit are used", window.used_percent),
            rate_limit: Some(RateLimit {
                status: status.to_owned(),
                limit: limits.limit_id.as_deref().map(str::to_owned),
                used: Some(window.used_percent / 100.0),
                resets_at: window.resets_at,
            }),
        }));
    }
}

/// The text of the last message among the items of a turn. They are read one by one: what is odd
/// about one says nothing about the turn.
fn last_message(items: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(rename = "type")]
        kind: String,
        text: String,
    }
    let items: Vec<&RawValue> = serde_json::from_str(items.get()).ok()?;
    items.iter().rev().find_map(|item| {
        let message: Message = serde_json::from_str(item.get()).ok()?;
        (message.kind == "agentMessage").then_some(message.text)
    })
}

/// Reads the parameters and hands them on.
fn read<'a, T: Deserialize<'a>>(
    params: &'a str,
    then: impl FnOnce(T),
) -> Result<(), serde_json::Error> {
    serde_json::from_str(params).map(then)
}

/// An item that is over without saying what it printed keeps what streamed.
fn keep_streamed(body: &mut ItemBody, id: &ItemId, ledger: &Ledger) {
    let (ItemBody::Command { output: text, .. } | ItemBody::Reasoning { text, .. }) = body else {
        return;
    };
    if !text.is_empty() {
        return;
    }
    let open = ledger.open_items().get(id.as_str());
    if let Some(open) = open.filter(|open| !open.streamed.is_empty()) {
        *text = open.streamed.to_text().into();
    }
}

fn remark(remark: &Remark<'_>, level: NoticeLevel, code: &str, ledger: &mut Ledger) {
    let text = match remark.details.as_deref().filter(|details| !details.is_empty()) {
        Some(details) => format!("{} ({details})", &*remark.summary),
        None => remark.summary.to_string(),
    };
    ledger.notice(level, code, text);
}

fn server(news: &ServerNews<'_>, ledger: &mut Ledger) {
    if news.status == "failed" {
        let why = news.error.as_deref().unwrap_or("no reason given");
        let (code, text) = servers::failed(&news.name, why);
        ledger.notice(NoticeLevel::Warning, code, text);
    }
}

fn rerouted(news: &Rerouted<'_>, ledger: &mut Ledger) {
    let text = format!("{} answers instead of {}", &*news.to_model, &*news.from_model);
    ledger.notice(NoticeLevel::Warning, "model_rerouted", text);
    let model = Some(news.to_model.to_string());
    ledger.configured(Configured { model, ..Configured::default() });
}

#[derive(Deserialize)]
struct PatchUpdated {
    #[serde(rename = "itemId")]
    item: String,
    changes: Vec<wire::Change>,
}

#[derive(Deserialize)]
struct HookCompleted {
    run: HookRun,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookRun {
    status: String,
    #[serde(default)]
    status_message: Option<String>,
}

fn hook(news: &HookCompleted, ledger: &mut Ledger) {
    let HookRun { status, status_message } = &news.run;
    if matches!(status.as_str(), "failed" | "blocked" | "stopped") {
        let why = status_message.as_deref().unwrap_or("no reason given");
        ledger.notice(NoticeLevel::Warning, "hook", format!("a hook {status}: {why}"));
    }
}

#[derive(Deserialize)]
struct Reviewed<'a> {
    #[serde(borrow)]
    review: Review<'a>,
}

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(default)]
    status: String,
    #[serde(borrow, default)]
    rationale: Option<&'a RawValue>,
}

fn reviewed(news: &Reviewed<'_>, ledger: &mut Ledger) {
    let why = news.review.rationale.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let text = format!("the automatic review says {}", news.review.status);
    let text = match why {
        Some(why) => format!("{text}: {why}"),
        None => text,
    };
    ledger.notice(NoticeLevel::Info, "auto_review", text);
}

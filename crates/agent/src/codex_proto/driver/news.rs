//! What each event means.

use tieline_event::{
    Configured, EndSignal, Failure, ItemBody, ItemStatus, Kind, Notice, NoticeLevel, Origin,
    RateLimit, Report, TurnStatus, TurnStep,
};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{self, AbortReason, Event, EventMsg, TurnItem};

use super::text::Account;
use super::{ERROR_STANDS, NO_END, ProtoDriver, Trouble, interrupted};
use crate::codex::{failure, is_retry};
use crate::ledger::{Ledger, TurnEnd};
use crate::servers;
use crate::sqeq::{models, plan, prompts, skills, tokens, tools, total};
use crate::words::first_line;

impl ProtoDriver {
    pub(super) fn event(&mut self, event: &Event<'_>, line: &[u8], ledger: &mut Ledger) {
        if self.is_late(&event.id, ledger) {
            match &event.msg {
                EventMsg::TokenCount(it) => self.token_count(it, ledger),
                EventMsg::TaskStarted(it) => self.task_started(&event.id, it, ledger),
                // Nobody is there to answer what it may ask.
                _ => {
                    if let Some(sniffed) = sqeq::sniff(line) {
                        self.refuse_unread(&sniffed, ledger);
                    }
                }
            }
            return;
        }
        if let Some(trouble) = &mut self.trouble
            && !matches!(event.msg, EventMsg::TokenCount(_))
        {
            trouble.is_last = false;
        }
        match &event.msg {
            EventMsg::AgentMessageDelta(it) => self.message_delta(&it.delta, ledger),
            EventMsg::ExecCommandOutputDelta(it) => self.output(it, line, ledger),
            EventMsg::AgentReasoningDelta(it) => {
                self.thinking_delta(Account::Summary, &it.delta, ledger);
            }
            EventMsg::AgentReasoningRawContentDelta(it) => {
                self.thinking_delta(Account::Verbatim, &it.delta, ledger);
            }
            EventMsg::AgentMessage(it) => self.message(&it.message, ledger),
            EventMsg::AgentReasoning(it) => self.thinking(Account::Summary, &it.text, ledger),
            EventMsg::AgentReasoningRawContent(it) => {
                self.thinking(Account::Verbatim, &it.text, ledger);
            }
            EventMsg::AgentReasoningSectionBreak(_) => self.section_break(),
            EventMsg::PlanDelta(it) => self.plan_delta(&it.delta, ledger),
            EventMsg::PlanUpdate(it) => ledger.emit(Kind::PlanUpdated(plan(it))),
            EventMsg::SessionConfigured(it) => self.session_configured(it, ledger),
            EventMsg::TaskStarted(it) => self.task_started(&event.id, it, ledger),
            EventMsg::TaskComplete(it) => self.task_complete(&event.id, it, ledger),
            EventMsg::TurnAborted(it) => self.turn_aborted(&event.id, it, ledger),
            EventMsg::Error(it) => self.error(&event.id, it, ledger),
            EventMsg::StreamError(it) => {
                // What streamed so far will be told anew.
                self.settle_texts(ItemStatus::Cancelled, ledger);
                self.retry(it, ledger);
            }
            EventMsg::TokenCount(it) => self.token_count(it, ledger),
            EventMsg::ExecApprovalRequest(it) => self.exec_approval(&event.id, it, ledger),
            EventMsg::ApplyPatchApprovalRequest(it) => self.patch_approval(&event.id, it, ledger),
            EventMsg::RequestUserInput(it) => self.user_input(&event.id, it, ledger),
            EventMsg::ElicitationRequest(it) => self.elicitation(it, ledger),
            EventMsg::DynamicToolCallRequest(it) => self.refuse_tool(it, ledger),
            EventMsg::RequestPermissions(it) => self.refuse_permissions(it, ledger),
            EventMsg::EnteredReviewMode(it) => self.review_begin(it, ledger),
            EventMsg::ExitedReviewMode(it) => self.review_end(it, ledger),
            EventMsg::ItemStarted(it) => {
                if let TurnItem::AgentMessage(_) = &it.item {
                    self.message_break();
                }
            }
            EventMsg::ItemCompleted(it) => {
                if let TurnItem::Plan(plan) = &it.item {
                    self.plan(&plan.text, ledger);
                }
            }
            EventMsg::ContextCompacted => {
                let body = ItemBody::Compaction { trigger: None, tokens_before: None };
                self.remark("compaction", body, ledger);
            }
            EventMsg::RawResponseCompleted(it) => {
                let usage = it.token_usage.as_ref().map(|used| tokens(used, None));
                let bookmark = Some(it.response_id.to_string()).filter(|id| !id.is_empty());
                ledger.emit(Kind::TurnStep(TurnStep { bookmark, usage }));
            }
            EventMsg::ListSkillsResponse(it) => self.report(&event.id, skills(it), ledger),
            EventMsg::ListCustomPromptsResponse(it) => {
                self.report(&event.id, prompts(it), ledger);
            }
            EventMsg::ListModelsResponse(it) => self.report(&event.id, models(it), ledger),
            EventMsg::McpListToolsResponse(it) => self.report(&event.id, tools(it), ledger),
            EventMsg::Unknown(it) if !event.msg.is_known() => {
                ledger.unparsed(format!("unknown event {:?}", &*it.kind), line);
            }
            other if self.call(other, ledger) => {}
            other => self.notice(other, ledger),
        }
    }

    /// What is worth a word, or none: answers to what we never ask, and what other events say too.
    fn notice(&mut self, event: &EventMsg<'_>, ledger: &mut Ledger) {
        match event {
            EventMsg::BackgroundEvent(it) => {
                ledger.notice(NoticeLevel::Info, "background", first_line(&it.message));
            }
            EventMsg::Warning(it) => {
                ledger.notice(NoticeLevel::Warning, "warning", first_line(&it.message));
            }
            EventMsg::DeprecationNotice(it) => {
                let text = match it.details.as_deref().filter(|details| !details.is_empty()) {
                    Some(details) => format!("{} ({details})", &*it.summary),
                    None => it.summary.to_string(),
                };
                ledger.notice(NoticeLevel::Info, "deprecation", text);
            }
            EventMsg::McpStartupComplete(it) => {
                for failed in &it.failed {
                    let (code, text) = servers::failed(&failed.server, &failed.error);
                    ledger.notice(NoticeLevel::Warning, code, first_line(&text));
                }
            }
            EventMsg::ModelReroute(it) => {
                let text = format!("{} answers instead of {}", &*it.to_model, &*it.from_model);
                ledger.notice(NoticeLevel::Warning, "model_rerouted", text);
                let model = Some(it.to_model.to_string());
                ledger.configured(Configured { model, ..Configured::default() });
            }
            EventMsg::UndoCompleted(it) => {
                let level = if it.success { NoticeLevel::Info } else { NoticeLevel::Warning };
                let text = it.message.as_deref().unwrap_or(match it.success {
                    true => "the last changes were taken back",
                    false => "the last changes could not be taken back",
                });
                ledger.notice(level, "undo", first_line(text));
            }
            EventMsg::ThreadRolledBack(it) => {
                let text = format!("the agent forgot the last {} turns", it.num_turns);
                ledger.notice(NoticeLevel::Info, "rolled_back", text);
            }
            _ => {}
        }
    }

    /// The agent told about itself what it was asked.
    fn report(&mut self, id: &str, report: Report, ledger: &mut Ledger) {
        if let Some(number) = self.inquiries.remove(id) {
            ledger.report(number, Ok(report));
        }
    }

    fn task_started(&mut self, id: &str, it: &sqeq::TaskStarted<'_>, ledger: &mut Ledger) {
        self.tells_tasks = true;
        if self.task(id).is_some_and(|task| task.began && !ledger.is_open(&task.turn)) {
            return;
        }
        self.counts.context_window = it.model_context_window.or(self.counts.context_window);
        // A word that came too late for its turn begins a task of its own, which takes up what the
        // next turn says, if there is one.
        let turn = match ledger.current_turn() {
            Some(turn) => turn.clone(),
            None => {
                self.forget_task(ledger);
                ledger.begin_turn(Origin::Agent, None)
            }
        };
        if let Some(task) = self.task(id) {
            (task.turn, task.began) = (turn, true);
        }
    }

    fn task_complete(&mut self, id: &str, it: &sqeq::TaskComplete<'_>, ledger: &mut Ledger) {
        let text = it.last_agent_message.as_deref().map(str::to_owned);
        let end = match self.trouble.take() {
            Some(trouble) if trouble.submission == id => {
                TurnEnd::failed(trouble.failure, EndSignal::Wire)
            }
            other => {
                if let Some(Trouble { failure, .. }) = other {
                    // Of a task that another one followed in the same turn.
                    ledger.notice(NoticeLevel::Error, "agent_error", first_line(&failure.message));
                }
                self.settle_texts(ItemStatus::Ok, ledger);
                TurnEnd::completed(EndSignal::Wire)
            }
        };
        let bookmark = it.response_id.as_deref().map(str::to_owned);
        let end = TurnEnd { text, duration_ms: it.duration_ms, bookmark, ..end };
        self.end_task(id, end, ledger);
    }

    fn turn_aborted(&mut self, id: &str, it: &sqeq::TurnAborted<'_>, ledger: &mut Ledger) {
        // The end of a review's task: what stands in it was told before.
        let status = match it.reason {
            AbortReason::ReviewEnded => TurnStatus::Completed,
            _ => TurnStatus::Interrupted,
        };
        let stop_reason = Some(it.reason.as_str().to_owned());
        let end = TurnEnd { status, stop_reason, ..interrupted(EndSignal::Wire) };
        self.end_task(id, end, ledger);
    }

    fn error(&mut self, id: &str, it: &sqeq::ErrorEvent<'_>, ledger: &mut Ledger) {
        if is_retry(&it.message) {
            ledger.notice(NoticeLevel::Warning, "api_retry", first_line(&it.message));
            return;
        }
        if it.message.eq_ignore_ascii_case("interrupted") {
            // What versions before `turn_aborted` say.
            self.end_task(id, interrupted(EndSignal::Wire), ledger);
            return;
        }
        let failure = self.failure(it);
        // Without a submission it is about the session: a server of tools that did not start, say.
        let is_aside = id.is_empty() && self.session.is_some();
        if is_aside || ledger.current_turn().is_none() {
            ledger.notice(NoticeLevel::Error, "agent_error", first_line(&it.message));
            return;
        }
        self.trouble = Some(Trouble { submission: id.to_owned(), failure, is_last: true });
        ledger.wake_after(NO_END, ERROR_STANDS);
    }

    /// Our engine says what failed in our words; what Codex says is to be guessed from its own.
    fn failure(&self, it: &sqeq::ErrorEvent<'_>) -> Failure {
        let own = it.tieline_failure.as_ref().filter(|_| self.is_engine);
        own.and_then(Raw::read).unwrap_or_else(|| {
            let details = it.additional_details.as_deref().unwrap_or_default();
            failure(&it.message, it.codex_error_info.as_deref()).detail(details)
        })
    }

    /// What is tried again, and why where that is told.
    fn retry(&self, it: &sqeq::ErrorEvent<'_>, ledger: &mut Ledger) {
        let text = match it.additional_details.as_deref().filter(|_| self.is_engine) {
            Some(why) => format!("{} ({why})", &*it.message),
            None => it.message.to_string(),
        };
        ledger.notice(NoticeLevel::Warning, "api_retry", first_line(&text));
    }

    fn token_count(&mut self, it: &sqeq::TokenCount<'_>, ledger: &mut Ledger) {
        if let Some(info) = &it.info {
            self.counts.context_window = info.model_context_window.or(self.counts.context_window);
            // The same count comes before and after each call of the model.
            let total = total(info, self.counts.context_window);
            if self.counts.total != total {
                self.counts.total = total.clone();
                ledger.emit(Kind::UsageUpdated(total));
            }
        }
        if let Some(limits) = &it.rate_limits {
            self.rate_limits(limits, ledger);
        }
    }

    fn rate_limits(&mut self, limits: &sqeq::RateLimits<'_>, ledger: &mut Ledger) {
        let Some(window) = limits.primary.as_ref().or(limits.secondary.as_ref()) else { return };
        let percent = |window: &Option<sqeq::RateWindow>| {
            window.as_ref().map_or(0, |window| window.used_percent as u64)
        };
        let used = (percent(&limits.primary), percent(&limits.secondary));
        // Told with every count; worth telling when it changes.
        if self.counts.limits.replace(used) == Some(used) {
            return;
        }
        ledger.emit(Kind::Notice(Notice {
            level: NoticeLevel::Info,
            code: "rate_limit".to_owned(),
            text: format!("{} % of the account's limit are used", window.used_percent),
            rate_limit: Some(RateLimit {
                status: "allowed".to_owned(),
                limit: None,
                used: Some(window.used_percent / 100.0),
                resets_at: window.resets_at,
            }),
        }));
    }
}

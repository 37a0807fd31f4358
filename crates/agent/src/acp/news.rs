//! What the agent tells.

use serde_json::value::RawValue;
use tieline_event::{
    AgentCommand, Configured, Content, Item, ItemBody, ItemId, ItemStatus, Kind, Native, Notice,
    NoticeLevel, Plan, PlanEntry, PlanStatus, Prompt, Stream, Usage,
};
use tieline_wire::acp::read;
use tieline_wire::acp::read::{
    Cancelled, Chunk, Commands, Compaction, ElicitationDone, SessionUpdate, ToolCall, Update,
    UsageUpdate,
};

use super::driver::AcpDriver;
use super::speech::{What, item_id};
use super::tool::{self, Status};
use crate::ledger::{Ledger, Meta};
use crate::words::{first_line, plain};

/// How much of a command's output is shown while it runs; what it keeps is the agent's to say.
const MOST_STREAMED: usize = 8 << 20;

impl AcpDriver {
    /// Something that nobody answers.
    pub(super) fn news(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        line: &[u8],
        ledger: &mut Ledger,
    ) {
        let params = params.map_or("{}", RawValue::get);
        let read = match method {
            "session/update" => serde_json::from_str(params).map(|update: SessionUpdate<'_>| {
                self.update(&update, line, ledger);
            }),
            "$/cancel_request" => serde_json::from_str(params).map(|it: Cancelled| {
                self.take_back(&it.request_id, ledger);
            }),
            "elicitation/complete" => serde_json::from_str(params).map(|it: ElicitationDone| {
                self.link_done(&it.elicitation_id, ledger);
            }),
            // Everything that begins so is the agent's own affair.
            method if method.starts_with('_') => {
                tracing::debug!(method, "an extension");
                Ok(())
            }
            method => {
                ledger.unparsed(format!("unknown notification {method}"), line);
                Ok(())
            }
        };
        if let Err(error) = read {
            ledger.unparsed(format!("{method} is not understood: {error}"), line);
        }
    }

    fn update(&mut self, update: &SessionUpdate<'_>, line: &[u8], ledger: &mut Ledger) {
        if self.session.as_deref().is_some_and(|session| *session != *update.session_id) {
            return ledger.unparsed("about another session", line);
        }
        match &update.update {
            // What is true from now on counts also while history is told.
            Update::Commands(commands) => self.commands(commands, ledger),
            Update::Mode(mode) => {
                self.offer.set_current_mode(&mode.current_mode_id);
                self.mode_changed(ledger);
            }
            Update::Config(config) => {
                if let Some(options) = &config.config_options {
                    self.offer.replace_options(options.clone());
                    self.mode_changed(ledger);
                    self.tell(ledger);
                }
            }
            Update::Info(info) => {
                if let Some(title) = info.title.clone().filter(|title| !title.is_empty()) {
                    let title = Some(title);
                    ledger.configured(Configured { title, ..Configured::default() });
                }
            }
            Update::Usage(usage) => self.usage(usage, ledger),
            Update::Notice(notice) => remark(notice, ledger),
            Update::Unknown(kind) => {
                ledger.unparsed(format!("unknown update {}", &**kind), line);
            }
            _ if self.is_replay => {}
            Update::AgentMessage(chunk) => self.said(What::Message, chunk, line, ledger),
            Update::AgentThought(chunk) => self.said(What::Thought, chunk, line, ledger),
            Update::UserMessage(chunk) => {
                if let Some(content) = tool::content(&chunk.content) {
                    self.speech.echo(&plain(&content, '/').unwrap_or_default());
                }
            }
            Update::ToolCall(call) => {
                self.finish_echo(ledger);
                // An id may come again once its call is over.
                self.done.remove(&*call.tool_call_id);
                self.tool(call, line, ledger);
            }
            Update::ToolCallUpdate(call) => {
                self.tool(call, line, ledger);
            }
            Update::Plan(plan) => steps(plan, ledger),
            Update::Compaction(compaction) => compacted(compaction, ledger),
            Update::CompactionSummary => {}
        }
        if self.running.is_some() {
            self.keep_session(ledger);
        }
    }

    fn said(&mut self, what: What, chunk: &Chunk<'_>, line: &[u8], ledger: &mut Ledger) {
        self.finish_echo(ledger);
        let Some(content) = tool::content(&chunk.content) else {
            let kind = &*chunk.content.kind;
            return ledger.unparsed(format!("a message with a piece of kind {kind:?}"), line);
        };
        match plain(&content, '/') {
            Some(text) => self.speech.say(what, chunk.message_id.as_deref(), &text, ledger),
            None => {
                self.speech.hush(ledger);
                let (id, body) = (item_id(ledger), ItemBody::Image { content });
                let item = Item { id, status: ItemStatus::Ok, body };
                ledger.complete_item(Meta::default(), item);
            }
        }
    }

    /// The user's words as the agent told them: the prompt is known, anything else is news.
    pub(super) fn finish_echo(&mut self, ledger: &mut Ledger) {
        let echo = self.speech.take_echo();
        let echo = echo.trim();
        let said = self.running.as_ref().map_or("", |(_, said)| said.trim());
        let is_known = !said.is_empty() && (said.contains(echo) || echo.contains(said));
        if !is_known && !echo.is_empty() {
            self.speech.hush(ledger);
            let content = vec![Content::text(echo)];
            let origin = tieline_event::Origin::Agent;
            ledger.user_message(&Prompt { content, origin, ..Prompt::default() });
        }
    }

    /// A tool call is new or changed; gives its item, once it is told.
    pub(super) fn tool(
        &mut self,
        call: &ToolCall<'_>,
        line: &[u8],
        ledger: &mut Ledger,
    ) -> Option<ItemId> {
        let id = call.tool_call_id.to_string();
        if self.done.contains(&id) {
            // What comes after the end of a call has no place any more; the line has it.
            tracing::debug!(tool_call = %id, "an update after the end");
            return None;
        }
        let is_new = !self.tools.contains_key(&id);
        if is_new {
            self.speech.hush(ledger);
        }
        let tool = self.tools.entry(id.clone()).or_default();
        let had_terminal = tool.terminal.is_some();
        let merged = tool.merge(call);
        let status = tool.status;
        for kind in &merged.odd {
            ledger.unparsed(format!("a tool call with content of kind {kind:?}"), line);
        }
        let is_told = tool.item.is_some();
        if !is_told && tool.is_blank() && merged.printed.is_empty() {
            return None;
        }
        let printed = match &tool.terminal {
            // What a terminal of ours printed before the call named it.
            Some(terminal) if !had_terminal => {
                self.terminals.get(terminal).map(|it| it.output().0).unwrap_or_default()
            }
            _ => String::new(),
        };
        let is_over = matches!(status, Status::Completed | Status::Failed);
        if !is_over || !merged.printed.is_empty() {
            if !is_told || (merged.is_news && !is_over) {
                self.show_tool(&id, ledger);
            }
            self.printed(&id, &printed, ledger);
            self.printed(&id, &merged.printed, ledger);
        }
        match is_over {
            true => self.finish_tool(&id, ledger),
            false => self.tools.get(&id).and_then(|tool| tool.item.clone()),
        }
    }

    /// Tells how a call stands; gives its item.
    pub(super) fn show_tool(&mut self, id: &str, ledger: &mut Ledger) -> Option<ItemId> {
        let meta = self.meta_of(id);
        let tool = self.tools.get_mut(id)?;
        let item = tool.item.get_or_insert_with(|| item_id(ledger)).clone();
        let body = tool.body(&streamed(&item, ledger));
        // Much of what agents repeat changes nothing that is shown.
        if ledger.item(item.as_str()).is_none_or(|told| told.body != body) {
            let status = ItemStatus::InProgress;
            ledger.upsert_item(meta, Item { id: item.clone(), status, body });
        }
        Some(item)
    }

    fn finish_tool(&mut self, id: &str, ledger: &mut Ledger) -> Option<ItemId> {
        let meta = self.meta_of(id);
        let tool = self.tools.remove(id)?;
        self.done.insert(id.to_owned());
        let item = tool.item.clone().unwrap_or_else(|| item_id(ledger));
        let refused = self.refused.remove(id);
        let status = match (tool.status, refused) {
            (Status::Failed, Some(refused)) => refused,
            (Status::Failed, None) if self.is_interrupted => ItemStatus::Cancelled,
            (status, _) => status.told(),
        };
        if let Some(trouble) = tool.trouble().filter(|_| status == ItemStatus::Failed) {
            ledger.notice(NoticeLevel::Warning, "patch_failed", trouble);
        }
        let body = tool.body(&streamed(&item, ledger));
        ledger.complete_item(meta, Item { id: item.clone(), status, body });
        Some(item)
    }

    /// Calls that somebody said no to and that the agent says nothing more about.
    pub(super) fn finish_refused(&mut self, ledger: &mut Ledger) {
        let mut refused: Vec<String> = self.refused.keys().cloned().collect();
        refused.sort();
        for id in refused {
            if let Some(tool) = self.tools.get_mut(&id) {
                tool.status = Status::Failed;
                self.finish_tool(&id, ledger);
            }
        }
    }

    fn meta_of(&self, id: &str) -> Meta {
        let parent = self.tools.get(id).and_then(|tool| tool.parent.as_ref());
        let parent = parent.and_then(|parent| self.tools.get(parent)?.item.clone());
        Meta { parent, native: Native { item: Some(id.to_owned()), ..Native::default() } }
    }

    /// A command printed something.
    pub(super) fn printed(&mut self, id: &str, text: &str, ledger: &mut Ledger) {
        let Some(tool) = self.tools.get_mut(id) else { return };
        let (Some(item), false) = (tool.item.clone(), text.is_empty()) else { return };
        let was_full = tool.n_streamed >= MOST_STREAMED;
        tool.n_streamed = tool.n_streamed.saturating_add(text.len());
        if was_full {
            return;
        }
        ledger.delta(item.as_str(), Stream::Output, text);
        if tool.n_streamed >= MOST_STREAMED {
            let text = format!("{item} prints more than is shown: {MOST_STREAMED} bytes");
            ledger.notice(NoticeLevel::Warning, "output_cut", text);
        }
    }

    fn commands(&mut self, commands: &Commands, ledger: &mut Ledger) {
        let command = |it: &read::Command| AgentCommand {
            name: it.name.clone(),
            description: Some(first_line(&it.description)).filter(|it| !it.is_empty()),
            hint: it.input.as_ref().and_then(|input| input.hint.clone()),
        };
        self.abilities.commands = commands.available_commands.iter().map(command).collect();
        self.tell(ledger);
    }

    fn usage(&mut self, usage: &UsageUpdate, ledger: &mut Ledger) {
        let in_dollars = usage.cost.as_ref().filter(|it| it.currency.eq_ignore_ascii_case("usd"));
        let used = Usage {
            // Who cannot count says none.
            context_used: Some(usage.used).filter(|used| *used > 0),
            context_window: Some(usage.size).filter(|size| *size > 0),
            cost_usd: in_dollars.map(|it| it.amount).or(self.used.cost_usd),
            ..Usage::default()
        };
        if used != self.used {
            self.used = used.clone();
            ledger.emit(Kind::UsageUpdated(used));
        }
    }
}

/// What an open item has printed so far.
fn streamed(item: &ItemId, ledger: &Ledger) -> String {
    let open = ledger.open_items().get(item.as_str());
    open.map(|open| open.streamed.to_text()).unwrap_or_default()
}

fn steps(plan: &read::Plan, ledger: &mut Ledger) {
    let entry = |it: &read::PlanEntry| PlanEntry {
        text: it.content.clone(),
        status: match it.status.as_str() {
            "completed" => PlanStatus::Completed,
            "in_progress" => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        },
    };
    let entries = plan.entries.iter().map(entry).collect();
    ledger.emit(Kind::PlanUpdated(Plan { entries, explanation: None }));
}

fn remark(notice: &read::Notice, ledger: &mut Ledger) {
    let level = match notice.severity.as_str() {
        "error" => NoticeLevel::Error,
        "warning" => NoticeLevel::Warning,
        _ => NoticeLevel::Info,
    };
    let text = match notice.description.as_deref().filter(|it| !it.is_empty()) {
        Some(more) => format!("{}: {more}", notice.title),
        None => notice.title.clone(),
    };
    let code = "agent_notice".to_owned();
    ledger.emit(Kind::Notice(Notice { level, code, text, rate_limit: None }));
}

fn compacted(compaction: &Compaction, ledger: &mut Ledger) {
    let id = ItemId::new(format!("compaction:{}", compaction.compaction_id));
    let body = ItemBody::Compaction { trigger: None, tokens_before: None };
    let status = match compaction.status.as_str() {
        "completed" => ItemStatus::Ok,
        "failed" => ItemStatus::Failed,
        "cancelled" => ItemStatus::Cancelled,
        _ => ItemStatus::InProgress,
    };
    if let Some(why) = compaction.error.as_deref().filter(|_| status == ItemStatus::Failed) {
        let text = format!("the memory could not be shortened: {why}");
        ledger.notice(NoticeLevel::Warning, "compaction_failed", text);
    }
    let item = Item { id, status, body };
    match status {
        ItemStatus::InProgress => ledger.upsert_item(Meta::default(), item),
        _ => ledger.complete_item(Meta::default(), item),
    }
}

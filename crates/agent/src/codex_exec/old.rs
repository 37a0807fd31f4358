//! The events of 0.42 and before: those of the queue protocol, mostly without the deltas of texts. Where
//! none of them ends the turn, the end of the process does.

use tieline_event::{
    EndSignal, Item, ItemBody, ItemStatus, Native, NoticeLevel, Stream, TurnStatus,
};
use tieline_wire::sqeq::EventMsg;

use super::driver::ExecDriver;
use crate::codex;
use crate::ledger::{Ledger, Meta, TurnEnd};
use crate::sqeq::{self, Call};
use crate::words::first_line;

/// Which text grows.
const MESSAGE: usize = 0;
const THOUGHT: usize = 1;

impl ExecDriver {
    pub(super) fn old_event(&mut self, event: &EventMsg<'_>, line: &[u8], ledger: &mut Ledger) {
        match event {
            EventMsg::SessionConfigured(it) => {
                self.uses_model(Some(&*it.model).filter(|model| !model.is_empty()), ledger);
                if !it.session_id.is_empty() {
                    self.thread(&it.session_id, ledger);
                }
            }
            EventMsg::AgentMessage(it) => {
                let body = ItemBody::AgentMessage { text: (&*it.message).into() };
                self.nameless(MESSAGE, body, ledger);
            }
            EventMsg::AgentReasoning(it) | EventMsg::AgentReasoningRawContent(it) => {
                let text = (&*it.text).into();
                self.nameless(THOUGHT, ItemBody::Reasoning { text, signature: None }, ledger);
            }
            EventMsg::AgentMessageDelta(it) => {
                self.grow(MESSAGE, Stream::Text, &it.delta, ledger);
            }
            EventMsg::AgentReasoningDelta(it) | EventMsg::AgentReasoningRawContentDelta(it) => {
                self.grow(THOUGHT, Stream::Reasoning, &it.delta, ledger);
            }
            EventMsg::TokenCount(it) => {
                // The first one of a process has no figures.
                if let Some(info) = &it.info {
                    self.used = Some(sqeq::total(info, info.model_context_window));
                }
            }
            EventMsg::PlanUpdate(it) => self.steps(sqeq::plan(it), ledger),
            EventMsg::StreamError(it) => {
                ledger.notice(NoticeLevel::Warning, "api_retry", first_line(&it.message));
            }
            EventMsg::Error(it) => self.trouble(&it.message, ledger),
            EventMsg::BackgroundEvent(it) | EventMsg::Warning(it) => {
                ledger.notice(NoticeLevel::Info, "agent_warning", first_line(&it.message));
            }
            EventMsg::TaskComplete(it) => {
                let text = it.last_agent_message.as_deref().map(str::to_owned);
                let end = match self.error.take() {
                    Some(error) => TurnEnd::failed(codex::failure(&error, None), EndSignal::Wire),
                    None => TurnEnd { text, ..TurnEnd::completed(EndSignal::Wire) },
                };
                self.end(end, ledger);
            }
            EventMsg::TurnAborted(it) => {
                let end = TurnEnd {
                    status: TurnStatus::Interrupted,
                    stop_reason: Some(it.reason.as_str().to_owned()),
                    ..TurnEnd::completed(EndSignal::Wire)
                };
                self.end(end, ledger);
            }
            // Echoes, frames around other events, and output of which the command's end has all.
            EventMsg::TaskStarted(_)
            | EventMsg::UserMessage(_)
            | EventMsg::AgentReasoningSectionBreak(_)
            | EventMsg::ExecCommandOutputDelta(_)
            | EventMsg::TurnDiff(_)
            | EventMsg::ShutdownComplete => {}
            other => self.call(other, line, ledger),
        }
    }

    /// A piece of a text that the wire gives no id. What follows the text ends it.
    fn grow(&mut self, what: usize, stream: Stream, delta: &str, ledger: &mut Ledger) {
        self.error_passed(ledger);
        self.works = true;
        let name = self.growing[what].take().unwrap_or_else(|| self.next_name());
        let native = Native { item: Some(name.clone()), ..Native::default() };
        let id = self.item_id(&name);
        ledger.grow(&id, || Meta { parent: None, native }, stream, delta);
        self.growing[what] = Some(name);
    }

    fn next_name(&mut self) -> String {
        let name = format!("item_{}", self.n_nameless);
        self.n_nameless += 1;
        name
    }

    /// An item that is over and that the wire gives no id.
    fn nameless(&mut self, what: usize, body: ItemBody, ledger: &mut Ledger) {
        self.error_passed(ledger);
        let name = self.growing[what].take().unwrap_or_else(|| self.next_name());
        let id = self.item_id(&name);
        self.tell(&name, Item { id, status: ItemStatus::Ok, body }, ledger);
    }

    /// The begin or the end of a call.
    fn call(&mut self, event: &EventMsg<'_>, line: &[u8], ledger: &mut Ledger) {
        let begun = |id: &str| ledger.item(self.item_id(id).as_str()).map(|item| item.body.clone());
        let Some(Call { id: native, status, body, trouble }) = sqeq::call(event, begun) else {
            ledger.unparsed(format!("unknown event {:?}", event.kind()), line);
            return;
        };
        if let Some(trouble) = trouble {
            ledger.notice(NoticeLevel::Warning, "patch_failed", trouble);
        }
        let id = self.item_id(native);
        self.tell(native, Item { id, status, body }, ledger);
    }
}

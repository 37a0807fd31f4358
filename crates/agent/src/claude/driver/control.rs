//! Questions of the agent to us, and its answers to ours.

use serde_json::value::RawValue;
use tieline_event::{Configured, ModelInfo, Native, NoticeLevel};
use tieline_wire::claude;
use tieline_wire::claude::write;

use super::super::ask;
use super::{Call, ClaudeDriver, offer};
use crate::ledger::{Ledger, Meta};
use crate::words::first_line;

impl ClaudeDriver {
    pub(super) fn control_request(
        &mut self,
        id: &str,
        request: &claude::ControlRequest<'_>,
        ledger: &mut Ledger,
    ) {
        if request.subtype != "can_use_tool" {
            // Silence would stall the turn, so what we do not offer is refused at once.
            let error = format!("unsupported control request {:?}", &*request.subtype);
            ledger.write(&write::control_error(id, &error));
            ledger.notice(NoticeLevel::Warning, "unsupported_request", error);
            return;
        }
        if self.asked.values().any(|asked| asked.wire_id == id) {
            let text = format!("the agent asked twice with the id {id}");
            ledger.notice(NoticeLevel::Warning, "repeated_request", text);
            return;
        }
        let (asked, question) = ask::question(id, request, ledger);
        let native = Native {
            request: Some(id.to_owned()),
            item: request.tool_use_id.as_deref().map(str::to_owned),
            ..Native::default()
        };
        self.asked.insert(question.id.clone(), asked);
        ledger.open_request(Meta { parent: None, native }, question);
    }

    pub(super) fn control_response(
        &mut self,
        response: &claude::ControlResponse<'_>,
        ledger: &mut Ledger,
    ) {
        // The agent may answer twice; the second answer is nobody's.
        let Some(call) = self.calls.remove(&*response.request_id) else {
            tracing::debug!(id = &*response.request_id, "late or unknown control response");
            return;
        };
        let failed = response.subtype == "error";
        let error = response.error.as_deref().unwrap_or("no reason given");
        match call {
            Call::Initialize => {
                if let Some(answer) = response.response {
                    self.initialized(answer, ledger);
                }
                for (number, inquiry) in std::mem::take(&mut self.inquiries) {
                    self.tell(number, &inquiry, ledger);
                }
            }
            Call::Interrupt if failed => {
                ledger.notice(NoticeLevel::Warning, "interrupt_refused", error);
            }
            Call::Interrupt => {}
            Call::SetMode(mode) if failed => {
                ledger.notice(
                    NoticeLevel::Warning,
                    "mode_refused",
                    format!("the agent stays in mode {}: {mode} was refused: {error}", self.mode),
                );
                // Everybody who took the new mode for granted is told.
                self.tell_mode(ledger);
            }
            Call::SetMode(mode) => {
                self.mode = mode;
                self.tell_mode(ledger);
            }
            Call::SetModel(model) if failed => {
                let model = model.as_deref().unwrap_or("the default");
                ledger.notice(
                    NoticeLevel::Warning,
                    "model_refused",
                    format!("the model stays as it is: {model} was refused: {error}"),
                );
            }
            Call::SetModel(model) => {
                self.offer.model.clone_from(&model);
                self.offer.model_in_use = None;
                let abilities = self.refresh_efforts().then(|| self.abilities.clone());
                ledger.configured(Configured { model, abilities, ..Configured::default() });
            }
            Call::SetEffort(effort) if failed => {
                let text = format!("the effort stays as it is: {effort} was refused: {error}");
                ledger.notice(NoticeLevel::Warning, "effort_refused", text);
                self.tell_effort(ledger);
            }
            Call::SetEffort(effort) => {
                self.offer.effort = Some(effort);
                self.tell_effort(ledger);
            }
            Call::SetServers if failed => {
                let text = format!("the client's MCP servers are not used: {error}");
                ledger.notice(NoticeLevel::Warning, "mcp_not_used", text);
            }
            Call::SetServers => {
                if let Some(answer) = response.response {
                    self.servers_set(answer, ledger);
                }
            }
        }
    }

    pub(super) fn initialized(&mut self, answer: &RawValue, ledger: &mut Ledger) {
        let Ok(answer) = serde_json::from_str::<claude::Initialized<'_>>(answer.get()) else {
            ledger.notice(
                NoticeLevel::Warning,
                "initialize",
                "the agent's answer to initialize is not understood",
            );
            return;
        };
        let some = |text: &str| (!text.is_empty()).then(|| first_line(text));
        self.abilities.commands = offer::commands(&answer.commands);
        self.abilities.models = answer
            .models
            .iter()
            .map(|model| ModelInfo {
                id: model.value.to_string(),
                name: model.display_name.to_string(),
                description: some(&model.description),
            })
            .collect();
        self.offer.learn(&answer.models);
        self.refresh_efforts();
        let effort = self.offer.effort.take();
        if effort.as_deref().is_none_or(|effort| !self.is_unknown_effort(effort, ledger)) {
            self.offer.effort = effort;
        }
        // Before the first turn nothing else tells what there is to choose from.
        let abilities = Some(self.abilities.clone());
        let effort = self.offer.effort.clone();
        ledger.configured(Configured { effort, abilities, ..Configured::default() });
    }
}

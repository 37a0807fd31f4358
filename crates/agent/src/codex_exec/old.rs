//! The events of 0.42 and before.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tieline_event::{
    EndSignal, Item, ItemBody, ItemStatus, Json, NoticeLevel, Plan, PlanEntry, PlanStatus, Text,
    ToolClass, TurnStatus,
};
use tieline_wire::codex_exec::old::{Event, Invocation, Step};

use super::driver::ExecDriver;
use crate::codex::{bare_words, read_changes};
use crate::ledger::{Ledger, TurnEnd};
use crate::words::first_line;

impl ExecDriver {
    pub(super) fn old_event(&mut self, event: &Event<'_>, line: &[u8], ledger: &mut Ledger) {
        let message = || event.message.as_deref().unwrap_or_default();
        match &*event.kind {
            "session_configured" => {
                self.uses_model(event.model.as_deref(), ledger);
                if let Some(session) = event.session_id.as_deref() {
                    self.thread(session, ledger);
                }
            }
            "agent_message" => {
                let body = ItemBody::AgentMessage { text: message().into() };
                self.nameless(body, ledger);
            }
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                let text = event.text.as_deref().unwrap_or_default().into();
                self.nameless(ItemBody::Reasoning { text, signature: None }, ledger);
            }
            "token_count" => {
                // The first one of a process has no figures.
                if let Some(info) = &event.info {
                    let window = info.model_context_window;
                    self.used = Some(crate::codex::usage(info.total_token_usage, window));
                }
            }
            "plan_update" => self.steps(plan(event), ledger),
            "stream_error" => {
                ledger.notice(NoticeLevel::Warning, "api_retry", first_line(message()));
            }
            "error" => self.trouble(message(), ledger),
            "background_event" | "warning" => {
                ledger.notice(NoticeLevel::Info, "agent_warning", first_line(message()));
            }
            "task_complete" => {
                let text = event.last_agent_message.as_deref().map(str::to_owned);
                let end = match self.error.take() {
                    Some(error) => {
                        TurnEnd::failed(crate::codex::failure(&error, None), EndSignal::Wire)
                    }
                    None => TurnEnd { text, ..TurnEnd::completed(EndSignal::Wire) },
                };
                self.end(end, ledger);
            }
            "turn_aborted" => {
                let end = TurnEnd {
                    status: TurnStatus::Interrupted,
                    stop_reason: event.reason.as_deref().map(str::to_owned),
                    ..TurnEnd::completed(EndSignal::Wire)
                };
                self.end(end, ledger);
            }
            // Echoes, frames around other events, and output of which the command's end has all.
            "task_started"
            | "user_message"
            | "agent_reasoning_section_break"
            | "exec_command_output_delta"
            | "turn_diff"
            | "shutdown_complete" => {}
            _ => match (self.call(event, ledger), &event.call_id) {
                (Some((body, status)), Some(call)) => {
                    let id = self.item_id(call);
                    self.tell(call, Item { id, status, body }, ledger);
                }
                _ => ledger.unparsed(format!("unknown event {:?}", &*event.kind), line),
            },
        }
    }

    /// An item that is over and that the wire gives no id.
    fn nameless(&mut self, body: ItemBody, ledger: &mut Ledger) {
        self.error_passed(ledger);
        let name = format!("item_{}", self.n_nameless);
        self.n_nameless += 1;
        let id = self.item_id(&name);
        self.tell(&name, Item { id, status: ItemStatus::Ok, body }, ledger);
    }

    /// The begin or the end of a call.
    fn call(&mut self, event: &Event<'_>, ledger: &mut Ledger) -> Option<(ItemBody, ItemStatus)> {
        let begun = || {
            let id = self.item_id(event.call_id.as_deref()?);
            ledger.item(id.as_str()).map(|item| item.body.clone())
        };
        Some(match &*event.kind {
            "exec_command_begin" => (command(event), ItemStatus::InProgress),
            "exec_command_end" => {
                let mut body = begun().unwrap_or_else(|| command(event));
                if let ItemBody::Command { output, exit_code, .. } = &mut body {
                    *output = printed(event);
                    *exit_code = event.exit_code;
                }
                (body, if event.exit_code == Some(0) { ItemStatus::Ok } else { ItemStatus::Failed })
            }
            "patch_apply_begin" => (changes(event), ItemStatus::InProgress),
            "patch_apply_end" => {
                let body = begun().unwrap_or_else(|| changes(event));
                if event.success == Some(false) {
                    let text = first_line(event.stderr.as_deref().unwrap_or_default());
                    ledger.notice(NoticeLevel::Warning, "patch_failed", text);
                    return Some((body, ItemStatus::Failed));
                }
                (body, ItemStatus::Ok)
            }
            "mcp_tool_call_begin" => (mcp_call(event)?, ItemStatus::InProgress),
            "mcp_tool_call_end" => {
                let mut body = mcp_call(event).or_else(begun)?;
                let (result, error) = mcp_result(event);
                let failed = error.is_some() || result.is_some_and(is_error);
                if let ItemBody::ToolCall { output, .. } = &mut body {
                    *output = crate::codex::mcp_output(result, error);
                }
                (body, if failed { ItemStatus::Failed } else { ItemStatus::Ok })
            }
            "web_search_begin" => (search(event), ItemStatus::InProgress),
            "web_search_end" => (search(event), ItemStatus::Ok),
            _ => return None,
        })
    }
}

fn command(event: &Event<'_>) -> ItemBody {
    ItemBody::Command {
        command: bare_words(&event.command),
        cwd: event.cwd.as_deref().map(str::to_owned),
        description: None,
        output: Text::default(),
        exit_code: None,
        background: false,
    }
}

fn printed(event: &Event<'_>) -> Text {
    match &event.aggregated_output {
        Some(output) => (&**output).into(),
        // Before 0.24 or so the two streams come apart only.
        None => [&event.stdout, &event.stderr]
            .into_iter()
            .flatten()
            .map(|it| &**it)
            .collect::<String>()
            .into(),
    }
}

fn changes(event: &Event<'_>) -> ItemBody {
    ItemBody::FileChange { changes: event.changes.map(read_changes).unwrap_or_default() }
}

fn search(event: &Event<'_>) -> ItemBody {
    let query = event.query.as_deref().unwrap_or_default().to_owned();
    ItemBody::WebSearch { query, output: Vec::new() }
}

fn mcp_call(event: &Event<'_>) -> Option<ItemBody> {
    let call: Invocation<'_> = serde_json::from_str(event.invocation?.get()).ok()?;
    Some(ItemBody::ToolCall {
        class: ToolClass::Mcp,
        tool: call.tool.to_string(),
        server: Some(call.server.to_string()),
        title: None,
        input: call.arguments.map(Json::from_raw),
        output: Vec::new(),
    })
}

/// `{"Ok": …}` or `{"Err": …}`.
fn mcp_result<'a>(event: &Event<'a>) -> (Option<&'a RawValue>, Option<&'a RawValue>) {
    let result = event.result.map(RawValue::get).unwrap_or("{}");
    let ways: BTreeMap<&str, &RawValue> = serde_json::from_str(result).unwrap_or_default();
    (ways.get("Ok").copied(), ways.get("Err").copied())
}

fn is_error(result: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct Outcome {
        #[serde(default, alias = "isError")]
        is_error: Option<bool>,
    }
    serde_json::from_str::<Outcome>(result.get()).is_ok_and(|it| it.is_error == Some(true))
}

fn plan(event: &Event<'_>) -> Plan {
    let entry = |step: &Step| PlanEntry {
        text: step.step.clone(),
        status: match step.status.as_str() {
            "completed" => PlanStatus::Completed,
            "in_progress" => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        },
    };
    Plan {
        entries: event.plan.iter().map(entry).collect(),
        explanation: event.explanation.as_deref().map(str::to_owned),
    }
}

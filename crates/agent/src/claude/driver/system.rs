//! News about the session and its tasks.

use serde::Deserialize;
use tieline_event::{
    AgentCommand, Configured, Item, ItemBody, ItemId, ItemStatus, Mode, NoticeLevel, Origin,
};
use tieline_wire::claude;
use tieline_wire::claude::write::Control;

use super::super::{setup, tool};
use super::{Call, ClaudeDriver, names, offer, word};
use crate::ledger::{Ledger, Meta};
use crate::words::first_line;

impl ClaudeDriver {
    pub(super) fn system(&mut self, frame: &claude::System<'_>, line: &[u8], ledger: &mut Ledger) {
        match &*frame.subtype {
            "init" => self.init(frame, ledger),
            "status" => {
                if let Some(mode) = frame.permission_mode.as_deref() {
                    self.mode_changed(mode, ledger);
                }
                if frame.status.map(word).as_deref() == Some("compacting") {
                    ledger.notice(
                        NoticeLevel::Info,
                        "compacting",
                        "the agent is shortening its memory",
                    );
                }
            }
            "api_retry" => {
                let what = frame.error.map(word).unwrap_or_default();
                let status = frame.error_status.map(word).filter(|status| status != "null");
                let status = status.map(|status| format!("HTTP {status}, ")).unwrap_or_default();
                let delay = frame.retry_delay_ms.unwrap_or_default() / 1000.0;
                ledger.notice(
                    NoticeLevel::Warning,
                    "api_retry",
                    format!(
                        "the provider did not answer ({status}{what}); try {} of {} in {delay:.1} s",
                        frame.attempt.unwrap_or(1),
                        frame.max_retries.unwrap_or(1),
                    ),
                );
            }
            "commands_changed" => self.commands_changed(frame, ledger),
            "session_title_changed" => {
                if let Some(title) = frame.title.as_deref().filter(|title| !title.is_empty()) {
                    let title = Some(first_line(title));
                    ledger.configured(Configured { title, ..Configured::default() });
                }
            }
            "compact_boundary" => self.compacted(frame, ledger),
            "task_started" => {
                if let Some(task) = frame.task_id.as_deref() {
                    self.tasks.insert(task.to_owned());
                }
            }
            "background_tasks_changed" => self.tasks_changed(frame),
            "task_notification" => self.task_ended(frame, ledger),
            "permission_denied" => {
                if let Some(id) = frame.tool_use_id.as_deref() {
                    self.refused.insert(id.to_owned(), ItemStatus::Denied);
                }
            }
            "local_command_output" | "informational" | "notification" => {
                let text = frame.content.or(frame.message).map(word).unwrap_or_default();
                ledger.notice(NoticeLevel::Info, &frame.subtype, text);
            }
            "thinking_tokens"
            | "task_progress"
            | "task_updated"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "session_state_changed"
            | "ui_invalidate"
            | "elicitation_complete"
            | "files_persisted"
            | "memory_recall"
            | "per_turn_effort_changed"
            | "plugin_install"
            | "control_request_progress"
            | "vcs_state_changed" => {}
            "mirror_error"
            | "session_writes_lost"
            | "worker_shutting_down"
            | "model_refusal_fallback" => {
                ledger.notice(
                    NoticeLevel::Warning,
                    &frame.subtype,
                    frame.message.or(frame.content).map(word).unwrap_or_default(),
                );
            }
            other => ledger.unparsed(format!("unknown system frame {other:?}"), line),
        }
    }

    /// `init` comes at the start of every turn, the agent's own included.
    pub(super) fn init(&mut self, frame: &claude::System<'_>, ledger: &mut Ledger) {
        if let Some(session) = frame.session_id.as_deref() {
            ledger.set_session(session);
        }
        if self.expected_inits > 0 {
            self.expected_inits -= 1;
        } else if self.notified || ledger.current_turn().is_none() {
            self.count.begin_turn();
            ledger.begin_turn(Origin::Agent, None);
        }
        self.notified = false;
        if self.expected_inits == 0 && std::mem::take(&mut self.wants_interrupt) {
            self.call(Call::Interrupt, &Control::Interrupt, ledger);
        }
        self.offer.model_in_use = frame.model.as_deref().map(str::to_owned);
        if let Some(servers) = frame.mcp_servers {
            self.servers_told(servers, ledger);
        }
        let mut abilities = self.abilities.clone();
        abilities.tools = names(frame.tools);
        abilities.skills = names(frame.skills);
        abilities.skills.retain(|skill| offer::is_for_users(skill));
        abilities.efforts = self.offer.efforts();
        if abilities.commands.is_empty() {
            let command = |name| AgentCommand { name, description: None, hint: None };
            let names = names(frame.slash_commands).into_iter();
            let names = names.filter(|name| offer::is_for_users(name));
            abilities.commands = names.map(command).collect();
        }
        let mode = frame.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
        // What is being set is told by the answer to it.
        let sets_model = self.calls.values().any(|call| matches!(call, Call::SetModel(_)));
        let mut configured = Configured {
            agent_version: frame.claude_code_version.as_deref().map(str::to_owned),
            model: frame.model.as_deref().filter(|_| !sets_model).map(str::to_owned),
            mode: mode.map(|mode| self.same_mode(mode)),
            policy: None,
            effort: self.offer.effort.clone(),
            cwd: frame.cwd.as_deref().map(str::to_owned),
            abilities: (abilities != self.abilities).then(|| abilities.clone()),
            ..Configured::default()
        };
        self.abilities = abilities;
        if let Some(mode) = configured.mode {
            // Not every model has every mode, and nothing else says so.
            if !self.spoke && mode != self.mode {
                let text = format!("the agent begins in mode {mode}: {} was refused", self.mode);
                ledger.notice(NoticeLevel::Warning, "mode_refused", text);
            }
            self.mode = mode;
        }
        configured.mode = configured.mode.filter(|_| !self.sets_mode());
        if configured.abilities.is_some() || !self.spoke {
            ledger.configured(configured);
        }
        self.spoke = true;
    }

    /// `yolo` is `bypassPermissions` to the agent; what the user chose is kept.
    pub(super) fn same_mode(&self, told: Mode) -> Mode {
        if setup::mode_name(self.mode) == setup::mode_name(told) { self.mode } else { told }
    }

    pub(super) fn mode_changed(&mut self, mode: &str, ledger: &mut Ledger) {
        let Ok(mode) = mode.parse::<Mode>() else { return };
        let mode = self.same_mode(mode);
        if mode != self.mode {
            self.mode = mode;
            self.tell_mode(ledger);
        }
    }

    /// Tells the mode, unless another one is being set: what the agent said before it heard of that
    /// would look like a change of it.
    pub(super) fn tell_mode(&self, ledger: &mut Ledger) {
        if !self.sets_mode() {
            ledger.configured(Configured { mode: Some(self.mode), ..Configured::default() });
        }
    }

    fn sets_mode(&self) -> bool {
        self.calls.values().any(|call| matches!(call, Call::SetMode(_)))
    }

    pub(super) fn compacted(&mut self, frame: &claude::System<'_>, ledger: &mut Ledger) {
        self.position = None;
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Metadata {
            trigger: Option<String>,
            pre_tokens: Option<u64>,
        }
        let metadata: Metadata = frame
            .compact_metadata
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        self.n_requests += 1;
        let number = ledger.frame().map_or(self.n_requests, |frame| frame.0);
        let id = ItemId::new(format!("compaction{number}"));
        let body =
            ItemBody::Compaction { trigger: metadata.trigger, tokens_before: metadata.pre_tokens };
        ledger.complete_item(Meta::default(), Item { id, status: ItemStatus::Ok, body });
    }

    /// The whole list, anew.
    fn commands_changed(&mut self, frame: &claude::System<'_>, ledger: &mut Ledger) {
        let told = frame.commands.map(|raw| serde_json::from_str(raw.get()));
        let Some(Ok::<Vec<claude::SlashCommand<'_>>, _>(told)) = told else { return };
        let commands = offer::commands(&told);
        if commands != self.abilities.commands {
            self.abilities.commands = commands;
            let abilities = Some(self.abilities.clone());
            ledger.configured(Configured { abilities, ..Configured::default() });
        }
    }

    pub(super) fn tasks_changed(&mut self, frame: &claude::System<'_>) {
        #[derive(Deserialize)]
        struct Task {
            task_id: String,
        }
        if let Some(tasks) = frame.tasks
            && let Ok(tasks) = serde_json::from_str::<Vec<Task>>(tasks.get())
        {
            self.tasks = tasks.into_iter().map(|task| task.task_id).collect();
        }
    }

    pub(super) fn task_ended(&mut self, frame: &claude::System<'_>, ledger: &mut Ledger) {
        if let Some(task) = frame.task_id.as_deref() {
            self.tasks.remove(task);
        }
        self.notified = true;
        let Some(item) = frame.tool_use_id.as_deref().and_then(|id| ledger.item(id)).cloned()
        else {
            return;
        };
        if let ItemBody::Command { background: false, .. } = &item.body {
            // Its result is still to come.
            return;
        }
        let status = match frame.status.map(word).as_deref() {
            Some("completed") | None => ItemStatus::Ok,
            Some("killed" | "stopped" | "cancelled") => ItemStatus::Cancelled,
            Some(_) => ItemStatus::Failed,
        };
        let mut item = Item { status, ..item };
        let summary = frame.summary.as_deref().unwrap_or_default();
        tool::conclude(&mut item, summary, frame.output_file.as_deref());
        ledger.cancel_under(&item.id);
        ledger.complete_item(Meta::default(), item);
    }
}

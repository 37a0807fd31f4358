//! Models, efforts and MCP servers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{AgentCommand, Configured, McpTransport, NoticeLevel};
use tieline_wire::claude;
use tieline_wire::claude::write::{Control, Server};

use super::super::setup::Lifetime;
use super::{Call, ClaudeDriver, names, word};
use crate::ledger::Ledger;
use crate::servers;
use crate::words::first_line;

/// Which models there are and what is in use.
#[derive(Debug, Default)]
pub(super) struct Offer {
    /// Efforts by model: the name to pass, the model behind it, its efforts.
    models: Vec<(String, Option<String>, Vec<String>)>,
    /// The model that was asked for.
    pub(super) model: Option<String>,
    /// The model in use, as the agent tells it.
    pub(super) model_in_use: Option<String>,
    pub(super) effort: Option<String>,
}

impl Offer {
    pub(super) fn learn(&mut self, models: &[claude::Model<'_>]) {
        let known = |model: &claude::Model<'_>| {
            let resolved = model.resolved_model.as_deref().map(str::to_owned);
            (model.value.to_string(), resolved, names(model.supported_effort_levels))
        };
        self.models = models.iter().map(known).collect();
    }

    /// The efforts of the model in use.
    pub(super) fn efforts(&self) -> Vec<String> {
        let named = |name: &str| {
            let by_value = self.models.iter().find(|(value, ..)| value == name);
            let is_behind = |resolved: &Option<String>| resolved.as_deref() == Some(name);
            by_value.or_else(|| self.models.iter().find(|(_, resolved, _)| is_behind(resolved)))
        };
        let chosen = self.model_in_use.as_deref().or(self.model.as_deref());
        // What nobody knows is taken for the default.
        let model = chosen.and_then(named).or_else(|| named("default"));
        model.or(self.models.first()).map(|(_, _, efforts)| efforts.clone()).unwrap_or_default()
    }
}

impl ClaudeDriver {
    /// Efforts are those of the model in use. Says whether they changed.
    pub(super) fn refresh_efforts(&mut self) -> bool {
        let efforts = self.offer.efforts();
        let changed = efforts != self.abilities.efforts;
        self.abilities.efforts = efforts;
        changed
    }

    /// The agent takes any word for an effort and ignores those it does not know, without telling
    /// the host.
    pub(super) fn is_unknown_effort(&mut self, effort: &str, ledger: &mut Ledger) -> bool {
        let known = &self.abilities.efforts;
        if known.is_empty() || known.iter().any(|known| known == effort) {
            return false;
        }
        let text = format!(
            "the effort stays as it is: {effort} is none of {} that the model has",
            known.join(", ")
        );
        ledger.notice(NoticeLevel::Warning, "effort_refused", text);
        self.tell_effort(ledger);
        true
    }

    /// Everybody who took another one for granted is told.
    pub(super) fn tell_effort(&self, ledger: &mut Ledger) {
        if let Some(effort) = self.offer.effort.clone() {
            ledger.configured(Configured { effort: Some(effort), ..Configured::default() });
        }
    }

    /// Tells the agent the client's MCP servers. On the command line everybody could read them.
    pub(super) fn bring_servers(&mut self, ledger: &mut Ledger) {
        if self.servers.is_empty() {
            return;
        }
        let brought = std::mem::take(&mut self.servers);
        if self.lifetime == Lifetime::Turn {
            let text = "the client's MCP servers are not used: a process for each turn takes none";
            ledger.notice(NoticeLevel::Warning, "mcp_not_used", text);
            return;
        }
        let named = servers::named(&brought);
        let servers: BTreeMap<&str, Server<'_>> =
            named.iter().map(|(name, transport)| (name.as_str(), server(transport))).collect();
        self.call(Call::SetServers, &Control::McpSetServers { servers }, ledger);
        ledger.hide(servers::secrets(&brought));
    }

    pub(super) fn servers_set(&mut self, answer: &RawValue, ledger: &mut Ledger) {
        let answer: claude::ServersSet = serde_json::from_str(answer.get()).unwrap_or_default();
        for (name, why) in answer.errors {
            self.server_failed(&name, &why, ledger);
        }
    }

    /// `init` tells how each server is doing, at every turn.
    pub(super) fn servers_told(&mut self, told: &RawValue, ledger: &mut Ledger) {
        #[derive(Deserialize)]
        struct Told {
            name: String,
            #[serde(default)]
            status: String,
        }
        let told: Vec<Told> = serde_json::from_str(told.get()).unwrap_or_default();
        for Told { name, status } in told {
            match status.as_str() {
                "failed" => self.server_failed(&name, "no reason given", ledger),
                "needs-auth" => self.server_failed(&name, "it wants a login", ledger),
                "connected" => {
                    self.failed_servers.remove(&name);
                }
                _ => {}
            }
        }
    }

    fn server_failed(&mut self, name: &str, why: &str, ledger: &mut Ledger) {
        if self.failed_servers.insert(name.to_owned()) {
            let (code, text) = servers::failed(name, why);
            ledger.notice(NoticeLevel::Warning, code, text);
        }
    }
}

/// Commands that act on Claude Code's own terminal, on the login or the process behind it, or on a
/// session of its own beside ours: without that terminal they do nothing, or pull the session away
/// from under the conversation.
const TERMINAL_ONLY: &[&str] = &[
    "clear",
    "color",
    "doctor",
    "exit",
    "focus",
    "ide",
    "keybindings-help",
    "login",
    "logout",
    "reload-plugins",
    "remote-control",
    "statusline",
    "terminal-setup",
    "vim",
];

/// Whether a command makes sense to somebody without Claude Code's terminal. Names that begin with
/// two underscores are for its own machinery.
pub(super) fn is_for_users(name: &str) -> bool {
    !name.starts_with("__") && !TERMINAL_ONLY.contains(&name)
}

/// Slash commands on offer.
pub(super) fn commands(commands: &[claude::SlashCommand<'_>]) -> Vec<AgentCommand> {
    let some = |text: &str| (!text.is_empty()).then(|| first_line(text));
    let one = |command: &claude::SlashCommand<'_>| AgentCommand {
        name: command.name.to_string(),
        description: some(&command.description),
        hint: command.argument_hint.map(word).and_then(|hint| some(&hint)),
    };
    commands.iter().filter(|command| is_for_users(&command.name)).map(one).collect()
}

fn server(transport: &McpTransport) -> Server<'_> {
    match transport {
        McpTransport::Stdio { command, args, env } => Server::Stdio { command, args, env },
        McpTransport::Http { url, headers } => Server::Http { url, headers },
        McpTransport::Sse { url, headers } => Server::Sse { url, headers },
    }
}

//! Commands that the server does at once, without its model: asked by one request, told as a message.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tieline_event::{EndSignal, Item, ItemBody, ItemId, ItemStatus, TurnId, TurnStatus};
use tieline_wire::codex_app::{Cleared, Goal, GoalAnswer, ServerStatus, ServerStatuses, Skills};

use super::driver::{AppDriver, GOAL_BEGINS, GOAL_RESTS, What, protocol};
use crate::ledger::{Ledger, Meta, TurnEnd};
use crate::words::first_line;

#[cfg(test)]
mod tests;

/// How many MCP servers are told.
const MOST_SERVERS: u32 = 200;

/// The server's name for its faster service.
const FAST: &str = "fast";

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Errand {
    /// Give the thread this name.
    Rename(String),
    /// Tell the goal.
    Goal,
    /// Work until this is reached. The server begins to by itself.
    SetGoal(String),
    /// Forget the goal.
    ClearGoal,
    /// Tell the MCP servers.
    Servers,
    /// Tell the skills.
    Skills,
    /// Forget so many turns.
    Rollback(u32),
    /// Run a command of the user's own. The server begins a turn for it by itself.
    Shell(String),
    /// Answer faster, at a higher price, or not.
    Fast(bool),
}

impl Errand {
    fn request(&self, thread: &str, workspace: &str) -> (&'static str, Value) {
        match self {
            Self::Rename(name) => ("thread/name/set", json!({"threadId": thread, "name": name})),
            Self::Goal => ("thread/goal/get", json!({"threadId": thread})),
            Self::SetGoal(text) => {
                ("thread/goal/set", json!({"threadId": thread, "objective": text}))
            }
            Self::ClearGoal => ("thread/goal/clear", json!({"threadId": thread})),
            Self::Servers => (
                "mcpServerStatus/list",
                json!({"threadId": thread, "detail": "toolsAndAuthOnly", "limit": MOST_SERVERS}),
            ),
            Self::Skills => ("skills/list", json!({"cwds": [workspace]})),
            Self::Rollback(turns) => {
                ("thread/rollback", json!({"threadId": thread, "numTurns": turns}))
            }
            Self::Shell(command) => {
                ("thread/shellCommand", json!({"threadId": thread, "command": command}))
            }
            Self::Fast(is_on) => {
                ("thread/settings/update", json!({"threadId": thread, "serviceTier": tier(*is_on)}))
            }
        }
    }

    /// What the server's answer says, in words; none where it says nothing.
    fn report(&self, answer: &str) -> Result<String, serde_json::Error> {
        Ok(match self {
            Self::Rename(name) => format!("The conversation is called {name}."),
            Self::Goal => match read::<GoalAnswer>(answer)?.goal {
                Some(goal) => told(&goal),
                None => "There is no goal.".to_owned(),
            },
            Self::SetGoal(text) => match read::<GoalAnswer>(answer)?.goal {
                Some(goal) => told(&goal),
                None => format!("The goal is: {text}"),
            },
            Self::ClearGoal => match read::<Cleared>(answer)?.cleared {
                true => "The goal is forgotten.".to_owned(),
                false => "There was no goal.".to_owned(),
            },
            Self::Servers => servers(&read(answer)?),
            Self::Skills => skills(read(answer)?),
            Self::Rollback(_) | Self::Shell(_) => String::new(),
            Self::Fast(true) => "Fast mode is on.".to_owned(),
            Self::Fast(false) => "Fast mode is off.".to_owned(),
        })
    }
}

/// What a thread's service is called; the server's own choice has no name.
fn tier(is_fast: bool) -> Option<&'static str> {
    is_fast.then_some(FAST)
}

impl AppDriver {
    /// Does it in a turn of its own, which the server knows nothing of.
    pub(super) fn run(&mut self, errand: Errand, turn: TurnId, ledger: &mut Ledger) {
        self.nameless.retain(|nameless| *nameless != turn);
        self.errand = Some(turn.clone());
        let thread = self.thread.clone().unwrap_or_default();
        let (method, params) = errand.request(&thread, &self.workspace);
        self.call(What::Errand(turn, errand), method, params, ledger);
    }

    /// It is done.
    pub(super) fn was_run(
        &mut self,
        errand: &Errand,
        turn: TurnId,
        (method, answer): (&str, &str),
        ledger: &mut Ledger,
    ) {
        self.errand.take_if(|running| *running == turn);
        if let Errand::Fast(is_on) = errand {
            self.tier = tier(*is_on);
        }
        if !ledger.is_open(&turn) {
            return;
        }
        let text = match errand.report(answer) {
            Ok(text) => text,
            Err(error) => return self.fail(&turn, protocol(method, &error), ledger),
        };
        if !text.is_empty() {
            let id = ItemId::new(format!("{turn}:answer"));
            let body = ItemBody::AgentMessage { text: text.into() };
            ledger.complete_item(Meta::default(), Item { id, status: ItemStatus::Ok, body });
        }
        if let (Errand::Rename(_), Some(thread)) = (errand, &self.thread) {
            // A thread with a name is found again, even one that has had no turn.
            ledger.set_session(thread);
        }
        if let Errand::SetGoal(_) | Errand::Shell(_) = errand {
            // The server begins a turn for it, which is this one. Where it does not, we are woken.
            self.nameless.push_back(turn.clone());
            self.goal = Some(turn);
            ledger.wake_after(GOAL_RESTS, GOAL_BEGINS);
            return;
        }
        self.finish(&turn, TurnStatus::Completed, EndSignal::Wire, ledger);
    }

    /// Nobody began to work at the goal.
    pub(super) fn goal_rests(&mut self, ledger: &mut Ledger) {
        let Some(turn) = self.goal.take() else { return };
        if self.nameless.contains(&turn) {
            self.nameless.retain(|nameless| *nameless != turn);
            self.finish(&turn, TurnStatus::Completed, EndSignal::Wire, ledger);
        }
    }

    /// Nobody waits for it any more; the server may still do it.
    pub(super) fn abandon_errand(&mut self, ledger: &mut Ledger) -> bool {
        let Some(turn) = self.errand.take() else { return false };
        self.finish(&turn, TurnStatus::Interrupted, EndSignal::Tieline, ledger);
        true
    }

    fn finish(
        &mut self,
        turn: &TurnId,
        status: TurnStatus,
        signal: EndSignal,
        ledger: &mut Ledger,
    ) {
        self.drop_unsteered(ledger);
        ledger.end_turn(turn, TurnEnd { status, ..TurnEnd::completed(signal) });
    }
}

fn read<T: DeserializeOwned>(answer: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(answer)
}

fn told(goal: &Goal) -> String {
    let Goal { objective, status, tokens_used, time_used_seconds } = goal;
    format!(
        "The goal is {}: {objective}\n\n{tokens_used} tokens and {time_used_seconds} seconds were \
         spent on it.",
        words(status),
    )
}

/// `usageLimited` as two words.
fn words(name: &str) -> String {
    let word = |letter: char| match letter.is_ascii_uppercase() {
        true => format!(" {}", letter.to_ascii_lowercase()),
        false => letter.to_string(),
    };
    name.chars().map(word).collect()
}

fn servers(told: &ServerStatuses) -> String {
    if told.data.is_empty() {
        return "There are no MCP servers.".to_owned();
    }
    let mut lines: Vec<String> = told.data.iter().map(server).collect();
    if told.next_cursor.is_some() {
        lines.push(format!("- and others after these {MOST_SERVERS}"));
    }
    lines.join("\n")
}

fn server(server: &ServerStatus) -> String {
    let ServerStatus { name, runtime_status, auth_status, tools, tools_error } = server;
    let state = runtime_status.as_deref().map(words);
    let login = (auth_status.as_deref() == Some("notLoggedIn")).then(|| "not logged in".to_owned());
    let tools: Vec<&str> = tools.keys().map(String::as_str).collect();
    let offers = match (tools_error, tools.is_empty()) {
        (Some(error), _) => first_line(error),
        (None, true) => "no tools".to_owned(),
        (None, false) => format!("tools: {}", tools.join(", ")),
    };
    let parts: Vec<String> = state.into_iter().chain(login).chain([offers]).collect();
    format!("- {name}: {}", parts.join("; "))
}

fn skills(told: Skills) -> String {
    let mut skills: Vec<_> = told.data.into_iter().flat_map(|it| it.skills).collect();
    skills.sort_by(|one, other| one.name.cmp(&other.name));
    let lines: Vec<String> = skills
        .into_iter()
        .map(|skill| {
            let off = if skill.enabled == Some(false) { " (switched off)" } else { "" };
            let what = first_line(&skill.description);
            format!("- ${}{off}: {what} ({})", skill.name, skill.path)
        })
        .collect();
    match lines.is_empty() {
        true => "There are no skills.".to_owned(),
        false => lines.join("\n"),
    }
}

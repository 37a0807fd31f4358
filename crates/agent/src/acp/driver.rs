//! The core: lines in, ledger entries and lines out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::RawValue;
use tieline_event::{
    Abilities, Answer, Choice, Configured, EndSignal, Extras, Failure, FailureCode, ItemStatus,
    Mode, NoticeLevel, Origin, Policy, Prompt, RequestId, TurnId, TurnStatus, Usage,
};
use tieline_wire::acp::read::{
    AgentCapabilities, ConfigOptions, PromptCapabilities, Prompted, Steered,
};
use tieline_wire::jsonrpc::write::{self, Form};
use tieline_wire::jsonrpc::{self, Calls, ErrorObject, Id, Message};

use super::ask::{Asked, Grants};
use super::failure;
use super::offer::{Offer, Setting};
use super::open::{GREETING, OPENING, Told, UNANSWERED, UNOPENED, UNSET};
use super::serve::Served;
use super::speech::Speech;
use super::terminal::Terminal;
use super::tool::Tool;
use crate::alarm::Alarm;
use crate::chore::{ChoreId, ChoreNews, Roots};
use crate::driver::{Driver, ExitInfo, Launch, Refused};
use crate::ledger::{Ledger, TurnEnd};

/// Speaks with one session of an agent.
#[derive(Debug)]
pub struct AcpDriver {
    /// What users call the agent.
    pub(super) name: String,
    pub(super) workspace: PathBuf,
    /// Where files are read and written and commands are run.
    pub(super) roots: Roots,
    pub(super) extras: Extras,
    pub(super) mode: Mode,
    /// The agent is in a mode that means what ours means.
    pub(super) is_exact: bool,
    /// Somebody let the agent change its mode.
    pub(super) may_relax: Option<Mode>,
    /// What the user chose.
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) resume: Option<(String, bool)>,
    calls: Calls<Call>,
    pub(super) phase: Phase,
    pub(super) session: Option<String>,
    pub(super) can: AgentCapabilities,
    pub(super) steers: bool,
    /// The agent's ways to log in.
    pub(super) log_in: Vec<String>,
    pub(super) version: Option<String>,
    pub(super) offer: Offer,
    pub(super) abilities: Abilities,
    pub(super) told: Option<Told>,
    /// What is being set, in the order it was sent; a turn waits for it.
    pub(super) setting: Vec<Setting>,
    /// What was said before the session was ready.
    pub(super) waiting: VecDeque<(TurnId, Prompt)>,
    /// The turn that the agent works on, and what was said in it.
    pub(super) running: Option<(TurnId, String)>,
    pub(super) is_interrupted: bool,
    /// The agent tells what happened before, which everybody knows already.
    pub(super) is_replay: bool,
    pub(super) speech: Speech,
    pub(super) tools: HashMap<String, Tool>,
    /// Calls that are over, in this turn.
    pub(super) done: HashSet<String>,
    /// Calls that a person or a policy said no to.
    pub(super) refused: HashMap<String, ItemStatus>,
    pub(super) asked: HashMap<RequestId, Asked>,
    pub(super) grants: Grants,
    pub(super) served: HashMap<ChoreId, Served>,
    pub(super) terminals: HashMap<String, Terminal>,
    pub(super) n_terminals: u64,
    pub(super) used: Usage,
    cost_before: f64,
    spoke: bool,
}

/// How far the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was said, or the greeting failed.
    New,
    Greeting,
    /// The agent is known and has no session for us.
    Greeted,
    Opening,
    Open,
}

#[derive(Debug)]
struct Call {
    what: What,
    method: &'static str,
}

#[derive(Debug)]
pub(super) enum What {
    Initialize,
    Open,
    Prompt(TurnId),
    Set(Setting, About),
    Steer(Prompt),
}

/// What is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Mode,
    Model,
    Effort,
}

impl AcpDriver {
    /// A driver for a conversation with the agent of this name.
    pub fn new(launch: &Launch<'_>, name: &str) -> Self {
        let workspace = launch.workspace.to_owned();
        let directories = launch.extras.directories.iter().cloned();
        let roots = std::iter::once(workspace.clone()).chain(directories).collect();
        Self {
            name: name.strip_prefix("acp:").unwrap_or(name).to_owned(),
            workspace,
            roots,
            extras: launch.extras.clone(),
            mode: launch.mode,
            is_exact: false,
            may_relax: None,
            model: launch.model.map(str::to_owned),
            effort: launch.effort.map(str::to_owned),
            resume: launch.resume.map(|resume| (resume.session.to_owned(), resume.fork)),
            calls: Calls::default(),
            phase: Phase::New,
            session: None,
            can: AgentCapabilities::default(),
            steers: false,
            log_in: Vec::new(),
            version: None,
            offer: Offer::default(),
            abilities: Abilities {
                modes: Mode::COMMON.to_vec(),
                questions: true,
                approvals: true,
                streaming: true,
                ..Abilities::default()
            },
            told: None,
            setting: Vec::new(),
            waiting: VecDeque::new(),
            running: None,
            is_interrupted: false,
            is_replay: false,
            speech: Speech::default(),
            tools: HashMap::new(),
            done: HashSet::new(),
            refused: HashMap::new(),
            asked: HashMap::new(),
            grants: Grants::default(),
            served: HashMap::new(),
            terminals: HashMap::new(),
            n_terminals: 0,
            used: Usage::default(),
            cost_before: 0.0,
            spoke: false,
        }
    }

    /// The same directories under other names: an agent may name them by where links lead.
    #[must_use]
    pub fn also_known_as(mut self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut all = self.roots.to_vec();
        for root in roots {
            if !all.contains(&root) {
                all.push(root);
            }
        }
        self.roots = all.into();
        self
    }

    pub(super) fn call(
        &mut self,
        what: What,
        method: &'static str,
        params: &impl Serialize,
        ledger: &mut Ledger,
    ) {
        let id = self.calls.open(Call { what, method });
        ledger.write(&write::request(Form::Versioned, &Id::Number(id), method, params));
    }

    pub(super) fn prompt_can(&self) -> PromptCapabilities {
        self.can.prompt_capabilities.unwrap_or_default()
    }

    fn answered(&mut self, id: &Id, result: &RawValue, line: &[u8], ledger: &mut Ledger) {
        // A late or repeated answer is nobody's.
        let Some(Call { what, method }) = self.calls.close(id) else {
            tracing::debug!(%id, "late or unknown answer");
            return;
        };
        let text = result.get();
        match what {
            What::Initialize => match serde_json::from_str(text) {
                Ok(hello) => self.initialized(hello, ledger),
                Err(error) => self.cannot_open(Phase::New, protocol(method, &error), ledger),
            },
            What::Open => match serde_json::from_str(text) {
                Ok(opened) => self.opened(opened, ledger),
                Err(error) => self.cannot_open(Phase::Greeted, protocol(method, &error), ledger),
            },
            What::Prompt(turn) => match serde_json::from_str(text) {
                Ok(prompted) => self.prompted(&turn, &prompted, ledger),
                Err(error) => self.fail(&turn, protocol(method, &error), ledger),
            },
            What::Set(setting, _) => {
                self.offer.note(&setting);
                // Not every way to set something tells the whole list again.
                if let Ok(ConfigOptions { config_options: Some(options) }) =
                    serde_json::from_str(text)
                {
                    self.offer.replace_options(options);
                }
                self.setting_done(&setting, ledger);
            }
            What::Steer(prompt) => match serde_json::from_str::<Steered>(text) {
                Ok(steered) => self.steered(&steered.outcome, &prompt, ledger),
                Err(error) => ledger.unparsed(error.to_string(), line),
            },
        }
    }

    fn was_refused(&mut self, id: &Id, error: &ErrorObject, ledger: &mut Ledger) {
        let Some(call) = self.calls.close(id) else {
            tracing::debug!(%id, "late or unknown refusal");
            return;
        };
        let refusal = failure::refusal(&self.name, error, &self.log_in);
        match call.what {
            What::Initialize => self.cannot_open(Phase::New, refusal, ledger),
            What::Open => {
                let is_gone = self.resume.is_some() && failure::says_unknown_session(error);
                let refusal = match is_gone && error.code != failure::AUTH_REQUIRED {
                    true => failure::session_unknown(&self.name).detail(&error.message),
                    false => refusal,
                };
                self.cannot_open(Phase::Greeted, refusal, ledger);
            }
            What::Prompt(turn) if self.is_interrupted => {
                // It should have said `cancelled`; that it stopped is what counts.
                self.speech.break_off();
                self.over(ledger);
                let end = TurnEnd {
                    status: TurnStatus::Interrupted,
                    stop_reason: Some(error.message.clone()),
                    ..TurnEnd::completed(EndSignal::Wire)
                };
                ledger.end_turn(&turn, end);
            }
            What::Prompt(turn) => self.fail(&turn, refusal, ledger),
            What::Set(setting, about) => {
                let (code, what) = match about {
                    About::Mode => ("mode_refused", "mode"),
                    About::Model => ("model_refused", "model"),
                    About::Effort => ("effort_refused", "effort"),
                };
                // Whatever it is in now, it is not what we wanted.
                self.is_exact &= about != About::Mode;
                let text = format!("{} does not take the {what}: {}", self.name, refusal.message);
                ledger.notice(NoticeLevel::Warning, code, text);
                self.setting_done(&setting, ledger);
            }
            What::Steer(prompt) => self.unheard(&prompt, &refusal.message, ledger),
        }
    }

    pub(super) fn begin(&mut self, turn: TurnId, prompt: &Prompt, ledger: &mut Ledger) {
        self.cost_before = self.used.cost_usd.unwrap_or_default();
        self.is_replay = false;
        self.running = Some((turn.clone(), text_of(prompt)));
        self.write_prompt(turn, prompt, ledger);
    }

    /// The agent is not at work any more.
    fn over(&mut self, ledger: &mut Ledger) {
        self.finish_echo(ledger);
        self.speech.hush(ledger);
        self.finish_refused(ledger);
        self.running = None;
        self.may_relax = None;
        self.tools.clear();
        self.done.clear();
        self.refused.clear();
        self.withdraw_all("the turn ended", ledger);
    }

    fn fail(&mut self, turn: &TurnId, failure: Failure, ledger: &mut Ledger) {
        self.over(ledger);
        ledger.end_turn(turn, TurnEnd::failed(failure, EndSignal::Wire));
    }

    fn prompted(&mut self, turn: &TurnId, prompted: &Prompted, ledger: &mut Ledger) {
        if prompted.stop_reason == "cancelled" {
            self.speech.break_off();
        }
        self.over(ledger);
        self.keep_session(ledger);
        let tokens = prompted.usage.unwrap_or_default();
        let usage = Usage {
            input_tokens: tokens.input_tokens,
            cached_input_tokens: tokens.cached_read_tokens.unwrap_or_default(),
            cache_write_tokens: tokens.cached_write_tokens.unwrap_or_default(),
            output_tokens: tokens.output_tokens,
            reasoning_tokens: tokens.thought_tokens.unwrap_or_default(),
            cost_usd: self.used.cost_usd.map(|cost| (cost - self.cost_before).max(0.0)),
            ..self.used.clone()
        };
        let failure = failure::of_stop_reason(&self.name, &prompted.stop_reason);
        let status = match (&failure, prompted.stop_reason.as_str()) {
            (_, "cancelled") => TurnStatus::Interrupted,
            (Some(_), _) => TurnStatus::Failed,
            (None, _) => TurnStatus::Completed,
        };
        let end = TurnEnd {
            status,
            error: failure,
            stop_reason: Some(prompted.stop_reason.clone()),
            usage: Some(usage).filter(|usage| *usage != Usage::default()),
            ..TurnEnd::completed(EndSignal::Wire)
        };
        ledger.end_turn(turn, end);
    }

    /// Only a session that has had a turn is sure to be found again.
    pub(super) fn keep_session(&mut self, ledger: &mut Ledger) {
        if let Some(session) = &self.session {
            ledger.set_session(session);
        }
    }

    fn steered(&mut self, outcome: &str, prompt: &Prompt, ledger: &mut Ledger) {
        match outcome {
            "promptRequired" => self.unheard(prompt, "the turn was over", ledger),
            "failed" => self.unheard(prompt, "the agent could not take it", ledger),
            _ => {}
        }
    }

    /// A message came too late for its turn: it begins one of its own, unless the user had stopped
    /// that turn.
    fn unheard(&mut self, prompt: &Prompt, why: &str, ledger: &mut Ledger) {
        if ledger.current_turn().is_some() || self.is_interrupted {
            let text = format!("a message was not taken into the turn: {why}");
            ledger.notice(NoticeLevel::Error, "steer_refused", text);
            return;
        }
        let turn = ledger.begin_turn(prompt.origin, None);
        self.begin(turn, prompt, ledger);
    }
}

impl Driver for AcpDriver {
    fn started(&mut self, ledger: &mut Ledger) {
        self.greet(ledger);
    }

    fn line(&mut self, line: &[u8], ledger: &mut Ledger) {
        let message = jsonrpc::classify(line);
        self.spoke |= !matches!(message, Message::Garbage { .. });
        match message {
            Message::Notification { method, params } => self.news(&method, params, line, ledger),
            Message::Request { id, method, params } => self.request(id, &method, params, ledger),
            Message::Response { id, result } => self.answered(&id, result, line, ledger),
            Message::Error { id: Some(id), error } => self.was_refused(&id, &error, ledger),
            Message::Error { id: None, error } => {
                ledger.notice(NoticeLevel::Warning, "protocol", error.message);
            }
            Message::Garbage { reason } => ledger.unparsed(reason, line),
        }
    }

    fn start_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        let Some(turn) = ledger.current_turn().cloned() else { return };
        self.is_interrupted = false;
        self.speech.hush(ledger);
        if self.phase == Phase::Open && self.setting.is_empty() && self.running.is_none() {
            return self.begin(turn, prompt, ledger);
        }
        self.waiting.push_back((turn, prompt.clone()));
        // What failed before is tried again; what is under way goes on.
        match self.phase {
            Phase::New => self.greet(ledger),
            Phase::Greeted => self.open(ledger),
            Phase::Greeting | Phase::Opening | Phase::Open => {}
        }
    }

    fn steer(&mut self, prompt: &Prompt, ledger: &mut Ledger) -> Result<(), Refused> {
        if !self.steers || self.running.is_none() {
            return Err(Refused(format!(
                "{} takes no message during a turn; --queue makes it the next one",
                self.name
            )));
        }
        if let Some((_, said)) = &mut self.running {
            said.push('\n');
            said.push_str(&text_of(prompt));
        }
        self.write_steering(prompt, ledger);
        Ok(())
    }

    fn interrupt(&mut self, ledger: &mut Ledger) -> bool {
        self.is_interrupted = true;
        for (turn, _) in std::mem::take(&mut self.waiting) {
            // Nothing was said to the model yet.
            let end = TurnEnd::completed(EndSignal::Tieline);
            ledger.end_turn(&turn, TurnEnd { status: TurnStatus::Interrupted, ..end });
        }
        if self.running.is_some() {
            self.write_cancel(ledger);
        }
        self.withdraw_all("the turn was interrupted", ledger);
        true
    }

    fn answer(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        by: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        self.answer_request(request, answer, None, by, ledger)
    }

    fn choose(
        &mut self,
        request: &RequestId,
        choice: &Choice,
        by: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        self.answer_request(request, &choice.kind.answer(), Some(&choice.id), by, ledger)
    }

    fn chore_news(&mut self, chore: ChoreId, news: ChoreNews, ledger: &mut Ledger) {
        self.served(chore, news, ledger);
    }

    fn set_mode(&mut self, mode: Mode, policy: Option<Policy>, ledger: &mut Ledger) -> bool {
        if Policy::beyond(mode, policy).is_some() {
            // There is none; whoever starts it says so.
            return false;
        }
        self.mode = mode;
        if self.phase == Phase::Open {
            self.put_in_mode(ledger);
        }
        ledger.configured(Configured { mode: Some(mode), ..Configured::default() });
        true
    }

    fn set_model(&mut self, model: Option<&str>, ledger: &mut Ledger) -> bool {
        // The way back to the agent's own choice leads through a new session handle.
        let Some(model) = model else { return false };
        self.model = Some(model.to_owned());
        if self.phase == Phase::Open {
            self.put(self.offer.for_model(model), About::Model, model, ledger);
        }
        true
    }

    fn set_effort(&mut self, effort: Option<&str>, ledger: &mut Ledger) -> bool {
        let Some(effort) = effort else { return false };
        self.effort = Some(effort.to_owned());
        if self.phase == Phase::Open {
            self.put(self.offer.for_effort(effort), About::Effort, effort, ledger);
        }
        true
    }

    fn wake(&mut self, alarm: Alarm, ledger: &mut Ledger) {
        let (asked, limit) = match (alarm, self.phase) {
            (UNANSWERED, Phase::Greeting) => ("answer the greeting", GREETING),
            (UNOPENED, Phase::Opening) => ("open a session", OPENING),
            (UNSET, Phase::Open) if !self.setting.is_empty() => {
                let text = format!("{} does not answer what was set; it goes on", self.name);
                ledger.notice(NoticeLevel::Warning, "setting_ignored", text);
                self.setting.clear();
                self.is_exact = false;
                return self.ready(ledger);
            }
            _ => return,
        };
        let failure = Failure::new(
            FailureCode::AgentCannotStart,
            format!("{} did not {asked} within {} seconds", self.name, limit.as_secs()),
        )
        .hint("does this program speak ACP with these arguments? see `tieline doctor`");
        self.cannot_open(Phase::New, failure, ledger);
        ledger.stop_agent();
    }

    fn explain_exit(&self, exit: &ExitInfo) -> Failure {
        failure::of_exit(&self.name, exit, self.spoke)
    }
}

/// The text of a prompt, to know it again.
fn text_of(prompt: &Prompt) -> String {
    let texts = prompt.content.iter().filter_map(|piece| piece.as_text());
    texts.map(tieline_event::Text::preview).collect()
}

fn protocol(method: &str, error: &serde_json::Error) -> Failure {
    Failure::new(
        FailureCode::Protocol,
        format!("the answer to {method} is not understood: {error}"),
    )
    .hint("update the agent, or tieline; `tieline export KEY --format raw` has the line")
}

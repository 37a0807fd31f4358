//! How the connection begins: greeting, session, settings, and what is told about them.

use std::time::Duration;

use tieline_event::{Abilities, Configured, EndSignal, Failure, FailureCode, Mode, NoticeLevel};
use tieline_wire::acp::read::{Initialized, Opened};

use super::driver::{About, AcpDriver, Phase};
use super::mode;
use super::offer::{Offer, Setting};
use crate::alarm::Alarm;
use crate::ledger::{Ledger, TurnEnd};

/// How long an agent has to answer the greeting.
pub(super) const GREETING: Duration = Duration::from_secs(30);

/// How long it has to open a session; some start every MCP server first.
pub(super) const OPENING: Duration = Duration::from_secs(180);

/// It has not answered the greeting in time.
pub(super) const UNANSWERED: Alarm = Alarm::new("greeting");

/// It has not opened a session in time.
pub(super) const UNOPENED: Alarm = Alarm::new("opening");

/// It has not answered what was set in time.
pub(super) const UNSET: Alarm = Alarm::new("setting");

/// The version of the protocol we speak.
const VERSION: i64 = 1;

/// What everybody knows about the agent.
#[derive(Debug, PartialEq)]
pub(super) struct Told {
    abilities: Abilities,
    model: Option<String>,
    effort: Option<String>,
}

impl AcpDriver {
    pub(super) fn greet(&mut self, ledger: &mut Ledger) {
        self.phase = Phase::Greeting;
        self.say_hello(ledger);
        ledger.wake_after(UNANSWERED, GREETING);
    }

    pub(super) fn open(&mut self, ledger: &mut Ledger) {
        self.phase = Phase::Opening;
        match self.ask_for_session(ledger) {
            Ok(()) => ledger.wake_after(UNOPENED, OPENING),
            Err(failure) => self.cannot_open(Phase::Greeted, failure, ledger),
        }
    }

    pub(super) fn initialized(&mut self, hello: Initialized, ledger: &mut Ledger) {
        ledger.cancel_alarm(UNANSWERED);
        if hello.protocol_version != Some(VERSION) {
            let spoken = hello.protocol_version.map_or("none".to_owned(), |it| it.to_string());
            let failure = Failure::new(
                FailureCode::Protocol,
                format!("{} speaks version {spoken} of the protocol, not {VERSION}", self.name),
            )
            .hint("update the agent, or tieline");
            return self.cannot_open(Phase::New, failure, ledger);
        }
        self.version = hello.agent_info.and_then(|info| info.version);
        self.can = hello.agent_capabilities.unwrap_or_default();
        self.steers =
            hello.meta.and_then(|meta| meta.steering).is_some_and(|steering| steering.supported);
        let methods = hello.auth_methods.unwrap_or_default().into_iter();
        self.log_in = methods.map(|it| if it.name.is_empty() { it.id } else { it.name }).collect();
        self.abilities.images = self.prompt_can().image;
        self.abilities.steering = self.steers;
        self.abilities.fork = self.can.session_capabilities.unwrap_or_default().fork;
        self.open(ledger);
    }

    pub(super) fn opened(&mut self, mut opened: Opened, ledger: &mut Ledger) {
        let resumed = self.resume.as_ref().map(|(session, _)| session.clone());
        let Some(session) = opened.session_id.take().or(resumed) else {
            let failure = Failure::new(
                FailureCode::Protocol,
                format!("{} opened a session without an id", self.name),
            );
            return self.cannot_open(Phase::Greeted, failure, ledger);
        };
        self.session = Some(session);
        self.phase = Phase::Open;
        ledger.cancel_alarm(UNOPENED);
        self.offer = Offer::of(opened);
        self.put_in_mode(ledger);
        if let Some(model) = self.model.clone() {
            self.put(self.offer.for_model(&model), About::Model, &model, ledger);
        }
        if let Some(effort) = self.effort.clone() {
            self.put(self.offer.for_effort(&effort), About::Effort, &effort, ledger);
        }
        if self.setting.is_empty() {
            self.ready(ledger);
        }
    }

    /// Sets something, or says that it cannot be set.
    pub(super) fn put(
        &mut self,
        setting: Option<Setting>,
        about: About,
        value: &str,
        ledger: &mut Ledger,
    ) {
        let Some(setting) = setting else {
            let what = if about == About::Model { "model" } else { "effort" };
            let text = format!("{} offers no choice of {what}; {value:?} is not set", self.name);
            return ledger.notice(NoticeLevel::Warning, "not_offered", text);
        };
        self.set(setting, about, ledger);
    }

    pub(super) fn put_in_mode(&mut self, ledger: &mut Ledger) {
        let (settings, is_exact) = self.offer.for_mode(self.mode);
        self.is_exact = is_exact;
        if self.mode == Mode::Plan && !is_exact {
            let text = format!(
                "{} has no mode for planning: what it asks for is refused, what it does by itself is not \
                 held back",
                self.name
            );
            ledger.notice(NoticeLevel::Warning, "mode_not_offered", text);
        }
        for setting in settings {
            self.set(setting, About::Mode, ledger);
        }
    }

    fn set(&mut self, setting: Setting, about: About, ledger: &mut Ledger) {
        // What is on its way counts for more than what the agent is in still.
        let is_set = match self.setting.iter().rfind(|it| it.is_about_same(&setting)) {
            Some(last) => *last == setting,
            None => self.offer.is_set(&setting),
        };
        if is_set {
            return;
        }
        self.setting.push(setting.clone());
        self.write_setting(setting, about, ledger);
        ledger.wake_after(UNSET, GREETING);
    }

    pub(super) fn setting_done(&mut self, setting: &Setting, ledger: &mut Ledger) {
        if let Some(at) = self.setting.iter().position(|it| it == setting) {
            self.setting.remove(at);
        }
        if self.setting.is_empty() {
            ledger.cancel_alarm(UNSET);
            self.ready(ledger);
        }
    }

    /// The session is as it is to be: what waited for it goes on.
    pub(super) fn ready(&mut self, ledger: &mut Ledger) {
        self.tell(ledger);
        if self.running.is_none()
            && let Some((turn, prompt)) = self.waiting.pop_front()
        {
            self.begin(turn, &prompt, ledger);
        }
    }

    /// What the agent is and can do, if that changed.
    pub(super) fn tell(&mut self, ledger: &mut Ledger) {
        if self.phase != Phase::Open || !self.setting.is_empty() {
            return;
        }
        // What judges its own deeds has a mode of its own for it.
        let (_, has_auto) = self.offer.for_mode(Mode::Auto);
        let is_offered = |mode: &Mode| *mode != Mode::Auto || has_auto;
        self.abilities.modes = Mode::ALL.into_iter().filter(is_offered).collect();
        self.abilities.models = self.offer.models();
        self.abilities.efforts = self.offer.efforts();
        let now = Told {
            abilities: self.abilities.clone(),
            model: self.offer.model(),
            effort: self.offer.effort(),
        };
        let before = self.told.as_ref();
        if before == Some(&now) {
            return;
        }
        let mut news = Configured {
            abilities: Some(now.abilities.clone())
                .filter(|it| before.map(|before| &before.abilities) != Some(it)),
            model: now
                .model
                .clone()
                .filter(|it| before.and_then(|before| before.model.as_ref()) != Some(it)),
            effort: now
                .effort
                .clone()
                .filter(|it| before.and_then(|before| before.effort.as_ref()) != Some(it)),
            ..Configured::default()
        };
        if before.is_none() {
            news.agent_version.clone_from(&self.version);
            news.mode = Some(self.mode);
            news.cwd = Some(self.workspace.display().to_string());
        }
        self.told = Some(now);
        ledger.configured(news);
    }

    /// The agent's mode changed by its own doing, or as somebody allowed.
    pub(super) fn mode_changed(&mut self, ledger: &mut Ledger) {
        if !self.setting.is_empty() {
            // The echo of what we are setting.
            return;
        }
        let Some(id) = self.offer.current_mode().map(str::to_owned) else { return };
        let (wanted, is_exact) = self.offer.for_mode(self.mode);
        if wanted.iter().all(|setting| self.offer.is_set(setting)) {
            self.is_exact = is_exact;
            return;
        }
        let meant = mode::meaning(&id);
        match meant {
            Some(mode) if self.may_be_in(mode) => {
                (self.mode, self.is_exact) = (mode, true);
                ledger.configured(Configured { mode: Some(mode), ..Configured::default() });
            }
            _ => {
                // What nobody allowed changes nothing about what we do for the agent.
                self.is_exact = false;
                let text = format!("{} says its mode is {id:?} now", self.name);
                ledger.notice(NoticeLevel::Warning, "mode_changed", text);
            }
        }
    }

    /// Whether the agent may be in a mode that it says it is in: one that is more careful than ours,
    /// or one that the user said yes to.
    fn may_be_in(&self, mode: Mode) -> bool {
        let is_left = |leave: Mode| mode == leave || mode::is_more_careful(mode, leave);
        mode::is_more_careful(mode, self.mode) || self.may_relax.is_some_and(is_left)
    }

    /// There is no session: what waited for it fails, and the next turn tries again.
    pub(super) fn cannot_open(&mut self, phase: Phase, failure: Failure, ledger: &mut Ledger) {
        self.phase = phase;
        if self.waiting.is_empty() {
            // Nobody waits for it yet, and still somebody may want to know.
            ledger.notice(NoticeLevel::Warning, "cannot_open", failure.to_string());
        }
        for (turn, _) in std::mem::take(&mut self.waiting) {
            ledger.end_turn(&turn, TurnEnd::failed(failure.clone(), EndSignal::Wire));
        }
    }
}

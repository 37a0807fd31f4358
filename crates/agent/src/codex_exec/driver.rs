//! The core: lines in, ledger entries out.

use tieline_event::{
    Abilities, Answer, Configured, Content, EndSignal, Failure, FailureCode, Item, ItemId,
    ItemStatus, Kind, Mode, Native, NoticeLevel, Origin, Plan, Policy, Prompt, RequestId, TurnId,
    Usage,
};
use tieline_wire::codex_exec::{self, Body, Frame, Phase};

use super::setup::{self, Dialect};
use super::{item, usage};
use crate::codex::{self, Version};
use crate::driver::{Driver, ExitInfo, Launch, Refused};
use crate::ledger::{Ledger, Meta, TurnEnd};
use crate::words::{first_line, plain};

/// With what the process was started.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Which version it is.
    pub version: Version,
    /// How much it may do.
    pub mode: Mode,
    /// What goes before the mode.
    pub policy: Option<Policy>,
    /// Which model, if not its default.
    pub model: Option<String>,
    /// Which effort, if not its default.
    pub effort: Option<String>,
    /// What of the client's extras is left out: a stable name and a sentence for each.
    pub left_out: Vec<(&'static str, String)>,
    /// How many pictures it was given as files.
    pub n_pictures: usize,
    /// The native session it goes on with.
    pub session: Option<String>,
    /// It branches off from that session.
    pub fork: bool,
}

impl Setup {
    /// What a launch means.
    pub fn of(version: Version, launch: &Launch<'_>) -> Self {
        Self {
            version,
            mode: launch.mode,
            policy: launch.policy,
            model: launch.model.map(str::to_owned),
            effort: launch.effort.map(str::to_owned),
            left_out: setup::left_out(version, launch),
            n_pictures: launch.pictures.len(),
            session: launch.resume.map(|resume| resume.session.to_owned()),
            fork: launch.resume.is_some_and(|resume| resume.fork),
        }
    }
}

/// Reads one `codex exec` process, which is one turn.
#[derive(Debug)]
pub struct ExecDriver {
    pub(super) setup: Setup,
    dialect: Dialect,
    /// The turn, also when it is over. Items are numbered from zero in every process, so their ids
    /// begin with it.
    turn: Option<TurnId>,
    /// It printed something we know.
    spoke: bool,
    /// It told something of its work.
    pub(super) works: bool,
    /// It goes on with another session than it was told to; what it says is not ours.
    stranger: bool,
    /// What the session had used before this turn.
    before: Option<Usage>,
    /// What it says it used, on wires that tell it before the end.
    pub(super) used: Option<Usage>,
    /// The last trouble that was not followed by anything better.
    pub(super) error: Option<String>,
    /// The steps as last told.
    plan: Plan,
    /// Items that the wire gives no id.
    pub(super) n_nameless: u32,
    /// Texts that grow: the message and the thinking.
    pub(super) growing: [Option<String>; 2],
}

impl ExecDriver {
    /// A driver for a process that was started so.
    pub fn new(setup: Setup) -> Self {
        Self {
            dialect: Dialect::of(setup.version),
            setup,
            turn: None,
            spoke: false,
            works: false,
            stranger: false,
            before: None,
            used: None,
            error: None,
            plan: Plan::default(),
            n_nameless: 0,
            growing: [None, None],
        }
    }

    fn frame(&mut self, frame: Frame<'_>, line: &[u8], ledger: &mut Ledger) {
        match frame {
            Frame::Thread { id } => self.thread(&id, ledger),
            // The version may have been misread; the wire is right about itself.
            Frame::TurnStarted => self.dialect.tells_end = true,
            Frame::TurnCompleted { usage } => {
                self.error_passed(ledger);
                self.used = usage.map(|tokens| codex::usage(tokens, None));
                self.end(TurnEnd::completed(EndSignal::Wire), ledger);
            }
            Frame::TurnFailed { message } => {
                // It says the same twice, the first time as an error of its own.
                let error = self.error.take().filter(|error| **error != *message);
                let failure = match (&*message, error) {
                    ("", Some(error)) => codex::failure(&error, None),
                    ("", None) => {
                        Failure::new(FailureCode::Agent, "Codex does not say what failed")
                    }
                    (message, error) => {
                        self.error = error;
                        self.error_passed(ledger);
                        codex::failure(message, None)
                    }
                };
                self.end(TurnEnd::failed(failure, EndSignal::Wire), ledger);
            }
            Frame::Item { phase, item } => self.item(phase, &item, ledger),
            Frame::Error { message } => self.trouble(&message, ledger),
            Frame::Warning { message } => {
                ledger.notice(NoticeLevel::Warning, "agent_warning", first_line(&message));
            }
            Frame::Old(event) => self.old_event(&event, line, ledger),
            Frame::Config { model } => self.uses_model(model.as_deref(), ledger),
            Frame::Prompt => {}
            Frame::Unknown { name } => ledger.unparsed(format!("unknown event {name:?}"), line),
        }
    }

    /// The process names its session. Up to 0.110 at least one that is unknown to it is not an
    /// error: it begins a new one without the history.
    pub(super) fn thread(&mut self, id: &str, ledger: &mut Ledger) {
        let known = self.setup.session.as_deref().filter(|_| !self.setup.fork);
        if known.is_some_and(|known| !known.eq_ignore_ascii_case(id)) {
            self.stranger = true;
            let failure = codex::session_unknown()
                .detail(format!("it began the new session {id} instead of going on"));
            self.end(TurnEnd::failed(failure, EndSignal::Wire), ledger);
            // Else it would work on, with all its rights and nobody who sees it.
            ledger.stop_agent();
            return;
        }
        ledger.set_session(id);
    }

    pub(super) fn uses_model(&mut self, model: Option<&str>, ledger: &mut Ledger) {
        if let Some(model) = model.filter(|_| self.setup.model.is_none()) {
            self.setup.model = Some(model.to_owned());
            ledger.configured(Configured { model: self.setup.model.clone(), ..Default::default() });
        }
    }

    fn item(&mut self, phase: Phase, wire: &codex_exec::Item<'_>, ledger: &mut Ledger) {
        match &wire.body {
            Body::TodoList(list) => return self.steps(item::plan(list), ledger),
            Body::Error(warning) => {
                ledger.notice(NoticeLevel::Warning, "agent_warning", &*warning.message);
                return;
            }
            // What goes on was not ended by the error before it; what only ends may have been.
            Body::AgentMessage(_) | Body::Reasoning(_) => self.error_passed(ledger),
            _ if phase == Phase::Started => self.error_passed(ledger),
            _ => {}
        }
        let native = wire.inner_id.as_deref().unwrap_or(&wire.id);
        let new = Item {
            id: self.item_id(&wire.id),
            status: item::status(wire, phase),
            body: item::body(wire),
        };
        self.tell(native, new, ledger);
    }

    /// An item of this turn, new, changed or over.
    pub(super) fn tell(&mut self, native: &str, item: Item, ledger: &mut Ledger) {
        self.works = true;
        let native = Native { item: Some(native.to_owned()), ..Native::default() };
        let meta = Meta { parent: None, native };
        match item.status {
            ItemStatus::InProgress => ledger.upsert_item(meta, item),
            _ => ledger.complete_item(meta, item),
        }
    }

    /// The id of an item, unique in the conversation.
    pub(super) fn item_id(&self, id: &str) -> ItemId {
        match &self.turn {
            Some(turn) => ItemId::new(format!("{turn}:{id}")),
            None => ItemId::from(id),
        }
    }

    /// A list that is told again at the turn's end is not news.
    pub(super) fn steps(&mut self, plan: Plan, ledger: &mut Ledger) {
        if self.plan != plan {
            self.plan = plan.clone();
            ledger.emit(Kind::PlanUpdated(plan));
        }
    }

    /// Something went wrong; whether for good shows in what follows.
    pub(super) fn trouble(&mut self, message: &str, ledger: &mut Ledger) {
        if codex::is_retry(message) {
            ledger.notice(NoticeLevel::Warning, "api_retry", first_line(message));
        } else {
            self.error_passed(ledger);
            self.error = Some(message.to_owned());
        }
    }

    /// The trouble did not end the turn, so that nothing else will tell of it.
    pub(super) fn error_passed(&mut self, ledger: &mut Ledger) {
        if let Some(error) = self.error.take() {
            ledger.notice(NoticeLevel::Warning, "agent_error", first_line(&error));
        }
    }

    /// The turn is over and nothing says how it went. The versions of which this is so have no other
    /// word for a turn that failed than an error.
    fn end_by_itself(&mut self, end: TurnEnd, ledger: &mut Ledger) {
        let failure = self.error.take().map(|error| codex::failure(&error, None));
        let end = match failure {
            Some(failure) => TurnEnd { text: end.text, ..TurnEnd::failed(failure, end.signal) },
            None => end,
        };
        self.end(end, ledger);
    }

    /// The turn is over.
    pub(super) fn end(&mut self, end: TurnEnd, ledger: &mut Ledger) {
        let Some(turn) = ledger.oldest_turn().cloned() else { return };
        let counted = self
            .used
            .take()
            .map(|used| usage::counted(self.dialect.counting, self.before.as_ref(), used));
        let is_unclear = counted.as_ref().is_some_and(|it| it.turn.is_none() && it.total.is_none());
        if is_unclear && !self.stranger {
            let text = format!(
                "Codex {} does not tell whether its figures count this turn or the whole session, \
                 so the tokens of this turn are left out; update Codex to see them",
                self.setup.version
            );
            ledger.notice(NoticeLevel::Info, "usage_unclear", text);
        }
        let (turn_usage, total) = counted.map_or((None, None), |it| (it.turn, it.total));
        if let Some(total) = total {
            ledger.emit(Kind::UsageUpdated(total.clone()));
            ledger.set_session_usage(total);
        }
        if ledger.session().is_none() && !self.stranger {
            ledger.notice(
                NoticeLevel::Warning,
                "no_session",
                format!(
                    "Codex {} does not name its session: the next message begins a new one; \
                     update Codex, or use --agent codex-proto",
                    self.setup.version
                ),
            );
        }
        ledger.end_turn(&turn, TurnEnd { usage: turn_usage, ..end });
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            modes: Mode::COMMON.to_vec(),
            fork: self.dialect.forks,
            images: true,
            ..Abilities::default()
        }
    }

    /// A message as the plain text that stdin takes; its pictures went as files.
    fn text(&self, content: &[Content]) -> Result<String, Failure> {
        let n_pictures = content.iter().filter(|it| matches!(it, Content::Image { .. })).count();
        if n_pictures != self.setup.n_pictures {
            let text = "`codex exec` takes pictures as files only, not by their address";
            return Err(Failure::new(FailureCode::BadRequest, text)
                .hint("send the picture itself, or use --agent codex"));
        }
        let pieces: Vec<String> = content.iter().filter_map(|it| plain(it, '$')).collect();
        if pieces.iter().all(|piece| piece.trim().is_empty()) {
            let text = "`codex exec` takes no message without words";
            return Err(Failure::new(FailureCode::BadRequest, text)
                .hint("say what is to be done with the picture"));
        }
        Ok(pieces.join("\n\n"))
    }
}

impl Driver for ExecDriver {
    fn started(&mut self, ledger: &mut Ledger) {
        ledger.configured(Configured {
            agent_version: Some(self.setup.version.to_string()),
            model: self.setup.model.clone(),
            mode: Some(self.setup.mode),
            policy: self.setup.policy,
            effort: self.setup.effort.clone(),
            abilities: Some(self.abilities()),
            ..Configured::default()
        });
        for (code, text) in std::mem::take(&mut self.setup.left_out) {
            ledger.notice(NoticeLevel::Warning, code, text);
        }
        if let Some((code, text)) = setup::caveat(self.setup.mode, self.setup.policy) {
            ledger.notice(NoticeLevel::Warning, code, text);
        }
    }

    fn line(&mut self, line: &[u8], ledger: &mut Ledger) {
        if self.stranger {
            return;
        }
        match codex_exec::parse(line) {
            Ok(frame) => {
                self.spoke |= !matches!(frame, Frame::Unknown { .. });
                self.frame(frame, line, ledger);
            }
            Err(error) => ledger.unparsed(error.to_string(), line),
        }
    }

    fn start_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        self.turn = ledger.current_turn().cloned();
        self.before = match &self.setup.session {
            None => Some(Usage::default()),
            Some(_) if self.setup.fork => None,
            Some(_) => ledger.take_session_usage(),
        };
        match self.text(&prompt.content) {
            Ok(text) => ledger.write(text.as_bytes()),
            // Without a prompt the process ends at once.
            Err(failure) => {
                if let Some(turn) = &self.turn {
                    ledger.end_turn(turn, TurnEnd::failed(failure, EndSignal::Tieline));
                }
            }
        }
        ledger.close_input();
    }

    fn steer(&mut self, _: &Prompt, _: &mut Ledger) -> Result<(), Refused> {
        Err(Refused(
            "`codex exec` takes no message during a turn; --queue makes it the next turn"
                .to_owned(),
        ))
    }

    fn interrupt(&mut self, _: &mut Ledger) -> bool {
        false
    }

    fn answer(
        &mut self,
        request: &RequestId,
        _: &Answer,
        _: Origin,
        _: &mut Ledger,
    ) -> Result<(), Refused> {
        Err(Refused(format!("`codex exec` asks nothing, so {request} is not its request")))
    }

    /// The next turn has a process of its own, started in the new mode.
    fn set_mode(&mut self, _: Mode, _: Option<Policy>, _: &mut Ledger) -> bool {
        false
    }

    fn set_model(&mut self, _: Option<&str>, _: &mut Ledger) -> bool {
        false
    }

    fn ends_in_silence(&self) -> bool {
        !self.dialect.tells_end && (self.works || self.error.is_some())
    }

    fn conclude(&mut self, _: &TurnId, end: TurnEnd, ledger: &mut Ledger) {
        if end.signal == EndSignal::Idle {
            return self.end_by_itself(end, ledger);
        }
        self.error_passed(ledger);
        self.end(end, ledger);
    }

    fn exited(&mut self, exit: &ExitInfo, ledger: &mut Ledger) {
        if exit.code != Some(0) || !self.spoke || self.dialect.tells_end {
            return;
        }
        // These versions end with 0 also after a turn that failed.
        self.end_by_itself(TurnEnd::completed(EndSignal::Process), ledger);
    }

    fn explain_exit(&self, exit: &ExitInfo) -> Failure {
        match &self.error {
            Some(error) if exit.signal.is_none() => {
                codex::failure(error, None).detail(exit.stderr.trim())
            }
            _ => codex::explain_exit(exit, self.spoke),
        }
    }
}

//! The core: lines in, ledger entries and lines out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tieline_event::{
    Abilities, Answer, AskWhen, Configured, EndSignal, Errand as Work, Failure, FailureCode,
    Inquiry, ItemId, ItemStatus, McpServer, Mode, Native, NoticeLevel, Origin, Policy, Prompt,
    Report, RequestId, TurnId, TurnStatus, Usage,
};
use tieline_wire::codex_app::{
    Account, Initialized, Model, Models, Opened, Skills, Turn, TurnNews,
};
use tieline_wire::jsonrpc::write::{self, Form};
use tieline_wire::jsonrpc::{self, Calls, ErrorObject, Id, Message};

use super::ask::{self, Asked};
use super::errand::Errand;
use super::inquiry;
use super::order::{NO_UNDO, commands};
use super::review::Review;
use crate::alarm::Alarm;
use crate::codex::{LOG_IN, Rules, SavedPrompt, Version, explain_exit, failure, session_unknown};
use crate::driver::{Driver, ExitInfo, Launch, Refused, Takes};
use crate::ledger::{Ledger, Meta, TurnEnd};
use crate::servers;
use crate::words::refused_by;

/// The server takes no more requests for now.
const OVERLOADED: i64 = -32001;

/// No such request.
const UNKNOWN_METHOD: i64 = -32601;

/// How often an overloaded server is asked again.
const MOST_TRIES: u32 = 8;

/// The first pause before it is asked again; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The server has not answered the greeting in time.
pub(super) const GREETING_ENDS: Alarm = Alarm::new("greeting");

/// An overloaded server is asked again.
const RETRY: Alarm = Alarm::new("retry");

/// A refused interrupt is tried again.
const INTERRUPT: Alarm = Alarm::new("interrupt");

/// Nobody began to work at the goal.
pub(super) const GOAL_RESTS: Alarm = Alarm::new("goal");

/// An error was the last word of the turn.
pub(super) const ERROR_STANDS: Alarm = Alarm::new("error");

/// How long the server has to answer the greeting. 0.166 waits up to 30 seconds for another one that
/// reads the history of the same home, and then says so itself.
pub(super) const GREETING: Duration = Duration::from_secs(45);

/// How long the server has to begin the work at a goal. 0.166 needs 33 ms.
pub(super) const GOAL_BEGINS: Duration = Duration::from_secs(2);

/// How long the server has to end a turn after an error that it does not recover from. 0.166 needs
/// no time at all.
pub(super) const ERROR_ENDS: Duration = Duration::from_secs(2);

/// `on-failure` is gone from this version on; what replaced it is `on-request`.
pub(super) const WITHOUT_ON_FAILURE: Version = Version(0, 143, 0);

/// Policies are written `on-request` from this version on at the latest, and `onRequest` in 0.66.
pub(super) const KEBAB: Version = Version(0, 72, 0);

/// Versions from this one on are known to review by themselves what they would ask for.
pub(super) const FIRST_REVIEWER: Version = Version(0, 148, 0);

/// The first version that is known to take a personality.
const FIRST_PERSONALITY: Version = Version(0, 99, 0);

/// The first version that has `turn/steer`.
pub(super) const FIRST_STEER: Version = Version(0, 99, 0);

/// Speaks with one thread of an app server.
#[derive(Debug)]
pub struct AppDriver {
    pub(super) version: Version,
    pub(super) workspace: String,
    pub(super) mode: Mode,
    pub(super) policy: Option<Policy>,
    /// The model the user chose.
    pub(super) model: Option<String>,
    /// The model in use, as the server tells it.
    pub(super) model_in_use: Option<String>,
    pub(super) resume: Option<(String, bool)>,
    /// The turn after which the thread branches off, where that is not its last one.
    pub(super) fork_after: Option<String>,
    calls: Calls<Call>,
    /// Calls that an overloaded server is asked again when we are woken.
    retries: Vec<Call>,
    pub(super) asked: HashMap<RequestId, Asked>,
    pub(super) thread: Option<String>,
    pub(super) greeting: Greeting,
    pub(super) is_opening: bool,
    /// What commands of the thread can reach, as the server told when it opened it.
    pub(super) sandbox: Option<Value>,
    /// The rules the server was told last.
    pub(super) told: Option<Rules>,
    /// The effort the user chose.
    pub(super) effort: Option<String>,
    /// The effort of the thread, which a change of its mode would reset.
    pub(super) effort_in_use: Option<String>,
    /// The service the user chose.
    pub(super) tier: Option<&'static str>,
    /// Efforts by model, and the server's own choice of one.
    efforts: HashMap<String, Vec<String>>,
    default_model: Option<String>,
    /// MCP servers and directories the client brings along.
    pub(super) servers: Vec<McpServer>,
    pub(super) directories: Vec<String>,
    pub(super) prompts: Vec<SavedPrompt>,
    /// It was asked what it has to offer.
    has_asked_around: bool,
    /// What was asked before the thread was there.
    pub(super) unasked: Vec<(u64, Inquiry)>,
    /// What was said before the thread was there.
    pub(super) waiting: VecDeque<(TurnId, Prompt)>,
    /// Turns of ours by the server's name for them.
    pub(super) turns: Vec<(String, TurnId)>,
    /// Turns of ours whose name has not come yet.
    pub(super) nameless: VecDeque<TurnId>,
    /// A turn of ours that the server knows nothing of.
    pub(super) errand: Option<TurnId>,
    /// A turn that is the work at a goal, if the server begins it.
    pub(super) goal: Option<TurnId>,
    /// The turn is a review.
    pub(super) review: Option<Review>,
    /// What was said in the middle of a turn that has no name yet.
    pub(super) unsteered: Vec<Prompt>,
    /// The turn was interrupted; the interrupt may wait for the turn's name.
    pub(super) is_interrupted: bool,
    pub(super) wants_interrupt: bool,
    /// Threads of other agents that this one started, by the item that did.
    pub(super) helpers: HashMap<String, ItemId>,
    /// Our names for the items of this turn.
    pub(super) names: HashMap<String, ItemId>,
    /// Items of the running turns that are over: nothing that comes late opens them again.
    pub(super) over: HashSet<ItemId>,
    /// Items that a person or a policy said no to.
    pub(super) refused: HashMap<String, ItemStatus>,
    /// What the thread had used when this turn began, and as it was told last.
    pub(super) used_before: Option<Usage>,
    pub(super) used: Option<Usage>,
    pub(super) last_error: Option<Failure>,
    /// The turn ends with that error, if the server does not end it soon.
    pub(super) ends_by_error: bool,
    /// The server's names of turns that ended without its word.
    pub(super) given_up: HashSet<String>,
    /// The parts of reasoning that stream as a summary; raw text beside it is not shown.
    pub(super) summaries: HashMap<String, u64>,
    pub(super) compacted: bool,
    pub(super) last_limit: Option<(u64, u64)>,
    /// The server plans, so it must be told when to stop that.
    pub(super) may_plan: bool,
    /// The server may judge what it would ask for, so it must be told when to stop that.
    pub(super) may_review: bool,
    pub(super) abilities: Abilities,
    pub(super) skills: HashMap<String, String>,
    pub(super) spoke: bool,
}

/// How far the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    None,
    Asked,
    Done,
}

#[derive(Debug)]
struct Call {
    what: What,
    method: &'static str,
    params: Value,
    n_tries: u32,
}

#[derive(Debug)]
pub(super) enum What {
    Initialize,
    /// With which rules, if it is a new thread and they all went with it.
    Open(Option<Rules>),
    Turn(TurnId),
    Review(TurnId),
    Compact(TurnId),
    Errand(TurnId, Errand),
    /// A turn that begins when the thread has the rules it is to have.
    Settings(TurnId, Prompt, Rules),
    Steer(Prompt),
    Interrupt,
    Models,
    Skills,
    Account,
    Inquiry(u64, Inquiry),
}

impl AppDriver {
    /// A driver for a conversation; its requests are numbered from `first_id` on.
    pub fn new(launch: &Launch<'_>, version: Version, first_id: i64) -> Self {
        Self {
            version,
            workspace: launch.workspace.display().to_string(),
            mode: launch.mode,
            policy: launch.policy,
            model: launch.model.map(str::to_owned),
            model_in_use: None,
            resume: launch.resume.map(|resume| (resume.session.to_owned(), resume.fork)),
            fork_after: launch.resume.and_then(|resume| resume.at).map(str::to_owned),
            calls: Calls::numbered_from(first_id),
            retries: Vec::new(),
            asked: HashMap::new(),
            thread: None,
            greeting: Greeting::None,
            is_opening: false,
            has_asked_around: false,
            sandbox: None,
            told: None,
            effort: launch.effort.map(str::to_owned),
            effort_in_use: None,
            tier: None,
            efforts: HashMap::new(),
            default_model: None,
            servers: launch.extras.mcp_servers.clone(),
            directories: launch
                .extras
                .directories
                .iter()
                .map(|directory| directory.display().to_string())
                .collect(),
            prompts: Vec::new(),
            unasked: Vec::new(),
            waiting: VecDeque::new(),
            turns: Vec::new(),
            nameless: VecDeque::new(),
            errand: None,
            goal: None,
            review: None,
            unsteered: Vec::new(),
            is_interrupted: false,
            wants_interrupt: false,
            helpers: HashMap::new(),
            names: HashMap::new(),
            over: HashSet::new(),
            refused: HashMap::new(),
            used_before: None,
            used: None,
            last_error: None,
            ends_by_error: false,
            given_up: HashSet::new(),
            summaries: HashMap::new(),
            compacted: false,
            last_limit: None,
            // A thread from another process may have been left planning.
            may_plan: launch.resume.is_some(),
            may_review: false,
            abilities: Abilities {
                modes: match version >= FIRST_REVIEWER {
                    true => Mode::ALL.to_vec(),
                    false => Mode::COMMON.to_vec(),
                },
                commands: commands(&[]),
                steering: true,
                fork: true,
                images: true,
                questions: true,
                approvals: true,
                streaming: true,
                ..Abilities::default()
            },
            skills: HashMap::new(),
            spoke: false,
        }
    }

    /// The user's prompts, offered as commands.
    #[must_use]
    pub(crate) fn with_prompts(mut self, prompts: Vec<SavedPrompt>) -> Self {
        self.abilities.commands = commands(&prompts);
        self.prompts = prompts;
        self
    }

    pub(super) fn call(
        &mut self,
        what: What,
        method: &'static str,
        params: Value,
        ledger: &mut Ledger,
    ) {
        self.send(Call { what, method, params, n_tries: 0 }, ledger);
    }

    fn send(&mut self, mut call: Call, ledger: &mut Ledger) {
        call.n_tries += 1;
        if let What::Open(_) = call.what {
            ledger.hide(servers::secrets(&self.servers));
        }
        let (method, params) = (call.method, std::mem::take(&mut call.params));
        let kept = params.clone();
        let id = self.calls.open(Call { params: kept, ..call });
        ledger.write(&write::request(Form::Bare, &Id::Number(id), method, &params));
    }

    fn answered(&mut self, id: &Id, result: &RawValue, ledger: &mut Ledger) {
        // A late or repeated answer is nobody's.
        let Some(Call { what, method, .. }) = self.calls.close(id) else {
            tracing::debug!(%id, "late or unknown answer");
            return;
        };
        let text = result.get();
        match what {
            What::Initialize => self.initialized(serde_json::from_str(text).ok(), ledger),
            What::Open(told) => match serde_json::from_str::<Opened<'_>>(text) {
                Ok(opened) if !self.is_cut(opened.thread.turns) => {
                    let text = format!(
                        "Codex {} cannot branch off from an earlier turn, and the other \
                         conversation went on",
                        self.version
                    );
                    let failure = Failure::new(FailureCode::BadRequest, text);
                    self.cannot_open(failure.hint("fork it again as it is now"), ledger);
                }
                Ok(opened) => {
                    self.told = told;
                    self.opened(&opened, ledger);
                }
                Err(error) => self.cannot_open(protocol(method, &error), ledger),
            },
            What::Turn(turn) | What::Review(turn) => {
                match serde_json::from_str::<TurnNews<'_>>(text) {
                    Ok(news) => self.named(turn, &news.turn.id, ledger),
                    Err(error) => self.fail(&turn, protocol(method, &error), ledger),
                }
            }
            What::Errand(turn, errand) => {
                if let Errand::Skills = errand
                    && let Some(skills) = read_offer(method, text)
                {
                    self.learn_skills(skills, ledger);
                }
                self.was_run(&errand, turn, (method, text), ledger);
            }
            What::Models => {
                if let Some(models) = read_offer(method, text) {
                    self.learn_models(models, ledger);
                }
            }
            What::Skills => {
                if let Some(skills) = read_offer(method, text) {
                    self.learn_skills(skills, ledger);
                }
            }
            What::Account => {
                let account: Option<Account<'_>> = read_offer(method, text);
                if account.is_some_and(|it| it.requires_openai_auth && is_null(it.account)) {
                    ledger.notice(
                        NoticeLevel::Warning,
                        "not_logged_in",
                        format!("nobody is logged in to Codex: {LOG_IN}"),
                    );
                }
            }
            What::Settings(turn, prompt, rules) => {
                self.told = Some(rules);
                if ledger.is_open(&turn) {
                    self.begin(turn, &prompt, ledger);
                }
            }
            What::Inquiry(number, inquiry) => {
                let report = inquiry::report(&inquiry, text);
                let report = report.map_err(|error| protocol(method, &error).message);
                ledger.report(number, report);
            }
            What::Compact(_) | What::Steer(_) | What::Interrupt => {}
        }
    }

    fn was_refused(&mut self, id: &Id, error: &ErrorObject, ledger: &mut Ledger) {
        let Some(call) = self.calls.close(id) else {
            tracing::debug!(%id, "late or unknown refusal");
            return;
        };
        if error.code == OVERLOADED && call.n_tries < MOST_TRIES {
            let pause = FIRST_PAUSE.saturating_mul(1 << (call.n_tries - 1)).min(LONGEST_PAUSE);
            ledger.notice(
                NoticeLevel::Info,
                "overloaded",
                format!("the server is overloaded; {} is tried again", call.method),
            );
            if self.retries.is_empty() {
                ledger.wake_after(RETRY, pause);
            }
            self.retries.push(call);
            return;
        }
        let too_old = error.message.contains(&format!("unknown variant `{}`", call.method));
        let too_old = too_old.then(|| format!("Codex {} has no {}", self.version, call.method));
        let message = too_old.as_deref().unwrap_or(&error.message);
        match call.what {
            What::Initialize => {
                self.greeting = Greeting::None;
                ledger.cancel_alarm(GREETING_ENDS);
                let message = format!("the app server refuses to begin: {message}");
                self.cannot_open(Failure::new(FailureCode::Protocol, message), ledger);
            }
            What::Open(_) => {
                let is_unknown = message.contains("no rollout found")
                    || message.contains("thread not found")
                    || message.contains("invalid thread id");
                let failure = match is_unknown {
                    true => session_unknown().detail(message),
                    false => refusal(message),
                };
                self.cannot_open(failure, ledger);
            }
            What::Turn(turn) | What::Review(turn) | What::Compact(turn) | What::Errand(turn, _) => {
                self.fail(&turn, refusal(message), ledger);
            }
            What::Settings(turn, ..) => {
                let failure = refusal(message).hint("say anything in the new mode first");
                self.fail(&turn, failure, ledger);
            }
            What::Inquiry(number, _) => ledger.report(number, Err(message.to_owned())),
            What::Steer(prompt) => self.unheard(&prompt, message, ledger),
            What::Interrupt => {
                // The turn has a name before it can be interrupted; or it has just ended by itself.
                self.wants_interrupt = ledger.current_turn().is_some();
                ledger.wake_after(INTERRUPT, FIRST_PAUSE);
                tracing::debug!(%message, "the interrupt was refused");
            }
            What::Models | What::Skills | What::Account => {
                tracing::debug!(method = call.method, %message, "the server does not tell");
            }
        }
    }

    fn initialized(&mut self, answer: Option<Initialized<'_>>, ledger: &mut Ledger) {
        let agent = answer.and_then(|answer| answer.user_agent);
        if let Some(version) = agent.as_deref().and_then(Version::find) {
            self.version = version;
        }
        ledger.write(&write::notification(Form::Bare, "initialized", None::<&()>));
        self.greeting = Greeting::Done;
        ledger.cancel_alarm(GREETING_ENDS);
        self.open(ledger);
    }

    fn opened(&mut self, opened: &Opened<'_>, ledger: &mut Ledger) {
        self.is_opening = false;
        self.thread = Some(opened.thread.id.to_string());
        self.model_in_use = opened.model.as_deref().map(str::to_owned);
        self.sandbox = opened.sandbox.and_then(|raw| serde_json::from_str(raw.get()).ok());
        self.effort_in_use = opened.reasoning_effort.as_deref().map(str::to_owned);
        // A thread remembers over processes who judges. In a new one it is the user's own choice.
        let is_reviewed = opened.approvals_reviewer.as_deref().is_some_and(|it| it != "user");
        self.may_review |= self.resume.is_some() && is_reviewed;
        if self.resume.as_ref().is_some_and(|(_, fork)| !fork) {
            // Not every version tells what the thread had used before.
            self.used = self.used.take().or_else(|| ledger.take_session_usage());
        }
        ledger.configured(Configured {
            agent_version: Some(self.version.to_string()),
            model: self.model_in_use.clone(),
            mode: Some(self.mode),
            policy: self.policy,
            cwd: opened.cwd.as_deref().map(str::to_owned),
            effort: self.effort.clone().or_else(|| self.effort_in_use.clone()),
            abilities: Some(self.abilities.clone()),
            title: opened.thread.name.as_deref().map(str::to_owned),
        });
        if self.version >= WITHOUT_ON_FAILURE && self.rules().policy.ask == AskWhen::OnFailure {
            ledger.notice(
                NoticeLevel::Warning,
                "policy_replaced",
                format!("Codex {} has no on-failure any more; it asks on-request", self.version),
            );
        }
        if self.version < FIRST_REVIEWER && self.rules().reviewed {
            let text = format!(
                "Codex {} cannot judge itself what needs asking; it works as in acceptEdits",
                self.version
            );
            ledger.notice(NoticeLevel::Warning, "mode_replaced", text);
        }
        while let Some((turn, prompt)) = self.waiting.pop_front() {
            self.begin(turn, &prompt, ledger);
        }
        for (number, inquiry) in std::mem::take(&mut self.unasked) {
            self.ask(number, inquiry, ledger);
        }
        if self.nameless.is_empty() {
            self.ask_around(ledger);
        }
    }

    /// Whether a thread ends where it is to branch off. Versions that do not know how to leave turns
    /// out take all of them.
    fn is_cut(&self, turns: Option<&RawValue>) -> bool {
        let Some(last) = &self.fork_after else { return true };
        let turns = turns.and_then(|raw| serde_json::from_str::<Vec<Turn<'_>>>(raw.get()).ok());
        let turns = turns.unwrap_or_default();
        let mut after = turns.iter().rev().take_while(|turn| *turn.id != **last);
        // The turn of a review has another one within it.
        after.all(|turn| turn.root_turn_id.as_deref() == Some(last))
    }

    /// What the server has to offer. It looks for that in files and is slowed by it, so the first
    /// turn goes first.
    pub(super) fn ask_around(&mut self, ledger: &mut Ledger) {
        if std::mem::replace(&mut self.has_asked_around, true) {
            return;
        }
        self.call(What::Account, "account/read", json!({"refreshToken": false}), ledger);
        self.call(What::Models, "model/list", json!({}), ledger);
        let here = json!({"cwds": [self.workspace]});
        self.call(What::Skills, "skills/list", here, ledger);
    }

    /// There is no thread: what waited for it fails, and the next turn tries again.
    fn cannot_open(&mut self, failure: Failure, ledger: &mut Ledger) {
        self.is_opening = false;
        self.waiting.clear();
        self.drop_unsteered(ledger);
        for (number, _) in std::mem::take(&mut self.unasked) {
            ledger.report(number, Err(failure.message.clone()));
        }
        for turn in std::mem::take(&mut self.nameless) {
            ledger.end_turn(&turn, TurnEnd::failed(failure.clone(), EndSignal::Wire));
        }
    }

    /// Opens the thread: what failed before is tried again, what is under way goes on.
    fn open_again(&mut self, ledger: &mut Ledger) {
        match self.greeting {
            Greeting::None => self.greet(ledger),
            Greeting::Done if !self.is_opening => self.open(ledger),
            Greeting::Asked | Greeting::Done => {}
        }
    }

    /// The server did not answer the greeting in time.
    fn unanswered(&mut self, ledger: &mut Ledger) {
        let seconds = GREETING.as_secs();
        let failure = Failure::new(
            FailureCode::AgentCannotStart,
            format!("the app server did not answer within {seconds} seconds"),
        )
        .hint("check args and program in tieline's configuration");
        self.cannot_open(failure, ledger);
        ledger.stop_agent();
    }

    pub(super) fn fail(&mut self, turn: &TurnId, failure: Failure, ledger: &mut Ledger) {
        self.nameless.retain(|nameless| nameless != turn);
        self.errand.take_if(|errand| errand == turn);
        self.drop_unsteered(ledger);
        ledger.end_turn(turn, TurnEnd::failed(failure, EndSignal::Wire));
    }

    /// A turn of ours has its name.
    pub(super) fn named(&mut self, turn: TurnId, name: &str, ledger: &mut Ledger) {
        self.nameless.retain(|nameless| *nameless != turn);
        if !ledger.is_open(&turn) {
            return;
        }
        if !self.turns.iter().any(|(_, known)| *known == turn) {
            self.turns.push((name.to_owned(), turn));
            self.used_before.clone_from(&self.used);
            self.compacted = false;
        }
        // Only a thread that has had a turn can be found again.
        if let Some(thread) = &self.thread {
            ledger.set_session(thread);
        }
        for prompt in std::mem::take(&mut self.unsteered) {
            self.pass_on(&prompt, ledger);
        }
        if std::mem::take(&mut self.wants_interrupt) {
            self.interrupt(ledger);
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
        self.nameless.push_back(turn.clone());
        self.begin(turn, prompt, ledger);
    }

    fn request(&mut self, id: Id, method: &str, params: Option<&RawValue>, ledger: &mut Ledger) {
        if method == "item/tool/call" {
            let result = ask::no_such_tool(params, ledger);
            ledger.write(&write::response(Form::Bare, &id, &result));
            return;
        }
        let wire_id = id.clone();
        match ask::understand(id, method, params, &self.names, ledger) {
            Err(why) => {
                ledger.write(&write::error(Form::Bare, &wire_id, UNKNOWN_METHOD, &why));
                ledger.notice(NoticeLevel::Warning, "unsupported_request", why);
            }
            Ok(_) if self.asked.values().any(|asked| asked.wire_id == wire_id) => {
                // After a resume the server may ask again what is open.
                let text = format!("the agent asked twice with the id {wire_id}");
                ledger.notice(NoticeLevel::Info, "repeated_request", text);
            }
            Ok((asked, request)) => {
                let native = Native {
                    request: Some(wire_id.to_string()),
                    item: asked.item.clone(),
                    ..Native::default()
                };
                self.asked.insert(request.id.clone(), asked);
                ledger.open_request(Meta { parent: None, native }, request);
            }
        }
    }

    fn learn_models(&mut self, models: Models, ledger: &mut Ledger) {
        let default = models.data.iter().find(|model| model.is_default);
        self.default_model = default.map(|model| model.id.clone());
        let efforts = |model: &Model| {
            let efforts = model.supported_reasoning_efforts.iter();
            efforts.map(|effort| effort.reasoning_effort.clone()).collect()
        };
        self.efforts = models.data.iter().map(|it| (it.id.clone(), efforts(it))).collect();
        self.refresh_efforts();
        self.abilities.models = inquiry::models(models);
        self.tell_abilities(ledger);
    }

    fn learn_skills(&mut self, skills: Skills, ledger: &mut Ledger) {
        let all = skills.data.into_iter().flat_map(|it| it.skills);
        let usable = all.filter(|skill| skill.enabled != Some(false));
        self.skills = usable.map(|skill| (skill.name, skill.path)).collect();
        self.abilities.skills = self.skills.keys().cloned().collect();
        self.abilities.skills.sort();
        if !self.skills.is_empty() {
            self.tell_abilities(ledger);
        }
    }

    /// Efforts are those of the model in use. Says whether they changed.
    fn refresh_efforts(&mut self) -> bool {
        let model = self.model.as_ref().or(self.model_in_use.as_ref());
        let model = model.or(self.default_model.as_ref());
        let efforts = model.and_then(|model| self.efforts.get(model)).cloned().unwrap_or_default();
        let changed = efforts != self.abilities.efforts;
        self.abilities.efforts = efforts;
        changed
    }

    fn tell_abilities(&self, ledger: &mut Ledger) {
        let abilities = Some(self.abilities.clone());
        ledger.configured(Configured { abilities, ..Configured::default() });
    }
}

impl Driver for AppDriver {
    fn started(&mut self, ledger: &mut Ledger) {
        self.greet(ledger);
    }

    fn line(&mut self, line: &[u8], ledger: &mut Ledger) {
        let message = jsonrpc::classify(line);
        self.spoke |= !matches!(message, Message::Garbage { .. });
        match message {
            Message::Notification { method, params } => self.news(&method, params, line, ledger),
            Message::Request { id, method, params } => self.request(id, &method, params, ledger),
            Message::Response { id, result } => self.answered(&id, result, ledger),
            Message::Error { id: Some(id), error } => self.was_refused(&id, &error, ledger),
            Message::Error { id: None, error } => {
                ledger.notice(NoticeLevel::Warning, "protocol", error.message);
            }
            Message::Garbage { reason } => ledger.unparsed(reason, line),
        }
    }

    fn start_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        let Some(turn) = ledger.current_turn().cloned() else { return };
        (self.last_error, self.ends_by_error) = (None, false);
        (self.is_interrupted, self.wants_interrupt) = (false, false);
        self.drop_unsteered(ledger);
        self.nameless.push_back(turn.clone());
        if self.thread.is_some() {
            self.begin(turn, prompt, ledger);
            return;
        }
        self.waiting.push_back((turn, prompt.clone()));
        self.open_again(ledger);
    }

    fn takes(&self) -> Takes {
        Takes {
            after: false,
            output_schema: true,
            personality: self.version >= FIRST_PERSONALITY,
            summary: true,
        }
    }

    fn start_errand(&mut self, errand: &Work, ledger: &mut Ledger) -> Result<(), Refused> {
        if let Work::Undo = errand {
            return Err(Refused(NO_UNDO.to_owned()));
        }
        self.start_turn(&Prompt::errand(errand.clone()), ledger);
        Ok(())
    }

    fn inquire(
        &mut self,
        number: u64,
        inquiry: &Inquiry,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        match (inquiry, &self.thread) {
            (Inquiry::Prompts, _) => {
                let prompts = self.prompts.iter().map(SavedPrompt::info).collect();
                ledger.report(number, Ok(Report::Prompts(prompts)));
            }
            (inquiry, Some(_)) => self.ask(number, inquiry.clone(), ledger),
            (inquiry, None) => {
                self.unasked.push((number, inquiry.clone()));
                self.open_again(ledger);
            }
        }
        Ok(())
    }

    fn steer(&mut self, prompt: &Prompt, ledger: &mut Ledger) -> Result<(), Refused> {
        self.pass_on(prompt, ledger);
        Ok(())
    }

    fn interrupt(&mut self, ledger: &mut Ledger) -> bool {
        self.is_interrupted = true;
        if self.thread.is_none() {
            // Nothing was said to the model yet.
            self.waiting.clear();
            self.drop_unsteered(ledger);
            for turn in std::mem::take(&mut self.nameless) {
                let end = TurnEnd::completed(EndSignal::Tieline);
                ledger.end_turn(&turn, TurnEnd { status: TurnStatus::Interrupted, ..end });
            }
            return true;
        }
        let is_done = self.abandon_errand(ledger);
        let Some((thread, name)) = self.running(ledger) else {
            self.wants_interrupt = !is_done;
            return true;
        };
        let params = json!({"threadId": thread, "turnId": name});
        self.call(What::Interrupt, "turn/interrupt", params, ledger);
        true
    }

    fn answer(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        by: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        let Some(asked) = self.asked.get(request) else {
            return Err(Refused(format!("request {request} is answered or gone")));
        };
        let result = ask::answer(asked, answer).map_err(Refused)?;
        let Some(asked) = self.asked.remove(request) else { return Ok(()) };
        ledger.write(&write::response(Form::Bare, &asked.wire_id, &result));
        if let Answer::Deny { message, stop } = answer {
            let status = refused_by(by);
            if let Some(item) = &asked.item {
                self.refused.insert(item.clone(), status);
            }
            if ask::needs_interrupt(&asked, answer) {
                self.interrupt(ledger);
            }
            // The wire has no place for a reason, so a person's word goes in as a message.
            if let Some(message) = message.as_ref().filter(|_| !stop && by != Origin::Engine) {
                self.pass_on(&Prompt::text(message.as_str()), ledger);
            }
        }
        Ok(())
    }

    fn set_mode(&mut self, mode: Mode, policy: Option<Policy>, ledger: &mut Ledger) -> bool {
        (self.mode, self.policy) = (mode, policy);
        ledger.configured(Configured { mode: Some(mode), policy, ..Configured::default() });
        true
    }

    fn set_model(&mut self, model: Option<&str>, ledger: &mut Ledger) -> bool {
        // The way back to the server's own choice leads through a new thread handle.
        let Some(model) = model else { return false };
        self.model = Some(model.to_owned());
        let abilities = self.refresh_efforts().then(|| self.abilities.clone());
        let model = self.model.clone();
        ledger.configured(Configured { model, abilities, ..Configured::default() });
        true
    }

    fn set_effort(&mut self, effort: Option<&str>, ledger: &mut Ledger) -> bool {
        let Some(effort) = effort else { return false };
        self.effort = Some(effort.to_owned());
        ledger.configured(Configured { effort: self.effort.clone(), ..Configured::default() });
        true
    }

    fn turn_of_notice(
        &self,
        session: Option<&str>,
        turn: Option<&str>,
        ledger: &Ledger,
    ) -> Option<TurnId> {
        // A notification of a turn that is over may come late.
        let named = self.turns.iter().find(|(name, _)| Some(name.as_str()) == turn)?;
        let is_mine = session.is_some() && session == self.thread.as_deref();
        Some(&named.1).filter(|turn| is_mine && ledger.is_open(turn)).cloned()
    }

    fn conclude(&mut self, turn: &TurnId, end: TurnEnd, ledger: &mut Ledger) {
        ledger.end_turn(turn, TurnEnd { usage: self.spent(), ..end });
    }

    fn wake(&mut self, alarm: Alarm, ledger: &mut Ledger) {
        match alarm {
            GREETING_ENDS if self.greeting == Greeting::Asked => self.unanswered(ledger),
            GOAL_RESTS => self.goal_rests(ledger),
            ERROR_STANDS => self.error_stands(ledger),
            RETRY => {
                for call in std::mem::take(&mut self.retries) {
                    self.send(call, ledger);
                }
            }
            INTERRUPT
                if std::mem::take(&mut self.wants_interrupt) && ledger.current_turn().is_some() =>
            {
                self.interrupt(ledger);
            }
            _ => {}
        }
    }

    fn explain_exit(&self, exit: &ExitInfo) -> Failure {
        explain_exit(exit, self.spoke)
    }
}

/// What the server has to offer. A turn does without it, so an odd answer is only noted.
fn read_offer<'a, T: Deserialize<'a>>(method: &str, answer: &'a str) -> Option<T> {
    serde_json::from_str(answer)
        .inspect_err(|error| tracing::warn!(method, %error, "the answer is not understood"))
        .ok()
}

fn is_null(raw: Option<&RawValue>) -> bool {
    raw.is_none_or(|raw| raw.get() == "null")
}

pub(super) fn protocol(method: &str, error: &serde_json::Error) -> Failure {
    Failure::new(
        FailureCode::Protocol,
        format!("the answer to {method} is not understood: {error}"),
    )
    .hint("update tieline or Codex; `tieline export KEY --format raw` has the line")
}

/// A request of ours that the server refuses.
fn refusal(message: &str) -> Failure {
    let failure = failure(message, None);
    match failure.code {
        FailureCode::Agent if message.starts_with("Codex ") => {
            Failure { code: FailureCode::BadRequest, ..failure }
                .hint("update it: npm install -g @openai/codex@latest")
        }
        FailureCode::Agent => Failure { code: FailureCode::BadRequest, ..failure },
        _ => failure,
    }
}

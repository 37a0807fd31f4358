//! The core: events in, ledger entries and submissions out.

mod ask;
mod command;
mod news;
mod text;
mod work;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::value::RawValue;

use tieline_event::{
    Abilities, AgentCommand, Answer, AskWhen, Configured, Content, EndSignal, Errand, Failure,
    FailureCode, ImageSource, Inquiry, Mode, ModelInfo, NoticeLevel, Origin, Policy, Prompt, Reach,
    RequestId, ReviewTarget, TurnId, TurnOptions, TurnStatus, Usage,
};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{self, ApprovalPolicy, Effort, Event, InputItem, Op, Submission};
use tieline_wire::text::Str;

use crate::alarm::Alarm;
use crate::codex::{Rules, Version, explain_exit, review_target, server_settings};
use crate::codex_exec::plan_mode_off;
use crate::driver::{Driver, ExitInfo, Launch, Refused, Takes};
use crate::ledger::{Ledger, TurnEnd};
use crate::words::{plain, refused_by};

/// The first version that tells the effort in use and whose turns may leave it out. Those before
/// are told the context apart, which keeps the effort as it is.
const FIRST_FREE_EFFORT: Version = Version(0, 36, 0);

/// The first version that is known to review, to list its tools and prompts, and to take the form of
/// the last message. One that does not know an operation says nothing about it.
const FIRST_LISTS: Version = Version(0, 42, 0);

/// The first version that calls the tag of a sandbox `type`.
const FIRST_TYPED_SANDBOX: Version = Version(0, 60, 0);

/// How long an error waits for the end of its task. Old versions do not tell that end.
const ERROR_STANDS: Duration = Duration::from_secs(1);

/// An error was the last word of its task.
const NO_END: Alarm = Alarm::new("error");

/// Tasks whose turn is over are remembered, in case something of them comes late.
const N_TASKS: usize = 8;

/// Speaks with one `codex proto` process.
#[derive(Debug)]
pub struct ProtoDriver {
    version: Version,
    cwd: String,
    mode: Mode,
    policy: Option<Policy>,
    /// The model that was asked for.
    model: Option<String>,
    /// The effort that was asked for since the process began.
    effort: Option<Effort>,
    /// Directories beside the workspace that the client brings along.
    directories: Vec<String>,
    /// What to say of the client's servers that are not used.
    left_out: Vec<String>,
    /// What the process said about itself. Nothing is submitted before.
    session: Option<SessionFacts>,
    /// What is to be submitted then.
    waiting: Vec<Waiting>,
    n_submissions: u64,
    tasks: VecDeque<Task>,
    asked: HashMap<RequestId, ask::Asked>,
    texts: text::Texts,
    calls: work::Calls,
    counts: Counts,
    trouble: Option<Trouble>,
    /// It was said that there is no plan mode.
    told_no_plan: bool,
    /// It has no sandbox on this system, which is still to be told.
    lacks_sandbox: bool,
    spoke: bool,
    /// It tells when its tasks begin and end.
    tells_tasks: bool,
    /// It is our own engine, which has more to offer.
    is_engine: bool,
    /// What it calls its version, where that is not the one whose words it speaks.
    shown_version: String,
    efforts: Vec<String>,
    models: Vec<ModelInfo>,
    /// Its commands and its skills.
    commands: Vec<AgentCommand>,
    skills: Vec<String>,
    /// What it was asked about itself, by submission.
    inquiries: HashMap<String, u64>,
}

#[derive(Debug)]
struct SessionFacts {
    model: String,
    effort: Option<Effort>,
}

#[derive(Debug)]
enum Waiting {
    Turn(Prompt),
    Errand(Errand),
    Steer(Vec<Content>),
}

/// Tokens, and what the provider leaves.
#[derive(Debug, Default)]
struct Counts {
    /// Since the session began.
    total: Usage,
    /// The same when the turn began.
    before: Usage,
    context_window: Option<u64>,
    /// What was told last about the limits.
    limits: Option<(u64, u64)>,
}

/// A submission of ours that begins a task, or becomes part of the running one.
#[derive(Debug)]
struct Task {
    submission: u64,
    /// The turn that is over when the task is.
    turn: TurnId,
    /// The agent told something of it.
    began: bool,
}

/// What went wrong in a task.
#[derive(Debug)]
struct Trouble {
    submission: String,
    failure: Failure,
    /// Nothing came since.
    is_last: bool,
}

impl ProtoDriver {
    /// A driver for a process of this version that is started for this conversation.
    pub fn new(launch: &Launch<'_>, version: Version) -> Self {
        Self {
            version,
            cwd: launch.workspace.to_string_lossy().into_owned(),
            mode: launch.mode,
            policy: launch.policy,
            model: launch.model.map(str::to_owned),
            effort: None,
            directories: launch
                .extras
                .directories
                .iter()
                .map(|directory| directory.display().to_string())
                .collect(),
            left_out: server_settings(launch.extras).1,
            session: None,
            waiting: Vec::new(),
            n_submissions: 0,
            tasks: VecDeque::new(),
            asked: HashMap::new(),
            texts: text::Texts::default(),
            calls: work::Calls::default(),
            counts: Counts::default(),
            trouble: None,
            told_no_plan: false,
            lacks_sandbox: false,
            spoke: false,
            tells_tasks: false,
            is_engine: false,
            shown_version: version.to_string(),
            efforts: Vec::new(),
            models: Vec::new(),
            commands: Vec::new(),
            skills: Vec::new(),
            inquiries: HashMap::new(),
        }
    }

    /// A driver for our own engine, which speaks as the newest of these versions and knows more.
    pub fn engine(launch: &Launch<'_>, offer: EngineOffer) -> Self {
        let EngineOffer { version, efforts, models, prompts, skills } = offer;
        Self {
            is_engine: true,
            shown_version: version,
            efforts: efforts.iter().map(|effort| (*effort).to_owned()).collect(),
            models,
            commands: command::own().chain(prompts).collect(),
            skills,
            effort: launch.effort.map(Effort::from),
            left_out: Vec::new(),
            ..Self::new(launch, ENGINE)
        }
    }

    /// On this system it starts no sandbox, which users have to know.
    #[must_use]
    pub fn without_sandbox(mut self, lacks_sandbox: bool) -> Self {
        self.lacks_sandbox = lacks_sandbox;
        self
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            modes: Mode::COMMON.to_vec(),
            efforts: self.efforts.clone(),
            models: self.models.clone(),
            commands: self.commands.clone(),
            skills: self.skills.clone(),
            fork: self.is_engine,
            questions: self.is_engine,
            steering: true,
            images: true,
            approvals: true,
            streaming: true,
            ..Abilities::default()
        }
    }

    fn submit(&mut self, op: Op<'_>, ledger: &mut Ledger) {
        self.n_submissions += 1;
        let id = format!("sub-{}", self.n_submissions).into();
        ledger.write(&Submission { id, op }.to_line());
    }

    /// Submits what the current turn is about.
    fn submit_task(&mut self, op: Op<'_>, ledger: &mut Ledger) {
        self.submit(op, ledger);
        let Some(turn) = ledger.current_turn().cloned() else { return };
        let is_over = |task: &mut Task| !ledger.is_open(&task.turn);
        while self.tasks.len() >= N_TASKS && self.tasks.pop_front_if(is_over).is_some() {}
        self.tasks.push_back(Task { submission: self.n_submissions, turn, began: false });
    }

    /// The task that a submission of ours began, or may begin.
    fn task(&mut self, id: &str) -> Option<&mut Task> {
        let number: u64 = id.strip_prefix("sub-")?.parse().ok()?;
        self.tasks.iter_mut().rev().find(|task| task.submission == number)
    }

    /// Whether something of a task is told after its turn. It is no part of the next one.
    fn is_late(&mut self, id: &str, ledger: &Ledger) -> bool {
        let Some(task) = self.task(id) else { return false };
        let is_open = ledger.is_open(&task.turn);
        task.began |= is_open;
        !is_open
    }

    fn session_configured(&mut self, it: &sqeq::SessionConfigured<'_>, ledger: &mut Ledger) {
        if !it.session_id.is_empty() {
            ledger.set_session(&it.session_id);
        }
        let effort = it.reasoning_effort.clone();
        self.session = Some(SessionFacts { model: it.model.to_string(), effort });
        ledger.configured(Configured {
            agent_version: Some(self.shown_version.clone()),
            model: Some(self.model_in_use().to_owned()),
            mode: Some(self.mode),
            policy: self.policy,
            effort: self.effort_in_use().map(|effort| effort.as_str().to_owned()),
            cwd: Some(self.cwd.clone()),
            abilities: Some(self.abilities()),
            ..Configured::default()
        });
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                Waiting::Turn(prompt) => self.submit_turn(&prompt, ledger),
                Waiting::Errand(errand) => self.submit_task(self.errand_op(&errand), ledger),
                Waiting::Steer(content) => self.submit_input(&content, ledger),
            }
        }
    }

    /// Why something is refused that this program cannot do.
    fn has_no(&self, what: &str) -> String {
        format!("`codex proto` of {} has no {what}; --agent codex may", self.version)
    }

    fn errand_op(&self, errand: &Errand) -> Op<'static> {
        match errand {
            Errand::Review { target } if !self.is_engine => review_op(target),
            errand => errand_op(errand),
        }
    }

    /// Submits work that is not a message, as soon as there is a session.
    fn run_errand(&mut self, errand: &Errand, ledger: &mut Ledger) {
        match self.session {
            Some(_) => self.submit_task(self.errand_op(errand), ledger),
            None => self.waiting.push(Waiting::Errand(errand.clone())),
        }
    }

    fn model_in_use(&self) -> &str {
        match (&self.model, &self.session) {
            (Some(model), _) => model,
            (None, Some(session)) => &session.model,
            (None, None) => "",
        }
    }

    fn effort_in_use(&self) -> Option<&Effort> {
        let told = self.session.as_ref().and_then(|session| session.effort.as_ref());
        self.effort.as_ref().or(told)
    }

    fn submit_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        let (content, options) = (&prompt.content, &prompt.options);
        let rules = self.rules();
        let cwd = Str::Owned(self.cwd.clone());
        let approval_policy = match rules.policy.ask {
            AskWhen::Untrusted => ApprovalPolicy::Untrusted,
            AskWhen::OnFailure => ApprovalPolicy::OnFailure,
            AskWhen::OnRequest => ApprovalPolicy::OnRequest,
            AskWhen::Never => ApprovalPolicy::Never,
        };
        let sandbox_policy = self.sandbox(rules);
        // A turn without an effort would be one with the provider's default, not with the user's
        // setting.
        let effort = self.effort_in_use().cloned();
        if effort.is_none() && self.version < FIRST_FREE_EFFORT {
            let context = sqeq::OverrideTurnContext {
                cwd: Some(cwd),
                approval_policy: Some(approval_policy),
                sandbox_policy: Some(sandbox_policy),
                model: self.model.clone().map(Str::Owned),
                ..sqeq::OverrideTurnContext::default()
            };
            self.submit(Op::OverrideTurnContext(Box::new(context)), ledger);
            self.submit_input(content, ledger);
            return;
        }
        let turn = sqeq::UserTurn {
            items: input(content),
            cwd,
            approval_policy,
            sandbox_policy,
            model: self.model_in_use().to_owned().into(),
            effort,
            summary: options.summary.as_deref().map(sqeq::Summary::from).unwrap_or_default(),
            final_output_json_schema: schema(options),
            collaboration_mode: self.collaboration(rules),
            personality: options.personality.as_deref().map(sqeq::Personality::from),
            response_id: options.after.clone().map(Str::Owned).filter(|_| self.is_engine),
        };
        self.submit_task(Op::UserTurn(Box::new(turn)), ledger);
    }

    fn rules(&self) -> Rules {
        let rules = Rules::of(self.mode, self.policy);
        match self.is_engine {
            true => Rules { policy: engine_policy(self.mode, self.policy), ..rules },
            false => rules,
        }
    }

    fn collaboration(&self, rules: Rules) -> Option<sqeq::CollaborationMode<'static>> {
        let mode = if rules.plan { "plan" } else { "default" };
        let settings = serde_json::json!({
            "model": self.model_in_use(),
            "reasoning_effort": self.effort_in_use().map(Effort::as_str),
            "developer_instructions": null,
        });
        let settings = Raw::of(&settings).unwrap_or_default();
        self.is_engine.then(|| sqeq::CollaborationMode { mode: mode.into(), settings })
    }

    fn sandbox(&self, rules: Rules) -> sqeq::SandboxPolicy<'static> {
        let is_typed = self.version >= FIRST_TYPED_SANDBOX;
        sqeq::SandboxPolicy {
            tag: if is_typed { sqeq::SandboxTag::Type } else { sqeq::SandboxTag::Mode },
            kind: match rules.policy.reach {
                Reach::ReadOnly => sqeq::SandboxKind::ReadOnly,
                Reach::WorkspaceWrite => {
                    let inside = sqeq::WorkspaceWrite {
                        network_access: rules.network,
                        writable_roots: self.directories.iter().cloned().map(Str::Owned).collect(),
                        ..Default::default()
                    };
                    sqeq::SandboxKind::WorkspaceWrite(inside)
                }
                Reach::DangerFullAccess => sqeq::SandboxKind::DangerFullAccess,
            },
        }
    }

    /// Taken into the running task, or the beginning of one.
    fn submit_input(&mut self, content: &[Content], ledger: &mut Ledger) {
        let items = input(content);
        let input = sqeq::UserInput { items, ..sqeq::UserInput::default() };
        self.submit_task(Op::UserInput(input), ledger);
    }

    /// A task is over, and its turn with it. A task that nobody knows ends the turn there is.
    fn end_task(&mut self, id: &str, end: TurnEnd, ledger: &mut Ledger) {
        let turn = match self.task(id) {
            Some(task) => Some(task.turn.clone()),
            None => ledger.oldest_turn().cloned(),
        };
        if let Some(turn) = turn {
            let usage = self.spent();
            ledger.end_turn(&turn, TurnEnd { usage, ..end });
        }
        self.waiting.clear();
        self.forget_task(ledger);
    }

    /// Nothing of one task is part of the next, also where the wire did not end its turn.
    fn forget_task(&mut self, ledger: &Ledger) {
        self.texts = text::Texts::default();
        self.calls = work::Calls::default();
        self.trouble = None;
        self.counts.before.clone_from(&self.counts.total);
        self.asked.retain(|id, _| ledger.open_requests().any(|open| open == id));
    }

    /// What this turn used: what was added to the session's count since it began.
    fn spent(&self) -> Option<Usage> {
        let spent = self.counts.total.since(&self.counts.before);
        let figures = [spent.input_tokens, spent.cached_input_tokens, spent.output_tokens];
        figures.iter().any(|figure| *figure > 0).then_some(spent)
    }

    /// An event that cannot be read and that somebody waits for.
    fn not_understood(&mut self, line: &[u8], ledger: &mut Ledger) {
        let Some(sniffed) = sqeq::sniff(line) else { return };
        let ends = ["task_complete", "turn_complete", "turn_aborted", "error"];
        if ends.contains(&sniffed.kind.as_str()) && !self.is_late(&sniffed.id, ledger) {
            let failure = Failure::new(
                FailureCode::Protocol,
                "the agent ended the turn in a form that is not understood",
            )
            .hint("update tieline; `tieline export KEY --format raw` has the line");
            self.end_task(&sniffed.id, TurnEnd::failed(failure, EndSignal::Wire), ledger);
        }
        self.refuse_unread(&sniffed, ledger);
    }
}

impl Driver for ProtoDriver {
    fn started(&mut self, ledger: &mut Ledger) {
        for text in std::mem::take(&mut self.left_out) {
            ledger.notice(NoticeLevel::Warning, "mcp_not_used", text);
        }
    }

    fn line(&mut self, line: &[u8], ledger: &mut Ledger) {
        match Event::parse(line) {
            Ok(event) => {
                self.spoke = true;
                self.event(&event, line, ledger);
            }
            Err(error) => {
                ledger.unparsed(error.to_string(), line);
                self.not_understood(line, ledger);
            }
        }
    }

    fn takes(&self) -> Takes {
        let is_whole = self.effort_in_use().is_some() || self.version >= FIRST_FREE_EFFORT;
        match self.is_engine {
            true => Takes::ALL,
            false => Takes {
                output_schema: is_whole && self.version >= FIRST_LISTS,
                summary: is_whole,
                ..Takes::default()
            },
        }
    }

    fn start_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        self.forget_task(ledger);
        match command::errand(prompt) {
            Ok(Some(errand)) if self.is_engine => return self.run_errand(&errand, ledger),
            Err(why) if self.is_engine => {
                let Some(turn) = ledger.current_turn().cloned() else { return };
                let failure = Failure::new(FailureCode::BadRequest, why);
                return ledger.end_turn(&turn, TurnEnd::failed(failure, EndSignal::Wire));
            }
            _ => {}
        }
        if Rules::of(self.mode, self.policy).plan && !self.told_no_plan && !self.is_engine {
            self.told_no_plan = true;
            let (code, text) = plan_mode_off("proto");
            ledger.notice(NoticeLevel::Warning, code, text);
        }
        let reach = Rules::of(self.mode, self.policy).policy.reach;
        if reach != Reach::DangerFullAccess && std::mem::take(&mut self.lacks_sandbox) {
            let text = "`codex proto` starts no sandbox on Linux: what would run in one fails, unless \
                        the agent asks and gets a yes; --yolo runs everything without";
            ledger.notice(NoticeLevel::Warning, "sandbox_missing", text);
        }
        match self.session {
            Some(_) => self.submit_turn(prompt, ledger),
            None => self.waiting.push(Waiting::Turn(prompt.clone())),
        }
    }

    fn start_errand(&mut self, errand: &Errand, ledger: &mut Ledger) -> Result<(), Refused> {
        match errand {
            _ if self.is_engine => {}
            Errand::Compact => {}
            Errand::Review { .. } if self.version >= FIRST_LISTS => {}
            Errand::Review { .. } => return Err(Refused(self.has_no("review"))),
            Errand::Undo => return Err(Refused(self.has_no("undo"))),
            Errand::Rollback { .. } => return Err(Refused(self.has_no("rollback of turns"))),
            Errand::Shell { .. } => {
                return Err(Refused(self.has_no("command of the user's own")));
            }
        }
        self.forget_task(ledger);
        self.run_errand(errand, ledger);
        Ok(())
    }

    fn inquire(
        &mut self,
        number: u64,
        inquiry: &Inquiry,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        let is_told = self.is_engine || self.version >= FIRST_LISTS;
        match inquiry {
            Inquiry::Prompts | Inquiry::Tools if is_told => {}
            _ if self.is_engine => {}
            Inquiry::Skills { .. } => return Err(Refused(self.has_no("list of skills"))),
            Inquiry::Prompts => return Err(Refused(self.has_no("list of prompts"))),
            Inquiry::Tools => return Err(Refused(self.has_no("list of tools"))),
            Inquiry::Models => return Err(Refused(self.has_no("list of models"))),
        }
        let op = match inquiry {
            Inquiry::Skills { dirs, reload } => Op::ListSkills(sqeq::ListSkills {
                cwds: dirs.iter().cloned().map(Str::Owned).collect(),
                force_reload: *reload,
            }),
            Inquiry::Prompts => Op::ListCustomPrompts,
            Inquiry::Tools => Op::ListMcpTools,
            Inquiry::Models => Op::ListModels,
        };
        self.submit(op, ledger);
        self.inquiries.insert(format!("sub-{}", self.n_submissions), number);
        Ok(())
    }

    fn steer(&mut self, prompt: &Prompt, ledger: &mut Ledger) -> Result<(), Refused> {
        match self.session {
            Some(_) => self.submit_input(&prompt.content, ledger),
            None => self.waiting.push(Waiting::Steer(prompt.content.clone())),
        }
        Ok(())
    }

    fn interrupt(&mut self, ledger: &mut Ledger) -> bool {
        if self.waiting.is_empty() {
            self.submit(Op::Interrupt, ledger);
        } else {
            // The agent never heard of it.
            self.end_task("", interrupted(EndSignal::Tieline), ledger);
        }
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
        let op = asked.answer(answer).map_err(Refused)?;
        let Some(asked) = self.asked.remove(request) else { return Ok(()) };
        self.submit(op, ledger);
        if let Answer::Deny { message, stop } = answer {
            let status = refused_by(by);
            // The agent says nothing more about it.
            self.refused(&asked, status, ledger);
            if *stop && !asked.stops() {
                self.submit(Op::Interrupt, ledger);
            }
            // The wire has no place for a reason, so a person's word goes in as a message.
            if let Some(message) = message.as_ref().filter(|_| !stop && by != Origin::Engine) {
                self.submit_input(&[Content::text(message.as_str())], ledger);
            }
        }
        Ok(())
    }

    fn set_mode(&mut self, mode: Mode, policy: Option<Policy>, ledger: &mut Ledger) -> bool {
        // Each turn carries its own; a running one goes on as it began.
        (self.mode, self.policy) = (mode, policy);
        ledger.configured(Configured { mode: Some(mode), policy, ..Configured::default() });
        true
    }

    fn set_model(&mut self, model: Option<&str>, ledger: &mut Ledger) -> bool {
        // What a process that was told a model would take by itself is not known.
        let Some(model) = model else { return self.model.is_none() };
        self.model = Some(model.to_owned());
        ledger.configured(Configured { model: self.model.clone(), ..Configured::default() });
        true
    }

    fn set_effort(&mut self, effort: Option<&str>, ledger: &mut Ledger) -> bool {
        let Some(effort) = effort else { return false };
        self.effort = Some(Effort::from(effort));
        let effort = Some(effort.to_owned());
        ledger.configured(Configured { effort, ..Configured::default() });
        true
    }

    fn turn_of_notice(
        &self,
        session: Option<&str>,
        turn: Option<&str>,
        ledger: &Ledger,
    ) -> Option<TurnId> {
        // These versions name the turn by its submission, and no session.
        let number: u64 = turn?.strip_prefix("sub-")?.parse().ok()?;
        let task = self.tasks.iter().rev().find(|task| task.submission == number)?;
        let is_mine = session.is_none() || session == ledger.session();
        Some(&task.turn).filter(|turn| is_mine && ledger.is_open(turn)).cloned()
    }

    fn leaving(&mut self, ledger: &mut Ledger) {
        // The end of its input does not end it.
        self.submit(Op::Shutdown, ledger);
    }

    fn ends_in_silence(&self) -> bool {
        let has_begun = !self.texts.is_empty() || !self.calls.is_empty();
        // Who tells that a task began tells its end.
        has_begun && !self.is_engine && !self.tells_tasks
    }

    fn conclude(&mut self, turn: &TurnId, end: TurnEnd, ledger: &mut Ledger) {
        ledger.end_turn(turn, TurnEnd { usage: self.spent(), ..end });
    }

    fn wake(&mut self, alarm: Alarm, ledger: &mut Ledger) {
        if alarm == NO_END
            && let Some(it) = self.trouble.take_if(|trouble| trouble.is_last)
        {
            self.end_task(&it.submission, TurnEnd::failed(it.failure, EndSignal::Wire), ledger);
        }
    }

    fn explain_exit(&self, exit: &ExitInfo) -> Failure {
        match &self.trouble {
            Some(trouble) => trouble.failure.clone(),
            None if self.is_engine => Failure::new(
                FailureCode::AgentExited,
                format!("the engine {} during the turn", exit.describe()),
            )
            .hint("the conversation goes on with the next message"),
            None => explain_exit(exit, self.spoke),
        }
    }
}

/// What our engine has of its own.
#[derive(Debug, Clone, Default)]
pub struct EngineOffer {
    /// What it calls its version.
    pub version: String,
    /// For how long its models can think.
    pub efforts: &'static [&'static str],
    /// Its models.
    pub models: Vec<ModelInfo>,
    /// The prompts that the user saved for it, as commands.
    pub prompts: Vec<AgentCommand>,
    /// The skills it has here, by name.
    pub skills: Vec<String>,
}

/// What a mode and a policy mean for the engine. It knows which commands are harmless, so in the mode
/// that asks it asks for all others, and for every change.
pub fn engine_policy(mode: Mode, policy: Option<Policy>) -> Policy {
    match (policy, mode) {
        (Some(policy), _) => policy,
        (None, Mode::Default) => Policy { ask: AskWhen::Untrusted, reach: Reach::ReadOnly },
        (None, mode) => Policy::of(mode),
    }
}

/// The version whose words the engine speaks.
const ENGINE: Version = Version(0, 99, 0);

/// Work that is not a message, in the wire's form.
fn errand_op(errand: &Errand) -> Op<'static> {
    let target = match errand {
        Errand::Compact => return Op::Compact,
        Errand::Undo => return Op::Undo,
        Errand::Rollback { turns } => {
            return Op::ThreadRollback(sqeq::ThreadRollback { num_turns: *turns });
        }
        Errand::Shell { command } => {
            let command = Str::Owned(command.clone());
            return Op::RunUserShellCommand(sqeq::RunUserShellCommand { command });
        }
        Errand::Review { target } => target,
    };
    let request = serde_json::json!({"target": review_target(target)});
    Op::Review(sqeq::Review { review_request: Raw::of(&request).unwrap_or_default() })
}

/// A review in the words of the versions that have no targets.
fn review_op(target: &ReviewTarget) -> Op<'static> {
    let (prompt, hint) = match target {
        ReviewTarget::Uncommitted => (
            "Review what is changed in the working tree and not committed, new files included."
                .to_owned(),
            "current changes".to_owned(),
        ),
        ReviewTarget::Branch { branch } => (
            format!("Review what this branch adds since it left {branch}."),
            format!("changes against {branch}"),
        ),
        ReviewTarget::Commit { sha, title } => (
            format!("Review the changes of the commit {sha}."),
            title.clone().unwrap_or_else(|| format!("commit {sha}")),
        ),
        ReviewTarget::Custom { instructions } => (instructions.clone(), instructions.clone()),
    };
    let request = serde_json::json!({"prompt": prompt, "user_facing_hint": hint});
    Op::Review(sqeq::Review { review_request: Raw::of(&request).unwrap_or_default() })
}

/// The form of the last message, in the wire's own.
fn schema(options: &TurnOptions) -> Raw<'static> {
    let schema = options.output_schema.as_ref();
    let raw = schema.and_then(|schema| RawValue::from_string(schema.as_str().to_owned()).ok());
    raw.map(Raw::Owned).unwrap_or_default()
}

/// Somebody stopped it.
fn interrupted(signal: EndSignal) -> TurnEnd {
    TurnEnd { status: TurnStatus::Interrupted, ..TurnEnd::completed(signal) }
}

/// A message's pieces in the wire's form.
fn input(content: &[Content]) -> Vec<InputItem<'static>> {
    let image = |url: String| InputItem::Image(sqeq::ImageItem { image_url: url.into() });
    let piece = |piece: &Content| match piece {
        Content::Image { mime, source: ImageSource::Base64(data) } => {
            image(format!("data:{mime};base64,{}", data.preview()))
        }
        Content::Image { source: ImageSource::Url(url), .. } => match url.strip_prefix("file://") {
            Some(path) => {
                InputItem::LocalImage(sqeq::LocalImageItem { path: path.to_owned().into() })
            }
            None => image(url.clone()),
        },
        Content::Skill { name, path: Some(path) } => InputItem::Skill(sqeq::NamedItem {
            name: name.clone().into(),
            path: path.clone().into(),
        }),
        Content::Mention { name, path } => InputItem::Mention(sqeq::NamedItem {
            name: name.clone().into(),
            path: path.clone().into(),
        }),
        other => InputItem::text(plain(other, '$').unwrap_or_default()),
    };
    content.iter().map(piece).collect()
}

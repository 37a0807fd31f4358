//! An agent within this process that plays its prompt: `ask ls; step r1; say Done.`

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tieline_agent::{
    Agent, Alarm, Driver, ExitInfo, Inside, Launch, Launching, Ledger, Meta, Plan, Refused, Takes,
    TurnEnd,
};
use tieline_event::{
    Abilities, Answer, Approval, ChangeKind, Choice, ChoiceKind, Configured, Content, EndSignal,
    Errand, Failure, FailureCode, FileChange, Gist, Inquiry, Item, ItemBody, ItemId, ItemStatus,
    Json, Kind, Mode, ModelInfo, Native, Notice, NoticeLevel, Origin, PlanEntry, PlanStatus,
    Policy, Prompt, Question, QuestionOption, RateLimit, Report, Request, RequestBody, RequestId,
    SavedPrompt, ServerTool, SkillInfo, SkillsAt, Stream, Text, ToolClass, ToolKind, TurnId,
    TurnOptions, TurnStatus, TurnStep, Usage,
};
use tieline_hub::{Hub, Limits, Registry};
use tieline_store::Store;

/// What was left for later goes on.
const NEXT: Alarm = Alarm::new("next");

/// A hub on a fresh store, with the playing agent in it.
pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) dir: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let store = Store::open(&dir.path().join("store"), tieline_store::Options::default());
        let hub = Hub::new(store.unwrap(), Arc::new(Players), Limits::default());
        Self { hub, dir }
    }

    pub(crate) fn workspace(&self) -> std::path::PathBuf {
        self.dir.path().join("work")
    }
}

struct Players;

impl Registry for Players {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::new(Player))
    }
}

struct Player;

impl Agent for Player {
    fn name(&self) -> &'static str {
        "play"
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        let driver = PlayDriver {
            context: format!("{:?}", (launch.mode, launch.policy)),
            model: launch.model.map(str::to_owned),
            ..PlayDriver::default()
        };
        Box::pin(async move {
            let run = |pipe: tieline_agent::Pipe| -> tieline_agent::Running {
                Box::pin(async move {
                    // All of it, so that its output stays open.
                    let mut pipe = pipe;
                    while pipe.input.recv().await.is_some() {}
                    0
                })
            };
            Ok(Plan::inside(Inside { name: "play", run: Box::new(run) }, Box::new(driver)))
        })
    }
}

#[derive(Default)]
struct PlayDriver {
    context: String,
    model: Option<String>,
    options: TurnOptions,
    script: VecDeque<String>,
    n: u32,
    /// What waits for an answer.
    asked: HashMap<RequestId, (Item, ItemBody)>,
    /// A message that is not over.
    cut: Option<Item>,
    holds: bool,
    stops: bool,
    big: Option<Big>,
    bookmark: Option<String>,
    used: Usage,
}

/// A text that comes in many pieces.
struct Big {
    id: String,
    n: usize,
    at: usize,
    whole: String,
}

fn item(id: &str, status: ItemStatus, body: ItemBody) -> Item {
    Item { id: ItemId::new(id), status, body }
}

fn command(line: &str, output: &str, exit_code: Option<i32>) -> ItemBody {
    ItemBody::Command {
        command: line.to_owned(),
        cwd: None,
        description: None,
        output: output.into(),
        exit_code,
        background: false,
        gist: None,
    }
}

fn tool(class: ToolClass, server: Option<&str>, name: &str, output: Vec<Content>) -> ItemBody {
    ItemBody::ToolCall {
        class,
        tool: name.to_owned(),
        server: server.map(str::to_owned),
        title: None,
        input: Json::from_text(r#"{"q":1}"#.to_owned()).ok(),
        output,
        gist: None,
    }
}

fn added(path: &str) -> ItemBody {
    let path = path.to_owned();
    let new_text = Some("alpha\n".into());
    let kind = ChangeKind::Add;
    let change = FileChange { path, kind, moved_to: None, old_text: None, new_text, diff: None };
    ItemBody::FileChange { changes: vec![change] }
}

impl PlayDriver {
    fn is_busy(&self) -> bool {
        self.holds || self.big.is_some()
    }

    fn name(&mut self) -> String {
        self.n += 1;
        format!("call_{}", self.n)
    }

    fn text(
        &mut self,
        stream: Stream,
        body: fn(Text) -> ItemBody,
        text: &str,
        ledger: &mut Ledger,
    ) {
        let id = self.name();
        let begun = item(&id, ItemStatus::InProgress, body(Text::default()));
        ledger.upsert_item(Meta::default(), begun);
        ledger.delta(&id, stream, text);
        ledger.complete_item(Meta::default(), item(&id, ItemStatus::Ok, body(text.into())));
    }

    fn done(&mut self, begun: ItemBody, done: ItemBody, status: ItemStatus, ledger: &mut Ledger) {
        let id = self.name();
        let native = Native { item: Some(format!("native_{id}")), ..Native::default() };
        let meta = Meta { parent: None, native };
        ledger.upsert_item(meta.clone(), item(&id, ItemStatus::InProgress, begun));
        if let ItemBody::Command { output, .. } = &done {
            ledger.delta(&id, Stream::Output, output.preview());
        }
        ledger.complete_item(meta, item(&id, status, done));
    }

    fn ask(&mut self, begun: ItemBody, done: ItemBody, request: RequestBody, ledger: &mut Ledger) {
        let id = self.name();
        let begun = item(&id, ItemStatus::InProgress, begun);
        ledger.upsert_item(Meta::default(), begun.clone());
        let option = |id: &str, kind| Choice { id: id.to_owned(), label: id.to_owned(), kind };
        let request = Request {
            id: RequestId::new(format!("r_{id}")),
            item: Some(begun.id.clone()),
            title: "May I?".to_owned(),
            reason: Some("because".to_owned()),
            body: request,
            options: vec![
                option("yes", ChoiceKind::AllowOnce),
                option("session", ChoiceKind::AllowSession),
                option("no", ChoiceKind::Deny),
                option("stop", ChoiceKind::DenyAndStop),
            ],
        };
        self.asked.insert(request.id.clone(), (begun, done));
        ledger.open_request(Meta::default(), request);
    }

    fn end(&mut self, end: TurnEnd, ledger: &mut Ledger) {
        self.script.clear();
        self.asked.clear();
        (self.cut, self.holds) = (None, false);
        if let Some(turn) = ledger.current_turn().cloned() {
            ledger.end_turn(&turn, TurnEnd { bookmark: self.bookmark.clone(), ..end });
        }
    }

    /// Plays until something waits.
    fn play(&mut self, ledger: &mut Ledger) {
        while ledger.current_turn().is_some() && self.asked.is_empty() && !self.is_busy() {
            let Some(line) = self.script.pop_front() else {
                return self.end(TurnEnd::completed(EndSignal::Wire), ledger);
            };
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            self.act(verb, rest, ledger);
        }
    }

    fn act(&mut self, verb: &str, rest: &str, ledger: &mut Ledger) {
        let approval = |changes: Vec<FileChange>, command: Option<&str>| {
            RequestBody::Approval(Approval {
                tool: "tool".to_owned(),
                command: command.map(str::to_owned),
                changes,
                suggestions: Json::from_text(r#"["git","push"]"#.to_owned()).into_iter().collect(),
                ..Approval::default()
            })
        };
        match verb {
            "say" => self.text(Stream::Text, |text| ItemBody::AgentMessage { text }, rest, ledger),
            "think" => self.text(
                Stream::Reasoning,
                |text| ItemBody::Reasoning { text, signature: None },
                rest,
                ledger,
            ),
            "plan" => self.text(Stream::Plan, |text| ItemBody::Plan { text }, rest, ledger),
            "tell" => {
                let told = format!("{:?} {} {:?}", self.options, self.context, self.model);
                self.act("say", &told, ledger);
            }
            "steps" => {
                let entry = |text: &str| PlanEntry {
                    text: text.to_owned(),
                    status: PlanStatus::InProgress,
                };
                let entries = rest.split('|').map(entry).collect();
                let plan = tieline_event::Plan { entries, explanation: None };
                ledger.emit(Kind::PlanUpdated(plan));
            }
            "run" => {
                let done = command(rest, "out\n", Some(0));
                self.done(command(rest, "", None), done, ItemStatus::Ok, ledger);
            }
            "ask" => {
                let done = command(rest, "out\n", Some(0));
                self.ask(command(rest, "", None), done, approval(vec![], Some(rest)), ledger);
            }
            "patch" => self.done(added(rest), added(rest), ItemStatus::Ok, ledger),
            "askpatch" => {
                let ItemBody::FileChange { changes } = added(rest) else { return };
                self.ask(added(rest), added(rest), approval(changes, None), ledger);
            }
            "asktool" => {
                let body = || tool(ToolClass::Mcp, Some("docs"), rest, vec![]);
                self.ask(body(), body(), approval(vec![], None), ledger);
            }
            "tool" => {
                let class = ToolClass::Generic;
                let done = tool(class, None, rest, vec![Content::text("given")]);
                self.done(tool(class, None, rest, vec![]), done, ItemStatus::Ok, ledger);
            }
            "search" => {
                let query = rest.to_owned();
                let body = ItemBody::WebSearch { query, output: vec![] };
                self.done(body.clone(), body, ItemStatus::Ok, ledger);
            }
            "image" => {
                let content = Content::Link { uri: rest.to_owned(), name: None };
                let body = ItemBody::Image { content };
                self.done(body.clone(), body, ItemStatus::Ok, ledger);
            }
            "question" => {
                let option = |label: &str| QuestionOption {
                    label: label.to_owned(),
                    description: Some("why not".to_owned()),
                    value: Some(label.to_lowercase()),
                };
                let question = Question {
                    id: "db".to_owned(),
                    header: Some("Database".to_owned()),
                    text: rest.to_owned(),
                    options: vec![option("Postgres"), option("SQLite")],
                    multiple: false,
                    free_text: true,
                    secret: false,
                };
                let body = RequestBody::Question { questions: vec![question] };
                let asking = || tool(ToolClass::Generic, None, "question", vec![]);
                self.ask(asking(), asking(), body, ledger);
            }
            "leaveplan" => {
                let gist = Some(Gist::of(ToolKind::Plan));
                let mut body = tool(ToolClass::Generic, None, "leave", vec![]);
                if let ItemBody::ToolCall { gist: it, .. } = &mut body {
                    *it = gist;
                }
                let plan = Some(rest.to_owned());
                self.ask(body.clone(), body, RequestBody::ExitPlan { plan }, ledger);
            }
            "step" => {
                self.bookmark = Some(rest.to_owned());
                let usage = None;
                ledger.emit(Kind::TurnStep(TurnStep { bookmark: self.bookmark.clone(), usage }));
            }
            "usage" => {
                self.used.input_tokens += 100;
                self.used.output_tokens += 10;
                self.used.context_window = Some(1000);
                ledger.emit(Kind::UsageUpdated(self.used.clone()));
            }
            "retry" => ledger.notice(NoticeLevel::Warning, "api_retry", rest),
            "warn" => ledger.notice(NoticeLevel::Warning, "odd", rest),
            "info" => ledger.notice(NoticeLevel::Info, "news", rest),
            "limit" => ledger.emit(Kind::Notice(Notice {
                level: NoticeLevel::Info,
                code: "rate_limit".to_owned(),
                text: "a quarter".to_owned(),
                rate_limit: Some(RateLimit {
                    status: "allowed".to_owned(),
                    limit: None,
                    used: Some(0.25),
                    resets_at: None,
                }),
            })),
            "compact" => {
                let body = ItemBody::Compaction { trigger: None, tokens_before: None };
                self.done(body.clone(), body, ItemStatus::Ok, ledger);
            }
            "review" => {
                let begun = ItemBody::Review { text: "hint".into(), outcome: None };
                // An outcome as JSON is one for programs, too.
                let outcome = serde_json::from_str(rest).ok();
                let over = ItemBody::Review { text: rest.into(), outcome };
                self.done(begun, over, ItemStatus::Ok, ledger);
            }
            "big" => {
                let id = self.name();
                let body = ItemBody::AgentMessage { text: Text::default() };
                ledger.upsert_item(Meta::default(), item(&id, ItemStatus::InProgress, body));
                self.big = Some(Big { id, n: rest.parse().unwrap(), at: 0, whole: String::new() });
                self.grow(ledger);
            }
            "cut" => {
                let id = self.name();
                let body = ItemBody::AgentMessage { text: Text::default() };
                let begun = item(&id, ItemStatus::InProgress, body);
                ledger.upsert_item(Meta::default(), begun.clone());
                ledger.delta(&id, Stream::Text, rest);
                (self.cut, self.holds) = (Some(begun), true);
            }
            "running" => {
                let id = self.name();
                let begun = item(&id, ItemStatus::InProgress, command(rest, "", None));
                ledger.upsert_item(Meta::default(), begun);
                ledger.delta(&id, Stream::Output, "begun\n");
                self.holds = true;
            }
            "hold" => self.holds = true,
            "fail" => {
                let failure = Failure::new(FailureCode::RateLimited, rest).hint("wait");
                self.end(TurnEnd::failed(failure, EndSignal::Wire), ledger);
            }
            _ => self.act("say", &format!("{verb} {rest}"), ledger),
        }
    }

    /// Some more of a large text, and the rest a little later.
    fn grow(&mut self, ledger: &mut Ledger) {
        let Some(Big { id, n, at, whole }) = &mut self.big else { return };
        for _ in 0..2000.min(*n - *at) {
            let piece = format!("{at:07} ");
            ledger.delta(id, Stream::Text, &piece);
            whole.push_str(&piece);
            *at += 1;
        }
        if at < n {
            return ledger.wake_after(NEXT, Duration::ZERO);
        }
        let body = ItemBody::AgentMessage { text: std::mem::take(whole).into() };
        ledger.complete_item(Meta::default(), item(id, ItemStatus::Ok, body));
        self.big = None;
    }

    fn write(&mut self, text: &str) {
        let lines = text.split(';').map(str::trim).filter(|line| !line.is_empty());
        self.script.extend(lines.map(str::to_owned));
    }
}

fn words(prompt: &Prompt) -> String {
    let texts = prompt.content.iter().filter_map(|piece| piece.as_text());
    let mut text: Vec<String> = texts.map(|text| text.preview().to_owned()).collect();
    for piece in &prompt.content {
        match piece {
            Content::Skill { name, .. } => text.push(format!("say skill {name}")),
            Content::Mention { name, .. } => text.push(format!("say mention {name}")),
            Content::Image { mime, .. } => text.push(format!("say image {mime}")),
            _ => {}
        }
    }
    text.join(";")
}

impl Driver for PlayDriver {
    fn started(&mut self, ledger: &mut Ledger) {
        ledger.set_session("native-session");
        ledger.configured(Configured {
            model: Some(self.model.clone().unwrap_or_else(|| "play-1".to_owned())),
            abilities: Some(Abilities { steering: true, ..Abilities::default() }),
            ..Configured::default()
        });
    }

    fn line(&mut self, _: &[u8], _: &mut Ledger) {}

    fn takes(&self) -> Takes {
        Takes::ALL
    }

    fn start_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        self.bookmark = None;
        self.options = prompt.options.clone();
        self.write(&words(prompt));
        self.play(ledger);
    }

    fn start_errand(&mut self, errand: &Errand, ledger: &mut Ledger) -> Result<(), Refused> {
        self.bookmark = None;
        match errand {
            Errand::Compact => self.write("compact"),
            Errand::Review { .. } => self.write("review It is good."),
            Errand::Undo => self.write("say Taken back."),
            Errand::Shell { command } => self.write(&format!("run {command}")),
            Errand::Rollback { turns } if *turns > 5 => {
                return Err(Refused("there are not so many turns".to_owned()));
            }
            Errand::Rollback { .. } => {}
        }
        self.play(ledger);
        Ok(())
    }

    fn inquire(
        &mut self,
        number: u64,
        inquiry: &Inquiry,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        let text = |text: &str| text.to_owned();
        let report = match inquiry {
            Inquiry::Skills { dirs, .. } => Report::Skills(vec![SkillsAt {
                dir: dirs.first().cloned().unwrap_or_default(),
                skills: vec![SkillInfo {
                    name: text("demo"),
                    description: text("d"),
                    short_description: None,
                    path: text("/s/SKILL.md"),
                    scope: text("repo"),
                    enabled: true,
                }],
                errors: vec![(text("/bad"), text("no skill"))],
            }]),
            Inquiry::Prompts => Report::Prompts(vec![SavedPrompt {
                name: text("p"),
                path: text("/p.md"),
                content: text("c"),
                description: None,
                argument_hint: None,
            }]),
            Inquiry::Tools => Report::Tools(vec![ServerTool {
                server: text("docs"),
                name: text("find"),
                description: None,
                input_schema: Json::from_text(text("{}")).unwrap(),
            }]),
            Inquiry::Models => Report::Models(vec![ModelInfo {
                id: text("m"),
                name: text("M"),
                description: None,
            }]),
        };
        ledger.report(number, Ok(report));
        Ok(())
    }

    fn steer(&mut self, prompt: &Prompt, ledger: &mut Ledger) -> Result<(), Refused> {
        self.write(&words(prompt));
        self.holds = false;
        // When it stands in the books.
        ledger.wake_after(NEXT, Duration::ZERO);
        Ok(())
    }

    fn interrupt(&mut self, ledger: &mut Ledger) -> bool {
        let end = TurnEnd::completed(EndSignal::Wire);
        self.end(TurnEnd { status: TurnStatus::Interrupted, ..end }, ledger);
        true
    }

    fn answer(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        _: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        let Some((begun, done)) = self.asked.remove(request) else {
            return Err(Refused("it is answered".to_owned()));
        };
        let (status, said) = match answer {
            Answer::Allow { scope, mode, .. } => {
                (ItemStatus::Ok, format!("allowed {scope:?} {mode:?}"))
            }
            Answer::Deny { stop: true, .. } => {
                self.stops = true;
                (ItemStatus::Declined, "stopped".to_owned())
            }
            Answer::Deny { message, .. } => (ItemStatus::Declined, format!("denied {message:?}")),
            Answer::Answers { answers } => (ItemStatus::Ok, format!("{answers:?}")),
            Answer::Choose { option } => (ItemStatus::Ok, option.clone()),
        };
        if status == ItemStatus::Ok
            && let ItemBody::Command { output, .. } = &done
        {
            ledger.delta(begun.id.as_str(), Stream::Output, output.preview());
        }
        ledger.complete_item(Meta::default(), Item { id: begun.id, status, body: done });
        self.script.push_front(format!("say {said}"));
        // When the answer stands in the books.
        ledger.wake_after(NEXT, Duration::ZERO);
        Ok(())
    }

    fn wake(&mut self, _: Alarm, ledger: &mut Ledger) {
        match std::mem::take(&mut self.stops) {
            true => drop(self.interrupt(ledger)),
            false => {
                self.grow(ledger);
                self.play(ledger);
            }
        }
    }

    fn set_mode(&mut self, mode: Mode, policy: Option<Policy>, _: &mut Ledger) -> bool {
        self.context = format!("{:?}", (mode, policy));
        true
    }

    fn set_model(&mut self, model: Option<&str>, _: &mut Ledger) -> bool {
        self.model = model.map(str::to_owned);
        true
    }

    fn set_effort(&mut self, effort: Option<&str>, _: &mut Ledger) -> bool {
        self.context.push_str(&format!(" {effort:?}"));
        true
    }

    fn turn_of_notice(&self, _: Option<&str>, _: Option<&str>, _: &Ledger) -> Option<TurnId> {
        None
    }

    fn explain_exit(&self, _: &ExitInfo) -> Failure {
        Failure::new(FailureCode::AgentExited, "the play is over")
    }
}

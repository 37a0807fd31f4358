//! The player: a script and the host's lines in, frames and work out.
//!
//! It does nothing itself. [`Player::advance`] says what it waits for: a pause, a piece of work in
//! the workspace, or the host. A step of the script becomes a few acts, and between any two of them
//! the host may have said something.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_event::Mode;
use tieline_wire::claude::serve::{self, Decision, HostRequest, Said, Tokens};
use tieline_wire::claude::{ControlResponse, Message};
use tieline_wire::text::Str;

use super::permission::{Permissions, Verdict};
use super::script::{Choice, Progress, Script, Step, Steps};
use super::tool::{Given, Grant, Outcome, REJECTED, STOPPED, Tool, Work};
use super::voice::{End, Kind, Reason, Voice};

/// How a player is set up.
#[derive(Debug)]
pub(super) struct Setup {
    /// The workspace.
    pub(super) cwd: String,
    pub(super) mode: Mode,
    /// The time between two words.
    pub(super) pace: Duration,
    /// How often it passes.
    pub(super) effort: u32,
    /// The session goes on: its opening was played before.
    pub(super) resumed: bool,
}

impl Setup {
    /// The pause between two words.
    fn pause(&self) -> Duration {
        self.pace * self.effort
    }
}

/// What the player waits for.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Nothing; much is to be written.
    Write,
    /// Time.
    Pause(Duration),
    /// What comes of this, by [`Player::worked`].
    Work(Work),
    /// The host.
    Input,
    /// Nothing any more.
    End,
}

/// Plays a script.
#[derive(Debug)]
pub(super) struct Player {
    script: Script,
    /// The section that the next message plays.
    section: usize,
    setup: Setup,
    permissions: Permissions,
    voice: Voice,
    turn: Option<Turn>,
    total: Tokens,
    input_over: bool,
    now: Duration,
}

#[derive(Debug)]
struct Turn {
    prompt: String,
    answer: String,
    /// What the user said since.
    said: Vec<String>,
    /// Where in the script we are, innermost loop last.
    at: Vec<Place>,
    refused: Option<Steps>,
    acts: VecDeque<Act>,
    doing: Doing,
    plan: Vec<Todo>,
    last_text: String,
    denials: Vec<Value>,
    tokens: Tokens,
    began: Duration,
}

/// A place in a list of steps that is played some more times.
#[derive(Debug)]
struct Place {
    steps: Steps,
    next: usize,
    more: u32,
}

/// The smallest things a step consists of.
#[derive(Debug)]
enum Act {
    Begin(Kind),
    Grow(String),
    Pause(Duration),
    Finish,
    Use(Tool),
    Fail { status: Option<u16>, text: String },
}

#[derive(Debug)]
enum Doing {
    Playing,
    Asking { request_id: String, tool: Tool },
    Working { tool: Tool },
}

#[derive(Debug, Clone)]
struct Todo {
    text: String,
    status: &'static str,
}

impl Player {
    pub(super) fn new(script: Script, setup: Setup, voice: Voice) -> Self {
        Self {
            section: usize::from(setup.resumed),
            permissions: Permissions::new(setup.mode),
            script,
            setup,
            voice,
            turn: None,
            total: Tokens::default(),
            input_over: false,
            now: Duration::ZERO,
        }
    }

    /// Takes what is to be written.
    pub(super) fn take_writes(&mut self) -> Vec<u8> {
        self.voice.take()
    }

    /// Whether a turn runs.
    pub(super) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Plays on. `now` is the time since the process began.
    pub(super) fn advance(&mut self, now: Duration) -> Next {
        self.now = now;
        loop {
            if self.voice.is_full() {
                return Next::Write;
            }
            let Some(turn) = &mut self.turn else {
                return if self.input_over { Next::End } else { Next::Input };
            };
            match &turn.doing {
                Doing::Playing => {}
                Doing::Asking { .. } if self.input_over => {
                    let message = Some(Str::Borrowed("Stream closed"));
                    let gone = Decision { behavior: deny(), message, ..Decision::default() };
                    self.decided(gone);
                    continue;
                }
                Doing::Asking { .. } => return Next::Input,
                Doing::Working { tool } => match tool.work() {
                    Ok(Some(work)) => return Next::Work(work),
                    Ok(None) => {
                        let given = self.talked();
                        self.give(given);
                        continue;
                    }
                    Err(reason) => {
                        self.give(Given::error(&reason));
                        continue;
                    }
                },
            }
            let Some(act) = turn.acts.pop_front() else {
                match turn.next_step() {
                    Some(step) => self.begin(step),
                    None => self.finish(),
                }
                continue;
            };
            match act {
                Act::Begin(kind) => self.voice.begin_block(kind),
                Act::Grow(text) => self.voice.grow(&text),
                Act::Pause(time) if time.is_zero() => {}
                Act::Pause(time) => return Next::Pause(time),
                Act::Finish => turn.last_text = self.voice.end_block(),
                Act::Use(tool) => self.use_tool(tool),
                Act::Fail { status, text } => {
                    self.voice.end_message(None);
                    self.voice.api_error(status, &text);
                    self.end_turn(Reason::ApiError { status, text: &text });
                }
            }
        }
    }

    /// The host said a line.
    ///
    /// # Errors
    /// When it is not one of the protocol, which the real agent does not survive either.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), serde_json::Error> {
        match serve::parse(line)? {
            Said::User(message) => self.user(&message),
            Said::Request { request_id, request } => self.request(&request_id, &request),
            Said::Answer(answer) => self.answered(&answer),
            Said::Other => {}
        }
        Ok(())
    }

    /// The host says nothing any more: what was begun is played to its end.
    pub(super) fn input_over(&mut self) {
        self.input_over = true;
    }

    /// The work that was asked for is done.
    pub(super) fn worked(&mut self, outcome: Outcome) {
        if let Some(Turn { doing: Doing::Working { tool }, .. }) = &self.turn {
            let given = tool.given(outcome);
            self.give(given);
        }
    }

    fn user(&mut self, message: &Message<'_>) {
        let texts: Vec<&str> = message
            .content
            .0
            .iter()
            .map(|block| block.text.as_deref().unwrap_or("[image]"))
            .collect();
        let prompt = texts.join("\n");
        match &mut self.turn {
            Some(turn) => turn.said.push(prompt),
            None => self.begin_turn(prompt),
        }
    }

    fn begin_turn(&mut self, prompt: String) {
        if prompt.trim().strip_prefix('/') == Some(super::RESTART) {
            self.section = 0;
        }
        let last = self.script.sections.len().saturating_sub(1);
        let Some(section) = self.script.sections.get(self.section.min(last)) else { return };
        self.section = self.section.saturating_add(1);
        self.turn = Some(Turn {
            prompt,
            answer: String::new(),
            said: Vec::new(),
            at: vec![Place { steps: section.steps.clone(), next: 0, more: 0 }],
            refused: section.refused.clone(),
            acts: VecDeque::new(),
            doing: Doing::Playing,
            plan: Vec::new(),
            last_text: String::new(),
            denials: Vec::new(),
            tokens: Tokens::default(),
            began: self.now,
        });
        self.voice.init(&self.setup.cwd, super::mode_name(self.permissions.mode()));
    }

    fn request(&mut self, id: &str, request: &HostRequest<'_>) {
        let answer = match &*request.subtype {
            "initialize" => Ok(self.introduction()),
            "set_permission_mode" => {
                let mode = request.mode.as_deref().unwrap_or_default();
                self.permissions.set_mode(mode).map(|()| json!({"mode": mode}))
            }
            "set_model" => {
                let model = request.model.as_deref().unwrap_or("default");
                super::model_name(model).map(|name| {
                    name.clone_into(&mut self.voice.model);
                    json!({"model": name})
                })
            }
            "apply_flag_settings" => {
                let effort = request.settings.as_ref().and_then(|it| it.effort_level.as_deref());
                let effort = effort.unwrap_or(super::DEFAULT_EFFORT);
                super::effort(effort).map(|effort| {
                    self.setup.effort = effort;
                    json!({})
                })
            }
            "interrupt" => {
                self.interrupt(id);
                return;
            }
            other => Err(format!("Unsupported control request subtype: {other}")),
        };
        self.voice.answer(id, answer);
    }

    fn introduction(&self) -> Value {
        let models: Vec<Value> = super::MODELS
            .iter()
            .map(|(value, shown, description)| {
                json!({
                    "value": value,
                    "resolvedModel": super::DEFAULT_MODEL,
                    "displayName": shown,
                    "description": description,
                    "supportedEffortLevels": super::EFFORTS.map(|effort| effort.0),
                })
            })
            .collect();
        json!({
            "commands": [{
                "name": super::RESTART,
                "description": "Play the script from its beginning",
                "argumentHint": "",
            }],
            "agents": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": models,
            "account": {},
            "pid": std::process::id(),
            "claude_code_version": super::VERSION,
            "current_permission_mode": super::mode_name(self.permissions.mode()),
        })
    }

    fn interrupt(&mut self, id: &str) {
        let doing =
            self.turn.as_mut().map(|turn| std::mem::replace(&mut turn.doing, Doing::Playing));
        if let Some(Doing::Asking { request_id, .. }) = &doing {
            self.voice.take_back(request_id);
        }
        self.voice.answer(id, Ok(json!({"still_queued": []})));
        match doing {
            None => {}
            Some(Doing::Playing) => {
                self.voice.cut_message();
                self.end_turn(Reason::AbortedStreaming);
            }
            Some(Doing::Asking { tool, .. }) => {
                self.note_denial(&tool);
                self.stop_at(&tool, REJECTED.to_owned());
            }
            Some(Doing::Working { tool }) => self.stop_at(&tool, format!("{REJECTED}{STOPPED}")),
        }
    }

    /// The turn ends at a tool that did not do its work.
    fn stop_at(&mut self, tool: &Tool, text: String) {
        self.voice.tool_result(tool, &Given::rejected(text));
        self.voice.put_in("[Request interrupted by user for tool use]");
        self.end_turn(Reason::AbortedTools);
    }

    fn answered(&mut self, answer: &ControlResponse<'_>) {
        let Some(Turn { doing: Doing::Asking { request_id, .. }, .. }) = &self.turn else { return };
        if *request_id != *answer.request_id {
            return;
        }
        let decision = answer.response.map(|raw| serde_json::from_str::<Decision<'_>>(raw.get()));
        self.decided(match decision {
            Some(Ok(decision)) => decision,
            // An error or nonsense is no yes.
            Some(Err(_)) | None => {
                Decision { behavior: deny(), message: answer.error.clone(), ..Decision::default() }
            }
        });
    }

    fn decided(&mut self, decision: Decision<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let doing = std::mem::replace(&mut turn.doing, Doing::Playing);
        let Doing::Asking { mut tool, .. } = doing else {
            turn.doing = doing;
            return;
        };
        if decision.behavior != "allow" {
            self.note_denial(&tool);
            if decision.interrupt {
                self.stop_at(&tool, REJECTED.to_owned());
                return;
            }
            let message = decision.message.as_deref().unwrap_or(REJECTED).to_owned();
            self.refuse(&tool, &message);
            return;
        }
        // The plan that is shown for approval is not part of the question's input.
        let edited = decision.updated_input.filter(|_| tool.name != "ExitPlanMode");
        if let Some(input) = edited.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            tool.input = input;
        }
        let before = self.permissions.mode();
        if tool.name == "ExitPlanMode" && self.permissions.set_mode("default").is_err() {
            tracing::warn!("plan mode stays");
        }
        self.permissions.update(decision.updated_permissions);
        if self.permissions.mode() != before {
            self.voice.mode(super::mode_name(self.permissions.mode()));
        }
        self.permissions.allowed(&tool);
        tool.granted = Grant::User;
        turn.doing = Doing::Working { tool };
    }

    fn use_tool(&mut self, tool: Tool) {
        self.voice.tool_use(&tool);
        match self.permissions.verdict(&tool) {
            Verdict::Go => self.set_doing(Doing::Working { tool }),
            Verdict::Refuse(reason) => {
                self.note_denial(&tool);
                self.refuse(&tool, reason);
            }
            Verdict::Ask { suggestions } => {
                let request_id = self.voice.ask(&question(&tool, &self.setup.cwd, &suggestions));
                self.set_doing(Doing::Asking { request_id, tool });
            }
        }
    }

    /// A tool is not allowed and the turn goes on, perhaps on another way.
    fn refuse(&mut self, tool: &Tool, message: &str) {
        self.voice.tool_result(tool, &Given::denied(message));
        if let Some(turn) = &mut self.turn
            && let Some(steps) = turn.refused.take()
        {
            turn.acts.clear();
            turn.at = vec![Place { steps, next: 0, more: 0 }];
        }
    }

    fn note_denial(&mut self, tool: &Tool) {
        if let Some(turn) = &mut self.turn {
            turn.denials.push(json!({
                "tool_name": tool.name,
                "tool_use_id": tool.id,
                "tool_input": tool.input,
            }));
        }
    }

    /// The tool at work is done.
    fn give(&mut self, given: Given) {
        let Some(turn) = &mut self.turn else { return };
        if let Doing::Working { tool } = std::mem::replace(&mut turn.doing, Doing::Playing) {
            self.voice.tool_result(&tool, &given);
        }
    }

    fn set_doing(&mut self, doing: Doing) {
        if let Some(turn) = &mut self.turn {
            turn.doing = doing;
        }
    }

    /// What a tool that only talks gives back.
    fn talked(&mut self) -> Given {
        let Some(Turn { doing: Doing::Working { tool }, answer, .. }) = &mut self.turn else {
            return Given::error("no tool is at work");
        };
        match &*tool.name {
            _ if let Some(text) = &tool.gives => {
                let blocks = json!([{"type": "text", "text": text}]);
                Given::new(text, blocks)
            }
            "AskUserQuestion" => {
                let answers = tool.input.get("answers").and_then(Value::as_object);
                let mut told = String::new();
                for (question, chosen) in answers.into_iter().flatten() {
                    let chosen = chosen.as_str().unwrap_or_default();
                    chosen.clone_into(answer);
                    told.push_str(&format!("\"{question}\"=\"{chosen}\". "));
                }
                let content = format!(
                    "Your questions have been answered: {told}You can now continue with these \
                     answers in mind."
                );
                Given::new(content, tool.input.clone())
            }
            "ExitPlanMode" => Given::new(
                "User has approved exiting plan mode. You can now proceed.",
                json!({"plan": tool.field("plan"), "isAgent": false}),
            ),
            _ => Given::new(
                "Todos have been modified successfully. Ensure that you continue to use the todo \
                 list to track your progress. Please proceed with the current tasks if applicable",
                json!({"newTodos": tool.input.get("todos")}),
            ),
        }
    }

    /// Takes a step apart.
    fn begin(&mut self, step: Step) {
        let Some(turn) = &mut self.turn else { return };
        let mut gives = None;
        let (name, input) = match step {
            Step::Say(text) => {
                let text = turn.expand(&text);
                turn.stream(Kind::Text, &text, self.setup.pause());
                return;
            }
            Step::Think(text) => {
                let text = turn.expand(&text);
                turn.stream(Kind::Thinking, &text, self.setup.pause());
                return;
            }
            Step::Sleep(time) => {
                turn.acts.push_back(Act::Pause(time));
                return;
            }
            Step::Fail { status, text } => {
                let number = status.map(|status| format!("{status} ")).unwrap_or_default();
                let text = format!("API Error: {number}{}", turn.expand(&text));
                turn.acts.push_back(Act::Fail { status, text });
                return;
            }
            Step::Usage { input, output } => {
                turn.tokens.input_tokens += input;
                turn.tokens.output_tokens += output;
                return;
            }
            Step::Loop { times, steps } => {
                if let Some(more) = times.checked_sub(1) {
                    turn.at.push(Place { steps, next: 0, more });
                }
                return;
            }
            Step::Run(command) => ("Bash".into(), json!({"command": command})),
            Step::Write { path, content } => {
                let content = turn.expand(&content);
                let path = in_workspace(&self.setup.cwd, &path);
                ("Write".into(), json!({"file_path": path, "content": content}))
            }
            Step::Edit { path, old, new } => {
                let path = in_workspace(&self.setup.cwd, &path);
                let (old, new) = (turn.expand(&old), turn.expand(&new));
                let input = json!({
                    "replace_all": false,
                    "file_path": path,
                    "old_string": old,
                    "new_string": new,
                });
                ("Edit".into(), input)
            }
            Step::Ask { question, options } => {
                ("AskUserQuestion".into(), questions(&turn.expand(&question), &options))
            }
            Step::Call { tool, input, gives: text } => {
                gives = Some(text);
                (Cow::Owned(tool), input)
            }
            Step::ExitPlan(text) => ("ExitPlanMode".into(), json!({"plan": turn.expand(&text)})),
            Step::Plan(steps) => {
                turn.plan =
                    steps.into_iter().map(|text| Todo { text, status: "pending" }).collect();
                ("TodoWrite".into(), turn.todos())
            }
            Step::Mark { step, status } => {
                if let Some(todo) = turn.plan.get_mut(step - 1) {
                    todo.status = match status {
                        Progress::Doing => "in_progress",
                        Progress::Done => "completed",
                    };
                }
                ("TodoWrite".into(), turn.todos())
            }
        };
        let id = self.voice.tool_id();
        let tool = Tool { id, name, input, gives, granted: Grant::Settings };
        turn.acts.push_back(Act::Use(tool));
    }

    /// The section is played: what the user said meanwhile is answered, then the turn ends.
    fn finish(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if !turn.said.is_empty() {
            let said: Vec<String> = turn.said.drain(..).map(|text| format!("\"{text}\"")).collect();
            let text = format!("While I was at it you said {}. Noted.", said.join(" and "));
            turn.stream(Kind::Text, &text, self.setup.pause());
            return;
        }
        let text = std::mem::take(&mut turn.last_text);
        self.voice.end_message(Some("end_turn"));
        self.end_turn(Reason::Completed { text: &text });
    }

    fn end_turn(&mut self, reason: Reason<'_>) {
        let Some(turn) = self.turn.take() else { return };
        self.total.input_tokens += turn.tokens.input_tokens;
        self.total.output_tokens += turn.tokens.output_tokens;
        let took = self.now.saturating_sub(turn.began);
        self.voice.result(&End {
            reason,
            tokens: turn.tokens,
            total: self.total,
            denials: &turn.denials,
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

impl Turn {
    /// The next step of the script, with loops taken in order.
    fn next_step(&mut self) -> Option<Step> {
        loop {
            let place = self.at.last_mut()?;
            if let Some(step) = place.steps.get(place.next) {
                place.next += 1;
                return Some(step.clone());
            }
            match place.more.checked_sub(1) {
                Some(more) => (place.next, place.more) = (0, more),
                None => {
                    self.at.pop();
                }
            }
        }
    }

    fn stream(&mut self, kind: Kind, text: &str, pace: Duration) {
        self.acts.push_back(Act::Begin(kind));
        for word in text.split_inclusive(char::is_whitespace) {
            self.acts.push_back(Act::Grow(word.to_owned()));
            self.acts.push_back(Act::Pause(pace));
        }
        self.acts.push_back(Act::Finish);
    }

    /// Puts what the user said into a text. What is put in is not looked at again.
    fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            expanded.push_str(before);
            if let Some(after) = after.strip_prefix("prompt}") {
                expanded.push_str(&self.prompt);
                rest = after;
            } else if let Some(after) = after.strip_prefix("answer}") {
                expanded.push_str(&self.answer);
                rest = after;
            } else {
                expanded.push('{');
                rest = after;
            }
        }
        expanded.push_str(rest);
        expanded
    }

    fn todos(&self) -> Value {
        let todo = |todo: &Todo| {
            let Todo { text, status } = todo;
            json!({"content": text, "status": status, "activeForm": text})
        };
        json!({"todos": self.plan.iter().map(todo).collect::<Vec<_>>()})
    }
}

/// The body of `can_use_tool`.
fn question(tool: &Tool, cwd: &str, suggestions: &[Value]) -> Value {
    let interactive = matches!(&*tool.name, "AskUserQuestion" | "ExitPlanMode");
    // The real agent shows the plan in the tool call only.
    let input = if tool.name == "ExitPlanMode" { json!({}) } else { tool.input.clone() };
    let mut question = json!({
        "subtype": "can_use_tool",
        "tool_name": tool.name,
        "display_name": tool.name,
        "input": input,
        "tool_use_id": tool.id,
    });
    if interactive {
        question["requires_user_interaction"] = true.into();
    } else {
        question["permission_suggestions"] = suggestions.into();
    }
    if let Some(path) = tool.field("file_path") {
        let name = path.strip_prefix(cwd).unwrap_or(path).trim_start_matches('/');
        question["description"] = name.into();
    }
    question
}

fn questions(question: &str, options: &[Choice]) -> Value {
    let option = |Choice { label, description }: &Choice| json!({"label": label, "description": description});
    let header: String = question.split_whitespace().next().unwrap_or_default().into();
    json!({"questions": [{
        "question": question,
        "header": header.trim_end_matches(['?', ',', ':']),
        "options": options.iter().map(option).collect::<Vec<_>>(),
        "multiSelect": false,
    }]})
}

/// The tools of the real agent are given absolute paths.
fn in_workspace(cwd: &str, path: &str) -> String {
    std::path::Path::new(cwd).join(path).display().to_string()
}

fn deny<'a>() -> Str<'a> {
    Str::Borrowed("deny")
}

//! What the server is told: the greeting, the thread, turns and their rules.

use serde_json::{Map, Value, json};
use tieline_event::{
    AskWhen, Content, Failure, FailureCode, ImageSource, McpTransport, NoticeLevel, Prompt, Reach,
    TurnId, TurnOptions,
};

use super::driver::{
    AppDriver, FIRST_REVIEWER, FIRST_STEER, GREETING, GREETING_ENDS, Greeting, KEBAB,
    WITHOUT_ON_FAILURE, What,
};
use super::errand::Errand;
use super::order::{Order, order};
use super::review::Review;
use crate::codex::Rules;
use crate::ledger::Ledger;
use crate::servers;
use crate::words::plain;

impl AppDriver {
    pub(super) fn greet(&mut self, ledger: &mut Ledger) {
        self.greeting = Greeting::Asked;
        let params = json!({
            "clientInfo": {
                "name": "tieline",
                "title": "tieline",
                "version": env!("CARGO_PKG_VERSION"),
            },
            // Planning is an experiment of the server's.
            "capabilities": {"experimentalApi": true},
        });
        self.call(What::Initialize, "initialize", params, ledger);
        ledger.wake_after(GREETING_ENDS, GREETING);
    }

    /// Begins, resumes or forks the thread.
    pub(super) fn open(&mut self, ledger: &mut Ledger) {
        self.is_opening = true;
        let Rules { policy, .. } = self.rules();
        let mut params = json!({
            "cwd": self.workspace,
            "approvalPolicy": self.approval_policy(),
            "sandbox": self.spelled(policy.reach.name()),
        });
        if let Some(reviewer) = self.reviewer() {
            params["approvalsReviewer"] = json!(reviewer);
        }
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        let settings = self.settings(ledger);
        if !settings.is_empty() {
            params["config"] = Value::Object(settings);
        }
        let method = match &self.resume {
            None => "thread/start",
            Some((session, fork)) => {
                params["threadId"] = json!(session);
                // The history is ours already; where it is cut, its turns show whether it was.
                params["excludeTurns"] = json!(self.fork_after.is_none());
                if let Some(turn) = &self.fork_after {
                    params["lastTurnId"] = json!(turn);
                }
                if *fork { "thread/fork" } else { "thread/resume" }
            }
        };
        let rules = self.rules();
        let is_all = self.resume.is_none() && !rules.network && self.directories.is_empty();
        let told = Some(rules).filter(|_| is_all);
        self.call(What::Open(told), method, params, ledger);
    }

    /// Tells the server about a turn.
    pub(super) fn begin(&mut self, turn: TurnId, prompt: &Prompt, ledger: &mut Ledger) {
        let thread = self.thread.clone().unwrap_or_default();
        let order = match order(prompt, &self.prompts) {
            Ok(order) => order,
            Err(failure) => return self.fail(&turn, failure, ledger),
        };
        let needs_settings =
            matches!(order, Order::Compact | Order::Review(_) | Order::Run(Errand::SetGoal(_)));
        if needs_settings && self.told != Some(self.rules()) {
            // Only a turn carries its rules; these run with what the thread has.
            let mut params = json!({
                "threadId": thread,
                "approvalPolicy": self.approval_policy(),
                "sandboxPolicy": self.sandbox_policy(),
            });
            if let Some(reviewer) = self.reviewer() {
                params["approvalsReviewer"] = json!(reviewer);
            }
            if let Some(model) = &self.model {
                params["model"] = json!(model);
            }
            if let Some(effort) = &self.effort {
                params["effort"] = json!(effort);
            }
            let what = What::Settings(turn, prompt.clone(), self.rules());
            return self.call(what, "thread/settings/update", params, ledger);
        }
        self.review = matches!(order, Order::Review(_)).then(Review::default);
        match &order {
            Order::Run(errand) => self.run(errand.clone(), turn, ledger),
            Order::Compact => {
                let params = json!({"threadId": thread});
                self.call(What::Compact(turn), "thread/compact/start", params, ledger);
            }
            Order::Review(target) => {
                let params = json!({"threadId": thread, "target": target, "delivery": "inline"});
                self.call(What::Review(turn), "review/start", params, ledger);
            }
            Order::Say => self.tell_turn(turn, prompt, self.rules().plan, ledger),
            Order::SayInstead(prompt) => self.tell_turn(turn, prompt, self.rules().plan, ledger),
            Order::Plan(_) if self.model.is_none() && self.model_in_use.is_none() => {
                let text = format!("Codex {} does not say with which model to plan", self.version);
                let failure = Failure::new(FailureCode::BadRequest, text);
                self.fail(&turn, failure.hint("choose a model first"), ledger);
            }
            Order::Plan(prompt) => self.tell_turn(turn, prompt, true, ledger),
        }
    }

    fn tell_turn(&mut self, turn: TurnId, prompt: &Prompt, plan: bool, ledger: &mut Ledger) {
        let thread = self.thread.clone().unwrap_or_default();
        let params = self.turn_params(&thread, prompt, plan);
        self.told = Some(self.rules());
        self.call(What::Turn(turn), "turn/start", params, ledger);
    }

    /// Everything a turn depends on is said with each turn, so that a thread from another process
    /// has the mode, the model and the directory this conversation has.
    fn turn_params(&mut self, thread: &str, prompt: &Prompt, plan: bool) -> Value {
        let mut params = json!({
            "threadId": thread,
            "input": self.input(prompt),
            "cwd": self.workspace,
            "approvalPolicy": self.approval_policy(),
            "sandboxPolicy": self.sandbox_policy(),
        });
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        if let Some(effort) = &self.effort {
            params["effort"] = json!(effort);
        }
        if let Some(reviewer) = self.reviewer() {
            params["approvalsReviewer"] = json!(reviewer);
        }
        let TurnOptions { output_schema, personality, summary, .. } = &prompt.options;
        if let Some(schema) = output_schema.as_ref().and_then(|it| it.read::<Value>().ok()) {
            params["outputSchema"] = schema;
        }
        if let Some(personality) = personality {
            params["personality"] = json!(personality);
        }
        if let Some(summary) = summary {
            params["summary"] = json!(summary);
        }
        if let Some(tier) = self.tier {
            params["serviceTier"] = json!(tier);
        }
        let model = self.model.as_ref().or(self.model_in_use.as_ref());
        if (plan || self.may_plan)
            && let Some(model) = model
        {
            let mode = if plan { "plan" } else { "default" };
            params["collaborationMode"] = json!({
                "mode": mode,
                "settings": {
                    "model": model,
                    "reasoning_effort": self.effort.as_ref().or(self.effort_in_use.as_ref()),
                    "developer_instructions": null,
                },
            });
            self.may_plan = plan;
        }
        params
    }

    /// What commands can reach. What the server made of it when it opened the thread has the
    /// directories of the user's own configuration in it.
    pub(super) fn sandbox_policy(&self) -> Value {
        let rules = self.rules();
        let plain = match rules.policy.reach {
            Reach::ReadOnly => json!({"type": "readOnly"}),
            Reach::WorkspaceWrite => json!({
                "type": "workspaceWrite",
                "writableRoots": [],
                "networkAccess": false,
                "excludeTmpdirEnvVar": false,
                "excludeSlashTmp": false,
            }),
            Reach::DangerFullAccess => json!({"type": "dangerFullAccess"}),
        };
        // The thread may have been opened, or left by somebody, in another mode.
        let made = self.sandbox.clone().filter(|made| made.get("type") == plain.get("type"));
        let made = made.unwrap_or(plain);
        if rules.policy.reach != Reach::WorkspaceWrite {
            return made;
        }
        let made = with(made, "networkAccess", json!(rules.network));
        if self.directories.is_empty() {
            return made;
        }
        let told = made.get("writableRoots").and_then(Value::as_array).cloned();
        let mut roots = told.unwrap_or_default();
        for directory in self.directories.iter().map(|directory| json!(directory)) {
            if !roots.contains(&directory) {
                roots.push(directory);
            }
        }
        with(made, "writableRoots", json!(roots))
    }

    /// Settings of the thread beside those it has words for. Each stands under its own key: a table
    /// would take the place of the user's whole table.
    fn settings(&self, ledger: &mut Ledger) -> Map<String, Value> {
        let mut settings = Map::new();
        if let Some(effort) = &self.effort {
            settings.insert("model_reasoning_effort".to_owned(), json!(effort));
        }
        for (name, transport) in servers::named(&self.servers) {
            let server = match transport {
                McpTransport::Stdio { command, args, env } => {
                    json!({"command": command, "args": args, "env": env})
                }
                McpTransport::Http { url, headers } => {
                    json!({"url": url, "http_headers": headers})
                }
                McpTransport::Sse { .. } => {
                    let text = format!(
                        "the client's MCP server {name} is not used: Codex cannot speak by \
                         server-sent events"
                    );
                    ledger.notice(NoticeLevel::Warning, "mcp_not_used", text);
                    continue;
                }
            };
            settings.insert(format!("mcp_servers.{name}"), server);
        }
        settings
    }

    pub(super) fn rules(&self) -> Rules {
        Rules::of(self.mode, self.policy)
    }

    /// Who judges what is asked for, where that is not left to the user's own configuration.
    fn reviewer(&mut self) -> Option<&'static str> {
        let is_reviewed = self.rules().reviewed && self.version >= FIRST_REVIEWER;
        self.may_review |= is_reviewed;
        self.may_review.then_some(if is_reviewed { "auto_review" } else { "user" })
    }

    pub(super) fn approval_policy(&self) -> String {
        match self.rules().policy.ask {
            AskWhen::OnFailure if self.version >= WITHOUT_ON_FAILURE => {
                self.spelled(AskWhen::OnRequest.name())
            }
            AskWhen::Untrusted if self.version < KEBAB => "unlessTrusted".to_owned(),
            ask => self.spelled(ask.name()),
        }
    }

    /// A policy's name as this version writes it.
    pub(super) fn spelled(&self, name: &str) -> String {
        if self.version >= KEBAB {
            return name.to_owned();
        }
        let mut words = name.split('-');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |joined, word| {
            let mut letters = word.chars();
            let initial = letters.next().map(|letter| letter.to_ascii_uppercase());
            joined.chars().chain(initial).chain(letters).collect()
        })
    }

    pub(super) fn input(&self, prompt: &Prompt) -> Vec<Value> {
        let text = |text: &str| json!({"type": "text", "text": text, "text_elements": []});
        let piece = |piece: &Content| match piece {
            Content::Image { mime, source } => match source {
                ImageSource::Base64(data) => {
                    let url = format!("data:{mime};base64,{}", data.preview());
                    json!({"type": "image", "url": url})
                }
                ImageSource::Url(url) => match url.strip_prefix("file://") {
                    Some(path) => json!({"type": "localImage", "path": path}),
                    None => json!({"type": "image", "url": url}),
                },
                ImageSource::Blob(blob) => text(&format!("[image {}]", blob.sha256)),
            },
            Content::Skill { name, .. } if self.skills.contains_key(name) => {
                json!({"type": "skill", "name": name, "path": self.skills.get(name)})
            }
            other => text(&plain(other, '$').unwrap_or_default()),
        };
        prompt.content.iter().map(piece).collect()
    }

    /// The server's name of the turn that runs. One that ended without the server's word has none.
    pub(super) fn running(&mut self, ledger: &Ledger) -> Option<(String, String)> {
        self.turns.retain(|(_, turn)| ledger.is_open(turn));
        let (name, _) = self.turns.last()?;
        let inner = self.review.as_ref().and_then(|review| review.inner_turn.as_ref());
        let name = inner.unwrap_or(name);
        Some((self.thread.clone()?, name.clone()))
    }

    /// Says something in the running turn.
    pub(super) fn pass_on(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        let Some((thread, name)) = self.running(ledger) else {
            self.unsteered.push(prompt.clone());
            return;
        };
        let mut params = json!({"threadId": thread, "input": self.input(prompt)});
        let method = match self.version >= FIRST_STEER {
            true => {
                params["expectedTurnId"] = json!(name);
                "turn/steer"
            }
            // A turn that begins while another runs goes into it.
            false => "turn/start",
        };
        self.call(What::Steer(prompt.clone()), method, params, ledger);
    }

    /// What was said in a turn that never got going is not for another one.
    pub(super) fn drop_unsteered(&mut self, ledger: &mut Ledger) {
        for _ in self.unsteered.drain(..) {
            let text = "a message was not delivered: its turn ended before it began";
            ledger.notice(NoticeLevel::Warning, "not_delivered", text);
        }
    }
}

/// An object with one field changed.
fn with(mut object: Value, field: &str, value: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
    object
}

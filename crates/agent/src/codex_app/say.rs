//! What the server is told: the greeting, the thread, turns and their rules.

use serde_json::{Value, json};
use tieline_event::{AskWhen, Content, ImageSource, NoticeLevel, Prompt, Reach, TurnId};

use super::driver::{AppDriver, FIRST_STEER, GREETING, Greeting, KEBAB, WITHOUT_ON_FAILURE, What};
use crate::codex::Rules;
use crate::ledger::Ledger;
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
        ledger.wake_after(GREETING);
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
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        let method = match &self.resume {
            None => "thread/start",
            Some((session, fork)) => {
                params["threadId"] = json!(session);
                // The history is ours already.
                params["excludeTurns"] = json!(true);
                if *fork { "thread/fork" } else { "thread/resume" }
            }
        };
        let rules = self.rules();
        let told = Some(rules).filter(|rules| self.resume.is_none() && !rules.network);
        self.call(What::Open(told), method, params, ledger);
    }

    /// Tells the server about a turn.
    pub(super) fn begin(&mut self, turn: TurnId, prompt: &Prompt, ledger: &mut Ledger) {
        let thread = self.thread.clone().unwrap_or_default();
        let command =
            slash_command(prompt).filter(|(name, _)| matches!(*name, "compact" | "review"));
        if command.is_some() && self.told != Some(self.rules()) {
            // Only a turn carries its rules; these two run with what the thread has.
            let mut params = json!({
                "threadId": thread,
                "approvalPolicy": self.approval_policy(),
                "sandboxPolicy": self.sandbox_policy(),
            });
            if let Some(model) = &self.model {
                params["model"] = json!(model);
            }
            let what = What::Settings(turn, prompt.clone(), self.rules());
            return self.call(what, "thread/settings/update", params, ledger);
        }
        match command {
            Some(("compact", _)) => {
                let params = json!({"threadId": thread});
                self.call(What::Compact(turn), "thread/compact/start", params, ledger);
            }
            Some(("review", rest)) => {
                let target = match rest {
                    "" => json!({"type": "uncommittedChanges"}),
                    rest => json!({"type": "custom", "instructions": rest}),
                };
                let params = json!({"threadId": thread, "target": target, "delivery": "inline"});
                self.call(What::Review(turn), "review/start", params, ledger);
            }
            _ => {
                let params = self.turn_params(&thread, prompt);
                self.told = Some(self.rules());
                self.call(What::Turn(turn), "turn/start", params, ledger);
            }
        }
    }

    /// Everything a turn depends on is said with each turn, so that a thread from another process
    /// has the mode, the model and the directory this conversation has.
    pub(super) fn turn_params(&mut self, thread: &str, prompt: &Prompt) -> Value {
        let plan = self.rules().plan;
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
        let model = self.model.as_ref().or(self.model_in_use.as_ref());
        if (plan || self.may_plan)
            && let Some(model) = model
        {
            let mode = if plan { "plan" } else { "default" };
            params["collaborationMode"] = json!({
                "mode": mode,
                "settings": {
                    "model": model,
                    "reasoning_effort": self.effort,
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
        match rules.policy.reach {
            Reach::WorkspaceWrite => with(made, "networkAccess", json!(rules.network)),
            _ => made,
        }
    }

    pub(super) fn rules(&self) -> Rules {
        Rules::of(self.mode, self.policy)
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
            Content::Skill { name } if self.skills.contains_key(name) => {
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

/// A prompt that is nothing but `/name rest`.
fn slash_command(prompt: &Prompt) -> Option<(&str, &str)> {
    let [Content::Text { text }] = prompt.content.as_slice() else { return None };
    let line = text.preview().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}

/// An object with one field changed.
fn with(mut object: Value, field: &str, value: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
    object
}

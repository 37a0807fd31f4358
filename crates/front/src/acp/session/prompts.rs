//! Prompts: what the user says, in which order, and what stops it.

use serde_json::json;
use tieline_event::{Origin, Prompt};
use tieline_hub::Error;
use tieline_wire::acp::INTERNAL_ERROR;
use tieline_wire::acp::schema::{ContentBlock, PromptResponse, StopReason};
use tieline_wire::jsonrpc::Id;
use tieline_wire::jsonrpc::write::{self, Form};

use super::super::from_acp::{self, Idle, Refusal, slash_command};
use super::super::outcome;
use super::{Done, Running, Session, WAITING};

impl Session {
    pub(super) fn prompt(&mut self, id: Id, blocks: Vec<ContentBlock>) {
        match from_acp::prompt(blocks, &self.mapper.offer) {
            Err(refusal) => {
                self.shared.forget_prompt(&id);
                self.refuse(&id, &refusal);
            }
            Ok(_) if self.waiting.len() >= WAITING => {
                self.shared.forget_prompt(&id);
                let message = format!("{WAITING} prompts wait already; try again when one is over");
                self.refuse(&id, &Refusal::new(INTERNAL_ERROR, message));
            }
            Ok(content) => {
                self.waiting.push_back((id, content));
                self.next_prompt();
            }
        }
    }

    /// Begins the next turn, unless one runs.
    pub(super) fn next_prompt(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some((id, content)) = self.waiting.pop_front() else { return };
        let key = self.shared.next_prompt_key();
        let running = Running {
            id: id.clone(),
            key: key.clone(),
            turn: None,
            is_cancelled: false,
            is_held: false,
        };
        self.running = Some(running);
        let command = slash_command(&content).map(|(name, _)| name);
        match command.filter(|name| self.mapper.offer.is_ours(name)) {
            Some("fresh") => {
                let reset = self.conversation.reset();
                self.act(async move {
                    let said =
                        "The next prompt begins a new session of the agent; the history stays.";
                    Done::Said(id, reset.await.map(|()| said.to_owned()))
                });
            }
            Some(_) => {
                let status = self.status();
                self.act(async move { Done::Said(id, Ok(status)) });
            }
            None => {
                let origin = Origin::Client;
                let prompt = Prompt {
                    content,
                    origin,
                    idempotency_key: Some(key.clone()),
                    ..Prompt::default()
                };
                let started = self.conversation.start_turn(prompt);
                self.act(async move { Done::Started(key, started.await) });
            }
        }
    }

    pub(super) fn status(&self) -> String {
        let mut offer = self.mapper.offer.clone();
        for chosen in &self.chosen {
            offer.learn(&chosen.choice);
        }
        let tokens = self.mapper.tokens();
        let mut lines = vec![
            format!("- conversation: `{}` (`tieline show {}`)", self.key, self.key),
            format!("- agent: {}", self.agent),
            format!("- mode: {}", offer.mode),
            format!("- model: {}", offer.model.as_deref().unwrap_or("the agent's default")),
        ];
        lines.extend(offer.effort.as_ref().map(|effort| format!("- effort: {effort}")));
        if tokens.size > 0 {
            lines.push(format!("- context: {} of {} tokens", tokens.used, tokens.size));
        }
        lines.extend(tokens.cost.map(|cost| format!("- cost: ${cost:.4}")));
        lines.join("\n") + "\n"
    }

    pub(super) fn steer(&mut self, id: Id, blocks: Vec<ContentBlock>, idle: Idle) {
        let content = match from_acp::prompt(blocks, &self.mapper.offer) {
            Ok(content) => content,
            Err(refusal) => return self.refuse(&id, &refusal),
        };
        let prompt = Prompt { content, origin: Origin::Client, ..Prompt::default() };
        match idle {
            Idle::StartsTurn => {
                let steered = self.conversation.steer_or_queue(prompt);
                self.act(async move {
                    let outcome = steered.await;
                    let outcome = outcome.map(|it| it.map_or("injected", |_| "startedNewTurn"));
                    Done::Steered(id, outcome)
                });
            }
            Idle::IsLeft => {
                let steered = self.conversation.steer(prompt);
                self.act(async move {
                    let outcome = match steered.await {
                        Ok(()) => Ok("injected"),
                        Err(Error::NoTurn | Error::Refused(_)) => Ok("promptRequired"),
                        Err(error) => Err(error),
                    };
                    Done::Steered(id, outcome)
                });
            }
        }
    }

    /// Stops what runs. What waits never begins. Nothing of it is left for the next prompt.
    pub(super) fn cancel(&mut self) {
        self.drop_waiting();
        if let Some(running) = &mut self.running {
            running.is_cancelled = true;
        }
        self.let_go(StopReason::Cancelled);
        let calls: Vec<i64> = self.asked.keys().copied().collect();
        for call in calls {
            // Who shows the question may close it; its answer is heard until the turn ends.
            if self.withdrawn.insert(call) {
                let cancel = json!({"requestId": call});
                let line = write::notification(Form::Versioned, "$/cancel_request", Some(&cancel));
                self.page.bytes.extend(line);
            }
        }
        let cancelled = self.conversation.cancel();
        self.act(async move { Done::Cancelled(cancelled.await) });
    }

    pub(super) fn cancel_prompt(&mut self, id: &Id) {
        if self.running.as_ref().is_some_and(|running| running.id == *id) {
            let waiting = std::mem::take(&mut self.waiting);
            self.cancel();
            self.waiting = waiting;
            self.next_prompt();
        } else if let Some(at) = self.waiting.iter().position(|(waiting, _)| waiting == id) {
            self.waiting.remove(at);
            self.shared.forget_prompt(id);
            self.answer(id, &PromptResponse::new(StopReason::Cancelled));
        }
    }

    pub(super) fn drop_waiting(&mut self) {
        for (id, _) in std::mem::take(&mut self.waiting) {
            self.shared.forget_prompt(&id);
            self.answer(&id, &PromptResponse::new(StopReason::Cancelled));
        }
    }

    pub(super) fn cannot_start(&mut self, error: &Error) {
        let Some(running) = self.running.take() else { return };
        self.shared.forget_prompt(&running.id);
        if running.is_cancelled || matches!(error, Error::Cancelled) {
            self.answer(&running.id, &PromptResponse::new(StopReason::Cancelled));
        } else {
            self.refuse(&running.id, &outcome::refusal(error));
        }
        self.next_prompt();
    }

    /// A prompt that is held for what the agent still does is over.
    pub(super) fn let_go(&mut self, reason: StopReason) {
        self.patience = None;
        if let Some(running) = self.running.take_if(|running| running.is_held) {
            self.shared.forget_prompt(&running.id);
            self.answer(&running.id, &PromptResponse::new(reason));
            self.next_prompt();
        }
    }
}

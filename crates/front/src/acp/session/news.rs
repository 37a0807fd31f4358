//! What happens in the conversation, and what it means for whoever waits.

use tieline_event::{Answer, BlobRef, Event, Kind, Origin, TurnStatus};
use tieline_hub::{Entry, Error};
use tieline_wire::acp::schema::{PromptResponse, StopReason};
use tokio::time::Instant;

use super::super::ask::{self, Plan};
use super::super::outcome;
use super::{Done, HELD, How, PAGE, Running, Session};
use crate::Fetch;

impl Session {
    pub(super) fn read(&mut self, more: Result<Option<Vec<Entry>>, Error>) {
        match more {
            Ok(Some(entries)) if entries.is_empty() => self.is_closed = true,
            Ok(Some(entries)) => self.entries.extend(entries),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(session = %self.key, %error, "the session is lost");
                if let Some((opening, _)) = self.opening.take() {
                    self.refuse(&opening.id, &outcome::refusal(&error));
                }
                // Nobody would see what its agent does.
                let closed = self.conversation.close();
                self.act(async move { Done::Closed(closed.await) });
                self.is_closed = true;
            }
        }
        // No more at once than the client is ready for: a few changes of large files are a lot.
        while self.page.bytes.len() < PAGE {
            if self.mapper.is_unfinished() {
                self.mapper.go_on(&mut self.page);
                continue;
            }
            let Some(entry) = self.entries.pop_front() else { break };
            match &entry {
                Entry::Delta(delta) => self.mapper.delta(delta, &mut self.page),
                Entry::Event(shown) => self.see(&shown.event),
            }
        }
    }

    pub(super) fn see(&mut self, event: &Event) {
        let store = self.shared.hub.store().clone();
        let mut fetch = |blob: &BlobRef| match store.blob(&blob.sha256) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(%error, "a large text could not be read");
                None
            }
        };
        self.mapper.event(event, &mut fetch, &mut self.page);
        if let Kind::ConversationConfigured(told) = &event.kind {
            if told.mode.is_some() || told.model.is_some() || told.effort.is_some() {
                self.configured = event.seq;
            }
            if let Some(abilities) = told.abilities.as_ref().filter(|_| self.opening.is_none()) {
                self.shared.known.note(&self.agent, abilities);
            }
        }
        if self.opening.as_ref().is_some_and(|(opening, _)| opening.how == How::Resume) {
            self.mapper.drop_rest();
            self.page.bytes.clear();
        }
        if let Some((opening, _)) = self.opening.take_if(|(_, until)| event.seq >= *until) {
            self.mapper.goes_live();
            self.opened(&opening);
        }
        // A session that is opened again reads again what it has acted upon.
        if event.seq > self.lived {
            self.lived = event.seq;
            self.heed(event, &mut fetch);
        }
        self.confirm();
    }

    /// What an event means for whoever waits.
    pub(super) fn heed(&mut self, event: &Event, fetch: &mut Fetch<'_>) {
        if self.running.as_ref().is_some_and(|running| running.is_held) {
            match &event.kind {
                Kind::TurnStarted(_) => self.patience = None,
                Kind::ItemCompleted(_) if !self.mapper.has_helpers() => {
                    self.patience = Some(Instant::now() + HELD);
                }
                _ => {}
            }
        }
        match &event.kind {
            Kind::TurnStarted(started) => {
                if let Some(running) = &mut self.running
                    && started.idempotency_key.as_ref() == Some(&running.key)
                {
                    running.turn.clone_from(&event.turn);
                }
                if self.mapper.title.is_none() {
                    self.look_up_title();
                }
            }
            Kind::RequestOpened(request) => {
                let call = self.mapper.asks(self.key.as_str(), request, fetch, &mut self.page);
                if self.running.as_ref().is_some_and(|running| running.is_cancelled) {
                    // The agent asked before it heard that it is to stop.
                    let no = Answer::Deny { message: None, stop: true };
                    return self.resolve(request.id.clone(), no, Origin::Engine, None);
                }
                let forms = self.shared.client().forms;
                match ask::plan(self.key.as_str(), request, call, forms) {
                    Plan::Ask(method, params, asked) => self.ask(method, &params, asked),
                    Plan::Rule => self.rule(request),
                }
            }
            Kind::RequestResolved(resolved) => self.settled(&resolved.request),
            Kind::RequestExpired(expired) => self.settled(&expired.request),
            Kind::TurnCompleted(end) => {
                let is_held = end.status == TurnStatus::Completed
                    && end.open_tasks > 0
                    && self.mapper.has_helpers();
                let is_ours = |it: &&mut Running| it.is_held || it.turn == event.turn;
                let Some(running) = self.running.as_mut().filter(is_ours) else { return };
                running.is_held = is_held && !running.is_cancelled;
                if running.is_held {
                    return;
                }
                let Some(running) = self.running.take() else { return };
                self.patience = None;
                self.shared.forget_prompt(&running.id);
                if running.is_cancelled {
                    let usage = end.usage.as_ref().map(outcome::usage);
                    let cancelled = PromptResponse::new(StopReason::Cancelled).usage(usage);
                    self.answer(&running.id, &cancelled);
                } else {
                    match outcome::of(end) {
                        Ok(response) => self.answer(&running.id, &response),
                        Err(refusal) => {
                            let refusal = refusal.in_session(self.key.as_str());
                            self.refuse(&running.id, &refusal);
                        }
                    }
                }
                self.next_prompt();
            }
            // Whoever would bring the turn that is waited for is gone.
            Kind::ProcessExited(_) => self.let_go(StopReason::EndTurn),
            _ => {}
        }
    }

    pub(super) fn look_up_title(&mut self) {
        let (store, key) = (self.shared.hub.store().clone(), self.key.clone());
        self.act(async move {
            let read = tokio::task::spawn_blocking(move || store.conversation(&key)).await;
            Done::Titled(match read {
                Ok(Ok(row)) => row.and_then(|row| row.title),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the title could not be read");
                    None
                }
                Err(_) => None,
            })
        });
    }
}

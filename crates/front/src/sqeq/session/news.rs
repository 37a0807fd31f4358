//! What happens in the conversation.

use tieline_event::{BlobRef, Event, Kind, Request, RequestBody};
use tieline_hub::{Entry, Error, Hub};
use tokio::time::Instant;

use super::super::ask::Wording;
use super::super::to_sqeq::Told;
use super::{Done, MOMENT, PAGE, Session};

impl Session {
    pub(super) fn read(&mut self, more: Result<Option<Vec<Entry>>, Error>) {
        let Some(open) = &mut self.open else { return };
        match more {
            Ok(Some(entries)) if entries.is_empty() => open.is_closed = true,
            Ok(Some(entries)) => open.entries.extend(entries),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(session = %open.key, %error, "the session is lost");
                open.is_closed = true;
                // Nobody would see what its agent does.
                let closed = open.conversation.close();
                self.act(async move { Done::Closed(closed.await) });
                self.fail("", error.to_string());
            }
        }
        let mut told = Vec::new();
        while self.out.written() < PAGE
            && let Some(entry) = self.open.as_mut().and_then(|open| open.entries.pop_front())
        {
            match &entry {
                Entry::Delta(delta) => {
                    if let Some(open) = &mut self.open {
                        open.mapper.delta(delta, &mut told);
                    }
                }
                Entry::Event(shown) => self.see(&shown.event, &mut told),
            }
            self.tell(&mut told);
        }
        if let Some(open) = &mut self.open {
            open.mapper.flush(&mut told);
            if open.mapper.is_waiting() {
                // As long as something happens, the request may still come.
                self.tick = Some(Instant::now() + MOMENT);
            }
        }
        self.tell(&mut told);
    }

    pub(super) fn tick_mapper(&mut self) {
        let (mut told, hub) = (Vec::new(), self.hub.clone());
        if let Some(open) = &mut self.open {
            open.mapper.tick(&mut fetching(&hub), &mut told);
        }
        self.tell(&mut told);
    }

    fn tell(&mut self, told: &mut Told) {
        for (id, msg) in told.drain(..) {
            self.out.tell(&id, msg);
        }
    }

    fn see(&mut self, event: &Event, told: &mut Told) {
        let hub = self.hub.clone();
        let Some(open) = &mut self.open else { return };
        if let Kind::TurnStarted(started) = &event.kind
            && let Some(turn) = &event.turn
            && let Some(key) = &started.idempotency_key
            && let Some(task) = open.tasks.iter_mut().find(|task| task.key == *key)
        {
            task.turn = Some(turn.clone());
            open.mapper.names(turn, &task.sub, task.work.clone());
            if let Some(reason) = &task.abort {
                open.mapper.aborts(turn, reason.clone());
            }
        }
        open.mapper.event(event, &mut fetching(&hub), told);
        match &event.kind {
            Kind::RequestOpened(request) => self.asks(event, request, told),
            Kind::RequestResolved(resolved) => open.asked.settled(&resolved.request),
            Kind::RequestExpired(expired) => open.asked.settled(&expired.request),
            Kind::TurnCompleted(_) => open.tasks.retain(|task| task.turn != event.turn),
            Kind::ConversationConfigured(it) => {
                open.model = it.model.clone().or(open.model.take());
                open.effort = it.effort.clone().or(open.effort.take());
                let is_known = it.model.is_some() || it.abilities.is_some();
                if is_known && !self.is_leaving {
                    self.announce();
                }
            }
            _ => {}
        }
    }

    fn asks(&mut self, event: &Event, request: &Request, told: &mut Told) {
        let (hub, compat) = (self.hub.clone(), self.compat());
        let Some(open) = &mut self.open else { return };
        let is_leave = matches!(request.body, RequestBody::Approval(_));
        let asking = open.mapper.asks(request);
        if is_leave && open.standing.never_asks() {
            return self.refuse(request.id.clone(), "approval_policy never");
        }
        if self.input_ended {
            return self.refuse(request.id.clone(), "the client's input ended");
        }
        let sub = open.mapper.sub(event.turn.as_ref());
        let wording = Wording { compat, form: open.mapper.form(), sub: &sub };
        let msg = open.asked.ask(request, &asking, &wording, &mut fetching(&hub));
        told.push((sub, msg));
    }
}

/// Where the whole of a large text comes from.
pub(super) fn fetching(hub: &Hub) -> impl FnMut(&BlobRef) -> Option<Vec<u8>> + '_ {
    |blob| match hub.store().blob(&blob.sha256) {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::warn!(%error, "a large text could not be read");
            None
        }
    }
}

//! From what happened to what is stored and shown.

use std::sync::Arc;

use tieline_agent::{Draft, Output};
use tieline_event::{BlobRef, BlobSink, Event, FORMAT, ItemBody, Kind, Source, Timestamp};
use tieline_store::{Batch, NewEvent, RequestChange};

use super::clock::Timer;
use super::{Actor, answer_with};
use crate::error::Error;
use crate::tail::{Entry, Shown};

/// Whether it is how a turn begins: the agent's first words may follow at once, and go to the disk
/// along with it.
fn begins_turn(kind: &Kind) -> bool {
    match kind {
        Kind::TurnStarted(_) => true,
        Kind::ItemCompleted(item) => matches!(item.body, ItemBody::UserMessage { .. }),
        _ => false,
    }
}

impl Actor {
    /// Sends what is new to the agent, to the store and to whoever watches.
    pub(super) fn flush(&mut self) {
        let mut frames = self.left_frames.take();
        if let Some(live) = self.process.live_mut() {
            live.write();
            let new = live.take_frames();
            debug_assert!(frames.is_none(), "a process starts after the last one was laid to rest");
            self.next_frame = new.next();
            frames = Some(new);
        }
        for growing in self.ledger_mut().take_growing() {
            self.tail.grows(growing);
        }
        for (number, report) in self.ledger_mut().take_reports() {
            if let Some(reply) = self.inquiries.remove(&number) {
                answer_with(reply, report.map_err(Error::Refused));
            }
        }
        let outputs = self.ledger_mut().take_outputs();
        let session = self.ledger_mut().take_session_change().map(str::to_owned);
        if self.ledger_mut().take_stop()
            && let Some(live) = self.process.live_mut()
        {
            live.begin_stop(None, self.limits.stop_grace);
        }
        for wish in self.ledger_mut().take_alarms() {
            self.timers.set_alarm(wish);
        }
        if let Some(session) = session {
            self.forks = false;
            self.change().native_session = Some(Some(session));
        }
        if let Some(position) = self.ledger_mut().take_position() {
            self.change().position = Some(position);
        }
        let mut batch = Batch {
            frames: frames.unwrap_or_default(),
            blobs: std::mem::take(&mut self.blobs),
            ..Batch::default()
        };
        let mut entries = Vec::with_capacity(outputs.len());
        let (mut turn_ended, mut only_begins) = (false, true);
        let now = Timestamp::now();
        for output in outputs {
            match output {
                Output::Delta(delta) => entries.push(Entry::Delta(Arc::new(delta))),
                Output::Event(draft) => {
                    turn_ended |= matches!(draft.kind, Kind::TurnCompleted(_));
                    only_begins &= begins_turn(&draft.kind);
                    entries.push(self.stamp(*draft, now, &mut batch));
                }
            }
        }
        self.raw_bytes += batch.frames.raw_bytes() as u64;
        batch.conversation = self.change.take();
        let durable = !batch.events.is_empty();
        batch.can_wait = durable && only_begins;
        if durable {
            self.pipeline.submit(batch, entries);
        } else {
            if self.pipeline.is_clear() {
                if !entries.is_empty() {
                    self.tail.publish(entries);
                }
            } else {
                self.pipeline.queue_behind(entries);
            }
            if !batch.is_empty() {
                self.pipeline.submit(batch, Vec::new());
            }
        }
        self.keep_up_raw_log(turn_ended);
    }

    /// Compresses the raw log and keeps it below its cap: after each turn, and within one that
    /// writes a lot.
    fn keep_up_raw_log(&mut self, turn_ended: bool) {
        // Compression makes several raw bytes one on disk, so this is early enough.
        let is_long = self.limits.raw_bytes.is_some_and(|most| self.raw_bytes > most / 4);
        // What waits already will see what there is now, too; if it is being done right now, the
        // next turn's will.
        if (turn_ended || is_long) && self.upkeep.is_none() {
            self.raw_bytes = 0;
            self.upkeep = Some(self.store.keep_up(self.pipeline.lease(), self.limits.raw_bytes));
        }
    }

    /// Gives an event its place and makes it ready for the store.
    pub(super) fn stamp(&mut self, draft: Draft, now: Timestamp, batch: &mut Batch) -> Entry {
        struct Blobs<'a>(&'a mut Vec<(BlobRef, Vec<u8>)>);

        impl BlobSink for Blobs<'_> {
            fn put(&mut self, blob: &BlobRef, bytes: Vec<u8>) {
                self.0.push((blob.clone(), bytes));
            }
        }

        let Draft { turn, parent, origin, native, frames, mut kind } = draft;
        let seq = self.next_seq;
        self.next_seq = seq.next();
        match &mut kind {
            Kind::TurnStarted(_) => {
                self.started.extend(turn.clone().map(|turn| (turn, now)));
                let next_turn = self.ledger().n_turns() + 1;
                self.change().next_turn = Some(next_turn);
                // Also for turns that the agent begins by itself.
                if let Some(limit) = self.limits.turn_timeout {
                    self.timers.set(Timer::Turn, limit);
                }
            }
            Kind::TurnCompleted(end) => {
                let began = turn.as_ref().and_then(|turn| self.started.remove(turn));
                if let (None, Some(began)) = (end.duration_ms, began) {
                    *end = end.clone().lasting(began, now);
                }
                tracing::info!(conversation = %self.key, turn = ?turn, status = ?end.status, "turn ended");
            }
            Kind::ConversationConfigured(it) => {
                if let Some(version) = it.agent_version.as_deref() {
                    self.agent_version = Some(Arc::from(version));
                }
                if let Some(title) = it.title.clone() {
                    self.title = Some(title.clone());
                    self.change().title = Some(title);
                }
                if self.stale {
                    self.keep_ours(it);
                }
                if let Some(mode) = it.mode.filter(|mode| *mode != self.mode) {
                    self.mode = mode;
                    self.change().mode = Some(mode);
                }
            }
            Kind::RequestOpened(request) => batch.requests.push(RequestChange::Open {
                request: request.clone(),
                native: native.request.clone(),
                seq,
            }),
            Kind::RequestResolved(it) => batch.requests.push(RequestChange::Resolve(it.clone())),
            Kind::RequestExpired(it) => batch.requests.push(RequestChange::Expire(it.clone())),
            _ => {}
        }
        let is_ours = matches!(
            kind,
            Kind::ConversationOpened(_)
                | Kind::ConversationClosed(_)
                | Kind::RequestResolved(_)
                | Kind::ProcessSpawned(_)
                | Kind::ProcessExited(_)
                | Kind::TaskMarker(_)
        );
        let source = match is_ours {
            true => Source { driver: Arc::clone(&self.ourselves), version: None, frames },
            false => Source {
                driver: Arc::clone(&self.driver),
                version: self.agent_version.clone(),
                frames,
            },
        };
        kind.externalize(&mut Blobs(&mut batch.blobs));
        let kind_name = kind.name();
        let event = Event {
            v: FORMAT,
            conversation: self.key.clone(),
            seq,
            epoch: self.epoch,
            ts: now,
            turn,
            item: kind.item().cloned(),
            parent,
            origin,
            native,
            source,
            kind,
        };
        let json: Arc<[u8]> =
            event.to_json().expect("an event has no map whose keys are not strings").into();
        batch.events.push(NewEvent {
            seq,
            ts: now,
            kind: kind_name,
            turn: event.turn.clone(),
            json: Arc::clone(&json),
        });
        Entry::Event(Arc::new(Shown { event, json }))
    }
}

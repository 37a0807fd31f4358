//! The way to the client: lines to an outbox, or events to a channel.

use std::collections::VecDeque;

use tieline_wire::sqeq::{Event, EventMsg};
use tokio::sync::mpsc;

use crate::outbox::Outbox;

/// Events that may wait for a channel; beyond that nothing more is taken from the client.
const WAITING: usize = 256;

/// The way to the client.
pub(super) enum Out {
    Lines { outbox: Outbox, page: Vec<u8> },
    Channel { events: mpsc::Sender<Event<'static>>, waiting: VecDeque<Event<'static>> },
}

impl Out {
    pub(super) fn lines(outbox: Outbox) -> Self {
        Self::Lines { outbox, page: Vec::new() }
    }

    pub(super) fn channel(events: mpsc::Sender<Event<'static>>) -> Self {
        Self::Channel { events, waiting: VecDeque::new() }
    }

    /// Puts an event behind the others. Never waits.
    pub(super) fn tell(&mut self, id: &str, msg: EventMsg<'static>) {
        let event = Event { id: id.to_owned().into(), msg };
        match self {
            Self::Lines { page, .. } => page.extend_from_slice(&event.to_line()),
            Self::Channel { waiting, .. } => waiting.push_back(event),
        }
    }

    /// How much is written and not sent.
    pub(super) fn written(&self) -> usize {
        match self {
            Self::Lines { page, .. } => page.len(),
            // About as much as an event has.
            Self::Channel { waiting, .. } => waiting.len() * 256,
        }
    }

    /// Sends what can be sent at once.
    pub(super) fn flush(&mut self) {
        match self {
            Self::Lines { outbox, page } => outbox.push(page),
            Self::Channel { events, waiting } => {
                while let Some(event) = waiting.pop_front() {
                    match events.try_send(event) {
                        Ok(()) => {}
                        Err(mpsc::error::TrySendError::Full(event)) => {
                            waiting.push_front(event);
                            return;
                        }
                        Err(mpsc::error::TrySendError::Closed(_)) => waiting.clear(),
                    }
                }
            }
        }
    }

    /// Whether the client may ask for more.
    pub(super) fn may_ask(&self) -> bool {
        match self {
            Self::Lines { outbox, .. } => outbox.has_room_to_read(),
            Self::Channel { waiting, .. } => waiting.len() < WAITING,
        }
    }

    /// Waits until the client has read most of what there was. Can be cancelled.
    pub(super) async fn room(&mut self) {
        match self {
            Self::Lines { outbox, .. } => outbox.room().await,
            Self::Channel { events, waiting } => {
                while !waiting.is_empty() {
                    match events.reserve().await {
                        Ok(place) => {
                            if let Some(event) = waiting.pop_front() {
                                place.send(event);
                            }
                        }
                        Err(_) => waiting.clear(),
                    }
                }
            }
        }
    }
}

//! What happens after some time, or when enough of it has passed without a word.

use std::time::Duration;

use tieline_agent::TurnEnd;
use tieline_event::{EndSignal, Failure, FailureCode, NoticeLevel};
use tieline_store::Capped;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Actor;
use crate::conversation::Notification;

/// What a cap on the raw log dropped. One that failed is tried again after the next turn.
pub(super) async fn capped(
    upkeep: &mut oneshot::Receiver<Result<Capped, tieline_store::Error>>,
) -> Option<Capped> {
    match upkeep.await {
        Ok(Ok(dropped)) => Some(dropped),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the raw log was not looked after");
            None
        }
        // The store is closed, and said so.
        Err(_) => None,
    }
}

impl Actor {
    /// The agent did something, so it is not silent.
    pub(super) fn heard(&mut self) {
        if let Some((.., deadline)) = &mut self.notified {
            *deadline = Instant::now() + self.limits.notify_grace;
        }
        let limit = self.limits.silence;
        let is_silent_kind = self.live.as_ref().is_some_and(|it| it.session.ends_in_silence());
        self.silence_deadline =
            limit.filter(|_| is_silent_kind).map(|limit| Instant::now() + limit);
    }

    /// The agent's notify program ran. What it says counts when the wire stays silent.
    pub(super) fn on_notification(&mut self, notification: Notification) {
        let Some(live) = &self.live else { return };
        let (session, turn) = (notification.session.as_deref(), notification.turn.as_deref());
        if let Some(turn) = live.session.turn_of_notice(session, turn) {
            let deadline = Instant::now() + self.limits.notify_grace;
            self.notified = Some((turn, notification.text, deadline));
        }
    }

    /// The raw log was capped; what went is told.
    pub(super) fn tell_capped(&mut self, dropped: Option<Capped>) {
        self.upkeep = None;
        let Some(Capped { n_frames: 1.., bytes }) = dropped else { return };
        let n_frames = dropped.map_or(0, |it| it.n_frames);
        let text = format!(
            "the raw log is full: its {n_frames} oldest lines were dropped ({bytes} bytes on disk); \
             the transcript is whole"
        );
        self.ledger_mut().notice(NoticeLevel::Info, "raw_log_capped", text);
    }

    pub(super) async fn on_deadline(&mut self) {
        let now = Instant::now();
        let is_due = |deadline: &mut Instant| *deadline <= now;
        if self.turn_deadline.take_if(is_due).is_some() {
            self.time_out();
        }
        if self.interrupt_deadline.take_if(is_due).is_some()
            && let Some(live) = &mut self.live
        {
            tracing::warn!(conversation = %self.key, "the agent ignores the interrupt");
            live.begin_stop(None, self.limits.stop_grace);
        }
        if self.wake_deadline.take_if(is_due).is_some()
            && let Some(live) = &mut self.live
        {
            live.session.wake();
        }
        if self.silence_deadline.take_if(is_due).is_some()
            && let Some(turn) = self.ledger().oldest_turn().cloned()
        {
            if !self.ledger().open_items().is_empty() {
                // A command that runs for long is not the end.
                return self.heard();
            }
            let end = TurnEnd::completed(EndSignal::Idle);
            self.ledger_mut().end_turn(&turn, end);
            self.lay_to_rest(Some("silent")).await;
        }
        if let Some((turn, text, _)) = self.notified.take_if(|(.., deadline)| *deadline <= now) {
            let text = Some(text).filter(|text| !text.is_empty());
            let end = TurnEnd { text, ..TurnEnd::completed(EndSignal::Notify) };
            self.ledger_mut().end_turn(&turn, end);
            if self.live.as_ref().is_some_and(|live| !live.forgets) {
                // It may still be busy with what is over for everybody else.
                self.lay_to_rest(Some("notified")).await;
            }
        }
        if self.idle_deadline.take_if(is_due).is_some() {
            let ledger = self.ledger();
            if ledger.current_turn().is_none() && ledger.open_items().is_empty() {
                self.lay_to_rest(Some("idle")).await;
                self.flush();
                self.tail.rest();
            } else {
                self.idle_deadline = Some(now + self.limits.idle);
            }
        }
    }

    pub(super) fn time_out(&mut self) {
        let seconds = self.limits.turn_timeout.unwrap_or_default().as_secs_f64();
        let failure = Failure::new(
            FailureCode::Timeout,
            format!("the turn took longer than {seconds} seconds"),
        )
        .hint("raise --timeout, or ask for smaller steps");
        let Some(live) = &mut self.live else { return };
        let Some(turn) = live.session.ledger().oldest_turn().cloned() else { return };
        live.session.ledger_mut().overrule(turn, failure, EndSignal::Timeout);
        let patience = self.limits.interrupt_grace.min(Duration::from_secs(1));
        if !live.session.interrupt() {
            live.signal_interrupt();
        }
        self.interrupt_deadline = Some(Instant::now() + patience);
    }
}

//! What happens after some time, or when enough of it has passed without a word.

use std::time::Duration;

use tieline_agent::{Alarm, AlarmWish, TurnEnd};
use tieline_event::{EndSignal, Failure, FailureCode, NoticeLevel, TurnId};
use tieline_store::Capped;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Actor;
use super::process::IDLE;
use crate::conversation::Notification;

/// What a time is set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// The turn takes too long.
    Turn,
    /// The agent ignores the interrupt.
    Interrupt,
    /// The agent has had nothing to do.
    Idle,
    /// Silence ends the turn.
    Silence,
    /// The agent's notify program said that the turn is over, and its wire does not.
    Notified,
    /// The agent was told to go and does not.
    Goodbye,
    /// The agent closed its output and lives on.
    Silenced,
}

/// When each timer is due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    own: [Option<Instant>; 7],
    /// What the driver wants to be woken for. A driver has a handful of names for that.
    alarms: Vec<(Alarm, Instant)>,
}

impl Timers {
    fn slot(&mut self, timer: Timer) -> &mut Option<Instant> {
        let [turn, interrupt, idle, silence, notified, goodbye, silenced] = &mut self.own;
        match timer {
            Timer::Turn => turn,
            Timer::Interrupt => interrupt,
            Timer::Idle => idle,
            Timer::Silence => silence,
            Timer::Notified => notified,
            Timer::Goodbye => goodbye,
            Timer::Silenced => silenced,
        }
    }

    /// Sets it anew. A time that the clock does not have never comes.
    pub(super) fn set(&mut self, timer: Timer, after: Duration) {
        *self.slot(timer) = Instant::now().checked_add(after);
    }

    /// Sets it, unless it is set.
    pub(super) fn set_once(&mut self, timer: Timer, after: Duration) {
        if self.slot(timer).is_none() {
            self.set(timer, after);
        }
    }

    pub(super) fn clear(&mut self, timers: &[Timer]) {
        for timer in timers {
            *self.slot(*timer) = None;
        }
    }

    /// Whether it is due; it is cleared then.
    pub(super) fn take_due(&mut self, timer: Timer, now: Instant) -> bool {
        self.slot(timer).take_if(|due| *due <= now).is_some()
    }

    /// Does what the driver wishes about one of its alarms.
    pub(super) fn set_alarm(&mut self, AlarmWish { alarm, after }: AlarmWish) {
        self.alarms.retain(|(other, _)| *other != alarm);
        let due = after.and_then(|after| Instant::now().checked_add(after));
        self.alarms.extend(due.map(|due| (alarm, due)));
    }

    pub(super) fn clear_alarms(&mut self) {
        self.alarms.clear();
    }

    /// An alarm that is due, the earliest first; it is cleared then.
    fn take_due_alarm(&mut self, now: Instant) -> Option<Alarm> {
        let due = self.alarms.iter().enumerate().filter(|(_, (_, due))| *due <= now);
        let (at, _) = due.min_by_key(|(_, (_, due))| *due)?;
        Some(self.alarms.remove(at).0)
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let alarms = self.alarms.iter().map(|(_, due)| due);
        self.own.iter().flatten().chain(alarms).min().copied()
    }
}

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
    /// The agent did something, or is to, so it is not silent.
    pub(super) fn heard(&mut self) {
        if self.notified.is_some() {
            self.timers.set(Timer::Notified, self.limits.notify_grace);
        }
        let Some(limit) = self.limits.silence else { return };
        match self.process.live().is_some_and(|it| it.session.ends_in_silence()) {
            true => self.timers.set(Timer::Silence, limit),
            false => self.timers.clear(&[Timer::Silence]),
        }
    }

    /// Ends a turn whose wire does not say that it is over, and the process if that may still be busy
    /// with it.
    fn conclude(&mut self, turn: &TurnId, end: TurnEnd, why: &'static str) {
        let Some(live) = self.process.live_mut() else { return };
        live.session.conclude(turn, end);
        if !live.forgets {
            self.rest(Some(why));
        }
    }

    /// The agent's notify program ran. What it says counts when the wire stays silent.
    pub(super) fn on_notification(&mut self, notification: Notification) {
        let Some(live) = self.process.live() else { return };
        let (session, turn) = (notification.session.as_deref(), notification.turn.as_deref());
        if let Some(turn) = live.session.turn_of_notice(session, turn) {
            self.timers.set(Timer::Notified, self.limits.notify_grace);
            self.notified = Some((turn, notification.text));
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

    pub(super) fn on_deadline(&mut self) {
        let now = Instant::now();
        self.on_process_deadline(now);
        if self.timers.take_due(Timer::Turn, now) {
            self.time_out();
        }
        if self.timers.take_due(Timer::Interrupt, now)
            && let Some(live) = self.process.live_mut()
        {
            tracing::warn!(conversation = %self.key, "the agent ignores the interrupt");
            live.begin_stop(None, self.limits.stop_grace);
        }
        while let Some(alarm) = self.timers.take_due_alarm(now) {
            if let Some(live) = self.process.live_mut() {
                live.session.wake(alarm);
            }
        }
        if self.timers.take_due(Timer::Silence, now)
            && let Some(turn) = self.ledger().oldest_turn().cloned()
        {
            self.conclude(&turn, TurnEnd::completed(EndSignal::Idle), "silent");
        }
        if self.timers.take_due(Timer::Notified, now)
            && let Some((turn, text)) = self.notified.take()
        {
            let text = Some(text).filter(|text| !text.is_empty());
            let end = TurnEnd { text, ..TurnEnd::completed(EndSignal::Notify) };
            self.conclude(&turn, end, "notified");
        }
        if self.timers.take_due(Timer::Idle, now) {
            let ledger = self.ledger();
            if ledger.current_turn().is_none() && ledger.open_items().is_empty() {
                self.rest(Some(IDLE));
            } else {
                self.timers.set(Timer::Idle, self.limits.idle);
            }
        }
    }

    /// A process that has nothing to do ends after some time.
    pub(super) fn expect_idle(&mut self) {
        if let Some(live) = self.process.live().filter(|live| !live.forgets) {
            // A process that was there for this turn has nothing to wait for.
            let patience = if live.one_turn { self.limits.exit_grace } else { self.limits.idle };
            self.timers.set_once(Timer::Idle, patience);
        }
    }

    pub(super) fn time_out(&mut self) {
        let seconds = self.limits.turn_timeout.unwrap_or_default().as_secs_f64();
        let failure = Failure::new(
            FailureCode::Timeout,
            format!("the turn took longer than {seconds} seconds"),
        )
        .hint("raise --timeout, or ask for smaller steps");
        let Some(live) = self.process.live_mut() else { return };
        let Some(turn) = live.session.ledger().oldest_turn().cloned() else { return };
        live.session.ledger_mut().overrule(turn, failure, EndSignal::Timeout);
        let patience = self.limits.interrupt_grace.min(Duration::from_secs(1));
        if !live.session.interrupt() {
            live.signal_interrupt();
        }
        self.timers.set(Timer::Interrupt, patience);
    }
}

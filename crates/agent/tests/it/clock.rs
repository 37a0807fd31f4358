//! A clock for drivers, on which time passes when a test says so.

use std::time::Duration;

use tieline_agent::{Alarm, AlarmWish, Session};

/// What a driver wants to be woken for, and when.
#[derive(Default)]
pub(crate) struct Clock {
    now: Duration,
    due: Vec<(Alarm, Duration)>,
}

impl Clock {
    /// Takes the driver's wishes.
    pub(crate) fn set(&mut self, session: &mut Session) {
        for AlarmWish { alarm, after } in session.ledger_mut().take_alarms() {
            self.due.retain(|(other, _)| *other != alarm);
            self.due.extend(after.map(|after| (alarm, self.now + after)));
        }
    }

    /// Waits for the next alarm, wakes the driver and says how long that took; none is set without one.
    pub(crate) fn ring(&mut self, session: &mut Session) -> Option<Duration> {
        self.set(session);
        let (at, _) = self.due.iter().enumerate().min_by_key(|(_, (_, due))| *due)?;
        let (alarm, due) = self.due.remove(at);
        let waited = due.saturating_sub(self.now);
        self.now = self.now.max(due);
        session.wake(alarm);
        Some(waited)
    }

    /// Lets time pass, with whatever is due in it.
    pub(crate) fn pass(&mut self, session: &mut Session, time: Duration) {
        let end = self.now + time;
        self.set(session);
        while self.due.iter().any(|(_, due)| *due <= end) {
            self.ring(session);
            self.set(session);
        }
        self.now = end;
    }
}

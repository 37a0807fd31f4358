//! Lines that are not understood. The first ones of a run are told one by one; what follows without a
//! line in between that means something is one event, so that a flood of garbage costs what its bytes
//! cost.

use std::time::Duration;

use tieline_event::{FrameRange, Kind, Native, TurnId, Unparsed};

use super::Ledger;
use crate::alarm::Alarm;

/// So many lines of a run are told one by one.
const SINGLY: u32 = 8;

/// No event tells of more lines.
const MOST: u64 = 100_000;

/// No line waits longer for its event.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was not understood is to be told.
pub(crate) const UNREAD: Alarm = Alarm::new("unread");

/// Lines that follow each other and are not understood.
#[derive(Debug, Default)]
pub(super) struct Run {
    n_told: u32,
    /// What is not told yet.
    rest: Option<Rest>,
    /// The line that is read belongs to it.
    goes_on: bool,
}

#[derive(Debug)]
struct Rest {
    turn: Option<TurnId>,
    frames: Option<FrameRange>,
    unparsed: Unparsed,
}

impl Ledger {
    /// A line that is not understood.
    pub fn unparsed(&mut self, reason: impl Into<String>, line: &[u8]) {
        self.run.goes_on = true;
        if self.run.n_told < SINGLY {
            self.run.n_told += 1;
            return self.emit(Kind::Unparsed(Unparsed::new(reason, line)));
        }
        let frame = self.frame;
        let Some(Rest { frames, unparsed, .. }) = &mut self.run.rest else {
            let frames = frame.map(|frame| FrameRange { first: frame, last: frame });
            let (turn, unparsed) = (self.current_turn().cloned(), Unparsed::new(reason, line));
            self.run.rest = Some(Rest { turn, frames, unparsed });
            return self.wake_after(UNREAD, PATIENCE);
        };
        unparsed.lines += 1;
        unparsed.bytes += line.len() as u64;
        if let (Some(frames), Some(frame)) = (frames, frame) {
            frames.last = frame;
        }
        if unparsed.lines >= MOST {
            self.tell_unread();
        }
    }

    /// A line was read. One that means something ends a run.
    pub(crate) fn line_is_read(&mut self) {
        if !std::mem::take(&mut self.run.goes_on) {
            self.tell_unread();
            self.run.n_told = 0;
        }
    }

    /// Tells what was not understood and is not told yet.
    pub(crate) fn tell_unread(&mut self) {
        if let Some(Rest { turn, frames, unparsed }) = self.run.rest.take() {
            self.cancel_alarm(UNREAD);
            self.push_from(frames, turn, None, Native::default(), Kind::Unparsed(unparsed));
        }
    }
}

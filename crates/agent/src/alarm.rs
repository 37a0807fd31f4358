//! What a driver wants to be woken for.

use std::time::Duration;

/// Names a time that a driver waits for. Each name has a time of its own, so that a wish for one never
/// moves another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarm(&'static str);

impl Alarm {
    /// The alarm of this name, which is the driver's own.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }
}

/// A driver's wish about one of its alarms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlarmWish {
    /// Which one.
    pub alarm: Alarm,
    /// After how long it is due, from now on; none is never.
    pub after: Option<Duration>,
}

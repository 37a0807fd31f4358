//! The messages between us and a host. All but the spec are nine bytes: a tag and two numbers.
//!
//! Both ends are the same binary, so there is no version and no tolerance: what does not decode ends
//! the connection, and that ends the tree.

/// Length of every message but the spec.
pub(crate) const LEN: usize = 9;

/// What the host is told after the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send this signal to the leader.
    Signal(i32),
    /// `SIGTERM` to the leader's group, so many milliseconds of grace, then kill the tree.
    Stop(u32),
    /// Kill the tree now.
    Kill,
}

/// What the host tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The leader runs under this pid.
    Spawned(u32),
    /// The leader could not be started.
    Failed { step: Step, errno: i32 },
    /// The leader exited with this code.
    Exited(i32),
    /// The leader was killed by this signal.
    Signaled(i32),
    /// No descendant is left, or `left` of them could not be killed; the host exits.
    Gone { killed: u32, left: u32 },
}

/// Where starting the leader failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Fork,
    Directory,
    Execute,
    Terminal,
}

impl Step {
    pub(crate) fn number(self) -> i32 {
        match self {
            Step::Fork => 0,
            Step::Directory => 1,
            Step::Execute => 2,
            Step::Terminal => 3,
        }
    }

    pub(crate) fn from_number(number: i32) -> Option<Step> {
        [Step::Fork, Step::Directory, Step::Execute, Step::Terminal]
            .into_iter()
            .find(|step| step.number() == number)
    }
}

impl Order {
    pub(crate) fn encode(self) -> [u8; LEN] {
        match self {
            Order::Signal(signal) => pack(b's', signal, 0),
            Order::Stop(grace) => pack(b't', grace.cast_signed(), 0),
            Order::Kill => pack(b'k', 0, 0),
        }
    }

    pub(crate) fn decode(bytes: [u8; LEN]) -> Option<Order> {
        match unpack(bytes) {
            (b's', signal, _) => Some(Order::Signal(signal)),
            (b't', grace, _) => Some(Order::Stop(grace.cast_unsigned())),
            (b'k', ..) => Some(Order::Kill),
            _ => None,
        }
    }
}

impl Report {
    pub(crate) fn encode(self) -> [u8; LEN] {
        match self {
            Report::Spawned(pid) => pack(b'S', pid.cast_signed(), 0),
            Report::Failed { step, errno } => pack(b'F', step.number(), errno),
            Report::Exited(code) => pack(b'E', code, 0),
            Report::Signaled(signal) => pack(b'K', signal, 0),
            Report::Gone { killed, left } => pack(b'G', killed.cast_signed(), left.cast_signed()),
        }
    }

    pub(crate) fn decode(bytes: [u8; LEN]) -> Option<Report> {
        match unpack(bytes) {
            (b'S', pid, _) => Some(Report::Spawned(pid.cast_unsigned())),
            (b'F', step, errno) => Some(Report::Failed { step: Step::from_number(step)?, errno }),
            (b'E', code, _) => Some(Report::Exited(code)),
            (b'K', signal, _) => Some(Report::Signaled(signal)),
            (b'G', killed, left) => {
                Some(Report::Gone { killed: killed.cast_unsigned(), left: left.cast_unsigned() })
            }
            _ => None,
        }
    }
}

fn pack(tag: u8, first: i32, second: i32) -> [u8; LEN] {
    let [a, b, c, d] = first.to_le_bytes();
    let [e, f, g, h] = second.to_le_bytes();
    [tag, a, b, c, d, e, f, g, h]
}

fn unpack([tag, a, b, c, d, e, f, g, h]: [u8; LEN]) -> (u8, i32, i32) {
    (tag, i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent() {
        for order in [Order::Signal(2), Order::Stop(u32::MAX), Order::Kill] {
            assert_eq!(Order::decode(order.encode()), Some(order));
        }
        for report in [
            Report::Spawned(4_000_000),
            Report::Failed { step: Step::Execute, errno: 13 },
            Report::Exited(255),
            Report::Signaled(9),
            Report::Gone { killed: 3, left: 1 },
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Order::decode(*b"xxxxxxxxx"), None);
        assert_eq!(Report::decode(*b"xxxxxxxxx"), None);
    }
}

//! The switchboard of a shared app server: each line goes somewhere, as a line.

use tieline_agent::codex_app::AppSwitchboard;
use tieline_agent::{Destination, Switchboard};

use super::lines;

/// More than one, so that there is somebody to confuse them with.
const SEATS: usize = 3;

pub(super) fn check(input: &[u8]) {
    let mut board = AppSwitchboard::default();
    for line in lines(input) {
        // `0 {…}` is a line of the first conversation, `0 left` its end, all else is the server's.
        let (seat, rest) = match line {
            [digit @ b'0'..b'3', b' ', rest @ ..] => (Some(usize::from(digit - b'0')), rest),
            line => (None, line),
        };
        let routed = match seat {
            Some(seat) if rest == b"left" => board.left(seat),
            Some(seat) => board.outgoing(seat, rest),
            None => board.incoming(rest),
        };
        for routed in routed {
            assert!(routed.line.ends_with(b"\n"), "a line has its end");
            if let Destination::Seat(seat) = routed.to {
                assert!(seat < SEATS, "seat {seat} does not exist");
            }
        }
    }
}

//! A process that several conversations share, seen as bytes.

use tieline_wire::ndjson::{self, Framer, Line};

use crate::driver::{Destination, Routed, Switchboard};

/// Framer and switchboard of a shared process: bytes in, lines with their destination out.
pub struct Exchange {
    framer: Framer,
    board: Box<dyn Switchboard>,
}

impl Exchange {
    /// An exchange for lines of at most `line_limit` bytes.
    pub fn new(board: Box<dyn Switchboard>, line_limit: usize) -> Self {
        Self { framer: Framer::new(line_limit), board }
    }

    /// Takes bytes of the process.
    pub fn read(&mut self, chunk: &[u8]) -> Vec<Routed> {
        let Self { framer, board } = self;
        let mut routed = Vec::new();
        framer.feed(chunk, |line| sort(line, board.as_mut(), &mut routed));
        routed
    }

    /// The process is gone: what it left unfinished.
    pub fn finish(&mut self) -> Vec<Routed> {
        let Self { framer, board } = self;
        let mut routed = Vec::new();
        framer.finish(|line| sort(line, board.as_mut(), &mut routed));
        routed
    }

    /// Takes whole lines of a conversation.
    pub fn write(&mut self, seat: usize, bytes: &[u8]) -> Vec<Routed> {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.flat_map(|line| self.board.outgoing(seat, line)).collect()
    }

    /// A conversation is gone.
    pub fn left(&mut self, seat: usize) -> Vec<Routed> {
        self.board.left(seat)
    }
}

fn sort(line: Line<'_>, board: &mut dyn Switchboard, routed: &mut Vec<Routed>) {
    match line {
        Line::Whole(line) => {
            let content = ndjson::content(&line);
            if !content.is_empty() {
                routed.extend(board.incoming(content));
            }
        }
        // Nobody can tell whose it is; each keeps it as something not understood.
        Line::Unfinished(head) => routed.push(torn(&head)),
        Line::Oversized { head, .. } => routed.push(torn(head)),
    }
}

fn torn(head: &[u8]) -> Routed {
    Routed { to: Destination::Everybody, line: [head, b"\n"].concat() }
}

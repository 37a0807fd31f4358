//! A command we run for the agent, as the agent sees it.

use tieline_wire::jsonrpc::Id;

use crate::chore::ChoreId;

/// How much of a terminal's output is kept where the agent names no limit, and at most.
pub(super) const MOST_KEPT: usize = 4 << 20;

/// A command that runs, or ran and was not given up yet.
#[derive(Debug)]
pub(super) struct Terminal {
    /// The chore that runs it.
    pub(super) chore: ChoreId,
    /// How it ended.
    pub(super) exit: Option<TerminalExit>,
    /// Requests that wait for its end.
    pub(super) waiting: Vec<Id>,
    kept: Vec<u8>,
    limit: usize,
    is_cut: bool,
    /// The beginning of a character whose rest has not come yet.
    partial: Vec<u8>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TerminalExit {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl Terminal {
    pub(super) fn new(chore: ChoreId, limit: Option<u64>) -> Self {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MOST_KEPT);
        Self {
            chore,
            exit: None,
            waiting: Vec::new(),
            kept: Vec::new(),
            limit: limit.min(MOST_KEPT),
            is_cut: false,
            partial: Vec::new(),
        }
    }

    /// Takes what was printed and gives the text that can be shown by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.kept.extend_from_slice(bytes);
        let excess = self.kept.len().saturating_sub(self.limit);
        if excess > 0 {
            self.is_cut = true;
            self.kept.drain(..excess);
        }
        self.partial.extend_from_slice(bytes);
        let whole = whole_characters(&self.partial);
        let rest = self.partial.split_off(whole);
        let ready = std::mem::replace(&mut self.partial, rest);
        String::from_utf8_lossy(&ready).into_owned()
    }

    /// What is kept of the output, from a whole character on, and whether that is not all.
    pub(super) fn output(&self) -> (String, bool) {
        let is_inside = |byte: &u8| self.is_cut && byte & 0b1100_0000 == 0b1000_0000;
        let start = self.kept.iter().take(3).take_while(|byte| is_inside(byte)).count();
        let kept = self.kept.get(start..).unwrap_or_default();
        (String::from_utf8_lossy(kept).into_owned(), self.is_cut)
    }
}

/// How many of the bytes are whole characters, or can never become any.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let last = bytes.get(tail..).unwrap_or_default();
    let lead = last.iter().rposition(|byte| byte & 0b1100_0000 == 0b1100_0000);
    match lead {
        Some(at) => {
            let needed = match last.get(at) {
                Some(byte) if *byte >= 0b1111_0000 => 4,
                Some(byte) if *byte >= 0b1110_0000 => 3,
                _ => 2,
            };
            if last.len() - at < needed { tail + at } else { bytes.len() }
        }
        None => bytes.len(),
    }
}

#[test]
fn output_is_cut_from_its_beginning_at_a_whole_character() {
    let mut terminal = Terminal::new(ChoreId(1), Some(4));
    assert_eq!(terminal.push("aé".as_bytes()), "aé");
    assert_eq!(terminal.output(), ("aé".to_owned(), false));
    terminal.push("éb".as_bytes());
    assert_eq!(terminal.output(), ("éb".to_owned(), true), "half of the first é is gone");
    let mut nothing = Terminal::new(ChoreId(1), Some(0));
    nothing.push(b"abc");
    assert_eq!(nothing.output(), (String::new(), true));
}

#[test]
fn a_character_in_two_pieces_is_shown_once_it_is_whole() {
    let mut terminal = Terminal::new(ChoreId(1), None);
    let text = "x€😀y";
    let shown: String = text.as_bytes().iter().map(|byte| terminal.push(&[*byte])).collect();
    assert_eq!(shown, text);
    assert_eq!(terminal.push(b"\xff"), "", "it could be the start of something");
    assert_eq!(terminal.push(b"abc"), "\u{fffd}abc");
}

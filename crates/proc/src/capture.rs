//! Output of any length in bounded memory: the first bytes, the last bytes and the count.

use std::collections::VecDeque;

/// What was kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes; all of them if nothing was left out.
    pub head: Vec<u8>,
    /// The last bytes after the head.
    pub tail: Vec<u8>,
    /// How many bytes there were altogether.
    pub total: u64,
}

impl Captured {
    /// How many bytes between head and tail were not kept.
    pub fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Head and tail as text, with a line between them that says how much is missing.
    pub fn to_text(&self) -> String {
        let left_out = self.left_out();
        if left_out == 0 {
            let whole = [self.head.as_slice(), self.tail.as_slice()].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        format!("{head}\n[{left_out} bytes left out]\n{tail}")
    }
}

/// Keeps a [`Captured`] up to date.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

impl Capture {
    /// A quarter of `limit` is for the head: the end of an output usually says why it ended.
    pub(crate) fn new(limit: usize) -> Capture {
        let head_limit = limit / 4;
        let tail_limit = limit - head_limit;
        Capture { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit, total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    pub(crate) fn get(&self) -> Captured {
        let tail = self.tail.iter().copied().collect();
        Captured { head: self.head.clone(), tail, total: self.total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: usize, pieces: &[&str], expected: &str) {
        let mut capture = Capture::new(limit);
        for piece in pieces {
            capture.push(piece.as_bytes());
        }
        assert_eq!(capture.get().to_text(), expected);
    }

    #[test]
    fn head_and_tail_are_kept_and_the_gap_is_counted() {
        check(8, &[], "");
        check(8, &["ab", "cdefgh"], "abcdefgh");
        check(8, &["abcdefghi"], "ab\n[1 bytes left out]\ndefghi");
        check(8, &["a", "bcdefgh", "ij", "0123456789"], "ab\n[12 bytes left out]\n456789");
        check(0, &["abc"], "\n[3 bytes left out]\n");
    }

    #[test]
    fn a_character_across_head_and_tail_is_whole() {
        check(8, &["aéé"], "aéé");
    }
}

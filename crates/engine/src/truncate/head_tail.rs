//! The beginning and the end of a stream, in bounded memory.

use std::collections::VecDeque;

/// How much of a command's output is kept.
const MOST_KEPT: usize = 1024 * 1024;

/// Keeps the first and the last bytes of a stream and counts what was between them.
#[derive(Debug, Clone)]
pub struct HeadTail {
    most_head: usize,
    most_tail: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
}

impl Default for HeadTail {
    fn default() -> Self {
        Self::with_limit(MOST_KEPT)
    }
}

impl HeadTail {
    /// One that keeps at most so many bytes, half of them from the beginning.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            most_head: limit / 2,
            most_tail: limit - limit / 2,
            head: Vec::new(),
            tail: VecDeque::new(),
            omitted: 0,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.most_head - self.head.len();
        let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        // Of a piece larger than the tail only the end can stay.
        let skipped = rest.len().saturating_sub(self.most_tail);
        let last = rest.get(skipped..).unwrap_or_default();
        let dropped = (self.tail.len() + last.len()).saturating_sub(self.most_tail);
        self.tail.drain(..dropped);
        self.tail.extend(last);
        self.omitted += (skipped + dropped) as u64;
    }

    /// How many bytes are not kept.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// How many bytes came.
    pub fn total(&self) -> u64 {
        self.omitted + (self.head.len() + self.tail.len()) as u64
    }

    /// Whether nothing came.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Gives what came so far and starts anew.
    pub fn take(&mut self) -> Self {
        let fresh = Self::with_limit(self.most_head + self.most_tail);
        std::mem::replace(self, fresh)
    }

    /// What was kept, as text. Where bytes are missing it says how many; what is no text is
    /// replaced.
    pub fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.omitted == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        // The cuts may have hit a character: a part of one would look like broken output.
        let head = without_cut_end(&self.head);
        let tail = [front, back].concat();
        let tail = tail.get(cut_start(&tail)..).unwrap_or_default();
        let omitted = self.total() - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}\n…{omitted} bytes omitted…\n{tail}")
    }
}

/// How many bytes at the start continue a character that is cut off.
fn cut_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| (**byte & 0xC0) == 0x80).count()
}

/// The bytes without a character at the end that is not whole.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let wanted = match bytes.get(at) {
            Some(0xC0..=0xDF) => 2,
            Some(0xE0..=0xEF) => 3,
            Some(0xF0..=0xF7) => 4,
            Some(0x80..=0xBF) => continue,
            _ => return bytes,
        };
        return if wanted > back { bytes.get(..at).unwrap_or(bytes) } else { bytes };
    }
    bytes
}

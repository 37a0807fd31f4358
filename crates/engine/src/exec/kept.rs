//! The output of a command in bounded memory: its beginning, its end, and which stream each byte
//! came from.

use std::collections::VecDeque;

use tieline_proc::Stream;

/// How many times the stream may change within the head, and within the tail. It bounds the memory of
/// a command that prints single bytes on both by turns.
const MAX_RUNS: usize = 16 * 1024;

/// Some output as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text; where something is missing, a line says how much. What is no UTF-8 is replaced by
    /// U+FFFD.
    pub text: String,
    /// How many bytes were printed.
    pub total: u64,
    /// How many of them were not kept.
    pub left_out: u64,
}

/// Output of any length, kept up to a limit.
pub(super) struct Kept {
    head: Part,
    tail: Part,
    head_limit: usize,
    tail_limit: usize,
    /// How much came on stdout and on stderr.
    totals: [u64; 2],
    /// How much of both together [`Kept::fresh`] has given.
    taken: u64,
    /// What `fresh` has not given of characters that came only in part.
    decoder: Decoder,
}

/// Bytes and the lengths of the runs that came from one stream.
#[derive(Default)]
struct Part {
    bytes: VecDeque<u8>,
    runs: VecDeque<(Stream, usize)>,
}

impl Kept {
    pub(super) fn new(limit: usize) -> Kept {
        let head_limit = limit / 4;
        let decoder = Decoder::default();
        let (head, tail) = (Part::default(), Part::default());
        let tail_limit = limit - head_limit;
        Kept { head, tail, head_limit, tail_limit, totals: [0; 2], taken: 0, decoder }
    }

    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.totals[index(stream)] += bytes.len() as u64;
        if self.head.runs.len() >= MAX_RUNS {
            self.head_limit = self.head.bytes.len();
        }
        let room = self.head_limit - self.head.bytes.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.push(stream, head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.bytes.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drop_front(excess);
        self.tail.push(stream, rest);
        if self.tail.runs.len() > MAX_RUNS {
            let first = self.tail.runs.front().map_or(0, |(_, len)| *len);
            self.tail.drop_front(first);
        }
    }

    /// What came since the last call. A character of which a part has not come yet is left for the
    /// next call, unless this is the last.
    pub(super) fn fresh(&mut self, last: Last) -> Printed {
        let total = self.total() - self.taken;
        let skip_head = usize::try_from(self.taken).unwrap_or(usize::MAX);
        let tail_from = self.total() - self.tail.bytes.len() as u64;
        let skip_tail = usize::try_from(self.taken.saturating_sub(tail_from)).unwrap_or(usize::MAX);
        let head = self.head.pieces(skip_head);
        let tail = self.tail.pieces(skip_tail);
        let printed = text(&mut self.decoder, &head, &tail, total, last);
        self.taken += total;
        printed
    }

    /// All of it, in the order of arrival.
    pub(super) fn all(&self) -> Printed {
        let (head, tail) = (self.head.pieces(0), self.tail.pieces(0));
        text(&mut Decoder::default(), &head, &tail, self.total(), Last::Yes)
    }

    /// All of one stream.
    pub(super) fn of(&self, stream: Stream) -> Printed {
        let (mut head, mut tail) = (self.head.pieces(0), self.tail.pieces(0));
        head.retain(|(from, _)| *from == stream);
        tail.retain(|(from, _)| *from == stream);
        let total = self.totals[index(stream)];
        text(&mut Decoder::default(), &head, &tail, total, Last::Yes)
    }

    fn total(&self) -> u64 {
        self.totals.iter().sum()
    }
}

/// Whether more may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Yes,
    No,
}

impl Part {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.extend(bytes);
        match self.runs.back_mut() {
            Some((last, len)) if *last == stream => *len += bytes.len(),
            _ => self.runs.push_back((stream, bytes.len())),
        }
    }

    fn drop_front(&mut self, mut n: usize) {
        self.bytes.drain(..n.min(self.bytes.len()));
        while let Some((_, len)) = self.runs.front_mut() {
            if *len > n {
                *len -= n;
                return;
            }
            n -= *len;
            self.runs.pop_front();
        }
    }

    /// What comes after the first `skip` bytes, by stream.
    fn pieces(&self, mut skip: usize) -> Vec<(Stream, Vec<u8>)> {
        let mut pieces = Vec::new();
        let mut at = 0;
        for (stream, len) in &self.runs {
            let skipped = skip.min(*len);
            skip -= skipped;
            if skipped < *len {
                let bytes = self.bytes.range(at + skipped..at + len).copied().collect();
                pieces.push((*stream, bytes));
            }
            at += len;
        }
        pieces
    }
}

fn text(
    decoder: &mut Decoder,
    head: &[(Stream, Vec<u8>)],
    tail: &[(Stream, Vec<u8>)],
    total: u64,
    last: Last,
) -> Printed {
    let kept: usize = head.iter().chain(tail).map(|(_, bytes)| bytes.len()).sum();
    let mut left_out = total - kept as u64;
    let mut text = String::new();
    for (stream, bytes) in head {
        decoder.decode(*stream, bytes, &mut text);
    }
    let mut rests = [true; 2];
    if left_out > 0 {
        left_out += decoder.forget();
        if !text.is_empty() {
            text.push('\n');
        }
        // How much is missing is known only when the rests of characters after it are skipped.
        let mut after = String::new();
        for (stream, bytes) in tail {
            let is_rest = std::mem::replace(&mut rests[index(*stream)], false);
            let rest = if is_rest { rest_of_character(bytes) } else { 0 };
            left_out += rest as u64;
            decoder.decode(*stream, &bytes[rest..], &mut after);
        }
        text.push_str(&format!("[{left_out} bytes left out]\n"));
        text.push_str(&after);
    } else {
        for (stream, bytes) in tail {
            decoder.decode(*stream, bytes, &mut text);
        }
    }
    if last == Last::Yes {
        decoder.finish(&mut text);
    }
    Printed { text, total, left_out }
}

/// How many bytes at the beginning belong to a character that began before.
fn rest_of_character(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()
}

/// Makes text of bytes that come in pieces, each stream for itself.
#[derive(Default)]
struct Decoder {
    /// The beginnings of characters that have not come whole.
    begun: [Vec<u8>; 2],
}

impl Decoder {
    fn decode(&mut self, stream: Stream, bytes: &[u8], text: &mut String) {
        let begun = &mut self.begun[index(stream)];
        begun.extend_from_slice(bytes);
        let bytes = std::mem::take(begun);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let may_go_on = std::str::from_utf8(invalid).is_err_and(|it| it.error_len().is_none());
            if chunks.peek().is_none() && may_go_on {
                begun.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// No more comes: what is begun will not be whole.
    fn finish(&mut self, text: &mut String) {
        for begun in &mut self.begun {
            if !std::mem::take(begun).is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Drops what is begun and says how many bytes that were.
    fn forget(&mut self) -> u64 {
        self.begun.iter_mut().map(|begun| std::mem::take(begun).len() as u64).sum()
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

#[cfg(test)]
mod tests;

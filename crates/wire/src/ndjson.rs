//! Lines of a byte stream, bounded.

use std::borrow::Cow;

use memchr::memchr;
use sha2::{Digest, Sha256};

#[cfg(test)]
mod tests;

/// The default limit of a line. Real lines with pictures have more than 1 MiB.
pub const DEFAULT_LIMIT: usize = 64 * 1024 * 1024;

/// How much of an oversized line is kept.
const HEAD: usize = 64 * 1024;

/// A capacity above this is given back once the long line is gone.
const KEEP: usize = 256 * 1024;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line with its terminator, as received. A long one is the receiver's to keep.
    Whole(Cow<'a, [u8]>),
    /// The last line, which the end of input cut off before its terminator.
    Unfinished(Cow<'a, [u8]>),
    /// A line over the limit: only its head was kept.
    Oversized {
        /// The first bytes.
        head: &'a [u8],
        /// Length of the whole line, without its terminator.
        bytes: u64,
        /// SHA-256 of the whole line, without its terminator.
        sha256: [u8; 32],
    },
}

/// Cuts a byte stream into lines. A line that lies whole in one chunk is not copied.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    partial: Vec<u8>,
    oversized: Option<Oversized>,
}

#[derive(Debug)]
struct Oversized {
    hash: Sha256,
    bytes: u64,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Framer {
    /// A framer for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), oversized: None }
    }

    /// Takes the next bytes and hands out every line that ends in them.
    pub fn feed(&mut self, mut chunk: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at(end + 1);
            chunk = rest;
            if self.partial.is_empty() && self.oversized.is_none() && end <= self.limit {
                take(Line::Whole(Cow::Borrowed(line)));
            } else {
                self.hold(line);
                self.hand_out(&mut take);
            }
        }
        if !chunk.is_empty() {
            self.hold(chunk);
        }
    }

    /// The input is over: hands out what is left.
    pub fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if self.oversized.is_some() {
            self.hand_out(&mut take);
        } else if !self.partial.is_empty() {
            take(Line::Unfinished(Cow::Owned(std::mem::take(&mut self.partial))));
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        let content = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if self.oversized.is_none() && self.partial.len() + content.len() > self.limit {
            let mut hash = Sha256::new();
            hash.update(&self.partial);
            self.oversized = Some(Oversized { hash, bytes: self.partial.len() as u64 });
            self.partial.truncate(HEAD);
            self.partial.shrink_to(KEEP);
        }
        if let Some(oversized) = &mut self.oversized {
            oversized.hash.update(content);
            oversized.bytes += content.len() as u64;
            // A limit may be below what is kept of a line.
            let missing = HEAD.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(content.get(..missing).unwrap_or(content));
            return;
        }
        // Growth by doubling may not carry the buffer past the limit.
        let needed = self.partial.len() + bytes.len();
        if needed > self.partial.capacity() {
            let target = needed.max((self.partial.capacity() * 2).min(self.limit + 1));
            self.partial.reserve_exact(target - self.partial.len());
        }
        self.partial.extend_from_slice(bytes);
    }

    fn hand_out(&mut self, take: &mut impl FnMut(Line<'_>)) {
        match self.oversized.take() {
            None if self.partial.len() > KEEP => {
                take(Line::Whole(Cow::Owned(std::mem::take(&mut self.partial))));
            }
            None => take(Line::Whole(Cow::Borrowed(&self.partial))),
            Some(Oversized { hash, bytes }) => {
                take(Line::Oversized { head: &self.partial, bytes, sha256: hash.finalize().into() })
            }
        }
        self.partial.clear();
        self.partial.shrink_to(KEEP);
    }
}

/// The JSON text of a line: without terminator, byte order mark and surrounding blanks.
pub fn content(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

//! Reading what a measured process writes, as cheaply as a reader can.

use std::borrow::Cow;
use std::io::{self, Read};

use serde::Deserialize;
use serde_json::value::RawValue;

/// How much is read at once: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Everything a process wrote. Used again for the next one, so that only the first pays for fresh
/// memory.
#[derive(Default)]
pub(super) struct Output {
    memory: Vec<u8>,
    n_filled: usize,
}

/// A line of `tieline run --format jsonl`, as far as a measurement looks at it.
#[derive(Deserialize)]
pub(super) struct JsonLine<'a> {
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
    /// Of a delta: how many bytes of the text came before.
    #[serde(default)]
    pub(super) offset: usize,
    /// Of a delta: what is new.
    #[serde(default, borrow)]
    pub(super) text: Cow<'a, str>,
    /// Of an event: what happened.
    #[serde(default, borrow)]
    pub(super) data: Option<&'a RawValue>,
}

impl Output {
    /// Memory for about this many bytes, touched now.
    pub(super) fn with_room_for(n_bytes: usize) -> Self {
        Self { memory: vec![b' '; n_bytes], n_filled: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.n_filled = 0;
    }

    /// Forgets the first bytes and keeps the rest.
    pub(super) fn forget(&mut self, n_bytes: usize) {
        let n_bytes = n_bytes.min(self.n_filled);
        self.memory.copy_within(n_bytes..self.n_filled, 0);
        self.n_filled -= n_bytes;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.memory.get(..self.n_filled).unwrap_or_default()
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.memory.truncate(self.n_filled);
        self.memory.extend_from_slice(bytes);
        self.n_filled = self.memory.len();
    }

    /// Reads once; 0 bytes are the end.
    pub(super) fn read(&mut self, from: &mut impl Read) -> io::Result<usize> {
        if self.memory.len() - self.n_filled < CHUNK {
            self.memory.resize((self.memory.len() * 2).max(CHUNK), b' ');
        }
        let end = self.memory.len().min(self.n_filled + CHUNK);
        let room = self.memory.get_mut(self.n_filled..end).unwrap_or_default();
        let n = from.read(room)?;
        self.n_filled += n;
        Ok(n)
    }

    pub(super) fn read_all(&mut self, from: &mut impl Read) -> io::Result<()> {
        while self.read(from)? > 0 {}
        Ok(())
    }
}

//! Raw frames: what went over the wire, byte for byte.
//!
//! Frames lie one behind the other in one buffer, each after a small header, and a segment in the
//! database is such a buffer, compressed or not. A header is one byte (two bits direction, one bit
//! "the time is whole"), the time (eight bytes, or the milliseconds since the frame before) and the
//! length; the last two are LEB128. The first frame of a buffer has its time whole, so buffers can
//! be joined end to end.

use std::borrow::Cow;
use std::fmt;

use tieline_event::{FrameNo, Timestamp};

#[cfg(test)]
mod tests;

/// Which way a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From us to the agent.
    In,
    /// From the agent to us.
    Out,
    /// From the agent's stderr to us.
    Stderr,
}

impl Direction {
    fn code(self) -> u8 {
        match self {
            Self::In => 0,
            Self::Out => 1,
            Self::Stderr => 2,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::In),
            1 => Some(Self::Out),
            2 => Some(Self::Stderr),
            _ => None,
        }
    }
}

/// One frame in a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FrameRef<'a> {
    /// Its number.
    pub no: FrameNo,
    /// When it was seen.
    pub ts: Timestamp,
    /// Which way it went.
    pub dir: Direction,
    /// The bytes as they were, with the line terminator.
    pub bytes: &'a [u8],
}

/// Frames on their way to the store, in one growing allocation.
#[derive(Clone, Default)]
pub struct FrameBuf {
    first: FrameNo,
    n_frames: u64,
    last: Option<i64>,
    newest: i64,
    bytes: Vec<u8>,
}

const WHOLE_TIME: u8 = 1 << 2;

impl FrameBuf {
    /// An empty buffer whose first frame gets this number.
    pub fn new(first: FrameNo) -> Self {
        Self { first, ..Self::default() }
    }

    /// An empty buffer with room for this many bytes.
    pub fn with_capacity(first: FrameNo, bytes: usize) -> Self {
        Self { first, bytes: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Makes room for frames of so many bytes together.
    pub fn reserve(&mut self, bytes: usize) {
        // Short lines have a header each.
        self.bytes.reserve(bytes + bytes / 16);
    }

    /// Adds a frame and says which number it got. The memory of a long one is taken over.
    pub fn append<'a>(
        &mut self,
        dir: Direction,
        ts: Timestamp,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> FrameNo {
        let bytes = bytes.into();
        let millis = ts.as_millis();
        match self.last.and_then(|last| u64::try_from(millis.checked_sub(last)?).ok()) {
            Some(later) => {
                self.bytes.push(dir.code());
                push_number(&mut self.bytes, later);
            }
            None => {
                self.bytes.push(dir.code() | WHOLE_TIME);
                self.bytes.extend_from_slice(&millis.to_le_bytes());
            }
        }
        push_number(&mut self.bytes, bytes.len() as u64);
        match bytes {
            Cow::Owned(mut long) if long.len() > self.bytes.len() => {
                long.splice(..0, self.bytes.drain(..));
                self.bytes = long;
            }
            bytes => self.bytes.extend_from_slice(&bytes),
        }
        self.newest = if self.last.is_none() { millis } else { self.newest.max(millis) };
        self.last = Some(millis);
        let no = self.next();
        self.n_frames += 1;
        no
    }

    /// Number of the first frame.
    pub fn first(&self) -> FrameNo {
        self.first
    }

    /// Number the next frame gets.
    pub fn next(&self) -> FrameNo {
        FrameNo(self.first.0 + self.n_frames)
    }

    /// How many frames there are.
    pub fn len(&self) -> u64 {
        self.n_frames
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.n_frames == 0
    }

    /// Size of the buffer: the frames and their headers.
    pub fn raw_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The frames, in order.
    pub fn iter(&self) -> Frames<'_> {
        Frames::new(self.first, &self.bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Time of the newest frame.
    pub(crate) fn newest(&self) -> i64 {
        self.newest
    }
}

// Sizes, not bodies, wherever a frame could end up in a log.
impl fmt::Debug for FrameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_bytes = self.bytes.len();
        write!(f, "{} frames from {} ({n_bytes} bytes)", self.n_frames, self.first)
    }
}

impl fmt::Debug for FrameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { no, ts, dir, bytes } = self;
        write!(f, "frame {no} {dir:?} at {ts} ({} bytes)", bytes.len())
    }
}

impl fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frames from {} ({} bytes)", self.no, self.rest.len())
    }
}

impl<'a> IntoIterator for &'a FrameBuf {
    type Item = FrameRef<'a>;
    type IntoIter = Frames<'a>;

    fn into_iter(self) -> Frames<'a> {
        self.iter()
    }
}

/// The frames of a buffer, in order. It ends early at a header that makes no sense.
#[derive(Clone)]
pub struct Frames<'a> {
    no: FrameNo,
    ts: i64,
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    pub(crate) fn new(first: FrameNo, bytes: &'a [u8]) -> Self {
        Self { no: first, ts: 0, rest: bytes }
    }

    /// Whether every byte was understood, once the iterator has ended.
    pub(crate) fn is_spent(&self) -> bool {
        self.rest.is_empty()
    }

    fn read(&mut self) -> Option<FrameRef<'a>> {
        let (&head, mut rest) = self.rest.split_first()?;
        let dir = Direction::from_code(head & !WHOLE_TIME)?;
        let ts = if head & WHOLE_TIME == 0 {
            self.ts.checked_add_unsigned(take_number(&mut rest)?)?
        } else {
            let (whole, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            i64::from_le_bytes(*whole)
        };
        let n_bytes = usize::try_from(take_number(&mut rest)?).ok()?;
        let (bytes, rest) = rest.split_at_checked(n_bytes)?;
        let no = self.no;
        (self.no, self.ts, self.rest) = (no.next(), ts, rest);
        Some(FrameRef { no, ts: Timestamp::from_millis(ts), dir, bytes })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = FrameRef<'a>;

    fn next(&mut self) -> Option<FrameRef<'a>> {
        self.read()
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number as u8) | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

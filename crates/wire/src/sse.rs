//! Server-sent events: a byte stream in any chunking, cut into events, bounded.
//!
//! ```
//! use tieline_wire::sse::Parser;
//!
//! let mut parser = Parser::default();
//! parser.feed(b"event: greeting\ndata: {\"a\":1}\n\n");
//! while parser.advance()? {
//!     assert_eq!(parser.event().data, br#"{"a":1}"#);
//! }
//! # Ok::<(), tieline_wire::sse::TooLarge>(())
//! ```
//!
//! An event whose data is one line, as everybody writes it, is lent from where it was received.

use std::fmt;
use std::ops::Range;

use memchr::memchr2;

#[cfg(test)]
mod tests;

/// The default limit of one event. A whole answer with pictures has several MiB.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// A capacity above this is given back once the long event is gone.
const KEEP: usize = 256 * 1024;

/// One event, lent until the parser goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name, if it has one that is text.
    pub name: Option<&'a str>,
    /// Its lines of data, joined by line feeds.
    pub data: &'a [u8],
}

/// An event is longer than the limit; nothing after it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is longer than {} bytes", self.limit)
    }
}

impl std::error::Error for TooLarge {}

/// Cuts a byte stream into events.
///
/// Take all events after each [`feed`](Self::feed): what was not taken is kept, and only one event
/// is bounded.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    buffer: Vec<u8>,
    /// Where the line begins that is looked for.
    line: usize,
    /// Up to here there is no end of that line.
    scanned: usize,
    /// The last line ended with a carriage return; a line feed may still belong to it.
    after_return: bool,
    /// No line was read yet.
    first: bool,
    over: bool,
    failed: bool,
    /// How long the event is so far.
    size: usize,
    name: Vec<u8>,
    data: Data,
    /// Data of more than one line, or with another line behind it.
    joined: Vec<u8>,
    /// The event that was handed out is to be forgotten.
    handed_out: bool,
    last_id: String,
    retry: Option<u64>,
}

/// Where the data of the event is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Data {
    None,
    /// One line, where it was received.
    There(Range<usize>),
    /// In `joined`.
    Joined,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Parser {
    /// Whether something was received behind the event that was handed out: another one may be
    /// ready.
    pub fn has_unread(&self) -> bool {
        self.line < self.buffer.len()
    }

    /// A parser of events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            line: 0,
            scanned: 0,
            after_return: false,
            first: true,
            over: false,
            failed: false,
            size: 0,
            name: Vec::new(),
            data: Data::None,
            joined: Vec::new(),
            handed_out: false,
            last_id: String::new(),
            retry: None,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.forget_event();
        // What is kept is a part of one line and perhaps one line of data before it. It moves at
        // most once: afterwards it begins at 0.
        let keep = match &self.data {
            Data::There(range) => range.start,
            _ => self.line,
        };
        if keep > 0 {
            self.buffer.drain(..keep);
            self.line -= keep;
            self.scanned -= keep;
            if let Data::There(range) = &mut self.data {
                *range = range.start - keep..range.end - keep;
            }
            if self.buffer.len() < KEEP {
                self.buffer.shrink_to(KEEP);
            }
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// The input is over. An event that misses only its last line ends is handed out as well.
    pub fn finish(&mut self) {
        self.over = true;
    }

    /// Goes on to the next event; false when more bytes are needed.
    ///
    /// # Errors
    /// When an event is over the limit, now and ever after.
    pub fn advance(&mut self) -> Result<bool, TooLarge> {
        self.forget_event();
        while !self.failed {
            let Some(line) = self.next_line() else {
                let partial = self.buffer.len() - self.line;
                if self.size + partial > self.limit {
                    self.failed = true;
                    break;
                }
                return Ok(false);
            };
            if self.size + line.len() > self.limit {
                self.failed = true;
                break;
            }
            let line = self.without_mark(line);
            if !line.is_empty() {
                self.take(line);
            } else if self.dispatch() {
                return Ok(true);
            }
        }
        Err(TooLarge { limit: self.limit })
    }

    /// The event [`advance`](Self::advance) went to; an empty one if there is none.
    pub fn event(&self) -> Event<'_> {
        let data = match &self.data {
            Data::None => &[],
            Data::There(range) => self.buffer.get(range.clone()).unwrap_or_default(),
            Data::Joined => self.joined.as_slice(),
        };
        let name = std::str::from_utf8(&self.name).ok().filter(|name| !name.is_empty());
        Event { name, data }
    }

    /// The last id that was given to an event.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// How many milliseconds to wait before a new connection, if the server says so.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// The next line without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_return && self.buffer.get(self.line) == Some(&b'\n') {
            self.line += 1;
            self.scanned = self.line;
            self.after_return = false;
        }
        let unread = self.buffer.get(self.scanned..).unwrap_or_default();
        let (end, after) = match memchr2(b'\r', b'\n', unread) {
            Some(at) => {
                let end = self.scanned + at;
                self.after_return = self.buffer.get(end) == Some(&b'\r');
                (end, end + 1)
            }
            None if self.over && self.line < self.buffer.len() => {
                self.after_return = false;
                (self.buffer.len(), self.buffer.len())
            }
            // One last empty line ends the event that is left.
            None if self.over && self.size > 0 => (self.line, self.line),
            None => {
                self.scanned = self.buffer.len();
                return None;
            }
        };
        let start = std::mem::replace(&mut self.line, after);
        self.scanned = after;
        Some(start..end)
    }

    /// The first line may begin with a byte order mark.
    fn without_mark(&mut self, line: Range<usize>) -> Range<usize> {
        let is_first = std::mem::take(&mut self.first);
        let bytes = self.buffer.get(line.clone()).unwrap_or_default();
        let mark = is_first && bytes.starts_with(b"\xef\xbb\xbf");
        line.start + if mark { 3 } else { 0 }..line.end
    }

    /// One line that is not empty.
    fn take(&mut self, line: Range<usize>) {
        let bytes = self.buffer.get(line.clone()).unwrap_or_default();
        let colon = memchr::memchr(b':', bytes);
        let (field, value) = match colon {
            // A comment, which keeps the connection alive.
            Some(0) => {
                self.settle();
                return;
            }
            Some(at) => {
                let value = bytes.get(at + 1..).unwrap_or_default();
                let blank = usize::from(value.first() == Some(&b' '));
                (bytes.get(..at).unwrap_or_default(), line.start + at + 1 + blank..line.end)
            }
            None => (bytes, line.end..line.end),
        };
        match field {
            b"data" => {
                self.size += line.len();
                if self.data == Data::None {
                    self.data = Data::There(value);
                    return;
                }
                self.settle();
                self.joined.push(b'\n');
                self.joined.extend_from_slice(self.buffer.get(value).unwrap_or_default());
            }
            b"event" => {
                self.size += line.len();
                self.name.clear();
                self.name.extend_from_slice(self.buffer.get(value).unwrap_or_default());
                self.settle();
            }
            b"id" => {
                let id = self.buffer.get(value).unwrap_or_default();
                if let Ok(id) = std::str::from_utf8(id)
                    && !id.contains('\0')
                {
                    id.clone_into(&mut self.last_id);
                }
                self.settle();
            }
            b"retry" => {
                let digits = self.buffer.get(value).unwrap_or_default();
                if digits.iter().all(u8::is_ascii_digit)
                    && let Ok(Ok(retry)) = std::str::from_utf8(digits).map(str::parse)
                {
                    self.retry = Some(retry);
                }
                self.settle();
            }
            _ => self.settle(),
        }
    }

    /// Takes data out of the buffer, because something follows it there that need not be kept.
    fn settle(&mut self) {
        if let Data::There(range) = &self.data {
            let data = self.buffer.get(range.clone()).unwrap_or_default();
            self.joined.extend_from_slice(data);
            self.data = Data::Joined;
        }
    }

    /// An empty line: whether it ends an event that has data.
    fn dispatch(&mut self) -> bool {
        self.handed_out = true;
        if self.data == Data::None {
            self.forget_event();
            return false;
        }
        true
    }

    fn forget_event(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.size = 0;
            self.name.clear();
            self.data = Data::None;
            self.joined.clear();
            self.joined.shrink_to(KEEP);
        }
    }
}

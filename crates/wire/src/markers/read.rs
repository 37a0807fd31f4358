//! From text to markers.

mod block;
pub(super) mod files;

use super::line::{self, Fence, Place, unescape, unescape_long};
use super::{LINE_LIMIT, Marker};
use block::{Block, Taken};

/// A capacity above this is given back once the long line is gone.
const KEEP: usize = 4 * 1024;

/// How strictly a marker's place is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// At the start of a line, without white space before it.
    Spec,
    /// As other programs print them: white space may be before a marker, also before the `-` of a
    /// file, and a *known* marker may be glued to the end of other text, as in
    /// `done.[PROGRESS] next`. It is glued if the character before its bracket is not white space
    /// and none of the quoting characters `` ` `` `"` `'` `(` `\`; the text before it is then a
    /// line of its own.
    Lenient,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// One line without its end and its escapes. A line over [`LINE_LIMIT`] comes in several.
    Text(&'a str),
    /// A marker.
    Marker(Marker),
}

type Sink<'s> = &'s mut dyn FnMut(Piece<'_>);

/// Reads markers and the text between them.
#[derive(Debug)]
pub struct Reader {
    reading: Reading,
    line: String,
    /// Part of the line was given out already.
    is_long: bool,
    fence: Option<Fence>,
    block: Option<Block>,
}

impl Reader {
    /// A reader at the start of a text.
    pub fn new(reading: Reading) -> Self {
        Self { reading, line: String::new(), is_long: false, fence: None, block: None }
    }

    /// Takes the next text and hands out what is known by its end.
    pub fn feed(&mut self, text: &str, mut sink: impl FnMut(Piece<'_>)) {
        self.take(text, &mut sink);
    }

    /// A message or the input is over: hands out what is left and forgets an open code fence. What
    /// is fed afterwards is another text.
    pub fn finish(&mut self, mut sink: impl FnMut(Piece<'_>)) {
        if self.is_long || !self.line.is_empty() {
            self.end_line(&mut sink);
        }
        self.end_block(&mut sink);
        self.fence = None;
    }

    /// Nothing came for some time: hands out a marker that is whole if nothing more belongs to it. Lines
    /// that come later are text.
    pub fn pause(&mut self, mut sink: impl FnMut(Piece<'_>)) {
        if self.line.is_empty() && !self.is_long {
            self.end_block(&mut sink);
        }
    }

    fn take(&mut self, mut text: &str, sink: Sink<'_>) {
        while let Some((line, rest)) = text.split_once('\n') {
            text = rest;
            if self.line.is_empty() && !self.is_long && line.len() <= LINE_LIMIT {
                self.whole(line.strip_suffix('\r').unwrap_or(line), sink);
            } else {
                self.hold(line, sink);
                if self.line.ends_with('\r') {
                    self.line.pop();
                }
                self.end_line(sink);
            }
        }
        self.hold(text, sink);
    }

    fn hold(&mut self, mut text: &str, sink: Sink<'_>) {
        while !text.is_empty() {
            let (now, rest) = text.split_at(text.floor_char_boundary(LINE_LIMIT));
            text = rest;
            self.line.push_str(now);
            // One byte more is no proof of a long line: it may be half of its end.
            while self.line.len() > LINE_LIMIT + 1 {
                self.cut(sink);
            }
        }
    }

    /// Gives out the first part of a line over the limit.
    fn cut(&mut self, sink: Sink<'_>) {
        let rest = self.line.split_off(self.line.floor_char_boundary(LINE_LIMIT));
        if self.is_long {
            sink(Piece::Text(&self.line));
        } else {
            self.is_long = true;
            self.end_block(sink);
            sink(Piece::Text(&unescape_long(&self.line)));
        }
        self.line = rest;
    }

    fn end_line(&mut self, sink: Sink<'_>) {
        if self.line.len() > LINE_LIMIT {
            self.cut(sink);
        }
        let mut line = std::mem::take(&mut self.line);
        if !self.is_long {
            self.whole(&line, sink);
        } else if !line.is_empty() {
            sink(Piece::Text(&line));
        }
        self.is_long = false;
        line.clear();
        line.shrink_to(KEEP);
        self.line = line;
    }

    fn whole(&mut self, line: &str, sink: Sink<'_>) {
        let may_be_glued = self.reading == Reading::Lenient
            && self.fence.is_none()
            && !line::is_quoted(line)
            && Fence::opened_by(line).is_none();
        if may_be_glued {
            line::unglued(line).for_each(|part| self.part(part, sink));
        } else {
            self.part(line, sink);
        }
    }

    fn part(&mut self, line: &str, sink: Sink<'_>) {
        let before = self.fence;
        self.fence = Fence::after(before, line);
        let is_code = before.is_some() || self.fence.is_some();
        if !is_code && let Some((name, content)) = line::head(line, self.reading) {
            self.end_block(sink);
            self.begin(name, content, line.len(), sink);
            return;
        }
        if let Some(block) = &mut self.block {
            match block.take(line, is_code, self.reading) {
                Taken::Kept => return,
                Taken::Last => return self.end_block(sink),
                Taken::Refused => self.end_block(sink),
            }
        }
        sink(Piece::Text(&unescape(line, Place::Text)));
    }

    fn begin(&mut self, name: &str, content: String, bytes: usize, sink: Sink<'_>) {
        match name {
            line::PROGRESS => sink(Piece::Marker(Marker::Progress(content))),
            line::CODEX_COMPLETE => sink(Piece::Marker(Marker::Complete { text: content })),
            line::QUESTION => self.block = Some(Block::question(content, bytes)),
            line::BLOCKED => self.block = Some(Block::blocked(content, bytes)),
            line::FILES_MODIFIED => {
                let first = files::first(&content);
                // Words between the marker and its list are not part of it, but somebody's words.
                if first.is_none() && !content.is_empty() {
                    sink(Piece::Text(&content));
                }
                self.block = Some(Block::files(first, bytes));
            }
            _ => {
                let content = if content.is_empty() { Vec::new() } else { vec![content] };
                if line::has_several_lines(name) {
                    self.block = Some(Block::other(name, content, bytes));
                } else {
                    sink(Piece::Marker(Marker::Other { name: name.to_owned(), content }));
                }
            }
        }
    }

    fn end_block(&mut self, sink: Sink<'_>) {
        if let Some(block) = self.block.take() {
            sink(Piece::Marker(block.into_marker()));
        }
    }
}

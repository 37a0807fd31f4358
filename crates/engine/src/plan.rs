//! The proposed plan in a model's answer: what stands between a line `<proposed_plan>` and a line
//! `</proposed_plan>`.
//!
//! A tag counts when it has a line to itself. So a line is held back only as long as it may still
//! become a tag; everything else is passed on as it comes. How the text is cut into deltas makes no
//! difference to what comes out.

#[cfg(test)]
mod tests;

const OPEN: &str = "<proposed_plan>";
const CLOSE: &str = "</proposed_plan>";

/// A line with more than this many characters that may become a tag is none. It bounds what is held
/// back.
const MOST_HELD: usize = 256;

/// A piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text for the reader.
    Text(&'a str),
    /// A plan begins.
    PlanStart,
    /// Text of the plan.
    Plan(&'a str),
    /// The plan ends.
    PlanEnd,
}

/// Where in a line the parser is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    /// Nothing but blanks so far.
    #[default]
    Blanks,
    /// In the midst of a tag, after this many of its bytes.
    Tag(&'static str, usize),
    /// Behind a whole tag, with blanks after it.
    Behind(&'static str),
    /// In a line that is no tag.
    Line,
}

/// Tells a plan from the text around it while both come in.
#[derive(Debug, Clone, Default)]
pub struct PlanParser {
    at: At,
    inside: bool,
    /// The part of the line that is held back, and how many characters it has.
    held: String,
    n_held: usize,
}

impl PlanParser {
    /// Takes the next part of the answer.
    pub fn push(&mut self, delta: &str, mut sink: impl FnMut(Piece<'_>)) {
        let mut rest = delta;
        while !rest.is_empty() {
            if self.at == At::Line {
                let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
                let Some((line, after)) = rest.split_at_checked(end) else { return };
                sink(self.text(line));
                if line.ends_with('\n') {
                    self.at = At::Blanks;
                }
                rest = after;
                continue;
            }
            let mut characters = rest.chars();
            let Some(c) = characters.next() else { return };
            rest = characters.as_str();
            self.held.push(c);
            self.n_held += 1;
            if c == '\n' {
                self.end_line(&mut sink);
                continue;
            }
            self.at = self.next(c);
            if self.at == At::Line {
                self.flush(&mut sink);
            }
        }
    }

    /// The answer is over: what was held back comes, and an open plan ends.
    pub fn finish(&mut self, mut sink: impl FnMut(Piece<'_>)) {
        self.end_line(&mut sink);
        if std::mem::take(&mut self.inside) {
            sink(Piece::PlanEnd);
        }
    }

    fn next(&self, c: char) -> At {
        if self.n_held > MOST_HELD {
            return At::Line;
        }
        match self.at {
            At::Blanks if c == '<' => At::Tag(OPEN, 1),
            At::Blanks if c.is_whitespace() => At::Blanks,
            At::Tag(OPEN, 1) if c == '/' => At::Tag(CLOSE, 2),
            At::Tag(tag, n) if tag.as_bytes().get(n).is_some_and(|byte| char::from(*byte) == c) => {
                if n + 1 == tag.len() {
                    At::Behind(tag)
                } else {
                    At::Tag(tag, n + 1)
                }
            }
            At::Behind(tag) if c.is_whitespace() => At::Behind(tag),
            _ => At::Line,
        }
    }

    /// The held line is whole.
    fn end_line(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        match std::mem::take(&mut self.at) {
            At::Behind(OPEN) if !self.inside => {
                self.inside = true;
                self.forget();
                sink(Piece::PlanStart);
            }
            At::Behind(CLOSE) if self.inside => {
                self.inside = false;
                self.forget();
                sink(Piece::PlanEnd);
            }
            _ => self.flush(sink),
        }
    }

    fn flush(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            sink(self.text(&held));
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.held.clear();
        self.n_held = 0;
    }

    fn text<'a>(&self, text: &'a str) -> Piece<'a> {
        if self.inside { Piece::Plan(text) } else { Piece::Text(text) }
    }
}

/// The text of a whole answer without its plans, and its last plan.
pub fn split(answer: &str) -> (String, Option<String>) {
    let mut text = String::new();
    let mut plan = None;
    let mut take = |piece: Piece<'_>| match piece {
        Piece::Text(piece) => text.push_str(piece),
        Piece::PlanStart => plan = Some(String::new()),
        Piece::Plan(piece) => plan.get_or_insert_default().push_str(piece),
        Piece::PlanEnd => {}
    };
    let mut parser = PlanParser::default();
    parser.push(answer, &mut take);
    parser.finish(&mut take);
    (text, plan)
}

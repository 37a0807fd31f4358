//! A marker of several lines while it is read.

use super::super::line::{Place, is_blank, is_space, trim, unescape};
use super::super::{BLOCK_LIMIT, Choice, FileChange, Marker, Question};
use super::{Reading, files};

/// What became of a line.
pub(super) enum Taken {
    /// It is part of the marker.
    Kept,
    /// It ended the marker and is not to be given out.
    Last,
    /// The marker ended before it.
    Refused,
}

#[derive(Debug)]
pub(super) struct Block {
    bytes: usize,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Question(Asked),
    Blocked { reason: String, context: Vec<String> },
    Files(Vec<FileChange>),
    Other { name: String, content: Vec<String> },
}

impl Block {
    pub(super) fn question(text: String, bytes: usize) -> Self {
        let question = Question { text, options: Vec::new(), context: Vec::new() };
        let asked = Asked { question, stage: Stage::Choices, has_title: false, is_choice: false };
        Self { bytes, body: Body::Question(asked) }
    }

    pub(super) fn blocked(reason: String, bytes: usize) -> Self {
        Self { bytes, body: Body::Blocked { reason, context: Vec::new() } }
    }

    pub(super) fn files(first: Option<FileChange>, bytes: usize) -> Self {
        Self { bytes, body: Body::Files(first.into_iter().collect()) }
    }

    pub(super) fn other(name: &str, content: Vec<String>, bytes: usize) -> Self {
        Self { bytes, body: Body::Other { name: name.to_owned(), content } }
    }

    /// Takes a line that is no marker. `is_code`: it is a code fence or within one.
    pub(super) fn take(&mut self, line: &str, is_code: bool, reading: Reading) -> Taken {
        self.bytes += line.len() + 1;
        if self.bytes > BLOCK_LIMIT {
            return Taken::Refused;
        }
        if let Body::Question(asked) = &mut self.body {
            return asked.take(line, is_code);
        }
        if is_blank(line) {
            return Taken::Last;
        }
        match &mut self.body {
            Body::Question(_) => {}
            Body::Blocked { reason, context } => {
                let text = content(line, Place::Blocked);
                if reason.is_empty() && context.is_empty() && !is_code {
                    trim(&text).clone_into(reason);
                } else {
                    context.push(text);
                }
            }
            Body::Files(files) => match files::item(line, reading) {
                Some(file) => files.push(file),
                None => return Taken::Refused,
            },
            Body::Other { content: lines, .. } => lines.push(content(line, Place::Other)),
        }
        Taken::Kept
    }

    pub(super) fn into_marker(self) -> Marker {
        match self.body {
            Body::Question(asked) => Marker::Question(asked.question),
            Body::Blocked { reason, context } => Marker::Blocked { reason, context },
            Body::Files(files) => Marker::FilesModified(files),
            Body::Other { name, content } => Marker::Other { name, content },
        }
    }
}

fn content(line: &str, place: Place) -> String {
    unescape(line, place).trim_end_matches(is_space).to_owned()
}

/// A question while it is read.
#[derive(Debug)]
struct Asked {
    question: Question,
    stage: Stage,
    /// `Options:` was there.
    has_title: bool,
    /// The last line was an option or `Options:`.
    is_choice: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Options may come.
    Choices,
    /// A blank line came right after the options.
    Blank,
    /// The paragraph after that.
    Paragraph,
}

impl Asked {
    fn take(&mut self, line: &str, is_code: bool) -> Taken {
        if is_blank(line) {
            if self.stage != Stage::Choices || !self.is_choice {
                return Taken::Last;
            }
            self.stage = Stage::Blank;
            return Taken::Kept;
        }
        if self.stage == Stage::Blank {
            if is_code {
                return Taken::Refused;
            }
            // Some put the blank line between `Options:` and the options.
            self.stage = match self.question.options.is_empty() {
                true => Stage::Choices,
                false => Stage::Paragraph,
            };
        }
        self.is_choice = false;
        if !is_code && self.stage == Stage::Choices {
            if let Some(choice) = choice(line) {
                self.question.options.push(choice);
                self.is_choice = true;
                return Taken::Kept;
            }
            if !self.has_choices() && trim(line).eq_ignore_ascii_case("Options:") {
                self.has_title = true;
                self.is_choice = true;
                return Taken::Kept;
            }
        }
        let text = content(line, Place::Question);
        let is_below_choices = self.has_choices();
        let Question { text: asked, context, .. } = &mut self.question;
        if asked.is_empty() && context.is_empty() && !is_below_choices && !is_code {
            trim(&text).clone_into(asked);
        } else {
            context.push(text);
        }
        Taken::Kept
    }

    fn has_choices(&self) -> bool {
        self.has_title || !self.question.options.is_empty()
    }
}

/// `N. label - description`.
fn choice(line: &str) -> Option<Choice> {
    let line = unescape(line, Place::Head);
    let (number, rest) = trim(&line).split_once('.')?;
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain || !rest.is_empty() && !rest.starts_with(is_space) {
        return None;
    }
    let number = number.parse().ok()?;
    let rest = trim(rest);
    let (label, description) = match rest.split_once(" - ") {
        Some((label, description)) => (label, Some(trim(description).to_owned())),
        None => (rest, None),
    };
    Some(Choice { number, label: trim(label).to_owned(), description })
}

//! From the text of a patch to its hunks. Nothing is copied: every word borrows from the text.

#[cfg(test)]
mod tests;

use std::iter::Peekable;

/// A patch, in the order of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch<'a> {
    /// The environment it is meant for, if it names one.
    pub environment: Option<&'a str>,
    /// What it does to files.
    pub hunks: Vec<Hunk<'a>>,
}

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hunk<'a> {
    /// A new file, or a new content for one that exists.
    Add {
        /// Which file.
        path: &'a str,
        /// Its lines, without their ends.
        lines: Vec<&'a str>,
    },
    /// The file goes.
    Delete {
        /// Which file.
        path: &'a str,
    },
    /// Some lines of a file change.
    Update {
        /// Which file.
        path: &'a str,
        /// Its new name, if it gets one.
        move_to: Option<&'a str>,
        /// The places that change, from top to bottom; never none.
        chunks: Vec<Chunk<'a>>,
    },
}

impl<'a> Hunk<'a> {
    /// The file as it is called before the patch.
    pub fn path(&self) -> &'a str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }

    /// The file's new name, if it gets one.
    pub fn move_to(&self) -> Option<&'a str> {
        match self {
            Self::Update { move_to, .. } => *move_to,
            Self::Add { .. } | Self::Delete { .. } => None,
        }
    }
}

/// One place of a file that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// A line after which the place is, `@@ LINE`.
    pub context: Option<&'a str>,
    /// What is there and what becomes of it; never none.
    pub lines: Vec<Line<'a>>,
    /// The place is the end of the file.
    pub is_at_end: bool,
}

impl<'a> Chunk<'a> {
    /// The lines that must be there.
    pub fn old(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(|line| line.kind != LineKind::Add).map(|line| line.text)
    }
}

/// A line of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// What becomes of it.
    pub kind: LineKind,
    /// Without its first character and its end.
    pub text: &'a str,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It is there and stays.
    Keep,
    /// It is there and goes.
    Remove,
    /// It comes.
    Add,
}

/// Why a text is no patch, in the words models know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The frame around the hunks is wrong.
    #[error("Invalid patch: {0}")]
    Frame(&'static str),
    /// A line has no place where it is.
    #[error("Invalid patch hunk on line {line}: {message}")]
    Hunk {
        /// Counted from 1, `*** Begin Patch` being the first.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ENVIRONMENT: &str = "*** Environment ID:";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

const NO_BEGIN: Invalid = Invalid::Frame("The first line of the patch must be '*** Begin Patch'");
const NO_END: Invalid = Invalid::Frame("The last line of the patch must be '*** End Patch'");

/// Reads a patch. The text may be wrapped in a here-document.
pub fn parse(text: &str) -> Result<Patch<'_>, Invalid> {
    let lines: Vec<&str> = text.trim().lines().collect();
    let body = match body(&lines) {
        Err(err) => unwrapped(&lines).map_or(Err(err), body),
        found => found,
    }?;
    let mut reader = Reader { lines: body.iter().copied().enumerate().peekable() };
    let environment = reader.environment()?;
    let mut hunks = Vec::new();
    while let Some(hunk) = reader.hunk()? {
        hunks.push(hunk);
    }
    Ok(Patch { environment, hunks })
}

/// What stands between the first line and the last.
fn body<'l, 'a>(lines: &'l [&'a str]) -> Result<&'l [&'a str], Invalid> {
    match lines {
        [first, ..] if first.trim() != BEGIN => Err(NO_BEGIN),
        [_, body @ .., last] if last.trim() == END => Ok(body),
        _ => Err(NO_END),
    }
}

/// What stands in a here-document, if the text is one: models wrap patches so.
fn unwrapped<'l, 'a>(lines: &'l [&'a str]) -> Option<&'l [&'a str]> {
    match lines {
        ["<<EOF" | "<<'EOF'" | "<<\"EOF\"", inner @ .., last]
            if last.ends_with("EOF") && inner.len() >= 2 =>
        {
            Some(inner)
        }
        _ => None,
    }
}

struct Reader<'a, I: Iterator<Item = (usize, &'a str)>> {
    lines: Peekable<I>,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> Reader<'a, I> {
    /// The next line and its number in the patch.
    fn peek(&mut self) -> Option<(usize, &'a str)> {
        self.lines.peek().map(|(index, line)| (index + 2, *line))
    }

    fn next_if(&mut self, is_meant: impl Fn(&str) -> bool) -> Option<&'a str> {
        self.lines.next_if(|(_, line)| is_meant(line)).map(|(_, line)| line)
    }

    fn environment(&mut self) -> Result<Option<&'a str>, Invalid> {
        let Some(line) = self.next_if(|line| line.trim().starts_with(ENVIRONMENT)) else {
            return Ok(None);
        };
        match line.trim().strip_prefix(ENVIRONMENT).map(str::trim) {
            Some("") => Err(Invalid::Frame("apply_patch environment_id cannot be empty")),
            name => Ok(name),
        }
    }

    fn hunk(&mut self) -> Result<Option<Hunk<'a>>, Invalid> {
        let Some((number, line)) = self.peek() else { return Ok(None) };
        let line = line.trim();
        let Some(header) = Header::read(line) else {
            return Err(match line {
                END => NO_END,
                _ => Invalid::at(
                    number,
                    format!(
                        "'{line}' is not a valid hunk header. Valid hunk headers: '{ADD}{{path}}', \
                         '{DELETE}{{path}}', '{UPDATE}{{path}}'"
                    ),
                ),
            });
        };
        self.lines.next();
        match header {
            Header::Add(path) => {
                let next = || self.next_if(|line| line.starts_with('+'));
                let lines = std::iter::from_fn(next).filter_map(|line| line.strip_prefix('+'));
                Ok(Some(Hunk::Add { path, lines: lines.collect() }))
            }
            Header::Delete(path) => Ok(Some(Hunk::Delete { path })),
            Header::Update(path) => self.update(number, path).map(Some),
        }
    }

    fn update(&mut self, number: usize, path: &'a str) -> Result<Hunk<'a>, Invalid> {
        let named = |line: &str| line.trim_end().strip_prefix(MOVE).is_some();
        let move_to = self.next_if(named).and_then(|line| line.trim_end().strip_prefix(MOVE));
        let mut chunks: Vec<Chunk<'a>> = Vec::new();
        loop {
            // Behind the end of a file empty lines say nothing; elsewhere they are lines of it.
            if chunks.last().is_some_and(|last| last.is_at_end) {
                while self.next_if(|line| line.trim().is_empty()).is_some() {}
            }
            match self.peek() {
                None => break,
                Some((_, line)) if is_boundary(line) => break,
                Some((_, line)) if chunks.is_empty() && line.trim_end() == END_OF_FILE => break,
                Some(_) => chunks.push(self.chunk(chunks.is_empty())?),
            }
        }
        match chunks.is_empty() {
            true => {
                Err(Invalid::at(number, format!("Update file hunk for path '{path}' is empty")))
            }
            false => Ok(Hunk::Update { path, move_to, chunks }),
        }
    }

    fn chunk(&mut self, is_first: bool) -> Result<Chunk<'a>, Invalid> {
        let begin = self.peek().map_or((0, ""), |line| line);
        let context = match heading(begin.1) {
            Some(context) => {
                self.lines.next();
                context
            }
            // Only the first chunk may do without.
            None if is_first => None,
            None => {
                let expected = "Expected update hunk to start with a @@ context marker";
                return Err(Invalid::at(begin.0, format!("{expected}, got: '{}'", begin.1)));
            }
        };
        let mut chunk = Chunk { context, lines: Vec::new(), is_at_end: false };
        while let Some((number, text)) = self.peek() {
            if text.trim_end() == END_OF_FILE {
                if chunk.lines.is_empty() {
                    return Err(Invalid::no_lines(number));
                }
                self.lines.next();
                chunk.is_at_end = true;
                break;
            }
            let Some(line) = line(text) else {
                if chunk.lines.is_empty() {
                    return Err(Invalid::at(
                        number,
                        format!(
                            "Unexpected line found in update hunk: '{text}'. Every line should start \
                             with ' ' (context line), '+' (added line), or '-' (removed line)"
                        ),
                    ));
                }
                break;
            };
            self.lines.next();
            chunk.lines.push(line);
        }
        match chunk.lines.is_empty() {
            true => Err(Invalid::no_lines(begin.0 + 1)),
            false => Ok(chunk),
        }
    }
}

enum Header<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
}

impl<'a> Header<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let add = line.strip_prefix(ADD).map(Self::Add);
        let delete = || line.strip_prefix(DELETE).map(Self::Delete);
        let update = || line.strip_prefix(UPDATE).map(Self::Update);
        add.or_else(delete).or_else(update)
    }
}

/// Whether a line ends the hunk before it. One that begins with a space is a line of the file.
fn is_boundary(line: &str) -> bool {
    let line = line.trim_end();
    line == END || Header::read(line).is_some()
}

/// What stands behind `@@`, if the line is one.
fn heading(line: &str) -> Option<Option<&str>> {
    match line.trim_end().strip_prefix("@@")? {
        "" => Some(None),
        rest => rest.strip_prefix(' ').map(Some),
    }
}

fn line(text: &str) -> Option<Line<'_>> {
    let mut rest = text.chars();
    let kind = match rest.next() {
        None | Some(' ') => LineKind::Keep,
        Some('-') => LineKind::Remove,
        Some('+') => LineKind::Add,
        Some(_) => return None,
    };
    Some(Line { kind, text: rest.as_str() })
}

impl Invalid {
    fn at(line: usize, message: String) -> Self {
        Self::Hunk { line, message }
    }

    fn no_lines(line: usize) -> Self {
        Self::at(line, "Update hunk does not contain any lines".to_owned())
    }
}

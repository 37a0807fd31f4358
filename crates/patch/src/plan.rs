//! What becomes of a file's content.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::diff::Run;
use crate::error::Error;
use crate::parse::{Chunk, Line, LineKind};
use crate::seek::{Budget, Exhausted, From, Lines};

/// A content after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) content: String,
    /// Which lines of the old content became which lines of the new one; nothing else changed.
    pub(crate) runs: Vec<Run>,
}

/// Why chunks do not fit a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The line behind `@@` is not there.
    Context(String),
    /// These lines are not there.
    Lines(String),
    /// It would take too long to find out.
    TooLong,
}

impl Misfit {
    /// The error it is for a file.
    pub(crate) fn of(self, name: &str) -> Error {
        let name = name.to_owned();
        match self {
            Self::Context(context) => Error::Context { name, context },
            Self::Lines(lines) => Error::Lines { name, lines },
            Self::TooLong => Error::TooLong { name },
        }
    }
}

impl std::convert::From<Exhausted> for Misfit {
    fn from(_: Exhausted) -> Self {
        Self::TooLong
    }
}

/// Lines that go and lines that come at one place.
struct Edit<'a> {
    start: usize,
    n_removed: usize,
    added: Vec<&'a str>,
}

/// Applies the chunks of an update to a content.
///
/// What the patch does not touch stays byte for byte. A line ends with LF, CRLF or a lone CR; lines that
/// come get the end that the content's first line has. Where lines of the patch have a CR in their midst,
/// it is a character like others. Context keeps the spelling of the file, also where it matched only
/// almost. A last line without an end keeps it so as long as it is the last one.
pub(crate) fn update(
    old: &str,
    chunks: &[Chunk<'_>],
    budget: &mut Budget,
) -> Result<Planned, Misfit> {
    let has_cr = chunks.iter().flat_map(|chunk| &chunk.lines).any(|line| line.text.contains('\r'));
    let ends = if has_cr { Ends::Lf } else { Ends::LfAndCr };
    let full = split_lines(old, ends);
    let lines = Lines::new(full.iter().map(|line| bare(line)).collect());
    let mut edits = Vec::with_capacity(chunks.len());
    let mut cursor = 0;
    for chunk in chunks {
        if let Some(context) = chunk.context {
            let found = lines.seek(&[context], From::Line(cursor), budget)?;
            cursor = found.ok_or_else(|| Misfit::Context(context.to_owned()))? + 1;
        }
        let (start, chunk) = place(&lines, chunk, cursor, budget)?;
        if let Some(end) = split(start, &chunk, &mut edits) {
            cursor = end;
        }
    }
    // What is appended may come from a chunk before the last.
    edits.sort_by_key(|edit| edit.start);
    let mut planned = write(&full, &edits, line_end(&full), old.len());
    // A diff counts lines by their LF, as other tools do.
    if full.iter().any(|line| line.ends_with('\r')) {
        planned.runs = Run::whole(old, &planned.content);
    }
    Ok(planned)
}

/// Takes the edits out of a chunk, which begins at a line; gives where it ends, if it has a line that
/// was there.
fn split<'a>(start: usize, chunk: &[Line<'a>], edits: &mut Vec<Edit<'a>>) -> Option<usize> {
    let mut at = start;
    let mut edit: Option<Edit<'a>> = None;
    for line in chunk {
        if line.kind == LineKind::Keep {
            at += 1;
            edits.extend(edit.take());
            continue;
        }
        let edit = edit.get_or_insert_with(|| Edit { start: at, n_removed: 0, added: Vec::new() });
        match line.kind {
            LineKind::Add => edit.added.push(line.text),
            _ => {
                edit.n_removed += 1;
                at += 1;
            }
        }
    }
    edits.extend(edit);
    (at > start).then_some(at)
}

/// Finds the place of a chunk from a line on.
fn place<'c, 'a>(
    lines: &Lines<'_>,
    chunk: &'c Chunk<'a>,
    cursor: usize,
    budget: &mut Budget,
) -> Result<(usize, Cow<'c, [Line<'a>]>), Misfit> {
    let old: Vec<&str> = chunk.old().collect();
    if old.is_empty() {
        return Ok((lines.len(), Cow::Borrowed(&chunk.lines)));
    }
    let from = match chunk.is_at_end {
        true => From::End(cursor),
        false => From::Line(cursor),
    };
    if let Some(start) = lines.seek(&old, from, budget)? {
        return Ok((start, Cow::Borrowed(&chunk.lines)));
    }
    // Models often end with an empty line that stands for the end of the last one.
    if let Some((&"", shorter)) = old.split_last()
        && let Some(start) = lines.seek(shorter, from, budget)?
    {
        return Ok((start, Cow::Owned(without_last_empty(&chunk.lines))));
    }
    Err(Misfit::Lines(old.join("\n")))
}

/// The lines of a chunk whose last old line, an empty one, is not in the file: it neither was there
/// nor comes.
fn without_last_empty<'a>(lines: &[Line<'a>]) -> Vec<Line<'a>> {
    let mut lines = lines.to_vec();
    let last_old = lines.iter().rposition(|line| line.kind != LineKind::Add);
    if let Some(index) = last_old
        && let Some(line) = lines.get_mut(index)
    {
        match line.kind {
            LineKind::Keep => line.kind = LineKind::Add,
            _ => {
                lines.remove(index);
            }
        }
    }
    let last_new = lines.iter().rposition(|line| line.kind != LineKind::Remove);
    if let Some(index) = last_new
        && let Some(line) = lines.get_mut(index)
        && line.text.is_empty()
    {
        match line.kind {
            LineKind::Keep => line.kind = LineKind::Remove,
            _ => {
                lines.remove(index);
            }
        }
    }
    lines
}

fn write(full: &[&str], edits: &[Edit<'_>], end: &str, size: usize) -> Planned {
    let mut writer = Writer { content: String::with_capacity(size + size / 8), n: 0, end };
    let mut runs = Vec::new();
    let mut index = 0;
    for edit in edits {
        writer.keep(full.get(index..edit.start).unwrap_or_default());
        let end = edit.start + edit.n_removed;
        // A line before it that had no end gets one, which is a change as well.
        let is_ended = !edit.added.is_empty() && writer.end_line();
        let more = usize::from(is_ended);
        let new = writer.n - more;
        edit.added.iter().for_each(|line| writer.add(line));
        Run::push(&mut runs, edit.start - more..end, new..writer.n);
        index = end;
    }
    writer.keep(full.get(index..).unwrap_or_default());
    Planned { content: writer.content, runs }
}

struct Writer<'a> {
    content: String,
    /// How many lines it has.
    n: usize,
    end: &'a str,
}

impl Writer<'_> {
    fn keep(&mut self, lines: &[&str]) {
        lines.iter().for_each(|line| self.content.push_str(line));
        self.n += lines.len();
    }

    fn add(&mut self, line: &str) {
        self.content.push_str(line);
        self.content.push_str(self.end);
        self.n += 1;
    }

    /// Gives the last line an end; says whether it had none.
    fn end_line(&mut self) -> bool {
        let is_open = !self.content.is_empty() && !self.content.ends_with(['\n', '\r']);
        if is_open {
            self.content.push_str(self.end);
        }
        is_open
    }
}

/// What ends a line of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Lf,
    LfAndCr,
}

/// The lines of a content with their ends.
fn split_lines(content: &str, ends: Ends) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let end = match ends {
            Ends::Lf => rest.find('\n'),
            Ends::LfAndCr => rest.find(['\n', '\r']),
        };
        let is_pair = |at: usize| rest.get(at..).is_some_and(|it| it.starts_with("\r\n"));
        let end = end.map_or(rest.len(), |at| at + 1 + usize::from(is_pair(at)));
        let (line, after) = rest.split_at(end);
        lines.push(line);
        rest = after;
    }
    lines
}

/// A line without its end.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// The line end of a content: that of its first line.
fn line_end<'a>(lines: &[&'a str]) -> &'a str {
    let end = lines.first().and_then(|line| line.get(bare(line).len()..));
    end.filter(|end| !end.is_empty()).unwrap_or("\n")
}

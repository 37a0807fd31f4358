//! From markers to text.

use super::line::{self, Fence, Fences, Place, escape, escape_long, trim};
use super::read::files::{self, RENAMED};
use super::{BLOCK_LIMIT, Change, FileChange, LINE_LIMIT, Marker, Question};

/// How long a list of files may be before it is continued in another marker.
const FILES_LIMIT: usize = BLOCK_LIMIT / 2;

/// Appends a marker, [normalised](Marker::normalised), and what keeps the next line from being
/// taken for a part of it. It must be at the start of a line and outside of code fences, which
/// [`Writer`] sees to.
pub fn write(marker: &Marker, out: &mut String) {
    match &marker.normalised() {
        Marker::Progress(text) => head(line::PROGRESS, text, out),
        Marker::Complete { text } => head(line::CODEX_COMPLETE, text, out),
        Marker::Question(question) => write_question(question, out),
        Marker::Blocked { reason, context } => {
            head(line::BLOCKED, reason, out);
            write_content(context, Place::Blocked, out);
            out.push('\n');
        }
        Marker::FilesModified(files) => write_files(files, out),
        Marker::Other { name, content } => {
            let (first, rest) = match content.split_first() {
                Some((first, rest)) => (first.as_str(), rest),
                None => ("", content.as_slice()),
            };
            head(name, first, out);
            write_content(rest, Place::Other, out);
            if line::has_several_lines(name) {
                out.push('\n');
            }
        }
    }
}

/// Appends text, each line escaped where it could be taken for a marker. An empty text is an empty
/// line; a line end at the very end is not another one. It comes back line by line as it was, but
/// for carriage returns before a line end, and for a line that only its escapes make longer than
/// [`LINE_LIMIT`]: it keeps them.
pub fn write_text(text: &str, out: &mut String) {
    text_lines(text).for_each(|line| write_text_line(line, out));
}

/// Writes markers and text one after the other, and closes a code fence that the text left open
/// before a marker, which would be hidden in it.
#[derive(Debug, Default)]
pub struct Writer {
    fence: Option<Fence>,
}

impl Writer {
    /// Appends text as [`write_text()`] does.
    pub fn text(&mut self, text: &str, out: &mut String) {
        for line in text_lines(text) {
            if line.len() <= LINE_LIMIT {
                self.fence = Fence::after(self.fence, line);
            }
            write_text_line(line, out);
        }
    }

    /// Appends a marker as [`write()`] does.
    pub fn marker(&mut self, marker: &Marker, out: &mut String) {
        if let Some(fence) = self.fence.take() {
            out.push_str(&fence.closing());
            out.push('\n');
        }
        write(marker, out);
    }
}

fn text_lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(|line| line.trim_end_matches('\r'))
}

fn write_text_line(line: &str, out: &mut String) {
    if line.len() <= LINE_LIMIT {
        escape(line, Place::Text, Fences::Leave, out);
    } else {
        escape_long(line, out);
    }
}

fn head(name: &str, text: &str, out: &mut String) {
    let space = if text.is_empty() { "" } else { " " };
    escape(&format!("[{name}]{space}{text}"), Place::Head, Fences::Leave, out);
}

fn write_content(lines: &[String], place: Place, out: &mut String) {
    let open = lines.iter().fold(None, |open, line| Fence::after(open, line));
    let fences = if open.is_some() { Fences::Escape } else { Fences::Leave };
    lines.iter().for_each(|line| escape(line, place, fences, out));
}

fn write_question(question: &Question, out: &mut String) {
    head(line::QUESTION, &question.text, out);
    if !question.options.is_empty() {
        out.push_str("Options:\n");
    }
    for choice in &question.options {
        let mut line = format!("{}.", choice.number);
        if !choice.label.is_empty() {
            line.push(' ');
            line.push_str(&choice.label);
        }
        if let Some(description) = &choice.description {
            line.push_str(" - ");
            line.push_str(description);
        }
        escape(&line, Place::Head, Fences::Leave, out);
    }
    write_content(&question.context, Place::Question, out);
    // After options one blank line leads to the context, so it takes two to say there is none.
    if !question.options.is_empty() && question.context.is_empty() {
        out.push('\n');
    }
    out.push('\n');
}

fn write_files(files: &[FileChange], out: &mut String) {
    head(line::FILES_MODIFIED, "", out);
    let mut start = out.len();
    let mut line = String::new();
    for file in files {
        line.clear();
        escape(&item(file), Place::Head, Fences::Leave, &mut line);
        if out.len() - start + line.len() > FILES_LIMIT {
            out.push('\n');
            head(line::FILES_MODIFIED, "", out);
            start = out.len();
        }
        out.push_str(&line);
    }
    out.push('\n');
}

fn item(file: &FileChange) -> String {
    let has_note = files::file(&file.path).change != Change::Unknown;
    let path = if is_plain(&file.path) && !has_note && !file.path.contains(RENAMED) {
        file.path.clone()
    } else {
        quoted(&file.path)
    };
    match &file.change {
        Change::Created => format!("- {path} (created)"),
        Change::Modified => format!("- {path} (modified)"),
        Change::Deleted => format!("- {path} (deleted)"),
        Change::Renamed { from } if is_plain(from) => format!("- {path}{RENAMED}{from})"),
        Change::Renamed { from } => format!("- {path}{RENAMED}{})", quoted(from)),
        Change::Unknown => format!("- {path}"),
    }
}

fn is_plain(path: &str) -> bool {
    !path.is_empty() && trim(path) == path && !path.starts_with('"') && path.chars().all(is_seen)
}

/// Whether a reader sees this character and a terminal only shows it.
fn is_seen(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric()
}

fn quoted(path: &str) -> String {
    let json = serde_json::Value::from(path).to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_seen(c) {
            true => out.push(c),
            false => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units)
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    out
}

//! A task on the standard output: markers, JSON lines, or text for people. Sans-IO.

use std::time::Duration;

use tieline_event::{Event, FileFate, Kind, TaskFile, TaskMarker, TaskStop, Teller};
use tieline_hub::Entry;
use tieline_wire::markers::{self, Marker};

use super::state::{State, TEXT, TaskId};
use crate::json::push_escaped;
use crate::review::short;
use crate::run::jsonl;
use crate::run::page::{Layout, Look, Page, Style};
use crate::sanitize::{one_line, sanitize};
use crate::summary::{self, cut, task_marker};
use crate::visible::{self, wrap};

#[cfg(test)]
mod tests;

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Markers, and the agent's text between them.
    Markers,
    /// Every event and delta as a line of JSON.
    Jsonl,
    /// For people.
    Text,
}

/// How many lines of a failed verification are shown.
const SHOWN: usize = 20;

/// Collects what is to be written.
pub(super) struct Printer {
    format: Format,
    /// None of a program that is no task of ours.
    id: Option<TaskId>,
    page: Page,
    writer: markers::Writer,
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
}

impl Printer {
    pub(super) fn new(format: Format, look: Look, id: Option<&TaskId>) -> Self {
        Self {
            format,
            id: id.cloned(),
            // All of it is what was asked for: nothing goes to stderr.
            page: Page::new(Look { layout: Layout::Together, ..look }),
            writer: markers::Writer::default(),
            out: Vec::new(),
            err: Vec::new(),
        }
    }

    pub(super) fn entry(&mut self, entry: &Entry) {
        if self.format == Format::Jsonl
            && let Some(id) = &self.id
        {
            jsonl::push(entry, id.key(), &mut self.out);
        }
    }

    /// A line of the agent's text.
    pub(super) fn line(&mut self, line: &str) {
        match self.format {
            Format::Markers => {
                // What ends a line for any reader begins one for the writer, which looks for markers there.
                let ends = |c: char| {
                    matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}')
                        || matches!(c, '\u{2028}' | '\u{2029}')
                };
                let mut text = String::new();
                line.split(ends).for_each(|line| self.writer.text(&sanitize(line), &mut text));
                self.out.extend_from_slice(text.as_bytes());
            }
            Format::Text => self.put(Style::Plain, &sanitize(line)),
            Format::Jsonl => {}
        }
    }

    pub(super) fn marker(&mut self, marker: &TaskMarker) {
        match self.format {
            Format::Markers => {
                let mut text = String::new();
                for marker in to_wire(marker, self.id.as_ref()) {
                    self.writer.marker(&marker, &mut text);
                }
                self.out.extend_from_slice(sanitize(&text).as_bytes());
            }
            Format::Text => self.tell(marker),
            Format::Jsonl => {}
        }
    }

    /// A remark that is no part of the task.
    pub(super) fn remark(&mut self, text: &str) {
        self.err.extend_from_slice(format!("tieline: {}\n", one_line(text)).as_bytes());
    }

    /// The line at the bottom of a terminal.
    pub(super) fn live(&mut self, state: &State, worked: Duration) {
        if self.format != Format::Text || !self.page.look.live {
            return;
        }
        let seconds = worked.as_secs();
        let tokens = match state.tokens {
            0 => String::new(),
            tokens => format!(" · {} tokens", summary::number(tokens)),
        };
        let asked = match state.questions.len() {
            0 => String::new(),
            n => format!(" · {n} open"),
        };
        let facts = format!(" · {}:{:02}{tokens}{asked}", seconds / 60, seconds % 60);
        let id = self.id.as_ref().map_or("", TaskId::as_str);
        let room = self.page.room(0).saturating_sub(facts.chars().count() + id.len() + 6);
        let step = cut(&one_line(&state.step), room.max(10));
        self.page.live(&format!("{id} · {step}{facts}"));
        self.page.take(&mut self.out, &mut self.err);
    }

    pub(super) fn finish(&mut self) {
        self.page.erase_live();
        self.page.take(&mut self.out, &mut self.err);
    }

    fn put(&mut self, style: Style, text: &str) {
        self.page.line(0, style, text);
        self.page.take(&mut self.out, &mut self.err);
    }

    /// A line in which everything is visible, in rows of the screen.
    fn wrapped(&mut self, style: Style, line: &str, head: &str) {
        let width = self.page.room(0);
        for row in wrap(&sanitize(line), head, "  … ", width) {
            self.put(style, &row);
        }
    }

    fn tell(&mut self, marker: &TaskMarker) {
        let id = self.id.clone();
        match marker {
            TaskMarker::Progress { text, by: Teller::Agent } => {
                self.put(Style::Bold, &format!("▸ {}", one_line(text)));
            }
            TaskMarker::Progress { text, by: Teller::Tieline } => {
                self.put(Style::Dim, &format!("· {}", one_line(text)));
            }
            TaskMarker::Question { id: question, text, options, context, .. } => {
                self.wrapped(Style::Bold, text, &format!("? {question}: "));
                for option in options {
                    let more = option.description.as_ref().map(|it| format!(" – {it}"));
                    let label = format!("{}{}", option.label, more.unwrap_or_default());
                    let label = short(&label, TEXT);
                    self.wrapped(Style::Plain, &label, &format!("  {}. ", option.number));
                }
                context.iter().for_each(|line| self.wrapped(Style::Dim, line, "  "));
                if let Some(id) = &id {
                    self.put(Style::Dim, &format!("  {}", how_to_answer(id, question)));
                }
            }
            TaskMarker::Blocked { reason, context } => {
                self.put(Style::Bold, &format!("! blocked: {}", one_line(reason)));
                for line in context {
                    self.put(Style::Dim, &format!("  {}", one_line(line)));
                }
            }
            TaskMarker::FilesModified { files, mismatches, .. } => {
                for file in files {
                    self.put(Style::Plain, &format!("  {}", visible::line(&file_line(file))));
                }
                for mismatch in mismatches {
                    self.put(Style::Dim, &format!("! the agent {}", one_line(mismatch)));
                }
            }
            TaskMarker::Verified { passed, output, .. } => {
                let sign = if *passed { '✓' } else { '✗' };
                self.put(Style::Bold, &format!("{sign} {}", task_marker(marker)));
                if !passed {
                    for line in last_lines(output) {
                        self.put(Style::Dim, &format!("  {}", one_line(line)));
                    }
                }
            }
            other => self.put(Style::Bold, &format!("— {}", task_marker(other))),
        }
    }
}

fn how_to_answer(id: &TaskId, question: &str) -> String {
    format!("answer: tieline task answer {id} {question}=…")
}

fn last_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    lines().skip(lines().count().saturating_sub(SHOWN))
}

fn file_line(file: &TaskFile) -> String {
    let word = match (file.change, &file.from) {
        (FileFate::Created, _) => "created".to_owned(),
        (FileFate::Modified, _) => "modified".to_owned(),
        (FileFate::Deleted, _) => "deleted".to_owned(),
        (FileFate::Renamed, Some(from)) => format!("renamed from {from}"),
        (FileFate::Renamed, None) => "renamed".to_owned(),
        (FileFate::Unknown, _) => return file.path.clone(),
    };
    format!("{} ({word})", file.path)
}

/// A word about a task as markers of the protocol. Whatever ends a task before it is done is a block
/// there, so that who reads nothing else knows.
pub fn to_wire(marker: &TaskMarker, id: Option<&TaskId>) -> Vec<Marker> {
    let other = |name: &str, content: Vec<String>| Marker::Other { name: name.to_owned(), content };
    match marker {
        TaskMarker::Progress { text, .. } => vec![Marker::Progress(text.clone())],
        TaskMarker::Question { id: question, text, options, context, .. } => {
            let options = options.iter().map(|it| markers::Choice {
                number: it.number,
                label: short(&it.label, TEXT),
                description: it.description.as_ref().map(|text| short(text, TEXT)),
            });
            let mut context = context.clone();
            context.extend(id.map(|id| how_to_answer(id, question)));
            let (text, options) = (text.clone(), options.collect());
            vec![Marker::Question(markers::Question { text, options, context })]
        }
        TaskMarker::Answered { .. } => vec![Marker::Progress(task_marker(marker))],
        TaskMarker::Blocked { reason, context } => {
            vec![Marker::Blocked { reason: reason.clone(), context: context.clone() }]
        }
        TaskMarker::FilesModified { files, mismatches, partial } => {
            let change = |file: &TaskFile| match (file.change, &file.from) {
                (FileFate::Created, _) | (FileFate::Renamed, None) => markers::Change::Created,
                (FileFate::Modified, _) => markers::Change::Modified,
                (FileFate::Deleted, _) => markers::Change::Deleted,
                (FileFate::Unknown, _) => markers::Change::Unknown,
                (FileFate::Renamed, Some(from)) => markers::Change::Renamed { from: from.clone() },
            };
            let listed = files
                .iter()
                .map(|file| markers::FileChange { path: file.path.clone(), change: change(file) });
            let mut all = vec![Marker::FilesModified(listed.collect())];
            let mut content: Vec<String> =
                mismatches.iter().map(|it| format!("The agent {it}")).collect();
            if *partial {
                content.push("There were too many files to look at all of them".to_owned());
            }
            all.extend(content.into_iter().map(|line| other("FILES_MISMATCH", vec![line])));
            all
        }
        TaskMarker::Verified { passed, output, .. } => {
            let mut content = vec![task_marker(marker)];
            if !passed {
                content.extend(last_lines(output).map(one_line));
            }
            vec![other("TEST_RESULTS", content)]
        }
        TaskMarker::Completed { iterations } => {
            vec![Marker::Complete { text: format!("Task completed in {iterations} iterations") }]
        }
        TaskMarker::Stopped { how, reason } => {
            let how = match how {
                TaskStop::Failed => "Task failed",
                TaskStop::Budget => "Task is out of budget",
                TaskStop::Cancelled => "Task was stopped",
            };
            vec![Marker::Blocked { reason: format!("{how}: {reason}"), context: Vec::new() }]
        }
        TaskMarker::Other { name, content } => vec![other(name, content.clone())],
    }
}

/// A task as somebody reads along who does not work on it.
pub struct Tail(Printer);

impl Tail {
    /// In this form.
    pub fn new(format: Format, look: Look, id: &TaskId) -> Self {
        Self(Printer::new(format, Look { live: false, ..look }, Some(id)))
    }

    /// Of a program that speaks in markers and is no task: nobody can answer it here.
    pub fn of_program(format: Format, look: Look) -> Self {
        Self(Printer::new(format, Look { live: false, ..look }, None))
    }

    /// An event of the task's conversation.
    pub fn event(&mut self, event: &Event) {
        match (&event.kind, self.0.format) {
            (_, Format::Jsonl) => {
                let json = event.to_json().expect("an event has no map whose keys are not strings");
                push_escaped(&json, &mut self.0.out);
                self.0.out.push(b'\n');
            }
            (Kind::TaskMarker(marker), _) => self.0.marker(marker),
            _ => {}
        }
    }

    /// A word about the task.
    pub fn marker(&mut self, marker: &TaskMarker) {
        self.0.marker(marker);
    }

    /// A line of text between the words.
    pub fn line(&mut self, line: &str) {
        self.0.line(line);
    }

    /// Takes what is to be printed.
    pub fn take(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0.out)).into_owned()
    }
}

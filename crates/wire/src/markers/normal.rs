//! Markers as they can be printed.

use super::line::{self, NAME_LIMIT, is_blank, is_space, trim};
use super::{BLOCK_LIMIT, Change, Choice, FileChange, LINE_LIMIT, Marker, Question};

/// The longest text of a line. Escapes make it longer by a tenth at most.
const TEXT_LIMIT: usize = LINE_LIMIT / 2;

/// The longest path: what the system allows, and with each byte written as `\u0000`, twice on one
/// line, it still fits.
const PATH_LIMIT: usize = 4096;

/// How much the lines below the first may have together.
const CONTENT_LIMIT: usize = BLOCK_LIMIT / 2;

/// Stands for what was cut off.
const CUT: &str = "…";

impl Marker {
    /// The marker as it is read again once it is written. Doing it twice changes nothing.
    ///
    /// * In every line, control characters become spaces; white space at its end goes, and also at
    ///   the start where the line is not context.
    /// * A text that must be one line has spaces for its line ends; lines of context with line ends
    ///   in them become several; blank ones go.
    /// * A `[BLOCKED]` without a reason, or a `[QUESTION]` with neither text nor options, has the
    ///   first line of its context instead.
    /// * The ` - ` within the label of an option becomes ` – `; an option without a label has its
    ///   description instead.
    /// * A [`Marker::Other`] by a known name is that marker; a name that is none is made one.
    /// * Lines over 32 KiB, paths over 4 KiB and content over 128 KiB end with `…`. A list of files
    ///   is never cut, but [`super::write()`] makes several markers of a very long one.
    #[must_use]
    pub fn normalised(&self) -> Self {
        match self {
            Self::Progress(text) => Self::Progress(one_line(text)),
            Self::Complete { text } => Self::Complete { text: one_line(text) },
            Self::Question(question) => Self::Question(normal_question(question)),
            Self::Blocked { reason, context } => {
                let mut context = lines(context);
                let reason = or_first(one_line(reason), &mut context);
                limit(&mut context, CONTENT_LIMIT);
                Self::Blocked { reason, context }
            }
            Self::FilesModified(files) => {
                Self::FilesModified(files.iter().map(normal_file).collect())
            }
            Self::Other { name, content } => other(name, content),
        }
    }
}

fn normal_question(question: &Question) -> Question {
    let mut context = lines(&question.context);
    let mut text = one_line(&question.text);
    if question.options.is_empty() {
        text = or_first(text, &mut context);
    }
    let mut options: Vec<Choice> = question.options.iter().map(normal_choice).collect();
    let n_options = options.len();
    let mut room = CONTENT_LIMIT;
    let mut taken = 0;
    for choice in &options {
        // The number, the signs around it and the line end have less than 20 bytes.
        let bytes = choice.label.len() + choice.description.as_ref().map_or(0, String::len) + 20;
        if bytes + CUT.len() + 1 > room {
            break;
        }
        room -= bytes;
        taken += 1;
    }
    options.truncate(taken);
    if taken < n_options {
        context = vec![CUT.to_owned()];
    }
    limit(&mut context, room);
    Question { text, options, context }
}

fn normal_choice(choice: &Choice) -> Choice {
    let short = |text: &str| cut(one_line(text), TEXT_LIMIT / 2);
    let mut label = short(&choice.label);
    let mut description = choice.description.as_deref().map(short).filter(|text| !text.is_empty());
    if label.is_empty() {
        label = description.take().unwrap_or_default();
    }
    // A dash that is replaced may leave one behind that shares a space with it.
    while label.contains(" - ") {
        label = cut(label.replace(" - ", " – "), TEXT_LIMIT / 2);
    }
    if let Some(start) = label.strip_suffix(" -") {
        label = cut(format!("{start} –"), TEXT_LIMIT / 2);
    }
    Choice { number: choice.number, label, description }
}

fn normal_file(file: &FileChange) -> FileChange {
    let short = |path: &String| cut(path.clone(), PATH_LIMIT);
    let change = match &file.change {
        Change::Renamed { from } => Change::Renamed { from: short(from) },
        other => other.clone(),
    };
    FileChange { path: short(&file.path), change }
}

fn other(name: &str, content: &[String]) -> Marker {
    let name = normal_name(name);
    match name.as_str() {
        line::PROGRESS => Marker::Progress(one_line(&content.join("\n"))),
        line::CODEX_COMPLETE => Marker::Complete { text: one_line(&content.join("\n")) },
        line::BLOCKED => {
            Marker::Blocked { reason: String::new(), context: content.to_vec() }.normalised()
        }
        line::QUESTION => {
            let (text, options) = (String::new(), Vec::new());
            Marker::Question(Question { text, options, context: content.to_vec() }).normalised()
        }
        line::FILES_MODIFIED => {
            let path = |path: &String| FileChange { path: path.clone(), change: Change::Unknown };
            Marker::FilesModified(content.iter().map(path).collect()).normalised()
        }
        _ if line::has_several_lines(&name) => {
            let mut content = lines(content);
            if let Some(first) = content.first_mut() {
                *first = trim(first).to_owned();
            }
            limit(&mut content, CONTENT_LIMIT);
            Marker::Other { name, content }
        }
        _ => {
            let text = one_line(&content.join("\n"));
            let content = if text.is_empty() { Vec::new() } else { vec![text] };
            Marker::Other { name, content }
        }
    }
}

fn normal_name(name: &str) -> String {
    if line::is_name(name) {
        return name.to_owned();
    }
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    let name: String = name.chars().map(|char| plain(char).to_ascii_uppercase()).collect();
    let is_begun = name.starts_with(|char: char| char.is_ascii_uppercase());
    let mut name = if is_begun { name } else { format!("X{name}") };
    if name.len() < 2 {
        name.push('_');
    }
    name.truncate(NAME_LIMIT);
    name
}

fn or_first(text: String, context: &mut Vec<String>) -> String {
    if !text.is_empty() || context.is_empty() {
        return text;
    }
    trim(&context.remove(0)).to_owned()
}

fn clean(text: &str) -> String {
    // Some readers end a line at these two.
    let ends_line = |char: char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}');
    text.chars().map(|char| if ends_line(char) { ' ' } else { char }).collect()
}

fn one_line(text: &str) -> String {
    cut(trim(&clean(text)).to_owned(), TEXT_LIMIT)
}

fn lines(context: &[String]) -> Vec<String> {
    context
        .iter()
        .flat_map(|entry| entry.split('\n'))
        .map(|line| clean(line).trim_end_matches(is_space).to_owned())
        .filter(|line| !is_blank(line))
        .map(|line| cut(line, TEXT_LIMIT))
        .collect()
}

fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit - CUT.len()));
        text.push_str(CUT);
    }
    text
}

/// Takes lines off the end until all have room, the sign of the cut among them.
fn limit(lines: &mut Vec<String>, room: usize) {
    let cost = |line: &String| line.len() + 1;
    if lines.iter().map(cost).sum::<usize>() <= room {
        return;
    }
    let mut left = room.saturating_sub(CUT.len() + 1);
    let taken = lines
        .iter()
        .take_while(|line| match left.checked_sub(cost(line)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .count();
    lines.truncate(taken);
    lines.push(CUT.to_owned());
}

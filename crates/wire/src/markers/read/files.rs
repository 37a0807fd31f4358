//! The lines of `[FILES_MODIFIED]`.

use super::super::line::{Place, is_space, trim, unescape};
use super::super::{Change, FileChange};
use super::Reading;

/// What stands between a new path and the old one.
pub(in super::super) const RENAMED: &str = " (renamed from ";

/// One line of the list.
pub(super) fn item(line: &str, reading: Reading) -> Option<FileChange> {
    let line = match reading {
        Reading::Spec => line,
        Reading::Lenient => line.trim_start_matches(is_space),
    };
    // A line of dashes is a rule across the page.
    if line.bytes().all(|byte| byte == b'-') {
        return None;
    }
    let line = unescape(line, Place::Head);
    let text = trim(line.strip_prefix('-')?);
    (!text.is_empty()).then(|| file(text))
}

/// A file on the line of the marker itself.
pub(super) fn first(content: &str) -> Option<FileChange> {
    if content.starts_with('-') {
        return item(content, Reading::Spec);
    }
    Some(file(content)).filter(|file| file.change != Change::Unknown)
}

/// A path and the note in brackets behind it.
pub(in super::super) fn file(text: &str) -> FileChange {
    if let Some((path, rest)) = quoted(text)
        && let Some(change) = if rest.is_empty() { Some(Change::Unknown) } else { note(rest) }
    {
        return FileChange { path, change };
    }
    let at = text.find(RENAMED).or_else(|| text.rfind(" ("));
    if let Some((path, rest)) = at.and_then(|at| text.split_at_checked(at))
        && let Some(change) = note(rest)
    {
        return FileChange { path: trim(path).to_owned(), change };
    }
    FileChange { path: text.to_owned(), change: Change::Unknown }
}

/// ` (created)` and the like.
fn note(text: &str) -> Option<Change> {
    if let Some(from) = text.strip_prefix(RENAMED) {
        let from = trim(from.strip_suffix(')')?);
        let from = match quoted(from) {
            Some((path, "")) => path,
            _ => from.to_owned(),
        };
        return Some(Change::Renamed { from });
    }
    let word = text.strip_prefix(" (")?.strip_suffix(')')?;
    if word.eq_ignore_ascii_case("created") {
        Some(Change::Created)
    } else if word.eq_ignore_ascii_case("modified") {
        Some(Change::Modified)
    } else if word.eq_ignore_ascii_case("deleted") {
        Some(Change::Deleted)
    } else {
        None
    }
}

/// A JSON string at the start of the text, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    if !text.starts_with('"') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let path = values.next()?.ok()?;
    Some((path, text.get(values.byte_offset()..)?))
}

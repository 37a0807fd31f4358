//! Changed files in the protocol's form.

use tieline_event::{ChangeKind, FileChange};
use tieline_wire::sqeq::{self, ChangeForm, Changes};

use crate::{Fetch, whole};

#[cfg(test)]
mod tests;

/// Lines around a change.
const AROUND: usize = 3;

/// Changed files by path.
pub(super) fn changes(
    changes: &[FileChange],
    form: ChangeForm,
    fetch: &mut Fetch<'_>,
) -> Changes<'static> {
    let files = changes.iter().map(|change| (change.path.clone().into(), of(change, fetch)));
    Changes { form, files: files.collect() }
}

fn of(change: &FileChange, fetch: &mut Fetch<'_>) -> sqeq::FileChange<'static> {
    match change.kind {
        ChangeKind::Add => {
            let content = match (&change.new_text, &change.diff) {
                (Some(text), _) => whole(text, fetch),
                (None, Some(diff)) => added(&whole(diff, fetch)),
                (None, None) => String::new(),
            };
            sqeq::FileChange::Add { content: content.into() }
        }
        ChangeKind::Delete => {
            let content =
                change.old_text.as_ref().map(|text| whole(text, fetch)).unwrap_or_default();
            sqeq::FileChange::Delete { content: Some(content.into()) }
        }
        ChangeKind::Update => sqeq::FileChange::Update {
            unified_diff: hunks(change, fetch).into(),
            move_path: change.moved_to.clone().map(Into::into),
        },
    }
}

/// The hunks of a change, without the lines that name files.
fn hunks(change: &FileChange, fetch: &mut Fetch<'_>) -> String {
    match (&change.diff, &change.old_text, &change.new_text) {
        (Some(diff), ..) => {
            let diff = whole(diff, fetch);
            let lines = diff.split_inclusive('\n').skip_while(|line| !line.starts_with("@@"));
            let hunks: String = lines.collect();
            if hunks.is_empty() { diff } else { hunks }
        }
        (None, Some(old), Some(new)) => unified(&whole(old, fetch), &whole(new, fetch)),
        (None, None, Some(new)) => unified("", &whole(new, fetch)),
        _ => String::new(),
    }
}

/// A file that is new, from a diff or, as some agents have it, as it is.
fn added(diff: &str) -> String {
    if !diff.lines().any(|line| line.starts_with("@@")) {
        return diff.to_owned();
    }
    let lines = diff.split_inclusive('\n').skip_while(|line| !line.starts_with("@@"));
    lines.filter_map(|line| line.strip_prefix('+')).collect()
}

/// One change as git would show it.
pub(super) fn section(change: &FileChange, fetch: &mut Fetch<'_>) -> String {
    let old = change.path.trim_start_matches('/');
    let new = change.moved_to.as_deref().unwrap_or(&change.path).trim_start_matches('/');
    let mut text = format!("diff --git a/{old} b/{new}\n");
    let body = match of(change, fetch) {
        sqeq::FileChange::Add { content } => {
            text.push_str(&format!("new file mode 100644\n--- /dev/null\n+++ b/{new}\n"));
            unified("", &content)
        }
        sqeq::FileChange::Delete { content } => {
            text.push_str(&format!("deleted file mode 100644\n--- a/{old}\n+++ /dev/null\n"));
            unified(content.as_deref().unwrap_or_default(), "")
        }
        sqeq::FileChange::Update { unified_diff, .. } => {
            if old != new {
                text.push_str(&format!("rename from {old}\nrename to {new}\n"));
            }
            text.push_str(&format!("--- a/{old}\n+++ b/{new}\n"));
            unified_diff.to_string()
        }
        sqeq::FileChange::Other(_) => String::new(),
    };
    text.push_str(&body);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What differs between two texts, as one hunk from the first to the last line that does.
fn unified(old: &str, new: &str) -> String {
    let before: Vec<&str> = old.split_inclusive('\n').collect();
    let after: Vec<&str> = new.split_inclusive('\n').collect();
    let same_start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let shortest = before.len().min(after.len()) - same_start;
    let ends = before.iter().rev().zip(after.iter().rev());
    let same_end = ends.take(shortest).take_while(|(one, other)| one == other).count();
    if same_start == before.len() && same_start == after.len() {
        return String::new();
    }
    let from = same_start.saturating_sub(AROUND);
    let (old_changed, new_changed) = (before.len() - same_end, after.len() - same_end);
    let (old_to, new_to) =
        ((old_changed + AROUND).min(before.len()), (new_changed + AROUND).min(after.len()));
    let place = |from: usize, to: usize| match to - from {
        // A range without lines names the line before it.
        0 => format!("{from},0"),
        n => format!("{},{n}", from + 1),
    };
    let mut text = format!("@@ -{} +{} @@\n", place(from, old_to), place(from, new_to));
    let mut lines = |sign: char, lines: Option<&[&str]>| {
        for line in lines.unwrap_or_default() {
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    lines(' ', before.get(from..same_start));
    lines('-', before.get(same_start..old_changed));
    lines('+', after.get(same_start..new_changed));
    lines(' ', before.get(old_changed..old_to));
    text
}

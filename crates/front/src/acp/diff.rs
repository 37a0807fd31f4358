//! Changes of files as a client shows them.

use std::path::{Path, PathBuf};

use tieline_event::{ChangeKind, FileChange, Text};
use tieline_wire::acp::schema::{Diff, ToolCallContent, ToolCallLocation};

use crate::{Fetch, whole};

#[cfg(test)]
mod tests;

/// Whole files up to this size are shown whole; of larger ones what changed.
const WHOLE: u64 = 1024 * 1024;

/// The changes as diffs with the places they are at.
pub(super) fn diffs(
    changes: &[FileChange],
    workspace: &Path,
    fetch: &mut Fetch<'_>,
) -> (Vec<ToolCallContent>, Vec<ToolCallLocation>) {
    let (mut content, mut places) = (Vec::new(), Vec::new());
    for change in changes {
        let path = absolute(workspace, change.moved_to.as_deref().unwrap_or(&change.path));
        let hunks = change.diff.as_ref().map(|diff| hunks(&whole(diff, fetch))).unwrap_or_default();
        let line = hunks.first().and_then(|hunk| hunk.line);
        places.push(ToolCallLocation::new(path.clone()).line(line));
        let is_small = |text: &Option<Text>| text.as_ref().is_none_or(|text| text.len() <= WHOLE);
        let is_known = match change.kind {
            ChangeKind::Add => change.new_text.is_some(),
            ChangeKind::Update => change.new_text.is_some() && change.old_text.is_some(),
            ChangeKind::Delete => true,
        };
        let fits = is_small(&change.old_text) && is_small(&change.new_text);
        if is_known && (fits || hunks.is_empty()) {
            let old = change.old_text.as_ref().map(|text| whole(text, fetch));
            let new = change.new_text.as_ref().map(|text| whole(text, fetch)).unwrap_or_default();
            content.push(ToolCallContent::Diff(Diff::new(path, new).old_text(old)));
            continue;
        }
        for Hunk { old, new, .. } in hunks {
            let diff = Diff::new(path.clone(), new).old_text(old);
            content.push(ToolCallContent::Diff(diff));
        }
    }
    (content, places)
}

/// A path as a client can open it.
pub(super) fn absolute(workspace: &Path, path: &str) -> PathBuf {
    workspace.join(path)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// The first line of the new file that changed, or before which something is gone.
    line: Option<u32>,
    old: String,
    new: String,
}

/// The hunks of a unified diff; lines before the first header are a hunk too, if they change
/// anything.
fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut is_open = false;
    let mut before = "";
    let mut next = None;
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push(Hunk::default());
            next = new_start(line);
            is_open = true;
            continue;
        }
        if !is_open && (line.starts_with("--- ") || line.starts_with("+++ ")) {
            continue;
        }
        let (sign, text) = line.split_at_checked(1).unwrap_or(("", line));
        if !is_open && matches!(sign, "+" | "-") {
            hunks.push(Hunk::default());
            is_open = true;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        if matches!(sign, "+" | "-") {
            hunk.line = hunk.line.or(next);
        }
        if !matches!(sign, "-" | "\\") {
            next = next.map(|next| next.saturating_add(1));
        }
        match sign {
            "+" => hunk.new.push_str(text),
            "-" => hunk.old.push_str(text),
            // `\ No newline at end of file` is about the line before, and the side that line is on.
            "\\" => {
                if before != "+" {
                    trim_newline(&mut hunk.old);
                }
                if before != "-" {
                    trim_newline(&mut hunk.new);
                }
            }
            _ => {
                hunk.old.push_str(text);
                hunk.new.push_str(text);
            }
        }
        before = sign;
    }
    hunks
}

fn trim_newline(text: &mut String) {
    if text.ends_with('\n') {
        text.pop();
    }
}

/// `@@ -a,b +c,d @@`: c, or the line behind it where d is none. Lines begin at 1.
fn new_start(header: &str) -> Option<u32> {
    let after = header.split_once('+')?.1.split(' ').next()?;
    let (start, n_lines) = after.split_once(',').unwrap_or((after, "1"));
    let start: u32 = start.parse().ok()?;
    let start = if n_lines == "0" { start.saturating_add(1) } else { start };
    Some(start.max(1))
}

//! Patches: reading one, finding its places and showing the difference.
//!
//! What stands before the first line `*** Begin Patch` is the content of the file it is about.

use tieline_patch::{Hunk, difference, from_command, parse, plan};

/// Where there are more, the rest is like them.
const MOST_HUNKS: usize = 8;

pub(super) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (old, patch) = match text.find("*** Begin Patch") {
        Some(at) => text.split_at(at),
        None => ("", &*text),
    };
    for command in [vec!["apply_patch", patch], vec!["bash", "-lc", patch]] {
        let words: Vec<String> = command.into_iter().map(str::to_owned).collect();
        if let Some(found) = from_command(&words) {
            assert!(patch.contains(found.patch), "a patch that is not in the command");
        }
    }
    let Ok(patch) = parse(patch) else { return };
    for hunk in patch.hunks.iter().take(MOST_HUNKS) {
        assert!(!hunk.path().is_empty(), "a hunk is about no file");
        match hunk {
            Hunk::Update { path, chunks, .. } => {
                assert!(!chunks.is_empty(), "an update changes nothing");
                // Most do not fit, which is an answer.
                if let Ok(new) = plan(path, old, chunks) {
                    compare(old, &new);
                }
            }
            Hunk::Add { lines, .. } => compare(old, &lines.join("\n")),
            Hunk::Delete { .. } => compare(old, ""),
        }
    }
}

/// The difference has as many lines as it says.
fn compare(old: &str, new: &str) {
    let count = |text: &str| text.split_inclusive('\n').count();
    let shown = difference(old, new, 3);
    let n_with = |sign: char| shown.split('\n').filter(|line| line.starts_with(sign)).count();
    assert_eq!(count(old) + n_with('+'), count(new) + n_with('-'), "{shown}");
    assert_eq!(shown.is_empty(), old == new, "{shown}");
}

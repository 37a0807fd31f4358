//! Changes of files, which every wire of Codex writes in another form.

use serde_json::value::RawValue;
use tieline_event::{ChangeKind, FileChange, Text};
use tieline_wire::sqeq::{self, Changes};
use tieline_wire::text::Str;

/// One change with what the wire calls its diff: for an addition or a deletion the whole file.
pub(crate) fn file_change(
    path: String,
    kind: ChangeKind,
    moved_to: Option<String>,
    diff: Option<String>,
) -> FileChange {
    let mut change =
        FileChange { path, kind, moved_to, old_text: None, new_text: None, diff: None };
    match kind {
        ChangeKind::Add => change.new_text = diff.map(Text::from),
        ChangeKind::Delete => change.old_text = diff.map(Text::from),
        ChangeKind::Update => change.diff = diff.map(Text::from),
    }
    change
}

/// Changes by path, in either of the two forms they had.
pub(crate) fn file_changes(changes: &Changes<'_>) -> Vec<FileChange> {
    let one = |(path, change): &(Str<'_>, sqeq::FileChange<'_>)| {
        let owned = |text: &Str<'_>| text.to_string();
        let (kind, moved, text) = match change {
            sqeq::FileChange::Add { content } => (ChangeKind::Add, None, Some(owned(content))),
            sqeq::FileChange::Delete { content } => {
                (ChangeKind::Delete, None, content.as_ref().map(owned))
            }
            sqeq::FileChange::Update { unified_diff, move_path } => {
                (ChangeKind::Update, move_path.as_ref().map(owned), Some(owned(unified_diff)))
            }
            // Whatever happened to it, it is not as it was.
            sqeq::FileChange::Other(_) => (ChangeKind::Update, None, None),
        };
        file_change(path.to_string(), kind, moved, text)
    };
    changes.files.iter().map(one).collect()
}

/// The same from JSON; what is no change of files changes none.
pub(crate) fn read_changes(changes: &RawValue) -> Vec<FileChange> {
    serde_json::from_str(changes.get()).map(|it| file_changes(&it)).unwrap_or_default()
}

/// The word for what happened to a file.
pub(crate) fn change_kind(word: &str) -> Option<ChangeKind> {
    match word {
        "add" => Some(ChangeKind::Add),
        "delete" => Some(ChangeKind::Delete),
        "update" => Some(ChangeKind::Update),
        _ => None,
    }
}

#[test]
fn both_taggings_are_read() {
    let read = |text: &'static str| file_changes(&serde_json::from_str(text).unwrap());
    let old = read(
        r#"{"/a":{"add":{"content":"x"}},"/b":{"update":{"unified_diff":"@@","move_path":"/c"}}}"#,
    );
    let new = read(
        r#"{"/a":{"type":"add","content":"x"},"/b":{"type":"update","unified_diff":"@@","move_path":"/c"}}"#,
    );
    assert_eq!(old, new);
    assert_eq!(new[0].new_text, Some("x".into()));
    assert_eq!(new[1].moved_to.as_deref(), Some("/c"));
}

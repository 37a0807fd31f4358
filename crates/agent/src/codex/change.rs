//! Changes of files, which every wire of Codex writes in another form.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{ChangeKind, FileChange, Text};

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

/// `{"path": {"add": {…}}}` of the older versions or `{"path": {"type": "add", …}}` of the newer.
pub(crate) fn from_map(changes: &RawValue) -> Vec<FileChange> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Change {
        Tagged {
            #[serde(rename = "type")]
            kind: String,
            #[serde(flatten)]
            body: Body,
        },
        Keyed(std::collections::BTreeMap<String, Body>),
    }

    #[derive(Deserialize, Default)]
    struct Body {
        content: Option<String>,
        unified_diff: Option<String>,
        move_path: Option<String>,
    }

    let changes: std::collections::BTreeMap<String, Change> =
        serde_json::from_str(changes.get()).unwrap_or_default();
    let read = |(path, change): (String, Change)| {
        let (kind, body) = match change {
            Change::Tagged { kind, body } => (kind, body),
            Change::Keyed(map) => map.into_iter().next()?,
        };
        let kind = change_kind(&kind)?;
        Some(file_change(path, kind, body.move_path, body.content.or(body.unified_diff)))
    };
    changes.into_iter().filter_map(read).collect()
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
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let old = raw(
        r#"{"/a":{"add":{"content":"x"}},"/b":{"update":{"unified_diff":"@@","move_path":"/c"}}}"#,
    );
    let new = raw(
        r#"{"/a":{"type":"add","content":"x"},"/b":{"type":"update","unified_diff":"@@","move_path":"/c"}}"#,
    );
    assert_eq!(from_map(&old), from_map(&new));
    let changes = from_map(&new);
    assert_eq!(changes[0].new_text, Some("x".into()));
    assert_eq!(changes[1].moved_to.as_deref(), Some("/c"));
}

use tieline_event::{ChangeKind, FileChange, Text};
use tieline_wire::acp::schema::ToolKind;

use super::{OUTPUT, change_kind, change_title, ends, fenced};

fn change(kind: ChangeKind, moved_to: Option<&str>) -> FileChange {
    FileChange {
        path: "a".into(),
        kind,
        moved_to: moved_to.map(str::to_owned),
        old_text: None,
        new_text: None,
        diff: None,
    }
}

#[test]
fn changes_are_named_by_what_they_have_in_common() {
    let (add, delete) = (change(ChangeKind::Add, None), change(ChangeKind::Delete, None));
    let moved = change(ChangeKind::Update, Some("b"));
    for (changes, kind, title) in [
        (vec![add.clone()], ToolKind::Edit, "Write a"),
        (vec![delete.clone()], ToolKind::Delete, "Delete a"),
        (vec![moved], ToolKind::Move, "Move a to b"),
        (vec![delete.clone(), delete.clone()], ToolKind::Delete, "Delete 2 files"),
        (vec![add, delete], ToolKind::Edit, "Edit 2 files"),
    ] {
        assert_eq!(change_kind(&changes), kind, "{title}");
        assert_eq!(change_title(&changes), title);
    }
}

#[test]
fn no_output_can_leave_its_fence() {
    assert_eq!(fenced("a\n"), "```\na\n```");
    assert_eq!(fenced("````"), "`````\n````\n`````");
}

#[test]
fn a_long_output_keeps_both_its_ends() {
    let text = format!("first {} last", "é".repeat(OUTPUT));
    let shown = ends(&Text::from(text.as_str()));
    assert!(shown.starts_with("first ") && shown.ends_with(" last"));
    assert!(shown.len() < OUTPUT + 100);
    assert!(shown.contains(" bytes …]"), "it says what is missing");
}

use std::path::Path;

use tieline_event::{BlobRef, ChangeKind, FileChange, ItemBody, ItemStatus, Text};
use tieline_wire::acp::schema::ToolKind;

use super::{Face, OUTPUT, Screen, change_kind, change_title, ends, fenced, text_content};
use crate::testing::command;

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

/// A long text as events have it.
fn stored(text: &str) -> Text {
    let blob = BlobRef::of(text.as_bytes());
    Text::Blob { blob, head: "first".into(), tail: "last".into() }
}

#[test]
fn the_end_of_a_command_shows_no_less_than_was_shown_while_it_ran() {
    let text = format!("first {} last", "x".repeat(3 * OUTPUT));
    let mut item = command("c", ItemStatus::Ok, "make", "");
    if let ItemBody::Command { output, .. } = &mut item.body {
        *output = stored(&text);
    }
    for screen in [Screen::Text, Screen::Terminal] {
        let mut fetch = |_: &BlobRef| Some(text.clone().into_bytes());
        let face = Face::of(&item, None, Path::new("/w"), screen, None, &mut fetch).unwrap();
        let raw = face.output.unwrap()["formatted_output"].as_str().unwrap().to_owned();
        assert!(raw.len() > OUTPUT && raw.len() < OUTPUT + 100, "{}", raw.len());
        if screen == Screen::Text {
            assert_eq!(face.content, [text_content(fenced(&raw))]);
        }
    }
}

#[test]
fn a_long_output_keeps_both_its_ends() {
    let text = format!("first {} last", "é".repeat(OUTPUT));
    let shown = ends(&Text::from(text.as_str()), &mut |_| None);
    assert!(shown.starts_with("first ") && shown.ends_with(" last"));
    assert!(shown.len() < OUTPUT + 100);
    assert!(shown.contains(" bytes …]"), "it says what is missing");
    // The same when it lies in the store with a preview beside it.
    let stored = stored(&text);
    assert_eq!(ends(&stored, &mut |_| Some(text.clone().into_bytes())), shown);
    let lost = format!("first\n[… {} bytes …]\nlast", text.len() - "firstlast".len());
    assert_eq!(ends(&stored, &mut |_| None), lost);
}

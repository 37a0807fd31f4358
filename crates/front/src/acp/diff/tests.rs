use std::path::Path;

use expect_test::{Expect, expect};
use tieline_event::{ChangeKind, FileChange};

use super::{diffs, hunks};

fn change(kind: ChangeKind) -> FileChange {
    FileChange {
        path: "src/a.rs".into(),
        kind,
        moved_to: None,
        old_text: None,
        new_text: None,
        diff: None,
    }
}

#[track_caller]
fn check(change: FileChange, expected: Expect) {
    let (content, places) = diffs(&[change], Path::new("/w"), &mut |_| None);
    let lines = content.iter().map(|it| serde_json::to_string(it).unwrap());
    let places = places.iter().map(|it| serde_json::to_string(it).unwrap());
    expected.assert_eq(&lines.chain(places).map(|line| line + "\n").collect::<String>());
}

#[test]
fn whole_texts_are_shown_whole() {
    let update = FileChange {
        old_text: Some("a\n".into()),
        new_text: Some("b\n".into()),
        diff: Some("@@ -1,1 +1,1 @@\n-a\n+b\n".into()),
        ..change(ChangeKind::Update)
    };
    check(
        update,
        expect![[r#"
            {"type":"diff","path":"/w/src/a.rs","oldText":"a\n","newText":"b\n"}
            {"path":"/w/src/a.rs","line":1}
        "#]],
    );
    let new = FileChange { new_text: Some("n".into()), ..change(ChangeKind::Add) };
    check(
        new,
        expect![[r#"
            {"type":"diff","path":"/w/src/a.rs","newText":"n"}
            {"path":"/w/src/a.rs"}
        "#]],
    );
    let gone = FileChange { old_text: Some("o".into()), ..change(ChangeKind::Delete) };
    check(
        gone,
        expect![[r#"
            {"type":"diff","path":"/w/src/a.rs","oldText":"o","newText":""}
            {"path":"/w/src/a.rs"}
        "#]],
    );
}

#[test]
fn each_hunk_of_a_diff_is_shown() {
    let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,2 @@\n x\n+y\n\\ No newline at end of file\n";
    check(
        FileChange { diff: Some(diff.into()), ..change(ChangeKind::Update) },
        expect![[r#"
            {"type":"diff","path":"/w/src/a.rs","oldText":"a\nb\n","newText":"a\nc\n"}
            {"type":"diff","path":"/w/src/a.rs","oldText":"x\n","newText":"x\ny"}
            {"path":"/w/src/a.rs","line":2}
        "#]],
    );
}

#[test]
fn a_missing_final_newline_is_that_of_the_line_before() {
    let end = "\\ No newline at end of file\n";
    for (diff, old, new) in [
        (format!(" a\n-b\n{end}+b\n+c\n"), "a\nb", "a\nb\nc\n"),
        (format!(" a\n-b\n+b\n{end}"), "a\nb\n", "a\nb"),
        (format!(" a\n-b\n{end}+c\n{end}"), "a\nb", "a\nc"),
        (format!("-a\n+b\n c\n{end}"), "a\nc", "b\nc"),
    ] {
        let hunks = hunks(&format!("@@ -1,2 +1,2 @@\n{diff}"));
        assert_eq!(hunks.len(), 1, "{diff}");
        assert_eq!((hunks[0].old.as_str(), hunks[0].new.as_str()), (old, new), "{diff}");
    }
}

#[test]
fn the_place_of_a_change_is_its_first_changed_line() {
    for (diff, line) in [
        ("@@ -1,2 +1,2 @@\n-a\n+b\n c\n", Some(1)),
        ("@@ -10,3 +12,4 @@ fn main() {\n a\n b\n+c\n d\n", Some(14)),
        ("@@ -10,4 +12,3 @@\n a\n-b\n c\n+d\n", Some(13)),
        ("@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", Some(1)),
        ("@@ -3 +2,0 @@\n-c\n", Some(3)),
        ("@@\n a\n-b\n", None),
    ] {
        let lines: Vec<_> = hunks(diff).iter().map(|hunk| hunk.line).collect();
        assert_eq!(lines, [line], "{diff}");
    }
}

#[test]
fn a_diff_without_headers_is_one_hunk() {
    check(
        FileChange { diff: Some("-old\n+new\n".into()), ..change(ChangeKind::Update) },
        expect![[r#"
            {"type":"diff","path":"/w/src/a.rs","oldText":"old\n","newText":"new\n"}
            {"path":"/w/src/a.rs"}
        "#]],
    );
}

#[test]
fn a_moved_file_is_shown_where_it_is_now() {
    let moved =
        FileChange { moved_to: Some("/elsewhere/b.rs".into()), ..change(ChangeKind::Update) };
    check(
        moved,
        expect![[r#"
            {"path":"/elsewhere/b.rs"}
        "#]],
    );
}

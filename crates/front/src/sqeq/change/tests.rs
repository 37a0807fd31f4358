use expect_test::expect;

use super::*;

fn change(kind: ChangeKind) -> FileChange {
    let path = "/w/a.txt".to_owned();
    FileChange { path, kind, moved_to: None, old_text: None, new_text: None, diff: None }
}

fn shown(change: &FileChange) -> String {
    section(change, &mut |_| None)
}

#[test]
fn texts_become_one_hunk_with_lines_around_it() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let new = "1\n2\n3\n4\nfive\n6\nseven\n8\n9\n";
    let update = FileChange {
        old_text: Some(old.into()),
        new_text: Some(new.into()),
        ..change(ChangeKind::Update)
    };
    expect![[r#"
        diff --git a/w/a.txt b/w/a.txt
        --- a/w/a.txt
        +++ b/w/a.txt
        @@ -2,8 +2,8 @@
         2
         3
         4
        -5
        -6
        -7
        +five
        +6
        +seven
         8
         9
    "#]]
    .assert_eq(&shown(&update));
}

#[test]
fn new_and_deleted_files_are_whole() {
    let add = FileChange { new_text: Some("a\nb".into()), ..change(ChangeKind::Add) };
    let delete = FileChange { old_text: Some("a\n".into()), ..change(ChangeKind::Delete) };
    expect![[r#"
        diff --git a/w/a.txt b/w/a.txt
        new file mode 100644
        --- /dev/null
        +++ b/w/a.txt
        @@ -0,0 +1,2 @@
        +a
        +b
        \ No newline at end of file
        diff --git a/w/a.txt b/w/a.txt
        deleted file mode 100644
        --- a/w/a.txt
        +++ /dev/null
        @@ -1,1 +0,0 @@
        -a
    "#]]
    .assert_eq(&(shown(&add) + &shown(&delete)));
}

#[test]
fn a_new_file_that_came_as_a_diff_has_its_text() {
    for diff in ["@@ -0,0 +1,2 @@\n+a\n+b\n", "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+a\n+b\n"] {
        let add = FileChange { diff: Some(diff.into()), ..change(ChangeKind::Add) };
        let sqeq::FileChange::Add { content } = of(&add, &mut |_| None) else { panic!("{diff}") };
        assert_eq!(&*content, "a\nb\n");
    }
}

#[test]
fn nothing_that_changed_is_no_hunk() {
    assert_eq!(unified("a\n", "a\n"), "");
    assert_eq!(unified("", ""), "");
    assert_eq!(unified("a\na\n", "a\n"), "@@ -1,2 +1,1 @@\n a\n-a\n");
}

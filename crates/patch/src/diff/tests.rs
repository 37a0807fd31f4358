use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(old: &str, new: &str, n_context: usize, expected: Expect) {
    expected.assert_eq(&unified(old, new, &Run::whole(old, new), n_context));
}

#[test]
fn a_change_has_its_context() {
    check(
        "alpha\nbeta\n",
        "alpha\ngamma\n",
        1,
        expect![[r#"
        @@ -1,2 +1,2 @@
         alpha
        -beta
        +gamma
    "#]],
    );
    check(
        "a\nb\nc\nd\ne\n",
        "a\nb\nX\nd\ne\n",
        0,
        expect![[r#"
        @@ -3 +3 @@
        -c
        +X
    "#]],
    );
}

#[test]
fn changes_that_are_far_apart_are_hunks_of_their_own() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let new = "1\nX\n3\n4\n5\n6\n7\nY\n9\n";
    check(
        old,
        new,
        1,
        expect![[r#"
        @@ -1,3 +1,3 @@
         1
        -2
        +X
         3
        @@ -7,3 +7,3 @@
         7
        -8
        +Y
         9
    "#]],
    );
    assert_eq!(unified(old, new, &Run::whole(old, new), 3).matches("@@ -").count(), 1);
}

#[test]
fn files_begin_end_and_lose_their_last_newline() {
    check(
        "",
        "a\nb\n",
        1,
        expect![[r#"
        @@ -0,0 +1,2 @@
        +a
        +b
    "#]],
    );
    check(
        "a\n",
        "",
        1,
        expect![[r#"
        @@ -1 +0,0 @@
        -a
    "#]],
    );
    check(
        "a\nb",
        "a\nb\nc\n",
        1,
        expect![[r#"
        @@ -1,2 +1,3 @@
         a
        -b
        \ No newline at end of file
        +b
        +c
    "#]],
    );
    check("same\n", "same\n", 1, expect![""]);
}

#[test]
fn a_run_too_long_to_compare_is_shown_as_gone_and_come() {
    let old: String = (0..3000).map(|n| format!("old {n}\n")).collect();
    let new: String = (0..3000).map(|n| format!("new {n}\n")).collect();
    let diff = unified(&old, &new, &Run::whole(&old, &new), 1);
    assert!(diff.starts_with("@@ -1,3000 +1,3000 @@\n-old 0\n-old 1\n"), "{diff:.60}");
    assert_eq!(diff.lines().count(), 6001);
}

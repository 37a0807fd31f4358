use expect_test::{Expect, expect};

use super::*;

/// A patch as one line for each thing in it.
fn show(text: &str) -> String {
    let patch = match parse(text) {
        Ok(patch) => patch,
        Err(err) => return err.to_string(),
    };
    let mut out: Vec<String> = patch.environment.map(|it| format!("in {it}")).into_iter().collect();
    for hunk in patch.hunks {
        match hunk {
            Hunk::Add { path, lines } => out.push(format!("add {path:?} {lines:?}")),
            Hunk::Delete { path } => out.push(format!("delete {path:?}")),
            Hunk::Update { path, move_to, chunks } => {
                out.push(format!("update {path:?} to {move_to:?}"));
                for chunk in chunks {
                    let line = |it: &Line<'_>| match it.kind {
                        LineKind::Keep => format!(" {}", it.text),
                        LineKind::Remove => format!("-{}", it.text),
                        LineKind::Add => format!("+{}", it.text),
                    };
                    let lines: Vec<String> = chunk.lines.iter().map(line).collect();
                    let end = if chunk.is_at_end { " at the end" } else { "" };
                    out.push(format!("  after {:?}: {lines:?}{end}", chunk.context));
                }
            }
        }
    }
    out.join("\n")
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&show(text));
}

/// Between the first line and the last.
#[track_caller]
fn check_body(body: &str, expected: Expect) {
    check(&format!("*** Begin Patch\n{body}\n*** End Patch"), expected);
}

#[test]
fn every_kind_of_hunk_is_read() {
    check_body(
        "*** Add File: path/add.py\n+abc\n+\n+ def\n*** Delete File: gone.py\n\
         *** Update File: old.py\n*** Move to: new.py\n@@ def f():\n-    pass\n+    return 1\n\
         *** End of File",
        expect![[r#"
            add "path/add.py" ["abc", "", " def"]
            delete "gone.py"
            update "old.py" to Some("new.py")
              after Some("def f():"): ["-    pass", "+    return 1"] at the end"#]],
    );
}

#[test]
fn chunks_begin_with_a_heading_and_only_the_first_may_do_without() {
    check_body(
        "*** Update File: f\n a\n+b\n@@\n-c\n@@ x\n d\n+e",
        expect![[r#"
            update "f" to None
              after None: [" a", "+b"]
              after None: ["-c"]
              after Some("x"): [" d", "+e"]"#]],
    );
    check_body(
        "*** Update File: f\n@@  \n-c\n@@  x  \n-d",
        expect![[r#"
            update "f" to None
              after None: ["-c"]
              after Some(" x"): ["-d"]"#]],
    );
}

#[test]
fn an_empty_line_is_a_line_of_the_file() {
    check_body(
        "*** Update File: f\n\n a\n\n-b\n",
        expect![[r#"
            update "f" to None
              after None: [" ", " a", " ", "-b", " "]"#]],
    );
    check_body(
        "*** Update File: f\n-b\n*** End of File\n\n \n@@\n+c",
        expect![[r#"
            update "f" to None
              after None: ["-b"] at the end
              after None: ["+c"]"#]],
    );
}

#[test]
fn markers_may_have_space_around_them() {
    check(
        "\n  *** Begin Patch  \n  *** Add File: a  \n+x\n\t*** Delete File: b\n *** End Patch \n\n",
        expect![[r#"
            add "a" ["x"]
            delete "b""#]],
    );
    check_body(
        "*** Update File: f\n*** Move to: g  \n-x\n*** End of File \n*** Delete File: h ",
        expect![[r#"
            update "f" to Some("g")
              after None: ["-x"] at the end
            delete "h""#]],
    );
    // Behind a space they are lines of the file.
    check_body(
        "*** Update File: f\n *** Move to: g\n *** End of File\n @@\n *** Delete File: h",
        expect![[r#"
            update "f" to None
              after None: [" *** Move to: g", " *** End of File", " @@", " *** Delete File: h"]"#]],
    );
}

#[test]
fn a_here_document_is_unwrapped() {
    for begin in ["<<EOF", "<<'EOF'", "<<\"EOF\""] {
        let text = format!("{begin}\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\n");
        check(&text, expect![[r#"delete "a""#]]);
    }
    let no_begin =
        || expect!["Invalid patch: The first line of the patch must be '*** Begin Patch'"];
    check("<<EOF\n*** Begin Patch\n*** End Patch", no_begin());
    check("<<'EOF\"\n*** Begin Patch\n*** End Patch\nEOF", no_begin());
    check("<<PATCH\n*** Begin Patch\n*** End Patch\nPATCH", no_begin());
    check("<<EOF\nfoo\n*** End Patch\nEOF", no_begin());
    check(
        "<<EOF\n*** Begin Patch\nfoo\nEOF",
        expect!["Invalid patch: The last line of the patch must be '*** End Patch'"],
    );
}

#[test]
fn a_patch_of_another_system_has_its_line_ends_taken_off() {
    check(
        "*** Begin Patch\r\n*** Update File: f\r\n@@\r\n a\r\n-b\r\n+c\r\n*** End Patch\r\n",
        expect![[r#"
            update "f" to None
              after None: [" a", "-b", "+c"]"#]],
    );
}

#[test]
fn an_environment_may_be_named_first() {
    check_body(
        "*** Environment ID: local \n*** Delete File: a",
        expect![[r#"
            in local
            delete "a""#]],
    );
    check_body(
        "*** Environment ID: ",
        expect!["Invalid patch: apply_patch environment_id cannot be empty"],
    );
}

#[test]
fn a_patch_may_be_empty_and_so_may_a_new_file() {
    check("*** Begin Patch\n*** End Patch", expect![""]);
    check_body("*** Add File: a", expect![[r#"add "a" []"#]]);
    check_body("*** Add File:   a b  ", expect![[r#"add "  a b" []"#]]);
}

#[test]
fn what_is_no_patch_is_said_in_the_known_words() {
    let end = || expect!["Invalid patch: The last line of the patch must be '*** End Patch'"];
    check("", end());
    check("*** Begin Patch", end());
    check("*** Begin Patch\nbad", end());
    check_body("*** Delete File: a\n*** End Patch\n*** Delete File: b", end());
    check("bad", expect!["Invalid patch: The first line of the patch must be '*** Begin Patch'"]);
    check_body(
        "*** Frob File: f",
        expect![
            "Invalid patch hunk on line 2: '*** Frob File: f' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
        ],
    );
    check_body(
        "*** Add File: a\n+1\n\n+2",
        expect![
            "Invalid patch hunk on line 4: '' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
        ],
    );
    check_body(
        "*** Add File: ",
        expect![
            "Invalid patch hunk on line 2: '*** Add File:' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
        ],
    );
}

#[test]
fn a_wrong_update_is_said_with_its_line() {
    let empty = || expect!["Invalid patch hunk on line 2: Update file hunk for path 'f' is empty"];
    check_body("*** Update File: f", empty());
    check_body("*** Update File: f\n*** Move to: g", empty());
    check_body("*** Update File: f\n*** Delete File: g", empty());
    check_body("*** Update File: f\n*** End of File", empty());
    let none = || expect!["Invalid patch hunk on line 4: Update hunk does not contain any lines"];
    check_body("*** Update File: f\n@@", none());
    check_body("*** Update File: f\n@@ x\n*** End of File", none());
    check_body(
        "*** Update File: f\n@@\nbad",
        expect![
            "Invalid patch hunk on line 4: Unexpected line found in update hunk: 'bad'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
        ],
    );
    check_body(
        "*** Update File: f\nbad",
        expect![
            "Invalid patch hunk on line 3: Unexpected line found in update hunk: 'bad'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
        ],
    );
    check_body(
        "*** Update File: f\n@@ a\n@@ b\n-c",
        expect![
            "Invalid patch hunk on line 4: Unexpected line found in update hunk: '@@ b'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
        ],
    );
    for bad in ["bad", "\t", "*** Foo", "*** Begin Patch"] {
        let text = format!("*** Begin Patch\n*** Update File: f\n@@\n-b\n{bad}\n*** End Patch");
        let said = format!(
            "Invalid patch hunk on line 5: Expected update hunk to start with a @@ context marker, \
             got: '{bad}'"
        );
        assert_eq!(show(&text), said);
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(?s)(\\PC|\n|\r|\\*\\*\\* |@@|[-+ ]|Begin Patch|End Patch|Add File: ){0,60}") {
        parse(&text).ok();
        let text = format!("*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch");
        parse(&text).ok();
    }
}

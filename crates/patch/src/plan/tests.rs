use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::diff::unified;
use crate::parse::{Hunk, parse};
use crate::seek::MOST_STEPS;

fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let Ok(patch) = parse(text) else { panic!("{text}") };
    match patch.hunks.into_iter().next() {
        Some(Hunk::Update { chunks, .. }) => chunks,
        other => panic!("{other:?}"),
    }
}

fn frame(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch")
}

fn run(old: &str, body: &str) -> Result<Planned, String> {
    let text = frame(body);
    let planned = update(old, &chunks(&text), &mut Budget::new(MOST_STEPS));
    planned.map_err(|misfit| misfit.of("f").to_string())
}

#[track_caller]
fn check(old: &str, body: &str, new: &str) {
    assert_eq!(run(old, body).map(|it| it.content), Ok(new.to_owned()), "{old:?} {body}");
}

#[track_caller]
fn fails(old: &str, body: &str, expected: Expect) {
    expected.assert_eq(&run(old, body).unwrap_err());
}

#[test]
fn lines_go_and_come() {
    check("a\nb\nc\n", "@@\n-b\n+B\n+X", "a\nB\nX\nc\n");
    check("a\nb\nc\n", "@@\n a\n+X\n b", "a\nX\nb\nc\n");
    check("a\nb\n", "@@\n-a\n-b", "");
    check("a\nb\nc\n", "@@\n a\n b\n c", "a\nb\nc\n");
    check("a\nb\n", "-a\n+A\n+", "A\n\nb\n");
}

#[test]
fn each_chunk_is_sought_behind_the_one_before() {
    check("a\nb\na\nb\n", "@@\n-b\n+1\n@@\n-b\n+2", "a\n1\na\n2\n");
    check("f\n x\ng\n x\n", "@@ g\n- x\n+ y", "f\n x\ng\n y\n");
    check("f\n x\ng\n x\n", "@@ f\n- x\n@@ g\n- x", "f\ng\n");
    fails(
        "a\nb\nc\n",
        "@@\n-c\n@@\n-a",
        expect![[r#"
        Failed to find expected lines in f:
        a"#]],
    );
    fails("a\nb\n", "@@ zz\n-b", expect!["Failed to find context 'zz' in f"]);
    fails(
        "a\nb\n",
        "-q\n r\n+x",
        expect![[r#"
        Failed to find expected lines in f:
        q
        r"#]],
    );
}

#[test]
fn what_only_comes_is_appended() {
    check("a\nb\n", "@@\n+X", "a\nb\nX\n");
    check("a\nb\n\n", "@@\n+X", "a\nb\n\nX\n");
    check("a\nb\n", "@@ a\n+X", "a\nb\nX\n");
    check("", "@@\n+X", "X\n");
    check("a\nb\n", "@@\n+X\n@@\n-a", "b\nX\n");
    check("a\n", "@@\n+X\n@@\n+Y", "a\nX\nY\n");
}

#[test]
fn the_end_of_the_file_is_a_place() {
    check("a\nb\na\n", "@@\n-a\n+X\n*** End of File", "a\nb\nX\n");
    fails(
        "a\nb\n",
        "@@\n a\n+X\n*** End of File",
        expect![[r#"
        Failed to find expected lines in f:
        a"#]],
    );
    fails(
        "a\nb\nc\n",
        "@@\n-b\n-c\n@@\n-c\n*** End of File",
        expect![[r#"
        Failed to find expected lines in f:
        c"#]],
    );
}

#[test]
fn an_empty_line_too_much_at_the_end_is_forgiven() {
    check("a\nb\n", "@@\n-b\n+X\n", "a\nX\n");
    check("a\nb\n", "@@\n-b\n-\n+X", "a\nX\n");
    check("a\nb\n", "@@\n-a\n-b\n-\n+X\n*** End of File", "X\n");
    check("a\nb\n", "@@\n a\n b\n \n+X", "a\nb\n\nX\n");
    check("a\nb\n\nc\n", "@@\n-b\n+X\n\n@@\n-c\n+Z", "a\nX\n\nZ\n");
}

#[test]
fn context_that_almost_fits_keeps_the_files_spelling() {
    check("a \nb\n", "@@\n a\n-b\n+X", "a \nX\n");
    check("  a\nb\n", "@@\n a\n-b\n+X", "  a\nX\n");
    check("a – b\nz\n", "@@\n a - b\n-z\n+X", "a – b\nX\n");
}

#[test]
fn line_ends_are_those_of_the_first_line_and_old_ones_stay() {
    check("a\r\nb\r\nc\r\n", "@@\n-b\n+B\n+X", "a\r\nB\r\nX\r\nc\r\n");
    check("a\r\nb\nc\n", "@@\n-b\n+B", "a\r\nB\r\nc\n");
    check("a\nb\r\nc\r\n", "@@\n-b\n+B", "a\nB\nc\r\n");
    check("a\r\nb\r\nc", "@@\n+X", "a\r\nb\r\nc\r\nX\r\n");
    check("a\r\nb\r\n", "@@\r\n-b\r\n+X\r", "a\r\nX\r\n");
}

#[test]
fn a_lone_carriage_return_ends_a_line() {
    check("a\rb\rc\r", "@@\n a\n-b\n+B\n+X\n c", "a\rB\rX\rc\r");
    check("a\rb\rc", "@@\n-c\n+C", "a\rb\rC\r");
    check("a\rb", "@@\n+X", "a\rb\rX\r");
    // Each line keeps its own end, and what comes has that of the first.
    check("a\rb\nc\r\nd", "@@\n-b\n+B\n c", "a\rB\rc\r\nd");
    check("a\nb\rc\n", "@@\n-b\n+B", "a\nB\nc\n");
    check("a\r\r\nb\n", "@@\n a\n \n-b\n+B", "a\r\r\nB\r");
}

#[test]
fn a_carriage_return_in_a_line_of_the_patch_is_a_character() {
    check("50%\r100%\nend\n", "@@\n 50%\r100%\n-end\n+END", "50%\r100%\nEND\n");
}

#[test]
fn a_last_line_without_an_end_keeps_it_so_while_it_is_the_last() {
    check("a\nb", "@@\n-a\n+A", "A\nb");
    check("a\nb", "@@\n-a\n+A\n b", "A\nb");
    check("a\nb", "@@\n a\n+X\n b", "a\nX\nb");
    check("a\nb", "@@\n-b\n+X", "a\nX\n");
    check("a\nb", "@@\n+X", "a\nb\nX\n");
    check("a\nb", "@@\n b\n+X", "a\nb\nX\n");
    check("a\nb", "@@\n-b", "a\n");
}

#[test]
fn hostile_input_costs_no_more_than_the_budget() {
    let old = "a\n".repeat(1 << 19);
    let body = format!("{}-b", "-a\n".repeat(1 << 17));
    assert!(run(&old, &body).map(drop).unwrap_err().starts_with("Failed to find expected lines"));
    // Each chunk needs three scans of the whole file to be found in the fourth pass.
    let old = format!("{}{}", "y – z\n".repeat(5000), "x\n".repeat(1 << 19));
    let body = "@@\n-y - z\n".repeat(5000);
    let said = run(&old, body.trim_end()).map(drop).unwrap_err();
    assert!(said.contains("take too long to place"), "{said:.100}");
}

/// A file, and what becomes of each of its lines.
fn edits() -> impl Strategy<Value = (Vec<String>, Vec<u8>, Vec<String>)> {
    let line = "[ab \u{2013}]{0,3}|[a-z]{3,8}";
    (1..40_usize).prop_flat_map(move |n| {
        (
            proptest::collection::vec(line, n),
            proptest::collection::vec(0..6_u8, n),
            proptest::collection::vec(line, n),
        )
    })
}

proptest! {
    /// A patch with the whole file as context can mean one thing only.
    #[test]
    fn a_patch_made_from_an_edit_makes_the_edit(
        (lines, kinds, others) in edits(),
        is_crlf: bool,
        is_ended: bool,
    ) {
        let end = if is_crlf { "\r\n" } else { "\n" };
        let mut old = lines.join(end);
        // A last line that is empty and has no end is no line.
        let is_ended = is_ended || lines.last().is_some_and(String::is_empty) || lines.len() == 1;
        if is_ended {
            old.push_str(end);
        }
        let (mut body, mut new) = (String::from("@@\n"), String::new());
        for (index, line) in lines.iter().enumerate() {
            let is_last = index + 1 == lines.len();
            let other = &others[index];
            let add = |new: &mut String| new.push_str(&format!("{other}{end}"));
            match kinds[index] {
                0 => body.push_str(&format!("-{line}\n")),
                1 => {
                    body.push_str(&format!("-{line}\n+{other}\n"));
                    add(&mut new);
                }
                kind => {
                    body.push_str(&format!(" {line}\n"));
                    new.push_str(line);
                    // What comes behind the last line gives it an end.
                    if !is_last || is_ended || kind == 2 {
                        new.push_str(end);
                    }
                    if kind == 2 {
                        body.push_str(&format!("+{other}\n"));
                        add(&mut new);
                    }
                }
            }
        }
        let text = format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch");
        let planned = update(&old, &chunks(&text), &mut Budget::new(MOST_STEPS)).unwrap();
        prop_assert_eq!(&planned.content, &new);
        // And its diff is one of these two texts.
        prop_assert_eq!(patched(&old, &unified(&old, &new, &planned.runs, 1)), new);
    }

    #[test]
    fn no_chunks_panic(old in "[ab\n\r]{0,40}", body in "([-+ ][ab ]{0,2}\n|@@\n|@@ a\n|\n){1,12}") {
        if let Ok(patch) = parse(&frame(body.trim_end_matches('\n')))
            && let Some(Hunk::Update { chunks, .. }) = patch.hunks.first()
            && let Ok(planned) = update(&old, chunks, &mut Budget::new(MOST_STEPS))
        {
            let diff = unified(&old, &planned.content, &planned.runs, 2);
            prop_assert_eq!(patched(&old, &diff), planned.content);
        }
    }
}

/// Carries a unified diff out, with a hand that knows nothing of how it was made.
fn patched(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut new, mut at) = (String::new(), 0);
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("@@ -") {
            let (start, n) = heading
                .split_once(" +")
                .unwrap()
                .0
                .split_once(',')
                .unwrap_or_else(|| (heading.split_once(" +").unwrap().0, "1"));
            let start: usize = start.parse().unwrap();
            let start = if n == "0" { start } else { start - 1 };
            old[at..start].iter().for_each(|line| new.push_str(line));
            at = start;
            continue;
        }
        let (sign, text) = line.split_at(1);
        let is_open = lines.next_if(|next| next.starts_with('\\')).is_some();
        let text = if is_open { text.strip_suffix('\n').unwrap() } else { text };
        if sign != "+" {
            assert_eq!(old[at], text);
            at += 1;
        }
        if sign != "-" {
            new.push_str(text);
        }
    }
    old[at..].iter().for_each(|line| new.push_str(line));
    new
}

//! Each rule of reading, and what the sample parsers make of it differently.

use super::*;

#[track_caller]
fn check_each(spec: &[Seen], lenient: &[Seen], input: &str) {
    assert_eq!(read(Reading::Spec, input), spec, "{input:?} by the rules");
    assert_eq!(read(Reading::Lenient, input), lenient, "{input:?} leniently");
}

#[test]
fn what_only_looks_like_a_marker_is_text() {
    for line in [
        "[X] done",
        "[x] done",
        "[ ] to do",
        "[A](link)",
        "[API](link)",
        "[NOTE]: beware",
        "[PROGRESS]: beware",
        "[PROGRESS](link)",
        "[PROGRESS][1]",
        "[Progress] x",
        "[PROGRESS x",
        "[1A] x",
        "[_A] x",
        "[TO DO] x",
        "[NOTE]x",
        "PROGRESS] x",
        "[]",
        "[",
        "> [PROGRESS] quoted",
        ">[PROGRESS] quoted",
        "see `[PROGRESS] x`",
        "see [PROGRESS] x",
        "say \"[PROGRESS] x\"",
        "('[PROGRESS]', '[QUESTION] x')",
        "no name: x[NOTE] y",
    ] {
        check(line, &[text(line)]);
    }
    let long = format!("[{}] x", "A".repeat(65));
    check(&long, &[text(&long)]);
}

#[test]
fn unknown_names_are_one_line() {
    check(
        "[TODO]\n[WIP] half\nnot its own\n[NEED_CONTEXT] type=web query=\"x\"\n[OK]\n",
        &[
            other("TODO", &[]),
            other("WIP", &["half"]),
            text("not its own"),
            other("NEED_CONTEXT", &["type=web query=\"x\""]),
            other("OK", &[]),
        ],
    );
}

#[test]
fn the_space_is_optional_for_known_names() {
    check(
        "[PROGRESS]\n[PROGRESS] \n[PROGRESS]one\n[PROGRESS]\ttwo\n[PROGRESS]   three  \n",
        &[progress(""), progress(""), progress("one"), progress("two"), progress("three")],
    );
}

#[test]
fn white_space_before_a_marker_is_for_lenient_readers() {
    check_each(
        &[text("  [PROGRESS] x"), text("\t[NOTE] y")],
        &[progress("x"), other("NOTE", &["y"])],
        "  [PROGRESS] x\n\t[NOTE] y\n",
    );
    check_each(
        &[files(&[]), text("  - a (created)")],
        &[files(&[("a", Change::Created)])],
        "[FILES_MODIFIED]\n  - a (created)\n",
    );
}

#[test]
fn glued_markers_are_for_lenient_readers() {
    check_each(
        &[text("done.[PROGRESS] next"), progress("one[PROGRESS] two")],
        &[text("done."), progress("next"), progress("one"), progress("two")],
        "done.[PROGRESS] next\n[PROGRESS] one[PROGRESS] two\n",
    );
    check_each(
        &[blocked("r", &["context[CODEX_COMPLETE] Task completed in 2 iterations"])],
        &[blocked("r", &["context"]), complete("Task completed in 2 iterations")],
        "[BLOCKED] r\ncontext[CODEX_COMPLETE] Task completed in 2 iterations",
    );
    check_each(
        &[text("[PROGRESS][BLOCKED] x")],
        &[progress(""), blocked("x", &[])],
        "[PROGRESS][BLOCKED] x",
    );
    check("~~~x[PROGRESS] y\n", &[text("~~~x[PROGRESS] y")]);
}

#[test]
fn code_is_text() {
    check(
        "```text\n[PROGRESS] x\n``\n~~~\n[BLOCKED] y\n  ````  \n[PROGRESS] z\n",
        &[
            text("```text"),
            text("[PROGRESS] x"),
            text("``"),
            text("~~~"),
            text("[BLOCKED] y"),
            text("  ````  "),
            progress("z"),
        ],
    );
    check(
        "~~~~\n~~~\n[PROGRESS] x\n~~~~ a\n~~~~\n[PROGRESS] z\n",
        &[
            text("~~~~"),
            text("~~~"),
            text("[PROGRESS] x"),
            text("~~~~ a"),
            text("~~~~"),
            progress("z"),
        ],
    );
    check("    ```\n[PROGRESS] z\n", &[text("    ```"), progress("z")]);
    check("``` a ```\n[PROGRESS] z\n", &[text("``` a ```"), progress("z")]);
}

#[test]
fn code_in_a_block_is_part_of_it() {
    check(
        "[BLOCKED] it says\n```\n[ERROR] x\n```\n[PROGRESS] y\n",
        &[blocked("it says", &["```", "[ERROR] x", "```"]), progress("y")],
    );
    check(
        "[BLOCKED] it says\n```\n\n[ERROR] x\n```\n[PROGRESS] y\n",
        &[blocked("it says", &["```"]), text("[ERROR] x"), text("```"), progress("y")],
    );
}

#[test]
fn the_end_of_a_message_forgets_the_fence() {
    let mut reader = Reader::new(Reading::Spec);
    let mut seen = Vec::new();
    reader.feed("```\n[PROGRESS] x", |piece| seen.push(see(piece)));
    reader.finish(|piece| seen.push(see(piece)));
    reader.feed("[PROGRESS] y\n", |piece| seen.push(see(piece)));
    reader.finish(|piece| seen.push(see(piece)));
    reader.finish(|piece| seen.push(see(piece)));
    assert_eq!(seen, [text("```"), text("[PROGRESS] x"), progress("y")]);
}

#[test]
fn a_blank_line_belongs_to_the_block_it_ends() {
    check("[BLOCKED] a\nb\n \t\n\nc\n", &[blocked("a", &["b"]), text(""), text("c")]);
    check("[PROGRESS] a\n\nb\n", &[progress("a"), text(""), text("b")]);
    check("\n \n", &[text(""), text(" ")]);
}

#[test]
fn line_ends_may_have_a_carriage_return() {
    check(
        "[QUESTION] a\r\n1. b\r\n\r\nc\r\n\r\n[FILES_MODIFIED]\r\n- d (deleted)\r\n\r\ne\r\nf\r",
        &[
            question("a", &[(1, "b", None)], &["c"]),
            files(&[("d", Change::Deleted)]),
            text("e"),
            text("f\r"),
        ],
    );
}

#[test]
fn a_question_may_have_any_number_of_options() {
    let mut input = "[QUESTION] which?\n".to_owned();
    let labels: Vec<String> = (1..=12).map(|n| format!("label {n}")).collect();
    for (at, label) in labels.iter().enumerate() {
        input.push_str(&format!("{}. {label} - why - not\n", at + 1));
    }
    let options: Vec<_> =
        (1..).zip(&labels).map(|(n, label)| (n, label.as_str(), Some("why - not"))).collect();
    check(&input, &[question("which?", &options, &[])]);
}

#[test]
fn lines_of_a_question_that_are_no_options_are_context() {
    check(
        "[QUESTION] a\nbefore\nOptions:\n1. b\n1.5 times\n2. c\n99999999999. d\noptions:\n\ne\n",
        &[
            question(
                "a",
                &[(1, "b", None), (2, "c", None)],
                &["before", "1.5 times", "99999999999. d", "options:"],
            ),
            text("e"),
        ],
    );
    check("[QUESTION] a\nb\n\nc\n", &[question("a", &[], &["b"]), text("c")]);
    check("[QUESTION]\na\nb\n", &[question("a", &[], &["b"])]);
    check("[QUESTION]\n1. a\nb\n", &[question("", &[(1, "a", None)], &["b"])]);
    check(
        "[QUESTION] a\n1.\n  2. b  -  c \n",
        &[question("a", &[(1, "", None), (2, "b", Some("c"))], &[])],
    );
}

#[test]
fn options_may_come_after_a_blank_line_below_their_title() {
    check(
        "[QUESTION] a\nOptions:\n\n1. b\n\nc\n\nd\n",
        &[question("a", &[(1, "b", None)], &["c"]), text("d")],
    );
}

#[test]
fn not_every_paragraph_behind_the_options_is_context() {
    let asked = question("a", &[(1, "b", None)], &[]);
    check("[QUESTION] a\n1. b\n\n\nc\n", &[asked.clone(), text("c")]);
    check("[QUESTION] a\n1. b\n\n[PROGRESS] c\n", &[asked.clone(), progress("c")]);
    check("[QUESTION] a\n1. b\n\n```\nc\n", &[asked.clone(), text("```"), text("c")]);
    check("[QUESTION] a\n1. b\n\n2. c\n", &[question("a", &[(1, "b", None)], &["2. c"])]);
    check("[QUESTION] a\n1. b\n\n", &[asked]);
}

#[test]
fn a_block_goes_on_after_a_bracket_that_is_no_marker() {
    check(
        "[BLOCKED] a\n[b] c\n[D]: e\n\\[f]\n[GH] i\nj\n",
        &[blocked("a", &["[b] c", "[D]: e", "[f]"]), other("GH", &["i"]), text("j")],
    );
}

#[test]
fn a_list_of_files_ends_at_anything_else() {
    check(
        "[FILES_MODIFIED]\n- a (Created)\n-b\n-  c (x) (deleted)\n---\n- d\n",
        &[
            files(&[("a", Change::Created), ("b", Change::Unknown), ("c (x)", Change::Deleted)]),
            text("---"),
            text("- d"),
        ],
    );
    check("[FILES_MODIFIED]\nnone\n", &[files(&[]), text("none")]);
    check(
        "[FILES_MODIFIED] a (created)\n- b\n[FILES_MODIFIED] - c\n[FILES_MODIFIED] two:\n- d\n",
        &[
            files(&[("a", Change::Created), ("b", Change::Unknown)]),
            files(&[("c", Change::Unknown)]),
            text("two:"),
            files(&[("d", Change::Unknown)]),
        ],
    );
}

#[test]
fn paths_may_be_quoted() {
    check(
        r#"[FILES_MODIFIED]
- new (renamed from old (1))
- " a\nb " (created)
- "c (created)"
- "d" (renamed from "e\t")
- "f
- "g" h
- i (renamed from j
"#,
        &[files(&[
            ("new", renamed("old (1)")),
            (" a\nb ", Change::Created),
            ("c (created)", Change::Unknown),
            ("d", renamed("e\t")),
            ("\"f", Change::Unknown),
            ("\"g\" h", Change::Unknown),
            ("i (renamed from j", Change::Unknown),
        ])],
    );
}

#[test]
fn escapes_are_taken_off() {
    check(
        "\\[PROGRESS] a\n  \\\\[NOTE]: b\n\\[c]\nx\\[PROGRESS] d\n`\\[PROGRESS]`\n```\n\\[PROGRESS] e\n",
        &[
            text("[PROGRESS] a"),
            text("  \\[NOTE]: b"),
            text("\\[c]"),
            text("x[PROGRESS] d"),
            text("`\\[PROGRESS]`"),
            text("```"),
            text("[PROGRESS] e"),
        ],
    );
    check("[PROGRESS] a\\[BLOCKED] b", &[progress("a[BLOCKED] b")]);
}

#[test]
fn a_long_line_is_text_in_pieces() {
    for end in ["", "\n", "\r\n"] {
        let longest = format!("[PROGRESS] {}", "é".repeat((LINE_LIMIT - 12) / 2));
        let exact = format!("{longest}{}", "x".repeat(LINE_LIMIT - longest.len()));
        let content = exact.strip_prefix("[PROGRESS] ").unwrap();
        check(&format!("{exact}{end}"), &[progress(content)]);
        let pieces = [text(&exact), text("y")];
        check(&format!("{exact}y{end}"), &pieces);
        let blocked_first = [&[blocked("a", &[])][..], &pieces[..], &[progress("z")][..]].concat();
        if !end.is_empty() {
            check(&format!("[BLOCKED] a\n{exact}y{end}[PROGRESS] z"), &blocked_first);
        }
    }
    let line = "🦀".repeat(LINE_LIMIT);
    let seen = read(Reading::Spec, &line);
    assert_eq!(seen.len(), 4);
    for size in [1, 1000, 16384, 16385] {
        let chars: Vec<char> = line.chars().collect();
        let chunks: Vec<String> = chars.chunks(size).map(|chunk| chunk.iter().collect()).collect();
        assert_eq!(read_chunks(Reading::Spec, chunks.iter().map(String::as_str)), seen);
    }
}

#[test]
fn a_long_block_ends() {
    let line = "x".repeat(1023);
    let seen = read(Reading::Spec, &format!("[BLOCKED] a\n{}", format!("{line}\n").repeat(300)));
    let Seen::Marker(Marker::Blocked { context, .. }) = &seen[0] else { panic!("{:?}", seen[0]) };
    assert_eq!(context.len(), 255);
    assert_eq!(seen.len(), 1 + 300 - 255);
    assert_eq!(seen[1], text(&line));
}

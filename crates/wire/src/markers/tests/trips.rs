//! What is written is read, however it arrives.

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

fn written(marker: &Marker) -> String {
    let mut out = String::new();
    write(marker, &mut out);
    out
}

#[track_caller]
fn comes_back(marker: &Marker) {
    let normal = marker.normalised();
    assert_eq!(normal.normalised(), normal);
    let out = written(marker);
    check(&out, &[Seen::Marker(normal)]);
}

#[test]
fn markers_are_written_like_this() {
    let choice = |number, label: &str, description: Option<&str>| Choice {
        number,
        label: label.into(),
        description: description.map(str::to_owned),
    };
    let file = |path: &str, change| FileChange { path: path.into(), change };
    let options = vec![choice(1, "a - b", Some("c")), choice(2, "d", None)];
    let markers = [
        Marker::Progress("one\ntwo[PROGRESS]".into()),
        Marker::Question(Question {
            text: "why?".into(),
            options: options.clone(),
            context: vec![],
        }),
        Marker::Question(Question { text: "why?".into(), options, context: strings(&["1. e"]) }),
        Marker::Blocked { reason: "r".into(), context: strings(&["[a]", "", "b\nc", "```"]) },
        Marker::FilesModified(vec![
            file("a b.rs", Change::Created),
            file(" c", renamed("d")),
            file("e (deleted)", Change::Unknown),
        ]),
        Marker::Other { name: "need context".into(), content: strings(&["x", "y"]) },
        Marker::Other { name: "TEST_RESULTS".into(), content: strings(&["x", "y"]) },
        Marker::Complete { text: "Task completed in 3 iterations".into() },
    ];
    let out: String = markers.iter().map(written).collect();
    expect_test::expect![[r#"
        [PROGRESS] one two\[PROGRESS]
        [QUESTION] why?
        Options:
        1. a – b - c
        2. d


        [QUESTION] why?
        Options:
        1. a – b - c
        2. d
        \1. e

        [BLOCKED] r
        \[a]
        b
        c
        \```

        [FILES_MODIFIED]
        - a b.rs (created)
        - " c" (renamed from d)
        - "e (deleted)"

        [NEED_CONTEXT] x y
        [TEST_RESULTS] x
        y

        [CODEX_COMPLETE] Task completed in 3 iterations
    "#]]
    .assert_eq(&out);
    markers.iter().for_each(comes_back);
}

#[test]
fn text_is_escaped_like_this() {
    let mut out = String::new();
    write_text(
        "[PROGRESS] x\r\n\\[PROGRESS]\n  [X] [Y]\n  [XY]: z\na[BLOCKED]\na [BLOCKED]\n",
        &mut out,
    );
    write_text("", &mut out);
    assert_eq!(
        out,
        "\\[PROGRESS] x\n\\\\[PROGRESS]\n  [X] [Y]\n  \\[XY]: z\na\\[BLOCKED]\na [BLOCKED]\n\n"
    );
}

#[test]
fn too_much_is_cut_and_comes_back() {
    let long = "é[BLOCKED]".repeat(10_000);
    let many: Vec<String> = (0..100_000).map(|n| format!("[{n}")).collect();
    let choice = |number| Choice { number, label: long.clone(), description: Some(long.clone()) };
    comes_back(&Marker::Progress(long.clone()));
    comes_back(&Marker::Other { name: "A".repeat(100), content: many.clone() });
    comes_back(&Marker::Other { name: "TEST_RESULTS".into(), content: many.clone() });
    comes_back(&Marker::Blocked { reason: long.clone(), context: many.clone() });
    comes_back(&Marker::Blocked { reason: long.clone(), context: strings(&["["; 100_000]) });
    for n_options in [0, 3, 100] {
        let options = (0..n_options).map(choice).collect();
        let question = Question { text: long.clone(), options, context: many.clone() };
        comes_back(&Marker::Question(question));
    }
    let dashes = Choice { number: 1, label: " -".repeat(10_000), description: Some("d".into()) };
    let question = Question { text: String::new(), options: vec![dashes], context: vec![] };
    comes_back(&Marker::Question(question));
    let path = "\u{1}".repeat(10_000);
    let file = FileChange { path: path.clone(), change: Change::Renamed { from: path } };
    comes_back(&Marker::FilesModified(vec![file]));
}

#[test]
fn a_long_list_of_files_is_several_markers() {
    let file = |n| FileChange { path: format!("src/file {n}.rs"), change: Change::Modified };
    let all: Vec<FileChange> = (0..20_000).map(file).collect();
    let mut listed = Vec::new();
    let seen = read(Reading::Spec, &written(&Marker::FilesModified(all.clone())));
    assert!(seen.len() > 1);
    for seen in seen {
        let Seen::Marker(Marker::FilesModified(files)) = seen else { panic!("{seen:?}") };
        listed.extend(files);
    }
    assert_eq!(listed, all);
}

#[test]
fn a_long_text_line_comes_back() {
    let line = format!("[PROGRESS] {}", "x[PROGRESS] y".repeat(10_000));
    let mut out = String::new();
    write_text(&line, &mut out);
    let pieces = read(Reading::Lenient, &out).into_iter().map(|seen| match seen {
        Seen::Text(text) => text,
        Seen::Marker(marker) => panic!("{marker:?}"),
    });
    assert_eq!(pieces.collect::<String>(), line);
}

#[test]
fn a_writer_closes_the_fence_before_a_marker() {
    let mut writer = Writer::default();
    let mut out = String::new();
    writer.text("```\ncode\n```\n~~~~ sh\n[PROGRESS] x", &mut out);
    writer.marker(&Marker::Progress("a".into()), &mut out);
    writer.marker(&Marker::Progress("b".into()), &mut out);
    let seen = read(Reading::Spec, &out);
    assert_eq!(
        seen.get(4..),
        Some(&[text("[PROGRESS] x"), text("~~~~"), progress("a"), progress("b")][..])
    );
}

#[test]
fn a_hundred_thousand_random_texts_are_read() {
    // The low bits of such a generator repeat too soon to choose by them.
    let mut state = 0x1234_5678_u32;
    let mut next = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let mut input = String::new();
    let mut readers = [Reader::new(Reading::Spec), Reader::new(Reading::Lenient)];
    let mut n_markers = 0_usize;
    for _ in 0..100_000 {
        input.clear();
        (0..next(20)).for_each(|_| input.push_str(PARTS[next(PARTS.len())]));
        for reader in &mut readers {
            let mut count =
                |piece: Piece<'_>| n_markers += usize::from(matches!(piece, Piece::Marker(_)));
            reader.feed(&input, &mut count);
            reader.finish(&mut count);
        }
    }
    assert!(n_markers > 50_000, "{n_markers}");
}

/// The same cases on every machine and at every time, many of them.
fn runner() -> TestRunner {
    let config = Config { cases: 3000, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn every_marker_comes_back() {
    let run = |marker: Marker| {
        comes_back(&marker);
        Ok(())
    };
    runner().run(&any_marker(), run).unwrap();
}

#[test]
fn every_chunking_gives_the_same_pieces() {
    let texts = prop::collection::vec(any_text(), 1..8);
    let run = |chunks: Vec<String>| {
        for reading in [Reading::Spec, Reading::Lenient] {
            let whole = chunks.concat();
            let seen = read(reading, &whole);
            prop_assert_eq!(&read_chunks(reading, chunks.iter().map(String::as_str)), &seen);
            let mut buffer = [0; 4];
            let mut reader = Reader::new(reading);
            let mut slowly = Vec::new();
            for char in whole.chars() {
                reader.feed(char.encode_utf8(&mut buffer), |piece| slowly.push(see(piece)));
            }
            reader.finish(|piece| slowly.push(see(piece)));
            prop_assert_eq!(&slowly, &seen);
        }
        Ok(())
    };
    runner().run(&texts, run).unwrap();
}

#[test]
fn every_text_and_marker_comes_back_in_its_order() {
    let item = prop_oneof![any_text().prop_map(Ok), any_marker().prop_map(Err)];
    let run = |items: Vec<Result<String, Marker>>| {
        let mut writer = Writer::default();
        let mut out = String::new();
        let mut expected = Vec::new();
        for item in items {
            match item {
                Ok(lines) => {
                    writer.text(&lines, &mut out);
                    let lines = lines.strip_suffix('\n').unwrap_or(&lines);
                    expected
                        .extend(lines.split('\n').map(|line| text(line.trim_end_matches('\r'))));
                }
                Err(marker) => {
                    let before = out.len();
                    writer.marker(&marker, &mut out);
                    // The line that closes a fence is text, too.
                    let closing = out.get(before..out.len() - written(&marker).len());
                    expected.extend(closing.unwrap().lines().map(text));
                    expected.push(Seen::Marker(marker.normalised()));
                }
            }
        }
        prop_assert_eq!(&read(Reading::Spec, &out), &expected);
        prop_assert_eq!(&read(Reading::Lenient, &out), &expected);
        Ok(())
    };
    runner().run(&prop::collection::vec(item, 0..6), run).unwrap();
}

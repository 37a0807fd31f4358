use proptest::prelude::*;

use super::*;

/// The pieces of an answer, neighbours joined: `T:` text, `[` start, `P:` plan, `]` end.
fn pieces<'a>(deltas: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut take = |piece: Piece<'_>| {
        let (mark, text) = match piece {
            Piece::Text(text) => ("T:", text),
            Piece::Plan(text) => ("P:", text),
            Piece::PlanStart => ("[", ""),
            Piece::PlanEnd => ("]", ""),
        };
        match found.last_mut() {
            Some(last) if last.starts_with(mark) && mark.len() == 2 => last.push_str(text),
            _ => found.push(format!("{mark}{text}")),
        }
    };
    let mut parser = PlanParser::default();
    for delta in deltas {
        parser.push(delta, &mut take);
    }
    parser.finish(&mut take);
    found
}

#[track_caller]
fn check(answer: &str, expected: &[&str]) {
    assert_eq!(pieces([answer]), expected, "{answer:?}");
}

#[test]
fn a_tag_counts_when_it_has_a_line_to_itself() {
    check("a\n<proposed_plan>\n- b\n</proposed_plan>\nc", &["T:a\n", "[", "P:- b\n", "]", "T:c"]);
    check("  <proposed_plan>\t\r\nb\n </proposed_plan> ", &["[", "P:b\n", "]"]);
    check("<proposed_plan>\n</proposed_plan>", &["[", "]"]);
    check("see <proposed_plan>\nb", &["T:see <proposed_plan>\nb"]);
    check("<proposed_plan> b\n", &["T:<proposed_plan> b\n"]);
    check("<proposed_plan>b</proposed_plan>\n", &["T:<proposed_plan>b</proposed_plan>\n"]);
    check("<Proposed_plan>\n", &["T:<Proposed_plan>\n"]);
    check("<proposed plan>\n", &["T:<proposed plan>\n"]);
    check("<proposed_plan", &["T:<proposed_plan"]);
    check("", &[]);
    check("\n\n", &["T:\n\n"]);
}

#[test]
fn a_tag_that_changes_nothing_is_text() {
    check("</proposed_plan>\na", &["T:</proposed_plan>\na"]);
    check(
        "<proposed_plan>\n<proposed_plan>\na\n</proposed_plan>\n",
        &["[", "P:<proposed_plan>\na\n", "]"],
    );
    check("<proposed_plan>\n</proposed_plan> x\n", &["[", "P:</proposed_plan> x\n", "]"]);
}

#[test]
fn a_plan_without_an_end_ends_with_the_answer() {
    check("<proposed_plan>\na", &["[", "P:a", "]"]);
    check("<proposed_plan>\na\n</proposed_pl", &["[", "P:a\n</proposed_pl", "]"]);
    check("a\n<proposed_plan>", &["T:a\n", "[", "]"]);
}

#[test]
fn text_is_not_held_back_longer_than_needed() {
    let mut parser = PlanParser::default();
    let mut seen = String::new();
    let mut push = |delta: &str| {
        seen.clear();
        parser.push(delta, |piece| match piece {
            Piece::Text(text) => seen.push_str(text),
            other => panic!("{other:?}"),
        });
        seen.clone()
    };
    assert_eq!(push("He"), "He");
    assert_eq!(push("llo\n <pro"), "llo\n");
    assert_eq!(push("gram> <"), " <program> <");
    assert_eq!(push(&" ".repeat(MOST_HELD)), " ".repeat(MOST_HELD));
    assert_eq!(push("\n"), "\n");
    assert_eq!(push(&" ".repeat(MOST_HELD)), "");
    assert_eq!(push(" "), " ".repeat(MOST_HELD + 1));
}

#[test]
fn the_last_plan_of_an_answer_counts() {
    let answer =
        "a\n<proposed_plan>\n1\n</proposed_plan>\nb\n<proposed_plan>\n2\n</proposed_plan>\n";
    assert_eq!(split(answer), ("a\nb\n".to_owned(), Some("2\n".to_owned())));
    assert_eq!(split("a"), ("a".to_owned(), None));
    assert_eq!(split("<proposed_plan>\n"), (String::new(), Some(String::new())));
}

/// Text in which tags, halves of tags and blanks are likely.
fn answers() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("<proposed_plan>".to_owned()),
        Just("</proposed_plan>".to_owned()),
        Just("<prop".to_owned()),
        Just("</".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just(" \t".to_owned()),
        "[a-é<>/\u{2003}]{0,4}",
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_pieces(answer in answers(), cuts in proptest::collection::vec(any::<usize>(), 0..16)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (answer.len() + 1)).collect();
        cuts.retain(|cut| answer.is_char_boundary(*cut));
        cuts.extend([0, answer.len()]);
        cuts.sort_unstable();
        let deltas = cuts.windows(2).filter_map(|pair| answer.get(pair[0]..pair[1]));
        prop_assert_eq!(pieces(deltas), pieces([answer.as_str()]));
    }

    #[test]
    fn nothing_but_tag_lines_is_lost(answer in answers()) {
        // The parser said with lines, which it cannot be while the text still comes in.
        let mut kept = String::new();
        let mut inside = false;
        for line in answer.split_inclusive('\n') {
            match line.trim() {
                "<proposed_plan>" if !inside => inside = true,
                "</proposed_plan>" if inside => inside = false,
                _ => kept.push_str(line),
            }
        }
        let joined: String = pieces([answer.as_str()])
            .iter()
            .filter_map(|piece| piece.get(2..).map(str::to_owned))
            .collect();
        prop_assert_eq!(joined, kept);
    }
}

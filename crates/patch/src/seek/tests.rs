use super::*;

#[track_caller]
fn seek(lines: &str, wanted: &str, from: From) -> Option<usize> {
    let lines = Lines::new(lines.split('|').collect());
    let wanted: Vec<&str> = wanted.split('|').collect();
    lines.seek(&wanted, from, &mut Budget::new(10_000)).unwrap()
}

#[test]
fn the_strictest_pass_that_finds_something_counts() {
    assert_eq!(seek("a|b|a|b", "a|b", From::Line(0)), Some(0));
    assert_eq!(seek("a|b|a|b", "a|b", From::Line(1)), Some(2));
    assert_eq!(seek("a |a", "a", From::Line(0)), Some(1), "an exact one further down");
    assert_eq!(seek(" a|a  ", "a", From::Line(0)), Some(1), "then spaces at the end");
    assert_eq!(seek("x—y| x-y", "x-y", From::Line(0)), Some(1), "then spaces on both sides");
    assert_eq!(seek("“x”\u{a0}— ‘y’", "\"x\" - 'y'", From::Line(0)), Some(0), "then signs");
    assert_eq!(seek("a b", "a  b", From::Line(0)), None, "spaces in between are never ignored");
    assert_eq!(seek("a|b", "a|b|c", From::Line(0)), None);
}

#[test]
fn the_end_is_the_end_and_not_before_the_cursor() {
    assert_eq!(seek("a|b|a", "a", From::End(0)), Some(2));
    assert_eq!(seek("a|b|a ", "a", From::End(0)), Some(2));
    assert_eq!(seek("a|b", "a", From::End(0)), None);
    assert_eq!(seek("a|b|c", "b|c", From::End(2)), None);
}

#[test]
fn a_search_is_as_the_naive_one() {
    let naive = |lines: &[&str], wanted: &[&str], cursor: usize| {
        (cursor..=lines.len() - wanted.len()).find(|at| lines[*at..].starts_with(wanted))
    };
    // Every text and pattern of two letters, so that every way to overlap is among them.
    for bits in 0..1_u32 << 9 {
        let lines: Vec<&str> = (0..9).map(|at| ["a", "b"][(bits >> at & 1) as usize]).collect();
        for (length, pattern) in (1..5_usize).flat_map(|n| (0..1_u32 << n).map(move |it| (n, it))) {
            let wanted: Vec<&str> =
                (0..length).map(|at| ["a", "b"][(pattern >> at & 1) as usize]).collect();
            for cursor in [0, 2] {
                let found = scan(&lines, &wanted, cursor, &mut Budget::new(1000));
                assert_eq!(found.unwrap(), naive(&lines, &wanted, cursor), "{lines:?} {wanted:?}");
            }
        }
    }
}

#[test]
fn a_pattern_that_repeats_itself_costs_one_scan() {
    let (n, m) = (100_000, 50_000);
    let lines = Lines::new(vec!["a"; n]);
    let mut wanted = vec!["a"; m];
    wanted.push("b");
    let most = 4 * (3 * n as u64 + 3 * m as u64);
    let mut budget = Budget::new(most);
    assert_eq!(lines.seek(&wanted, From::Line(0), &mut budget), Ok(None));
    // Naively it would be n times m.
    assert_eq!(lines.seek(&wanted, From::Line(0), &mut Budget::new(n as u64)), Err(Exhausted));
}

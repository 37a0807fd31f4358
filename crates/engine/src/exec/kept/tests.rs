use proptest::prelude::*;

use super::*;

const OUT: Stream = Stream::Stdout;
const ERR: Stream = Stream::Stderr;

fn kept(limit: usize, pieces: &[(Stream, &[u8])]) -> Kept {
    let mut kept = Kept::new(limit);
    for (stream, bytes) in pieces {
        kept.push(*stream, bytes);
    }
    kept
}

#[track_caller]
fn check(limit: usize, pieces: &[(Stream, &[u8])], all: &str, stdout: &str, stderr: &str) {
    let kept = kept(limit, pieces);
    assert_eq!(kept.all().text, all);
    assert_eq!(kept.of(OUT).text, stdout);
    assert_eq!(kept.of(ERR).text, stderr);
}

#[test]
fn head_and_tail_are_kept_of_both_and_of_each() {
    check(8, &[], "", "", "");
    check(8, &[(OUT, b"abc"), (ERR, b"12"), (OUT, b"def")], "abc12def", "abcdef", "12");
    check(
        8,
        &[(OUT, b"abc"), (ERR, b"1234"), (OUT, b"def")],
        "ab\n[2 bytes left out]\n234def",
        "ab\n[1 bytes left out]\ndef",
        "[1 bytes left out]\n234",
    );
    check(
        8,
        &[(OUT, b"0123456789")],
        "01\n[2 bytes left out]\n456789",
        "01\n[2 bytes left out]\n456789",
        "",
    );
    check(0, &[(OUT, b"abc")], "[3 bytes left out]\n", "[3 bytes left out]\n", "");
}

#[test]
fn characters_are_cut_neither_by_the_limit_nor_by_the_other_stream() {
    let euro = "€".as_bytes();
    let (first, rest) = euro.split_at(1);
    check(40, &[(OUT, first), (ERR, b"!"), (OUT, rest)], "!€", "€", "!");
    // The head ends inside the first, the tail begins inside the last but one.
    let euros = "€€€€€".as_bytes();
    check(8, &[(OUT, euros)], "[9 bytes left out]\n€€", "[9 bytes left out]\n€€", "");
    check(40, &[(OUT, b"a\xff"), (ERR, first)], "a\u{fffd}\u{fffd}", "a\u{fffd}", "\u{fffd}");
}

#[test]
fn each_part_is_fresh_once() {
    let mut kept = kept(16, &[(OUT, b"abc")]);
    let fresh = |kept: &mut Kept| kept.fresh(Last::No).text;
    assert_eq!(fresh(&mut kept), "abc");
    assert_eq!(fresh(&mut kept), "");
    kept.push(ERR, b"defgh\xe2");
    assert_eq!(fresh(&mut kept), "defgh");
    kept.push(OUT, b"0123456789ABC");
    let printed = kept.fresh(Last::No);
    assert_eq!(printed.text, "[2 bytes left out]\n123456789ABC");
    assert_eq!(printed.total, 13);
    kept.push(OUT, b"\xe2\x82");
    assert_eq!(fresh(&mut kept), "");
    assert_eq!(kept.fresh(Last::Yes).text, "\u{fffd}");
}

#[test]
fn single_bytes_on_both_streams_by_turns_take_bounded_memory() {
    let mut kept = Kept::new(1024 * 1024);
    for _ in 0..200_000 {
        kept.push(OUT, b"o");
        kept.push(ERR, b"e");
    }
    assert!(kept.head.runs.len() + kept.tail.runs.len() <= 2 * MAX_RUNS);
    let all = kept.all();
    assert_eq!((all.total, all.left_out), (400_000, 400_000 - 2 * MAX_RUNS as u64));
    assert!(all.text.starts_with("oeoe") && all.text.ends_with("oeoe"));
}

proptest! {
    #[test]
    fn what_fits_comes_back_whole_in_any_pieces(
        text in "\\PC{0,60}",
        cuts in prop::collection::vec((0usize..5, any::<bool>()), 0..40),
    ) {
        let mut kept = Kept::new(4096);
        let mut fresh = String::new();
        let mut rest = text.as_bytes();
        for (len, take) in cuts {
            let (piece, after) = rest.split_at(len.min(rest.len()));
            rest = after;
            kept.push(OUT, piece);
            if take {
                fresh.push_str(&kept.fresh(Last::No).text);
            }
        }
        kept.push(OUT, rest);
        fresh.push_str(&kept.fresh(Last::Yes).text);
        prop_assert_eq!(&fresh, &text);
        prop_assert_eq!(kept.all().text, text);
    }

    #[test]
    fn no_byte_is_counted_twice_or_lost(
        limit in 0usize..40,
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..20)), 0..20),
    ) {
        let mut kept = Kept::new(limit);
        let mut n_fresh = 0;
        for (is_out, bytes) in &pieces {
            kept.push(if *is_out { OUT } else { ERR }, bytes);
            n_fresh += kept.fresh(Last::No).total;
        }
        let total: usize = pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        prop_assert_eq!(n_fresh, total as u64);
        prop_assert_eq!(kept.all().total, total as u64);
        prop_assert_eq!(kept.of(OUT).total + kept.of(ERR).total, total as u64);
        prop_assert!(kept.head.bytes.len() + kept.tail.bytes.len() <= limit);
    }
}

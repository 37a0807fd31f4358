use proptest::prelude::*;

use super::*;

#[test]
fn four_bytes_are_a_token() {
    for (text, n) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ééé", 2)] {
        assert_eq!(tokens(text), n, "{text:?}");
    }
}

#[test]
fn the_middle_is_left_out() {
    let cut = |text, limit| without_middle(text, limit);
    assert_eq!(cut("0123456789", Limit::Bytes(10)), None);
    assert_eq!(cut("0123456789", Limit::Bytes(4)).unwrap(), "01…6 chars truncated…89");
    assert_eq!(cut("0123456789", Limit::Bytes(5)).unwrap(), "01…5 chars truncated…789");
    assert_eq!(cut("0123456789", Limit::Bytes(0)).unwrap(), "…10 chars truncated…");
    assert_eq!(cut("0123456789ab", Limit::Tokens(1)).unwrap(), "01…2 tokens truncated…ab");
    assert_eq!(cut("0123456789ab", Limit::Tokens(3)), None);
    // No character is cut in two, so less is kept than allowed.
    assert_eq!(cut("éééé", Limit::Bytes(6)).unwrap(), "é…2 chars truncated…é");
    assert_eq!(cut("😀😀", Limit::Bytes(4)).unwrap(), "…2 chars truncated…");
}

#[test]
fn a_shortened_text_says_so_first() {
    assert_eq!(truncated("a\nb", Limit::Tokens(1)), "a\nb");
    assert_eq!(
        truncated("a\nb\nc\nd\n", Limit::Bytes(4)),
        "Warning: truncated output (original token count: 2)\nTotal output lines: 4\n\n\
         a\n…4 chars truncated…d\n",
    );
}

#[test]
fn output_is_told_with_its_circumstances() {
    let wall = Duration::from_millis(1_250);
    assert_eq!(
        exec_output(Standing::Exited(0), wall, "hi\n", Limit::default()),
        "Wall time: 1.2500 seconds\nProcess exited with code 0\nOutput:\nhi\n"
    );
    assert_eq!(
        exec_output(Standing::Running(5), wall, "0123456789", Limit::Tokens(1)),
        "Wall time: 1.2500 seconds\nProcess running with session ID 5\n\
         Original token count: 3\nOutput:\n01…2 tokens truncated…89"
    );
    assert_eq!(
        shell_output(-1, Duration::from_millis(120), "", Limit::default()),
        "Exit code: -1\nWall time: 0.1 seconds\nOutput:\n"
    );
    assert_eq!(
        shell_output(0, wall, "a\nb\nc\n", Limit::Bytes(2)),
        "Exit code: 0\nWall time: 1.2 seconds\nTotal output lines: 3\nOutput:\n\
         a…4 chars truncated…\n"
    );
    assert_eq!(
        timed_out(Duration::from_secs(10), Duration::from_secs(10), "x", Limit::default()),
        "Exit code: 124\nWall time: 10.0 seconds\nOutput:\n\
         command timed out after 10000 milliseconds\nx"
    );
}

#[test]
fn a_stream_keeps_its_ends() {
    let mut stream = HeadTail::with_limit(6);
    assert!(stream.is_empty());
    stream.push(b"abc");
    stream.push(b"def");
    assert_eq!((stream.text().as_str(), stream.omitted()), ("abcdef", 0));
    stream.push(b"gh");
    assert_eq!(stream.text(), "abc\n…2 bytes omitted…\nfgh");
    stream.push(&[b'x'; 100]);
    stream.push(b"yz");
    assert_eq!(stream.text(), "abc\n…104 bytes omitted…\nxyz");
    assert_eq!((stream.omitted(), stream.total()), (104, 110));
    let taken = stream.take();
    assert_eq!((taken.total(), stream.total()), (110, 0));
    stream.push(b"1234567");
    assert_eq!(stream.text(), "123\n…1 bytes omitted…\n567");
}

#[test]
fn a_cut_does_not_leave_half_a_character() {
    let mut stream = HeadTail::with_limit(10);
    stream.push("aaé😀éé😀".as_bytes());
    assert_eq!(stream.text(), "aaé\n…8 bytes omitted…\n😀");
    // What was broken before stays visibly so.
    let mut stream = HeadTail::with_limit(4);
    stream.push(b"\xffa12\xff\xfe");
    assert_eq!(stream.text(), "\u{fffd}a\n…2 bytes omitted…\n\u{fffd}\u{fffd}");
}

proptest! {
    #[test]
    fn what_is_left_is_the_beginning_and_the_end(text in "[aé€😀\n]{0,64}", n in 0usize..80) {
        match without_middle(&text, Limit::Bytes(n)) {
            None => prop_assert!(text.len() <= n),
            Some(short) => {
                let (head, rest) = short.split_once('…').unwrap();
                let (missing, tail) = rest.split_once(" chars truncated…").unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert!(head.len() + tail.len() <= n);
                // At most a character on either side is lost to the boundaries.
                prop_assert!(head.len() + tail.len() + 6 >= n);
                let count = head.chars().count() + tail.chars().count();
                prop_assert_eq!(count + missing.parse::<usize>().unwrap(), text.chars().count());
            }
        }
    }

    #[test]
    fn any_chunking_keeps_the_same_ends(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        limit in 0usize..64,
        cut in 1usize..50,
    ) {
        let mut whole = HeadTail::with_limit(limit);
        whole.push(&bytes);
        let mut pieces = HeadTail::with_limit(limit);
        bytes.chunks(cut).for_each(|piece| pieces.push(piece));
        prop_assert_eq!(whole.text(), pieces.text());
        prop_assert_eq!(whole.omitted(), pieces.omitted());
        prop_assert_eq!(whole.total(), bytes.len() as u64);
        prop_assert_eq!(whole.omitted(), bytes.len().saturating_sub(limit) as u64);
    }
}

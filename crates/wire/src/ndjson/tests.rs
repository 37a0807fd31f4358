use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::{Framer, Line, content};

/// What came out, in a form that can be compared.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Whole(Vec<u8>),
    Unfinished(Vec<u8>),
    Oversized { head: Vec<u8>, bytes: u64, sha256: [u8; 32] },
}

fn see(line: Line<'_>) -> Seen {
    match line {
        Line::Whole(line) => Seen::Whole(line.into_owned()),
        Line::Unfinished(line) => Seen::Unfinished(line.to_vec()),
        Line::Oversized { head, bytes, sha256 } => {
            Seen::Oversized { head: head.to_vec(), bytes, sha256 }
        }
    }
}

fn frame<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut framer = Framer::new(limit);
    let mut seen = Vec::new();
    for chunk in chunks {
        framer.feed(chunk, |line| seen.push(see(line)));
    }
    framer.finish(|line| seen.push(see(line)));
    seen
}

#[test]
fn every_chunking_gives_the_same_lines() {
    let mut input = Vec::new();
    for n in 0..1000_usize {
        input.extend(format!("{{\"n\":{n},\"s\":\"é{}\"}}", "x".repeat(n % 97)).bytes());
        input.extend(if n % 3 == 0 { &b"\r\n"[..] } else { b"\n" });
    }
    input.extend(b"the end is missing");
    let whole = frame(1 << 20, [&input[..]]);
    assert_eq!(whole.len(), 1001);
    for size in [1, 2, 3, 7, 64, 1000, 4096, 65536] {
        assert_eq!(frame(1 << 20, input.chunks(size)), whole, "chunks of {size}");
    }
}

#[test]
fn no_byte_at_any_place_costs_the_following_line() {
    for byte in 0..=255_u8 {
        for place in 0..20 {
            let mut input = br#"{"type":"x","n":1234}"#.to_vec();
            input.insert(place, byte);
            input.extend(b"\n{\"next\":true}\n");
            for size in [1, 5, 64] {
                let seen = frame(1024, input.chunks(size));
                assert_eq!(seen.last(), Some(&Seen::Whole(b"{\"next\":true}\n".to_vec())));
            }
        }
    }
}

#[test]
fn an_oversized_line_is_one_value_with_its_hash_and_the_next_line_is_read() {
    let long = vec![b'a'; 300_000];
    let mut input = long.clone();
    input.extend(b"\nnext\n");
    for size in [1000, 65536, input.len()] {
        let seen = frame(100_000, input.chunks(size));
        let sha256: [u8; 32] = Sha256::digest(&long).into();
        assert_eq!(
            seen,
            [
                Seen::Oversized { head: vec![b'a'; 65536], bytes: 300_000, sha256 },
                Seen::Whole(b"next\n".to_vec()),
            ]
        );
    }
}

#[test]
fn the_head_of_an_oversized_line_is_the_same_in_every_chunking() {
    let long = vec![b'a'; 100_000];
    let whole = frame(100, [&long[..]]);
    assert!(matches!(&whole[..], [Seen::Oversized { head, .. }] if head.len() == 65536));
    for size in [1, 64, 4096, 70_000] {
        assert_eq!(frame(100, long.chunks(size)), whole, "chunks of {size}");
    }
}

#[test]
fn a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
    assert_eq!(frame(4, [&b"abcd\n"[..]]), [Seen::Whole(b"abcd\n".to_vec())]);
    assert_eq!(frame(4, [&b"ab"[..], b"cd\n"]), [Seen::Whole(b"abcd\n".to_vec())]);
    for chunks in [vec![&b"abcde\n"[..]], vec![b"abc", b"de\n"]] {
        assert!(matches!(frame(4, chunks)[..], [Seen::Oversized { bytes: 5, .. }]));
    }
}

#[test]
fn memory_is_given_back_after_a_long_line() {
    let mut framer = Framer::new(8 << 20);
    for _ in 0..(7 << 20) / 65536 {
        framer.feed(&[b'x'; 65536], |_| panic!("no line yet"));
    }
    assert!(framer.partial.capacity() <= (8 << 20) + 65536);
    framer.feed(b"\n", |_| {});
    assert!(framer.partial.capacity() <= 256 * 1024);
}

#[test]
fn content_drops_the_mark_and_the_terminator_only() {
    assert_eq!(content(b"\xef\xbb\xbf{\"a\":\" \"}\r\n"), b"{\"a\":\" \"}");
    assert_eq!(content(b"\r\n"), b"");
}

proptest! {
    #[test]
    fn lines_put_together_are_the_input(
        input in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..2000),
        size in 1..200_usize,
    ) {
        let mut back = Vec::new();
        for seen in frame(1 << 20, input.chunks(size)) {
            match seen {
                Seen::Whole(line) | Seen::Unfinished(line) => back.extend(line),
                Seen::Oversized { .. } => prop_assert!(false, "nothing is that long here"),
            }
        }
        prop_assert_eq!(back, input);
    }
}

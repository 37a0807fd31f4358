use proptest::prelude::*;

use super::{Parser, TooLarge};

type Seen = (Option<String>, Vec<u8>);

/// The events, and whether one was too large.
fn read<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, bool) {
    let mut parser = Parser::new(limit);
    let mut seen = Vec::new();
    for chunk in chunks {
        parser.feed(chunk);
        if drain(&mut parser, &mut seen).is_err() {
            return (seen, true);
        }
    }
    parser.finish();
    let failed = drain(&mut parser, &mut seen).is_err();
    (seen, failed)
}

fn drain(parser: &mut Parser, seen: &mut Vec<Seen>) -> Result<(), TooLarge> {
    while parser.advance()? {
        let event = parser.event();
        seen.push((event.name.map(str::to_owned), event.data.to_vec()));
    }
    Ok(())
}

fn events(input: &[u8]) -> Vec<Seen> {
    let (seen, failed) = read(1 << 20, [input]);
    assert!(!failed);
    seen
}

fn data(input: &[u8]) -> Vec<String> {
    let text = |(_, data)| String::from_utf8(data).unwrap();
    events(input).into_iter().map(text).collect()
}

#[test]
fn an_event_has_a_name_and_data() {
    let seen = events(b"event: response.created\ndata: {\"a\": 1}\n\ndata:x\n\n");
    assert_eq!(seen[0], (Some("response.created".to_owned()), b"{\"a\": 1}".to_vec()));
    assert_eq!(seen[1], (None, b"x".to_vec()));
}

#[test]
fn every_line_end_counts() {
    for end in ["\n", "\r\n", "\r"] {
        let input = "event: a\ndata: 1\ndata: 2\n\n\ndata: 3\n\n".replace('\n', end);
        assert_eq!(data(input.as_bytes()), ["1\n2", "3"], "{end:?}");
        for size in 1..input.len() {
            let seen = read(1 << 20, input.as_bytes().chunks(size)).0;
            assert_eq!(seen, events(input.as_bytes()), "{end:?} in {size}");
        }
    }
}

#[test]
fn lines_of_data_are_joined_and_only_one_blank_is_dropped() {
    assert_eq!(data(b"data:  a\ndata\ndata:b\n\n"), [" a\n\nb"]);
    assert_eq!(data(b"data: a\n: comment\nevent: x\ndata: b\n\n"), ["a\nb"]);
    assert_eq!(data(b"data\n\ndata\ndata\n\n"), ["", "\n"]);
}

#[test]
fn comments_unknown_fields_and_empty_events_are_nothing() {
    assert_eq!(data(b": keep-alive\n\n:\n\nevent: only a name\n\nother: x\ndata: y\n\n"), ["y"]);
    assert_eq!(events(b"event: a\n\ndata: b\n\n"), [(None, b"b".to_vec())]);
    assert!(data(b"").is_empty());
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_beginning_only() {
    let input = b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n";
    for size in 1..input.len() {
        assert_eq!(read(1 << 20, input.chunks(size)).0, [(None, b"a".to_vec())]);
    }
}

#[test]
fn ids_and_times_to_wait_are_kept() {
    let mut parser = Parser::default();
    parser.feed(b"id: 7\nretry: 250\ndata: a\n\nid: a\0b\nretry: soon\ndata: b\n\n");
    while parser.advance().unwrap() {}
    assert_eq!((parser.last_id(), parser.retry()), ("7", Some(250)));
}

#[test]
fn the_last_event_may_miss_its_line_ends() {
    assert_eq!(data(b"data: a\n\ndata: b\n"), ["a", "b"]);
    assert_eq!(data(b"data: a\n\ndata: b"), ["a", "b"]);
    assert_eq!(data(b"data: a\r\n\r\ndata: b\r"), ["a", "b"]);
}

#[test]
fn an_event_over_the_limit_is_an_error_from_then_on() {
    let long = [&b"data: 1\n\ndata: "[..], &[b'x'; 200], b"\n\ndata: 2\n\n"].concat();
    for size in [1, 7, 64, 1000] {
        let (seen, failed) = read(100, long.chunks(size));
        assert_eq!((seen, failed), (vec![(None, b"1".to_vec())], true), "in {size}");
    }
    let mut parser = Parser::new(8);
    parser.feed(b"data: 123456\n\n");
    assert_eq!(parser.advance(), Err(TooLarge { limit: 8 }));
    parser.feed(b"\n\ndata: a\n\n");
    assert_eq!(parser.advance(), Err(TooLarge { limit: 8 }));
    // Many short lines are one event as well.
    let (seen, failed) = read(100, [b"data: 12345\n".repeat(20).as_slice()]);
    assert_eq!((seen.len(), failed), (0, true));
    // Exactly the limit is not over it.
    assert_eq!(read(9, b"data: 123\n\n".chunks(3)), (vec![(None, b"123".to_vec())], false));
}

#[test]
fn comments_do_not_fill_the_memory() {
    let mut parser = Parser::new(1000);
    parser.feed(b"data: a\n");
    for _ in 0..10_000 {
        parser.feed(b": keep-alive\n");
        assert!(!parser.advance().unwrap());
    }
    assert!(parser.buffer.capacity() < 4096);
    parser.feed(b"\n");
    assert!(parser.advance().unwrap());
    assert_eq!(parser.event().data, b"a");
}

/// Bytes that are likely to mean something.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"data: {\"type\":\"x\"}\n\n",
        b"data",
        b"event: e",
        b"id: 1",
        b"retry: 5",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"\xff\0",
        "é🙂".as_bytes(),
    ];
    let piece = prop::sample::select(PIECES);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_chunking_gives_the_same_events(
        input in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        limit in prop_oneof![Just(12_usize), Just(40), Just(1 << 20)],
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]);
        let whole = read(limit, [&input[..]]);
        prop_assert_eq!(read(limit, chunks), whole.clone());
        prop_assert_eq!(read(limit, input.chunks(1)), whole);
    }

    #[test]
    fn any_bytes_are_survived(input in prop::collection::vec(any::<u8>(), 0..400)) {
        let whole = read(64, [&input[..]]);
        prop_assert_eq!(read(64, input.chunks(1)), whole);
    }
}

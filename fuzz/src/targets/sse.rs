//! Server-sent events: every chunking gives the same ones.

use tieline_wire::sse::Parser;

use super::{chunks, sum};

#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Names and data.
    events: Vec<(Option<String>, Vec<u8>)>,
    is_too_large: bool,
    last_id: String,
    retry: Option<u64>,
}

fn read(limit: usize, chunks: &[&[u8]]) -> Seen {
    let mut parser = Parser::new(limit);
    let mut seen = Seen::default();
    for chunk in chunks {
        parser.feed(chunk);
        take(&mut parser, &mut seen);
    }
    parser.finish();
    take(&mut parser, &mut seen);
    parser.last_id().clone_into(&mut seen.last_id);
    seen.retry = parser.retry();
    seen
}

fn take(parser: &mut Parser, seen: &mut Seen) {
    loop {
        match parser.advance() {
            Ok(true) => {
                let event = parser.event();
                seen.events.push((event.name.map(str::to_owned), event.data.to_vec()));
            }
            Ok(false) => return,
            Err(_) => {
                seen.is_too_large = true;
                return;
            }
        }
    }
}

pub(super) fn check(input: &[u8]) {
    let limit = if sum(input).is_multiple_of(2) { 100 } else { 1 << 20 };
    let seen = read(limit, &[input]);
    assert_eq!(seen, read(limit, &chunks(input)), "the chunking makes a difference");
    for (_, data) in &seen.events {
        assert!(data.len() <= limit, "{} bytes of data", data.len());
        assert!(!data.contains(&b'\r'), "a line end is no data");
    }
    assert!(seen.is_too_large <= (input.len() > limit), "nothing is too large here");
}

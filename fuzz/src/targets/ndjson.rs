//! The framer: every chunking gives the same lines, and they are the input.

use tieline_wire::ndjson::{self, Framer, Line};

use super::{chunks, sum};

#[derive(Debug, PartialEq)]
enum Seen {
    Whole(Vec<u8>),
    Unfinished(Vec<u8>),
    Oversized { head: Vec<u8>, bytes: u64, sha256: [u8; 32] },
}

fn frame(limit: usize, chunks: &[&[u8]]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut see = |line: Line<'_>| {
        seen.push(match line {
            Line::Whole(line) => Seen::Whole(line.into_owned()),
            Line::Unfinished(line) => Seen::Unfinished(line.into_owned()),
            Line::Oversized { head, bytes, sha256 } => {
                Seen::Oversized { head: head.to_vec(), bytes, sha256 }
            }
        });
    };
    let mut framer = Framer::new(limit);
    chunks.iter().for_each(|chunk| framer.feed(chunk, &mut see));
    framer.finish(&mut see);
    seen
}

pub(super) fn check(input: &[u8]) {
    let limit = if sum(input).is_multiple_of(2) { 100 } else { 1 << 20 };
    let seen = frame(limit, &[input]);
    assert_eq!(seen, frame(limit, &chunks(input)), "the chunking makes a difference");
    // What is left of the input when the lines are taken off its front.
    let mut rest = input;
    for line in &seen {
        let (taken, is_right) = match line {
            Seen::Whole(line) => (
                line.len(),
                rest.starts_with(line) && line.ends_with(b"\n") && line.len() <= limit + 1,
            ),
            Seen::Unfinished(line) => (line.len(), rest == line && line.len() <= limit),
            Seen::Oversized { head, bytes, .. } => {
                let length = usize::try_from(*bytes).unwrap_or(usize::MAX);
                (length.saturating_add(1).min(rest.len()), rest.starts_with(head) && length > limit)
            }
        };
        assert!(is_right, "{line:?} is not what comes next");
        rest = rest.get(taken..).unwrap_or_default();
        if let Seen::Whole(line) = line {
            assert!(ndjson::content(line).len() < line.len(), "the terminator is not content");
        }
    }
    assert!(rest.is_empty(), "{} bytes came to nobody", rest.len());
}

//! Markers: every chunking gives the same pieces, and what was read is read again once written.

use tieline_wire::markers::{LINE_LIMIT, Marker, Piece, Reader, Reading, write, write_text};

use super::chunks;

/// Where there are more, the rest is like them.
const MOST_MARKERS: usize = 16;

#[derive(Debug, PartialEq)]
enum Seen {
    Text(String),
    Marker(Marker),
}

fn read<'a>(reading: Reading, pieces: impl IntoIterator<Item = &'a str>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut see = |piece: Piece<'_>| {
        seen.push(match piece {
            Piece::Text(text) => Seen::Text(text.to_owned()),
            Piece::Marker(marker) => Seen::Marker(marker),
        });
    };
    let mut reader = Reader::new(reading);
    pieces.into_iter().for_each(|piece| reader.feed(piece, &mut see));
    reader.finish(&mut see);
    seen
}

pub(super) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut letters = text.chars();
    // As many characters at a time as the chunk has bytes.
    let chunks: Vec<String> = chunks(text.as_bytes())
        .iter()
        .map(|it| letters.by_ref().take(it.len()).collect())
        .collect();
    let mut again = String::new();
    for reading in [Reading::Spec, Reading::Lenient] {
        let seen = read(reading, [&*text]);
        assert_eq!(seen, read(reading, chunks.iter().map(String::as_str)), "{reading:?}");
        let markers = seen.into_iter().filter_map(|seen| match seen {
            Seen::Marker(marker) => Some(marker),
            Seen::Text(_) => None,
        });
        for marker in markers.take(MOST_MARKERS) {
            let normal = marker.normalised();
            assert_eq!(normal.normalised(), normal);
            again.clear();
            write(&marker, &mut again);
            assert_eq!(read(reading, [&*again]), [Seen::Marker(normal)], "{reading:?}");
        }
    }
    if text.len() <= LINE_LIMIT / 2 {
        again.clear();
        write_text(&text, &mut again);
        let body = text.strip_suffix('\n').unwrap_or(&text);
        let lines = body.split('\n').map(|line| Seen::Text(line.trim_end_matches('\r').to_owned()));
        assert_eq!(read(Reading::Lenient, [&*again]), lines.collect::<Vec<_>>());
    }
}

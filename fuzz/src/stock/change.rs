//! Changes to an input.

use std::ops::Range;

use fastrand::Rng;

use super::{LONGEST, Stock};
use crate::scan;

/// What has broken parsers before: the ends of number types, empty and wrong values.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "1.5",
    "1e999",
    "-1e-999",
    "0.1e1",
    "1e2",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "\"\"",
    "[]",
    "{}",
    "[{}]",
    "[null]",
    "{\"\":{}}",
    "\"0\"",
    "[[]]",
    "\"a\\nb\"",
];

/// Parts of strings that need care.
const ESCAPES: &[&[u8]] = &[
    b"\\ud800",
    b"\\udc00",
    b"\\ud83d\\ude00",
    b"\\ud83d\\ud83d",
    b"\\u0000",
    b"\\n",
    b"\\\\",
    b"\\\"",
    b"\\u",
    b"\\",
    b"\"",
    b"\x00",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xe2\x82",
    b"\xf0\x9f\x98",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xc2\x9b",
    b"\x1b]52;",
    b"\r",
    b"\t",
    "é".as_bytes(),
    "\u{202e}".as_bytes(),
];

/// What structures are made of.
const MARKS: &[&[u8]] = &[
    b"\n", b"\r\n", b"\n\n", b"{", b"}", b"[", b"]", b",", b":", b" ", b"=", b"#", b"- ", b"> ",
    b"```\n", b"\"\"\"",
];

impl Stock {
    /// Changes an input in one way, whatever it is.
    pub(super) fn change_bytes(&self, input: &mut Vec<u8>, rng: &mut Rng) {
        match rng.u8(0..20) {
            0 => flip(input, rng),
            1 => insert(input, rng, ESCAPES),
            2 => insert(input, rng, MARKS),
            3..=5 => self.other_word(input, rng),
            6..=8 => other_value(input, rng),
            9 => cut(input, rng),
            10 => repeat(input, rng),
            11 => input.truncate(rng.usize(0..=input.len())),
            12 => self.splice(input, rng),
            13 => drop_line(input, rng),
            14 => move_line(input, rng),
            15..=16 => self.add_line(input, rng),
            17 => nest(input, rng),
            18 => in_string(input, rng),
            _ => twice(input, rng),
        }
    }

    /// A word of the corpus in the place of another.
    fn other_word(&self, input: &mut Vec<u8>, rng: &mut Rng) {
        let Some(word) = rng.choice(&self.words) else { return };
        if let Some(place) = token(input, rng) {
            input.splice(place, word.iter().copied());
        }
    }

    /// Part of another file.
    fn splice(&self, input: &mut Vec<u8>, rng: &mut Rng) {
        let other = self.any_seed(rng);
        let piece = other.get(range(other.len(), rng)).unwrap_or_default();
        input.splice(range(input.len(), rng), piece.iter().copied());
    }

    /// A line of another file.
    fn add_line(&self, input: &mut Vec<u8>, rng: &mut Rng) {
        let other = self.any_seed(rng);
        let line = other.get(line(other, rng)).unwrap_or_default();
        let at = line_start(input, rng);
        let end = if line.ends_with(b"\n") { &b""[..] } else { b"\n" };
        input.splice(at..at, [line, end].concat());
    }
}

fn flip(input: &mut [u8], rng: &mut Rng) {
    if let Some(byte) = rng.choice(input.iter_mut()) {
        *byte ^= 1 << rng.u8(0..8);
    }
}

fn insert(input: &mut Vec<u8>, rng: &mut Rng, pieces: &[&[u8]]) {
    let at = rng.usize(0..=input.len());
    input.splice(at..at, rng.choice(pieces).into_iter().flat_map(|it| it.iter().copied()));
}

/// Another value in the place of a word.
fn other_value(input: &mut Vec<u8>, rng: &mut Rng) {
    if let Some(place) = token(input, rng) {
        input.splice(place, rng.choice(VALUES).unwrap_or(&"null").bytes());
    }
}

fn cut(input: &mut Vec<u8>, rng: &mut Rng) {
    input.drain(range(input.len(), rng));
}

/// A piece many times over: long strings, long lines, many lines.
fn repeat(input: &mut Vec<u8>, rng: &mut Rng) {
    let place = range(input.len(), rng);
    let piece = input.get(place.clone()).unwrap_or_default();
    // Most stay short, so that there is time for many.
    let room = if rng.u8(0..64) == 0 { LONGEST } else { 1024 };
    let n_times = (room / piece.len().max(1)).min(1 << rng.u8(1..16));
    let pieces = piece.repeat(n_times);
    input.splice(place.end..place.end, pieces);
}

fn drop_line(input: &mut Vec<u8>, rng: &mut Rng) {
    input.drain(line(input, rng));
}

fn move_line(input: &mut Vec<u8>, rng: &mut Rng) {
    let moved: Vec<u8> = input.drain(line(input, rng)).collect();
    let at = line_start(input, rng);
    input.splice(at..at, moved);
}

/// A word deep in brackets, some of them without their ends.
fn nest(input: &mut Vec<u8>, rng: &mut Rng) {
    let Some(place) = token(input, rng) else { return };
    let depth = rng.choice([1, 2, 60, 126, 127, 128, 129, 200, 3000]).unwrap_or(1);
    let (open, close) = rng.choice([("[", "]"), ("{\"a\":", "}")]).unwrap_or(("[", "]"));
    let n_ends = if rng.u8(0..4) == 0 { 0 } else { depth };
    let inner = input.get(place.clone()).unwrap_or_default();
    let nested = [open.repeat(depth).as_bytes(), inner, close.repeat(n_ends).as_bytes()].concat();
    input.splice(place, nested);
}

/// Something odd inside of a string.
fn in_string(input: &mut Vec<u8>, rng: &mut Rng) {
    if let Some(place) = token(input, rng) {
        let at = rng.usize(place.start + 1..=place.end.max(place.start + 1));
        input.splice(at..at, rng.choice(ESCAPES).into_iter().flat_map(|it| it.iter().copied()));
    }
}

/// A field, or whatever is between two commas, twice.
fn twice(input: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.usize(0..=input.len());
    let is_comma = |byte: &u8| *byte == b',';
    let start = input.get(..at).and_then(|it| it.iter().rposition(is_comma)).unwrap_or(at);
    let rest = input.get(at..).unwrap_or_default();
    let end = rest.iter().position(is_comma).map_or(at, |length| at + length);
    let field = input.get(start..end).unwrap_or_default().to_vec();
    input.splice(end..end, field);
}

/// A word in one line of the input.
fn token(input: &[u8], rng: &mut Rng) -> Option<Range<usize>> {
    let line = line(input, rng);
    let start = line.start;
    let tokens = scan::tokens(input.get(line).unwrap_or_default());
    rng.choice(tokens).map(|token| token.start + start..token.end + start)
}

fn line(input: &[u8], rng: &mut Rng) -> Range<usize> {
    scan::line_at(input, rng.usize(0..=input.len()))
}

fn line_start(input: &[u8], rng: &mut Rng) -> usize {
    line(input, rng).start
}

/// A short piece more often than a long one.
fn range(length: usize, rng: &mut Rng) -> Range<usize> {
    let start = rng.usize(0..=length);
    let longest = (length - start).min(1 << rng.u8(0..14));
    start..start + rng.usize(0..=longest)
}

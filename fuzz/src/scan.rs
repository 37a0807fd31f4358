//! Where the words of an input are.

use std::ops::Range;

/// Strings with their quotes, numbers and bare words of a text, whatever it is written in.
pub(crate) fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let rest = text.get(at + 1..).unwrap_or_default();
        let length = match byte {
            b'"' => string(rest).map_or(1, |length| length + 1),
            byte if is_word(*byte) => 1 + rest.iter().take_while(|it| is_word(**it)).count(),
            _ => {
                at += 1;
                continue;
            }
        };
        tokens.push(at..at + length);
        at += length;
    }
    tokens
}

/// How long a string is from behind its first quote to behind its last one.
fn string(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    })?;
    Some(end + 1)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_' | b'!' | b'@')
}

/// A line of a text with its end, by any position in it.
pub(crate) fn line_at(text: &[u8], at: usize) -> Range<usize> {
    let before = text.get(..at).unwrap_or(text);
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let after = text.get(at..).unwrap_or_default();
    let length = after.iter().position(|byte| *byte == b'\n').map_or(after.len(), |end| end + 1);
    start..at + length
}

//! Takes everything out of an agent's text that a terminal would obey.
//!
//! What is left holds no control character but newline and tab, no C1 control and no control over
//! the direction of text. The event keeps the text as it was.

#[cfg(test)]
mod tests;

/// A text on its way to a terminal, in pieces. A sequence may begin in one piece and end in
/// another.
#[derive(Debug, Clone, Default)]
pub struct Sanitizer {
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Plain text.
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and at least one intermediate character.
    EscapeRest,
    /// Within a control sequence.
    Csi,
    /// Within OSC, DCS, SOS, PM, APC or a title, up to its terminator.
    Text,
    /// After ESC within one of those: a backslash ends it.
    TextEscape,
}

const ESC: char = '\u{1b}';
const BEL: char = '\u{7}';
const CANCEL: char = '\u{18}';
const SUBSTITUTE: char = '\u{1a}';

/// What a terminal would do with this character other than show it.
pub fn is_forbidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || is_direction(c)
}

/// The whole of a text, without what a terminal would obey.
pub fn sanitize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    Sanitizer::default().push(text, &mut out);
    out
}

/// A text as one line: what [`sanitize`] leaves, with every run of white space as one space.
pub fn one_line(text: &str) -> String {
    let clean = sanitize(text);
    let mut line = String::with_capacity(clean.len());
    for word in clean.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

impl Sanitizer {
    /// Appends what may be shown of the next piece.
    pub fn push(&mut self, piece: &str, out: &mut String) {
        if self.state == State::Ground && piece.bytes().all(is_harmless) {
            out.push_str(piece);
            return;
        }
        for c in piece.chars() {
            self.step(c, out);
        }
    }

    fn step(&mut self, c: char, out: &mut String) {
        // A newline ends whatever was begun: an unterminated sequence costs one line, not the rest
        // of the text. What follows is plain text to us and to the terminal alike, because the
        // beginning of the sequence never reached it.
        if c == '\n' {
            self.state = State::Ground;
            out.push(c);
            return;
        }
        if matches!(c, CANCEL | SUBSTITUTE) {
            self.state = State::Ground;
            return;
        }
        self.state = match (self.state, c) {
            (State::Text, ESC) => State::TextEscape,
            (State::Text, BEL | '\u{9c}') | (State::TextEscape, '\\') => State::Ground,
            (State::Text, _) => State::Text,
            (_, ESC) => State::Escape,
            // ESC within a string that is not its end begins a new sequence, as in terminals.
            (State::Escape | State::TextEscape, _) => return self.after_escape(c, out),
            (State::EscapeRest, ' '..='/') => State::EscapeRest,
            (State::EscapeRest, '0'..='~') => State::Ground,
            (State::Csi, '@'..='~') => State::Ground,
            (State::Csi, ' '..='?') => State::Csi,
            (State::EscapeRest | State::Csi, '\0'..='\u{1f}' | '\u{7f}') => self.state,
            (State::Ground | State::EscapeRest | State::Csi, _) => return self.ground(c, out),
        };
    }

    fn after_escape(&mut self, c: char, out: &mut String) {
        self.state = match c {
            '[' => State::Csi,
            ']' | 'P' | 'X' | '^' | '_' | 'k' => State::Text,
            ' '..='/' => State::EscapeRest,
            '0'..='~' => State::Ground,
            '\0'..='\u{1f}' | '\u{7f}' => State::Escape,
            _ => return self.ground(c, out),
        };
    }

    fn ground(&mut self, c: char, out: &mut String) {
        self.state = match c {
            '\u{9b}' => State::Csi,
            '\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => State::Text,
            _ => {
                if !is_forbidden(c) {
                    out.push(c);
                }
                State::Ground
            }
        };
    }
}

/// Whether the byte cannot belong to anything forbidden. 0xC2 leads the C1 controls, 0xD8 the
/// Arabic letter mark and 0xE2 the other controls of direction.
fn is_harmless(byte: u8) -> bool {
    !matches!(byte, 0..=8 | 11..=31 | 0x7f | 0xc2 | 0xd8 | 0xe2)
}

pub(crate) fn is_direction(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

//! Shows everything that is in a text: what a person decides about must not hide anything.
//!
//! [`crate::sanitize`] protects a terminal and leaves out what it would obey; here nothing is left
//! out. What cannot be seen, or looks like something else, is written as an escape: `\x1b`,
//! `\u{202e}`. Long runs of nothing become words: `⟨3000 spaces⟩`, `⟨60 blank lines⟩`. These brackets
//! are ours: in a text they are escaped.

#[cfg(test)]
mod tests;

/// Columns of white space that are shown as they are; a longer run is counted.
const BLANK: usize = 24;

/// Blank lines that are shown as they are; a longer run is counted.
const BLANK_LINES: usize = 3;

/// The same hidden character so often is shown; a longer run is counted.
const SAME: usize = 3;

/// Marks that may stand on one letter. Some scripts need as many.
const MARKS: usize = 3;

/// Columns of a tab that begins a line.
const TAB: usize = 4;

/// A text in one line: a line end in it is `\n`, a tab `\t`.
pub fn line(text: &str) -> String {
    let mut out = Out::default();
    out.line(text, Tabs::Escaped);
    out.text
}

/// A text of several lines. One line end at the very end is not another line.
pub fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut n_blank = 0;
    let end_blank = |n_blank: &mut usize, lines: &mut Vec<String>| {
        match std::mem::take(n_blank) {
            n @ 0..=BLANK_LINES => lines.extend((0..n).map(|_| String::new())),
            n => lines.push(format!("⟨{n} blank lines⟩")),
        };
    };
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if line.chars().all(is_blank) {
            n_blank += 1;
            continue;
        }
        end_blank(&mut n_blank, &mut lines);
        let mut out = Out::default();
        out.line(line, Tabs::Indent);
        lines.push(out.text);
    }
    end_blank(&mut n_blank, &mut lines);
    lines
}

/// The same as one text.
pub fn text(text: &str) -> String {
    lines(text).join("\n")
}

/// A name in one line, in quotes where it could be taken for more than a name.
pub fn name(name: &str) -> String {
    let shown = line(name);
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+~@:,%=\\{}#".contains(c);
    match !shown.is_empty() && shown.chars().all(is_plain) {
        true => shown,
        false => format!("\"{}\"", shown.replace('"', "\\\"")),
    }
}

/// Whether nobody would see this character, or take it for what it is: a control, a filler, an
/// odd space, one that joins or directs others, one that nobody has defined.
pub fn is_hidden(c: char) -> bool {
    match c {
        ' '..='~' => false,
        '\0'..='\u{a0}' | '\u{ad}' => true,
        // What most texts consist of, to be quick about it.
        '\u{a1}'..='\u{2ff}' | '\u{410}'..='\u{44f}' | '\u{4e00}'..='\u{9fff}' => false,
        '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{ac00}'..='\u{d7a3}' => false,
        _ => is_filler(c) || !is_printable(c),
    }
}

/// Letters and signs that take room or none and show nothing, and selectors of how others look.
fn is_filler(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{fffc}'
            | '\u{fffd}'
            | '\u{16fe4}'
            | '\u{1d159}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

/// The standard library knows what is printable: no control, no odd space, neither private nor
/// undefined. A mark counts as printable behind a letter.
fn is_printable(c: char) -> bool {
    String::from_iter(['a', c]).escape_debug().nth(1) == Some(c)
}

/// Whether it stands on the character before it.
fn is_mark(c: char) -> bool {
    match c {
        '\0'..='\u{2ff}' => false,
        '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}' => true,
        _ => c.escape_debug().next() != Some(c),
    }
}

/// Signs that are drawn like others that mean something to a shell or in a path.
fn is_alike(c: char) -> bool {
    matches!(
        c,
        '\u{37e}'
            | '\u{1c0}'
            | '\u{2024}'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{2216}'
            | '\u{2223}'
            | '\u{2236}'
            | '\u{29f5}'
            | '\u{29f8}'
            | '\u{a789}'
            | '\u{fe68}'
    )
}

/// Letters of scripts that have some which look like Latin ones.
fn is_foreign(c: char) -> bool {
    matches!(
        c,
        '\u{251}'
            | '\u{261}'
            | '\u{269}'
            | '\u{370}'..='\u{58f}'
            | '\u{10a0}'..='\u{10ff}'
            | '\u{13a0}'..='\u{13ff}'
            | '\u{2c80}'..='\u{2cff}'
            | '\u{a4d0}'..='\u{a4ff}'
            | '\u{a640}'..='\u{a69f}'
            | '\u{ab70}'..='\u{abbf}'
            | '\u{ff01}'..='\u{ff5e}'
            | '\u{10280}'..='\u{104ff}'
            | '\u{1d400}'..='\u{1d7ff}'
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tabs {
    /// As `\t`.
    Escaped,
    /// As spaces where they begin a line.
    Indent,
}

/// What has been shown of a line.
#[derive(Debug, Default)]
struct Out {
    text: String,
    /// Marks that the last letter has; none where there is no letter to stand on.
    marks: Option<usize>,
}

impl Out {
    fn line(&mut self, line: &str, tabs: Tabs) {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let run = if is_blank(first) {
                rest.trim_start_matches(is_blank)
            } else if is_odd(first) {
                rest.trim_start_matches(first)
            } else {
                rest.trim_start_matches(|c| !is_blank(c) && !is_odd(c))
            };
            let (part, after) = rest.split_at(rest.len() - run.len());
            if is_blank(first) {
                self.blank(part, tabs == Tabs::Indent && rest.len() == line.len());
            } else if is_odd(first) {
                self.escaped(first, part.chars().count());
            } else {
                self.word(part);
            }
            rest = after;
        }
    }

    fn blank(&mut self, blank: &str, is_indent: bool) {
        self.marks = None;
        let n_tabs = blank.matches('\t').count();
        let n_ends = blank.matches('\n').count();
        let n_spaces = blank.len() - n_tabs - n_ends;
        if n_spaces + n_tabs * TAB > BLANK || n_ends > SAME {
            let count = |(n, what): (usize, &str)| match n {
                0 => None,
                1 => Some(format!("1 {what}")),
                n => Some(format!("{n} {what}s")),
            };
            let kinds = [(n_ends, "line end"), (n_spaces, "space"), (n_tabs, "tab")];
            let words: Vec<String> = kinds.into_iter().filter_map(count).collect();
            self.text.push_str(&format!("⟨{}⟩", words.join(" and ")));
            return;
        }
        for c in blank.chars() {
            match (c, is_indent) {
                ('\t', true) => self.text.push_str("    "),
                ('\t', false) => self.text.push_str("\\t"),
                ('\n', _) => self.text.push_str("\\n"),
                _ => self.text.push(' '),
            }
        }
    }

    /// Letters, signs and marks.
    fn word(&mut self, word: &str) {
        let ends = |c: char| !c.is_alphanumeric() && !is_mark(c);
        for run in word.split_inclusive(ends) {
            let is_latin = run.contains(|c: char| c.is_ascii_alphabetic());
            run.chars().for_each(|c| self.letter(c, is_latin));
        }
    }

    fn letter(&mut self, c: char, among_latin: bool) {
        let may_stand = match self.marks {
            Some(marks) => marks < MARKS,
            None => false,
        };
        match c {
            _ if is_mark(c) && may_stand => {
                self.marks = self.marks.map(|marks| marks + 1);
                self.text.push(c);
            }
            _ if is_mark(c) || is_foreign(c) && among_latin => self.escaped(c, 1),
            _ => {
                self.marks = Some(0);
                self.text.push(c);
            }
        }
    }

    fn escaped(&mut self, c: char, n: usize) {
        self.marks = None;
        let escape = match c {
            '\0'..='\u{7f}' => format!("\\x{:02x}", u32::from(c)),
            _ => format!("\\u{{{:x}}}", u32::from(c)),
        };
        match n {
            0..=SAME => self.text.push_str(&escape.repeat(n)),
            _ => self.text.push_str(&format!("{escape}⟨{n} times⟩")),
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// What is never shown as it is.
fn is_odd(c: char) -> bool {
    matches!(c, '⟨' | '⟩') || is_hidden(c) || is_alike(c)
}

/// Columns of one character, never too few: a row that is too long would be broken by the terminal,
/// where nothing marks what follows as a part of it.
pub(crate) fn columns(c: char) -> usize {
    match c {
        '…' | '⟨' | '⟩' => 1,
        '\0'..='\u{10ff}' => 1,
        _ => 2,
    }
}

/// A shown line in rows of so many columns: the first begins with `first`, the others with `more`.
pub(crate) fn wrap(line: &str, first: &str, more: &str, width: usize) -> Vec<String> {
    let room = |head: &str| width.saturating_sub(head.chars().count()).max(8);
    let mut rows = Vec::new();
    let (mut row, mut left) = (first.to_owned(), room(first));
    for c in line.chars() {
        let wide = columns(c);
        if wide > left {
            rows.push(std::mem::replace(&mut row, more.to_owned()));
            left = room(more);
        }
        row.push(c);
        left = left.saturating_sub(wide);
    }
    rows.push(row);
    rows
}

//! What can be said of one line: its marker, its fence, its escapes.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::read::Reading;

pub(super) const PROGRESS: &str = "PROGRESS";
pub(super) const QUESTION: &str = "QUESTION";
pub(super) const BLOCKED: &str = "BLOCKED";
pub(super) const FILES_MODIFIED: &str = "FILES_MODIFIED";
pub(super) const CODEX_COMPLETE: &str = "CODEX_COMPLETE";

/// Names of [`super::Marker::Other`] that have several lines.
const SEVERAL_LINES: [&str; 4] =
    ["TEST_RESULTS", "LINT_WARNINGS", "DEPENDENCY_NEEDED", "GIT_COMMIT_SUGGESTION"];

/// The longest name.
pub(super) const NAME_LIMIT: usize = 64;

/// White space to any reader: Python's `strip` also takes the separators, JavaScript's `trim` also
/// the byte order mark.
pub(super) fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\u{1c}'..='\u{1f}' | '\u{feff}')
}

pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

pub(super) fn is_blank(line: &str) -> bool {
    line.chars().all(is_space)
}

pub(super) fn has_several_lines(name: &str) -> bool {
    SEVERAL_LINES.contains(&name)
}

fn is_known(name: &str) -> bool {
    matches!(name, PROGRESS | QUESTION | BLOCKED | FILES_MODIFIED | CODEX_COMPLETE)
        || has_several_lines(name)
}

pub(super) fn is_name(name: &str) -> bool {
    (2..=NAME_LIMIT).contains(&name.len())
        && name.starts_with(|char: char| char.is_ascii_uppercase())
        && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

/// The name of `[NAME]` at the start of the text, and what comes after the bracket.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('[')?;
    // The name is ASCII, so a longer look for its end is in vain.
    let bytes = inner.as_bytes();
    let end = memchr(b']', bytes.get(..=NAME_LIMIT).unwrap_or(bytes))?;
    let (name, rest) = inner.split_at_checked(end)?;
    if is_name(name) { Some((name, rest.strip_prefix(']')?)) } else { None }
}

/// The name of the marker the text begins with, and what comes after the bracket.
fn marker(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = bracketed(text)?;
    let is_marker = match rest.chars().next() {
        None => true,
        Some(next) => is_space(next) || is_known(name) && next.is_alphanumeric(),
    };
    is_marker.then_some((name, rest))
}

/// The name of a marker's first line, and its content without escapes.
pub(super) fn head(line: &str, reading: Reading) -> Option<(&str, String)> {
    let start = match reading {
        Reading::Spec => line,
        Reading::Lenient => line.trim_start_matches(is_space),
    };
    let (name, rest) = marker(start)?;
    // Escapes are looked for in the whole line: what is glued depends on what is before it.
    let whole = unescape(line, Place::Head);
    let content = whole.get(line.len() - rest.len()..).unwrap_or_default();
    Some((name, trim(content).to_owned()))
}

/// The parts of a line at whose borders a known marker is glued to what is before it.
pub(super) fn unglued(line: &str) -> impl Iterator<Item = &str> {
    let mut cuts = glued(line)
        .filter(|site| site.slashes == 0)
        .filter(|site| line.get(site.at..).is_some_and(|text| marker(text).is_some()))
        .map(|site| site.at);
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let start = from?;
        from = cuts.next();
        line.get(start..from.unwrap_or(line.len()))
    })
}

/// It is quoted as Markdown does it.
pub(super) fn is_quoted(line: &str) -> bool {
    line.trim_start_matches(' ').starts_with('>')
}

/// An open code fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    pub(super) fn opened_by(line: &str) -> Option<Self> {
        let (fence, info) = Self::of(line)?;
        // A backtick in the info string makes it a span of code within a line.
        (fence.mark == '~' || !info.contains('`')).then_some(fence)
    }

    pub(super) fn is_closed_by(self, line: &str) -> bool {
        Self::of(line).is_some_and(|(fence, info)| {
            fence.mark == self.mark && fence.length >= self.length && is_blank(info)
        })
    }

    /// The fence that is open after a line.
    pub(super) fn after(open: Option<Self>, line: &str) -> Option<Self> {
        match open {
            Some(fence) if fence.is_closed_by(line) => None,
            Some(fence) => Some(fence),
            None => Self::opened_by(line),
        }
    }

    /// The line that closes it.
    pub(super) fn closing(self) -> String {
        std::iter::repeat_n(self.mark, self.length).collect()
    }

    fn of(line: &str) -> Option<(Self, &str)> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let mark = text.chars().next().filter(|char| matches!(char, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        (length >= 3).then_some((Self { mark, length }, info))
    }
}

/// Where a line stands: that decides what its beginning could be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The first line of a marker, or an option: its beginning is what it is.
    Head,
    /// Outside of markers.
    Text,
    /// The content of `[QUESTION]`.
    Question,
    /// The content of `[BLOCKED]`.
    Blocked,
    /// The content of another marker.
    Other,
}

/// A place in a line where backslashes count.
#[derive(Debug, Clone, Copy)]
struct Site {
    /// Where the backslashes end.
    at: usize,
    /// How many there are.
    slashes: usize,
    /// It is about a fence, not about a bracket or an option.
    is_fence: bool,
}

fn first_site(line: &str, place: Place) -> Option<Site> {
    let text = line.trim_start_matches(is_space);
    let after = text.trim_start_matches('\\');
    let is_fence = after.starts_with("```") || after.starts_with("~~~");
    let counts = match place {
        Place::Head => false,
        Place::Text => bracketed(after).is_some(),
        Place::Other => is_fence || bracketed(after).is_some(),
        Place::Blocked => is_fence || after.starts_with('['),
        Place::Question => is_fence || bracketed(after).is_some() || is_like_an_option(after),
    };
    let site = Site { at: line.len() - after.len(), slashes: text.len() - after.len(), is_fence };
    counts.then_some(site)
}

/// It would be taken for an option, or for the line before the options, by some parser.
fn is_like_an_option(text: &str) -> bool {
    let after = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let is_numbered = after.len() < text.len() && after.starts_with('.');
    is_numbered || text.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("options:"))
}

/// Known names that have something before them which is neither white space nor a quoting mark.
fn glued(line: &str) -> impl Iterator<Item = Site> {
    memchr_iter(b'[', line.as_bytes()).filter_map(|at| {
        let (before, text) = line.split_at_checked(at)?;
        bracketed(text).filter(|(name, _)| is_known(name))?;
        let start = before.trim_end_matches('\\');
        let last = start.chars().next_back()?;
        let is_glued = !is_space(last) && !matches!(last, '`' | '"' | '\'' | '(');
        let site = Site { at, slashes: before.len() - start.len(), is_fence: false };
        is_glued.then_some(site)
    })
}

/// What to do with the fences in a marker's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fences {
    /// Each is closed.
    Leave,
    /// One would stay open.
    Escape,
}

/// Appends a line and its end, with a backslash more at each place where they count.
pub(super) fn escape(line: &str, place: Place, fences: Fences, out: &mut String) {
    let first = first_site(line, place)
        .filter(|site| !site.is_fence || site.slashes > 0 || fences == Fences::Escape);
    push_escaped(line, first.into_iter().chain(glued(line)), out);
}

/// The same for a line over the limit, in which nothing is looked for behind its beginning.
pub(super) fn escape_long(line: &str, out: &mut String) {
    push_escaped(line, first_site(line, Place::Text).into_iter(), out);
}

fn push_escaped(line: &str, sites: impl Iterator<Item = Site>, out: &mut String) {
    let mut done = 0;
    for site in sites {
        out.push_str(line.get(done..site.at).unwrap_or_default());
        out.push('\\');
        done = site.at;
    }
    out.push_str(line.get(done..).unwrap_or_default());
    out.push('\n');
}

/// A line with a backslash less at each place where they count.
pub(super) fn unescape(line: &str, place: Place) -> Cow<'_, str> {
    without(line, first_site(line, place).into_iter().chain(glued(line)))
}

/// The same for the beginning of a line over the limit.
pub(super) fn unescape_long(line: &str) -> Cow<'_, str> {
    without(line, first_site(line, Place::Text).into_iter())
}

fn without(line: &str, sites: impl Iterator<Item = Site>) -> Cow<'_, str> {
    let mut plain = String::new();
    let mut done = 0;
    for site in sites.filter(|site| site.slashes > 0) {
        plain.push_str(line.get(done..site.at - 1).unwrap_or_default());
        done = site.at;
    }
    if done == 0 {
        return Cow::Borrowed(line);
    }
    plain.push_str(line.get(done..).unwrap_or_default());
    Cow::Owned(plain)
}

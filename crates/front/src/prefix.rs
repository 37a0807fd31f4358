//! How much of a text that grows was shown.

use std::hash::{DefaultHasher, Hasher};

/// The beginning of a text, as far as it was shown. An agent may give the whole later with other
/// words, or with a beginning that it had not shown; then nothing is to be added to it.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    pub(crate) bytes: usize,
    hash: DefaultHasher,
}

impl Prefix {
    /// More was shown.
    pub(crate) fn grow(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }

    /// What is left to show of the whole text.
    pub(crate) fn rest<'a>(&self, whole: &'a str) -> &'a str {
        let mut hash = DefaultHasher::new();
        let Some((shown, rest)) = whole.split_at_checked(self.bytes) else { return "" };
        hash.write(shown.as_bytes());
        if hash.finish() == self.hash.finish() { rest } else { "" }
    }
}

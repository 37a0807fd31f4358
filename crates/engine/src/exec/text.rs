//! What the model is told about a command.

use std::borrow::Cow;
use std::time::Duration;

use crate::exec::{Cause, Ran, State, Yielded};

/// Roughly how many bytes make one token.
const TOKEN: usize = 4;

/// A text that may have been shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// How many tokens the whole had, if it was shortened.
    pub original_tokens: Option<usize>,
}

/// Leaves out the middle of a text that has more than so many tokens, between characters.
pub fn truncate_middle(text: &str, max_tokens: usize) -> Truncated<'_> {
    let limit = max_tokens.saturating_mul(TOKEN);
    if text.len() <= limit {
        return Truncated { text: Cow::Borrowed(text), original_tokens: None };
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(limit / 2));
    let tail_len = (limit - limit / 2).min(rest.len());
    let (middle, tail) = rest.split_at(rest.ceil_char_boundary(rest.len() - tail_len));
    let left_out = middle.len().div_ceil(TOKEN);
    Truncated {
        original_tokens: Some(text.len().div_ceil(TOKEN)),
        text: Cow::Owned(format!("{head}…{left_out} tokens truncated…{tail}")),
    }
}

impl Ran {
    /// What the tools `shell` and `shell_command` answer.
    pub fn to_model(&self, max_tokens: usize) -> String {
        let output = match self.ended.cause {
            Cause::TimedOut { limit } => Cow::Owned(format!(
                "command timed out after {} milliseconds\n{}",
                limit.as_millis(),
                self.output.text
            )),
            _ => Cow::Borrowed(self.output.text.as_str()),
        };
        let shown = truncate_middle(&output, max_tokens);
        let mut lines = vec![
            format!("Exit code: {}", self.ended.code()),
            format!("Wall time: {} seconds", tenths(self.ended.elapsed)),
        ];
        if shown.original_tokens.is_some() {
            lines.push(format!("Total output lines: {}", output.lines().count()));
        }
        lines.push("Output:".into());
        lines.push(shown.text.into_owned());
        lines.join("\n")
    }
}

impl Yielded {
    /// What the tools `exec_command` and `write_stdin` answer.
    pub fn to_model(&self, max_tokens: usize) -> String {
        let mut lines = vec![format!("Wall time: {:.4} seconds", self.waited.as_secs_f64())];
        lines.push(match &self.state {
            State::Running(id) | State::Interrupted(id) => {
                format!("Process running with session ID {id}")
            }
            State::Ended(ran) => format!("Process exited with code {}", ran.ended.code()),
        });
        let shown = truncate_middle(&self.output.text, max_tokens);
        if let Some(tokens) = shown.original_tokens {
            lines.push(format!("Original token count: {tokens}"));
            lines.push("Output:".into());
            lines.push(format!("Total output lines: {}\n", self.output.text.lines().count()));
        } else {
            lines.push("Output:".into());
        }
        lines.push(shown.text.into_owned());
        lines.join("\n")
    }
}

/// Seconds with one digit after the point, without a zero there.
fn tenths(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

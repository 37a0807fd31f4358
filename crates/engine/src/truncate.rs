//! Less text for the model: how much a text weighs, how its middle is left out, and how the output
//! of a command is put into words.

mod head_tail;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::time::Duration;

pub use head_tail::HeadTail;

/// Bytes that are taken for one token.
const BYTES_PER_TOKEN: usize = 4;

/// How much of a text the model gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So many tokens, by estimate.
    Tokens(usize),
    /// So many bytes.
    Bytes(usize),
}

impl Default for Limit {
    fn default() -> Self {
        Self::Tokens(10_000)
    }
}

impl Limit {
    /// In bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Tokens(n) => n.saturating_mul(BYTES_PER_TOKEN),
            Self::Bytes(n) => n,
        }
    }
}

/// About how many tokens a text has.
pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

/// The text, or its beginning and its end with a word between them on how much is missing. Nothing
/// when the text is within the limit already.
///
/// The word is not counted: what comes out is longer than the limit by its length.
pub fn without_middle(text: &str, limit: Limit) -> Option<String> {
    let budget = limit.bytes();
    if text.len() <= budget {
        return None;
    }
    let head = floor(text, budget / 2);
    let tail = ceil(text, text.len() - (budget - budget / 2)).max(head);
    let (first, rest) = text.split_at_checked(head)?;
    let (left_out, last) = rest.split_at_checked(tail - head)?;
    let missing = match limit {
        Limit::Tokens(_) => format!("{} tokens", tokens(left_out)),
        Limit::Bytes(_) => format!("{} chars", left_out.chars().count()),
    };
    Some(format!("{first}…{missing} truncated…{last}"))
}

/// The text within the limit; where something is left out, it says so first.
pub fn truncated(text: &str, limit: Limit) -> String {
    match without_middle(text, limit) {
        None => text.to_owned(),
        Some(short) => format!(
            "Warning: truncated output (original token count: {})\nTotal output lines: {}\n\n{short}",
            tokens(text),
            text.lines().count(),
        ),
    }
}

/// The last place in a text that is not after `at` and not within a character.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first place in a text that is not before `at` and not within a character.
fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// How a command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It ended with this code.
    Exited(i32),
    /// It goes on, and is known by this number.
    Running(u64),
}

/// What the model is told of a call of `exec_command` or `write_stdin`.
pub fn exec_output(standing: Standing, wall: Duration, output: &str, limit: Limit) -> String {
    let mut told = format!("Wall time: {:.4} seconds\n", wall.as_secs_f64());
    // Writing to a `String` cannot fail.
    let written = match standing {
        Standing::Exited(code) => writeln!(told, "Process exited with code {code}"),
        Standing::Running(id) => writeln!(told, "Process running with session ID {id}"),
    };
    debug_assert!(written.is_ok());
    match without_middle(output, limit) {
        None => told + "Output:\n" + output,
        Some(short) => {
            format!("{told}Original token count: {}\nOutput:\n{short}", tokens(output))
        }
    }
}

/// What the model is told of a call of `shell`.
pub fn shell_output(exit_code: i32, wall: Duration, output: &str, limit: Limit) -> String {
    let told = format!("Exit code: {exit_code}\nWall time: {:.1} seconds\n", wall.as_secs_f64());
    match without_middle(output, limit) {
        None => told + "Output:\n" + output,
        Some(short) => {
            format!("{told}Total output lines: {}\nOutput:\n{short}", output.lines().count())
        }
    }
}

/// What the model is told of a call that the time was up for.
pub fn timed_out(after: Duration, wall: Duration, output: &str, limit: Limit) -> String {
    let said = format!("command timed out after {} milliseconds\n{output}", after.as_millis());
    shell_output(TIMED_OUT, wall, &said, limit)
}

/// The exit code of a command that the time was up for.
pub const TIMED_OUT: i32 = 124;

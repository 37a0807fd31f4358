//! Whether to try again, and when.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use super::{ModelError, Provider};

#[cfg(test)]
mod tests;

/// No provider is tried more often, whatever the configuration says.
const MOST: u32 = 100;

/// The longest pause of our own making.
const LONGEST: Duration = Duration::from_secs(60);

/// Nobody waits longer than this in the middle of a turn, though a server asks for it.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whether an error may go away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Not by itself.
    Never,
    /// Nothing of an answer came. [`Client::stream`](super::Client::stream) has sent the request
    /// again as often as it may; the caller may do so once more as with a stream that broke.
    /// With the pause the server asks for.
    Request(Option<Duration>),
    /// The whole request is to be sent again by the caller, who announces it.
    /// With the pause the server asks for.
    Stream(Option<Duration>),
}

/// Counts tries and says how long to wait before the next.
#[derive(Debug, Clone)]
pub struct Backoff {
    limit: u32,
    used: u32,
    pause: Duration,
}

/// Another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The how manieth it is, from 1.
    pub attempt: u32,
    /// How many there may be.
    pub limit: u32,
    /// How long to wait before it.
    pub delay: Duration,
}

impl Wait {
    /// The words clients know: `Reconnecting... 1/5`.
    pub fn announcement(&self) -> String {
        format!("Reconnecting... {}/{}", self.attempt, self.limit)
    }
}

impl Backoff {
    /// `limit` tries after the first, the first of them after `pause`.
    pub fn new(limit: u32, pause: Duration) -> Self {
        Self { limit: limit.min(MOST), used: 0, pause }
    }

    /// For answers that broke off: one for each request, however often it is sent.
    pub fn for_stream(provider: &Provider) -> Self {
        Self::new(provider.stream_max_retries, provider.retry_pause)
    }

    /// For requests that got no answer.
    pub(super) fn for_request(provider: &Provider) -> Self {
        Self::new(provider.request_max_retries, provider.retry_pause)
    }

    /// Another try after this error; none if it would be in vain or there were enough.
    pub fn next(&mut self, error: &ModelError) -> Option<Wait> {
        let asked = match error.retry() {
            Retry::Never => return None,
            Retry::Request(asked) | Retry::Stream(asked) => asked,
        };
        if self.used >= self.limit || asked.is_some_and(|asked| asked > PATIENCE) {
            return None;
        }
        let delay = asked.unwrap_or_else(|| self.delay(self.used, dice()));
        self.used += 1;
        Some(Wait { attempt: self.used, limit: self.limit, delay })
    }

    /// The pause before try `n` (from 0), with `luck` from 0 to 1: `pause · 2^n · 0.9…1.1`.
    fn delay(&self, n: u32, luck: f64) -> Duration {
        let factor = 2_f64.powi(n.min(MOST) as i32) * (0.9 + 0.2 * luck);
        Duration::try_from_secs_f64(self.pause.as_secs_f64() * factor)
            .unwrap_or(LONGEST)
            .min(LONGEST)
    }
}

/// A number from 0 to 1; each hasher of the standard library begins with a random state.
fn dice() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// The pause a server asks for in its headers.
pub(super) fn asked_in_headers(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    let number =
        |name: &str| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let milliseconds = number("retry-after-ms").map(|number| number / 1000.0);
    let seconds = milliseconds.or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The pause a server asks for in its message: `try again in 1.3s`, `28ms`, `6m0s`, `5 seconds`.
pub(super) fn asked_in_message(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    let (_, rest) = message.split_once("try again in ")?;
    let time: String =
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ' ')).collect();
    duration(&time)
}

/// A sum like `6m0s`, `1.3s` or `28 ms`; what follows it is left alone.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut sum = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let Ok(number) = number.parse::<f64>() else { break };
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "ms" | "millisecond" | "milliseconds" => number / 1000.0,
            "s" | "sec" | "secs" | "second" | "seconds" => number,
            "m" | "min" | "mins" | "minute" | "minutes" => number * 60.0,
            "h" | "hour" | "hours" => number * 3600.0,
            "d" | "day" | "days" => number * 86400.0,
            _ => break,
        };
        let part = Duration::try_from_secs_f64(seconds).ok()?;
        sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(part));
        rest = after.trim_start();
    }
    sum
}

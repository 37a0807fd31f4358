//! What a provider leaves us, by the headers of its answers.

use std::time::Duration;

use reqwest::header::HeaderMap;
use tieline_wire::raw::Raw;
use tieline_wire::sqeq;

use super::retry::duration;

/// How much may still be asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<Window>,
    /// Tokens.
    pub tokens: Option<Window>,
    /// The shorter window of a subscription.
    pub primary: Option<sqeq::RateWindow>,
    /// The longer one.
    pub secondary: Option<sqeq::RateWindow>,
    /// What is paid for.
    pub plan: Option<String>,
}

/// A limit of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// How many there are.
    pub limit: Option<u64>,
    /// How many are left.
    pub remaining: Option<u64>,
    /// When it is full again.
    pub reset: Option<Duration>,
}

impl RateLimits {
    /// Reads them; none if there are none.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let limits = Self {
            requests: window(headers, "requests"),
            tokens: window(headers, "tokens"),
            primary: share(headers, "primary"),
            secondary: share(headers, "secondary"),
            plan: text(headers, "x-codex-plan-type").map(str::to_owned),
        };
        (limits != Self::default()).then_some(limits)
    }

    /// The subscription's windows in the words of the queue protocol; none if there are none.
    pub fn to_sqeq(&self) -> Option<sqeq::RateLimits<'static>> {
        self.primary.as_ref().or(self.secondary.as_ref())?;
        Some(sqeq::RateLimits {
            primary: self.primary.clone(),
            secondary: self.secondary.clone(),
            credits: None,
            plan_type: self.plan.as_ref().and_then(|plan| Raw::of(plan).ok()),
        })
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
}

fn number<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    text(headers, name)?.parse().ok()
}

fn window(headers: &HeaderMap, what: &str) -> Option<Window> {
    let window = Window {
        limit: number(headers, &format!("x-ratelimit-limit-{what}")),
        remaining: number(headers, &format!("x-ratelimit-remaining-{what}")),
        reset: text(headers, &format!("x-ratelimit-reset-{what}")).and_then(duration),
    };
    (window != Window::default()).then_some(window)
}

fn share(headers: &HeaderMap, which: &str) -> Option<sqeq::RateWindow> {
    let name = |field: &str| format!("x-codex-{which}-{field}");
    let used: f64 = number(headers, &name("used-percent"))?;
    Some(sqeq::RateWindow {
        used_percent: if used.is_finite() { used } else { return None },
        window_minutes: number(headers, &name("window-minutes")),
        resets_at: number(headers, &name("reset-at")),
        resets_in_seconds: number(headers, &name("reset-after-seconds")),
    })
}

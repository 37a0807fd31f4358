//! Tokens as the protocol counts them: since the session began, and of the last answer.

use tieline_event::{RateLimit, Usage};
use tieline_wire::sqeq::{RateLimits, RateWindow, TokenCount, TokenInfo, TokenUsage};

#[cfg(test)]
mod tests;

/// What was counted so far.
#[derive(Debug, Default)]
pub(super) struct Count {
    /// Of counts that began anew since.
    before: TokenUsage,
    /// As the agent told last.
    told: TokenUsage,
    last: TokenUsage,
    window: Option<u64>,
    limits: Option<RateLimits<'static>>,
    /// Something was counted in the running turn.
    in_turn: bool,
}

impl Count {
    /// A count that says of limits that there are none, as the old program did.
    pub(super) fn with_limits() -> Self {
        Self { limits: Some(RateLimits::default()), ..Self::default() }
    }

    /// How many tokens the model can hold.
    pub(super) fn window(&self) -> Option<u64> {
        self.window
    }

    pub(super) fn turn_begins(&mut self) {
        self.in_turn = false;
    }

    /// The agent told a count that grows: since its session began, or its turn, as agents do.
    pub(super) fn told(&mut self, usage: &Usage) -> TokenCount<'static> {
        self.in_turn = true;
        let told = tokens(usage);
        let has_shrunk = told.total_tokens < self.told.total_tokens;
        let since = match has_shrunk {
            true => TokenUsage::default(),
            false => self.told,
        };
        if has_shrunk {
            self.before = sum(self.before, self.told);
        }
        self.last = less(told, since);
        self.told = told;
        self.window = usage.context_window.or(self.window);
        self.count()
    }

    /// What an answer used, where that is told for itself.
    pub(super) fn answered(&mut self, usage: &Usage) {
        self.last = tokens(usage);
    }

    /// The turn is over and used this, which was not told before.
    pub(super) fn turn_ends(&mut self, usage: &Usage) -> Option<TokenCount<'static>> {
        if self.in_turn {
            return None;
        }
        self.before = sum(self.before, self.told);
        self.told = tokens(usage);
        self.last = self.told;
        self.window = usage.context_window.or(self.window);
        Some(self.count())
    }

    /// What the provider leaves.
    pub(super) fn limited(&mut self, limit: &RateLimit) -> TokenCount<'static> {
        let window = RateWindow {
            used_percent: limit.used.unwrap_or(0.0) * 100.0,
            resets_at: limit.resets_at,
            ..RateWindow::default()
        };
        self.limits = Some(RateLimits { primary: Some(window), ..RateLimits::default() });
        self.count()
    }

    fn count(&self) -> TokenCount<'static> {
        let total = sum(self.before, self.told);
        let info = TokenInfo {
            total_token_usage: total,
            last_token_usage: self.last,
            model_context_window: self.window,
        };
        let is_counted = total != TokenUsage::default() || self.window.is_some();
        TokenCount { info: is_counted.then_some(info), rate_limits: self.limits.clone() }
    }
}

/// In the protocol what is read from the cache is part of what is read.
fn tokens(usage: &Usage) -> TokenUsage {
    let input = usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens;
    TokenUsage {
        input_tokens: input,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_output_tokens: usage.reasoning_tokens,
        total_tokens: input + usage.output_tokens,
    }
}

fn each(one: TokenUsage, other: TokenUsage, join: fn(u64, u64) -> u64) -> TokenUsage {
    TokenUsage {
        input_tokens: join(one.input_tokens, other.input_tokens),
        cached_input_tokens: join(one.cached_input_tokens, other.cached_input_tokens),
        output_tokens: join(one.output_tokens, other.output_tokens),
        reasoning_output_tokens: join(one.reasoning_output_tokens, other.reasoning_output_tokens),
        total_tokens: join(one.total_tokens, other.total_tokens),
    }
}

fn sum(one: TokenUsage, other: TokenUsage) -> TokenUsage {
    each(one, other, u64::saturating_add)
}

fn less(one: TokenUsage, other: TokenUsage) -> TokenUsage {
    each(one, other, u64::saturating_sub)
}

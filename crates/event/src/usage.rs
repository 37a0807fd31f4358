//! What a turn cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens and money.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Tokens read afresh.
    pub input_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cached_input_tokens: u64,
    /// Tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Tokens of reasoning.
    pub reasoning_tokens: u64,
    /// How many tokens the model held at the last count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// How many tokens the model can hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Price in US dollars, as the agent reckons it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// What was added since an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let added = |now: u64, then: u64| now.saturating_sub(then);
        Self {
            input_tokens: added(self.input_tokens, earlier.input_tokens),
            cached_input_tokens: added(self.cached_input_tokens, earlier.cached_input_tokens),
            cache_write_tokens: added(self.cache_write_tokens, earlier.cache_write_tokens),
            output_tokens: added(self.output_tokens, earlier.output_tokens),
            reasoning_tokens: added(self.reasoning_tokens, earlier.reasoning_tokens),
            context_used: self.context_used,
            context_window: self.context_window,
            cost_usd: self.cost_usd.map(|now| (now - earlier.cost_usd.unwrap_or(0.0)).max(0.0)),
        }
    }
}

/// The provider's word on how much is left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateLimit {
    /// For example `allowed`, `allowed_warning`, `rejected`.
    pub status: String,
    /// Which limit it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How much of it is used, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<f64>,
    /// When it starts anew, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
}

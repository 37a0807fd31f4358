//! How a turn fails: one typed shape for everything that can go wrong.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a turn failed, with what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What kind of failure it is.
    pub code: FailureCode,
    /// One sentence for a person.
    pub message: String,
    /// What the person can do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// HTTP status of the provider's answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The agent's own words, its last lines on stderr for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Kinds of failure. The set may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureCode {
    /// The agent's program is not installed.
    AgentNotFound,
    /// The agent's program could not be started, or ended before its first message.
    AgentCannotStart,
    /// The agent ended while the turn ran.
    AgentExited,
    /// The agent was killed by a signal while the turn ran.
    AgentKilled,
    /// The agent did not answer in time.
    Timeout,
    /// The agent broke its own protocol.
    Protocol,
    /// Nobody is logged in, or the key is wrong.
    NotLoggedIn,
    /// The provider refuses for now: too many requests or no quota.
    RateLimited,
    /// The provider is overloaded or broken.
    ProviderUnavailable,
    /// The provider rejects the request itself.
    BadRequest,
    /// The connection to the provider broke.
    StreamLost,
    /// The agent's limit of steps is reached.
    MaxTurns,
    /// The model's limit of output is reached.
    MaxTokens,
    /// A set budget is spent.
    Budget,
    /// The native session to be resumed does not exist.
    SessionUnknown,
    /// A request needed an answer and nobody could give one.
    AnswerNeeded,
    /// The store could not keep an event.
    Store,
    /// The agent says it failed and not why.
    Agent,
}

impl Failure {
    /// A failure with a message and nothing else.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, http_status: None, detail: None }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the agent's own words, unless they are empty.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        if !detail.trim().is_empty() {
            self.detail = Some(detail);
        }
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

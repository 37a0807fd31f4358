//! What can go wrong between us and a model.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use tieline_wire::responses::Usage;

use super::{KeyTrouble, Retry};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// There is no key to send.
    #[error("no key: {0}")]
    NoKey(#[from] KeyTrouble),
    /// The provider's settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// The key is not accepted.
    #[error("the key is not accepted: {0}")]
    Unauthorized(Words),
    /// The key is accepted and this is not allowed.
    #[error("not allowed: {0}")]
    Forbidden(Words),
    /// There is no such model, or no such API.
    #[error("not found: {words}")]
    NotFound {
        /// What is not there.
        missing: Missing,
        /// What the provider says.
        words: Words,
    },
    /// The request itself is refused.
    #[error("{0}")]
    BadRequest(Words),
    /// The conversation is longer than the model can read.
    #[error("the conversation is longer than the model's context window: {0}")]
    ContextWindowExceeded(Words),
    /// What was paid for is used up.
    #[error("usage limit reached: {words}")]
    UsageLimit {
        /// What the provider says.
        words: Words,
        /// When it starts anew.
        resets_in: Option<Duration>,
    },
    /// We ask too often.
    #[error("too many requests: {words}")]
    RateLimited {
        /// What the provider says.
        words: Words,
        /// How long to wait, where it says so.
        retry_after: Option<Duration>,
    },
    /// Too many others ask.
    #[error("the model is overloaded: {words}")]
    Overloaded {
        /// What the provider says.
        words: Words,
        /// How long to wait, where it says so.
        retry_after: Option<Duration>,
    },
    /// The provider is broken.
    #[error("the provider failed: {words}")]
    Server {
        /// What it says.
        words: Words,
        /// How long to wait, where it says so.
        retry_after: Option<Duration>,
    },
    /// The provider was not reached.
    #[error("no connection: {detail}")]
    Connect {
        /// Why.
        why: Unreachable,
        /// The system's words.
        detail: String,
    },
    /// The answer broke off.
    #[error("stream disconnected before completion: {0}")]
    Lost(String),
    /// The provider fell silent.
    #[error("stream disconnected before completion: nothing came for {} s", .0.as_secs_f64())]
    Idle(Duration),
    /// The model was cut short.
    #[error("incomplete answer, reason: {reason}")]
    Incomplete {
        /// `max_output_tokens` or `content_filter`.
        reason: String,
        /// What it cost.
        usage: Option<Usage>,
    },
    /// What came is no Responses API.
    #[error("unexpected answer: {0}")]
    Protocol(String),
}

/// What a provider says about an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// Its message, without our key in it.
    pub message: String,
    /// The HTTP status, unless it came in a stream.
    pub status: Option<u16>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message.as_str(), self.status) {
            ("", Some(status)) => write!(f, "status {status}"),
            ("", None) => f.write_str("no reason given"),
            (message, Some(status)) => write!(f, "{message} (status {status})"),
            (message, None) => f.write_str(message),
        }
    }
}

/// What a provider does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The model.
    Model,
    /// The API, or everything at this URL.
    Endpoint,
}

/// Why a provider was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// Its name has no address.
    Name,
    /// Nobody listens there.
    Refused,
    /// There is no secure connection: another protocol, or a certificate nobody vouches for.
    Tls,
    /// It takes too long.
    Timeout,
    /// The connection was closed before an answer began.
    Closed,
    /// Something else.
    Other,
}

impl ModelError {
    /// Whether it may go away.
    pub fn retry(&self) -> Retry {
        match self {
            Self::RateLimited { retry_after, .. } => Retry::Stream(*retry_after),
            Self::Overloaded { words, retry_after } | Self::Server { words, retry_after } => {
                match words.status {
                    Some(_) => Retry::Request(*retry_after),
                    None => Retry::Stream(*retry_after),
                }
            }
            // Neither certificates nor protocols change while we wait.
            Self::Connect { why: Unreachable::Tls, .. } => Retry::Never,
            Self::Connect { .. } => Retry::Request(None),
            Self::Lost(_) | Self::Idle(_) => Retry::Stream(None),
            Self::NoKey(_)
            | Self::Settings(_)
            | Self::Unauthorized(_)
            | Self::Forbidden(_)
            | Self::NotFound { .. }
            | Self::BadRequest(_)
            | Self::ContextWindowExceeded(_)
            | Self::UsageLimit { .. }
            | Self::Incomplete { .. }
            | Self::Protocol(_) => Retry::Never,
        }
    }

    /// What the provider says, where it said something.
    pub fn words(&self) -> Option<&Words> {
        match self {
            Self::Unauthorized(words)
            | Self::Forbidden(words)
            | Self::BadRequest(words)
            | Self::ContextWindowExceeded(words)
            | Self::NotFound { words, .. }
            | Self::UsageLimit { words, .. }
            | Self::RateLimited { words, .. }
            | Self::Overloaded { words, .. }
            | Self::Server { words, .. } => Some(words),
            _ => None,
        }
    }

    /// A request that was not answered.
    pub(super) fn unsent(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let why = if error.is_dns() {
            Unreachable::Name
        } else if is_tls(&error) {
            Unreachable::Tls
        } else if error.is_timeout() {
            Unreachable::Timeout
        } else if kind(&error) == Some(io::ErrorKind::ConnectionRefused) {
            Unreachable::Refused
        } else if error.is_connect() {
            Unreachable::Other
        } else {
            Unreachable::Closed
        };
        Self::Connect { why, detail: innermost(&error) }
    }

    /// An answer that broke off.
    pub(super) fn broken(error: reqwest::Error) -> Self {
        Self::Lost(innermost(&error.without_url()))
    }
}

/// The last of the causes says most: "connection refused", not "error sending request".
pub(super) fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), |cause| cause.to_string())
}

fn kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let errors = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.last().map(io::Error::kind)
}

fn is_tls(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| cause.is::<rustls::Error>())
}

/// The causes of an error. An I/O error does not name the error within it, only that one's cause.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| {
        let cause: &(dyn Error + 'static) = *cause;
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => cause.source(),
        }
    })
}

//! What a provider says went wrong, in the body of a refusal or in an event.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::raw::Raw;
use crate::text::Str;

use super::or_default;

/// An error in the provider's words.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct ApiError<'a> {
    /// One sentence.
    #[serde(deserialize_with = "or_default")]
    pub message: Str<'a>,
    /// A word for it; some providers write a number.
    pub code: Raw<'a>,
    /// A word for its kind.
    #[serde(rename = "type")]
    pub kind: Raw<'a>,
    /// What is paid for.
    pub plan_type: Raw<'a>,
    /// When a limit starts anew, in seconds since 1970.
    pub resets_at: Option<i64>,
    /// The same from now on.
    pub resets_in_seconds: Option<u64>,
}

/// What an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The conversation is longer than the model can read.
    ContextWindow,
    /// What was paid for is used up, or this model is not part of it.
    Quota,
    /// The provider does not take this prompt.
    InvalidPrompt,
    /// Too many others are asking.
    Overloaded,
    /// We are asking too often.
    RateLimit,
    /// There is no such model, or not for this account.
    Model,
    /// The key is not accepted.
    Key,
    /// Something else.
    Other,
}

impl<'a> ApiError<'a> {
    /// Reads the body of a refusal: `{"error": {…}}`, `{"error": "…"}`, the fields alone, or
    /// FastAPI's `{"detail": "…"}`. Whatever else it is has no words of the provider.
    pub fn read(body: &'a [u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(bound(deserialize = "'de: 'a"))]
        struct Body<'a> {
            #[serde(default)]
            error: Raw<'a>,
            #[serde(default)]
            detail: Raw<'a>,
        }
        let body: &'a RawValue = serde_json::from_slice(body).ok()?;
        // Some wrap it in a list.
        let body = match serde_json::from_str::<Vec<&'a RawValue>>(body.get()) {
            Ok(list) => *list.first()?,
            Err(_) => body,
        };
        let outer: Body<'a> = serde_json::from_str(body.get()).ok()?;
        let inner = |raw: Raw<'a>| -> Option<Self> {
            let Raw::Borrowed(raw) = raw else { return None };
            match serde_json::from_str::<Str<'a>>(raw.get()) {
                Ok(message) => Some(Self { message, ..Self::default() }),
                Err(_) => serde_json::from_str(raw.get()).ok(),
            }
        };
        let flat = || serde_json::from_str::<Self>(body.get()).ok();
        inner(outer.error)
            .or_else(|| inner(outer.detail))
            .or_else(flat)
            .filter(|error| !error.message.is_empty() || !error.word().is_empty())
    }

    /// The code, else the kind, where it is a word.
    pub fn word(&self) -> String {
        let word = |raw: &Raw<'_>| raw.read::<String>().filter(|word| !word.is_empty());
        word(&self.code).or_else(|| word(&self.kind)).unwrap_or_default()
    }

    /// What it is about, by its code and kind, and by its message where these say nothing.
    pub fn about(&self) -> ErrorKind {
        let word = |raw: &Raw<'_>| raw.read::<Str<'_>>().map(String::from).unwrap_or_default();
        let by_code = by_word(&word(&self.code));
        match by_code.or_else(|| by_word(&word(&self.kind))) {
            Some(kind) => kind,
            None => by_message(&self.message),
        }
    }
}

fn by_word(word: &str) -> Option<ErrorKind> {
    Some(match word {
        "context_length_exceeded" | "exceed_context_size_error" => ErrorKind::ContextWindow,
        "insufficient_quota"
        | "usage_not_included"
        | "usage_limit_reached"
        | "usage_limit_exceeded"
        | "billing_hard_limit_reached" => ErrorKind::Quota,
        "invalid_prompt" => ErrorKind::InvalidPrompt,
        "server_is_overloaded" | "slow_down" | "overloaded_error" => ErrorKind::Overloaded,
        "rate_limit_exceeded" | "rate_limit_error" => ErrorKind::RateLimit,
        "model_not_found" | "DeploymentNotFound" => ErrorKind::Model,
        "invalid_api_key" | "API_KEY_INVALID" => ErrorKind::Key,
        _ => return None,
    })
}

/// Several servers have no codes at all.
fn by_message(message: &str) -> ErrorKind {
    let message = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&["context window", "context length", "context size"]) {
        ErrorKind::ContextWindow
    } else if has(&["model", "deployment"])
        && has(&["not found", "not exist", "unknown model", "no such model", "invalid model"])
    {
        ErrorKind::Model
    } else if has(&["api key not valid", "invalid api key", "incorrect api key"]) {
        ErrorKind::Key
    } else {
        ErrorKind::Other
    }
}

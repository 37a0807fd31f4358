//! From what a provider says to what it means.

use std::time::Duration;

use reqwest::header::HeaderMap;
use tieline_wire::responses::{ApiError, ErrorKind};

use super::error::{Missing, ModelError, Words};
use super::retry::{asked_in_headers, asked_in_message};
use super::secret::Secret;

/// A message longer than this says no more.
const MESSAGE: usize = 2000;

/// What must not be repeated.
#[derive(Debug, Clone, Default)]
pub(super) struct Scrub(Vec<Secret>);

impl Scrub {
    pub(super) fn add(&mut self, secret: Secret) {
        self.0.push(secret);
    }

    pub(super) fn text(&self, text: &str) -> String {
        let text = text.chars().take(MESSAGE).collect();
        self.0.iter().fold(text, |text, secret| secret.scrub(text))
    }
}

/// An answer with a status that is not 200.
pub(super) fn by_status(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    scrub: &Scrub,
) -> ModelError {
    let error = ApiError::read(body);
    let about = error.as_ref().map_or(ErrorKind::Other, ApiError::about);
    let said = match &error {
        Some(error) if error.message.is_empty() => error.word(),
        Some(error) => error.message.to_string(),
        None => plain(body),
    };
    let words =
        Words { message: scrub.text(&said), status: Some(status), request_id: request_id(headers) };
    let retry_after = asked_in_headers(headers).or_else(|| asked_in_message(&words.message));
    match (status, about) {
        (401, _) | (400, ErrorKind::Key) => ModelError::Unauthorized(words),
        (402, _) | (400 | 403 | 429, ErrorKind::Quota) => {
            ModelError::UsageLimit { words, resets_in: resets_in(error.as_ref()) }
        }
        (403, _) => ModelError::Forbidden(words),
        (400 | 404 | 422, ErrorKind::Model) => {
            ModelError::NotFound { missing: Missing::Model, words }
        }
        (404 | 405 | 410 | 501, _) => ModelError::NotFound { missing: Missing::Endpoint, words },
        (400 | 413 | 422, ErrorKind::ContextWindow) => ModelError::ContextWindowExceeded(words),
        (429, ErrorKind::Overloaded) => ModelError::Overloaded { words, retry_after },
        (429, _) => ModelError::RateLimited { words, retry_after },
        (503 | 529, _) | (500.., ErrorKind::Overloaded) => {
            ModelError::Overloaded { words, retry_after }
        }
        (408 | 500.., _) => ModelError::Server { words, retry_after },
        (300..400, _) => {
            let place = headers.get("location").and_then(|place| place.to_str().ok());
            let place = scrub.text(place.unwrap_or("another place"));
            ModelError::Protocol(format!("status {status}, which points to {place}"))
        }
        (400..500, _) => ModelError::BadRequest(words),
        _ => ModelError::Protocol(format!("status {status}")),
    }
}

/// An error within a stream.
pub(super) fn by_event(error: Option<&ApiError<'_>>, scrub: &Scrub) -> ModelError {
    let said = match error {
        Some(error) if error.message.is_empty() => error.word(),
        Some(error) => error.message.to_string(),
        None => String::new(),
    };
    let words = Words { message: scrub.text(&said), ..Words::default() };
    let retry_after = asked_in_message(&words.message);
    match error.map_or(ErrorKind::Other, ApiError::about) {
        ErrorKind::ContextWindow => ModelError::ContextWindowExceeded(words),
        ErrorKind::Quota => ModelError::UsageLimit { words, resets_in: resets_in(error) },
        ErrorKind::InvalidPrompt => ModelError::BadRequest(words),
        ErrorKind::Overloaded => ModelError::Overloaded { words, retry_after },
        ErrorKind::RateLimit => ModelError::RateLimited { words, retry_after },
        ErrorKind::Model => ModelError::NotFound { missing: Missing::Model, words },
        ErrorKind::Key => ModelError::Unauthorized(words),
        ErrorKind::Other => ModelError::Server { words, retry_after },
    }
}

pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id").or_else(|| headers.get("apim-request-id"))?;
    id.to_str().ok().map(|id| id.chars().take(200).collect())
}

fn resets_in(error: Option<&ApiError<'_>>) -> Option<Duration> {
    error?.resets_in_seconds.map(Duration::from_secs)
}

/// A body without the API's form: its first line, if it is for people.
fn plain(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.chars().next() {
        Some('<') => "a page of HTML".to_owned(),
        Some('{' | '[') | None => String::new(),
        Some(_) => line.chars().take(200).collect(),
    }
}

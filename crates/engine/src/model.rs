//! The model behind the engine: who provides it, how it is asked, what comes back.
//!
//! # How it works
//!
//! A [`Client`] belongs to one [`Provider`] and serves any number of sessions.
//! [`Client::stream`] sends a request, again and again while nothing of an answer came
//! ([`Retry::Request`]), and gives a [`Stream`] of events that borrow from its buffer. When a
//! stream breaks, the whole request is to be sent once more; that is the caller's to do, who has
//! to announce it: a [`Backoff`] says whether, when and in which words.
//!
//! # Invariants
//!
//! * A key is in no log line, no error and no `Debug`.
//! * Every wait has an end: for a connection, for the head of an answer, for each piece of it.
//! * A stream ends with `response.completed` or with a [`ModelError`].

mod client;
mod error;
mod explain;
mod limits;
mod provider;
mod refusal;
mod retry;
mod secret;
mod stream;

#[cfg(test)]
mod tests;

pub use client::{Client, Presence, Question};
pub use error::{Missing, ModelError, Unreachable, Words};
pub use limits::{RateLimits, Window};
pub use provider::Provider;
pub use retry::{Backoff, Retry, Wait};
pub use secret::{Key, KeyTrouble, Secret};
pub use stream::Stream;

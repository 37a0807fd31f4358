//! One actor per conversation: order, requests, replay, cursors, resume.
//!
//! # How it works
//!
//! [`Hub::conversation`] takes the lease of a conversation and starts its actor: one task with a
//! bounded inbox that owns the agent's process, the driver and the way to the store. Whatever the
//! agent writes becomes events; they are committed, then shown. A [`Subscription`] is a cursor: it
//! reads from the store until it has caught up, then from a short tail of what was shown last, and
//! goes back to the store when it falls behind. There is no broadcast channel, so a slow reader
//! slows nobody and misses nothing.
//!
//! [`Hub::run_turn`], [`Hub::start_new_session`] and [`Hub::close_all`] are the whole library
//! interface for a program that only wants answers:
//!
//! ```no_run
//! use tieline_event::{ConversationKey, Mode};
//! use tieline_hub::{Hub, OnRequest, OpenOptions, TurnContext, TurnError};
//!
//! # async fn talk(hub: Hub) -> Result<(), Box<dyn std::error::Error>> {
//! let key = ConversationKey::new("release-notes")?;
//! let context = TurnContext {
//!     open: OpenOptions {
//!         agent: Some("claude".to_owned()),
//!         workspace: Some("/home/me/project".into()),
//!         mode: Some(Mode::Plan),
//!         ..OpenOptions::default()
//!     },
//!     on_request: OnRequest::Deny,
//!     timeout: Some(std::time::Duration::from_secs(600)),
//! };
//!
//! // One turn; the conversation is opened, or resumed in a new process, under its key.
//! match hub.run_turn(&key, "What changed since the last tag?", context).await {
//!     Ok(outcome) => assert!(!outcome.text.is_empty()),
//!     Err(TurnError::Failed(failure)) => return Err(failure.to_string().into()),
//!     Err(error) => return Err(error.into()),
//! }
//! // The next turn begins a new native session; the history stays.
//! hub.start_new_session(&key).await?;
//! // Every agent ends, with everything it started.
//! hub.close_all().await;
//! # Ok(())
//! # }
//! ```
//!
//! A hub stands on a store and a [`Registry`] that knows the agents by name ([`Installed`] finds
//! them in `PATH`); the example `three_calls` talks with two of them.
//!
//! # Invariants
//!
//! * An event that was shown is on disk.
//! * A turn ends with exactly one `turn.completed`, whatever happens to the agent or to us; what a
//!   crash of ours left open is closed when the conversation is opened again.
//! * Only the actor touches the process; dropping it kills the whole tree.
//! * No lock is held across an `.await`.
#![warn(missing_docs)]

mod actor;
mod chores;
mod conversation;
mod error;
mod hub;
mod inside;
mod installed;
mod limits;
mod live;
mod owners;
mod pipeline;
mod port;
mod recover;
mod shared;
mod subscription;
mod tail;
mod turn;

pub use conversation::{Answering, Conversation, Note, Notification, OpenOptions};
pub use error::Error;
pub use hub::{Hub, Listed, Registry};
pub use installed::Installed;
pub use limits::Limits;
pub use subscription::Subscription;
pub use tail::{Entry, Shown};
pub use tieline_store::{LetterId, TypedLine};
pub use turn::{AskHandler, OnRequest, TurnContext, TurnError, TurnOutcome};

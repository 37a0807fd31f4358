//! The store of tieline: conversations, events, raw frames, requests and leases. The only place
//! that speaks SQL.
//!
//! # How it works
//!
//! One SQLite database in a private directory. One thread owns the connection that writes and
//! commits in groups: a [`Batch`] is queued with [`Store::append`] and its [`Commit`] resolves
//! after the `fsync`. Readers have connections of their own and never hold up the writer. Reading
//! and everything but `append` blocks; async callers wrap it in `spawn_blocking`.
//!
//! Who writes to a conversation holds its [`Lease`]. A lease names an owner, and an owner is a
//! locked file that the kernel unlocks when the process ends, however it ends. A dead owner's
//! lease is taken over with the next epoch; a living one's is refused with its name.
//!
//! # Invariants
//!
//! * What was acknowledged is on disk; a batch is written whole or not at all.
//! * Events and frames of a conversation are numbered without a gap.
//! * Every owned write proves its lease in the same transaction.
//! * Frames and events come back byte for byte.
//! * Everything is readable by the user alone, whatever the umask.
//! * A damaged or newer database is refused, never overwritten.
#![warn(missing_docs)]

mod batch;
mod check;
mod commit;
mod conversation;
mod error;
mod export;
mod files;
mod frame;
mod gate;
mod group;
mod journal;
mod lease;
mod mail;
mod number;
mod owner;
mod packer;
mod private;
mod prune;
mod read;
mod remove;
mod schema;
mod segment;
mod store;
mod upkeep;
mod wait;
mod writer;

use std::time::Duration;

pub use batch::{Batch, ConversationChange, NewEvent, RequestChange};
pub use check::Stats;
pub use commit::Commit;
pub use conversation::{Conversation, Filter, Fork, ForkedAt, NewConversation};
pub use error::{Error, Rejected};
pub use files::default_dir;
pub use frame::{Direction, FrameBuf, FrameRef, Frames};
pub use gate::{Quiet, quiet};
pub use journal::{JournalEntry, Scribe, TypedLine};
pub use lease::Lease;
pub use mail::LetterId;
pub use owner::Owner;
pub use private::close_to_others;
pub use prune::{GcOptions, GcReport};
pub use read::{RequestState, StoredEvent, StoredRequest};
pub use remove::Deleted;
pub use store::Store;
pub use upkeep::Capped;
pub use wait::Holder;

/// Limits of a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many bytes of batches may be queued before `append` waits.
    pub queue_bytes: usize,
    /// Frames alone wait no longer than this for company.
    pub group_wait: Duration,
    /// Events that nobody waits for wait no longer than this.
    pub event_wait: Duration,
    /// What waits for company waits for no more than this.
    pub group_bytes: usize,
    /// No more than this is taken from the queue for one commit, unless one batch is larger.
    pub group_max_bytes: usize,
    /// No more events than this are taken from the queue for one commit.
    pub group_max_events: usize,
    /// Upkeep of frames waits no longer than this for something to go along with.
    pub upkeep_wait: Duration,
    /// Frames are compressed in segments of about this size.
    pub segment_bytes: usize,
    /// How long to wait for another process that is writing.
    pub busy_timeout: Duration,
    /// The page cache of the connection that writes, in KiB; one that reads has a quarter of it.
    pub cache_kib: u32,
    /// The database grows no larger than this many pages; for tests of a full disk.
    pub max_pages: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue_bytes: 512 << 10,
            group_wait: Duration::from_millis(5),
            event_wait: Duration::from_millis(1),
            group_bytes: 64 << 10,
            group_max_bytes: 256 << 10,
            group_max_events: 512,
            upkeep_wait: Duration::from_secs(1),
            segment_bytes: 256 << 10,
            busy_timeout: Duration::from_secs(20),
            cache_kib: 1024,
            max_pages: None,
        }
    }
}

//! What other people's programs make of what this crate writes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod markers;

//! Real processes, started and ended through the crate, checked from outside through `/proc`.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod jobs;
mod orphans;
mod probe;
mod start;
mod streams;

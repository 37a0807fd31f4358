//! The engine's parts with real processes.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod exec;

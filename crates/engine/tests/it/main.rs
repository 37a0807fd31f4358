//! The engine's parts with real processes and connections around them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod mcp;

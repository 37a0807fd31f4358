//! The engine and its parts with real processes and connections around them.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod commands;
mod cuts;
mod exec;
mod faults;
mod interrupts;
mod many;
mod mcp;
mod provider;
mod stage;
mod turns;

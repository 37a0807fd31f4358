//! Conversations with an agent that misbehaves on command.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod acp;
mod bench;
mod ends;
mod faults;
mod listens;
mod orphans;
mod owners;
#[cfg(feature = "real-agents")]
mod real;
mod recordings;
mod shared;
mod turns;

//! Driver cores against recorded traffic of the real agents.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod acp;
mod claude;
mod clock;
mod codex_app;
mod codex_exec;
mod codex_proto;
mod recording;
mod show;
mod unread;

//! The real binary, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod acp;
mod apply_patch;
mod bad_frames;
mod bad_input;
mod codex;
mod config;
mod demo;
mod editors;
mod engine;
mod engine_kills;
mod faults;
mod fork;
mod help;
mod hostile;
mod keep;
mod mcp;
mod notify;
mod output;
mod place;
mod proto;
mod queue;
#[cfg(feature = "real-agents")]
mod real;
mod run;
mod secrets;
mod stopped;
mod task;
mod terminal;
mod through;
mod tieline;

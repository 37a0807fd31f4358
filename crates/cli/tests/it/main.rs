//! The real binary, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod bad_input;
mod codex;
mod config;
mod demo;
mod faults;
mod fork;
mod help;
mod keep;
mod notify;
mod queue;
mod run;
mod terminal;
mod tieline;

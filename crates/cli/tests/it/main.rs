//! The real binary, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod bad_input;
mod config;
mod demo;
mod faults;
mod help;
mod keep;
mod run;
mod terminal;
mod tieline;

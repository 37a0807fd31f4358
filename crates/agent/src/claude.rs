//! Claude Code over stream-json.
//!
//! [`Claude`] starts it, [`ClaudeDriver`] speaks with it. The driver is written against the wire as
//! it is spoken from 1.0 to 2.1: fields that a version lacks are optional, frames it does not know
//! become `unparsed`.

mod ask;
mod driver;
mod gist;
mod outcome;
mod setup;
mod tool;

pub use driver::ClaudeDriver;
pub use setup::{Claude, Lifetime, OWN_VARIABLES, modes};

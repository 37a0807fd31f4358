//! Hostile input for every parser.
//!
//! # How it works
//!
//! A [`Target`] is a function that is given bytes and panics when something does not hold; the file
//! of a parser in `targets/` says what. Its corpus is the folder of its name in `corpus/`.
//!
//! There are two ways to make input of a corpus. [`Stock`] changes its files at random: the same
//! seed gives the same input, so that the tests, which try 100,000 of them for each target, try the
//! same ones everywhere. `cargo xtask fuzz` builds this crate once more with libFuzzer, which keeps
//! what reaches new code and goes on from there.
//!
//! # Invariants
//!
//! * An input is a function of target, corpus, seed and iteration.
//! * What a target does depends on the input alone.

mod campaign;
mod scan;
mod stock;
mod targets;

pub use campaign::{Campaign, Failed, Report, check_input};
pub use stock::{LONGEST, Stock};
pub use targets::{TARGETS, Target};

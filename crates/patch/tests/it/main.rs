//! Patches on a real disk.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod apply;
mod dice;
mod hostile;
mod race;
#[cfg(feature = "real-agents")]
mod real;
mod undo;
mod yard;

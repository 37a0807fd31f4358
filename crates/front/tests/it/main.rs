//! What fronts do with real processes, and with a whole hub behind them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod sqeq;
mod task;

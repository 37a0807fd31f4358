//! What fronts do with real processes.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

mod task;

//! The testkit tested through its own edges: sockets and pipes.

// Clippy knows a test by its attribute and takes the helpers here for other code.
#![allow(clippy::unwrap_used)]

mod acp;
mod client;
mod fake;
mod fake_agent;
mod fake_codex;
mod fake_mcp;
mod installed;
mod messages;
#[cfg(feature = "real-agents")]
mod real;
mod responses;

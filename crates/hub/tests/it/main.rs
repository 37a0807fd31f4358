//! Conversations with an agent that misbehaves on command.

mod bench;
mod faults;
#[cfg(feature = "real-agents")]
mod real;
mod turns;

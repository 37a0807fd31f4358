//! Conversations with an agent that misbehaves on command.

mod bench;
mod faults;
mod turns;

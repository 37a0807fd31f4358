//! Tasks: work that is handed to an agent, told in markers, answered from anywhere, measured and
//! verified before it counts as done.
//!
//! [`core`] makes words about the task of what happens in its conversation, [`brief`] is what the
//! agent is told, [`disk`] measures what changed, [`state`] is what is remembered, `print` shows it;
//! all of these move no bytes of an agent. [`conduct`] does.

pub mod brief;
pub mod conduct;
pub mod core;
pub mod disk;
pub mod foreign;
pub mod print;
pub mod state;
pub mod worktree;

//! Tasks: what an agent was given to do, and what it really did.

pub mod disk;
pub mod worktree;

//! The engine: one turn beside `codex exec`, and many sessions in one process.

mod sessions;
mod tree;
mod turn;

pub(crate) use sessions::Args as SessionsArgs;
pub(super) use sessions::{main as sessions_main, measure as sessions};
pub(super) use turn::{hello, memory};

//! Driver cores against recorded traffic of the real agents.

mod replay;
mod show;

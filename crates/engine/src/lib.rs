//! A coding agent of our own: it needs no other program, only a model behind the Responses API.
//!
//! # How it works
//!
//! [`Engine`] is an agent like any other, but one that runs as a task of this process. It speaks the
//! queue protocol ([`tieline_wire::sqeq`]): `serve.rs` reads submissions, runs one task at a time
//! and listens meanwhile; `task.rs` is what a task does, `turn.rs` one answer of the model within
//! it, `tools.rs` what the model can have done. `core.rs` is what a session knows, and every change
//! of it goes through `journal.rs`, which is how it survives a crash.
//!
//! # Invariants
//!
//! * A call is in the journal, on disk, before its tool runs; after a crash it is not run again.
//! * A task is one future. To interrupt it is to drop it: the commands of its calls are ended, those it
//!   left in the background go on until the session ends, and a change of files that has begun is waited
//!   for. What the session knows of files is what is on disk.
//! * Nothing of an answer that broke off is in the history, but calls that ran, with their outputs.
//! * A command runs in the sandbox its terms ask for, or not at all.
#![warn(missing_docs)]

mod agent;
mod ask;
mod calls;
pub mod command;
mod context;
mod core;
pub mod docs;
pub mod exec;
mod history;
mod journal;
mod lists;
pub mod mcp;
pub mod model;
mod order;
mod out;
mod outcomes;
pub mod persona;
pub mod plan;
pub mod prompts;
pub mod review;
mod say;
pub mod scripted;
mod serve;
mod settings;
mod shared;
pub mod skills;
mod skillset;
mod task;
mod tools;
pub mod truncate;
mod turn;

pub use agent::Engine;
pub use settings::{Model, Settings};

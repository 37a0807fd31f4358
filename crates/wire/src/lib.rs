//! Bounded framing and the vocabularies of other people's protocols.
//!
//! # How it works
//!
//! Bytes go in, values come out. [`ndjson::Framer`] cuts a byte stream into lines in any chunking;
//! [`jsonrpc`] tells the five sorts of JSON-RPC message apart and finds the call that an answer
//! is for; [`claude`] is a typed view over one line of Claude Code's stream-json that borrows
//! from the line; [`markers`] reads and writes the `[PROGRESS]` lines and their like by which
//! programs tell of their work in running text.
//!
//! # Invariants
//!
//! * No I/O, no clock, no thread.
//! * Nothing an agent writes is an error here: a line is a value or it is text that is not
//!   understood, and the next line is read.
//! * Memory is bounded by the line limit whatever arrives.
#![warn(missing_docs)]
#![deny(clippy::indexing_slicing)]

pub mod acp;
pub mod claude;
pub mod codex;
pub mod codex_app;
pub mod codex_exec;
pub mod jsonrpc;
pub mod markers;
pub mod ndjson;
pub mod raw;
pub mod responses;
pub mod sqeq;
pub mod sse;
pub mod tagged;
pub mod text;

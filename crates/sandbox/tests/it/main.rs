//! The sandbox as the kernel sees it: real namespaces, real refusals.
//!
//! Nothing is skipped for want of a kernel feature: without it the tests fail. `SANDBOX_TESTS=off`
//! switches them off, and every test says so.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // all of it is a test

mod crowd;
mod life;
mod names;
mod refuse;
mod roots;
mod stage;
mod table;
mod terminal;

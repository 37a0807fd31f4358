//! Starting, watching and ending child processes, whole trees of them.
//!
//! Agents start shells, shells start servers, and some of those call `setsid`. A process group does
//! not hold such a tree together and a killed supervisor holds nothing, so between us and every
//! agent stands a *host*: a second, very small process of the same binary.
//!
//! # How it works
//!
//! [`spawn`] asks one permanent thread to start the host with a control socket. The host receives
//! the [`Spec`] over that socket (nothing secret is in `ps`), makes itself the reaper of all its
//! descendants, forks the agent and steps out of the way: the agent's standard streams are pipes
//! that end in our own process. The host then waits for orders ([`Child::signal`],
//! [`Child::begin_stop`], [`Child::close`]) and for the end of the control socket. When the socket
//! ends, because the [`Child`] was dropped or because we were killed with `-9`, the host kills every
//! descendant and exits.
//!
//! # Invariants
//!
//! * This is the only crate that starts processes and the only one with `unsafe` code.
//! * [`init`] is the first line of `main` in every binary that uses this crate.
//! * When a host is lost, what it leaves behind is found and killed. A program that called [`init`] and
//!   starts children of its own keeps them, unless its main thread starts them in sessions of their
//!   own: those look like what a host left behind.
//! * An agent sees the file descriptors 0, 1 and 2, has no controlling terminal and leads its own
//!   session. So does a [`Job`], which may have a new terminal of its own, but never ours.
//! * After [`keep_to_ourselves`] what we start cannot read our environment or memory, on Linux, unless it
//!   has privileges we do not have.
//! * Output that nobody reads never blocks us, and stderr never blocks the agent.
//!
//! # Limits
//!
//! If we *and* the host are killed with `-9` in the same instant, the agent dies (parent death
//! signal) but what it had started lives on. Outside Linux there is neither a subreaper nor a
//! parent death signal: the host kills the agent's process group, and a descendant that left the
//! group survives.
#![warn(missing_docs)]

mod capture;
mod child;
mod detach;
mod env;
mod error;
mod host;
mod hosted;
mod job;
mod message;
mod replace;
mod resolve;
mod run;
mod secrecy;
mod spawner;
mod spec;
mod stop;
mod streams;
mod sys;
#[cfg(target_os = "linux")]
mod tree;

pub use capture::Captured;
pub use child::{Child, Closed, DRAIN, Drained, Exit, StderrChunk, Stdin, Stdout, drain, spawn};
pub use detach::{detach, lead_session};
pub use env::Env;
pub use error::Error;
pub use host::init;
pub use job::{Job, JobClosed, Stream, Streams, start_job};
pub use replace::replace;
pub use resolve::{resolve, resolve_explicit};
pub use run::{Output, RunLimits, run};
pub use secrecy::keep_to_ourselves;
pub use spawner::set_host_program;
pub use spec::Spec;
pub use stop::before_stop;
pub use streams::TerminalSize;
pub use sys::{Watched, watch};

//! Runs a command under a policy, or does not run it.
//!
//! # How it works
//!
//! [`wrap`] turns a command into a call of our own binary, which [`init`] recognises as the first
//! thing in `main`. That process, the *helper*, makes the fence, starts the command behind it, hands
//! signals on and ends as the command ended. Nothing is left behind: the command and everything it
//! started live in a PID namespace that dies with the helper.
//!
//! The fence has three layers. The first is a view of the machine: a mount namespace in which
//! everything is read-only but the writable roots, with a `/dev`, a `/proc`, and, when the network
//! is off, a network of its own. The second is Landlock, which also holds where a mount does not
//! (named pipes, descriptors from outside). The third is seccomp, which takes away system calls that
//! a build or a test does not need and an escape does.
//!
//! Some names below a writable root must not even come into being (`.git`, `.claude`, …). A mount
//! cannot cover what is not there, so Landlock forbids the command to create anything, and PID 1 of
//! the namespace (the *clerk*) creates files on its behalf, except those. See `linux/clerk.rs`.
//!
//! # Invariants
//!
//! * The policy is enforced in full or the command does not run: every step that fails is a
//!   [`Refusal`], and the command is executed after the last of them.
//! * Nothing is ever created in the user's directories to enforce a policy.
//! * The command sees the descriptors 0, 1 and 2 as they were given and the environment unchanged.
//! * [`init`] is called before the first thread of a process exists.
#![warn(missing_docs)]

mod denied;
mod entry;
mod policy;
mod refusal;
mod report;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "elsewhere.rs"]
mod linux;

pub use denied::looks_denied;
pub use entry::{FIRST_ARGUMENT, Wrapped, init, set_helper_program, wrap};
pub use policy::{Files, Policy};
pub use refusal::{Feature, REFUSED, Refusal, is_refusal, refusal_in};
pub use report::{Layer, REPORT_ARGUMENT, Report, report};

/// For the tests of this crate: the product never calls it.
#[doc(hidden)]
pub use entry::init_without;

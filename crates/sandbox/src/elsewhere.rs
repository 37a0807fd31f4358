//! Systems without a sandbox: they say so.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use crate::entry::is_open;
use crate::policy::Policy;
use crate::refusal::{Feature, Refusal};
use crate::report::Report;

/// Runs the command if it asks for no sandbox, else refuses.
#[allow(clippy::disallowed_methods)] // it becomes the command, it starts nothing
pub(crate) fn run(policy: &Policy, command: &[OsString], _: &[Feature]) -> Refusal {
    let Some((program, args)) = command.split_first().filter(|_| is_open(policy)) else {
        return Refusal::policy(
            "there is a sandbox on Linux (x86-64, arm64) only; run the command with full access \
             or not at all",
        );
    };
    let err = std::process::Command::new(program).args(args).exec();
    Refusal::policy(format!("{} cannot be executed: {err}", program.display()))
}

/// Nothing is given here.
pub(crate) fn report(_: &[Feature]) -> Report {
    Report::nothing("only Linux on x86-64 and arm64 has it")
}

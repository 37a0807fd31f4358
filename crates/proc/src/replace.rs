//! Becoming another program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::spec::Spec;

/// Becomes another program, in its directory and with its environment, on the terminal we have. Comes
/// back only when that failed.
pub fn replace(spec: &Spec) -> io::Error {
    command(spec).exec()
}

/// A program without a host: one that we become, or that outlives us.
#[allow(clippy::disallowed_methods)] // this crate is where it is allowed
pub(crate) fn command(spec: &Spec) -> Command {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).current_dir(&spec.cwd).env_clear();
    for name in spec.env.names() {
        if let Some(value) = spec.env.get(name) {
            command.env(name, value);
        }
    }
    command
}

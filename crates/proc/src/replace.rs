//! Becoming another program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::spec::Spec;

/// Becomes another program, in its directory and with its environment, on the terminal we have. Comes
/// back only when that failed.
#[allow(clippy::disallowed_methods)] // this crate is where it is allowed
pub fn replace(spec: &Spec) -> io::Error {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).current_dir(&spec.cwd).env_clear();
    for name in spec.env.names() {
        if let Some(value) = spec.env.get(name) {
            command.env(name, value);
        }
    }
    command.exec()
}

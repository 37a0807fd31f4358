//! How many tasks we are within: an agent that can delegate could otherwise do so for ever.

use std::fs;

use crate::error::Error;
use crate::exit::Exit;

/// What every process of a task and every agent it starts is told.
pub(crate) const VARIABLE: &str = "TIELINE_TASK_DEPTH";

/// So many tasks may stand within each other.
const MOST: u32 = 3;

/// How many processes are between us and the first one, at most.
const ANCESTORS: usize = 64;

/// How many tasks this process is within.
pub(crate) fn here() -> Result<u32, Error> {
    let told = match std::env::var_os(VARIABLE) {
        Some(value) => read(value.as_encoded_bytes())?,
        None => 0,
    };
    Ok(told.max(above()?))
}

/// What the variable says. One that says nothing is as if it were not set; what is no number must not
/// count as none.
fn read(value: &[u8]) -> Result<u32, Error> {
    let text = String::from_utf8_lossy(value);
    match text.parse() {
        _ if text.is_empty() => Ok(0),
        Ok(depth) => Ok(depth),
        Err(_) => Err(Error::usage(format!(
            "{VARIABLE} is {text:?}, which is no number; tieline sets it to count tasks within tasks: \
             unset it"
        ))),
    }
}

/// Refuses a task within too many others.
pub(crate) fn check() -> Result<(), Error> {
    let depth = here()?;
    if depth < MOST {
        return Ok(());
    }
    Err(Error::new(
        Exit::Usage,
        format!(
            "this agent already works within {depth} tasks that delegated to each other, and more \
             than {MOST} are not allowed: do the work here instead of delegating it"
        ),
    ))
}

/// What our ancestors were told. Clients of MCP start their servers with a handful of variables, and
/// this one is not among them.
fn above() -> Result<u32, Error> {
    let mut depth = 0;
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..ANCESTORS {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        depth = depth.max(told(&environ)?);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match parent(&stat) {
            Some(parent) if parent > 1 => pid = parent,
            _ => break,
        }
    }
    Ok(depth)
}

fn told(environ: &[u8]) -> Result<u32, Error> {
    let entries = environ.split(|byte| *byte == 0);
    let mut values = entries
        .filter_map(|entry| entry.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"=").map(read));
    values.try_fold(0, |most, value| Ok(most.max(value?)))
}

/// The name of the program stands in brackets and may be anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;

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
pub(crate) fn here() -> u32 {
    let told = std::env::var(VARIABLE).ok().and_then(|depth| depth.parse().ok());
    told.unwrap_or(0).max(above())
}

/// Refuses a task within too many others.
pub(crate) fn check() -> Result<(), Error> {
    let depth = here();
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
fn above() -> u32 {
    let mut depth = 0;
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..ANCESTORS {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        depth = depth.max(told(&environ));
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match parent(&stat) {
            Some(parent) if parent > 1 => pid = parent,
            _ => break,
        }
    }
    depth
}

fn told(environ: &[u8]) -> u32 {
    let entries = environ.split(|byte| *byte == 0);
    let values = entries.filter_map(|entry| {
        let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        (name == VARIABLE).then(|| value.parse().ok()).flatten()
    });
    values.max().unwrap_or(0)
}

/// The name of the program stands in brackets and may be anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;

//! A process that outlives us.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use crate::replace::command;
use crate::spec::Spec;

static DETACHED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Starts a program that goes on when we end, and gives its process id. Its input is empty, its
/// output goes to the file. It is to call [`lead_session`] first, so that no terminal reaches it.
///
/// # Errors
/// When it cannot be started.
pub fn detach(spec: &Spec, output: File) -> io::Result<u32> {
    let mut command = command(spec);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut detached = DETACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut child = command.spawn()?;
    let pid = child.id();
    detached.extend(i32::try_from(pid));
    drop(detached);
    // We may live longer than it: whoever waits for it reaps it.
    let reaper = std::thread::Builder::new().name("reaper".into());
    reaper.spawn(move || {
        if let Err(err) = child.wait() {
            tracing::debug!(pid, %err, "a detached process was not reaped");
        }
        let mut detached = DETACHED.lock().unwrap_or_else(PoisonError::into_inner);
        detached.retain(|it| u32::try_from(*it) != Ok(pid));
    })?;
    Ok(pid)
}

/// Leaves the session of whoever started us, and with it their terminal.
pub fn lead_session() {
    // Who leads a session already has none to leave.
    rustix::process::setsid().ok();
}

/// The processes that were started to outlive us; they are nobody's orphans.
pub(crate) fn detached() -> BTreeSet<i32> {
    DETACHED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

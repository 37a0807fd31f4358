//! What this process keeps from those it starts.

use std::io;

use crate::sys;

/// Keeps our environment and memory from other processes of the same user: what an agent's environment
/// leaves out it could otherwise read from ours. Also makes a file that grows beyond its limit
/// an error instead of our end. To be called at the beginning, after [`init`](crate::init); what is
/// started later is as readable as ever.
///
/// # Errors
/// When the system refuses.
pub fn keep_to_ourselves() -> io::Result<()> {
    sys::survive_file_limit()?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

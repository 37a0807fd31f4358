//! Looks at living processes from outside, through `/proc`.

use std::fs;
use std::io;

use crate::sys;

/// The living processes whose environment holds `marker`, a `NAME=value` text.
///
/// The environment survives forks, new sessions and reparenting, so a descendant
/// cannot hide. A zombie has no environment left and does not count, nor does the
/// process that asks.
pub fn alive_with(marker: &str) -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").expect("/proc is mounted").filter_map(Result::ok);
    let mut found: Vec<u32> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && carries(*pid, marker))
        .collect();
    found.sort_unstable();
    found
}

/// The resident memory of `pid` in KiB, or `None` if it is gone.
pub fn rss_kib(pid: u32) -> Option<u64> {
    status(pid, "VmRSS:")
}

/// The most resident memory that `pid` ever had in KiB, or `None` if it is gone.
pub fn peak_rss_kib(pid: u32) -> Option<u64> {
    status(pid, "VmHWM:")
}

/// The first number that the kernel tells of `pid` under this name.
fn status(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The number of open descriptors of `pid`, or `None` if it is gone.
pub fn fd_count(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

/// Kills `pid` as the kernel would when memory is short: without a word.
///
/// # Errors
/// When there is no such process.
pub fn kill(pid: u32) -> io::Result<()> {
    sys::kill(pid)
}

fn carries(pid: u32, marker: &str) -> bool {
    // Processes come and go while we look, and some belong to others.
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
}

//! What a hostile command would try, for the tests; also the helper it is run by.
//!
//! `sandbox-probe try STAGE` tries everything, each in a process of its own, and says what worked.
//! `sandbox-probe blind CALL ERRNO -- …` goes on with a kernel that lacks a system call.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod others;
#[cfg(target_os = "linux")]
mod sockets;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use tieline_sandbox::{Feature, Policy, REPORT_ARGUMENT};

/// A feature that shall seem to be missing.
const MISSING: &str = "SANDBOX_PROBE_MISSING";

fn main() -> ExitCode {
    let missing = std::env::var(MISSING).ok();
    let missing: Vec<Feature> = missing
        .iter()
        .filter_map(|name| serde_json::from_value(serde_json::Value::from(name.as_str())).ok())
        .collect();
    tieline_sandbox::init_without(&missing);
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            writeln!(io::stderr(), "sandbox-probe: {err}").ok();
            ExitCode::from(99)
        }
    }
}

fn act() -> io::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let mut next = || args.next().ok_or_else(|| io::Error::other("a word is missing"));
    match next()?.to_string_lossy().as_ref() {
        #[cfg(target_os = "linux")]
        "list" => attempts::list(),
        #[cfg(target_os = "linux")]
        "try" => attempts::try_all(next()?.as_ref()),
        #[cfg(target_os = "linux")]
        "try-one" => {
            let (stage, name) = (next()?, next()?);
            attempts::try_one(stage.as_ref(), &name.to_string_lossy())
        }
        #[cfg(target_os = "linux")]
        "names" => {
            let (stage, how) = (next()?, next()?);
            names::try_all(stage.as_ref(), &how.to_string_lossy())
        }
        #[cfg(target_os = "linux")]
        "race" => names::race(next()?.to_string_lossy().parse().map_err(io::Error::other)?),
        #[cfg(target_os = "linux")]
        "set-user" => names::set_user(),
        "fds" => writeln!(io::stdout(), "{}", open_fds()?),
        "run" => Err(run(&next()?.to_string_lossy(), args.collect())),
        "blind-report" => {
            let (call, errno) = (next()?, next()?);
            let number = |word: OsString| word.to_string_lossy().parse().map_err(io::Error::other);
            blind(number(call)?, number(errno)? as u32)?;
            Err(become_again([REPORT_ARGUMENT.into()]))
        }
        "blind" => {
            let (call, errno) = (next()?, next()?);
            let number = |word: OsString| word.to_string_lossy().parse().map_err(io::Error::other);
            blind(number(call)?, number(errno)? as u32)?;
            Err(run(&next()?.to_string_lossy(), args.collect()))
        }
        other => Err(io::Error::other(format!("unknown verb {other}"))),
    }
}

/// Becomes a helper for a command: policy, then the command.
fn run(policy: &str, mut command: VecDeque<OsString>) -> io::Error {
    let policy = match policy {
        "read-only" => Ok(Policy::read_only()),
        "full" => Ok(Policy::danger_full_access()),
        json => serde_json::from_str(json),
    };
    let wrapped = policy.map_err(io::Error::other).and_then(|policy: Policy| {
        let program = command.pop_front().unwrap_or_default();
        tieline_sandbox::wrap(&policy, program, command).map_err(io::Error::other)
    });
    match wrapped {
        Ok(wrapped) => become_again(wrapped.args),
        Err(err) => err,
    }
}

#[allow(clippy::disallowed_methods)] // it becomes another, it starts nothing
fn become_again(args: impl IntoIterator<Item = OsString>) -> io::Error {
    match std::env::current_exe() {
        Ok(own) => Command::new(own).args(args).exec(),
        Err(err) => err,
    }
}

/// The descriptors that lead somewhere, without the one this is read through.
fn open_fds() -> io::Result<String> {
    let mut fds = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let is_own = std::fs::read_link(entry.path()).is_ok_and(|to| to.ends_with("fd"));
        if !is_own {
            fds.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    fds.sort();
    Ok(fds.join(" "))
}

/// From here on a system call fails, as on a kernel that does not have it.
fn blind(call: i64, errno: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
        let rules = [(call, vec![])].into_iter().collect();
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch)
                .map_err(io::Error::other)?;
        let program: Vec<_> = filter.try_into().map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)
    }
    #[cfg(not(target_os = "linux"))]
    Err(io::Error::other(format!("{call} {errno}: only on Linux")))
}

//! The way into the sandbox: one binary that is executed again.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::policy::{Files, Policy};
use crate::refusal::{Feature, REFUSED, Refusal};
use crate::{linux, report};

/// The first argument that makes a process a helper.
pub const FIRST_ARGUMENT: &str = "__tieline-sandbox";

/// A command line that runs another one under a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapped {
    /// Our own binary.
    pub program: PathBuf,
    /// Its arguments: [`FIRST_ARGUMENT`], the policy, `--`, the command.
    pub args: Vec<OsString>,
}

/// The command line that runs `program` with `args` under `policy`. A `program` without a slash is
/// looked up in `PATH` by the helper. Fails if the policy contradicts itself or has a path that is
/// not UTF-8.
pub fn wrap(
    policy: &Policy,
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<Wrapped, Refusal> {
    policy.check()?;
    let json = serde_json::to_string(policy)
        .map_err(|err| Refusal::policy(format!("the policy cannot be written down: {err}")))?;
    let mut line: Vec<OsString> = vec![FIRST_ARGUMENT.into(), json.into(), "--".into()];
    line.push(program.as_ref().to_owned());
    line.extend(args.into_iter().map(Into::into));
    let program = own_program()
        .map_err(|err| Refusal::policy(format!("our own program cannot be found: {err}")))?;
    Ok(Wrapped { program, args: line })
}

/// Must come first in `main`, before any thread exists: if this process was started to be a helper
/// it becomes one and never returns.
pub fn init() {
    init_without(&[]);
}

/// [`init`] on a system that seems to lack something.
#[doc(hidden)]
pub fn init_without(missing: &[Feature]) {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == FIRST_ARGUMENT => {}
        Some(first) if first == report::REPORT_ARGUMENT => report::print_and_exit(missing),
        _ => return,
    }
    let refusal = match parse(args) {
        Ok((policy, command)) => linux::run(&policy, &command, missing),
        Err(refusal) => refusal,
    };
    // Nobody is left to tell if stderr is closed.
    std::io::stderr().write_all(refusal.line().as_bytes()).ok();
    std::process::exit(REFUSED);
}

/// Another program that calls [`init`], in place of our own.
static HELPER: OnceLock<PathBuf> = OnceLock::new();

/// The helper is this program, which calls [`init`]: for a library within a program that does not,
/// such as a test. The first one counts.
pub fn set_helper_program(program: PathBuf) {
    drop(HELPER.set(program));
}

/// Through a link of the process that starts it and not through the path where the system has one: an
/// update replaces the file behind the path, and the helper must be of the version that wrote the
/// policy. It is not a link of ours, which others may not follow when we keep our environment and
/// memory to ourselves: whoever starts the helper is this same program.
pub(crate) fn own_program() -> std::io::Result<PathBuf> {
    if let Some(program) = HELPER.get() {
        return Ok(program.clone());
    }
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe()
}

fn parse(mut args: impl Iterator<Item = OsString>) -> Result<(Policy, Vec<OsString>), Refusal> {
    let json = args.next().and_then(|json| json.into_string().ok());
    let policy: Policy = serde_json::from_str(json.as_deref().unwrap_or_default())
        .map_err(|err| Refusal::policy(format!("the policy cannot be read: {err}")))?;
    policy.check()?;
    if args.next().is_none_or(|it| it != "--") {
        return Err(Refusal::policy("there is no `--` before the command"));
    }
    let command: Vec<OsString> = args.collect();
    if command.is_empty() {
        return Err(Refusal::policy("there is no command to run"));
    }
    Ok((policy, command))
}

/// Whether a policy asks for no fence at all.
pub(crate) fn is_open(policy: &Policy) -> bool {
    policy.files == Files::DangerFullAccess
}

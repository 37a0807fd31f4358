//! What this system gives for a sandbox.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::entry::own_program;
use crate::linux;
use crate::refusal::Feature;

/// The first argument that makes our binary print a [`Report`] and end.
pub const REPORT_ARGUMENT: &str = "__tieline-sandbox-report";

/// One thing the kernel gives or does not give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// What it is.
    pub feature: Feature,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
}

/// What this system gives for a sandbox, tried and not guessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Each thing a policy can need.
    pub layers: Vec<Layer>,
    /// The version of Landlock's interface, 0 without it.
    pub landlock_abi: u32,
    /// Why `read-only` cannot be enforced, if it cannot.
    pub read_only: Option<String>,
    /// Why `workspace-write` cannot be enforced, if it cannot.
    pub workspace_write: Option<String>,
    /// Why neither of them can be enforced with the network on, if they cannot.
    pub with_network: Option<String>,
}

impl Report {
    /// The command line that prints a report; [`Report::parse`] reads it.
    pub fn command() -> std::io::Result<(PathBuf, Vec<OsString>)> {
        Ok((own_program()?, vec![REPORT_ARGUMENT.into()]))
    }

    /// Reads what [`Report::command`] printed.
    pub fn parse(stdout: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(stdout)
    }

    /// Whether every policy can be enforced.
    pub fn is_complete(&self) -> bool {
        self.read_only.is_none() && self.workspace_write.is_none() && self.with_network.is_none()
    }

    /// The report of a system that gives nothing.
    #[cfg_attr(target_os = "linux", allow(dead_code))]
    pub(crate) fn nothing(why: &str) -> Self {
        let why = || Some(why.to_owned());
        let layer = |feature| Layer { feature, problem: why() };
        Self {
            layers: Feature::ALL.into_iter().map(layer).collect(),
            landlock_abi: 0,
            read_only: why(),
            workspace_write: why(),
            with_network: why(),
        }
    }
}

/// Tries everything in processes of its own. Only for a process with one thread, because it forks;
/// others run [`Report::command`].
pub fn report() -> Report {
    linux::report(&[])
}

pub(crate) fn print_and_exit(missing: &[Feature]) -> ! {
    let written = serde_json::to_vec(&linux::report(missing))
        .map_err(std::io::Error::other)
        .and_then(|json| std::io::stdout().write_all(&json));
    std::process::exit(if written.is_ok() { 0 } else { 1 });
}

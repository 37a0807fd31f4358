//! Starting an agent.

use std::ffi::OsString;
use std::path::PathBuf;

use tieline_event::{Failure, FailureCode, Policy};

use super::driver::AcpDriver;
use crate::driver::{Agent, Launch, Launching, Plan};

/// An agent that speaks the protocol, whichever it is.
#[derive(Debug, Clone)]
pub struct AcpAgent {
    /// What users call it.
    pub name: String,
    /// Its program, absolute.
    pub program: PathBuf,
    /// The arguments that make it speak the protocol.
    pub args: Vec<String>,
    /// Its environment.
    pub env: tieline_proc::Env,
    /// Each prompt names the workspace first.
    pub preamble: bool,
}

impl Agent for AcpAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        if let Some(policy) = Policy::beyond(launch.mode, launch.policy) {
            let message = format!("{} has no policy {policy}", self.name);
            let failure = Failure::new(FailureCode::BadRequest, message).hint(
                "choose a --mode instead: default, plan, acceptEdits, bypassPermissions, yolo",
            );
            return Box::pin(std::future::ready(Err(failure)));
        }
        let driver = AcpDriver::new(&launch, &self.name);
        let roots = std::iter::once(launch.workspace);
        let roots = roots.chain(launch.extras.directories.iter().map(PathBuf::as_path));
        let real = roots.filter_map(|root| std::fs::canonicalize(root).ok());
        let driver = Box::new(driver.also_known_as(real));
        let plan = Plan {
            args: self.args.iter().map(OsString::from).collect(),
            preamble: self.preamble,
            ..Plan::new(self.program.clone(), self.env.clone(), driver)
        };
        Box::pin(std::future::ready(Ok(plan)))
    }
}

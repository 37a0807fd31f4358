//! Codex by `codex exec --json`: one process for each turn.
//!
//! [`CodexExec`] starts it, [`ExecDriver`] reads it. The wire goes one way: the prompt goes in on
//! stdin, and that is all. Nothing can be asked, so every mode runs with the approval policy
//! `never` in the sandbox the mode stands for, and a notice says so. What a version prints and
//! which words it takes is in one table (`setup.rs`).

mod driver;
mod item;
mod old;
mod setup;
mod usage;

use crate::codex::Codex;
use crate::driver::{Agent, Launch, Launching, Plan};

pub use driver::{ExecDriver, Setup};
pub(crate) use setup::plan_mode_off;

/// Codex by its exec wire.
#[derive(Debug, Clone)]
pub struct CodexExec {
    /// The program.
    pub codex: Codex,
}

impl Agent for CodexExec {
    fn name(&self) -> &'static str {
        "codex-exec"
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(async move {
            let Codex { program, env, preamble, versions, .. } = &self.codex;
            let version = versions.of(program, env).await?;
            let args = setup::arguments(&self.codex, version, &launch)?;
            let driver = Box::new(ExecDriver::new(Setup::of(version, &launch)));
            Ok(Plan {
                args,
                one_turn: true,
                preamble: *preamble,
                ..Plan::new(program.clone(), env.clone(), driver)
            })
        })
    }
}

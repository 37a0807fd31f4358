//! The reference adapters, driving the pinned agents.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Program;
use crate::agents;
use crate::real::AgentEnv;

/// Another bridge from an agent to ACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// `claude-agent-acp`.
    Claude,
    /// `codex-acp`.
    Codex,
}

impl Adapter {
    /// What its package is called.
    pub fn name(self) -> &'static str {
        match self {
            Adapter::Claude => "claude-agent-acp",
            Adapter::Codex => "codex-acp",
        }
    }

    /// The variable that names the agent it drives.
    pub fn variable(self) -> &'static str {
        match self {
            Adapter::Claude => "CLAUDE_CODE_EXECUTABLE",
            Adapter::Codex => "CODEX_PATH",
        }
    }

    /// What Node runs.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn script(self) -> Result<PathBuf, String> {
        agents::acp(&format!("@agentclientprotocol/{}/dist/index.js", self.name()))
    }

    /// How it is started so that it drives the same program as tieline does.
    ///
    /// # Errors
    /// When something is not installed.
    pub fn program(self, env: &AgentEnv) -> Result<Program, String> {
        let agent = match self {
            Adapter::Claude => "claude",
            Adapter::Codex => "codex",
        };
        let agent = agents::program(agent)?.display().to_string();
        let mut program = node(self.script()?, env)?;
        program.env.push((self.variable().to_owned(), agent));
        // It would open a browser to log in.
        program.env.push(("NO_BROWSER".to_owned(), "1".to_owned()));
        Ok(program)
    }
}

/// A script run by the pinned Node.
///
/// # Errors
/// When Node is not installed.
pub fn node(script: PathBuf, env: &AgentEnv) -> Result<Program, String> {
    let path = agents::node()?;
    let args = vec![OsString::from(script)];
    Ok(Program { path, args, env: env.vars(), cwd: env.workspace() })
}

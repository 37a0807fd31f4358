//! The agents of a machine, for programs that configure nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tieline_agent::Agent;
use tieline_agent::acp::{self, AcpAgent};
use tieline_agent::claude::{self, Claude, Lifetime};
use tieline_agent::codex::{self, Codex, Versions};
use tieline_agent::codex_app::CodexApp;
use tieline_agent::codex_exec::CodexExec;
use tieline_agent::codex_proto::CodexProto;
use tieline_event::{Failure, FailureCode};
use tieline_proc::Env;

use crate::hub::Registry;

/// The agents that are installed, found in `PATH`: `claude`, `codex`, `codex-exec`, `codex-proto`, and
/// `acp:NAME` for those of [`acp::KNOWN`].
#[derive(Debug, Default)]
pub struct Installed {
    versions: Arc<Versions>,
}

impl Installed {
    fn codex(&self, workspace: &Path) -> Result<Codex, Failure> {
        Ok(Codex {
            program: find("codex", workspace)?,
            args: Vec::new(),
            env: Env::inherited(codex::OWN_VARIABLES, &[]),
            preamble: false,
            notify: None,
            versions: Arc::clone(&self.versions),
        })
    }
}

impl Registry for Installed {
    fn agent(&self, name: &str, workspace: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(match name {
            "claude" => Arc::new(Claude {
                program: find("claude", workspace)?,
                args: Vec::new(),
                env: Env::inherited(claude::OWN_VARIABLES, &[]),
                lifetime: Lifetime::Conversation,
                preamble: false,
                name: "claude",
                is_root: false, // it refuses by itself
            }),
            "codex" => Arc::new(CodexApp { codex: self.codex(workspace)?, seats: 1 }),
            "codex-exec" => Arc::new(CodexExec { codex: self.codex(workspace)? }),
            "codex-proto" => Arc::new(CodexProto { codex: self.codex(workspace)? }),
            name if name.starts_with(acp::PREFIX) => Arc::new(speaker(name, workspace)?),
            _ => return Err(not_found(format!("there is no agent {name:?}"))),
        })
    }
}

fn speaker(name: &str, workspace: &Path) -> Result<AcpAgent, Failure> {
    let known = acp::find(name).ok_or_else(|| not_found(format!("there is no agent {name:?}")))?;
    Ok(AcpAgent {
        name: name.to_owned(),
        program: find(known.program, workspace)?,
        args: known.args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Env::inherited(known.own_variables, &[]),
        preamble: false,
    })
}

fn find(program: &str, workspace: &Path) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH");
    tieline_proc::resolve(program, workspace, path.as_deref())
        .map_err(|error| not_found(format!("{program} is not installed: {error}")))
}

fn not_found(message: String) -> Failure {
    Failure::new(FailureCode::AgentNotFound, message)
        .hint("install it, or make a registry of your own that knows where it is")
}

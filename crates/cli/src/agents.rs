//! Which agents there are and how they are started.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tieline_agent::claude::{Claude, OWN_VARIABLES};
use tieline_agent::{Agent, scripted};
use tieline_event::{Failure, FailureCode};
use tieline_hub::Registry;
use tieline_proc::Env;

use crate::config::AgentConfig;
use crate::error::Error;

/// The agents users can name, in the order in which `auto` tries them.
pub(crate) const NAMES: [&str; 2] = ["claude", "demo"];

/// The agents of this machine.
#[derive(Debug, Clone)]
pub(crate) struct Agents {
    claude: AgentConfig,
}

impl Agents {
    pub(crate) fn new(claude: AgentConfig) -> Self {
        Self { claude }
    }

    /// The name of the agent to use, and why, when the user left the choice to us.
    pub(crate) fn choose(
        &self,
        name: &str,
        workspace: &Path,
    ) -> Result<(&'static str, Option<String>), Error> {
        if name != "auto" {
            return match NAMES.iter().find(|known| **known == name) {
                Some(known) => Ok((known, None)),
                None => Err(Error::usage(format!(
                    "unknown agent {name:?}; the agents are auto, {}",
                    NAMES.join(", ")
                ))),
            };
        }
        match self.claude_program(workspace) {
            Ok(path) => Ok(("claude", Some(format!("found {}", path.display())))),
            Err(failure) => Ok(("demo", Some(format!("built in; {}", failure.message)))),
        }
    }

    /// Claude Code's program: what the user named, else `claude` in `PATH`, else where its
    /// installers put it.
    pub(crate) fn claude_program(&self, workspace: &Path) -> Result<PathBuf, Failure> {
        let named = std::env::var("TIELINE_CLAUDE").ok().filter(|it| !it.is_empty());
        let hint = "install it with `npm install -g @anthropic-ai/claude-code`, or name its \
                    program in TIELINE_CLAUDE or in the configuration";
        let failure = |message: String| Failure::new(FailureCode::AgentNotFound, message);
        if let Some(program) = named.as_ref().or(self.claude.program.as_ref()) {
            let place = if named.is_some() { "TIELINE_CLAUDE" } else { "agents.claude.program" };
            let found = match program.contains('/') {
                true => tieline_proc::resolve_explicit(&expand_home(program)),
                false => tieline_proc::resolve(program, workspace, path_variable().as_deref()),
            };
            return found.map_err(|err| {
                failure(format!("{place} does not name a program: {err}"))
                    .hint("give its absolute path")
            });
        }
        let in_path = tieline_proc::resolve("claude", workspace, path_variable().as_deref());
        let err = match in_path {
            Ok(path) => return Ok(path),
            Err(err) => err,
        };
        usual_places()
            .iter()
            .find_map(|place| tieline_proc::resolve(place.to_str()?, workspace, None).ok())
            .ok_or_else(|| failure(format!("Claude Code is not installed: {err}")).hint(hint))
    }

    /// The environment Claude Code gets.
    pub(crate) fn claude_env(&self) -> Env {
        let mut env = Env::inherited(OWN_VARIABLES, &self.claude.pass);
        // It would take itself for a part of the session tieline was started from.
        env.remove("CLAUDECODE").remove("CLAUDE_CODE_ENTRYPOINT");
        for (name, value) in &self.claude.env {
            env.set(name, value);
        }
        env
    }

    fn claude(&self, workspace: &Path) -> Result<Claude, Failure> {
        Ok(Claude {
            program: self.claude_program(workspace)?,
            args: self.claude.args.clone(),
            env: self.claude_env(),
            lifetime: self.claude.lifetime,
            preamble: false,
            name: "claude",
            is_root: rustix::process::geteuid().is_root(),
        })
    }
}

impl Registry for Agents {
    fn agent(&self, name: &str, workspace: &Path) -> Result<Arc<dyn Agent>, Failure> {
        match name {
            "claude" => Ok(Arc::new(self.claude(workspace)?)),
            "demo" => Ok(Arc::new(demo()?)),
            _ => Err(Failure::new(FailureCode::AgentNotFound, format!("unknown agent {name:?}"))
                .hint(format!("the agents are {}", NAMES.join(", ")))),
        }
    }
}

fn demo() -> Result<scripted::Demo, Failure> {
    let program = std::env::current_exe().map_err(|err| {
        Failure::new(FailureCode::AgentCannotStart, format!("cannot find our own program: {err}"))
    })?;
    Ok(scripted::Demo { program, env: Env::inherited(&[], &[]), script: None })
}

fn path_variable() -> Option<std::ffi::OsString> {
    std::env::var_os("PATH")
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

fn expand_home(program: &str) -> String {
    match (program.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => program.to_owned(),
    }
}

fn usual_places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(home) = home() {
        for place in [".claude/local/claude", ".local/bin/claude", ".npm-global/bin/claude"] {
            places.push(home.join(place));
        }
    }
    places.push("/usr/local/bin/claude".into());
    places
}

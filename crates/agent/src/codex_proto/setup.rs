//! Starting `codex proto`.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tieline_event::{Failure, FailureCode};
use tieline_proc::Env;

use super::driver::ProtoDriver;
use crate::codex::{
    Codex, LAST_PROTO, Version, effort_setting, home, notify_override, server_settings,
    session_unknown, toml_string,
};
use crate::driver::{Agent, Launch, Launching, Plan, Resume, checked_argument};

/// The last version that goes on with a recorded session when it is told its file. Seen with 0.29
/// and 0.34; 0.36 and 0.42 do not know the override and begin a new session without a word.
const LAST_RESUME: Version = Version(0, 34, u32::MAX);

/// Codex by its proto wire.
#[derive(Debug, Clone)]
pub struct CodexProto {
    /// The program.
    pub codex: Codex,
}

impl Agent for CodexProto {
    fn name(&self) -> &'static str {
        "codex-proto"
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(self.plan(launch))
    }
}

impl CodexProto {
    async fn plan(&self, launch: Launch<'_>) -> Result<Plan, Failure> {
        let Codex { program, env, preamble, versions, .. } = &self.codex;
        let version = versions.of(program, env).await?;
        let args = self.args(&launch, version)?;
        let driver = ProtoDriver::new(&launch, version);
        let driver = Box::new(driver.without_sandbox(cfg!(target_os = "linux")));
        Ok(Plan {
            args,
            forgets: version > LAST_RESUME,
            preamble: *preamble,
            ..Plan::new(program.clone(), env.clone(), driver)
        })
    }

    fn args(&self, launch: &Launch<'_>, version: Version) -> Result<Vec<OsString>, Failure> {
        if version > LAST_PROTO {
            // A newer one would take the word for a prompt.
            return Err(Failure::new(
                FailureCode::AgentCannotStart,
                format!("Codex {version} has no `proto` command any more (last in 0.42)"),
            )
            .hint("choose --agent codex, which speaks with its app server"));
        }
        let mut args: Vec<OsString> = self.codex.args.iter().map(OsString::from).collect();
        args.push("proto".into());
        let mut set = |setting: String| args.extend(["-c".into(), setting.into()]);
        if let Some(model) = launch.model {
            set(format!("model={}", toml_string(checked_argument("model", model)?)));
        }
        if let Some(effort) = launch.effort {
            set(effort_setting(checked_argument("effort", effort)?));
        }
        server_settings(launch.extras).0.into_iter().for_each(&mut set);
        if let Some(notify) = &self.codex.notify {
            set(notify_override(notify));
        }
        if let Some(resume) = launch.resume {
            let path = rollout(resume, version, &self.codex.env)?;
            set(format!("experimental_resume={}", toml_string(&path.to_string_lossy())));
        }
        Ok(args)
    }
}

/// The file of the session to go on with.
fn rollout(resume: Resume<'_>, version: Version, env: &Env) -> Result<PathBuf, Failure> {
    if resume.fork {
        return Err(Failure::new(
            FailureCode::BadRequest,
            "`codex proto` cannot branch off from a session",
        )
        .hint("choose --agent codex with a newer Codex, or begin afresh with --fresh"));
    }
    if version > LAST_RESUME {
        return Err(Failure::new(
            FailureCode::SessionUnknown,
            format!("Codex {version} cannot go on with an earlier session by `proto`"),
        )
        .hint(
            "begin afresh with --fresh, or with `tieline reset KEY`; the history stays. Sessions of \
             a newer Codex with --agent codex can go on",
        ));
    }
    find(&home(env).join("sessions"), &format!("-{}.jsonl", resume.session), 3)
        .ok_or_else(session_unknown)
}

/// A recording by the end of its name; they lie in directories by year, month and day.
fn find(directory: &Path, ending: &str, depth: usize) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path()).collect();
    // The latest day first, since that is the likeliest.
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        if depth > 0 && path.is_dir() {
            find(&path, ending, depth - 1)
        } else {
            (name.starts_with("rollout-") && name.ends_with(ending)).then_some(path)
        }
    })
}

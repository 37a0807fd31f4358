//! Which agents there are, which version, and whether somebody is logged in.

use std::path::Path;
use std::time::Duration;

use tieline_agent::acp;
use tieline_proc::{Env, Output, RunLimits, Spec};

use super::{Check, State};
use crate::agents::{Agents, Cli};

/// The choice that is left to us.
pub(super) const AUTO: &str = "auto";

/// How long `--version` may take.
const LIMITS: RunLimits = RunLimits { timeout: Duration::from_secs(10), max_output: 16 * 1024 };

pub(super) async fn check(agents: &Agents, checks: &mut Vec<Check>) {
    let workspace = std::env::current_dir().unwrap_or_else(|_| "/".into());
    match agents.program(Cli::Claude, &workspace) {
        Err(failure) => {
            let is_named = agents.is_named(Cli::Claude);
            let state = if is_named { State::Bad } else { State::Missing };
            let mut check = Check::new("agents", "claude", state, failure.message);
            check.advice = failure.hint;
            checks.push(check);
        }
        Ok(program) => {
            let env = agents.env(Cli::Claude);
            checks.push(version(&program, env.clone()).await);
            checks.push(login(&env));
        }
    }
    super::codex::check(agents, &workspace, checks).await;
    speakers(agents, &workspace, checks);
    let mut demo = Check::new(
        "agents",
        "demo",
        State::Good,
        "built in: the engine on a script in place of a model",
    );
    demo.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    checks.push(demo);
    checks.push(auto(agents, &workspace));
}

/// Which agent is taken when nobody names one.
fn auto(agents: &Agents, workspace: &Path) -> Check {
    match agents.choose("auto", workspace) {
        Ok((name, _)) if name == "demo" => {
            Check::new("agents", AUTO, State::Missing, "takes the demo: there is no other agent")
                .advice(
                    "install Claude Code or Codex, or say where a model for the engine is \
                     (OPENAI_API_KEY, OPENAI_BASE_URL or [engine])",
                )
        }
        Ok((name, why)) => {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            Check::new("agents", AUTO, State::Good, format!("takes {name}{why}"))
        }
        Err(err) => Check::new("agents", AUTO, State::Bad, err.message()),
    }
}

/// Agents of the Agent Client Protocol: those that are configured, and those known ones that are
/// there. They are not started: some of them go online for their version alone.
fn speakers(agents: &Agents, workspace: &Path, checks: &mut Vec<Check>) {
    let configured = agents.configured_speakers();
    let known = acp::KNOWN.iter().map(|known| format!("{}{}", acp::PREFIX, known.name));
    let known: Vec<String> = known.filter(|name| !configured.contains(name)).collect();
    let n_before = checks.len();
    for name in configured.iter().chain(&known) {
        let is_configured = configured.contains(name);
        match agents.command_line(name, workspace) {
            // Arguments may hold secrets.
            Ok((program, _)) => {
                let shown = program.display().to_string();
                let mut check = Check::new("agents", name, State::Good, shown.clone());
                check.program = Some(shown);
                checks.push(check);
            }
            Err(failure) if is_configured => {
                let mut check = Check::new("agents", name, State::Bad, failure.message);
                check.advice = failure.hint;
                checks.push(check);
            }
            Err(_) => {}
        }
    }
    if checks.len() == n_before {
        let names: Vec<_> = acp::KNOWN.iter().map(|known| known.name).collect();
        let detail = format!("none is installed; known are {}", names.join(", "));
        checks.push(Check::new("agents", "acp:NAME", State::Missing, detail));
    }
}

async fn version(program: &Path, env: Env) -> Check {
    let mut spec = Spec::new(program, "/").arg("--version");
    spec.env = env;
    let output = tieline_proc::run(spec, b"", LIMITS).await;
    let shown = program.display().to_string();
    let mut check = match output {
        Ok(output) if succeeded(&output) => {
            let version =
                output.stdout.to_text().lines().next().unwrap_or_default().trim().to_owned();
            let detail = format!("{version} at {shown}");
            let mut check = Check::new("agents", "claude", State::Good, detail);
            check.version = Some(version);
            check
        }
        Ok(output) => {
            let why = match output.timed_out {
                true => "it did not answer within 10 seconds".to_owned(),
                false => format!("it failed: {}", output.stderr.to_text().trim()),
            };
            Check::new("agents", "claude", State::Bad, format!("{shown} --version: {why}"))
                .advice("install it again: npm install -g @anthropic-ai/claude-code")
        }
        Err(err) => Check::new("agents", "claude", State::Bad, crate::error::chain(&err))
            .advice("install it again: npm install -g @anthropic-ai/claude-code"),
    };
    check.program = Some(shown);
    check
}

fn succeeded(output: &Output) -> bool {
    !output.timed_out && output.exit.as_ref().is_some_and(|exit| exit.is_success())
}

/// Looks for a key or a file with credentials by name; neither is read.
fn login(env: &Env) -> Check {
    const KEYS: [&str; 6] = [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
    ];
    let name = "claude login";
    if let Some(key) = super::is_set(env, &KEYS) {
        return Check::new("agents", name, State::Good, format!("{key} is set"));
    }
    let file = super::config_file(env, "CLAUDE_CONFIG_DIR", ".claude", ".credentials.json");
    match file {
        Some(file) => {
            Check::new("agents", name, State::Good, format!("{} is there", file.display()))
        }
        None if cfg!(target_os = "macos") => {
            Check::new("agents", name, State::Missing, "perhaps in the keychain, which is not read")
        }
        None => {
            Check::new("agents", name, State::Missing, "no key is set and no credentials are there")
                .advice("log in once by starting `claude`, or set ANTHROPIC_API_KEY")
        }
    }
}

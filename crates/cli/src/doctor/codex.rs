//! Which Codex there is, which of its wires it speaks, and whether somebody is logged in.

use std::path::Path;

use tieline_agent::codex::{FIRST_APP_SERVER, LAST_PROTO, Version};
use tieline_proc::Env;

use super::{Check, State};
use crate::agents::{Agents, Cli};

const PROGRAMS: [Cli; 3] = [Cli::Codex, Cli::CodexExec, Cli::CodexProto];

pub(super) async fn check(agents: &Agents, workspace: &Path, checks: &mut Vec<Check>) {
    let mut found = None;
    for cli in PROGRAMS {
        let agent = cli.name();
        match agents.program(cli, workspace) {
            Err(failure) => {
                let is_named = agents.is_named(cli);
                let state = if is_named { State::Bad } else { State::Missing };
                let mut check = Check::new("agents", agent, state, failure.message);
                check.advice = failure.hint;
                checks.push(check);
            }
            Ok(program) => {
                let env = agents.env(cli);
                checks.push(version(agents, agent, &program, &env).await);
                found.get_or_insert(env);
            }
        }
    }
    if let Some(env) = found {
        checks.push(login(&env));
    }
}

async fn version(agents: &Agents, agent: &'static str, program: &Path, env: &Env) -> Check {
    let shown = program.display().to_string();
    let mut check = match agents.versions().again(program, env).await {
        Ok(version) => {
            let mut check = serves(agent, version, &shown);
            check.version = Some(version.to_string());
            check
        }
        Err(failure) => {
            let detail = match failure.detail.as_deref().filter(|it| !it.is_empty()) {
                Some(detail) => format!("{}: {detail}", failure.message),
                None => failure.message,
            };
            let mut check = Check::new("agents", agent, State::Bad, detail);
            check.advice = failure.hint;
            check
        }
    };
    check.program = Some(shown);
    check
}

/// Whether a version speaks the wire of an agent.
fn serves(agent: &'static str, version: Version, shown: &str) -> Check {
    let check = |state, what: &str| {
        Check::new("agents", agent, state, format!("{version} at {shown}; {what}"))
    };
    match agent {
        "codex" if version < FIRST_APP_SERVER => {
            let what = format!("its app server is too old, {FIRST_APP_SERVER} is the first");
            check(State::Bad, &what).advice(
                "update it: npm install -g @openai/codex@latest; until then use --agent codex-exec",
            )
        }
        "codex" => check(State::Good, "has an app server"),
        "codex-proto" if version > LAST_PROTO => {
            let what = "has no `proto` any more, 0.42.0 was the last";
            check(State::Missing, what).advice(
                "use --agent codex; or put an old one beside it with `npm install --prefix DIR \
                 @openai/codex@0.42.0` and name its program in TIELINE_CODEX_PROTO",
            )
        }
        "codex-proto" => check(State::Good, "has `proto`"),
        _ => check(State::Good, "has `exec --json`"),
    }
}

/// Looks for a key or a file with credentials by name; neither is read.
fn login(env: &Env) -> Check {
    let name = "codex login";
    match super::config_file(env, "CODEX_HOME", ".codex", "auth.json") {
        Some(file) => {
            Check::new("agents", name, State::Good, format!("{} is there", file.display()))
        }
        None => {
            // A variable is not enough for every wire: the app server takes none any more.
            let detail = match super::is_set(env, &["CODEX_API_KEY", "OPENAI_API_KEY"]) {
                Some("CODEX_API_KEY") => "nobody; CODEX_API_KEY is set, which codex-exec takes",
                Some(_) => "nobody; OPENAI_API_KEY is set, which only old versions take",
                None => "nobody, and no key is set",
            };
            Check::new("agents", name, State::Missing, detail).advice(
                "log in once with `codex login`, or with a key: printenv OPENAI_API_KEY | codex \
                 login --with-api-key; a model provider of your own needs no login",
            )
        }
    }
}

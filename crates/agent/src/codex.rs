//! What the three wires of Codex have in common: the program, its version, its policies, its
//! failures.
//!
//! The wires themselves are [`codex_app`](crate::codex_app), [`codex_exec`](crate::codex_exec) and
//! [`codex_proto`](crate::codex_proto).

mod change;
mod command;
mod extras;
mod failure;
mod prompt;
mod tool;
mod version;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tieline_event::{Mode, Policy, ReviewTarget};
use tieline_proc::Env;

pub(crate) use change::{change_kind, file_change, file_changes, read_changes};
pub(crate) use command::{bare_command, bare_words, gist};
pub(crate) use extras::server_settings;
pub(crate) use failure::{LOG_IN, explain_exit, failure, is_retry, session_unknown};
pub use prompt::SavedPrompt;
pub(crate) use tool::{content, contents, mcp_output, plan_status, search_query, usage};
pub use version::{Version, Versions};

/// Variables that are Codex's own, by prefix: they reach it even when they look like secrets.
pub const OWN_VARIABLES: &[&str] = &["OPENAI_", "CODEX_", "AZURE_OPENAI_", "AWS_", "RUST_LOG"];

/// The first version whose app server tells commands and changed files of a thread.
pub const FIRST_APP_SERVER: Version = Version(0, 63, 0);

/// The last version that has the `proto` command.
pub const LAST_PROTO: Version = Version(0, 42, u32::MAX);

/// The program `codex` and what it is started with, whatever it is to speak.
#[derive(Debug, Clone)]
pub struct Codex {
    /// The program, absolute.
    pub program: PathBuf,
    /// Arguments before ours, from the user's configuration: `-c key=value`, `-p profile`, …
    pub args: Vec<String>,
    /// The environment it gets.
    pub env: Env,
    /// Each prompt names the workspace first.
    pub preamble: bool,
    /// The program it is to call at the end of each turn.
    pub notify: Option<Vec<String>>,
    /// What is known about versions.
    pub versions: Arc<Versions>,
}

/// What a mode and a policy mean for Codex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// When it asks and what commands reach.
    pub(crate) policy: Policy,
    /// Commands have a network inside the workspace's sandbox.
    pub(crate) network: bool,
    /// The model plans and does not act.
    pub(crate) plan: bool,
    /// The agent judges itself what it would otherwise ask for.
    pub(crate) reviewed: bool,
}

impl Rules {
    pub(crate) fn of(mode: Mode, policy: Option<Policy>) -> Self {
        Self {
            policy: policy.unwrap_or(Policy::of(mode)),
            network: policy.is_none() && mode == Mode::BypassPermissions,
            plan: policy.is_none() && mode == Mode::Plan,
            reviewed: policy.is_none() && mode == Mode::Auto,
        }
    }
}

/// What a review is about, in the words of the wires that know targets.
pub(crate) fn review_target(target: &ReviewTarget) -> Value {
    match target {
        ReviewTarget::Uncommitted => json!({"type": "uncommittedChanges"}),
        ReviewTarget::Branch { branch } => json!({"type": "baseBranch", "branch": branch}),
        ReviewTarget::Commit { sha, title } => {
            json!({"type": "commit", "sha": sha, "title": title})
        }
        ReviewTarget::Custom { instructions } => {
            json!({"type": "custom", "instructions": instructions})
        }
    }
}

/// Where Codex keeps its files.
pub(crate) fn home(env: &Env) -> PathBuf {
    match env.get("CODEX_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(env.get("HOME").unwrap_or_default()).join(".codex"),
    }
}

/// The setting for an effort.
pub(crate) fn effort_setting(effort: &str) -> String {
    format!("model_reasoning_effort={}", toml_string(effort))
}

/// A string of TOML. One of JSON is that too, but for characters no model and no path has.
pub(crate) fn toml_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// The override that makes Codex call a program at the end of each turn.
pub(crate) fn notify_override(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| toml_string(word)).collect();
    format!("notify=[{}]", quoted.join(","))
}

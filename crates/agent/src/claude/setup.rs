//! Starting Claude Code.

use std::ffi::OsString;
use std::path::PathBuf;

use tieline_event::{Failure, FailureCode, Mode, Policy};
use tieline_proc::Env;

use super::driver::ClaudeDriver;
use crate::driver::{Agent, Launch, Launching, Plan, Resume, checked_argument};

/// Variables that are Claude Code's own, by prefix: they reach it even when they look like secrets.
pub const OWN_VARIABLES: &[&str] = &[
    "ANTHROPIC_",
    "CLAUDE_",
    "AWS_",
    "GOOGLE_",
    "CLOUD_ML_",
    "VERTEX_",
    "DISABLE_",
    "MCP_",
    "IS_SANDBOX",
];

/// How long one process lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// One process for the conversation; it takes messages and answers on stdin.
    #[default]
    Conversation,
    /// One process for each turn. It can ask nothing.
    Turn,
}

/// Claude Code as an agent.
#[derive(Debug, Clone)]
pub struct Claude {
    /// The program, absolute.
    pub program: PathBuf,
    /// Arguments before ours, from the user's configuration.
    pub args: Vec<String>,
    /// The environment it gets.
    pub env: Env,
    /// How long one process lives.
    pub lifetime: Lifetime,
    /// Each prompt names the workspace first.
    pub preamble: bool,
    /// The name under which it was asked for.
    pub name: &'static str,
    /// Whether we run as root, which Claude Code refuses together with a mode that never asks.
    pub is_root: bool,
}

impl Agent for Claude {
    fn name(&self) -> &'static str {
        self.name
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(async move { self.plan(&launch) })
    }
}

/// The modes that Claude Code takes: from root none that never asks, unless in a sandbox.
pub fn modes(is_root: bool, is_sandbox: bool) -> &'static [Mode] {
    if is_root && !is_sandbox { &Mode::ASKING } else { &Mode::ALL }
}

impl Claude {
    fn plan(&self, launch: &Launch<'_>) -> Result<Plan, Failure> {
        if let Some(policy) = Policy::beyond(launch.mode, launch.policy) {
            return Err(Failure::new(
                FailureCode::BadRequest,
                format!("Claude Code has no policy {policy}"),
            )
            .hint("choose a --mode instead: default, plan, acceptEdits, auto, bypassPermissions, yolo"));
        }
        let modes = modes(self.is_root, self.env.get("IS_SANDBOX").is_some());
        if !modes.contains(&launch.mode) {
            return Err(Failure::new(
                FailureCode::AgentCannotStart,
                format!("Claude Code refuses the mode {} for root", launch.mode),
            )
            .hint(
                "run as another user, choose --mode acceptEdits, or set IS_SANDBOX=1 if this \
                 machine is a sandbox",
            ));
        }
        let mut args: Vec<OsString> = self.args.iter().map(OsString::from).collect();
        let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        match self.lifetime {
            Lifetime::Conversation => add(&[
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
                "--permission-prompt-tool",
                "stdio",
            ]),
            Lifetime::Turn => add(&[
                "--print",
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
            ]),
        }
        add(&["--permission-mode", mode_name(launch.mode)]);
        if let Some(model) = launch.model {
            add(&["--model", checked_argument("model", model)?]);
        }
        if let Some(effort) = launch.effort {
            add(&["--effort", checked_argument("effort", effort)?]);
        }
        if let Some(Resume { session, fork, at }) = launch.resume {
            add(&["--resume", checked_argument("session id", session)?]);
            if fork {
                add(&["--fork-session"]);
            }
            if let Some(at) = at {
                add(&["--resume-session-at", checked_argument("message id", at)?]);
            }
        }
        for directory in &launch.extras.directories {
            args.extend(["--add-dir".into(), directory.into()]);
        }
        let driver = ClaudeDriver::new(self.lifetime, launch.mode).launched(launch);
        let driver = Box::new(driver.offering(modes));
        Ok(Plan {
            args,
            one_turn: self.lifetime == Lifetime::Turn,
            preamble: self.preamble,
            ..Plan::new(self.program.clone(), self.env.clone(), driver)
        })
    }
}

/// Claude Code's name for a mode.
pub(super) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "default",
        Mode::Plan => "plan",
        Mode::AcceptEdits => "acceptEdits",
        Mode::Auto => "auto",
        Mode::BypassPermissions | Mode::Yolo => "bypassPermissions",
    }
}

/// What a process that ended by itself means for the turn it left open.
pub(super) fn explain_exit(exit: &crate::ExitInfo, spoke: bool) -> Failure {
    let stderr = exit.stderr.trim();
    let failure = |code, message: &str| Failure::new(code, message).detail(stderr);
    if stderr.contains("cannot be used with root/sudo") {
        return failure(
            FailureCode::AgentCannotStart,
            "Claude Code refuses a mode that never asks for root",
        )
        .hint("run as another user, choose --mode acceptEdits, or set IS_SANDBOX=1");
    }
    if stderr.contains("No conversation found with session ID") {
        return session_unknown().detail(stderr);
    }
    if stderr.contains("native binary not installed") {
        return failure(FailureCode::AgentCannotStart, "Claude Code is not installed completely")
            .hint("install it again: npm install -g @anthropic-ai/claude-code");
    }
    if stderr.contains("unknown option") || stderr.contains("requires --verbose") {
        return failure(FailureCode::AgentCannotStart, "this version of Claude Code is too old")
            .hint("update it: npm install -g @anthropic-ai/claude-code@latest");
    }
    let message = format!("Claude Code {} during the turn", exit.describe());
    match (exit.signal, spoke) {
        (Some(_), _) => failure(FailureCode::AgentKilled, &message)
            .hint("the conversation goes on with the next message"),
        (None, true) => failure(FailureCode::AgentExited, &message)
            .hint("the conversation goes on with the next message"),
        (None, false) => failure(
            FailureCode::AgentCannotStart,
            &format!("Claude Code {} before its first message", exit.describe()),
        )
        .hint("run `tieline doctor` to see what is wrong with it"),
    }
}

/// The native session is gone.
pub(super) fn session_unknown() -> Failure {
    Failure::new(FailureCode::SessionUnknown, "Claude Code does not know this session any more")
        .hint("begin afresh with --fresh, or with `tieline reset KEY`; the history stays")
}

//! The command line of the MCP server.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use tieline_event::Mode;

/// Let other agents delegate tasks: serve the Model Context Protocol on stdin and stdout.
///
/// Claude Code, Codex and every other client of the protocol start this command as one of their
/// servers. Its tools are those of `tieline task`: delegate, status, answer, cancel, result. A task
/// that was delegated is a task like any other: `tieline task list` shows it, `tieline task answer`
/// answers it, and it goes on when the client ends.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Claude Code:
  claude mcp add tieline -- tieline mcp

Codex:
  codex mcp add tieline -- tieline mcp

Any other client:
  { \"mcpServers\": { \"tieline\": { \"command\": \"tieline\", \"args\": [\"mcp\"] } } }

Codex gives up on a tool after a minute. With tool_timeout_sec = 3600 below [mcp_servers.tieline] in
its config.toml, and `tieline mcp --timeout 3500`, it waits for a whole task. `codex exec` asks nobody
and refuses these tools, unless default_tools_approval_mode = \"approve\" stands there too.

Clients may start their servers with few variables. Keys and TIELINE_ variables that tasks need go
into the registration: `claude mcp add -e NAME=value …`, `codex mcp add --env NAME=value …`.

A model chooses neither bypassPermissions nor yolo, nor an agent by its command line: only the flags
below and the configuration do. The commands of `verify` run in the sandbox of the task's mode.
Tasks that delegate in turn end at the third.")]
pub(crate) struct McpArgs {
    /// The agent of new tasks: auto, claude, codex, codex-exec, codex-proto, engine, demo or
    /// acp:NAME.
    ///
    /// `auto` takes another one than the client where it can: codex for Claude Code, claude for Codex.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The mode of new tasks, and the most a client may ask for; by default acceptEdits.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// Where new tasks work; by default here, which is where the client runs.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
    /// How long a call follows a task unless it says so itself.
    ///
    /// By default 10 minutes, and 50 seconds for Codex.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
}

//! The arguments of `tieline proto`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use tieline_event::Mode;
use tieline_front::sqeq::Address;

/// Serve a program: speak the queue protocol (SQ/EQ), one JSON object a line.
///
/// Submissions go in, events come out: `{"id","op"}` and `{"id","msg"}`. It is the protocol of `codex
/// proto`, with any agent behind it. Every session is a conversation like any other: `tieline list`
/// shows it, and its session id is its key.
///
/// On stdin and stdout there is one session. On a socket each connection has its own.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A session, line by line (what comes back is behind <):
  {\"id\":\"0\",\"op\":{\"type\":\"configure_session\"}}
  < {\"id\":\"0\",\"msg\":{\"type\":\"session_configured\",\"session_id\":\"01…\",…}}
  {\"id\":\"1\",\"op\":{\"type\":\"user_turn\",\"items\":[{\"type\":\"text\",\"text\":\"hello\"}]}}
  < {\"id\":\"1\",\"msg\":{\"type\":\"task_started\",…}}
  < {\"id\":\"1\",\"msg\":{\"type\":\"exec_approval_request\",\"call_id\":\"c1\",…}}
  {\"id\":\"2\",\"op\":{\"type\":\"exec_approval\",\"id\":\"c1\",\"decision\":\"approved\"}}
  < {\"id\":\"1\",\"msg\":{\"type\":\"task_complete\",\"last_agent_message\":\"…\",…}}
  {\"id\":\"3\",\"op\":{\"type\":\"shutdown\"}}

Examples:
  printf '%s\\n' '{\"id\":\"0\",\"op\":{\"type\":\"configure_session\"}}' \\
    '{\"id\":\"1\",\"op\":{\"type\":\"user_turn\",\"items\":[{\"type\":\"text\",\"text\":\"hi\"}]}}' |
    tieline proto --agent demo
  tieline proto --compat upstream
          for clients of `codex proto`: the session is there at once
  tieline proto --listen unix:$XDG_RUNTIME_DIR/tieline.sock
          for any number of programs of yours
  tieline proto --listen tcp:127.0.0.1:7000 --token-file ~/.tieline-token
          the first line of a client is {\"id\":\"0\",\"op\":{\"type\":\"authenticate\",\"token\":\"…\"}}
  tieline proto --schema
          print the JSON Schema of every line")]
pub(crate) struct ProtoArgs {
    /// The agent of new sessions: auto, claude, codex, codex-exec, codex-proto, engine, demo or
    /// acp:NAME.
    ///
    /// A session that exists keeps the agent it began with.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The mode of new sessions: plan, default, acceptEdits, auto, bypassPermissions or yolo.
    ///
    /// The policies that a client sends go before it.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// The model of new sessions, by the agent's own name for it.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Where to listen: stdio, unix:PATH or tcp:ADDRESS:PORT.
    ///
    /// A socket is for you alone (mode 0600, and the user of the other side is checked). A port asks
    /// for a token, which is printed on stderr unless it is in a file.
    #[arg(long, value_name = "PLACE", default_value = "stdio")]
    pub(crate) listen: Address,
    /// Keep the token of a port in this file; it is made if it is not there.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Listen on an address that other machines can reach. The protocol has no encryption.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// What to follow where the protocol's description and `codex proto` do not agree.
    #[arg(long, value_enum, default_value = "seed")]
    pub(crate) compat: CompatArg,
    /// Stop a turn after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds(1))]
    pub(crate) timeout: Option<u64>,
    /// Print the JSON Schema of the protocol and end.
    #[arg(long)]
    pub(crate) schema: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompatArg {
    /// The description: configure_session comes first, a new turn replaces the running one.
    Seed,
    /// `codex proto` 0.42: the session is there at once, a new turn adds to the running one.
    Upstream,
}

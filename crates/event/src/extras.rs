//! What a client brings along for the agent's process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// What a client brings along for the agent's process. It is not kept: addresses and variables may
/// hold secrets, and whoever opens the conversation again brings them again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// MCP servers beside those of the agent's own configuration.
    pub mcp_servers: Vec<McpServer>,
    /// Directories beside the workspace, absolute.
    pub directories: Vec<PathBuf>,
}

impl Extras {
    /// Nothing.
    pub const NONE: &'static Self = &Self { mcp_servers: Vec::new(), directories: Vec::new() };
}

/// An MCP server the agent is to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
}

/// How an MCP server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// As a process.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets.
        env: BTreeMap<String, String>,
    },
    /// By HTTP.
    Http {
        /// Where.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
    },
    /// By HTTP with server-sent events, the older way.
    Sse {
        /// Where.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for McpTransport {
    /// Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("n_args", &args.len())
                .field("env", &env.keys().collect::<Vec<_>>())
                .finish(),
            Self::Http { .. } => f.write_str("Http"),
            Self::Sse { .. } => f.write_str("Sse"),
        }
    }
}

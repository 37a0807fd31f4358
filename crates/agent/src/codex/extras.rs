//! What a client brings along, for the wires that are told by their command line.

use tieline_event::{Extras, McpTransport};

use super::toml_string;
use crate::servers;

/// Settings for the client's MCP servers, and a sentence for each server that must do without one.
/// Everybody on the machine can read a command line, so that only what a server's own command line
/// shows as well may stand there.
pub(crate) fn server_settings(extras: &Extras) -> (Vec<String>, Vec<String>) {
    let (mut settings, mut left_out) = (Vec::new(), Vec::new());
    for (name, transport) in servers::named(&extras.mcp_servers) {
        match transport {
            McpTransport::Stdio { command, args, env } if env.is_empty() => {
                let args: Vec<String> = args.iter().map(|word| toml_string(word)).collect();
                let (command, args) = (toml_string(command), args.join(","));
                settings.push(format!("mcp_servers.{name}={{command={command},args=[{args}]}}"));
            }
            McpTransport::Stdio { .. } => left_out.push(not_used(&name, "its variables")),
            McpTransport::Http { .. } | McpTransport::Sse { .. } => {
                left_out.push(not_used(&name, "its address"));
            }
        }
    }
    (settings, left_out)
}

fn not_used(name: &str, what: &str) -> String {
    format!(
        "the client's MCP server {name} is not used: {what} would stand on a command line that \
         everybody can read; --agent codex takes it"
    )
}

#[test]
fn nothing_that_may_be_secret_stands_on_a_command_line() {
    let server = |name: &str, transport| tieline_event::McpServer { name: name.into(), transport };
    let stdio = |env: &[(&str, &str)]| McpTransport::Stdio {
        command: "/bin/a \"b\"".to_owned(),
        args: vec!["-x".to_owned(), "é".to_owned()],
        env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    };
    let url = "https://x/?key=hunter2".to_owned();
    let http = McpTransport::Http { url, headers: Default::default() };
    let extras = Extras {
        mcp_servers: vec![
            server("plain", stdio(&[])),
            server("env", stdio(&[("TOKEN", "hunter2")])),
            server("web", http),
        ],
        directories: Vec::new(),
    };
    let (settings, left_out) = server_settings(&extras);
    assert_eq!(settings, [r#"mcp_servers.plain={command="/bin/a \"b\"",args=["-x","é"]}"#]);
    assert_eq!(left_out.len(), 2);
    assert!(!left_out.concat().contains("hunter2"), "{left_out:?}");
}

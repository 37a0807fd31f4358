//! MCP servers that a client brings along.

use std::collections::BTreeSet;

use tieline_event::{McpServer, McpTransport};

/// Each server with a name that every agent takes: letters, digits, `-` and `_`, no name twice.
pub(crate) fn named(servers: &[McpServer]) -> Vec<(String, &McpTransport)> {
    let mut taken = BTreeSet::new();
    let mut one = |server: &McpServer| {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let plain = |c: char| if is_plain(&c) { c } else { '_' };
        let name: String = match server.name.as_str() {
            "" => "server".to_owned(),
            name => name.chars().map(plain).collect(),
        };
        let mut unique = name.clone();
        let mut number = 1;
        while !taken.insert(unique.clone()) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        unique
    };
    servers.iter().map(|server| (one(server), &server.transport)).collect()
}

/// What is not to be kept of a line that tells an agent about these servers.
pub(crate) fn secrets(servers: &[McpServer]) -> Vec<String> {
    let mut secrets = Vec::new();
    for server in servers {
        match &server.transport {
            McpTransport::Stdio { env, .. } => secrets.extend(env.values().cloned()),
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                secrets.push(url.clone());
                secrets.extend(headers.values().cloned());
            }
        }
    }
    secrets
}

/// What to say of a server that did not start.
pub(crate) fn failed(name: &str, why: &str) -> (&'static str, String) {
    ("mcp_failed", format!("the MCP server {name} did not start: {why}"))
}

#[test]
fn names_are_plain_and_no_name_comes_twice() {
    let server = |name: &str| McpServer {
        name: name.to_owned(),
        transport: McpTransport::Http { url: "u".to_owned(), headers: Default::default() },
    };
    let servers = ["a b", "a.b", "a_b", "", "ok-1"].map(server);
    let names: Vec<String> = named(&servers).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a_b", "a_b_2", "a_b_3", "server", "ok-1"]);
}

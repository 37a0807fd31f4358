//! What the tests have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use tieline_engine::mcp::{CallResult, Limits, Mcp};
use tieline_engine::truncate::Limit;
use tieline_event::{McpServer, McpTransport};
use tieline_proc::Env;
use tieline_testkit::real;
use tieline_wire::responses::Output;

/// A wait that is over only if something is broken.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The fake server under a name.
pub(crate) fn fake(name: &str, args: &[&str], env: &[(&str, &str)]) -> McpServer {
    tieline_proc::set_host_program(real::fake_agent_program());
    let command = real::fake_mcp_program().display().to_string();
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    McpServer {
        name: name.to_owned(),
        transport: McpTransport::Stdio { command, args, env: pairs(env) },
    }
}

/// A server behind HTTP.
pub(crate) fn remote(url: &str, headers: &[(&str, &str)]) -> McpServer {
    let transport = McpTransport::Http { url: url.to_owned(), headers: pairs(headers) };
    McpServer { name: "web".to_owned(), transport }
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// These servers, with limits that no busy machine reaches.
pub(crate) fn mcp(servers: Vec<McpServer>) -> Mcp {
    let mut limits = Limits::default();
    limits.start = LONG;
    limits.call = LONG;
    let mut env = Env::empty();
    env.set("SHARED", "from the session");
    Mcp::with_limits(servers, env, limits)
}

/// Calls the tool `echo` of a server.
pub(crate) async fn echo(mcp: &Mcp, server: &str, text: &str) -> Result<CallResult, String> {
    let arguments = serde_json::json!({ "text": text }).to_string();
    mcp.call(&format!("mcp__{server}__echo"), &arguments).await
}

/// The same, for the text of the answer.
pub(crate) async fn said(mcp: &Mcp, server: &str, text: &str) -> String {
    let result = echo(mcp, server, text).await.unwrap();
    match result.to_model(Limit::default(), true) {
        Output::Text(text) => text.to_string(),
        Output::Parts(parts) => panic!("{parts:?}"),
    }
}

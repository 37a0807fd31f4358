//! Servers of tools.

use tieline_event::{McpServer, ServerTool};
use tieline_proc::Env;
use tieline_wire::responses::Tool;

/// Servers of tools.
pub(crate) struct Mcp;

impl Mcp {
    pub(crate) fn new(_servers: Vec<McpServer>, _env: Env) -> Self {
        Self
    }
    pub(crate) fn is_parallel(&self, _name: &str) -> bool {
        false
    }
    pub(crate) fn has(&self, _name: &str) -> bool {
        false
    }
    pub(crate) async fn tools(&self) -> Vec<Tool> {
        Vec::new()
    }
    pub(crate) async fn list(&self) -> Vec<ServerTool> {
        Vec::new()
    }
    pub(crate) fn elicited(&self, _: &str, _: &str, _: Option<Option<String>>) -> bool {
        false
    }
}

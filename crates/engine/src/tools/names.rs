//! Names of servers' tools, in the characters and the length that models' providers take.

use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// The longest name of a function.
const LONGEST: usize = 64;

/// Which server a tool is of, and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerToolName {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
}

/// The names that tools of servers have for the model: `mcp__server__tool`.
///
/// Where that is no name a provider takes, or could mean two tools, it has a number made of both
/// names at its end. So a tool is called the same whatever other tools there are.
pub fn names(tools: impl IntoIterator<Item = ServerToolName>) -> BTreeMap<String, ServerToolName> {
    let mut tools: Vec<ServerToolName> = tools.into_iter().collect();
    tools.sort();
    tools.dedup();
    let mut named = BTreeMap::new();
    for tool in tools {
        let mut name = plain_name(&tool).unwrap_or_else(|| numbered(&tool, 0));
        let mut salt = 0;
        while named.contains_key(&name) {
            salt += 1;
            name = numbered(&tool, salt);
        }
        named.insert(name, tool);
    }
    named
}

/// The name without a number, if it can only mean this tool.
fn plain_name(tool: &ServerToolName) -> Option<String> {
    let name = format!("mcp__{}__{}", tool.server, tool.tool);
    let is_clear = !tool.server.contains("__")
        && !tool.server.ends_with('_')
        && !tool.server.is_empty()
        && !tool.tool.is_empty();
    (is_clear && name.len() <= LONGEST && name.chars().all(is_allowed)).then_some(name)
}

fn numbered(tool: &ServerToolName, salt: u8) -> String {
    let suffix = format!("_{:012x}", hash(tool, salt) & 0xffff_ffff_ffff);
    let clean = |text: &str| -> String {
        text.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
    };
    let mut name = format!("mcp__{}__{}", clean(&tool.server), clean(&tool.tool));
    // It is ASCII by now, so every place is a boundary.
    name.truncate(LONGEST - suffix.len());
    name + &suffix
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// FNV-1a: the same in every release, which the standard library's is not bound to be.
fn hash(tool: &ServerToolName, salt: u8) -> u64 {
    let bytes = tool.server.bytes().chain([0xff]).chain(tool.tool.bytes()).chain([salt]);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

//! Names that every model takes for the tools of servers.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use sha2::{Digest, Sha256};

#[cfg(test)]
mod tests;

/// The longest name of a function that providers take.
const LONGEST: usize = 64;

/// The digits of a hash behind a name, with the line before them.
const HASH: usize = 9;

/// Each server's name in letters, digits, `-` and `_`; no name twice.
pub(super) fn of_servers<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let unique = |name: &str| {
        let name = if name.is_empty() { "server".to_owned() } else { plain(name) };
        let mut unique = name.clone();
        let mut number = 1;
        while !taken.insert(unique.clone()) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        unique
    };
    names.into_iter().map(unique).collect()
}

/// The full name of each tool, given as server and tool. Those that would share one, or are too
/// long, have a hash of what they are called really at their end, which stays the same next time.
pub(super) fn of_tools(tools: &[(&str, &str)]) -> Vec<String> {
    let cleaned: Vec<String> =
        tools.iter().map(|(server, tool)| plain(&format!("mcp__{server}__{tool}"))).collect();
    let mut times = HashMap::new();
    for name in &cleaned {
        *times.entry(name.as_str()).or_insert(0) += 1;
    }
    let name = |(name, (server, tool)): (&String, &(&str, &str))| {
        let is_alone = times.get(name.as_str()) == Some(&1);
        if is_alone && name.len() <= LONGEST {
            return name.clone();
        }
        // The name is plain ASCII by now: a character is a byte.
        let mut short: String = name.chars().take(LONGEST - HASH).collect();
        short.push('_');
        short.push_str(&hash(server, tool));
        short
    };
    cleaned.iter().zip(tools).map(name).collect()
}

fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Eight digits for a tool.
fn hash(server: &str, tool: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(server.as_bytes());
    hasher.update([0]);
    hasher.update(tool.as_bytes());
    let mut digits = String::new();
    for byte in hasher.finalize().iter().take((HASH - 1) / 2) {
        // Writing to a `String` cannot fail.
        let written = write!(digits, "{byte:02x}");
        debug_assert!(written.is_ok());
    }
    digits
}

//! The tools of all servers under the names that the model knows.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tieline_event::{Json, ServerTool};
use tieline_wire::responses;

use super::leave::Hint;
use super::names;

/// The tools of all servers.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// In the order of servers, then as each gave them.
    pub(super) entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
}

/// A tool of a server.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) full_name: String,
    /// Which of the servers.
    pub(super) server: usize,
    pub(super) server_name: String,
    pub(super) tool: String,
    description: Option<String>,
    parameters: Arc<RawValue>,
    pub(super) hint: Hint,
}

impl Table {
    /// From the tools that each server gave. A name that one server gives twice counts once.
    pub(super) fn new(servers: &[(String, Vec<rmcp::model::Tool>)]) -> Self {
        let mut seen = std::collections::HashSet::new();
        let mut tools = Vec::new();
        for (at, (server, offered)) in servers.iter().enumerate() {
            let new = offered.iter().filter(|tool| seen.insert((at, tool.name.to_string())));
            tools.extend(new.map(|tool| (at, server.as_str(), tool)));
        }
        let pairs: Vec<(&str, &str)> =
            tools.iter().map(|(_, server, tool)| (*server, &*tool.name)).collect();
        let full_names = names::of_tools(&pairs);
        let entry = |((server, server_name, tool), full_name): (
            (usize, &str, &rmcp::model::Tool),
            String,
        )| Entry {
            full_name,
            server,
            server_name: server_name.to_owned(),
            tool: tool.name.to_string(),
            description: tool.description.as_deref().or(tool.title.as_deref()).map(str::to_owned),
            parameters: parameters(&tool.input_schema),
            hint: match tool.annotations.as_ref().and_then(|it| it.read_only_hint) {
                Some(true) => Hint::ReadOnly,
                _ => Hint::None,
            },
        };
        let entries: Vec<Entry> = tools.into_iter().zip(full_names).map(entry).collect();
        let by_name =
            entries.iter().enumerate().map(|(at, entry)| (entry.full_name.clone(), at)).collect();
        Self { entries, by_name }
    }

    pub(super) fn get(&self, full_name: &str) -> Option<&Entry> {
        self.by_name.get(full_name).and_then(|at| self.entries.get(*at))
    }
}

impl Entry {
    /// For the model.
    pub(super) fn to_model(&self) -> responses::Tool {
        responses::Tool::Function {
            name: self.full_name.clone(),
            description: self.description.clone().unwrap_or_default(),
            strict: false,
            parameters: Arc::clone(&self.parameters),
        }
    }

    /// For a list.
    pub(super) fn to_list(&self) -> ServerTool {
        ServerTool {
            server: self.server_name.clone(),
            name: self.tool.clone(),
            description: self.description.clone(),
            input_schema: Json::from_raw(&self.parameters),
        }
    }
}

/// A schema as providers take it: they refuse an object that says nothing of its fields.
fn parameters(schema: &Map<String, Value>) -> Arc<RawValue> {
    let mut schema = schema.clone();
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    to_raw_value(&schema).map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from)
}

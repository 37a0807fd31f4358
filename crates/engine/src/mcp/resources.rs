//! Documents of servers, which the model lists and reads with tools of ours.

use std::sync::Arc;

use futures::future::join_all;
use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tieline_wire::responses::Tool;

use super::Mcp;
use super::server::Server;

/// The tools for documents.
const LIST: &str = "list_mcp_resources";
const LIST_TEMPLATES: &str = "list_mcp_resource_templates";
const READ: &str = "read_mcp_resource";

/// So many pages are read where all are wanted.
const PAGES: usize = 32;

/// Documents, or patterns of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Documents {
    /// Documents.
    Resources,
    /// Patterns of documents.
    Templates,
}

impl Documents {
    /// The list's name in an answer.
    fn field(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        match self {
            Self::Resources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page))
            }
            Self::Templates => ClientRequest::ListResourceTemplatesRequest(
                ListResourceTemplatesRequest::with_param(page),
            ),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    server: Option<String>,
    cursor: Option<String>,
    uri: Option<String>,
}

/// Whether a name is one of the tools for documents.
pub(super) fn is_ours(name: &str) -> bool {
    matches!(name, LIST | LIST_TEMPLATES | READ)
}

/// The tools for documents.
pub(super) fn tools() -> Vec<Tool> {
    let list = json!({"type": "object", "properties": {
        "server": {"type": "string", "description": "One MCP server; all if it is left out."},
        "cursor": {"type": "string", "description": "Where the last page of that server ended."},
    }, "additionalProperties": false});
    let read = json!({"type": "object", "properties": {
        "server": {"type": "string", "description": "The MCP server, as the list names it."},
        "uri": {"type": "string", "description": "The document's address, as the list has it."},
    }, "required": ["server", "uri"], "additionalProperties": false});
    let tool = |name: &str, description: &str, parameters: &Value| Tool::Function {
        name: name.to_owned(),
        description: description.to_owned(),
        strict: false,
        parameters: serde_json::value::to_raw_value(parameters)
            .map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from),
    };
    vec![
        tool(LIST, "Lists documents that MCP servers offer, such as files and schemas.", &list),
        tool(LIST_TEMPLATES, "Lists patterns of addresses of documents of MCP servers.", &list),
        tool(READ, "Reads a document of an MCP server.", &read),
    ]
}

impl Mcp {
    /// Calls one of the tools for documents; gives JSON. None if it is another tool.
    pub async fn call_ours(&self, name: &str, arguments: &str) -> Option<Result<String, String>> {
        if !is_ours(name) {
            return None;
        }
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        let args: Args = match serde_json::from_str(arguments) {
            Ok(args) => args,
            Err(error) => return Some(Err(format!("the arguments are not understood: {error}"))),
        };
        Some(match name {
            LIST => self.documents(Documents::Resources, args.server, args.cursor).await,
            LIST_TEMPLATES => self.documents(Documents::Templates, args.server, args.cursor).await,
            _ => self.read(args.server, args.uri).await,
        })
    }

    /// The documents of all servers, by server, as JSON. A server that cannot say has none.
    pub async fn by_server(&self, what: Documents) -> Value {
        self.startup().await;
        let of = join_all(self.servers.iter().map(|server| self.all_of(server, what))).await;
        let named = self.servers.iter().zip(of);
        let of = named.filter_map(|(server, of)| Some((server.name.clone(), Value::Array(of?))));
        Value::Object(of.collect())
    }

    pub(super) async fn have_resources(&self) -> bool {
        let alive = join_all(self.servers.iter().map(Server::alive)).await;
        alive.into_iter().flatten().any(|connection| connection.has_resources())
    }

    /// One page of one server, or everything of all.
    async fn documents(
        &self,
        what: Documents,
        server: Option<String>,
        cursor: Option<String>,
    ) -> Result<String, String> {
        let Some(name) = server else {
            if cursor.is_some() {
                return Err("a cursor belongs to one server; name it".to_owned());
            }
            let of = self.by_server(what).await;
            let mut listed = Vec::new();
            for (server, documents) in of.as_object().into_iter().flatten() {
                listed.extend(
                    documents.as_array().into_iter().flatten().map(|it| of_server(server, it)),
                );
            }
            return Ok(json!({ what.field(): listed }).to_string());
        };
        let page = self.request(self.named(&name)?, what.request(cursor)).await?;
        let listed = page.get(what.field()).and_then(Value::as_array);
        let listed: Vec<Value> =
            listed.into_iter().flatten().map(|it| of_server(&name, it)).collect();
        let mut told = Map::new();
        told.insert("server".to_owned(), name.into());
        told.insert(what.field().to_owned(), listed.into());
        if let Some(next) = page.get("nextCursor").filter(|next| !next.is_null()) {
            told.insert("nextCursor".to_owned(), next.clone());
        }
        Ok(Value::Object(told).to_string())
    }

    async fn read(&self, server: Option<String>, uri: Option<String>) -> Result<String, String> {
        let (Some(server), Some(uri)) = (server, uri) else {
            return Err("a server and an uri are needed; list_mcp_resources has them".to_owned());
        };
        let params = ReadResourceRequestParams::new(uri.clone());
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let answer = self.request(self.named(&server)?, request).await?;
        let contents = answer.get("contents").cloned().unwrap_or_default();
        Ok(json!({"server": server, "uri": uri, "contents": contents}).to_string())
    }

    fn named(&self, name: &str) -> Result<&Server, String> {
        let found = self.servers.iter().find(|server| server.name == name);
        found.ok_or_else(|| format!("there is no MCP server {name:?}"))
    }

    async fn all_of(&self, server: &Server, what: Documents) -> Option<Vec<Value>> {
        if !server.alive().await?.has_resources() {
            return None;
        }
        let mut listed = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = match self.request(server, what.request(cursor)).await {
                Ok(page) => page,
                Err(why) => {
                    tracing::warn!(server = server.name, why, "documents cannot be listed");
                    break;
                }
            };
            listed.extend(
                page.get(what.field()).and_then(Value::as_array).into_iter().flatten().cloned(),
            );
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Some(listed)
    }
}

/// A document with its server's name.
fn of_server(server: &str, document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(fields) = document.as_object_mut() {
        fields.insert("server".to_owned(), server.into());
    }
    document
}

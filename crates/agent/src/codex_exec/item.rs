//! Items of this wire as items of ours.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{
    ChangeKind, Content, ImageSource, ItemBody, ItemStatus, Json, Plan, PlanEntry, PlanStatus,
    ToolClass,
};
use tieline_wire::codex_exec::{Action, Body, Item, Phase, TodoList, WebSearch};

use crate::codex::{bare_command, change_kind, file_change};
use crate::words::first_line;

/// What the item is, save for steps and warnings, which are no items of ours.
pub(super) fn body(item: &Item<'_>) -> ItemBody {
    match &item.body {
        Body::AgentMessage(said) => ItemBody::AgentMessage { text: (&*said.text).into() },
        Body::Reasoning(said) => {
            ItemBody::Reasoning { text: (&*said.text).into(), signature: None }
        }
        Body::Command(it) => ItemBody::Command {
            command: bare_command(&it.command),
            cwd: None,
            description: None,
            output: (&*it.aggregated_output).into(),
            exit_code: it.exit_code,
            background: false,
        },
        Body::FileChange(it) => ItemBody::FileChange {
            changes: it
                .changes
                .iter()
                .map(|change| {
                    let kind = change_kind(&change.kind).unwrap_or(ChangeKind::Update);
                    file_change(change.path.to_string(), kind, None, None)
                })
                .collect(),
        },
        Body::McpToolCall(it) => ItemBody::ToolCall {
            class: ToolClass::Mcp,
            tool: it.tool.to_string(),
            server: Some(it.server.to_string()),
            title: None,
            input: it.arguments.map(Json::from_raw),
            output: mcp_output(it.result, it.error),
        },
        Body::CollabToolCall(it) => ItemBody::ToolCall {
            class: ToolClass::SubAgent,
            tool: it.tool.to_string(),
            server: None,
            title: it.prompt.as_deref().map(first_line),
            input: Some(Json::from_raw(item.raw)),
            output: it
                .agents_states
                .map(|states| Content::text(states.get()))
                .into_iter()
                .collect(),
        },
        Body::WebSearch(it) => ItemBody::WebSearch { query: search(it), output: Vec::new() },
        Body::TodoList(_) | Body::Error(_) | Body::Unknown => ItemBody::ToolCall {
            class: ToolClass::Generic,
            tool: item.kind.to_string(),
            server: None,
            title: None,
            input: Some(Json::from_raw(item.raw)),
            output: Vec::new(),
        },
    }
}

/// How the item ended, if it has.
pub(super) fn status(item: &Item<'_>, phase: Phase) -> ItemStatus {
    if phase != Phase::Completed {
        return ItemStatus::InProgress;
    }
    match item.status.as_deref() {
        Some("failed") => ItemStatus::Failed,
        // Nobody could say no on this wire: it was a rule.
        Some("declined") => ItemStatus::Denied,
        // It was flushed at the end of a turn that did not wait for it.
        Some("in_progress" | "cancelled" | "interrupted") => ItemStatus::Cancelled,
        _ => match &item.body {
            Body::Command(it) if it.exit_code.is_some_and(|code| code != 0) => ItemStatus::Failed,
            _ => ItemStatus::Ok,
        },
    }
}

/// The steps. The wire tells only whether each is done.
pub(super) fn plan(list: &TodoList<'_>) -> Plan {
    let entry = |text: &str, completed: bool| PlanEntry {
        text: text.to_owned(),
        status: if completed { PlanStatus::Completed } else { PlanStatus::Pending },
    };
    let entries = list.items.iter().map(|todo| entry(&todo.text, todo.completed)).collect();
    Plan { entries, explanation: None }
}

/// What is searched for, or which page is looked at.
fn search(it: &WebSearch<'_>) -> String {
    if !it.query.is_empty() {
        return it.query.to_string();
    }
    let action: Action =
        it.action.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    match (action.query, action.pattern, action.url) {
        (Some(query), ..) => query,
        (None, Some(pattern), Some(url)) => format!("{pattern} in {url}"),
        (None, pattern, url) => url.or(pattern).unwrap_or_default(),
    }
}

/// What a tool of an MCP server gave back, or why it could not be called.
pub(super) fn mcp_output(result: Option<&RawValue>, error: Option<&RawValue>) -> Vec<Content> {
    #[derive(Deserialize)]
    struct Outcome<'a> {
        #[serde(borrow, default)]
        content: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    let mut output: Vec<Content> = match result {
        None => Vec::new(),
        Some(result) => match serde_json::from_str::<Outcome<'_>>(result.get()) {
            Ok(outcome) => outcome.content.into_iter().map(mcp_content).collect(),
            Err(_) => vec![Content::text(result.get())],
        },
    };
    output.extend(error.map(|error| {
        let message = serde_json::from_str::<Message>(error.get()).map(|it| it.message);
        let message = message.or_else(|_| serde_json::from_str::<String>(error.get()));
        Content::text(message.unwrap_or_else(|_| error.get().to_owned()))
    }));
    output
}

/// A piece of a result in MCP's form; one that is not known stays JSON.
fn mcp_content(raw: &RawValue) -> Content {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Piece {
        Text {
            text: String,
        },
        Image {
            data: String,
            #[serde(rename = "mimeType")]
            mime: String,
        },
        Resource {
            resource: Resource,
        },
        ResourceLink {
            uri: String,
            name: Option<String>,
        },
    }
    #[derive(Deserialize)]
    struct Resource {
        uri: String,
        text: String,
    }
    match serde_json::from_str(raw.get()) {
        Ok(Piece::Text { text }) => Content::text(text),
        Ok(Piece::Image { data, mime }) => {
            Content::Image { mime, source: ImageSource::Base64(data.into()) }
        }
        Ok(Piece::Resource { resource: Resource { uri, text } }) => {
            Content::Resource { uri, text: text.into() }
        }
        Ok(Piece::ResourceLink { uri, name }) => Content::Link { uri, name },
        Err(_) => Content::text(raw.get()),
    }
}

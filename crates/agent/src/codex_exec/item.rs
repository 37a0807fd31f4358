//! Items of this wire as items of ours.

use tieline_event::{
    ChangeKind, Content, Gist, ItemBody, ItemStatus, Json, Plan, PlanEntry, PlanStatus, ToolClass,
    ToolKind,
};
use tieline_wire::codex_exec::{Body, Item, Phase, TodoList};

use crate::codex::{bare_command, change_kind, file_change, mcp_output, search_query};
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
            gist: None,
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
            gist: None,
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
            gist: Some(Gist::of(ToolKind::Think)),
        },
        Body::WebSearch(it) => {
            ItemBody::WebSearch { query: search_query(&it.query, it.action), output: Vec::new() }
        }
        Body::TodoList(_) | Body::Error(_) | Body::Unknown => ItemBody::ToolCall {
            class: ToolClass::Generic,
            tool: item.kind.to_string(),
            server: None,
            title: None,
            input: Some(Json::from_raw(item.raw)),
            output: Vec::new(),
            gist: None,
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

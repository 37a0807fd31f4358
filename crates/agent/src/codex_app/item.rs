//! Items of the server as items of ours.

use serde_json::value::RawValue;
use tieline_event::{
    ChangeKind, Content, FileChange, Gist, ItemBody, ItemStatus, Json, Text, ToolClass, ToolKind,
};
use tieline_wire::codex_app::{Change, Item};
use tieline_wire::text::Str;

use crate::codex::{
    bare_command, change_kind, contents, file_change, gist, mcp_output, search_query,
};
use crate::words::first_line;

/// What an item is; `None` for a kind nobody knows. `whole` makes a text of what may have streamed.
pub(super) fn body(item: &Item<'_>, whole: impl Fn(&str) -> Text) -> Option<ItemBody> {
    let whole = |text: &Option<Str<'_>>| whole(text.as_deref().unwrap_or_default());
    let owned = |text: &Option<Str<'_>>| text.as_deref().unwrap_or_default().to_owned();
    Some(match &*item.kind {
        "agentMessage" => ItemBody::AgentMessage { text: whole(&item.text) },
        "plan" => ItemBody::Plan { text: whole(&item.text) },
        "reasoning" => ItemBody::Reasoning { text: reasoning(item).into(), signature: None },
        "commandExecution" => ItemBody::Command {
            command: bare_command(item.command.as_deref().unwrap_or_default()),
            cwd: item.cwd.as_deref().map(str::to_owned),
            description: None,
            output: whole(&item.aggregated_output),
            exit_code: item.exit_code,
            background: false,
            gist: gist(item.command_actions),
        },
        "fileChange" => ItemBody::FileChange { changes: changes(&item.changes) },
        "mcpToolCall" => ItemBody::ToolCall {
            class: ToolClass::Mcp,
            tool: owned(&item.tool),
            server: item.server.as_deref().map(str::to_owned),
            title: None,
            input: item.arguments.map(Json::from_raw),
            output: mcp_output(item.result, item.error),
            gist: None,
        },
        "dynamicToolCall" => ItemBody::ToolCall {
            class: ToolClass::Dynamic,
            tool: owned(&item.tool),
            server: item.namespace.as_deref().map(str::to_owned),
            title: None,
            input: item.arguments.map(Json::from_raw),
            output: item.content_items.map(contents).unwrap_or_default(),
            gist: None,
        },
        "functionCallOutput" => ItemBody::ToolCall {
            class: ToolClass::Generic,
            tool: owned(&item.name),
            server: item.namespace.as_deref().map(str::to_owned),
            title: None,
            input: None,
            output: item.output.map(contents).unwrap_or_default(),
            gist: None,
        },
        "collabAgentToolCall" => sub_agent(
            item.tool.as_deref().unwrap_or("agent"),
            item.prompt.as_deref().map(first_line),
        ),
        "subAgentActivity" => sub_agent(
            item.activity.as_deref().unwrap_or("activity"),
            item.agent_path.as_deref().map(str::to_owned),
        ),
        "webSearch" => ItemBody::WebSearch {
            query: search_query(item.query.as_deref().unwrap_or_default(), item.action),
            output: item.results.map(contents).unwrap_or_default(),
        },
        "imageView" => picture(item.path.as_deref()),
        "imageGeneration" => picture(item.saved_path.as_deref()),
        "sleep" => ItemBody::ToolCall {
            class: ToolClass::Generic,
            tool: "sleep".to_owned(),
            server: None,
            title: item.duration_ms.map(|time| format!("wait {time} ms")),
            input: None,
            output: Vec::new(),
            gist: None,
        },
        "enteredReviewMode" | "exitedReviewMode" => {
            ItemBody::Review { text: owned(&item.review).into(), outcome: None }
        }
        "contextCompaction" => ItemBody::Compaction { trigger: None, tokens_before: None },
        _ => return None,
    })
}

/// How far an item is. One without a status is over when the server says so.
pub(super) fn status(item: &Item<'_>, is_over: bool) -> ItemStatus {
    match item.status.as_deref() {
        _ if !is_over => ItemStatus::InProgress,
        Some("failed" | "errored" | "systemError") => ItemStatus::Failed,
        Some("declined") => ItemStatus::Declined,
        Some("interrupted" | "cancelled" | "canceled") => ItemStatus::Cancelled,
        _ => ItemStatus::Ok,
    }
}

/// The files of a change.
pub(super) fn changes(changes: &[Change]) -> Vec<FileChange> {
    let one = |change: &Change| {
        // Whatever happens to it, it does not stay as it is.
        let kind = change_kind(&change.kind.kind).unwrap_or(ChangeKind::Update);
        let moved = change.kind.move_path.clone();
        file_change(change.path.clone(), kind, moved, change.diff.clone())
    };
    changes.iter().map(one).collect()
}

fn sub_agent(tool: &str, title: Option<String>) -> ItemBody {
    ItemBody::ToolCall {
        class: ToolClass::SubAgent,
        tool: tool.to_owned(),
        server: None,
        title,
        input: None,
        output: Vec::new(),
        gist: Some(Gist::of(ToolKind::Think)),
    }
}

/// The summary's parts, else the raw reasoning.
fn reasoning(item: &Item<'_>) -> String {
    let parts = |raw: Option<&RawValue>| -> Vec<String> {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    };
    let summary = parts(item.summary);
    let shown = if summary.is_empty() { parts(item.content) } else { summary };
    shown.join("\n\n")
}

fn picture(path: Option<&str>) -> ItemBody {
    let uri = path.unwrap_or_default().to_owned();
    ItemBody::Image { content: Content::Link { uri, name: None } }
}

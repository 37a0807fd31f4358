//! What the server asks, and how it is answered.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tieline_event::{
    Answer, Approval, Bounds, ChoiceKind, Item, ItemBody, ItemId, Json, NoticeLevel, Question,
    QuestionOption, Request, RequestBody, RequestId, Scope, ToolClass,
};
use tieline_wire::codex_app::{
    ApprovalRequest, Elicitation, NetworkContext, UserInputRequest, Whose,
};
use tieline_wire::jsonrpc::Id;

use crate::codex::{bare_command, bare_words, read_changes};
use crate::form;
use crate::ledger::Ledger;
use crate::words::{allow, allow_session, by_server, choice, deny, first_line, stop};

/// What is needed to answer.
#[derive(Debug)]
pub(super) struct Asked {
    /// The server's id; it counts from zero in every process.
    pub(super) wire_id: Id,
    /// Which item it is about.
    pub(super) item: Option<String>,
    /// Whose thread asks.
    pub(super) thread: Option<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    Command {
        rule: Option<Box<RawValue>>,
        network: Option<Box<RawValue>>,
    },
    Files,
    /// The older form of both.
    Legacy,
    Permissions(Box<RawValue>),
    Input,
    Form(Option<Box<RawValue>>),
    /// A tool of an MCP server waits for leave.
    Tool,
}

/// A request as everybody sees it, or the reason why it is refused at once.
pub(super) type Understood = Result<(Asked, Request), String>;

/// Reads a request of the server.
pub(super) fn understand(
    wire_id: Id,
    method: &str,
    params: Option<&RawValue>,
    names: &HashMap<String, ItemId>,
    ledger: &Ledger,
) -> Understood {
    let params = params.map_or("{}", RawValue::get);
    let unreadable = |error: serde_json::Error| format!("{method} is not understood: {error}");
    let (item, what, mut request) = match method {
        "item/commandExecution/requestApproval" => {
            let asked: ApprovalRequest<'_> = serde_json::from_str(params).map_err(unreadable)?;
            command(&asked, item_of(asked.item_id.as_deref(), names, ledger))
        }
        "item/fileChange/requestApproval" => {
            let asked: ApprovalRequest<'_> = serde_json::from_str(params).map_err(unreadable)?;
            files(&asked, What::Files, item_of(asked.item_id.as_deref(), names, ledger))
        }
        "execCommandApproval" => {
            let asked: ApprovalRequest<'_> = serde_json::from_str(params).map_err(unreadable)?;
            let known = item_of(asked.item_id.as_deref(), names, ledger);
            let (item, _, request) = command(&asked, known);
            (item, What::Legacy, request)
        }
        "applyPatchApproval" => {
            let asked: ApprovalRequest<'_> = serde_json::from_str(params).map_err(unreadable)?;
            files(&asked, What::Legacy, item_of(asked.item_id.as_deref(), names, ledger))
        }
        "item/permissions/requestApproval" => {
            let asked: ApprovalRequest<'_> = serde_json::from_str(params).map_err(unreadable)?;
            permissions(&asked)
        }
        "item/tool/requestUserInput" => {
            let asked: UserInputRequest<'_> = serde_json::from_str(params).map_err(unreadable)?;
            user_input(asked)
        }
        "mcpServer/elicitation/request" => {
            let asked: Elicitation<'_> = serde_json::from_str(params).map_err(unreadable)?;
            elicitation(&asked, names, ledger)
        }
        _ => return Err(format!("tieline does not know the request {method}")),
    };
    if let Some(frame) = ledger.frame() {
        request.id = RequestId::new(format!("r{frame}"));
    }
    request.item = item_of(item.as_deref(), names, ledger).map(|item| item.id.clone());
    let whose: Whose<'_> = serde_json::from_str(params).unwrap_or_default();
    let thread = whose.thread_id.map(String::from);
    Ok((Asked { wire_id, item, thread, what }, request))
}

/// The open item a request is about.
fn item_of<'a>(
    item: Option<&str>,
    names: &HashMap<String, ItemId>,
    ledger: &'a Ledger,
) -> Option<&'a Item> {
    ledger.item(names.get(item?)?.as_str())
}

type Parts = (Option<String>, What, Request);

fn request(title: String, reason: Option<String>, body: RequestBody) -> Request {
    let options = vec![allow(), allow_session(), deny(), stop()];
    Request { id: RequestId::from("r"), item: None, title, reason, body, options }
}

fn approval(tool: &str) -> Approval {
    Approval { tool: tool.to_owned(), ..Approval::default() }
}

/// Older servers do not repeat the command: it stands in the item before.
fn command(asked: &ApprovalRequest<'_>, item: Option<&Item>) -> Parts {
    let known = || match &item?.body {
        ItemBody::Command { command, .. } => Some(command.clone()),
        _ => None,
    };
    let told = asked.command.map(|raw| match serde_json::from_str::<Vec<String>>(raw.get()) {
        Ok(words) => bare_words(&words),
        Err(_) => bare_command(&serde_json::from_str::<String>(raw.get()).unwrap_or_default()),
    });
    let line = told.or_else(known);
    let network = asked.proposed_network_policy_amendments.as_deref().unwrap_or_default();
    let network = network.iter().find(|raw| is_allowance(raw)).map(|raw| (**raw).to_owned());
    let title = match (&asked.network_approval_context, &line) {
        (Some(NetworkContext { host, protocol }), _) => {
            let protocol = protocol.as_deref().unwrap_or("network");
            format!("Connect to {host} ({protocol})")
        }
        (None, Some(line)) => format!("Run {}", first_line(line)),
        (None, None) => "Run a command".to_owned(),
    };
    let rule = asked.proposed_execpolicy_amendment.filter(|raw| raw.get() != "null");
    let suggestions =
        rule.map(Json::from_raw).into_iter().chain(network.as_deref().map(Json::from_raw));
    let more = asked.additional_permissions.filter(|raw| raw.get() != "null");
    let connection = asked.network_approval_context.as_ref();
    let body = RequestBody::Approval(Approval {
        command: line,
        cwd: asked.cwd.as_deref().map(str::to_owned),
        suggestions: suggestions.collect(),
        bounds: Bounds {
            host: connection.map(|it| it.host.clone()),
            permissions: more.map(Json::from_raw),
            ..Bounds::default()
        }
        .into(),
        ..approval("command")
    });
    let mut request = request(title, asked.reason.as_deref().map(str::to_owned), body);
    if let Some(label) = lasting_label(rule, network.as_deref()) {
        request.options.insert(2, choice("always", &label, ChoiceKind::AllowAlways));
    }
    let rule = rule.map(ToOwned::to_owned);
    (asked.item_id.as_deref().map(str::to_owned), What::Command { rule, network }, request)
}

fn is_allowance(amendment: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Amendment {
        action: String,
    }
    serde_json::from_str(amendment.get()).is_ok_and(|it: Amendment| it.action == "allow")
}

/// What a yes for ever would allow, in words.
fn lasting_label(rule: Option<&RawValue>, network: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Host {
        host: String,
    }
    if let Some(rule) = rule {
        let words: Vec<String> = serde_json::from_str(rule.get()).ok()?;
        return Some(format!("Yes, always for {}", first_line(&bare_words(&words))));
    }
    let Host { host } = serde_json::from_str(network?.get()).ok()?;
    Some(format!("Yes, always for {host}"))
}

/// The server does not repeat what is to change: it stands in the item before.
fn files(asked: &ApprovalRequest<'_>, what: What, known: Option<&Item>) -> Parts {
    let item = asked.item_id.as_deref().map(str::to_owned);
    let changes = match known.map(|item| &item.body) {
        Some(ItemBody::FileChange { changes }) => changes.clone(),
        _ => asked.file_changes.map(read_changes).unwrap_or_default(),
    };
    let title = match changes.as_slice() {
        [] => "Change files".to_owned(),
        [one] => format!("Change {}", one.path),
        [first, rest @ ..] => format!("Change {} and {} more", first.path, rest.len()),
    };
    let opens = asked.grant_root.as_deref().map(str::to_owned);
    let reason = asked.reason.as_deref().map(str::to_owned);
    let body = RequestBody::Approval(Approval {
        path: changes.first().map(|change| change.path.clone()),
        changes,
        bounds: Bounds { opens, ..Bounds::default() }.into(),
        ..approval("files")
    });
    (item, what, request(title, reason, body))
}

fn permissions(asked: &ApprovalRequest<'_>) -> Parts {
    let wanted =
        asked.permissions.map(ToOwned::to_owned).unwrap_or_else(|| RawValue::NULL.to_owned());
    let body = RequestBody::Approval(Approval {
        cwd: asked.cwd.as_deref().map(str::to_owned),
        bounds: Bounds { permissions: Some(Json::from_raw(&wanted)), ..Bounds::default() }.into(),
        ..approval("permissions")
    });
    let reason = asked.reason.as_deref().map(str::to_owned);
    let request = request("Have more permissions".to_owned(), reason, body);
    (asked.item_id.as_deref().map(str::to_owned), What::Permissions(wanted), request)
}

fn user_input(asked: UserInputRequest<'_>) -> Parts {
    let item = asked.item_id.as_deref().map(str::to_owned);
    let question = |it: tieline_wire::codex_app::Question| {
        let options: Vec<_> = it.options.unwrap_or_default();
        Question {
            id: it.id,
            header: it.header,
            text: it.question,
            multiple: false,
            free_text: it.is_other || options.is_empty(),
            secret: it.is_secret,
            options: options
                .into_iter()
                .map(|it| QuestionOption {
                    label: it.label,
                    description: it.description,
                    value: None,
                })
                .collect(),
        }
    };
    let questions: Vec<_> = asked.questions.into_iter().map(question).collect();
    let title = questions.first().map(|it| it.text.clone()).unwrap_or_default();
    let mut request = request(title, None, RequestBody::Question { questions });
    request.options = vec![deny(), stop()];
    (item, What::Input, request)
}

/// What stands beside a question about a tool.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolMeta {
    codex_approval_kind: Option<Box<RawValue>>,
    tool_params: Option<Box<RawValue>>,
    persist: Option<Box<RawValue>>,
}

fn asked_by(server: &str, message: Option<String>) -> String {
    match message {
        Some(message) => format!("{message}\nasked by the MCP server {server}"),
        None => format!("asked by the MCP server {server}"),
    }
}

fn elicitation(asked: &Elicitation<'_>, names: &HashMap<String, ItemId>, ledger: &Ledger) -> Parts {
    let meta: ToolMeta =
        asked.meta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let title = first_line(&asked.message);
    // Nobody says yes to what they were not shown.
    let reason = (title != *asked.message).then(|| asked.message.to_string());
    let questions = asked.requested_schema.map(form::questions).unwrap_or_default();
    let is_approval = meta.codex_approval_kind.is_some() || questions.is_empty();
    let schema = asked.requested_schema.map(ToOwned::to_owned);
    let mut request = match is_approval {
        true => {
            let body = RequestBody::Approval(Approval {
                path: asked.url.as_deref().map(str::to_owned),
                given: meta.tool_params.as_deref().map(Json::from_raw),
                why: Some(by_server(&asked.server_name)),
                ..approval(&asked.server_name)
            });
            request(title, reason, body)
        }
        false => {
            let reason = asked_by(&asked.server_name, reason);
            request(title, Some(reason), RequestBody::Question { questions })
        }
    };
    let is_tool = meta.codex_approval_kind.is_some();
    // One word, or a list of them.
    let persist = meta.persist.as_deref().map_or("", RawValue::get);
    let lasts = |how: &str| is_tool && persist.contains(&format!("\"{how}\""));
    request.options = match is_approval {
        true => vec![allow()],
        false => Vec::new(),
    };
    request.options.extend(lasts("session").then(allow_session));
    request
        .options
        .extend(lasts("always").then(|| choice("always", "Yes, always", ChoiceKind::AllowAlways)));
    request.options.extend([deny(), stop()]);
    match is_tool {
        true => (waiting_call(asked, &meta, names, ledger), What::Tool, request),
        false => (None, What::Form(schema), request),
    }
}

/// The call that waits for leave, by the server's name for it. The question does not say which one it
/// is: only its server, in a sentence its tool, and what the tool is given.
fn waiting_call(
    asked: &Elicitation<'_>,
    meta: &ToolMeta,
    names: &HashMap<String, ItemId>,
    ledger: &Ledger,
) -> Option<String> {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let params = meta.tool_params.as_ref().and_then(|params| value(params.get()));
    let likeness = |item: &Item| match &item.body {
        ItemBody::ToolCall { class: ToolClass::Mcp, server: Some(server), tool, input, .. }
            if *server == *asked.server_name =>
        {
            let is_named = asked.message.contains(&format!("\"{tool}\""));
            let has_params = input.as_ref().and_then(|input| value(input.as_str())) == params;
            Some((is_named, has_params))
        }
        _ => None,
    };
    let calls = ledger.open_items().iter();
    let calls = calls.filter_map(|open| Some((likeness(&open.item)?, &open.item.id)));
    let (_, call) = calls.max_by_key(|(likeness, _)| *likeness)?;
    names.iter().find(|(_, id)| *id == call).map(|(name, _)| name.clone())
}

/// The result that goes back.
pub(super) fn answer(asked: &Asked, answer: &Answer) -> Result<Value, String> {
    if let Answer::Allow { input: Some(_), .. } = answer {
        return Err("Codex takes a yes or a no, but no changed input".to_owned());
    }
    let is_question = matches!(asked.what, What::Input | What::Form(_));
    // The session takes a choice apart before; what is not understood is no yes.
    let is_odd = matches!(answer, Answer::Choose { .. });
    if is_odd || (matches!(answer, Answer::Answers { .. }) && !is_question) {
        return Err("this request wants a yes or a no".to_owned());
    }
    Ok(match (&asked.what, answer) {
        (What::Command { rule, network }, _) => {
            json!({"decision": command_decision(rule.as_deref(), network.as_deref(), answer)})
        }
        (What::Files, _) => json!({"decision": plain_decision(answer)}),
        (What::Legacy, Answer::Allow { scope: Scope::Once, .. }) => json!({"decision": "approved"}),
        (What::Legacy, Answer::Deny { stop: true, .. }) => json!({"decision": "abort"}),
        (What::Legacy, Answer::Deny { .. }) => json!({"decision": "denied"}),
        (What::Legacy, _) => json!({"decision": "approved_for_session"}),
        (What::Permissions(wanted), Answer::Allow { scope, .. }) => {
            let scope = if *scope == Scope::Once { "turn" } else { "session" };
            json!({"permissions": wanted, "scope": scope})
        }
        (What::Permissions(_), _) => json!({"permissions": {}, "scope": "turn"}),
        (What::Input, Answer::Answers { answers }) => {
            let answers: serde_json::Map<String, Value> =
                answers.iter().map(|(id, given)| (id.clone(), json!({"answers": given}))).collect();
            json!({"answers": answers})
        }
        (What::Input, _) => json!({"answers": {}}),
        (What::Tool, Answer::Allow { scope, .. }) => {
            let meta = match scope {
                Scope::Once => Value::Null,
                Scope::Session => json!({"persist": "session"}),
                Scope::Always => json!({"persist": "always"}),
            };
            json!({"action": "accept", "content": {}, "_meta": meta})
        }
        (What::Form(schema), Answer::Answers { answers }) => {
            let content = schema.as_deref().map(|schema| form::fill(schema, answers));
            json!({"action": "accept", "content": content, "_meta": null})
        }
        (What::Form(_), Answer::Allow { .. }) => {
            json!({"action": "accept", "content": {}, "_meta": null})
        }
        (What::Form(_) | What::Tool, _) => {
            let stops = matches!(answer, Answer::Deny { stop: true, .. });
            let action = if stops { "cancel" } else { "decline" };
            json!({"action": action, "content": null, "_meta": null})
        }
    })
}

fn plain_decision(answer: &Answer) -> &'static str {
    match answer {
        Answer::Allow { scope: Scope::Once, .. } => "accept",
        Answer::Deny { stop: true, .. } => "cancel",
        Answer::Deny { .. } => "decline",
        _ => "acceptForSession",
    }
}

fn command_decision(rule: Option<&RawValue>, network: Option<&RawValue>, answer: &Answer) -> Value {
    match (answer, rule, network) {
        (Answer::Allow { scope: Scope::Always, .. }, Some(rule), _) => {
            json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": rule}})
        }
        (Answer::Allow { scope: Scope::Always, .. }, None, Some(network)) => {
            json!({"applyNetworkPolicyAmendment": {"network_policy_amendment": network}})
        }
        _ => json!(plain_decision(answer)),
    }
}

/// Whether a no to it ends the turn without the server's own `cancel`.
pub(super) fn needs_interrupt(asked: &Asked, answer: &Answer) -> bool {
    matches!(answer, Answer::Deny { stop: true, .. })
        && matches!(asked.what, What::Input | What::Permissions(_) | What::Form(_) | What::Tool)
}

/// A tool of ours is called, and we have none.
pub(super) fn no_such_tool(params: Option<&RawValue>, ledger: &mut Ledger) -> Value {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Call {
        tool: String,
    }
    let Call { tool } =
        params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let text = format!("the client has no tool {tool:?}");
    ledger.notice(NoticeLevel::Warning, "unsupported_request", text.clone());
    json!({"contentItems": [{"type": "inputText", "text": text}], "success": false})
}

//! What the agent does: commands, changes of files, tools, searches.
//!
//! Whether a call needs leave is known only a moment after it is: the request follows it. So its begin
//! is held back until the request has its answer, or something else shows that it runs, or a moment
//! has passed ([`Mapper::tick`]).

use serde_json::json;
use tieline_event::{
    Content, Event, FileChange, Gist, Item, ItemBody, ItemStatus, Json, Kind, Request, RequestBody,
    RequestId, Timestamp, ToolClass, ToolKind, TurnId,
};
use tieline_event::{ImageSource, ItemId};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    ChangeForm, Chunk, Duration, EventMsg, ExecCommandBegin, ExecCommandEnd,
    ExecCommandOutputDelta, McpInvocation, McpOutput, McpResult, McpToolCallBegin, McpToolCallEnd,
    OutputStream, PatchApplyBegin, PatchApplyEnd, TurnDiff, TurnItem, WebSearchBegin, WebSearchEnd,
    WebSearchItem,
};
use tieline_wire::text::Str;

use super::text::search;
use super::{DIFF, Mapper, Told, is_cut, raw};
use crate::prefix::Prefix;
use crate::sqeq::change;
use crate::sqeq::order::Work;
use crate::{Fetch, whole};

/// The most of a command's output that its end carries.
const OUTPUT: usize = 1024 * 1024;

/// The most of it that stands for what the model is shown.
const FORMATTED: usize = 10 * 1024;

/// A call that is not over.
#[derive(Debug)]
pub(super) struct Call {
    /// As the client knows it.
    id: String,
    turn: Option<TurnId>,
    began: Timestamp,
    body: ItemBody,
    /// The request about it that is open.
    asked: Option<RequestId>,
    /// There was one.
    was_asked: bool,
    is_begun: bool,
    shown: Prefix,
}

/// What a request is about, for those who ask.
#[derive(Debug)]
pub(in crate::sqeq) struct Asking {
    /// The call, as the client knows it.
    pub(in crate::sqeq) call: String,
    /// The command line.
    pub(in crate::sqeq) command: Option<String>,
    pub(in crate::sqeq) cwd: String,
    /// The changes.
    pub(in crate::sqeq) changes: Vec<FileChange>,
    /// The server of a tool.
    pub(in crate::sqeq) server: Option<String>,
}

impl Mapper {
    pub(super) fn call(
        &mut self,
        item: &Item,
        event: &Event,
        fetch: &mut Fetch<'_>,
        told: &mut Told,
    ) {
        // What such a call brings about is told as a plan.
        if let ItemBody::ToolCall { gist: Some(Gist { kind: ToolKind::Plan, .. }), .. } = &item.body
        {
            return;
        }
        let call = self.calls.entry(item.id.clone()).or_insert_with(|| Call {
            id: event.native.item.clone().unwrap_or_else(|| item.id.to_string()),
            turn: event.turn.clone(),
            began: event.ts,
            body: item.body.clone(),
            asked: None,
            was_asked: false,
            is_begun: false,
            shown: Prefix::default(),
        });
        call.body.clone_from(&item.body);
        if !matches!(event.kind, Kind::ItemCompleted(_)) {
            return;
        }
        let is_refused = matches!(item.status, ItemStatus::Declined | ItemStatus::Denied);
        if !call.is_begun && (is_refused || is_cut(item.status)) {
            // It never was.
            self.calls.remove(&item.id);
            return;
        }
        self.begin(&item.id, fetch, told);
        let Some(call) = self.calls.remove(&item.id) else { return };
        if is_cut(item.status) && !self.is_seed() {
            // The end of the task says it.
            return;
        }
        self.end(call, item.status, event.ts, fetch, told);
    }

    /// Whether something is to be told after a moment: see [`Mapper::tick`].
    pub(in crate::sqeq) fn is_waiting(&self) -> bool {
        self.calls.values().any(Call::is_waiting)
    }

    /// A moment has passed: what nobody was asked about runs.
    pub(in crate::sqeq) fn tick(&mut self, fetch: &mut Fetch<'_>, told: &mut Told) {
        let waiting = self.calls.iter().filter(|(_, call)| call.is_waiting());
        let mut waiting: Vec<(Timestamp, ItemId)> =
            waiting.map(|(id, call)| (call.began, id.clone())).collect();
        waiting.sort();
        for (_, id) in waiting {
            self.begin(&id, fetch, told);
        }
    }

    /// A command printed something.
    pub(super) fn printed(&mut self, item: &ItemId, text: &str, told: &mut Told) {
        self.begin(item, &mut |_| None, told);
        let Some(call) = self.calls.get_mut(item) else { return };
        if let ItemBody::Command { .. } = call.body {
            call.shown.grow(text);
            let (id, turn) = (call.id.clone(), call.turn.clone());
            told.push((self.sub(turn.as_ref()), output(&id, text)));
        }
    }

    /// The agent asks about a call, or about something that it did not show.
    pub(in crate::sqeq) fn asks(&mut self, request: &Request) -> Asking {
        let workspace = self.workspace.clone();
        let call = request.item.as_ref().and_then(|item| self.calls.get_mut(item));
        let mut asking = Asking {
            call: request.id.to_string(),
            command: None,
            cwd: workspace,
            changes: Vec::new(),
            server: None,
        };
        if let Some(call) = call {
            call.asked = Some(request.id.clone());
            call.was_asked = true;
            asking.call.clone_from(&call.id);
            match &call.body {
                ItemBody::Command { command, cwd, .. } => {
                    asking.command = Some(command.clone());
                    asking.cwd = cwd.clone().unwrap_or(asking.cwd);
                }
                ItemBody::FileChange { changes } => asking.changes.clone_from(changes),
                ItemBody::ToolCall { server, .. } => asking.server.clone_from(server),
                _ => {}
            }
        }
        if let RequestBody::Approval(approval) = &request.body {
            asking.command = approval.command.clone().or(asking.command);
            if !approval.changes.is_empty() {
                asking.changes.clone_from(&approval.changes);
            }
        }
        asking
    }

    /// A request has its answer or needs none any more.
    pub(super) fn settled(
        &mut self,
        request: &RequestId,
        is_granted: bool,
        fetch: &mut Fetch<'_>,
        told: &mut Told,
    ) {
        let about = |(_, call): &(&ItemId, &mut Call)| call.asked.as_ref() == Some(request);
        let Some((id, call)) = self.calls.iter_mut().find(about) else { return };
        let id = id.clone();
        if is_granted {
            call.asked = None;
            self.begin(&id, fetch, told);
        }
        // Else it stays as it is: its end, which says nothing, follows.
    }

    fn begin(&mut self, item: &ItemId, fetch: &mut Fetch<'_>, told: &mut Told) {
        let is_seed = self.is_seed();
        let Some(call) = self.calls.get_mut(item).filter(|call| !call.is_begun) else { return };
        call.is_begun = true;
        let turn = call.turn.clone();
        let sub = self.sub(turn.as_ref());
        let Some(call) = self.calls.get(item) else { return };
        let id = Str::Owned(call.id.clone());
        let turn_id = is_seed.then(|| Str::Owned(sub.clone()));
        let msg = match &call.body {
            ItemBody::Command { command, cwd, gist, .. } => {
                EventMsg::ExecCommandBegin(Box::new(ExecCommandBegin {
                    call_id: id,
                    command: argv(command),
                    cwd: cwd.clone().unwrap_or_else(|| self.workspace.clone()).into(),
                    parsed_cmd: parsed(command, gist.as_ref()),
                    turn_id,
                    source: is_seed.then(|| Str::Borrowed(self.source(turn.as_ref()))),
                    ..ExecCommandBegin::default()
                }))
            }
            ItemBody::FileChange { changes } => EventMsg::PatchApplyBegin(PatchApplyBegin {
                call_id: id,
                auto_approved: !call.was_asked,
                changes: change::changes(changes, self.form(), fetch),
                turn_id,
            }),
            ItemBody::WebSearch { .. } => EventMsg::WebSearchBegin(WebSearchBegin { call_id: id }),
            ItemBody::ToolCall { .. } => EventMsg::McpToolCallBegin(McpToolCallBegin {
                call_id: id,
                invocation: invocation(&call.body),
            }),
            _ => return,
        };
        let searched = match &call.body {
            ItemBody::WebSearch { query, .. } if is_seed => Some((call.id.clone(), query.clone())),
            _ => None,
        };
        told.push((sub.clone(), msg));
        if let Some((id, query)) = searched {
            let item = self.of_item(&sub, searching(id, &query));
            told.push((sub, EventMsg::ItemStarted(item)));
        }
    }

    fn end(
        &mut self,
        call: Call,
        status: ItemStatus,
        at: Timestamp,
        fetch: &mut Fetch<'_>,
        told: &mut Told,
    ) {
        let sub = self.sub(call.turn.as_ref());
        let id = || Str::Owned(call.id.clone());
        let duration = duration(call.began, at);
        let is_ok = status == ItemStatus::Ok;
        let word = Str::Borrowed(match status {
            ItemStatus::Ok => "completed",
            ItemStatus::Declined | ItemStatus::Denied => "declined",
            _ => "failed",
        });
        let word = self.is_seed().then_some(word);
        let turn_id = self.is_seed().then(|| Str::Owned(sub.clone()));
        match &call.body {
            ItemBody::Command { command, cwd, output: text, exit_code, gist, .. } => {
                let text = whole(text, fetch);
                let rest = call.shown.rest(&text);
                if call.shown.bytes > 0 && !rest.is_empty() {
                    told.push((sub.clone(), output(&call.id, rest)));
                }
                let is_seed = self.is_seed();
                let shown = cut(&text, OUTPUT);
                let end = ExecCommandEnd {
                    call_id: id(),
                    stdout: shown.clone().into(),
                    stderr: Str::default(),
                    aggregated_output: shown.into(),
                    exit_code: exit_code.unwrap_or(match status {
                        ItemStatus::Ok => 0,
                        ItemStatus::TimedOut => 124,
                        ItemStatus::Failed => 1,
                        _ => -1,
                    }),
                    duration,
                    formatted_output: cut(&text, FORMATTED).into(),
                    status: word,
                    turn_id,
                    command: is_seed.then(|| argv(command)),
                    cwd: is_seed
                        .then(|| cwd.clone().unwrap_or_else(|| self.workspace.clone()).into()),
                    parsed_cmd: is_seed.then(|| parsed(command, gist.as_ref())),
                    source: is_seed.then(|| Str::Borrowed(self.source(call.turn.as_ref()))),
                    ..ExecCommandEnd::default()
                };
                told.push((sub, EventMsg::ExecCommandEnd(Box::new(end))));
            }
            ItemBody::FileChange { changes } => {
                let end = PatchApplyEnd {
                    call_id: id(),
                    stdout: (if is_ok { summary(changes, &self.workspace) } else { String::new() })
                        .into(),
                    stderr: Str::Borrowed(if is_ok { "" } else { "the change was not made" }),
                    success: is_ok,
                    status: word,
                    turn_id,
                    changes: self.is_seed().then(|| change::changes(changes, self.form(), fetch)),
                };
                told.push((sub.clone(), EventMsg::PatchApplyEnd(Box::new(end))));
                if is_ok {
                    self.turn_diff(call.turn.as_ref(), changes, sub, fetch, told);
                }
            }
            ItemBody::WebSearch { query, .. } => {
                let end = WebSearchEnd {
                    call_id: id(),
                    query: query.clone().into(),
                    action: search(query).filter(|_| self.is_seed()),
                };
                told.push((sub.clone(), EventMsg::WebSearchEnd(end)));
                if self.is_seed() {
                    let item = self.of_item(&sub, searching(call.id.clone(), query));
                    told.push((sub, EventMsg::ItemCompleted(item)));
                }
            }
            ItemBody::ToolCall { output, .. } => {
                let content: Vec<Raw<'static>> =
                    output.iter().filter_map(|piece| mcp_content(piece, fetch)).collect();
                let result = match is_cut(status) {
                    true => McpResult::Err(Str::Borrowed("the call was stopped")),
                    false => McpResult::Ok(McpOutput {
                        content,
                        structured_content: None,
                        is_error: Some(!is_ok),
                    }),
                };
                let invocation = invocation(&call.body);
                let end = McpToolCallEnd { call_id: id(), invocation, duration, result };
                told.push((sub, EventMsg::McpToolCallEnd(Box::new(end))));
            }
            ItemBody::Image { content } => self.image(&call.id, content, sub, told),
            _ => {}
        }
    }

    /// Everything that changed in the turn: the changes one after the other.
    fn turn_diff(
        &mut self,
        turn: Option<&TurnId>,
        changes: &[FileChange],
        sub: String,
        fetch: &mut Fetch<'_>,
        told: &mut Told,
    ) {
        let Some(task) = turn.and_then(|turn| self.turns.get_mut(turn)) else { return };
        if task.diff.len() > DIFF {
            return;
        }
        for change in changes {
            task.diff.push_str(&change::section(change, fetch));
        }
        // More than that is no help to anybody, and would be told again and again.
        if task.diff.len() <= DIFF {
            let unified_diff = task.diff.clone().into();
            told.push((sub, EventMsg::TurnDiff(TurnDiff { unified_diff })));
        }
    }

    /// How changes are written.
    pub(in crate::sqeq) fn form(&self) -> ChangeForm {
        if self.is_seed() { ChangeForm::Tagged } else { ChangeForm::Keyed }
    }

    /// Who runs a command.
    fn source(&self, turn: Option<&TurnId>) -> &'static str {
        match turn.and_then(|turn| self.turns.get(turn)).and_then(|task| task.work.as_ref()) {
            Some(Work::Shell(_)) => "user_shell",
            _ => "agent",
        }
    }
}

impl Call {
    fn is_waiting(&self) -> bool {
        let is_known = match &self.body {
            // It is still being written.
            ItemBody::Command { command, .. } => !command.is_empty(),
            ItemBody::FileChange { changes } => !changes.is_empty(),
            _ => true,
        };
        is_known && !self.is_begun && self.asked.is_none()
    }
}

/// A command line as the words of a program.
pub(in crate::sqeq) fn argv(command: &str) -> Vec<Str<'static>> {
    vec![Str::Borrowed("bash"), Str::Borrowed("-lc"), command.to_owned().into()]
}

/// What a command does, as far as that is plain.
pub(in crate::sqeq) fn parsed(command: &str, gist: Option<&Gist>) -> Raw<'static> {
    let place = gist.and_then(|gist| gist.places.first()).map(|place| place.path.as_str());
    let one = match (gist.map(|gist| gist.kind), place) {
        (Some(ToolKind::Read), Some(path)) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            json!({"type": "read", "cmd": command, "name": name, "path": path})
        }
        (Some(ToolKind::Search), path) => {
            json!({"type": "search", "cmd": command, "query": null, "path": path})
        }
        _ => json!({"type": "unknown", "cmd": command}),
    };
    raw(&[one]).unwrap_or_default()
}

fn output(call: &str, text: &str) -> EventMsg<'static> {
    EventMsg::ExecCommandOutputDelta(ExecCommandOutputDelta {
        call_id: call.to_owned().into(),
        // Our record has both in one.
        stream: OutputStream::Stdout,
        chunk: Chunk::Bytes(text.as_bytes().to_vec().into()),
    })
}

fn duration(from: Timestamp, to: Timestamp) -> Duration {
    let millis = u64::try_from(to.as_millis().saturating_sub(from.as_millis())).unwrap_or(0);
    let nanos = u32::try_from(millis % 1000).unwrap_or(0) * 1_000_000;
    Duration { secs: millis / 1000, nanos }
}

/// Both ends of a long text.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (head, _) = text.split_at(text.floor_char_boundary(most / 2));
    let (_, tail) = text.split_at(text.ceil_char_boundary(text.len() - most / 2));
    let n_left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[{n_left_out} bytes left out]\n{tail}")
}

fn summary(changes: &[FileChange], workspace: &str) -> String {
    let line = |change: &FileChange| {
        let letter = match change.kind {
            tieline_event::ChangeKind::Add => 'A',
            tieline_event::ChangeKind::Update => 'M',
            tieline_event::ChangeKind::Delete => 'D',
        };
        let path = change.path.strip_prefix(workspace).unwrap_or(&change.path);
        format!("{letter} {}\n", path.trim_start_matches('/'))
    };
    let lines: String = changes.iter().map(line).collect();
    format!("Success. Updated the following files:\n{lines}")
}

fn searching(id: String, query: &str) -> TurnItem<'static> {
    TurnItem::WebSearch(WebSearchItem {
        id: id.into(),
        query: query.to_owned().into(),
        action: search(query).unwrap_or_default(),
    })
}

fn invocation(body: &ItemBody) -> McpInvocation<'static> {
    let ItemBody::ToolCall { class, tool, server, input, .. } = body else {
        return McpInvocation::default();
    };
    // The protocol knows tools of servers only; whose they are besides stands in the server's place.
    let whose = match class {
        ToolClass::Mcp => "mcp",
        ToolClass::Generic => "agent",
        ToolClass::Dynamic => "client",
        ToolClass::SubAgent => "sub-agent",
    };
    let arguments = |input: &Json| {
        serde_json::value::RawValue::from_string(input.as_str().to_owned()).ok().map(Raw::Owned)
    };
    McpInvocation {
        server: server.clone().unwrap_or_else(|| whose.to_owned()).into(),
        tool: tool.clone().into(),
        arguments: input.as_ref().and_then(arguments),
    }
}

fn mcp_content(piece: &Content, fetch: &mut Fetch<'_>) -> Option<Raw<'static>> {
    raw(&match piece {
        Content::Text { text } => json!({"type": "text", "text": whole(text, fetch)}),
        Content::Image { mime, source: ImageSource::Base64(data) } => {
            json!({"type": "image", "mimeType": mime, "data": whole(data, fetch)})
        }
        Content::Resource { uri, text } => json!({
            "type": "resource",
            "resource": {"uri": uri, "text": whole(text, fetch)},
        }),
        Content::Link { uri, name } => {
            json!({"type": "resource_link", "uri": uri, "name": name.as_ref().unwrap_or(uri)})
        }
        Content::Image { mime, .. } => json!({"type": "text", "text": format!("[{mime}]")}),
        Content::Skill { name, .. } | Content::Mention { name, .. } => {
            json!({"type": "text", "text": name})
        }
    })
}

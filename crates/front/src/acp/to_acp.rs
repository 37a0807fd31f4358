//! From events to `session/update`.
//!
//! Data in, lines out. What has no place in the protocol is left out, and `docs/acp.md` lists it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::json;
use tieline_event::{
    Answer, Approval, Configured, Content, Delta, Event, FileChange, Gist, Item, ItemBody, ItemId,
    ItemStatus, Kind, Notice, NoticeLevel, Plan, PlanStatus, Request, RequestBody, RequestId,
    Stream, Text, ToolClass, ToolKind, Usage,
};
use tieline_wire::acp::MaybeUndefined;
use tieline_wire::acp::schema::{
    self, AvailableCommandsUpdate, CompactionStatus, CompactionUpdate, ConfigOptionUpdate,
    ContentChunk, Cost, CurrentModeUpdate, NoticeSeverity, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionInfoUpdate, SessionUpdate, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, UsageUpdate,
};

use super::call::{Face, Screen, Seen, is_plain_change, shown, visible_text};
use super::client::Client;
use super::diff;
use super::offer::Offer;
use super::page::{Page, Voice};
use crate::prefix::Prefix;
use crate::review::{Room, review};
use crate::{Fetch, summary, whole};

#[cfg(test)]
mod tests;

/// Turns what happens in one conversation into updates of one session.
#[derive(Debug)]
pub(super) struct Mapper {
    client: Client,
    workspace: PathBuf,
    pub(super) offer: Offer,
    /// The history is shown: settings are told with the answer, the user's own words are not known.
    is_replay: bool,
    /// What was shown of messages that still grow.
    shown: HashMap<ItemId, Prefix>,
    /// Tool calls that go on.
    calls: HashMap<ItemId, Call>,
    /// Those of this turn that are over, and are not told again.
    over: HashSet<ItemId>,
    /// A message in pieces that came at once.
    joined: Option<Joined>,
    tokens: Tokens,
    pub(super) title: Option<String>,
    /// A long text of which only a part is written yet.
    unfinished: Option<Unfinished>,
    /// Warnings that came between turns, where a client that knows no notices has no place for them.
    warnings: Vec<(ItemId, String)>,
}

/// A tool call that the client knows.
#[derive(Debug)]
struct Call {
    seen: Seen,
    item: Item,
    parent: Option<ItemId>,
    /// The request about it that is open.
    asked: Option<RequestId>,
    /// What it has printed, for clients without a terminal; what of it was shown, for others.
    printed: String,
    shown: Prefix,
    /// There is more to show than was shown.
    is_stale: bool,
}

#[derive(Debug)]
struct Joined {
    stream: Stream,
    item: ItemId,
    parent: Option<ItemId>,
    text: String,
}

/// A text that is written piece by piece, as the client takes it.
#[derive(Debug)]
struct Unfinished {
    voice: Voice,
    item: ItemId,
    parent: Option<ItemId>,
    text: String,
    from: usize,
}

/// How much of a long text is written at once.
const PIECE: usize = 256 * 1024;

/// What the conversation has used.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) used: u64,
    pub(super) size: u64,
    pub(super) cost: Option<f64>,
}

/// The most that is kept of a command's output for a client without a terminal; the beginning is
/// shown and the end, and what lies between is in the store.
const PRINTED: usize = 64 * 1024;

/// How many warnings wait for a turn; more of them say nothing new.
const WARNINGS: usize = 16;

impl Mapper {
    pub(super) fn new(client: Client, workspace: PathBuf, offer: Offer) -> Self {
        Self {
            client,
            workspace,
            offer,
            is_replay: false,
            shown: HashMap::new(),
            calls: HashMap::new(),
            over: HashSet::new(),
            joined: None,
            tokens: Tokens::default(),
            title: None,
            unfinished: None,
            warnings: Vec::new(),
        }
    }

    /// What follows is history, until [`Mapper::goes_live`].
    pub(super) fn replays(&mut self) {
        self.is_replay = true;
    }

    /// What follows happens now.
    pub(super) fn goes_live(&mut self) {
        self.is_replay = false;
    }

    /// What the conversation has used so far.
    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Writes what an event means for the client.
    pub(super) fn event(&mut self, event: &Event, fetch: &mut Fetch<'_>, page: &mut Page) {
        self.flush(page);
        self.tell(event, fetch, page);
    }

    /// Writes what was held back in the hope of more of the same.
    pub(super) fn flush(&mut self, page: &mut Page) {
        let Some(Joined { stream, item, parent, text }) = self.joined.take() else { return };
        match stream {
            Stream::Output => self.printed(&item, &text, page),
            Stream::Input => {}
            Stream::Text | Stream::Plan | Stream::Reasoning => {
                let is_said = stream != Stream::Reasoning && parent.is_none();
                let voice = if is_said { Voice::Agent } else { Voice::Thought };
                page.chunk(voice, &item, parent.as_ref(), &text);
                self.shown.entry(item).or_default().grow(&text);
            }
        }
    }

    /// Takes a piece of a text. It is written with the next [`Mapper::flush`], together with what
    /// follows it.
    pub(super) fn delta(&mut self, delta: &Delta, page: &mut Page) {
        if let Some(joined) = &mut self.joined
            && joined.stream == delta.stream
            && joined.item == delta.item
        {
            joined.text.push_str(&delta.text);
            return;
        }
        self.flush(page);
        self.joined = Some(Joined {
            stream: delta.stream,
            item: delta.item.clone(),
            parent: delta.parent.clone(),
            text: delta.text.clone(),
        });
    }

    /// Whether agents that the agent started are still at work.
    pub(super) fn has_helpers(&self) -> bool {
        self.calls.values().any(|call| {
            matches!(&call.item.body, ItemBody::ToolCall { class: ToolClass::SubAgent, .. })
        })
    }

    /// Whether something is to be shown after a moment: see [`Mapper::tick`].
    pub(super) fn is_waiting(&self) -> bool {
        self.calls.values().any(Call::is_waiting)
    }

    /// A moment has passed: what still runs is in progress, and what it printed is shown.
    pub(super) fn tick(&mut self, page: &mut Page) {
        let Self { calls, workspace, client, .. } = self;
        for call in calls.values_mut().filter(|call| call.is_waiting()) {
            call.is_stale = false;
            call.shows_again(ToolCallStatus::InProgress, workspace, client.screen(), page);
        }
    }

    fn tell(&mut self, event: &Event, fetch: &mut Fetch<'_>, page: &mut Page) {
        let parent = event.parent.as_ref();
        match &event.kind {
            Kind::ItemStarted(item) | Kind::ItemUpdated(item) => {
                self.item(item, parent, fetch, page);
            }
            Kind::ItemCompleted(item) => {
                self.item(item, parent, fetch, page);
                self.shown.remove(&item.id);
            }
            Kind::TurnStarted(_) if !self.is_replay => self.warn(page),
            Kind::PlanUpdated(plan) => page.update(&plan_update(plan)),
            Kind::ConversationConfigured(told) => self.configured(told, page),
            Kind::UsageUpdated(usage) => self.usage(usage, page),
            Kind::Notice(notice) if !self.is_replay => self.notice(notice, event, page),
            Kind::Unparsed(it) if !self.is_replay => {
                self.notice(&summary::unread_notice(it), event, page);
            }
            // Live, it is made known when the client is asked.
            Kind::RequestOpened(request) if self.is_replay => {
                self.call_of(request, fetch, page);
            }
            Kind::RequestResolved(resolved) => {
                let is_granted = !matches!(resolved.answer, Answer::Deny { .. });
                self.settled(&resolved.request, is_granted, page);
            }
            Kind::RequestExpired(expired) => self.settled(&expired.request, false, page),
            Kind::TurnCompleted(end) => {
                if let Some(cost) = end.usage.as_ref().and_then(|usage| usage.cost_usd) {
                    *self.tokens.cost.get_or_insert(0.0) += cost;
                }
                if let Some(usage) = &end.usage {
                    self.usage(usage, page);
                }
                self.shown.clear();
                self.over.clear();
            }
            _ => {}
        }
    }

    fn item(
        &mut self,
        item: &Item,
        parent: Option<&ItemId>,
        fetch: &mut Fetch<'_>,
        page: &mut Page,
    ) {
        match &item.body {
            ItemBody::UserMessage { content } => {
                // Live, the client knows what it said; what a helper was told is the agent's.
                if self.is_replay && parent.is_none() {
                    self.user_message(&item.id, content, fetch, page);
                }
            }
            ItemBody::AgentMessage { text }
            | ItemBody::Plan { text }
            | ItemBody::Review { text, .. } => {
                let voice = if parent.is_none() { Voice::Agent } else { Voice::Thought };
                self.text(voice, item, parent, text, fetch, page);
            }
            ItemBody::Reasoning { text, .. } => {
                self.text(Voice::Thought, item, parent, text, fetch, page);
            }
            ItemBody::Compaction { .. } if self.client.compaction => {
                let status = match item.status {
                    ItemStatus::InProgress => CompactionStatus::InProgress,
                    ItemStatus::Ok => CompactionStatus::Completed,
                    ItemStatus::Cancelled => CompactionStatus::Cancelled,
                    _ => CompactionStatus::Failed,
                };
                let update = CompactionUpdate::new(item.id.to_string(), status);
                page.update(&SessionUpdate::CompactionUpdate(update));
            }
            // What such a call brings about is told as a plan.
            ItemBody::ToolCall { gist: Some(gist), .. } if gist.kind == ToolKind::Plan => {}
            _ => self.call(item, parent, fetch, page),
        }
    }

    /// What was not shown yet of a message.
    fn text(
        &mut self,
        voice: Voice,
        item: &Item,
        parent: Option<&ItemId>,
        text: &Text,
        fetch: &mut Fetch<'_>,
        page: &mut Page,
    ) {
        let shown = self.shown.entry(item.id.clone()).or_default();
        if text.len() > shown.bytes as u64 {
            let all = whole(text, fetch);
            let rest = shown.rest(&all);
            let from = all.len() - rest.len();
            shown.grow(rest);
            let (item, parent) = (item.id.clone(), parent.cloned());
            self.unfinished = Some(Unfinished { voice, item, parent, text: all, from });
            self.go_on(page);
        }
    }

    /// Whether a text waits for the client to be ready for more of it.
    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Nobody wants to see it.
    pub(super) fn drop_rest(&mut self) {
        self.unfinished = None;
    }

    /// Writes the next piece of it.
    pub(super) fn go_on(&mut self, page: &mut Page) {
        let Some(Unfinished { voice, item, parent, text, from }) = &mut self.unfinished else {
            return;
        };
        let to = text.floor_char_boundary(*from + PIECE);
        page.chunk(*voice, item, parent.as_ref(), text.get(*from..to).unwrap_or_default());
        *from = to;
        if to >= text.len() {
            self.unfinished = None;
        }
    }

    fn user_message(
        &mut self,
        id: &ItemId,
        content: &[Content],
        fetch: &mut Fetch<'_>,
        page: &mut Page,
    ) {
        for piece in content {
            let chunk = ContentChunk::new(shown(piece, fetch))
                .message_id(schema::MessageId::new(id.to_string()));
            page.update(&SessionUpdate::UserMessageChunk(chunk));
        }
    }

    fn call(
        &mut self,
        item: &Item,
        parent: Option<&ItemId>,
        fetch: &mut Fetch<'_>,
        page: &mut Page,
    ) {
        let screen = self.client.screen();
        if self.over.contains(&item.id) {
            return;
        }
        let Some(call) = self.calls.get_mut(&item.id) else {
            let face = Face::of(item, parent, &self.workspace, screen, None, fetch);
            let Some(mut face) = face else { return };
            let is_over = item.status.is_final();
            let mut call = Call::new(item, parent, face.seen());
            if let (ItemBody::Command { output, exit_code, .. }, Screen::Terminal, true) =
                (&item.body, screen, is_over)
            {
                // Created while it runs, then filled, then ended: the only way to show an output.
                face.status = ToolCallStatus::InProgress;
                call.seen = face.seen();
                page.update(&SessionUpdate::ToolCall(face.create()));
                page.terminal_output(&item.id, &whole(output, fetch));
                call.ends(item, *exit_code, &self.workspace, fetch, page);
            } else {
                page.update(&SessionUpdate::ToolCall(face.create()));
            }
            match is_over {
                true => drop(self.over.insert(item.id.clone())),
                false => drop(self.calls.insert(item.id.clone(), call)),
            }
            return;
        };
        call.item.clone_from(item);
        if !item.status.is_final() {
            let status = call.seen.status;
            return call.shows_again(status, &self.workspace, screen, page);
        }
        match (&item.body, screen) {
            (ItemBody::Command { output, exit_code, .. }, Screen::Terminal) => {
                if output.len() > call.shown.bytes as u64 {
                    page.terminal_output(&item.id, call.shown.rest(&whole(output, fetch)));
                }
                call.ends(item, *exit_code, &self.workspace, fetch, page);
            }
            _ => {
                let face = Face::of(item, parent, &self.workspace, screen, None, fetch);
                if let Some(update) = face.and_then(|face| face.update(&call.seen)) {
                    page.update(&SessionUpdate::ToolCallUpdate(update));
                }
            }
        }
        self.calls.remove(&item.id);
        self.over.insert(item.id.clone());
    }

    /// A command printed something.
    fn printed(&mut self, item: &ItemId, text: &str, page: &mut Page) {
        let screen = self.client.screen();
        let Some(call) = self.calls.get_mut(item) else { return };
        match screen {
            Screen::Terminal => {
                call.shown.grow(text);
                if call.seen.status == ToolCallStatus::Pending {
                    call.shows_again(ToolCallStatus::InProgress, &self.workspace, screen, page);
                }
                page.terminal_output(item, text);
            }
            Screen::Text => {
                call.printed.push_str(text);
                if call.printed.len() > 2 * PRINTED {
                    let from = call.printed.ceil_char_boundary(call.printed.len() - PRINTED);
                    let head = call.printed.floor_char_boundary(PRINTED / 2);
                    call.printed.replace_range(head..from.max(head), "\n[…]\n");
                }
                call.is_stale = true;
            }
        }
    }

    /// A question about a tool call is about to be asked: the call is made known first. Gives the
    /// call as the question shows it.
    pub(super) fn asks(
        &mut self,
        key: &str,
        request: &Request,
        fetch: &mut Fetch<'_>,
        page: &mut Page,
    ) -> ToolCallUpdate {
        self.flush(page);
        let id = self.call_of(request, fetch, page);
        let screen = self.client.screen();
        let Some(call) = self.calls.get_mut(&id) else {
            return ToolCallUpdate::new(id.to_string(), ToolCallUpdateFields::new());
        };
        // What would happen to files may be known from the question alone.
        let told = match &request.body {
            RequestBody::Approval(approval) if !approval.changes.is_empty() => Some(Item {
                id: id.clone(),
                status: ItemStatus::InProgress,
                body: ItemBody::FileChange { changes: approval.changes.clone() },
            }),
            _ => None,
        };
        let item = told.as_ref().unwrap_or(&call.item);
        let parent = call.parent.as_ref();
        match Face::of(item, parent, &self.workspace, screen, None, fetch) {
            Some(mut face) => {
                face.status = call.seen.status;
                if let RequestBody::Approval(Approval { path: Some(path), .. }) = &request.body {
                    face.is_about(path, &self.workspace);
                }
                if let RequestBody::Approval(approval) = &request.body {
                    let (rows, diffs) = decided(key, request, approval, &self.workspace, fetch);
                    let diffs = Some(diffs.as_slice()).filter(|_| !approval.changes.is_empty());
                    face.decided(&rows, diffs, &self.workspace, fetch);
                    call.seen.forget();
                }
                face.whole()
            }
            None => ToolCallUpdate::new(id.to_string(), ToolCallUpdateFields::new()),
        }
    }

    /// The call that a request is about. Where the agent showed none, one is created.
    fn call_of(&mut self, request: &Request, fetch: &mut Fetch<'_>, page: &mut Page) -> ItemId {
        let known = request.item.as_ref().filter(|id| self.calls.contains_key(*id)).cloned();
        let id = known.unwrap_or_else(|| {
            let item = stand_in(request);
            self.call(&item, None, fetch, page);
            item.id
        });
        if let Some(call) = self.calls.get_mut(&id) {
            call.asked = Some(request.id.clone());
        }
        id
    }

    /// A request has its answer or needs none any more.
    fn settled(&mut self, request: &RequestId, is_granted: bool, page: &mut Page) {
        let Self { calls, workspace, client, .. } = self;
        let asked = calls.values_mut().find(|call| call.asked.as_ref() == Some(request));
        let Some(call) = asked else { return };
        call.asked = None;
        if is_stand_in(&call.item.id) {
            let status =
                if is_granted { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
            call.shows_again(status, workspace, client.screen(), page);
            let id = call.item.id.clone();
            calls.remove(&id);
        }
    }

    fn usage(&mut self, usage: &Usage, page: &mut Page) {
        self.tokens.used = usage.context_used.unwrap_or(self.tokens.used);
        self.tokens.size = usage.context_window.unwrap_or(self.tokens.size);
        if !self.is_replay {
            self.usage_update(page);
        }
    }

    /// How full the model's memory is, where that is known.
    pub(super) fn usage_update(&self, page: &mut Page) {
        let Tokens { used, size, cost } = self.tokens;
        if size > 0 || cost.is_some() {
            let cost = cost.map(|amount| Cost::new(amount, "USD"));
            page.update(&SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost)));
        }
    }

    fn warn(&mut self, page: &mut Page) {
        for (id, text) in std::mem::take(&mut self.warnings) {
            page.chunk(Voice::Thought, &id, None, &text);
        }
    }

    fn notice(&mut self, notice: &Notice, event: &Event, page: &mut Page) {
        if self.client.notices {
            let severity = match notice.level {
                NoticeLevel::Info => NoticeSeverity::Info,
                NoticeLevel::Warning => NoticeSeverity::Warning,
                NoticeLevel::Error => NoticeSeverity::Error,
            };
            let text = if notice.text.is_empty() { &notice.code } else { &notice.text };
            let told = schema::Notice::new(severity, text.as_str());
            page.update(&SessionUpdate::Notice(told));
        } else if notice.level != NoticeLevel::Info {
            // A thought is seen and is not taken for the answer.
            let id = ItemId::new(format!("notice-{}", event.seq));
            if self.warnings.len() < WARNINGS {
                self.warnings.push((id, format!("⚠ {}\n", notice.text)));
            }
            if event.turn.is_some() {
                self.warn(page);
            }
        }
    }

    /// The conversation has a title.
    pub(super) fn entitle(&mut self, title: String, page: &mut Page) {
        if self.title.as_ref() != Some(&title) {
            let update = SessionInfoUpdate::new().title(MaybeUndefined::Value(title.clone()));
            self.title = Some(title);
            if !self.is_replay {
                page.update(&SessionUpdate::SessionInfoUpdate(update));
            }
        }
    }

    /// Something is known about the conversation, or was chosen for it.
    pub(super) fn configured(&mut self, told: &Configured, page: &mut Page) {
        let changes = self.offer.learn(told);
        if let Some(title) = &told.title {
            self.entitle(title.clone(), page);
        }
        if self.is_replay {
            return;
        }
        if changes.mode {
            page.update(&self.mode_update());
        }
        if changes.settings {
            page.update(&self.settings_update());
        }
        if changes.commands {
            page.update(&self.commands_update());
        }
    }

    /// The settings in both forms.
    pub(super) fn tell_settings(&self, page: &mut Page) {
        page.update(&self.mode_update());
        page.update(&self.settings_update());
    }

    fn mode_update(&self) -> SessionUpdate {
        SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(self.offer.mode.name()))
    }

    fn settings_update(&self) -> SessionUpdate {
        SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.offer.settings()))
    }

    pub(super) fn commands_update(&self) -> SessionUpdate {
        let commands = AvailableCommandsUpdate::new(self.offer.commands());
        SessionUpdate::AvailableCommandsUpdate(commands)
    }
}

impl Call {
    fn new(item: &Item, parent: Option<&ItemId>, seen: Seen) -> Self {
        Self {
            seen,
            item: item.clone(),
            parent: parent.cloned(),
            asked: None,
            printed: String::new(),
            shown: Prefix::default(),
            is_stale: false,
        }
    }

    fn is_waiting(&self) -> bool {
        let is_unsaid = self.seen.status == ToolCallStatus::Pending && self.asked.is_none();
        is_unsaid || self.is_stale
    }

    /// Shows what changed about a call that goes on.
    fn shows_again(
        &mut self,
        status: ToolCallStatus,
        workspace: &Path,
        screen: Screen,
        page: &mut Page,
    ) {
        let streamed = Some(self.printed.as_str()).filter(|it| !it.is_empty());
        let mut none = |_: &_| None;
        let parent = self.parent.as_ref();
        let face = Face::of(&self.item, parent, workspace, screen, streamed, &mut none);
        let Some(mut face) = face else { return };
        face.status = status;
        let seen = face.seen();
        if let Some(update) = face.update(&self.seen) {
            page.update(&SessionUpdate::ToolCallUpdate(update));
        }
        self.seen = seen;
    }

    /// A command in a terminal is over.
    fn ends(
        &mut self,
        item: &Item,
        code: Option<i32>,
        workspace: &Path,
        fetch: &mut Fetch<'_>,
        page: &mut Page,
    ) {
        let parent = self.parent.as_ref();
        let face = Face::of(item, parent, workspace, Screen::Terminal, None, fetch);
        let Some(mut face) = face else { return };
        face.set_exit(code);
        let seen = face.seen();
        if let Some(update) = face.update(&self.seen) {
            page.update(&SessionUpdate::ToolCallUpdate(update));
        }
        self.seen = seen;
    }
}

impl Client {
    fn screen(self) -> Screen {
        if self.terminal_output { Screen::Terminal } else { Screen::Text }
    }
}

/// What stands for the act a request is about, when the agent showed none.
const STAND_IN: &str = "request-";

fn is_stand_in(id: &ItemId) -> bool {
    id.as_str().starts_with(STAND_IN)
}

/// Columns, rows and bytes of what is asked that a client is told. It breaks rows itself.
const COLUMNS: usize = 2000;
const ROWS: usize = 4000;
const BYTES: usize = 512 * 1024;

/// What somebody decides about, in rows, and the changes that a client may show as diffs: of those
/// the rows have no more than where they are.
fn decided(
    key: &str,
    request: &Request,
    approval: &Approval,
    workspace: &Path,
    fetch: &mut Fetch<'_>,
) -> (Vec<String>, Vec<FileChange>) {
    let mut diffs = Vec::new();
    let mut bare = approval.clone();
    for change in &mut bare.changes {
        let (shown, _) = diff::diffs(std::slice::from_ref(change), workspace, fetch);
        if !shown.is_empty() && is_plain_change(change, fetch) {
            diffs.push(change.clone());
            (change.old_text, change.new_text, change.diff) = (None, None, None);
        }
    }
    let request = Request { body: RequestBody::Approval(bare), ..request.clone() };
    let how = format!("tieline show {key} shows all of it");
    let room = Room { width: COLUMNS, rows: ROWS, bytes: BYTES, how: &how };
    (review(&request, workspace.to_str(), fetch).rows(&room).rows, diffs)
}

fn stand_in(request: &Request) -> Item {
    let id = ItemId::new(format!("{STAND_IN}{}", request.id));
    let title = Some(request.title.clone()).filter(|title| !title.is_empty());
    let call = |tool: String, input, output, kind| ItemBody::ToolCall {
        class: ToolClass::Generic,
        tool,
        server: None,
        title: title.clone(),
        input,
        output,
        gist: Some(Gist::of(kind)),
    };
    let body = match &request.body {
        // What is to run is shown whole: a title has only its first line.
        RequestBody::Approval(Approval { command: Some(command), cwd, .. }) => ItemBody::Command {
            command: command.clone(),
            cwd: cwd.clone(),
            description: None,
            output: Text::default(),
            exit_code: None,
            background: false,
            gist: None,
        },
        RequestBody::Approval(it) => {
            let input = it.input.as_ref().or(it.given.as_ref()).cloned();
            call(it.tool.clone(), input, Vec::new(), ToolKind::Other)
        }
        RequestBody::Question { .. } => {
            call("question".to_owned(), None, Vec::new(), ToolKind::Other)
        }
        RequestBody::ExitPlan { plan } => {
            let plan = plan.iter().map(|plan| Content::text(visible_text(plan))).collect();
            call("plan".to_owned(), None, plan, ToolKind::SwitchMode)
        }
    };
    Item { id, status: ItemStatus::InProgress, body }
}

fn plan_update(plan: &Plan) -> SessionUpdate {
    let entry = |entry: &tieline_event::PlanEntry| {
        let status = match entry.status {
            PlanStatus::Pending => PlanEntryStatus::Pending,
            PlanStatus::InProgress => PlanEntryStatus::InProgress,
            PlanStatus::Completed => PlanEntryStatus::Completed,
        };
        PlanEntry::new(entry.text.as_str(), PlanEntryPriority::Medium, status)
    };
    let meta = plan.explanation.as_ref().map(|explanation| {
        let mut meta = schema::Meta::new();
        meta.insert("explanation".to_owned(), json!(explanation));
        meta
    });
    let entries = plan.entries.iter().map(entry).collect();
    SessionUpdate::Plan(schema::Plan::new(entries).meta(meta))
}

//! The core: lines in, ledger entries and lines out.

mod control;
mod count;
mod errand;
mod offer;
mod system;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{
    Abilities, Answer, Content, EndSignal, Errand, Failure, FailureCode, Inquiry, Item, ItemBody,
    ItemId, ItemStatus, Kind, McpServer, Mode, Native, Notice, NoticeLevel, Origin, Plan,
    PlanEntry, PlanStatus, Policy, Prompt, RateLimit, RequestId, Stream, Text, TurnId,
};
use tieline_wire::claude::write::{self, Control, FlagSettings};
use tieline_wire::claude::{self, Frame, Sniffed};

use super::ask::Asked;
use super::setup::{self, Lifetime};
use super::{ask, outcome, tool};
use crate::driver::{Driver, ExitInfo, Launch, Refused};
use crate::ledger::{Ledger, Meta, OpenItem, TurnEnd};
use crate::words::{first_line, plain, refused_by};

/// Speaks with one Claude Code process.
#[derive(Debug)]
pub struct ClaudeDriver {
    lifetime: Lifetime,
    mode: Mode,
    n_requests: u64,
    /// What we asked the agent, by request id.
    calls: HashMap<String, Call>,
    /// What the agent asked us and waits for.
    asked: HashMap<RequestId, Asked>,
    /// Blocks of each message that were told, which gives the next block its number.
    blocks: HashMap<String, u32>,
    /// The message that streams now, by the tool call it belongs to.
    streaming: HashMap<Option<ItemId>, Streaming>,
    /// Tool uses that a person or a rule said no to.
    refused: HashMap<String, ItemStatus>,
    /// Tool calls since the user's last turn began: a result that comes when they are over is not one
    /// of an unknown call.
    called: HashSet<String>,
    /// Turns of the user whose `init` has not come yet.
    expected_inits: u32,
    /// Background tasks that run.
    tasks: HashSet<String>,
    /// A background task ended, so that the next `init` may be a turn of the agent's own.
    notified: bool,
    /// The list of steps, by the agent's ids.
    steps: BTreeMap<u64, PlanEntry>,
    /// The agent's word for what went wrong with the provider.
    last_error: Option<String>,
    /// The place in the session of the last message of the agent itself.
    pub(super) position: Option<String>,
    interrupted: bool,
    /// The turn is to be interrupted as soon as it has begun: before that the agent knows no turn.
    wants_interrupt: bool,
    spent_usd: Option<f64>,
    count: count::Count,
    offer: offer::Offer,
    abilities: Abilities,
    /// What it was asked before it told what it has.
    inquiries: Vec<(u64, Inquiry)>,
    /// MCP servers the client brings along.
    servers: Vec<McpServer>,
    /// MCP servers that were said to have failed.
    failed_servers: HashSet<String>,
    spoke: bool,
}

#[derive(Debug)]
enum Call {
    Initialize,
    Interrupt,
    SetMode(Mode),
    SetModel(Option<String>),
    SetEffort(String),
    SetServers,
}

#[derive(Debug, Default)]
struct Streaming {
    message: String,
    /// The agent did not say which message this is.
    is_nameless: bool,
    /// The item of the block that streams now.
    item: Option<String>,
    /// The number of that block.
    index: u32,
    /// Tool calls of the message whose input is not there yet.
    announced: Vec<String>,
}

impl ClaudeDriver {
    /// A driver for a process that was started in this mode.
    pub fn new(lifetime: Lifetime, mode: Mode) -> Self {
        Self {
            lifetime,
            mode,
            n_requests: 0,
            calls: HashMap::new(),
            asked: HashMap::new(),
            blocks: HashMap::new(),
            streaming: HashMap::new(),
            refused: HashMap::new(),
            called: HashSet::new(),
            expected_inits: 0,
            tasks: HashSet::new(),
            notified: false,
            steps: BTreeMap::new(),
            last_error: None,
            position: None,
            interrupted: false,
            wants_interrupt: false,
            spent_usd: None,
            count: count::Count::default(),
            offer: offer::Offer::default(),
            inquiries: Vec::new(),
            servers: Vec::new(),
            failed_servers: HashSet::new(),
            abilities: Abilities {
                modes: Mode::ALL.to_vec(),
                steering: lifetime == Lifetime::Conversation,
                fork: true,
                images: lifetime == Lifetime::Conversation,
                questions: lifetime == Lifetime::Conversation,
                approvals: lifetime == Lifetime::Conversation,
                streaming: true,
                ..Abilities::default()
            },
            spoke: false,
        }
    }

    /// The modes that it takes here.
    #[must_use]
    pub fn offering(mut self, modes: &[Mode]) -> Self {
        self.abilities.modes = modes.to_vec();
        self
    }

    /// What the process was started with, and what it is to be told.
    #[must_use]
    pub fn launched(mut self, launch: &Launch<'_>) -> Self {
        self.offer.model = launch.model.map(str::to_owned);
        self.offer.effort = launch.effort.map(str::to_owned);
        self.servers.clone_from(&launch.extras.mcp_servers);
        self
    }

    fn call(&mut self, call: Call, control: &Control<'_>, ledger: &mut Ledger) {
        self.n_requests += 1;
        let id = format!("tl_{}", self.n_requests);
        ledger.write(&write::control_request(&id, control));
        self.calls.insert(id, call);
    }

    fn frame(&mut self, frame: Frame<'_>, line: &[u8], ledger: &mut Ledger) {
        match frame {
            Frame::Stream(stream) => self.stream(&stream, ledger),
            Frame::Assistant(assistant) => self.assistant(&assistant, ledger),
            Frame::User(user) => self.user(&user, ledger),
            Frame::System(system) => self.system(&system, line, ledger),
            Frame::Result(result) => self.result(&result, ledger),
            Frame::ControlRequest { request_id, request } => {
                self.control_request(&request_id, &request, ledger);
            }
            Frame::ControlResponse(response) => self.control_response(&response, ledger),
            Frame::ControlCancel { request_id } => {
                let ours = self.asked.iter().find(|(_, asked)| asked.wire_id == *request_id);
                if let Some(id) = ours.map(|(id, _)| id.clone()) {
                    self.asked.remove(&id);
                    ledger.expire_request(&id, "the agent took it back");
                }
            }
            Frame::RateLimit(info) => rate_limit(&info, ledger),
            Frame::Silent => {}
            Frame::Unknown { name } => {
                ledger.unparsed(format!("unknown frame {name:?}"), line);
            }
        }
    }

    /// A line that is not understood and somebody waits for: the turn's end must end the turn, and
    /// a question must be answered.
    fn not_understood(&mut self, line: &[u8], ledger: &mut Ledger) {
        match claude::sniff(line) {
            Sniffed::Result => {
                let failure = Failure::new(
                    FailureCode::Protocol,
                    "the agent ended the turn in a form that is not understood",
                )
                .hint(
                    "update tieline or the agent; `tieline export KEY --format raw` has the line",
                );
                if let Some(turn) = ledger.oldest_turn().cloned() {
                    ledger.end_turn(&turn, TurnEnd::failed(failure, EndSignal::Wire));
                }
            }
            Sniffed::ControlRequest { request_id } => {
                ledger.write(&write::control_error(&request_id, "not understood"));
            }
            Sniffed::Other => {}
        }
    }

    fn stream(&mut self, stream: &claude::Stream<'_>, ledger: &mut Ledger) {
        let event = &stream.event;
        match &*event.kind {
            "content_block_delta" => {
                let (kind, text) = match (&event.delta.text, &event.delta.thinking) {
                    (Some(text), _) => (Stream::Text, text),
                    (None, Some(thinking)) => (Stream::Reasoning, thinking),
                    (None, None) => return,
                };
                // The common case has no parent, and looking it up allocates nothing.
                let parent = stream.parent.as_deref().map(ItemId::from);
                if let Some(Streaming { item: Some(item), index, .. }) = self.streaming.get(&parent)
                    && *index == event.index
                    && ledger.delta(item, kind, text)
                {
                    return;
                }
                self.unannounced(parent, event.index, kind, text, ledger);
            }
            "message_start" => {
                let parent = stream.parent.as_deref().map(ItemId::from);
                if let (None, Some(head)) = (&parent, &event.message) {
                    self.count.begin(&head.id, head.usage.as_deref());
                }
                let message = event.message.as_ref().map(|head| head.id.to_string());
                let streaming =
                    Streaming { message: message.unwrap_or_default(), ..Streaming::default() };
                if let Some(before) = self.streaming.insert(parent, streaming) {
                    cancel_unfinished(&before, ledger);
                }
            }
            "message_delta" if stream.parent.is_none() => {
                if let Some(usage) = self.count.end(event.usage.as_deref()) {
                    ledger.emit(Kind::UsageUpdated(usage));
                }
            }
            "content_block_start" => {
                let Some(block) = &event.content_block else { return };
                let parent = stream.parent.as_deref().map(ItemId::from);
                let Some(streaming) = self.streaming.get_mut(&parent) else { return };
                let body = match &*block.kind {
                    "text" => ItemBody::AgentMessage { text: Text::default() },
                    "thinking" => ItemBody::Reasoning { text: Text::default(), signature: None },
                    "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                        streaming.item = None;
                        self.called.extend(block.id.as_deref().map(str::to_owned));
                        announce(block, parent, streaming, ledger);
                        return;
                    }
                    _ => {
                        streaming.item = None;
                        return;
                    }
                };
                let id = format!("{}:{}", streaming.message, event.index);
                let meta = meta_of(parent, Some(&streaming.message), None);
                streaming.index = event.index;
                streaming.item = Some(id.clone());
                let item = Item { id: ItemId::new(id), status: ItemStatus::InProgress, body };
                ledger.upsert_item(meta, item);
            }
            "content_block_stop" | "message_stop" => {
                let parent = stream.parent.as_deref().map(ItemId::from);
                if let Some(streaming) = self.streaming.get_mut(&parent) {
                    streaming.item = None;
                }
            }
            _ => {}
        }
    }

    fn assistant(&mut self, frame: &claude::Assistant<'_>, ledger: &mut Ledger) {
        if let Some(error) = frame.error {
            self.last_error = Some(word(error));
            if frame.message.model.as_deref() == Some("<synthetic>") {
                // The agent's own report of the failure; the turn's end says it in full.
                for text in frame.message.content.0.iter().filter_map(|block| block.text.as_deref())
                {
                    ledger.notice(NoticeLevel::Warning, "api_error", first_line(text));
                }
                return;
            }
        }
        let parent = frame.parent.as_deref().map(ItemId::from);
        if parent.is_none() && !frame.aborted {
            self.position = frame.uuid.as_deref().map(str::to_owned);
        }
        let message = frame.message.id.as_deref().unwrap_or_default();
        if parent.is_none()
            && frame.message.model.as_deref() != Some("<synthetic>")
            && let Some(usage) = self.count.whole(message, frame.message.usage.as_ref())
        {
            ledger.emit(Kind::UsageUpdated(usage));
        }
        for block in &frame.message.content.0 {
            let id = self.block_id(message, parent.as_ref());
            let meta = meta_of(parent.clone(), Some(message), None);
            let status = if frame.aborted { ItemStatus::Cancelled } else { ItemStatus::Ok };
            match &*block.kind {
                "text" => {
                    let text = block.text.as_deref().unwrap_or_default();
                    let text = ledger.whole_text(id.as_str(), text);
                    let body = ItemBody::AgentMessage { text };
                    ledger.complete_item(meta, Item { id, status, body });
                }
                "thinking" | "redacted_thinking" => {
                    let text = block.thinking.as_deref().unwrap_or_default();
                    let text = ledger.whole_text(id.as_str(), text);
                    let signature = block.signature.as_deref().map(str::to_owned);
                    let body = ItemBody::Reasoning { text, signature };
                    ledger.complete_item(meta, Item { id, status, body });
                }
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    self.tool_use(block, parent.clone(), message, ledger);
                }
                kind if kind.ends_with("tool_result") => {
                    self.tool_result(block, None, None, ledger);
                }
                kind => {
                    ledger.notice(
                        NoticeLevel::Info,
                        "unknown_block",
                        format!("the agent sent a block of the unknown kind {kind:?}"),
                    );
                }
            }
        }
    }

    /// A piece of a block whose begin, or whose message's begin, was not told: it begins now. What
    /// belongs to a block that was told whole is known already.
    fn unannounced(
        &mut self,
        parent: Option<ItemId>,
        index: u32,
        stream: Stream,
        text: &str,
        ledger: &mut Ledger,
    ) {
        if text.is_empty() {
            return;
        }
        let streaming = self.streaming.entry(parent.clone()).or_insert_with(|| {
            let place = ledger.frame().map_or(0, |frame| frame.0);
            Streaming { message: format!("m{place}"), is_nameless: true, ..Streaming::default() }
        });
        if self.blocks.get(&streaming.message).is_some_and(|told| index < *told) {
            return;
        }
        let id = ItemId::new(format!("{}:{index}", streaming.message));
        (streaming.item, streaming.index) = (Some(id.as_str().to_owned()), index);
        let message = Some(streaming.message.as_str()).filter(|_| !streaming.is_nameless);
        ledger.grow(&id, || meta_of(parent, message, None), stream, text);
    }

    /// The id of the block an `assistant` frame brings: of the one that streams now, else the next.
    fn block_id(&mut self, message: &str, parent: Option<&ItemId>) -> ItemId {
        let streams = self
            .streaming
            .iter()
            .filter(|(of, it)| of.as_ref() == parent && (it.message == message || it.is_nameless));
        let streams = streams.filter_map(|(_, it)| Some((it, it.item.as_deref()?))).next();
        if let Some((streaming, item)) = streams {
            self.blocks.insert(streaming.message.clone(), streaming.index.saturating_add(1));
            return ItemId::from(item);
        }
        let number = self.blocks.entry(message.to_owned()).or_insert(0);
        let id = ItemId::new(format!("{message}:{number}"));
        *number = number.saturating_add(1);
        id
    }

    fn tool_use(
        &mut self,
        block: &claude::Block<'_>,
        parent: Option<ItemId>,
        message: &str,
        ledger: &mut Ledger,
    ) {
        let Some(id) = block.id.as_deref() else { return };
        let name = block.name.as_deref().unwrap_or("tool");
        let body = tool::begun(name, block.input);
        if let Some(streaming) = self.streaming.get_mut(&parent) {
            streaming.announced.retain(|announced| announced != id);
        }
        let meta = meta_of(parent, Some(message), Some(id));
        let item = Item { id: ItemId::from(id), status: ItemStatus::InProgress, body };
        ledger.upsert_item(meta, item);
        self.called.insert(id.to_owned());
        if name == "TodoWrite"
            && let Some(plan) = block.input.and_then(tool::todos)
        {
            ledger.emit(Kind::PlanUpdated(plan));
        }
    }

    fn user(&mut self, frame: &claude::User<'_>, ledger: &mut Ledger) {
        if frame.is_replay {
            return;
        }
        for block in &frame.message.content.0 {
            match &*block.kind {
                "tool_result" => {
                    self.tool_result(block, frame.tool_use_result, frame.tool_result_meta, ledger);
                }
                "text" => self.injected(block.text.as_deref().unwrap_or_default(), frame, ledger),
                _ => {}
            }
        }
    }

    /// A user message that the user did not write.
    fn injected(&mut self, text: &str, frame: &claude::User<'_>, ledger: &mut Ledger) {
        if text.starts_with("[Request interrupted by user") {
            return;
        }
        if let Some(parent) = frame.parent.as_deref().map(ItemId::from) {
            // The prompt a sub-agent was given.
            let id = ItemId::new(format!("{parent}:prompt"));
            let body = ItemBody::UserMessage { content: vec![Content::text(text)] };
            let meta = meta_of(Some(parent), None, None);
            ledger.complete_item(meta, Item { id, status: ItemStatus::Ok, body });
        } else {
            ledger.notice(NoticeLevel::Info, "injected", first_line(text));
        }
    }

    fn tool_result(
        &mut self,
        block: &claude::Block<'_>,
        sidecar: Option<&RawValue>,
        meta: Option<&RawValue>,
        ledger: &mut Ledger,
    ) {
        let Some(id) = block.tool_use_id.as_deref() else { return };
        let Some(item) = ledger.item(id).cloned() else {
            if self.called.contains(id) {
                tracing::debug!(id, "a result came for a tool call that is over");
                return;
            }
            ledger.notice(
                NoticeLevel::Info,
                "orphan_result",
                format!("a result came for the unknown tool call {id}"),
            );
            return;
        };
        let status = if block.is_error == Some(true) {
            let refused = self.refused.remove(id);
            outcome::of_failed_tool(id, block, meta, refused, self.interrupted)
        } else {
            ItemStatus::Ok
        };
        let mut item = Item { status, ..item };
        let goes_on = tool::finish(&mut item, block, sidecar);
        self.follow_steps(&item, sidecar, ledger);
        if goes_on && status == ItemStatus::Ok {
            item.status = ItemStatus::InProgress;
            ledger.upsert_item(Meta::default(), item);
            ledger.detach_item(id);
        } else {
            ledger.complete_item(Meta::default(), item);
        }
    }

    /// `TaskCreate` and `TaskUpdate` keep a list of steps that only their results number.
    fn follow_steps(&mut self, item: &Item, sidecar: Option<&RawValue>, ledger: &mut Ledger) {
        let ItemBody::ToolCall { tool, input, .. } = &item.body else { return };
        if item.status != ItemStatus::Ok {
            return;
        }
        let changed = match tool.as_str() {
            "TaskCreate" => tool::created_step(sidecar).map(|(id, text)| {
                self.steps.insert(id, PlanEntry { text, status: PlanStatus::Pending });
            }),
            "TaskUpdate" => input.as_ref().and_then(tool::updated_step).map(|update| {
                if update.deleted {
                    self.steps.remove(&update.id);
                } else if let Some(step) = self.steps.get_mut(&update.id) {
                    if let Some(status) = update.status {
                        step.status = status;
                    }
                    if let Some(text) = update.text {
                        step.text = text;
                    }
                }
            }),
            _ => None,
        };
        if changed.is_some() {
            let entries = self.steps.values().cloned().collect();
            ledger.emit(Kind::PlanUpdated(Plan { entries, explanation: None }));
        }
    }

    fn result(&mut self, frame: &claude::ResultFrame<'_>, ledger: &mut Ledger) {
        if let Some(session) = frame.session_id.as_deref()
            && ledger.session().is_none()
            && !session.is_empty()
            && frame.num_turns != Some(0)
        {
            ledger.set_session(session);
        }
        let turn = self.turn_of_result(frame, ledger);
        let last_error = self.last_error.take();
        let usage = outcome::usage(frame, &mut self.spent_usd);
        let model = self.offer.model_in_use.as_deref();
        self.count.learn_window(frame.model_usage, model);
        let usage = usage.map(|usage| self.count.complete(usage));
        let open_tasks = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        let end =
            outcome::of_turn(frame, last_error.as_deref(), self.interrupted, usage, open_tasks);
        (self.interrupted, self.wants_interrupt) = (false, false);
        ledger.end_turn(&turn, end);
        // Empty after a compaction, behind which nobody can branch off.
        ledger.set_position(self.position.as_deref().unwrap_or_default());
        if ledger.current_turn().is_none() {
            self.blocks.clear();
            self.streaming.clear();
            self.refused.clear();
            self.asked.retain(|id, _| ledger.open_requests().any(|open| open == id));
        }
    }

    /// Results come in the order of their turns, save that those of the agent's own turns say so.
    fn turn_of_result(&mut self, frame: &claude::ResultFrame<'_>, ledger: &mut Ledger) -> TurnId {
        let own = frame.origin.as_ref().is_some_and(|origin| origin.kind == "task-notification");
        let open = if own { ledger.follow_up_turn() } else { ledger.oldest_turn() };
        match open.cloned() {
            Some(turn) => turn,
            None => {
                if own && ledger.current_turn().is_some() {
                    // Its `init` was taken for the user's turn, whose own is still to come.
                    self.expected_inits += 1;
                }
                ledger.begin_turn(Origin::Agent, None)
            }
        }
    }

    fn say(&self, prompt: &Prompt, ledger: &mut Ledger) {
        match self.lifetime {
            Lifetime::Conversation => ledger.write(&write::user(&ask::blocks(&prompt.content))),
            Lifetime::Turn => {
                let text =
                    |piece: &Content| plain(piece, '/').unwrap_or_else(|| "[image]".to_owned());
                let pieces: Vec<String> = prompt.content.iter().map(text).collect();
                ledger.write(pieces.join("\n\n").as_bytes());
                ledger.close_input();
            }
        }
    }
}

impl Driver for ClaudeDriver {
    fn started(&mut self, ledger: &mut Ledger) {
        if self.lifetime == Lifetime::Conversation {
            self.call(Call::Initialize, &Control::Initialize, ledger);
        }
        self.bring_servers(ledger);
    }

    fn line(&mut self, line: &[u8], ledger: &mut Ledger) {
        let repaired = claude::repair_surrogates(line);
        let line = repaired.as_deref().unwrap_or(line);
        match claude::parse(line) {
            Ok(frame) => self.frame(frame, line, ledger),
            Err(error) => {
                ledger.unparsed(error.to_string(), line);
                self.not_understood(line, ledger);
            }
        }
    }

    fn start_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        (self.interrupted, self.wants_interrupt) = (false, false);
        self.last_error = None;
        self.called.clear();
        self.count.begin_turn();
        self.expected_inits += 1;
        self.say(prompt, ledger);
    }

    fn start_errand(&mut self, errand: &Errand, ledger: &mut Ledger) -> Result<(), Refused> {
        let words = self.words_for(errand)?;
        self.start_turn(&Prompt::text(words), ledger);
        Ok(())
    }

    fn inquire(
        &mut self,
        number: u64,
        inquiry: &Inquiry,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        match inquiry {
            Inquiry::Models | Inquiry::Skills { .. } if self.is_being_initialized() => {
                self.inquiries.push((number, inquiry.clone()));
            }
            Inquiry::Models | Inquiry::Skills { .. } => self.tell(number, inquiry, ledger),
            Inquiry::Prompts => {
                let why = "Claude Code tells its users' prompts among its commands alone";
                return Err(Refused(why.to_owned()));
            }
            Inquiry::Tools => {
                let why = "Claude Code does not tell what the tools of its servers take";
                return Err(Refused(why.to_owned()));
            }
        }
        Ok(())
    }

    fn steer(&mut self, prompt: &Prompt, ledger: &mut Ledger) -> Result<(), Refused> {
        if self.lifetime == Lifetime::Turn {
            return Err(Refused(
                "Claude Code takes no message during a turn when each turn has its own process"
                    .to_owned(),
            ));
        }
        self.say(prompt, ledger);
        Ok(())
    }

    fn interrupt(&mut self, ledger: &mut Ledger) -> bool {
        self.interrupted = true;
        if self.lifetime == Lifetime::Turn {
            return false;
        }
        self.wants_interrupt = self.expected_inits > 0;
        if !self.wants_interrupt {
            self.call(Call::Interrupt, &Control::Interrupt, ledger);
        }
        true
    }

    fn answer(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        by: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        let Some(asked) = self.asked.remove(request) else {
            return Err(Refused(format!("request {request} is answered or gone")));
        };
        if let Answer::Deny { stop, .. } = answer {
            if let Some(tool_use) = &asked.tool_use {
                let status = refused_by(by);
                self.refused.insert(tool_use.clone(), status);
            }
            self.interrupted |= *stop;
        }
        ledger.write(&ask::answer(&asked, answer));
        Ok(())
    }

    fn set_mode(&mut self, mode: Mode, policy: Option<Policy>, ledger: &mut Ledger) -> bool {
        // A process that was not started to never ask cannot be told to later. What has no policies
        // says so when it is started.
        if self.lifetime == Lifetime::Turn
            || Policy::beyond(mode, policy).is_some()
            || setup::mode_name(mode) == "bypassPermissions"
        {
            return false;
        }
        let control = Control::SetPermissionMode { mode: setup::mode_name(mode) };
        self.call(Call::SetMode(mode), &control, ledger);
        true
    }

    fn set_model(&mut self, model: Option<&str>, ledger: &mut Ledger) -> bool {
        if self.lifetime == Lifetime::Turn {
            return false;
        }
        self.call(Call::SetModel(model.map(str::to_owned)), &Control::SetModel { model }, ledger);
        true
    }

    fn set_effort(&mut self, effort: Option<&str>, ledger: &mut Ledger) -> bool {
        // The way back to the agent's own choice leads through a new process.
        let Some(effort) = effort.filter(|_| self.lifetime == Lifetime::Conversation) else {
            return false;
        };
        if self.is_unknown_effort(effort, ledger) {
            return true;
        }
        let settings = FlagSettings { effort_level: effort };
        let control = Control::ApplyFlagSettings { settings };
        self.call(Call::SetEffort(effort.to_owned()), &control, ledger);
        true
    }

    fn explain_exit(&self, exit: &ExitInfo) -> Failure {
        setup::explain_exit(exit, self.spoke)
    }
}

/// A tool call begins with its name; what it is given follows.
fn announce(
    block: &claude::Block<'_>,
    parent: Option<ItemId>,
    streaming: &mut Streaming,
    ledger: &mut Ledger,
) {
    let (Some(id), Some(name)) = (block.id.as_deref(), block.name.as_deref()) else { return };
    streaming.announced.push(id.to_owned());
    let meta = meta_of(parent, Some(&streaming.message), Some(id));
    let body = tool::announced(name);
    ledger.upsert_item(meta, Item { id: ItemId::from(id), status: ItemStatus::InProgress, body });
}

/// The message was cut off and another one came instead: its text goes no further, its calls are
/// never made.
fn cancel_unfinished(streaming: &Streaming, ledger: &mut Ledger) {
    let text = streaming.item.iter().filter(|_| !streaming.is_nameless);
    for id in text.chain(&streaming.announced) {
        if let Some(item) = ledger.open_items().get(id).map(OpenItem::snapshot) {
            let status = ItemStatus::Cancelled;
            ledger.complete_item(Meta::default(), Item { status, ..item });
        }
    }
}

fn rate_limit(info: &claude::RateLimitInfo<'_>, ledger: &mut Ledger) {
    let rejected = info.status == "rejected";
    ledger.emit(Kind::Notice(Notice {
        level: if rejected { NoticeLevel::Warning } else { NoticeLevel::Info },
        code: "rate_limit".to_owned(),
        text: format!("the provider's limit: {}", &*info.status),
        rate_limit: Some(RateLimit {
            status: info.status.to_string(),
            limit: info.rate_limit_type.as_deref().map(str::to_owned),
            used: info.utilization,
            resets_at: info.resets_at.map(|seconds| seconds as i64),
        }),
    }));
}

fn meta_of(parent: Option<ItemId>, message: Option<&str>, item: Option<&str>) -> Meta {
    let native = Native {
        message: message.map(str::to_owned),
        item: item.map(str::to_owned),
        ..Native::default()
    };
    Meta { parent, native }
}

/// A JSON string as text, anything else as its JSON.
pub(super) fn word(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// A list of strings, or of objects with a name.
fn names(raw: Option<&RawValue>) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Named {
        Plain(String),
        Object { name: String },
    }
    let named: Vec<Named> =
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    named
        .into_iter()
        .map(|named| match named {
            Named::Plain(name) | Named::Object { name } => name,
        })
        .collect()
}

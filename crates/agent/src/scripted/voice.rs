//! Frames as the real agent writes them, with the message that is being written.

use serde_json::{Value, json};
use tieline_wire::claude::serve::{
    AgentMessage, Block, Delta, Event, Frame, Init, News, Stop, Tokens, TurnResult, UserMessage,
    append,
};
use tieline_wire::claude::write;

use super::ids::Ids;
use super::tool::{Given, Tool};

/// So much is collected before it has to be written.
const FULL: usize = 32 * 1024;

/// The seal on a thought. It is not a real one.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

/// Writes frames.
#[derive(Debug)]
pub(super) struct Voice {
    session: String,
    pub(super) model: String,
    ids: Ids,
    out: Vec<u8>,
    message: Option<OpenMessage>,
    n_messages: u32,
}

#[derive(Debug)]
struct OpenMessage {
    id: String,
    index: u32,
    block: Option<(Kind, String)>,
}

/// What kind of text streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
}

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Whole,
    Cut,
}

/// The end of a turn.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) reason: Reason<'a>,
    pub(super) tokens: Tokens,
    /// Since the process began.
    pub(super) total: Tokens,
    pub(super) denials: &'a [Value],
    pub(super) millis: u64,
}

/// Why a turn ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reason<'a> {
    Completed { text: &'a str },
    ApiError { status: Option<u16>, text: &'a str },
    AbortedStreaming,
    AbortedTools,
}

impl Voice {
    pub(super) fn new(session: Option<String>, model: String, mut ids: Ids) -> Self {
        let session = session.unwrap_or_else(|| ids.uuid());
        Self { session, model, ids, out: Vec::new(), message: None, n_messages: 0 }
    }

    /// Takes what is to be written.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Whether so much is collected that it should be written.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= FULL
    }

    /// A turn begins.
    pub(super) fn init(&mut self, cwd: &str, mode: &str) {
        self.n_messages = 0;
        let uuid = self.ids.uuid();
        let news = News::Init(Init {
            cwd,
            tools: super::TOOLS,
            mcp_servers: &[],
            model: &self.model,
            permission_mode: mode,
            slash_commands: &[super::RESTART],
            api_key_source: "none",
            claude_code_version: super::VERSION,
            output_style: "default",
            agents: &[],
            skills: &[],
            plugins: &[],
        });
        let session_id = &self.session;
        append(&mut self.out, &Frame::System { news, session_id, uuid: &uuid });
    }

    /// The mode changed.
    pub(super) fn mode(&mut self, mode: &str) {
        self.system(News::Status { status: None, permission_mode: Some(mode) });
    }

    /// A block of text begins.
    pub(super) fn begin_block(&mut self, kind: Kind) {
        let index = self.open_message();
        let content_block = match kind {
            Kind::Text => Block::Text { text: "" },
            Kind::Thinking => Block::Thinking { thinking: "", signature: "" },
        };
        self.event(Event::ContentBlockStart { index, content_block });
        if let Some(message) = &mut self.message {
            message.block = Some((kind, String::new()));
        }
    }

    /// The block grows.
    pub(super) fn grow(&mut self, text: &str) {
        let Some(message) = &mut self.message else { return };
        let Some((kind, whole)) = &mut message.block else { return };
        whole.push_str(text);
        let delta = match kind {
            Kind::Text => Delta::TextDelta { text },
            Kind::Thinking => Delta::ThinkingDelta { thinking: text },
        };
        let index = message.index;
        self.event(Event::ContentBlockDelta { index, delta });
    }

    /// The block is over; gives its text.
    pub(super) fn end_block(&mut self) -> String {
        let Some(message) = &mut self.message else { return String::new() };
        let Some((kind, text)) = message.block.take() else { return String::new() };
        let index = message.index;
        message.index += 1;
        if kind == Kind::Thinking {
            let delta = Delta::SignatureDelta { signature: SIGNATURE };
            self.event(Event::ContentBlockDelta { index, delta });
        }
        self.block(kind, &text, Ending::Whole);
        self.event(Event::ContentBlockStop { index });
        text
    }

    /// The model calls a tool, which ends its message.
    pub(super) fn tool_use(&mut self, tool: &Tool) {
        let index = self.open_message();
        let (id, name) = (tool.id.as_str(), &*tool.name);
        let empty = json!({});
        let content_block = Block::ToolUse { id, name, input: &empty };
        self.event(Event::ContentBlockStart { index, content_block });
        let delta = Delta::InputJsonDelta { partial_json: &tool.input.to_string() };
        self.event(Event::ContentBlockDelta { index, delta });
        self.assistant(&Block::ToolUse { id, name, input: &tool.input }, Ending::Whole);
        self.event(Event::ContentBlockStop { index });
        self.end_message(Some("tool_use"));
    }

    /// The message is over.
    pub(super) fn end_message(&mut self, stop_reason: Option<&str>) {
        if self.message.is_some() {
            let delta = Stop { stop_reason, stop_sequence: None };
            self.event(Event::MessageDelta { delta, usage: Tokens::default() });
            self.event(Event::MessageStop);
            self.message = None;
        }
    }

    /// The message is cut off.
    pub(super) fn cut_message(&mut self) {
        let block = self.message.as_mut().and_then(|message| message.block.take());
        if let Some((kind, text)) = &block {
            self.block(*kind, text, Ending::Cut);
        }
        self.put_in("[Request interrupted by user]");
        if let (Some(_), Some(message)) = (&block, &self.message) {
            let index = message.index;
            self.event(Event::ContentBlockStop { index });
        }
        self.end_message(None);
    }

    /// What a tool gave back.
    pub(super) fn tool_result(&mut self, tool: &Tool, given: &Given) {
        let block = Block::ToolResult {
            tool_use_id: &tool.id,
            content: &given.content,
            is_error: given.is_error,
        };
        let uuid = self.ids.uuid();
        let frame = Frame::User {
            message: UserMessage { role: "user", content: &[block] },
            parent_tool_use_id: None,
            session_id: &self.session,
            uuid: &uuid,
            tool_use_result: Some(&given.sidecar),
            tool_result_meta: Some(&tool.meta(given)),
        };
        append(&mut self.out, &frame);
    }

    /// A message in the user's name.
    pub(super) fn put_in(&mut self, text: &str) {
        let uuid = self.ids.uuid();
        let frame = Frame::User {
            message: UserMessage { role: "user", content: &[Block::Text { text }] },
            parent_tool_use_id: None,
            session_id: &self.session,
            uuid: &uuid,
            tool_use_result: None,
            tool_result_meta: None,
        };
        append(&mut self.out, &frame);
    }

    /// The report of a failed call.
    pub(super) fn api_error(&mut self, status: Option<u16>, text: &str) {
        let (uuid, id) = (self.ids.uuid(), self.ids.uuid());
        let error = match status {
            Some(401 | 403) => "authentication_failed",
            Some(429) => "rate_limit",
            Some(529) => "overloaded",
            Some(500..) => "server_error",
            Some(_) => "invalid_request",
            None => "unknown",
        };
        let content = [Block::Text { text }];
        let frame = Frame::Assistant {
            message: AgentMessage::new(&id, "<synthetic>", &content),
            parent_tool_use_id: None,
            session_id: &self.session,
            uuid: &uuid,
            error: Some(error),
            api_error_status: status,
            aborted: false,
        };
        append(&mut self.out, &frame);
    }

    /// The turn is over.
    pub(super) fn result(&mut self, end: &End<'_>) {
        let uuid = self.ids.uuid();
        let (subtype, terminal_reason, stop_reason, status, text) = match end.reason {
            Reason::Completed { text } => {
                ("success", "completed", Some("end_turn"), None, Some(text))
            }
            Reason::ApiError { status, text } => {
                ("success", "api_error", Some("stop_sequence"), status, Some(text))
            }
            Reason::AbortedStreaming => {
                ("error_during_execution", "aborted_streaming", None, None, None)
            }
            Reason::AbortedTools => {
                ("error_during_execution", "aborted_tools", Some("tool_use"), None, None)
            }
        };
        let errors: &[&str] =
            if text.is_none() { &["[ede_diagnostic] result_type=user"] } else { &[] };
        let mut model_usage = json!({});
        model_usage[&self.model] = json!({
            "inputTokens": end.total.input_tokens,
            "outputTokens": end.total.output_tokens,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
            "webSearchRequests": 0,
            "costUSD": 0.0,
            "contextWindow": 200_000,
        });
        let frame = TurnResult {
            duration_api_ms: 0,
            stop_reason,
            session_id: &self.session,
            total_cost_usd: 0.0,
            usage: end.tokens,
            model_usage: &model_usage,
            permission_denials: end.denials,
            terminal_reason,
            is_error: !matches!(end.reason, Reason::Completed { .. }),
            num_turns: self.n_messages,
            subtype,
            api_error_status: status,
            result: text,
            errors,
            kind: "result",
            duration_ms: end.millis,
            uuid: &uuid,
        };
        append(&mut self.out, &frame);
    }

    /// Asks the host; gives the id of the request.
    pub(super) fn ask(&mut self, request: &Value) -> String {
        let id = self.ids.uuid();
        self.out.extend(write::control_request(&id, request));
        id
    }

    /// Takes a request back.
    pub(super) fn take_back(&mut self, request_id: &str) {
        append(&mut self.out, &Frame::ControlCancelRequest { request_id });
    }

    /// Answers the host.
    pub(super) fn answer(&mut self, request_id: &str, answer: Result<Value, String>) {
        self.out.extend(match answer {
            Ok(response) => write::control_success(request_id, &response),
            Err(error) => write::control_error(request_id, &error),
        });
    }

    /// A new id for a tool call.
    pub(super) fn tool_id(&mut self) -> String {
        self.ids.name("toolu")
    }

    /// Begins a message unless there is one; gives the number of its next block.
    fn open_message(&mut self) -> u32 {
        if let Some(message) = &self.message {
            return message.index;
        }
        self.system(News::Status { status: Some("requesting"), permission_mode: None });
        let id = self.ids.name("msg");
        self.n_messages += 1;
        let uuid = self.ids.uuid();
        let frame = Frame::StreamEvent {
            event: Event::MessageStart { message: AgentMessage::new(&id, &self.model, &[]) },
            session_id: &self.session,
            parent_tool_use_id: None,
            uuid: &uuid,
        };
        append(&mut self.out, &frame);
        self.message = Some(OpenMessage { id, index: 0, block: None });
        0
    }

    fn block(&mut self, kind: Kind, text: &str, ending: Ending) {
        let block = match kind {
            Kind::Text => Block::Text { text },
            Kind::Thinking => Block::Thinking { thinking: text, signature: SIGNATURE },
        };
        self.assistant(&block, ending);
    }

    fn assistant(&mut self, block: &Block<'_>, ending: Ending) {
        let uuid = self.ids.uuid();
        let id = self.message.as_ref().map_or("", |message| &message.id);
        let frame = Frame::Assistant {
            message: AgentMessage::new(id, &self.model, std::slice::from_ref(block)),
            parent_tool_use_id: None,
            session_id: &self.session,
            uuid: &uuid,
            error: None,
            api_error_status: None,
            aborted: ending == Ending::Cut,
        };
        append(&mut self.out, &frame);
    }

    fn event(&mut self, event: Event<'_>) {
        let uuid = self.ids.uuid();
        let session_id = &self.session;
        let frame = Frame::StreamEvent { event, session_id, parent_tool_use_id: None, uuid: &uuid };
        append(&mut self.out, &frame);
    }

    fn system(&mut self, news: News<'_>) {
        let uuid = self.ids.uuid();
        append(&mut self.out, &Frame::System { news, session_id: &self.session, uuid: &uuid });
    }
}

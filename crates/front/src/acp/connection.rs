//! Reading the client's lines and finding out who is to act on them.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tieline_event::{ConversationKey, Mode};
use tieline_hub::{Hub, OpenOptions};
use tieline_wire::acp::schema::{
    AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal,
    AuthenticateRequest, AuthenticateResponse, CloseSessionRequest, CloseSessionResponse,
    DeleteSessionRequest, DeleteSessionResponse, ForkSessionRequest, Implementation,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LogoutCapabilities, LogoutResponse, McpCapabilities, McpServer, NewSessionRequest,
    PromptCapabilities, PromptRequest, ResumeSessionRequest,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities,
    SessionDeleteCapabilities, SessionForkCapabilities, SessionInfo, SessionListCapabilities,
    SessionResumeCapabilities, SetSessionModeRequest,
};
use tieline_wire::acp::serve::{Incoming, read};
use tieline_wire::acp::{
    INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, ProtocolVersion,
};
use tieline_wire::jsonrpc::Id;
use tieline_wire::jsonrpc::write;
use tieline_wire::ndjson::{self, Framer, Line};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::client::Client;
use super::from_acp::{self, Refusal, params};
use super::session::{How, INBOX, Message, Opening, Row, Session};
use super::shared::Shared;
use super::{Error, Options, outcome};
use crate::outbox::Outbox;

/// Sessions and requests that may be under way at once; more are refused.
const TASKS: usize = 1024;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// How many sessions a page of the list has.
const PAGE: usize = 50;

/// One client.
pub(super) struct Connection {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Connection {
    pub(super) fn new(hub: Hub, options: Options, outbox: Outbox) -> Self {
        Self { shared: Arc::new(Shared::new(hub, options, outbox)), tasks: JoinSet::new() }
    }

    /// Until the client hangs up or a signal comes.
    pub(super) async fn run(&mut self, mut input: impl AsyncRead + Unpin) -> Result<(), Error> {
        let listen =
            |kind| signal(kind).map_err(|source| Error::Io { what: "listen to signals", source });
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let mut hangup = listen(SignalKind::hangup())?;
        let mut framer = Framer::new(self.shared.options.line);
        let mut buffer = vec![0; CHUNK];
        let outbox = self.shared.outbox.clone();
        loop {
            let more = async {
                outbox.room_to_read().await;
                input.read(&mut buffer).await
            };
            let n = tokio::select! {
                biased;
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = hangup.recv() => return Ok(()),
                () = outbox.gone() => return Ok(()),
                Some(done) = self.tasks.join_next() => {
                    if let Err(error) = done {
                        tracing::error!(%error, "a task failed");
                    }
                    continue;
                }
                n = more => n.map_err(|source| Error::Io { what: "read", source })?,
            };
            if n == 0 {
                framer.finish(|line| self.line(line));
                return Ok(());
            }
            framer.feed(buffer.get(..n).unwrap_or_default(), |line| self.line(line));
        }
    }

    /// The sessions say their last words.
    pub(super) async fn end(&mut self) {
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(super::DRAINING, ending).await.is_err() {
            tracing::debug!("not every session ended in time");
        }
    }

    fn line(&mut self, line: Line<'_>) {
        let line = match line {
            Line::Whole(line) | Line::Unfinished(line) => line,
            Line::Oversized { bytes, .. } => {
                let message = format!("a line of {bytes} bytes is too long");
                return self.shared.send(write::unreadable(INVALID_REQUEST, &message));
            }
        };
        let line = ndjson::content(&line);
        if line.is_empty() {
            return;
        }
        match read(line) {
            Incoming::Request { id, method, params } => {
                if let Err(refusal) = self.request(&id, &method, params) {
                    self.shared.refuse(&id, &refusal);
                }
            }
            Incoming::Notification { method, params } => self.notification(&method, params),
            Incoming::Response { id, outcome } => match self.shared.asker(&id) {
                Some(session) => {
                    let outcome =
                        outcome.map(|raw| serde_json::from_str(raw.get()).unwrap_or(Value::Null));
                    self.tell(session, Message::Answered(id, outcome));
                }
                None => tracing::debug!(%id, "an answer to nothing"),
            },
            Incoming::Bad { id: Some(id), code, message } => {
                self.shared.refuse(&id, &Refusal::new(code, message));
            }
            Incoming::Bad { id: None, code, message } => {
                self.shared.send(write::unreadable(code, &message));
            }
            Incoming::Dropped { reason } => tracing::warn!(%reason, "a broken answer"),
        }
    }

    /// Gives a session what must not be lost, without waiting for it here.
    fn tell(&mut self, session: mpsc::Sender<Message>, message: Message) {
        if let Err(mpsc::error::TrySendError::Full(message)) = session.try_send(message) {
            self.tasks.spawn(async move {
                // A session that has ended needs no news.
                if session.send(message).await.is_err() {
                    tracing::debug!("the session ended before the news");
                }
            });
        }
    }

    /// Gives a session a request, or says why not.
    fn pass(&self, session: &str, message: Message) -> Result<(), Refusal> {
        let session = self.session(session)?;
        session.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                Refusal::new(INTERNAL_ERROR, "the session is busy; try again")
            }
            mpsc::error::TrySendError::Closed(_) => {
                Refusal::new(INTERNAL_ERROR, "the session was closed")
            }
        })
    }

    fn session(&self, session: &str) -> Result<mpsc::Sender<Message>, Refusal> {
        let key = ConversationKey::new(session).map_err(|_| Refusal::no_session(session))?;
        self.shared.session(&key).ok_or_else(|| Refusal::no_session(session))
    }

    fn notification(&mut self, method: &str, raw: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancel {
            session_id: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelRequest {
            request_id: Id,
        }
        match method {
            "session/cancel" => {
                let cancel = params::<Cancel>(raw).and_then(|it| self.session(&it.session_id));
                match cancel {
                    Ok(session) => self.tell(session, Message::Cancel),
                    Err(refusal) => tracing::warn!(message = %refusal.message, "session/cancel"),
                }
            }
            "$/cancel_request" => {
                // What is not a prompt is answered soon anyway.
                if let Ok(CancelRequest { request_id }) = params(raw)
                    && let Some(session) = self.shared.session_of_prompt(&request_id)
                {
                    self.tell(session, Message::CancelPrompt(request_id));
                }
            }
            _ => tracing::debug!(method, "an unknown notification"),
        }
    }

    fn request(&mut self, id: &Id, method: &str, raw: Option<&RawValue>) -> Result<(), Refusal> {
        if self.tasks.len() >= TASKS {
            return Err(Refusal::new(INTERNAL_ERROR, "too much is under way; try again"));
        }
        match method {
            "initialize" => self.initialize(id, raw),
            "authenticate" => self.authenticate(id, raw),
            "logout" => {
                let (shared, id) = (Arc::clone(&self.shared), id.clone());
                self.tasks.spawn(async move {
                    match shared.options.accounts.log_out().await {
                        Ok(()) => shared.answer(&id, &LogoutResponse::new()),
                        Err(failure) => shared.refuse(&id, &outcome::failed(&failure)),
                    }
                });
                Ok(())
            }
            "session/new" => self.new_session(id, raw),
            "session/load" => {
                let it: LoadSessionRequest = params(raw)?;
                let wish = Wish::new(it.cwd, it.mcp_servers, it.additional_directories)?;
                self.open(id, How::Load, &it.session_id.0, wish)
            }
            "session/resume" => {
                let it: ResumeSessionRequest = params(raw)?;
                let wish = Wish::new(it.cwd, it.mcp_servers, it.additional_directories)?;
                self.open(id, How::Resume, &it.session_id.0, wish)
            }
            "session/fork" => self.fork(id, raw),
            "session/list" => self.list(id, raw),
            "session/close" => {
                let it: CloseSessionRequest = params(raw)?;
                self.close(id, &it.session_id.0)
            }
            "session/delete" => self.delete(id, raw),
            "session/prompt" => {
                let it: PromptRequest = params(raw)?;
                let session = self.session(&it.session_id.0)?;
                self.shared.note_prompt(id.clone(), session);
                let passed = self.pass(&it.session_id.0, Message::Prompt(id.clone(), it.prompt));
                passed.inspect_err(|_| self.shared.forget_prompt(id))
            }
            "_session/steering" => {
                let it: PromptRequest = params(raw)?;
                let idle = from_acp::idle(it.meta.as_ref())?;
                self.pass(&it.session_id.0, Message::Steer(id.clone(), it.prompt, idle))
            }
            "session/set_mode" => {
                let it: SetSessionModeRequest = params(raw)?;
                let session = it.session_id.0;
                self.session(&session)?;
                let mode = from_acp::mode(&it.mode_id.0)?;
                self.pass(&session, Message::SetMode(id.clone(), mode))
            }
            "session/set_config_option" => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Set {
                    session_id: String,
                    config_id: String,
                    value: Value,
                }
                let it: Set = params(raw)?;
                let Value::String(value) = it.value else {
                    self.session(&it.session_id)?;
                    return Err(Refusal::params(format!(
                        "the setting {:?} takes one of its values",
                        it.config_id
                    )));
                };
                let set = Message::SetSetting(id.clone(), it.config_id, value);
                self.pass(&it.session_id, set)
            }
            _ => Err(Refusal::new(METHOD_NOT_FOUND, format!("unknown method {method:?}"))),
        }
    }

    /// Who we are and what we can do. Answered before any agent starts.
    fn initialize(&self, id: &Id, raw: Option<&RawValue>) -> Result<(), Refusal> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Introduction {
            #[serde(rename = "protocolVersion")]
            _protocol_version: u16,
            #[serde(default)]
            client_capabilities: Option<Value>,
        }
        // We speak one version; a client that cannot go on with it hangs up.
        let it: Introduction = params(raw)?;
        let client = Client::new(it.client_capabilities.as_ref());
        self.shared.introduce(client);
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .auth(AgentAuthCapabilities::new().logout(LogoutCapabilities::new()))
            .session_capabilities(
                SessionCapabilities::new()
                    .list(SessionListCapabilities::new())
                    .resume(SessionResumeCapabilities::new())
                    .close(SessionCloseCapabilities::new())
                    .delete(SessionDeleteCapabilities::new())
                    .fork(SessionForkCapabilities::new())
                    .additional_directories(SessionAdditionalDirectoriesCapabilities::new()),
            );
        let logins = self.shared.options.accounts.logins();
        let methods = logins.into_iter().filter_map(|login| match login.terminal {
            Some(args) if client.terminal_login => Some(AuthMethod::Terminal(
                AuthMethodTerminal::new(login.id, login.name)
                    .description(login.description)
                    .args(args),
            )),
            Some(_) => None,
            None => Some(AuthMethod::Agent(
                AuthMethodAgent::new(login.id, login.name).description(login.description),
            )),
        });
        let ours =
            Implementation::new("tieline", self.shared.options.version).title("tieline".to_owned());
        let meta = match json!({"steering": {"supported": true}, "promptQueueing": true}) {
            Value::Object(meta) => Some(meta),
            _ => None,
        };
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .auth_methods(methods.collect())
            .agent_info(ours)
            .meta(meta);
        self.shared.answer(id, &response);
        Ok(())
    }

    fn authenticate(&mut self, id: &Id, raw: Option<&RawValue>) -> Result<(), Refusal> {
        let it: AuthenticateRequest = params(raw)?;
        let login = it.method_id.0;
        if !self.shared.options.accounts.logins().iter().any(|known| known.id == *login) {
            return Err(Refusal::params(format!("there is no login {login:?}")));
        }
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.tasks.spawn(async move {
            match shared.options.accounts.check(&login).await {
                Ok(()) => shared.answer(&id, &AuthenticateResponse::new()),
                Err(failure) => shared.refuse(&id, &outcome::failed(&failure)),
            }
        });
        Ok(())
    }

    fn new_session(&mut self, id: &Id, raw: Option<&RawValue>) -> Result<(), Refusal> {
        let it: NewSessionRequest = params(raw)?;
        let wish = Wish::new(it.cwd, it.mcp_servers, it.additional_directories)?;
        let mode = wanted_mode(raw)?.or(self.shared.options.mode);
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.tasks.spawn(async move {
            let key = (shared.options.new_key)();
            let opened = async {
                let options = wish.settle().await?;
                let workspace = options.workspace.clone().unwrap_or_default();
                let agent = Some(choose(&shared, workspace, mode).await?);
                let model = shared.options.model.clone();
                Ok(OpenOptions { agent, mode, model, ..options })
            };
            match opened.await {
                Ok(options) => live(shared, id, How::New, key, options).await,
                Err(refusal) => shared.refuse(&id, &refusal),
            }
        });
        Ok(())
    }

    /// Opens a conversation that exists.
    fn open(&mut self, id: &Id, how: How, session: &str, wish: Wish) -> Result<(), Refusal> {
        let key = ConversationKey::new(session).map_err(|_| Refusal::no_session(session))?;
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.tasks.spawn(async move {
            match wish.settle().await {
                Ok(options) => live(shared, id, how, key, options).await,
                Err(refusal) => shared.refuse(&id, &refusal),
            }
        });
        Ok(())
    }

    fn fork(&mut self, id: &Id, raw: Option<&RawValue>) -> Result<(), Refusal> {
        let it: ForkSessionRequest = params(raw)?;
        let session = it.session_id.0;
        let from = ConversationKey::new(&session).map_err(|_| Refusal::no_session(&session))?;
        let wish = Wish::new(it.cwd, it.mcp_servers, it.additional_directories)?;
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.tasks.spawn(async move {
            let key = (shared.options.new_key)();
            let forked = async {
                let options = wish.settle().await?;
                find(&shared, &from).await?;
                shared.hub.fork(&from, &key).await.map_err(|error| outcome::refusal(&error))?;
                Ok(options)
            };
            match forked.await {
                Ok(options) => live(shared, id, How::Fork, key, options).await,
                Err(refusal) => shared.refuse(&id, &refusal),
            }
        });
        Ok(())
    }

    fn list(&mut self, id: &Id, raw: Option<&RawValue>) -> Result<(), Refusal> {
        let it: ListSessionsRequest = params(raw)?;
        let offset = match &it.cursor {
            None => 0,
            Some(cursor) => cursor
                .parse::<usize>()
                .map_err(|_| Refusal::params(format!("{cursor:?} is no cursor of ours")))?,
        };
        if let Some(cwd) = it.cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
            return Err(Refusal::params(format!("cwd {} is not absolute", cwd.display())));
        }
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.tasks.spawn(async move {
            let hub = shared.hub.clone();
            let read = move || {
                // A directory that is gone has its sessions all the same.
                let cwd = it.cwd.map(|cwd| cwd.canonicalize().unwrap_or(cwd));
                hub.list(cwd.as_deref(), offset, PAGE + 1)
            };
            match tokio::task::spawn_blocking(read).await {
                Ok(Ok(mut rows)) => {
                    let next = (rows.len() > PAGE).then(|| (offset + PAGE).to_string());
                    rows.truncate(PAGE);
                    let info = |row: tieline_hub::Listed| {
                        SessionInfo::new(row.key.as_str().to_owned(), row.workspace)
                            .title(row.title)
                            .updated_at(row.updated)
                    };
                    let sessions = rows.into_iter().map(info).collect();
                    shared.answer(&id, &ListSessionsResponse::new(sessions).next_cursor(next));
                }
                Ok(Err(error)) => shared.refuse(&id, &outcome::refusal(&error)),
                Err(_) => shared.refuse(&id, &Refusal::new(INTERNAL_ERROR, "the list failed")),
            }
        });
        Ok(())
    }

    fn close(&mut self, id: &Id, session: &str) -> Result<(), Refusal> {
        let inbox = self.session(session)?;
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.tasks.spawn(async move {
            end(inbox).await;
            shared.answer(&id, &CloseSessionResponse::new());
        });
        Ok(())
    }

    /// Deletes a session. One that is not there is as good as deleted.
    fn delete(&mut self, id: &Id, raw: Option<&RawValue>) -> Result<(), Refusal> {
        let it: DeleteSessionRequest = params(raw)?;
        let Ok(key) = ConversationKey::new(&it.session_id.0) else {
            self.shared.answer(id, &DeleteSessionResponse::new());
            return Ok(());
        };
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.tasks.spawn(async move {
            if let Some(inbox) = shared.session(&key) {
                end(inbox).await;
            }
            let deleted = match find(&shared, &key).await {
                Ok(_) => shared.hub.delete(&key).await.map_err(|it| outcome::refusal(&it)),
                Err(refusal) if refusal.code == NOT_FOUND => Ok(()),
                Err(refusal) => Err(refusal),
            };
            match deleted {
                Ok(()) => shared.answer(&id, &DeleteSessionResponse::new()),
                Err(refusal) => shared.refuse(&id, &refusal),
            }
        });
        Ok(())
    }
}

/// Where and with what a client wants a session.
struct Wish {
    cwd: PathBuf,
    extras: tieline_event::Extras,
}

impl Wish {
    fn new(
        cwd: PathBuf,
        servers: Vec<McpServer>,
        directories: Vec<PathBuf>,
    ) -> Result<Self, Refusal> {
        let cwd = from_acp::absolute(cwd)?;
        Ok(Self { cwd, extras: from_acp::extras(servers, directories)? })
    }

    /// What the conversation is opened with. The disk is looked at by a thread that may wait for it.
    async fn settle(self) -> Result<OpenOptions, Refusal> {
        let cwd = self.cwd;
        let found = tokio::task::spawn_blocking(move || from_acp::workspace(&cwd)).await;
        let workspace = found
            .unwrap_or_else(|_| Err(Refusal::new(INTERNAL_ERROR, "the directory is not there")))?;
        let (workspace, extras) = (Some(workspace), Some(self.extras));
        Ok(OpenOptions { workspace, extras, ..OpenOptions::default() })
    }
}

/// The mode that older clients name when they begin a session.
fn wanted_mode(raw: Option<&RawValue>) -> Result<Option<Mode>, Refusal> {
    let value: Value = params(raw)?;
    let named = value.pointer("/_meta/permissionMode").or(value.get("permissionMode"));
    match named {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => from_acp::mode(name).map(Some),
        Some(_) => Err(Refusal::params("permissionMode is no string")),
    }
}

/// The agent of a new session. One that is not there is told before anything is written.
async fn choose(
    shared: &Shared,
    workspace: PathBuf,
    mode: Option<Mode>,
) -> Result<String, Refusal> {
    if mode == Some(Mode::Yolo) && shared.options.mode != Some(Mode::Yolo) {
        return Err(Refusal::params("yolo must be asked for when tieline is started"));
    }
    let choose = Arc::clone(&shared.options.choose);
    match tokio::task::spawn_blocking(move || choose(&workspace)).await {
        Ok(chosen) => chosen.map_err(|failure| outcome::failed(&failure)),
        Err(_) => Err(Refusal::new(INTERNAL_ERROR, "no agent could be chosen")),
    }
}

/// The row of a conversation.
async fn find(shared: &Shared, key: &ConversationKey) -> Result<Row, Refusal> {
    let (store, wanted) = (shared.hub.store().clone(), key.clone());
    let read = tokio::task::spawn_blocking(move || store.conversation(&wanted)).await;
    match read {
        Ok(Ok(Some(row))) => Ok(Row {
            agent: row.agent,
            mode: row.mode,
            model: row.model,
            effort: row.effort,
            title: row.title,
        }),
        Ok(Ok(None)) => Err(Refusal::no_session(key.as_str())),
        Ok(Err(error)) => Err(Refusal::new(INTERNAL_ERROR, error.to_string())),
        Err(_) => Err(Refusal::new(INTERNAL_ERROR, "the store cannot be read")),
    }
}

/// Opens a conversation and lives as its session until it is closed.
async fn live(
    shared: Arc<Shared>,
    id: Id,
    how: How,
    key: ConversationKey,
    mut options: OpenOptions,
) {
    if how != How::New {
        match find(&shared, &key).await {
            // It was an explicit choice then, and is none now.
            Ok(row) if row.mode == Mode::Yolo && shared.options.mode != Some(Mode::Yolo) => {
                options.mode = Some(Mode::BypassPermissions);
            }
            Ok(_) => {}
            Err(refusal) => return shared.refuse(&id, &refusal),
        }
    }
    let workspace = options.workspace.clone().unwrap_or_default();
    let conversation = match shared.hub.conversation(&key, options).await {
        Ok(conversation) => conversation,
        Err(error) => return shared.refuse(&id, &outcome::refusal(&error)),
    };
    let row = match find(&shared, &key).await {
        Ok(row) => row,
        Err(refusal) => return shared.refuse(&id, &refusal),
    };
    let opening = Opening { id, how, workspace };
    let (own, inbox) = mpsc::channel(INBOX);
    if let Some(open) = shared.open(&key, &own) {
        // It is open already: the same process goes on, whatever the client remembers.
        if let Err(mpsc::error::SendError(Message::Open(opening))) =
            open.send(Message::Open(opening)).await
        {
            let closed = Refusal::new(INTERNAL_ERROR, "the session is being closed; try again");
            shared.refuse(&opening.id, &closed);
        }
        return;
    }
    Session::new(shared, conversation, row, opening, inbox, own).run().await;
}

/// Ends a session and waits for it.
async fn end(inbox: mpsc::Sender<Message>) {
    let (reply, ended) = oneshot::channel();
    // One that has ended already cannot be told.
    if inbox.send(Message::Close(reply)).await.is_ok() && ended.await.is_err() {
        tracing::debug!("the session ended by itself");
    }
}

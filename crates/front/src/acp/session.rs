//! One session: the only one who writes its updates, so that they have one order.

mod news;
mod prompts;
mod requests;
mod settings;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_event::{Configured, Content, ConversationKey, ItemId, Mode, Seq, TurnId};
use tieline_hub::{Conversation, Entry, Error, Subscription};
use tieline_wire::acp::INTERNAL_ERROR;
use tieline_wire::acp::schema::{
    ContentBlock, ForkSessionResponse, LoadSessionResponse, NewSessionResponse, PromptResponse,
    ResumeSessionResponse, StopReason,
};
use tieline_wire::jsonrpc::write::{self, Form};
use tieline_wire::jsonrpc::{ErrorObject, Id};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::ask::Asked;
use super::from_acp::{Idle, Refusal};
use super::offer::Offer;
use super::outcome;
use super::page::{Page, Voice};
use super::shared::Shared;
use super::to_acp::Mapper;

/// Messages that may wait for a session; who sends more is told that it is busy.
pub(super) const INBOX: usize = 128;

/// Prompts that may wait for the running one.
const WAITING: usize = 16;

/// After this time a call that still runs is in progress, and what it printed is shown.
const MOMENT: Duration = Duration::from_millis(50);

/// How much is written before the client's readiness is looked at again.
const PAGE: usize = 128 * 1024;

/// How long a session that ends waits for what was asked of its conversation.
const LATE: Duration = Duration::from_secs(2);

/// How long a prompt is held after the last agent that its agent started is done.
const HELD: Duration = Duration::from_secs(10);

/// What a session is told.
#[derive(Debug)]
pub(super) enum Message {
    /// The user says something.
    Prompt(Id, Vec<ContentBlock>),
    /// The user says something in the middle of a turn.
    Steer(Id, Vec<ContentBlock>, Idle),
    /// Everything that runs or waits is to stop.
    Cancel,
    /// One prompt is to stop.
    CancelPrompt(Id),
    SetMode(Id, Mode),
    SetSetting(Id, String, String),
    /// The client opens a session again that is open.
    Open(Opening),
    /// The client answered what we asked.
    Answered(Id, Result<Value, ErrorObject>),
    /// The session is to end; who wants to know.
    Close(oneshot::Sender<()>),
}

/// How a session is opened, and who waits for it.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) id: Id,
    pub(super) how: How,
    pub(super) workspace: PathBuf,
}

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    New,
    Fork,
    /// With its whole history.
    Load,
    /// Without.
    Resume,
}

/// A prompt whose turn may run.
#[derive(Debug)]
struct Running {
    id: Id,
    key: String,
    turn: Option<TurnId>,
    is_cancelled: bool,
    /// Its turn is over, and agents that it started are at work: their end brings a turn of the
    /// agent's own, which still belongs to this prompt.
    is_held: bool,
}

/// What was asked of the conversation.
enum Done {
    /// The turn of the prompt with this key began.
    Started(String, Result<TurnId, Error>),
    Steered(Id, Result<&'static str, Error>),
    /// The choice with this number was made, behind this event.
    Chosen(u64, Result<Seq, Error>),
    Answered(Result<(), Error>),
    Titled(Option<String>),
    Woken(Result<(), Error>),
    Cancelled(Result<(), Error>),
    /// A command of ours has this to say.
    Said(Id, Result<String, Error>),
    Closed(Result<(), Error>),
}

/// What the user chose, and who waits for it.
#[derive(Debug)]
struct Chosen {
    number: u64,
    id: Id,
    form: Setting,
    choice: Configured,
    /// The last event before it took effect; none while it is being made.
    behind: Option<Seq>,
}

/// The call that a choice was made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Mode,
    Option,
}

/// One session.
pub(super) struct Session {
    shared: Arc<Shared>,
    key: ConversationKey,
    agent: String,
    conversation: Conversation,
    subscription: Subscription,
    inbox: mpsc::Receiver<Message>,
    own: mpsc::Sender<Message>,
    mapper: Mapper,
    page: Page,
    /// Who waits for the session, and the last event of its history.
    opening: Option<(Opening, Seq)>,
    /// Who wants it opened after that.
    openings: VecDeque<Opening>,
    /// The last event that was acted upon. What is read again is history.
    lived: Seq,
    /// What is read and not written yet.
    entries: VecDeque<Entry>,
    running: Option<Running>,
    waiting: VecDeque<(Id, Vec<Content>)>,
    /// Requests the client is asked about, by the id of our call.
    asked: HashMap<i64, Box<Asked>>,
    /// Calls the client was told to forget; it may answer them all the same.
    withdrawn: HashSet<i64>,
    /// What was asked of the conversation and is not done yet.
    acts: JoinSet<Done>,
    /// What was chosen and is not answered yet, in the order it came.
    chosen: VecDeque<Chosen>,
    n_chosen: u64,
    /// The last event that told a setting.
    configured: Seq,
    /// Who waits for the end of the session.
    closing: Vec<oneshot::Sender<()>>,
    tick: Option<Instant>,
    /// How long a prompt is held for a turn that its agents' work should bring.
    patience: Option<Instant>,
    /// The conversation was closed; nothing more comes from it.
    is_closed: bool,
    is_over: bool,
}

/// What is known of a conversation before its history is read.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) agent: String,
    pub(super) mode: Mode,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) title: Option<String>,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        conversation: Conversation,
        row: Row,
        opening: Opening,
        inbox: mpsc::Receiver<Message>,
        own: mpsc::Sender<Message>,
    ) -> Self {
        let key = conversation.key().clone();
        let lived = conversation.last_seq();
        let modes = (shared.options.modes)(&row.agent);
        let may_be_yolo = shared.options.mode == Some(Mode::Yolo);
        let mut session = Self {
            mapper: Mapper::new(
                shared.client(),
                opening.workspace.clone(),
                Offer::new(row.mode, row.model, row.effort, modes, may_be_yolo),
            ),
            page: Page::new(key.as_str()),
            agent: row.agent,
            subscription: conversation.subscribe(lived),
            conversation,
            shared,
            key,
            inbox,
            own,
            opening: None,
            openings: VecDeque::new(),
            lived,
            entries: VecDeque::new(),
            running: None,
            waiting: VecDeque::new(),
            asked: HashMap::new(),
            withdrawn: HashSet::new(),
            acts: JoinSet::new(),
            chosen: VecDeque::new(),
            n_chosen: 0,
            configured: Seq(0),
            closing: Vec::new(),
            tick: None,
            patience: None,
            is_closed: false,
            is_over: false,
        };
        session.mapper.title = row.title;
        session.begin(opening);
        session
    }

    /// Until the session is closed.
    pub(super) async fn run(mut self) {
        while !self.is_over {
            self.flush();
            let next = [self.tick, self.patience].into_iter().flatten().min();
            let has_more = self.has_more();
            let may_read = !self.is_closed || has_more;
            let Self { shared, subscription, inbox, acts, .. } = &mut self;
            let more = async {
                // A client that does not read holds up its updates, not its requests.
                shared.outbox.room().await;
                match has_more {
                    false => subscription.next().await.map(Some),
                    true => Ok(None),
                }
            };
            let moment = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                message = inbox.recv() => match message {
                    Some(message) => self.obey(message),
                    None => break,
                },
                Some(done) = acts.join_next() => match done {
                    Ok(done) => self.acted(done),
                    Err(error) => tracing::error!(%error, "a task failed"),
                },
                more = more, if may_read => self.read(more),
                () = moment => self.on_time(),
            }
            if self.tick.is_none() && self.opening.is_none() && self.mapper.is_waiting() {
                self.tick = Some(Instant::now() + MOMENT);
            }
            // Closed by somebody else, and nobody here waits for anything more.
            self.is_over |= self.is_closed && !self.has_more() && self.acts.is_empty();
        }
        self.end().await;
    }

    /// Whether there is something to write that was read already.
    fn has_more(&self) -> bool {
        !self.entries.is_empty() || self.mapper.is_unfinished()
    }

    /// Nothing more comes from the conversation: whoever waits is told.
    async fn end(mut self) {
        self.shared.close(&self.key, &self.own);
        self.inbox.close();
        while let Ok(message) = self.inbox.try_recv() {
            self.turn_away(message);
        }
        // What was asked of a conversation that is closed is answered soon.
        let late = tokio::time::timeout(LATE, async {
            while let Some(done) = self.acts.join_next().await {
                match done {
                    Ok(done) => self.acted(done),
                    Err(error) => tracing::error!(%error, "a task failed"),
                }
            }
        });
        if late.await.is_err() {
            tracing::warn!(session = %self.key, "not everything was answered in time");
        }
        self.abandon();
        self.flush();
        for closing in std::mem::take(&mut self.closing) {
            if closing.send(()).is_err() {
                tracing::debug!("nobody waits for the end of the session");
            }
        }
    }

    /// A message came too late.
    fn turn_away(&mut self, message: Message) {
        let closed = Refusal::new(INTERNAL_ERROR, "the session was closed");
        match message {
            Message::Prompt(id, _) => {
                self.shared.forget_prompt(&id);
                self.answer(&id, &PromptResponse::new(StopReason::Cancelled));
            }
            Message::Steer(id, ..)
            | Message::SetMode(id, _)
            | Message::SetSetting(id, ..)
            | Message::Open(Opening { id, .. }) => self.refuse(&id, &closed),
            Message::Close(reply) => self.closing.push(reply),
            Message::Cancel | Message::CancelPrompt(_) | Message::Answered(..) => {}
        }
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        if self.tick.take_if(|tick| *tick <= now).is_some() {
            self.mapper.tick(&mut self.page);
        }
        if self.patience.take_if(|patience| *patience <= now).is_some() {
            self.let_go(StopReason::EndTurn);
        }
    }

    /// Answers whoever still waits.
    fn abandon(&mut self) {
        let closed = Refusal::new(INTERNAL_ERROR, "the session was closed");
        let opening = self.opening.take().map(|(opening, _)| opening);
        for opening in opening.into_iter().chain(std::mem::take(&mut self.openings)) {
            self.refuse(&opening.id, &closed);
        }
        for chosen in std::mem::take(&mut self.chosen) {
            match chosen.behind {
                Some(behind) => self.take_over(&chosen, behind),
                None => self.refuse(&chosen.id, &closed),
            }
        }
        let cancelled = PromptResponse::new(StopReason::Cancelled);
        if let Some(running) = self.running.take() {
            self.shared.forget_prompt(&running.id);
            if running.is_cancelled {
                self.answer(&running.id, &cancelled);
            } else {
                self.refuse(&running.id, &closed);
            }
        }
        for (id, _) in std::mem::take(&mut self.waiting) {
            self.shared.forget_prompt(&id);
            self.answer(&id, &cancelled);
        }
        let asked: Vec<i64> = self.asked.drain().map(|(call, _)| call).collect();
        for call in asked {
            self.shared.withdraw(call, &mut self.page.bytes);
        }
    }

    fn flush(&mut self) {
        self.mapper.flush(&mut self.page);
        self.shared.outbox.push(&mut self.page.bytes);
    }

    /// Answers behind everything that was written before.
    fn answer(&mut self, id: &Id, result: &impl serde::Serialize) {
        self.mapper.flush(&mut self.page);
        self.page.bytes.extend(write::response(Form::Versioned, id, result));
    }

    fn refuse(&mut self, id: &Id, refusal: &Refusal) {
        self.flush();
        self.shared.refuse(id, refusal);
    }

    fn act(&mut self, act: impl Future<Output = Done> + Send + 'static) {
        self.acts.spawn(act);
    }

    /// Opens a session that is open: who resumes it has seen everything so far.
    fn open_again(&mut self, opening: Opening) {
        match opening.how {
            _ if self.opening.is_some() => self.openings.push_back(opening),
            How::Resume => self.opened(&opening),
            _ => self.begin(opening),
        }
    }

    /// Opens the session for the client: at once, or when its history was read.
    fn begin(&mut self, opening: Opening) {
        if let Some(abilities) = self.shared.known.of(&self.agent) {
            self.mapper.offer.adopt(&abilities);
        }
        match opening.how {
            How::New | How::Fork => self.opened(&opening),
            How::Load | How::Resume => {
                let offer = self.mapper.offer.clone();
                let title = self.mapper.title.take();
                self.mapper = Mapper::new(self.shared.client(), opening.workspace.clone(), offer);
                self.mapper.title = title;
                self.mapper.replays();
                // What was not acted upon yet is no history.
                let until = self.lived;
                self.subscription = self.conversation.subscribe(Seq(0));
                self.entries.clear();
                if until == Seq(0) {
                    self.mapper.goes_live();
                    self.opened(&opening);
                } else {
                    self.opening = Some((opening, until));
                }
            }
        }
    }

    fn opened(&mut self, opening: &Opening) {
        let modes = self.mapper.offer.mode_state();
        let settings = self.mapper.offer.settings();
        let key = self.key.as_str().to_owned();
        match opening.how {
            How::New => {
                let new = NewSessionResponse::new(key).modes(modes).config_options(settings);
                self.answer(&opening.id, &new);
            }
            How::Fork => {
                let fork = ForkSessionResponse::new(key).modes(modes).config_options(settings);
                self.answer(&opening.id, &fork);
            }
            How::Load => {
                let load = LoadSessionResponse::new().modes(modes).config_options(settings);
                self.answer(&opening.id, &load);
            }
            How::Resume => {
                let resume = ResumeSessionResponse::new().modes(modes).config_options(settings);
                self.answer(&opening.id, &resume);
            }
        }
        self.page.update(&self.mapper.commands_update());
        if opening.how == How::Load {
            self.mapper.usage_update(&mut self.page);
        }
        // The agent tells what it offers when it is there, and the first prompt need not wait for it.
        self.wake();
        if let Some(next) = self.openings.pop_front() {
            self.open_again(next);
        }
    }

    fn wake(&mut self) {
        let woken = self.conversation.wake();
        self.act(async move { Done::Woken(woken.await) });
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Prompt(id, blocks) => self.prompt(id, blocks),
            Message::Steer(id, blocks, idle) => self.steer(id, blocks, idle),
            Message::Cancel => self.cancel(),
            Message::CancelPrompt(id) => self.cancel_prompt(&id),
            Message::SetMode(id, mode) => self.set_mode(id, mode, Setting::Mode),
            Message::SetSetting(id, name, value) => self.set_setting(id, &name, value),
            Message::Open(opening) => self.open_again(opening),
            Message::Answered(Id::Number(call), outcome) => self.answered(call, outcome),
            Message::Answered(Id::Text(_), _) => {}
            Message::Close(reply) => {
                self.drop_waiting();
                if let Some(running) = &mut self.running {
                    running.is_cancelled = true;
                }
                self.closing.push(reply);
                // Whoever opens it from now on gets another session.
                self.shared.close(&self.key, &self.own);
                let closed = self.conversation.close();
                self.act(async move { Done::Closed(closed.await) });
            }
        }
    }

    fn acted(&mut self, done: Done) {
        match done {
            Done::Started(key, started) => {
                let Some(running) = self.running.as_mut().filter(|it| it.key == key) else {
                    return;
                };
                match started {
                    Ok(turn) => running.turn = Some(turn),
                    Err(error) => self.cannot_start(&error),
                }
            }
            Done::Said(id, said) => {
                let is_cancelled = self.running.take().is_some_and(|it| it.is_cancelled);
                self.shared.forget_prompt(&id);
                match said {
                    Ok(text) => {
                        let message = ItemId::new(format!("tieline-{id}"));
                        self.page.chunk(Voice::Agent, &message, None, &text);
                        let reason =
                            if is_cancelled { StopReason::Cancelled } else { StopReason::EndTurn };
                        self.answer(&id, &PromptResponse::new(reason));
                    }
                    Err(error) => self.refuse(&id, &outcome::refusal(&error)),
                }
                self.next_prompt();
            }
            Done::Steered(id, Ok(outcome)) => self.answer(&id, &json!({"outcome": outcome})),
            Done::Steered(id, Err(error)) => {
                let failed = json!({"outcome": "failed", "reason": error.to_string()});
                self.answer(&id, &failed);
            }
            Done::Chosen(number, made) => self.made(number, made),
            Done::Titled(title) => {
                // An event may have told a newer one.
                if let Some(title) = title.filter(|_| self.mapper.title.is_none()) {
                    self.mapper.entitle(title, &mut self.page);
                }
            }
            // Somebody else was faster, or the turn is over: the event tells.
            Done::Answered(Err(error)) => tracing::debug!(%error, "an answer came too late"),
            Done::Cancelled(Err(error)) => tracing::debug!(%error, "nothing to cancel"),
            // The next prompt meets it again and says so.
            Done::Woken(Err(error)) => tracing::warn!(%error, "the agent did not start yet"),
            Done::Answered(Ok(())) | Done::Cancelled(Ok(())) | Done::Woken(Ok(())) => {}
            Done::Closed(result) => {
                if let Err(error) = result {
                    tracing::debug!(%error, "closing a session");
                }
                self.is_over = true;
            }
        }
    }
}

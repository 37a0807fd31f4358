//! The one owner of a conversation.

mod clock;
mod fork;
mod process;
mod publish;
mod settings;
mod wishes;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use tieline_agent::Ledger;
use tieline_event::{
    Answer, BlobRef, Closed, Configured, ConversationKey, Epoch, Extras, FrameNo, Kind, Mode,
    Opened, Origin, Policy, Prompt, Report, RequestId, Seq, Timestamp, TurnId,
};
use tieline_store::{Capped, ConversationChange, ForkedAt, FrameBuf, Lease, RequestState, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use self::clock::{Timer, Timers};
use self::process::{News, Process};
use self::wishes::{Settled, Steer, Wish};
use crate::conversation::{Conversation, Message, OpenOptions, Reply};
use crate::error::Error;
use crate::hub::Registry;
use crate::limits::Limits;
use crate::owners::Claim;
use crate::pipeline::{Mark, Pipeline};
use crate::recover::{self, Closing};
use crate::shared::Servers;
use crate::tail::{Entry, Tail};

/// How many idempotency keys are remembered.
const KEYS: usize = 256;

/// The longest title taken from a first message.
const TITLE: usize = 80;

/// The one owner of a conversation: its process, its driver, its way to the store.
pub(crate) struct Actor {
    registry: Arc<dyn Registry>,
    servers: Arc<Servers>,
    limits: Limits,
    store: Store,
    inbox: mpsc::Receiver<Message>,
    tail: Arc<Tail>,
    pipeline: Pipeline,
    key: ConversationKey,
    epoch: Epoch,
    next_seq: Seq,
    next_frame: FrameNo,
    driver: Arc<str>,
    /// The source of what no agent said.
    ourselves: Arc<str>,
    agent_version: Option<Arc<str>>,
    agent: String,
    workspace: PathBuf,
    mode: Mode,
    policy: Option<Policy>,
    model: Option<String>,
    effort: Option<String>,
    extras: Extras,
    /// The next process branches off from the native session.
    forks: bool,
    forked_from: Option<ConversationKey>,
    /// How far that one had come, and the agent's name for that place.
    forked_at: Option<(ForkedAt, Option<String>)>,
    title: Option<String>,
    /// The agent, and the books.
    process: Process,
    /// The agent was told to go, and why.
    leaving: Option<Option<&'static str>>,
    /// What waits for the process.
    wishes: VecDeque<Wish>,
    /// Who waits for the disk.
    settling: VecDeque<(Mark, Settled)>,
    /// Messages for the turn that waits for its agent.
    steers: Vec<Steer>,
    /// Turns that wait, each with everybody who asked for it.
    queued: VecDeque<(Prompt, Vec<Reply<TurnId>>)>,
    keys: VecDeque<(String, TurnId)>,
    /// What the agent was asked about itself.
    inquiries: HashMap<u64, Reply<Report>>,
    n_inquiries: u64,
    started: HashMap<TurnId, Timestamp>,
    /// Changes of the conversation's row that go with the next batch.
    change: Option<ConversationChange>,
    /// Frames of a process that has ended, for the next batch.
    left_frames: Option<FrameBuf>,
    /// Large values that were given to us to be stored with what comes next.
    blobs: Vec<(BlobRef, Vec<u8>)>,
    /// Raw bytes since the log was looked after, and the upkeep that is under way.
    raw_bytes: u64,
    upkeep: Option<oneshot::Receiver<Result<Capped, tieline_store::Error>>>,
    /// The running process does not fit the configuration any more.
    stale: bool,
    timers: Timers,
    /// The agent's notify program said that this turn is over; its wire may still say so itself.
    notified: Option<(TurnId, String)>,
    /// No more commands are taken.
    is_closing: bool,
}

/// Closes the tail when the actor ends in whatever way.
struct Guard(Arc<Tail>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.close(Some("its actor failed".to_owned()));
    }
}

enum Step {
    Show(Result<Vec<Entry>, tieline_store::Error>),
    Message(Option<Message>),
    Process(News),
    Capped(Option<Capped>),
    Deadline,
}

/// What an agent is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// A turn that begins now.
    Turn,
    /// A turn that may come.
    Later,
}

impl Actor {
    /// An actor with the lease of its conversation, and the handle that speaks with it.
    pub(crate) fn new(
        store: Store,
        registry: Arc<dyn Registry>,
        servers: Arc<Servers>,
        limits: Limits,
        lease: Lease,
        options: &OpenOptions,
    ) -> Result<(Conversation, Self), Error> {
        let (sender, inbox) = mpsc::channel(limits.inbox);
        let last = Seq(lease.next_seq.0 - 1);
        let tail = Arc::new(Tail::new(last, limits.tail_entries, limits.tail_bytes));
        let key = lease.key.clone();
        let row = lease.conversation.clone();
        let closing = recover::closing_events(&store, &key, last)?;
        let mut ledger = Ledger::new(row.n_turns(), row.native_session.clone());
        if let Some(usage) = recover::session_usage(&store, &key, last, row.n_turns())?
            && row.native_session.is_some()
            && !row.forks
        {
            ledger.set_session_usage(usage);
        }
        let mut actor = Self {
            registry,
            servers,
            inbox,
            tail: Arc::clone(&tail),
            key: key.clone(),
            epoch: lease.epoch,
            next_seq: lease.next_seq,
            next_frame: lease.next_frame,
            driver: Arc::from(row.agent.as_str()),
            ourselves: Arc::from("tieline"),
            agent_version: None,
            agent: row.agent.clone(),
            workspace: PathBuf::from(&row.workspace),
            mode: row.mode,
            policy: row.policy,
            model: row.model.clone(),
            effort: row.effort.clone(),
            extras: Extras::default(),
            forks: row.forks,
            forked_from: row.forked_from.clone(),
            forked_at: row.forked_at.map(|at| (at, row.position.clone())),
            title: row.title.clone(),
            process: Process::Absent(ledger),
            leaving: None,
            wishes: VecDeque::new(),
            settling: VecDeque::new(),
            steers: Vec::new(),
            pipeline: Pipeline::new(store.clone(), lease, limits.store_patience),
            queued: VecDeque::new(),
            keys: VecDeque::new(),
            inquiries: HashMap::new(),
            n_inquiries: 0,
            started: HashMap::new(),
            change: None,
            left_frames: None,
            blobs: Vec::new(),
            raw_bytes: 0,
            upkeep: None,
            stale: false,
            timers: Timers::default(),
            notified: None,
            is_closing: false,
            store: store.clone(),
            limits,
        };
        actor.reconfigure(options);
        actor.open(closing);
        let agent = Arc::clone(&actor.driver);
        Ok((Conversation { key, agent, store, tail, inbox: sender }, actor))
    }

    fn open(&mut self, closing: Vec<Closing>) {
        let opened = Opened {
            agent: self.agent.clone(),
            workspace: self.workspace.display().to_string(),
            mode: self.mode,
            policy: self.policy,
            model: self.model.clone(),
            effort: self.effort.clone(),
            resumes: self.ledger().session().filter(|_| !self.forks).map(str::to_owned),
            forked_from: self.forked_from.clone(),
        };
        let ledger = self.ledger_mut();
        for Closing { turn, parent, kind } in closing {
            ledger.emit_in(turn, parent, kind);
        }
        ledger.emit(Kind::ConversationOpened(opened));
    }

    /// Works until the conversation is closed. The claim ends after everything else.
    pub(crate) async fn run(mut self, claim: Claim) {
        // Whoever watches is told even if this task fails.
        let _guard = Guard(Arc::clone(&self.tail));
        tracing::info!(conversation = %self.key, agent = %self.agent, "opened");
        let result = self.work().await;
        claim.closing();
        self.inbox.close();
        // A queued turn that will never begin is refused by dropping its reply.
        self.queued.clear();
        self.wishes.clear();
        self.steers.clear();
        let (trouble, reply) = match result {
            Ok(reply) => (self.close().await.err(), reply),
            Err(error) => (Some(error), None),
        };
        // What is left of the agent dies with its handle.
        drop(std::mem::take(&mut self.process));
        let trouble = trouble.map(|error| chain(&error));
        if let Some(trouble) = &trouble {
            tracing::error!(conversation = %self.key, %trouble, "given up");
        }
        let lease = self.pipeline.into_lease();
        let store = self.store.clone();
        let released = tokio::task::spawn_blocking(move || store.release(lease)).await;
        if let Ok(Err(error)) = released {
            tracing::warn!(conversation = %self.key, %error, "the lease ends with the process");
        }
        self.tail.close(trouble.clone());
        if let Some(reply) = reply {
            let result = trouble.map_or(Ok(()), |trouble| Err(Error::Lost(trouble)));
            answer_with(reply, result);
        }
    }

    /// Until somebody closes the conversation: gives who wants to know.
    async fn work(&mut self) -> Result<Option<Reply<()>>, tieline_store::Error> {
        self.flush();
        loop {
            let step = match self.next_step().await {
                Step::Message(None) => return Ok(None),
                Step::Message(Some(Message::Close(reply))) => return Ok(Some(reply)),
                step => step,
            };
            // The start of a process goes to the disk along with the turn it was started for.
            let is_start = matches!(step, Step::Process(News::Started(_)));
            self.take(step)?;
            if !is_start {
                self.flush();
            }
            if self.go_on() || is_start {
                self.flush();
            }
        }
    }

    fn take(&mut self, step: Step) -> Result<(), tieline_store::Error> {
        match step {
            Step::Show(entries) => {
                self.tail.publish(entries?);
                self.answer_settled();
            }
            Step::Message(Some(message)) => self.obey(message),
            Step::Message(None) => {}
            Step::Process(news) => self.on_news(news),
            Step::Capped(dropped) => self.tell_capped(dropped),
            Step::Deadline => self.on_deadline(),
        }
        Ok(())
    }

    async fn next_step(&mut self) -> Step {
        let deadline = self.timers.next();
        let Self { pipeline, inbox, process, upkeep, is_closing, .. } = self;
        let may_read = !pipeline.is_backed_up();
        let time = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let capped = async {
            match upkeep {
                Some(upkeep) => clock::capped(upkeep).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            entries = pipeline.advance() => Step::Show(entries),
            message = inbox.recv(), if !*is_closing => Step::Message(message),
            news = process.news(may_read) => Step::Process(news),
            dropped = capped => Step::Capped(dropped),
            () = time => Step::Deadline,
        }
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::StartTurn(prompt, reply) => self.start_turn(prompt, reply),
            Message::Steer { prompt, queue, reply } => self.steer(prompt, queue, reply),
            Message::Notified(notification) => self.on_notification(notification),
            Message::Interrupt(reply) => answer_with(reply, self.interrupt()),
            Message::Cancel(reply) => answer_with(reply, self.cancel()),
            Message::Wake(reply) => self.wishes.push_back(Wish::Wake(reply)),
            Message::Answer { request, answer, by, policy, reply } => {
                self.answer(request, &answer, (by, policy), reply);
            }
            Message::Configure(options, reply) => {
                self.reconfigure(&options);
                if self.stale && self.ledger().current_turn().is_none() {
                    self.rest(Some("the configuration changed"));
                }
                match self.is_settled() {
                    true => self.settle(Settled::Shown(reply)),
                    false => self.wishes.push_back(Wish::Configured(reply)),
                }
            }
            Message::Inquire(inquiry, reply) => {
                self.wishes.push_back(Wish::Inquire(inquiry, reply));
            }
            Message::Rename(title, reply) => {
                self.title = Some(title.clone());
                self.change().title = self.title.clone();
                self.ledger_mut()
                    .configured(Configured { title: Some(title), ..Configured::default() });
                self.settle(Settled::Done(reply));
            }
            Message::Note(note, reply) => {
                for marker in note.markers {
                    self.ledger_mut().emit(Kind::TaskMarker(marker));
                }
                self.blobs.extend(note.blob);
                if note.task.is_some() {
                    self.change().task = note.task;
                }
                if !note.letters.is_empty() {
                    self.change().letters.extend(note.letters);
                }
                self.settle(Settled::Done(reply));
            }
            Message::Reset(reply) if self.has_turn() => answer_with(reply, Err(turn_runs())),
            Message::Reset(reply) => self.wishes.push_back(Wish::Reset(reply)),
            // Taken out by the caller.
            Message::Close(reply) => answer_with(reply, Err(Error::Closed)),
        }
    }

    /// Whether a turn runs, or waits for its agent.
    fn has_turn(&self) -> bool {
        self.ledger().current_turn().is_some() || !self.queued.is_empty()
    }

    /// A turn begins as soon as no other one runs and its agent is there.
    fn start_turn(&mut self, prompt: Prompt, reply: Reply<TurnId>) {
        if let Some(key) = &prompt.idempotency_key
            && let Some((_, turn)) = self.keys.iter().find(|(known, _)| known == key)
        {
            return answer_with(reply, Ok(turn.clone()));
        }
        if let Some(key) = &prompt.idempotency_key
            && let Some((_, replies)) =
                self.queued.iter_mut().find(|(it, _)| it.idempotency_key.as_ref() == Some(key))
        {
            return replies.push(reply);
        }
        // The first one does not wait for another turn, but for its agent at most.
        let n_free = usize::from(self.ledger().current_turn().is_none());
        if self.queued.len() < self.limits.queued_turns + n_free {
            self.queued.push_back((prompt, vec![reply]));
        } else {
            answer_with(reply, Err(Error::TooManyTurns(self.queued.len() - n_free)));
        }
    }

    fn steer(&mut self, prompt: Prompt, queue: bool, reply: Reply<Option<TurnId>>) {
        let has_turn = self.ledger().current_turn().is_some();
        if !has_turn && !self.queued.is_empty() {
            // The turn it is for waits for its agent.
            return self.steers.push(Steer { prompt, queue, reply });
        }
        let refused = match self.process.live_mut().filter(|_| has_turn) {
            Some(live) => match live.session.steer(&prompt) {
                Ok(()) => return answer_with(reply, Ok(None)),
                Err(refused) => Error::Refused(refused.0),
            },
            None => Error::NoTurn,
        };
        if !queue {
            return answer_with(reply, Err(refused));
        }
        let (turn, began) = oneshot::channel();
        self.start_turn(prompt, turn);
        // The turn may begin much later; nobody else waits for it.
        tokio::spawn(async move {
            let turn = began.await.unwrap_or(Err(Error::Closed));
            answer_with(reply, turn.map(Some));
        });
    }

    /// Stops the running turn, or the one that waits for its agent.
    fn interrupt(&mut self) -> Result<(), Error> {
        if self.ledger().current_turn().is_none() {
            let is_done = self.interrupt_waiting();
            return if is_done { Ok(()) } else { Err(Error::NoTurn) };
        }
        match &mut self.process {
            Process::Running(live) => {
                if !live.session.interrupt() {
                    live.signal_interrupt();
                }
                self.expect_stop();
            }
            // It is being ended; the turn ends with it.
            Process::Ending(ending) => drop(ending.session.interrupt()),
            Process::Absent(_) | Process::Starting(_) => return Err(Error::NoTurn),
        }
        Ok(())
    }

    /// The agent was asked to stop the turn. Asking again gives it no more time.
    fn expect_stop(&mut self) {
        self.timers.set_once(Timer::Interrupt, self.limits.interrupt_grace);
    }

    /// Stops the running turn and forgets those that wait.
    fn cancel(&mut self) -> Result<(), Error> {
        // The one that waits for its agent only is the running one.
        let n_running = usize::from(self.ledger().current_turn().is_none());
        for (_, replies) in self.queued.drain(n_running.min(self.queued.len())..) {
            for reply in replies {
                answer_with(reply, Err(Error::Cancelled));
            }
        }
        match self.interrupt() {
            Err(Error::NoTurn) => Ok(()),
            result => result,
        }
    }

    fn answer(
        &mut self,
        request: RequestId,
        answer: &Answer,
        (by, policy): (Origin, Option<String>),
        reply: Reply<()>,
    ) {
        let is_open = self.ledger().open_requests().any(|open| *open == request);
        if is_open && let Some(live) = self.process.live_mut() {
            let answered = live.session.answer(&request, answer, by, policy);
            if live.session.is_interrupted() {
                self.expect_stop();
            }
            self.heard();
            return answer_with(reply, answered.map_err(|refused| Error::Refused(refused.0)));
        }
        let (store, key) = (self.store.clone(), self.key.clone());
        // The disk may take its time.
        tokio::task::spawn_blocking(move || {
            let why = why_not_open(&store, &key, request);
            answer_with(reply, Err(why));
        });
    }

    async fn close(&mut self) -> Result<(), tieline_store::Error> {
        self.is_closing = true;
        if self.ledger().current_turn().is_some() {
            // Noted as interrupted; whether the agent still hears of it does not matter.
            match &mut self.process {
                Process::Running(live) => {
                    live.session.interrupt();
                    live.write();
                }
                Process::Ending(ending) => drop(ending.session.interrupt()),
                Process::Absent(_) | Process::Starting(_) => {}
            }
        }
        self.rest(Some("closed"));
        while !self.process.is_absent() {
            let step = self.next_step().await;
            self.take(step)?;
            self.flush();
        }
        if let Some(mut upkeep) = self.upkeep.take() {
            // It would wait for company that does not come any more.
            let store = self.store.clone();
            let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
            if let Ok(Err(error)) = flushed {
                tracing::warn!(conversation = %self.key, %error, "the raw log was not looked after");
            }
            let dropped = clock::capped(&mut upkeep).await;
            self.tell_capped(dropped);
        }
        let closed = Closed { reason: "closed".to_owned() };
        self.ledger_mut().emit(Kind::ConversationClosed(closed));
        self.flush();
        while !self.pipeline.is_empty() {
            let entries = self.pipeline.advance().await?;
            self.tail.publish(entries);
            self.answer_settled();
        }
        Ok(())
    }

    fn change(&mut self) -> &mut ConversationChange {
        self.change.get_or_insert_default()
    }

    fn ledger(&self) -> &Ledger {
        self.process.ledger()
    }

    fn ledger_mut(&mut self) -> &mut Ledger {
        self.process.ledger_mut()
    }
}

fn turn_runs() -> Error {
    Error::Refused("a turn is running; interrupt it first".to_owned())
}

/// Why a request that is not open cannot be answered. Blocks.
fn why_not_open(store: &Store, key: &ConversationKey, request: RequestId) -> Error {
    let found = match store.request(key, &request) {
        Ok(found) => found,
        Err(error) => return error.into(),
    };
    let how = match found.map(|found| found.state) {
        Some(RequestState::Resolved(it)) => {
            let by = it.policy.unwrap_or_else(|| format!("{:?}", it.by).to_lowercase());
            format!("{} by {by}", it.answer.summary())
        }
        Some(RequestState::Expired(it)) => it.reason,
        Some(RequestState::Open) => "its agent is gone".to_owned(),
        None => return Error::NoRequest(request),
    };
    Error::AlreadyResolved { request, how }
}

/// An error with everything behind it.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// A caller that went away needs no answer.
fn answer_with<T>(reply: Reply<T>, result: Result<T, Error>) {
    if reply.send(result).is_err() {
        tracing::debug!("the caller did not wait for its answer");
    }
}

/// The first line of a first message.
fn title(prompt: &Prompt) -> Option<String> {
    let text = prompt.content.iter().find_map(|piece| piece.as_text())?;
    let line = text.preview().lines().find(|line| !line.trim().is_empty())?.trim();
    let shortened: String = line.chars().take(TITLE).collect();
    Some(if shortened.len() < line.len() { format!("{shortened}…") } else { shortened })
}

//! The one owner of a conversation.

mod clock;
mod fork;
mod publish;
mod settings;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use tieline_agent::{Launch, Ledger, Refused, Resume, TurnEnd};
use tieline_event::{
    Answer, BlobRef, Closed, Configured, ConversationKey, EndSignal, Epoch, Extras, Failure,
    FailureCode, FrameNo, Inquiry, Kind, Mode, NoticeLevel, Opened, Origin, Policy, Prompt, Report,
    RequestId, Seq, Timestamp, TurnId,
};
use tieline_store::{Capped, ConversationChange, ForkedAt, FrameBuf, Lease, RequestState, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use crate::conversation::{Conversation, Message, OpenOptions, Reply};
use crate::error::Error;
use crate::hub::Registry;
use crate::limits::Limits;
use crate::live::{Ended, Happened, Live};
use crate::owners::Claim;
use crate::pipeline::Pipeline;
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
    /// The running agent.
    live: Option<Live>,
    /// The books, while no agent runs.
    ledger: Option<Ledger>,
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
    turn_deadline: Option<Instant>,
    interrupt_deadline: Option<Instant>,
    idle_deadline: Option<Instant>,
    /// When the driver wants to be woken.
    wake_deadline: Option<Instant>,
    /// When silence ends the turn.
    silence_deadline: Option<Instant>,
    /// The agent's notify program said that this turn is over; its wire may still say so itself.
    notified: Option<(TurnId, String, Instant)>,
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
    Agent(Happened),
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
            live: None,
            ledger: Some(ledger),
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
            turn_deadline: None,
            interrupt_deadline: None,
            idle_deadline: None,
            wake_deadline: None,
            silence_deadline: None,
            notified: None,
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
        let (trouble, reply) = match result {
            Ok(reply) => (self.close().await.err(), reply),
            Err(error) => (Some(error), None),
        };
        // What is left of the agent dies with its handle.
        self.live = None;
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
            match self.next_step().await {
                Step::Show(entries) => self.tail.publish(entries?),
                Step::Message(None) => return Ok(None),
                Step::Message(Some(Message::Close(reply))) => return Ok(Some(reply)),
                Step::Message(Some(message)) => self.obey(message).await?,
                Step::Agent(Happened::Moved) => self.heard(),
                Step::Agent(Happened::Exited) => self.lay_to_rest(None).await,
                Step::Agent(Happened::Silenced) => self.silenced().await,
                Step::Capped(dropped) => self.tell_capped(dropped),
                Step::Deadline => self.on_deadline().await,
            }
            self.flush();
            self.go_on().await;
        }
    }

    async fn next_step(&mut self) -> Step {
        let deadlines = [
            self.turn_deadline,
            self.interrupt_deadline,
            self.idle_deadline,
            self.wake_deadline,
            self.silence_deadline,
            self.notified.as_ref().map(|(.., deadline)| *deadline),
        ];
        let deadline = deadlines.into_iter().flatten().min();
        let Self { pipeline, inbox, live, upkeep, .. } = self;
        let may_read = !pipeline.is_backed_up();
        let agent = async {
            match live {
                Some(live) => live.happened(may_read).await,
                None => std::future::pending().await,
            }
        };
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
            message = inbox.recv() => Step::Message(message),
            happened = agent => Step::Agent(happened),
            dropped = capped => Step::Capped(dropped),
            () = time => Step::Deadline,
        }
    }

    async fn obey(&mut self, message: Message) -> Result<(), tieline_store::Error> {
        match message {
            Message::StartTurn(prompt, reply) => self.start_turn(prompt, reply).await,
            Message::Steer { prompt, queue, reply } => self.steer(prompt, queue, reply).await,
            Message::Notified(notification) => self.on_notification(notification),
            Message::Interrupt(reply) => answer_with(reply, self.interrupt()),
            Message::Cancel(reply) => answer_with(reply, self.cancel()),
            Message::Wake(reply) => {
                let awake = match &self.live {
                    Some(_) => Ok(()),
                    None => self.wake(For::Later).await.map_err(Error::Agent),
                };
                answer_with(reply, awake);
            }
            Message::Answer { request, answer, by, policy, reply } => {
                let result = self.answer(&request, &answer, by, policy).await;
                answer_with(reply, result);
            }
            Message::Configure(options, reply) => {
                self.reconfigure(&options);
                if self.stale && self.ledger().current_turn().is_none() {
                    self.lay_to_rest(Some("the configuration changed")).await;
                }
                self.settle().await?;
                answer_with(reply, Ok(self.tail.shown()));
            }
            Message::Inquire(inquiry, reply) => self.inquire(&inquiry, reply).await,
            Message::Rename(title, reply) => {
                self.title = Some(title.clone());
                self.change().title = self.title.clone();
                self.ledger_mut()
                    .configured(Configured { title: Some(title), ..Configured::default() });
                self.settle().await?;
                answer_with(reply, Ok(()));
            }
            Message::Note(note, reply) => {
                for marker in note.markers {
                    self.ledger_mut().emit(Kind::TaskMarker(marker));
                }
                self.blobs.extend(note.blob);
                if note.task.is_some() {
                    self.change().task = note.task;
                }
                self.settle().await?;
                answer_with(reply, Ok(()));
            }
            Message::Reset(reply) => {
                let result = self.reset().await;
                self.settle().await?;
                answer_with(reply, result);
            }
            // Taken out by the caller.
            Message::Close(reply) => answer_with(reply, Err(Error::Closed)),
        }
        Ok(())
    }

    /// Until everything so far is on disk and shown.
    async fn settle(&mut self) -> Result<(), tieline_store::Error> {
        self.flush();
        while !self.pipeline.is_empty() {
            let entries = self.pipeline.advance().await?;
            self.tail.publish(entries);
        }
        Ok(())
    }

    async fn start_turn(&mut self, prompt: Prompt, reply: Reply<TurnId>) {
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
        if self.ledger().current_turn().is_none() && self.queued.is_empty() {
            let turn = self.begin(&prompt).await;
            answer_with(reply, Ok(turn));
        } else if self.queued.len() < self.limits.queued_turns {
            self.queued.push_back((prompt, vec![reply]));
        } else {
            answer_with(reply, Err(Error::TooManyTurns(self.queued.len())));
        }
    }

    /// Begins a turn. One whose agent cannot start ends at once, on the same path as any other.
    async fn begin(&mut self, prompt: &Prompt) -> TurnId {
        self.idle_deadline = None;
        let unfit = self.live.as_ref().is_some_and(|it| it.one_turn || it.ending);
        if unfit || self.stale {
            self.lay_to_rest(None).await;
        }
        let awake = match &self.live {
            Some(_) => Ok(()),
            None => self.wake(For::Turn).await,
        };
        let turn = match (&mut self.live, awake) {
            (Some(live), Ok(())) => live.session.start_turn(prompt),
            (_, awake) => {
                let failure = awake.err().unwrap_or_else(|| {
                    Failure::new(FailureCode::AgentCannotStart, "the agent is not there")
                });
                let ledger = self.ledger_mut();
                let turn = ledger.begin_turn(prompt.origin, prompt.idempotency_key.clone());
                ledger.user_message(prompt);
                ledger.end_turn(&turn, TurnEnd::failed(failure, EndSignal::Tieline));
                turn
            }
        };
        if let Some(key) = prompt.idempotency_key.clone() {
            self.keys.push_back((key, turn.clone()));
            if self.keys.len() > KEYS {
                self.keys.pop_front();
            }
        }
        if self.title.is_none() {
            self.title = title(prompt);
            self.change().title = self.title.clone();
        }
        tracing::info!(conversation = %self.key, %turn, "turn started");
        turn
    }

    /// Starts the agent, going on with its native session if there is one.
    async fn wake(&mut self, purpose: For) -> Result<(), Failure> {
        let agent = self.registry.agent(&self.agent, &self.workspace)?;
        let at = match self.fork_place() {
            Some(place) => place.position().await?,
            None => None,
        };
        let launch = Launch {
            workspace: &self.workspace,
            mode: self.mode,
            policy: self.policy,
            model: self.model.as_deref(),
            effort: self.effort.as_deref(),
            extras: &self.extras,
            resume: self.ledger().session().map(|session| Resume {
                session,
                fork: self.forks,
                at: at.as_deref(),
            }),
        };
        let plan = agent.launch(launch).await?;
        if plan.one_turn && purpose == For::Later {
            // Such a process waits for its prompt and could tell nothing before.
            return Ok(());
        }
        let ledger = self.ledger.take().unwrap_or_default();
        let Self { workspace, limits, servers, next_frame, .. } = &*self;
        let scribe = self.store.scribe(self.pipeline.lease());
        let started = Live::start(plan, ledger, workspace, limits, servers, scribe, *next_frame);
        match started.await {
            Ok(live) => {
                self.live = Some(live);
                Ok(())
            }
            Err((failure, ledger)) => {
                self.ledger = Some(ledger);
                Err(failure)
            }
        }
    }

    /// Asks the agent about itself; it is started for that, if need be.
    async fn inquire(&mut self, inquiry: &Inquiry, reply: Reply<Report>) {
        let awake = match &self.live {
            Some(_) => Ok(()),
            None => self.wake(For::Later).await.map_err(Error::Agent),
        };
        if let Err(error) = awake {
            return answer_with(reply, Err(error));
        }
        self.n_inquiries += 1;
        let number = self.n_inquiries;
        let asked = match &mut self.live {
            Some(live) => live.session.inquire(number, inquiry),
            None => Err(Refused("this agent tells nothing before its first turn".to_owned())),
        };
        match asked {
            Ok(()) => drop(self.inquiries.insert(number, reply)),
            Err(refused) => answer_with(reply, Err(Error::Refused(refused.0))),
        }
    }

    async fn steer(&mut self, prompt: Prompt, queue: bool, reply: Reply<Option<TurnId>>) {
        let refused = match &mut self.live {
            Some(live) if live.session.ledger().current_turn().is_some() => {
                match live.session.steer(&prompt) {
                    Ok(()) => return answer_with(reply, Ok(None)),
                    Err(refused) => Error::Refused(refused.0),
                }
            }
            _ => Error::NoTurn,
        };
        if !queue {
            return answer_with(reply, Err(refused));
        }
        let (turn, began) = oneshot::channel();
        self.start_turn(prompt, turn).await;
        // The turn may begin much later; nobody else waits for it.
        tokio::spawn(async move {
            let turn = began.await.unwrap_or(Err(Error::Closed));
            answer_with(reply, turn.map(Some));
        });
    }

    fn interrupt(&mut self) -> Result<(), Error> {
        let Some(live) = &mut self.live else { return Err(Error::NoTurn) };
        if live.session.ledger().current_turn().is_none() {
            return Err(Error::NoTurn);
        }
        if !live.session.interrupt() {
            live.signal_interrupt();
        }
        self.expect_stop();
        Ok(())
    }

    /// The agent was asked to stop the turn. Asking again gives it no more time.
    fn expect_stop(&mut self) {
        let deadline = Instant::now() + self.limits.interrupt_grace;
        self.interrupt_deadline.get_or_insert(deadline);
    }

    /// Stops the running turn and forgets those that wait.
    fn cancel(&mut self) -> Result<(), Error> {
        for (_, replies) in self.queued.drain(..) {
            for reply in replies {
                answer_with(reply, Err(Error::Cancelled));
            }
        }
        match self.interrupt() {
            Err(Error::NoTurn) => Ok(()),
            result => result,
        }
    }

    async fn answer(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        by: Origin,
        policy: Option<String>,
    ) -> Result<(), Error> {
        if let Some(live) = &mut self.live
            && live.session.ledger().open_requests().any(|open| open == request)
        {
            let answered = live.session.answer(request, answer, by, policy);
            if live.session.is_interrupted() {
                self.expect_stop();
            }
            return answered.map_err(|refused| Error::Refused(refused.0));
        }
        let (store, key, id) = (self.store.clone(), self.key.clone(), request.clone());
        let read = tokio::task::spawn_blocking(move || store.request(&key, &id));
        let found = read.await.map_err(|_| Error::Closed)??;
        let how = match found.map(|found| found.state) {
            Some(RequestState::Resolved(it)) => {
                let by = it.policy.unwrap_or_else(|| format!("{:?}", it.by).to_lowercase());
                format!("{} by {by}", it.answer.summary())
            }
            Some(RequestState::Expired(it)) => it.reason,
            Some(RequestState::Open) => "its agent is gone".to_owned(),
            None => return Err(Error::NoRequest(request.clone())),
        };
        Err(Error::AlreadyResolved { request: request.clone(), how })
    }

    async fn reset(&mut self) -> Result<(), Error> {
        if self.ledger().current_turn().is_some() {
            return Err(Error::Refused("a turn is running; interrupt it first".to_owned()));
        }
        self.lay_to_rest(Some("reset")).await;
        self.forks = false;
        let ledger = self.ledger_mut();
        ledger.forget_session();
        ledger.notice(NoticeLevel::Info, "reset", "the next turn begins a new session");
        self.change().native_session = Some(None);
        Ok(())
    }

    /// The agent closed its output: without it nothing is left to be said.
    async fn silenced(&mut self) {
        let Some(live) = &mut self.live else { return };
        let gone = async {
            loop {
                if let Happened::Exited = live.happened(false).await {
                    break;
                }
            }
        };
        if timeout(self.limits.drain, gone).await.is_err() {
            let failure = Failure::new(FailureCode::Protocol, "the agent closed its output")
                .hint("the conversation goes on with the next message");
            live.stopping.get_or_insert(failure);
        }
        self.lay_to_rest(None).await;
    }

    /// Ends the process, if there is one, and takes the books back.
    async fn lay_to_rest(&mut self, why: Option<&str>) {
        let Some(mut live) = self.live.take() else {
            self.stale = false;
            return;
        };
        if live.session.ledger().current_turn().is_none() {
            // It may still be writing its own transcript.
            live.say_goodbye(&self.limits).await;
        }
        let Ended { session, frames } = live.end(why, &self.limits).await;
        self.next_frame = frames.next();
        self.left_frames = Some(frames);
        self.ledger = Some(session.into_ledger());
        // Who asked it something is told that no answer will come.
        self.inquiries.clear();
        (self.interrupt_deadline, self.wake_deadline) = (None, None);
        // The frames must be on their way before the next process numbers its own.
        self.flush();
        self.stale = false;
    }

    /// After a turn: the next one, or rest.
    async fn go_on(&mut self) {
        if self.ledger().current_turn().is_some() {
            return;
        }
        (self.turn_deadline, self.interrupt_deadline) = (None, None);
        (self.silence_deadline, self.notified) = (None, None);
        while self.ledger().current_turn().is_none()
            && let Some((prompt, replies)) = self.queued.pop_front()
        {
            let turn = self.begin(&prompt).await;
            self.flush();
            for reply in replies {
                answer_with(reply, Ok(turn.clone()));
            }
        }
        if let Some(live) = &self.live
            && self.idle_deadline.is_none()
            && !live.forgets
        {
            // A process that was there for this turn has nothing to wait for.
            let patience = if live.one_turn { self.limits.exit_grace } else { self.limits.idle };
            self.idle_deadline = Some(Instant::now() + patience);
        }
    }

    async fn close(&mut self) -> Result<(), tieline_store::Error> {
        if let Some(live) = &mut self.live
            && live.session.ledger().current_turn().is_some()
        {
            // Noted as interrupted; whether the agent still hears of it does not matter.
            live.session.interrupt();
            live.write();
        }
        self.lay_to_rest(Some("closed")).await;
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
        self.settle().await
    }

    fn change(&mut self) -> &mut ConversationChange {
        self.change.get_or_insert_default()
    }

    fn ledger(&self) -> &Ledger {
        match (&self.live, &self.ledger) {
            (Some(live), _) => live.session.ledger(),
            (None, Some(ledger)) => ledger,
            (None, None) => unreachable!("the books are with the process or here"),
        }
    }

    fn ledger_mut(&mut self) -> &mut Ledger {
        match &mut self.live {
            Some(live) => live.session.ledger_mut(),
            None => self.ledger.get_or_insert_default(),
        }
    }
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

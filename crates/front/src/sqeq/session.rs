//! One session: the only one who tells its events, so that they have one order.

mod news;
mod open;
mod orders;
mod report;

use std::collections::VecDeque;
use std::time::Duration;

use tieline_event::{
    Answer, ConversationKey, Inquiry, Origin, Report, RequestId, Timestamp, TurnId,
};
use tieline_hub::{Conversation, Entry, Error, Hub, Subscription, TypedLine};
use tieline_wire::sqeq::{AbortReason, EventMsg};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::ask::Asked;
use super::context::Standing;
use super::order::{Incoming, Work};
use super::out::Out;
use super::to_sqeq::{Mapper, aborted, error, warning};
use super::{Compat, Options};

/// After this time a call that nobody was asked about runs.
const MOMENT: Duration = Duration::from_millis(50);

/// How much is written before the client's readiness is looked at again.
const PAGE: usize = 128 * 1024;

/// How long a session that begins waits for its agent to say which model it has.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// The same, once its process was started.
const SOON: Duration = Duration::from_secs(1);

/// How long a conversation has to close.
const CLOSING: Duration = Duration::from_secs(10);

/// What the end of the client's input means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The running task goes on to its end, as long as somebody reads.
    Lingers,
    /// The end.
    AtOnce,
}

/// A submission that began a turn, or will.
#[derive(Debug)]
struct Task {
    sub: String,
    /// Our own name for it.
    key: String,
    turn: Option<TurnId>,
    work: Option<Work>,
    abort: Option<AbortReason>,
}

/// What was asked of the conversation, done.
enum Done {
    Started(String, Result<TurnId, Error>),
    /// It became part of the running task, or a task of its own.
    Steered(String, Result<Option<TurnId>, Error>),
    Set(String, Result<(), Error>),
    /// An answer to the request of a submission.
    Answered(Option<String>, Result<(), Error>),
    Told(String, Inquiry, Result<Report, Error>),
    Remembered(String, Result<(), Error>),
    Recalled {
        id: String,
        offset: u64,
        log_id: u64,
        line: Result<Option<TypedLine>, Error>,
    },
    Woken(Result<(), Error>),
    Cancelled(Result<(), Error>),
    Closed(Result<(), Error>),
}

/// A conversation that the session is.
struct Open {
    key: ConversationKey,
    conversation: Conversation,
    subscription: Subscription,
    mapper: Mapper,
    standing: Standing,
    asked: Asked,
    tasks: VecDeque<Task>,
    /// What is read and not told yet.
    entries: VecDeque<Entry>,
    model: Option<String>,
    effort: Option<String>,
    title: Option<String>,
    cwd: String,
    /// What was said before, for the client that goes on with it.
    history: Option<Vec<EventMsg<'static>>>,
    /// Nothing more comes from it.
    is_closed: bool,
}

/// One session.
pub(super) struct Session {
    hub: Hub,
    options: Options,
    inbox: mpsc::Receiver<Incoming>,
    out: Out,
    end: End,
    open: Option<Open>,
    /// Who waits to hear that the session is configured, and for how long.
    opening: Option<(String, Instant)>,
    /// They hear it when the tasks from before have ended.
    is_leaving: bool,
    acts: JoinSet<Done>,
    /// What tells the tasks of this session from those of others of the same conversation.
    began: i64,
    n_tasks: u64,
    tick: Option<Instant>,
    /// Who said `shutdown`.
    shutdown: Option<String>,
    input_ended: bool,
    is_over: bool,
}

impl Session {
    pub(super) fn new(
        hub: Hub,
        options: Options,
        inbox: mpsc::Receiver<Incoming>,
        out: Out,
        end: End,
    ) -> Self {
        Self {
            hub,
            options,
            inbox,
            out,
            end,
            open: None,
            opening: None,
            is_leaving: false,
            acts: JoinSet::new(),
            began: Timestamp::now().as_millis(),
            n_tasks: 0,
            tick: None,
            shutdown: None,
            input_ended: false,
            is_over: false,
        }
    }

    /// Until the client is done or gone.
    pub(super) async fn run(mut self, stop: impl Future<Output = ()>) {
        let work = async {
            if self.compat() == Compat::Upstream {
                self.configure(String::new(), super::order::Configure::default()).await;
            }
            self.work().await;
        };
        tokio::select! {
            () = work => {}
            () = stop => {}
        }
        self.close().await;
        if let Some(id) = self.shutdown.take() {
            self.out.tell(&id, EventMsg::ShutdownComplete);
        }
        self.out.flush();
        // Who does not read its last events in time goes without them.
        if tokio::time::timeout(super::DRAINING, self.out.room()).await.is_err() {
            tracing::debug!("the client does not read");
        }
    }

    async fn work(&mut self) {
        while !self.is_over {
            self.out.flush();
            if !self.out.may_ask() {
                self.out.room().await;
                continue;
            }
            self.left_old_tasks();
            let is_opening = self.opening.is_some();
            let may_hear = !is_opening && !self.input_ended;
            let moment = [self.tick, self.opening.as_ref().map(|(_, until)| *until)];
            let moment = moment.into_iter().flatten().min();
            let Self { out, open, inbox, acts, .. } = self;
            let more = async {
                match open {
                    Some(open) if !open.entries.is_empty() => {
                        out.room().await;
                        Ok(None)
                    }
                    Some(open) if !open.is_closed => {
                        // A client that does not read holds up its events, not its answers.
                        out.room().await;
                        open.subscription.next().await.map(Some)
                    }
                    _ => std::future::pending().await,
                }
            };
            let time = async {
                match moment {
                    Some(moment) => sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                incoming = inbox.recv(), if may_hear => match incoming {
                    Some(incoming) => self.obey(incoming).await,
                    None => self.input_ends(),
                },
                Some(done) = acts.join_next() => match done {
                    Ok(done) => self.acted(done),
                    Err(error) => tracing::error!(%error, "a task failed"),
                },
                more = more => self.read(more),
                () = time => self.on_time(),
            }
            self.settle();
        }
    }

    /// Whether there is nothing left to wait for.
    fn settle(&mut self) {
        let Some(open) = &self.open else {
            self.is_over |= self.input_ended || self.shutdown.is_some();
            return;
        };
        let is_told = open.entries.is_empty() && self.acts.is_empty();
        let is_done = self.input_ended && open.tasks.is_empty() && self.opening.is_none();
        self.is_over |= is_told && (open.is_closed || is_done);
    }

    fn input_ends(&mut self) {
        self.input_ended = true;
        if self.end == End::AtOnce {
            self.is_over = true;
            return;
        }
        // Nobody is left to answer.
        let asked = self.open.as_mut().map(|open| open.asked.take_all()).unwrap_or_default();
        for request in asked {
            self.refuse(request, "the client's input ended");
        }
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        if self.tick.take_if(|tick| *tick <= now).is_some() {
            self.tick_mapper();
        }
        if self.opening.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.announce();
        }
    }

    /// The conversation ends, and its agent with it.
    async fn close(&mut self) {
        self.inbox.close();
        self.acts.abort_all();
        let Some(open) = self.open.take() else { return };
        if open.is_closed {
            return;
        }
        match tokio::time::timeout(CLOSING, open.conversation.close()).await {
            Ok(Ok(()) | Err(Error::Closed)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the conversation did not close cleanly"),
            Err(_) => tracing::warn!("the conversation did not close in time"),
        }
    }

    fn compat(&self) -> Compat {
        self.options.compat
    }

    fn act(&mut self, act: impl Future<Output = Done> + Send + 'static) {
        self.acts.spawn(act);
    }

    fn warn(&mut self, id: &str, message: impl Into<String>) {
        let message = message.into();
        match self.compat() {
            Compat::Seed => self.out.tell(id, warning(Compat::Seed, message)),
            // It told its log, and nobody else.
            Compat::Upstream => tracing::warn!(submission = id, "{message}"),
        }
    }

    fn fail(&mut self, id: &str, message: impl Into<String>) {
        self.out.tell(id, error(message.into()));
    }

    fn acted(&mut self, done: Done) {
        match done {
            Done::Started(key, Err(why)) => self.never_began(&key, &why),
            Done::Started(_, Ok(_)) => {}
            Done::Steered(key, Ok(None)) => drop(self.forget_task(&key)),
            Done::Steered(_, Ok(Some(_))) => {}
            Done::Steered(key, Err(why)) => self.never_began(&key, &why),
            Done::Set(id, Err(why)) => self.fail(&id, why.to_string()),
            Done::Answered(Some(id), Err(why)) => self.warn(&id, why.to_string()),
            Done::Remembered(id, Err(why)) => self.warn(&id, why.to_string()),
            Done::Told(id, inquiry, report) => self.report(&id, &inquiry, report),
            Done::Recalled { id, offset, log_id, line } => {
                self.recalled(&id, offset, log_id, line);
            }
            Done::Woken(Ok(())) => {
                if let Some((_, until)) = &mut self.opening {
                    *until = (*until).min(Instant::now() + SOON);
                }
            }
            Done::Woken(Err(why)) => {
                // The next turn meets it again and says so.
                self.warn("", why.to_string());
                self.announce();
            }
            Done::Closed(result) => {
                if let Err(error) = result {
                    tracing::debug!(%error, "closing a session");
                    self.is_over = true;
                }
            }
            Done::Cancelled(Err(error)) => tracing::debug!(%error, "nothing to cancel"),
            Done::Answered(None, Err(error)) => tracing::debug!(%error, "an answer came too late"),
            Done::Set(_, Ok(()))
            | Done::Answered(_, Ok(()))
            | Done::Remembered(_, Ok(()))
            | Done::Cancelled(Ok(())) => {}
        }
    }

    fn forget_task(&mut self, key: &str) -> Option<Task> {
        let tasks = &mut self.open.as_mut()?.tasks;
        let at = tasks.iter().position(|task| task.key == key)?;
        tasks.remove(at)
    }

    fn never_began(&mut self, key: &str, why: &Error) {
        let Some(task) = self.forget_task(key) else { return };
        match (why, task.abort) {
            (Error::Cancelled, reason) => {
                let reason = reason.unwrap_or(AbortReason::Interrupted);
                for msg in aborted(self.compat(), reason) {
                    self.out.tell(&task.sub, msg);
                }
            }
            (why, _) => self.fail(&task.sub, why.to_string()),
        }
    }

    /// A rule answers, because nobody can be asked or wants to be.
    fn refuse(&mut self, request: RequestId, why: &str) {
        let Some(open) = &self.open else { return };
        let answer = Answer::deny("Nobody is there to answer; go on without it.");
        let policy = Some(why.to_owned());
        let answered = open.conversation.answer(&request, answer, Origin::Engine, policy);
        self.act(async move { Done::Answered(None, answered.await) });
    }
}

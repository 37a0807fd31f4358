//! The conversation's process from its start to its end: states that the actor waits for beside
//! everything else, so that it hears every command at any moment.

use std::path::PathBuf;
use std::pin::Pin;

use tieline_agent::{Launch, Ledger, Resume};
use tieline_event::{Failure, FailureCode};
use tokio::time::Instant;

use super::clock::Timer;
use super::{Actor, For};
use crate::live::{Ended, Ending, Happened, Live, Remains, Started};

/// The conversation's process, and the books.
pub(super) enum Process {
    /// There is none.
    Absent(Ledger),
    /// It is being started.
    Starting(Starting),
    /// It runs.
    Running(Box<Live>),
    /// It is being ended, or has ended and leaves its last words.
    Ending(Box<Ending>),
}

impl Default for Process {
    fn default() -> Self {
        Self::Absent(Ledger::default())
    }
}

/// A process that is being started. Dropping this ends what there is of it.
pub(super) struct Starting {
    ledger: Ledger,
    purpose: For,
    started: Pin<Box<dyn Future<Output = StartResult> + Send>>,
}

/// None is a process that is only started for a turn.
type StartResult = Result<Option<Box<Started>>, Failure>;

/// What happened to the process.
pub(super) enum News {
    Started(StartResult),
    Agent(Happened),
    Gone(Remains),
}

impl Process {
    /// Waits for what happens next. Can be cancelled.
    pub(super) async fn news(&mut self, may_read: bool) -> News {
        match self {
            Self::Absent(_) => std::future::pending().await,
            Self::Starting(starting) => News::Started((&mut starting.started).await),
            Self::Running(live) => News::Agent(live.happened(may_read).await),
            Self::Ending(ending) => News::Gone(ending.gone().await),
        }
    }

    pub(super) fn ledger(&self) -> &Ledger {
        match self {
            Self::Absent(ledger) => ledger,
            Self::Starting(starting) => &starting.ledger,
            Self::Running(live) => live.session.ledger(),
            Self::Ending(ending) => ending.session.ledger(),
        }
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        match self {
            Self::Absent(ledger) => ledger,
            Self::Starting(starting) => &mut starting.ledger,
            Self::Running(live) => live.session.ledger_mut(),
            Self::Ending(ending) => ending.session.ledger_mut(),
        }
    }

    pub(super) fn live(&self) -> Option<&Live> {
        match self {
            Self::Running(live) => Some(live),
            _ => None,
        }
    }

    pub(super) fn live_mut(&mut self) -> Option<&mut Live> {
        match self {
            Self::Running(live) => Some(live),
            _ => None,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent(_))
    }
}

impl Actor {
    /// Whether the process neither starts nor goes.
    pub(super) fn is_settled(&self) -> bool {
        match &self.process {
            Process::Absent(_) => true,
            Process::Running(_) => self.leaving.is_none(),
            Process::Starting(_) | Process::Ending(_) => false,
        }
    }

    /// Starts the agent, going on with its native session if there is one.
    pub(super) fn start(&mut self, purpose: For) {
        let ledger = match std::mem::take(&mut self.process) {
            Process::Absent(ledger) => ledger,
            other => {
                self.process = other;
                return;
            }
        };
        self.stale = false;
        let (registry, servers) = (self.registry.clone(), self.servers.clone());
        let (name, workspace) = (self.agent.clone(), self.workspace.clone());
        let (mode, policy) = (self.mode, self.policy);
        let (model, effort) = (self.model.clone(), self.effort.clone());
        let (extras, limits) = (self.extras.clone(), self.limits.clone());
        let (session, fork) = (ledger.session().map(str::to_owned), self.forks);
        let place = self.fork_place(session.as_deref());
        let pictures = match purpose {
            For::Turn => self.pictures_of_waiting().cloned().collect(),
            For::Later => Vec::new(),
        };
        let scribe = self.store.scribe(self.pipeline.lease());
        let started = async move {
            let directory: PathBuf = workspace.clone();
            // It may look for programs on the disk.
            let agent =
                tokio::task::spawn_blocking(move || registry.agent(&name, &directory)).await;
            let agent = agent.unwrap_or_else(|error| {
                let why = format!("the agent cannot be looked up: {error}");
                Err(Failure::new(FailureCode::AgentCannotStart, why))
            })?;
            let at = match place {
                Some(place) => place.position().await?,
                None => None,
            };
            let launch = Launch {
                workspace: &workspace,
                mode,
                policy,
                model: model.as_deref(),
                effort: effort.as_deref(),
                extras: &extras,
                pictures: &pictures,
                resume: session.as_deref().map(|session| Resume {
                    session,
                    fork,
                    at: at.as_deref(),
                }),
            };
            let plan = agent.launch(launch).await?;
            if plan.one_turn && purpose == For::Later {
                // Such a process waits for its prompt and could tell nothing before.
                return Ok(None);
            }
            let started = Started::start(plan, &workspace, &limits, &servers, scribe).await?;
            Ok(Some(Box::new(started.with_pictures(pictures))))
        };
        let started = Box::pin(started);
        self.process = Process::Starting(Starting { ledger, purpose, started });
    }

    pub(super) fn on_news(&mut self, news: News) {
        match news {
            News::Agent(Happened::Moved) => self.heard(),
            News::Agent(Happened::Exited) => self.on_exit(),
            News::Agent(Happened::Silenced) if self.leaving.is_some() => {}
            // Without its output nothing is left to be said; mostly its exit follows at once.
            News::Agent(Happened::Silenced) => self.timers.set(Timer::Silenced, self.limits.drain),
            News::Started(result) => self.on_started(result),
            News::Gone(remains) => self.on_gone(remains),
        }
    }

    fn on_started(&mut self, result: StartResult) {
        let Process::Starting(starting) = std::mem::take(&mut self.process) else { return };
        let Starting { ledger, purpose, .. } = starting;
        let failure = match result {
            Ok(Some(started)) => {
                let live =
                    Live::new(*started, ledger, &self.workspace, &self.limits, self.next_frame);
                self.process = Process::Running(Box::new(live));
                return;
            }
            Ok(None) => None,
            Err(failure) => Some(failure),
        };
        self.process = Process::Absent(ledger);
        match purpose {
            For::Turn => self.fail_waiting(failure),
            For::Later => self.answer_unstarted(failure),
        }
    }

    /// Ends the process, if there is one. One that is not in a turn may go by itself first: it may
    /// still be writing its own transcript.
    pub(super) fn rest(&mut self, why: Option<&'static str>) {
        match &mut self.process {
            Process::Absent(_) => self.stale = false,
            Process::Starting(_) => {
                if let Process::Starting(starting) = std::mem::take(&mut self.process) {
                    self.process = Process::Absent(starting.ledger);
                }
                self.stale = false;
            }
            Process::Ending(_) => {}
            Process::Running(live) => {
                if live.session.ledger().current_turn().is_some() {
                    return self.end_process(why);
                }
                if self.leaving.is_none() {
                    live.say_goodbye();
                    self.leaving = Some(why);
                    self.timers.set(Timer::Goodbye, self.limits.exit_grace);
                }
            }
        }
    }

    fn on_exit(&mut self) {
        if self.leaving.is_none()
            && self.ledger().current_turn().is_none()
            && let Some(live) = self.process.live_mut()
        {
            live.say_goodbye();
        }
        let why = self.leaving.take().flatten();
        self.end_process(why);
    }

    /// Ends the process and everything it started; its last words follow.
    pub(super) fn end_process(&mut self, why: Option<&'static str>) {
        // What it said so far goes before its last words.
        self.flush();
        self.leaving = None;
        self.timers.clear(&[Timer::Goodbye, Timer::Silenced]);
        self.process = match std::mem::take(&mut self.process) {
            Process::Running(live) => Process::Ending(Box::new(live.end(why, &self.limits))),
            other => other,
        };
    }

    /// Nothing is left of the process; the books come back.
    fn on_gone(&mut self, remains: Remains) {
        let Process::Ending(ending) = std::mem::take(&mut self.process) else { return };
        let was_idle = ending.why == Some(IDLE);
        let Ended { session, frames } = ending.ended(remains);
        self.next_frame = frames.next();
        self.left_frames = Some(frames);
        self.process = Process::Absent(session.into_ledger());
        // Who asked it something is told that no answer will come.
        self.inquiries.clear();
        self.timers.clear(&[Timer::Interrupt]);
        self.timers.clear_alarms();
        // The frames must be on their way before the next process numbers its own.
        self.flush();
        self.stale = false;
        if was_idle {
            self.tail.rest();
        }
    }

    /// The agent did not go by itself, or closed its output and lives on.
    pub(super) fn on_process_deadline(&mut self, now: Instant) {
        if self.timers.take_due(Timer::Goodbye, now) {
            tracing::debug!(conversation = %self.key, "the agent does not go by itself");
            let why = self.leaving.take().flatten();
            self.end_process(why);
        }
        if self.timers.take_due(Timer::Silenced, now)
            && let Some(live) = self.process.live_mut()
        {
            let failure = Failure::new(FailureCode::Protocol, "the agent closed its output")
                .hint("the conversation goes on with the next message");
            live.stopping.get_or_insert(failure);
            self.rest(None);
        }
    }
}

/// Why a process ends that had nothing to do.
pub(super) const IDLE: &str = "idle";

//! The queue pair: submissions in, events out, one task at a time.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use tieline_agent::{Journal, Pipe};
use tieline_event::{Extras, Failure};
use tieline_wire::ndjson::{self, Framer, Line};
use tieline_wire::sqeq::{
    AbortReason, EventMsg, Message, SessionConfigured, Submission, TaskComplete, TurnAborted,
};
use tieline_wire::text::Str;
use tokio::sync::mpsc;

use crate::context::{Change, Context};
use crate::core::Core;
use crate::journal::{self, Scribe};
use crate::lists;
use crate::model::Client;
use crate::order::{Order, What};
use crate::out::Out;
use crate::outcomes::Outcomes;
use crate::persona;
use crate::scripted;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::task::{self, End, Stop, Trouble, Work};
use crate::tools;

/// The longest submission.
const LONGEST: usize = 64 << 20;

/// What a session begins with.
pub(crate) struct Setup {
    pub(crate) settings: Arc<Settings>,
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) extras: Extras,
    /// The session to go on with, and whether to branch off from it.
    pub(crate) resume: Option<(String, bool)>,
}

/// Serves one session until its input ends. Gives what would be an exit code.
pub(crate) async fn serve(setup: Setup, pipe: Pipe) -> i32 {
    let Pipe { input, output, journal } = pipe;
    let out = Out::new(output);
    let mut inbox = Inbox::new(input, out.clone());
    let mut session = match Session::open(setup, journal, out.clone()).await {
        Ok(session) => session,
        Err(failure) => {
            out.send("", EventMsg::Error(Trouble::from(failure).event())).await;
            return 1;
        }
    };
    session.introduce().await;
    session.tell_of_script("").await;
    session.listen_to_servers().await;
    while let Some(order) = inbox.next().await {
        if session.obey(order, &mut inbox).await == Flow::Leave {
            break;
        }
    }
    session.shared.commands.close().await;
    session.shared.mcp.close().await;
    // What the disk refused so far is tried once more: there is no later.
    match session.core.keep().await {
        Ok(()) => 0,
        Err(failure) => {
            out.send("", EventMsg::Error(Trouble::from(failure).event())).await;
            1
        }
    }
}

/// Whether the session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Stay,
    Leave,
}

struct Session {
    core: Core,
    shared: Arc<Shared>,
}

impl Session {
    async fn open(setup: Setup, journal: Arc<dyn Journal>, out: Out) -> Result<Self, Failure> {
        let Setup { settings, client, context, extras, resume } = setup;
        let shared = Shared::new(settings, client, extras, out).await?;
        let scribe = |session: &str| Scribe::new(Arc::clone(&journal), session.to_owned());
        let mut core = match resume {
            None => {
                let session = new_session();
                let scribe = scribe(&session);
                Core::new(session, context, scribe)
            }
            Some((session, forks)) => {
                let entries = journal::read(&*journal, &session).await?;
                let entries = entries.ok_or_else(|| no_session(&session))?;
                let old = Core::replay(session.clone(), context, scribe(&session), entries);
                match forks {
                    false => old,
                    true => {
                        let session = new_session();
                        let scribe = scribe(&session);
                        old.fork(session, scribe)
                    }
                }
            }
        };
        // Once its name is told, a session can be found under it, whatever happens next.
        core.keep().await?;
        Ok(Self { core, shared })
    }

    /// What servers of tools ask reaches the client.
    async fn listen_to_servers(&self) {
        let mcp = &self.shared.mcp;
        mcp.set_root(&self.core.context.cwd).await;
        let (mut questions, out) = (mcp.questions(), self.shared.out.clone());
        tokio::spawn(async move {
            while let Some(question) = questions.recv().await {
                out.send("", tools::mcp::question(&question)).await;
            }
        });
    }

    /// Says what the session is.
    async fn introduce(&self) {
        let context = &self.core.context;
        let event = SessionConfigured {
            session_id: Str::Borrowed(&self.core.session),
            model: Str::Borrowed(&context.model),
            model_provider_id: Some(Str::Borrowed(&self.shared.settings.provider.name)),
            cwd: Some(context.cwd.display().to_string().into()),
            reasoning_effort: context.effort.as_deref().map(Into::into),
            ..SessionConfigured::default()
        };
        self.shared.out.send("", EventMsg::SessionConfigured(Box::new(event))).await;
    }

    /// Takes over a change of the context, and says what of it means nothing.
    async fn change(&mut self, id: &str, change: Change) {
        let unknown = change.personality.as_deref().filter(|it| !persona::is_known(it));
        if let Some(unknown) = unknown {
            let why = format!(
                "the personality {unknown:?} is not known and has no effect; there are friendly, \
                 pragmatic and none"
            );
            self.shared.out.warn(id, why).await;
        }
        let before = self.core.context.model.clone();
        self.core.context.apply(change);
        if self.core.context.model != before {
            self.tell_of_script(id).await;
        }
    }

    /// Whoever asks a script for a model is told that there is none.
    async fn tell_of_script(&self, id: &str) {
        let model = &self.core.context.model;
        if self.shared.settings.provider.script.is_some() && model != scripted::MODEL {
            let why = format!("{model} is not asked here: the demo plays a script under any name");
            self.shared.out.warn(id, why).await;
        }
    }

    /// Does what is asked while nothing runs.
    async fn obey(&mut self, order: Order, inbox: &mut Inbox) -> Flow {
        let Order { id, what } = order;
        let work = match what {
            What::Turn { pieces, change, schema, after } => {
                self.change(&id, change).await;
                Work::Turn { pieces, schema, after }
            }
            What::Input { pieces, schema } => Work::Turn { pieces, schema, after: None },
            What::Compact => Work::Compact,
            What::Review { target, hint } => Work::Review { target, hint },
            What::Undo => Work::Undo,
            What::Rollback(turns) => Work::Rollback(turns),
            What::Shell(command) => Work::Shell(command),
            What::Configure(change) => {
                self.change(&id, change).await;
                self.introduce().await;
                return Flow::Stay;
            }
            What::Override(change) => {
                self.change(&id, change).await;
                return Flow::Stay;
            }
            What::Shutdown => {
                self.shared.out.send(&id, EventMsg::ShutdownComplete).await;
                return Flow::Leave;
            }
            other => {
                aside(&self.shared, &self.core.context.cwd, &id, other).await;
                return Flow::Stay;
            }
        };
        self.run(id, work, inbox).await
    }

    /// Runs a task to its end, and listens meanwhile.
    async fn run(&mut self, id: String, work: Work, inbox: &mut Inbox) -> Flow {
        let mut flow = Flow::Stay;
        let mut later = Vec::new();
        let cwd = self.core.context.cwd.clone();
        let shared = Arc::clone(&self.shared);
        let end = {
            let mut task = pin!(task::run(&mut self.core, &shared, &id, work));
            loop {
                let order = tokio::select! {
                    end = &mut task => break end,
                    order = inbox.next() => order,
                };
                let Some(order) = order else {
                    flow = Flow::Leave;
                    break Err(Stop::Aborted(AbortReason::Interrupted));
                };
                match order.what {
                    What::Interrupt => break Err(Stop::Aborted(AbortReason::Interrupted)),
                    What::Shutdown => {
                        flow = Flow::Leave;
                        later.push(order);
                        break Err(Stop::Aborted(AbortReason::Interrupted));
                    }
                    // Taken into the task: a turn that runs has one context.
                    What::Turn { pieces, .. } | What::Input { pieces, .. } => {
                        shared.steer(pieces);
                    }
                    What::Configure(_) => {
                        later.push(order);
                        break Err(Stop::Aborted(AbortReason::Replaced));
                    }
                    What::Override(_) => later.push(order),
                    What::Compact
                    | What::Review { .. }
                    | What::Undo
                    | What::Rollback(_)
                    | What::Shell(_) => {
                        let message = "a task is running; interrupt it first or wait for its end";
                        shared.out.warn(&order.id, message).await;
                    }
                    other => aside(&shared, &cwd, &order.id, other).await,
                }
            }
        };
        self.finish(&id, end).await;
        for order in later {
            match order.what {
                What::Configure(change) => {
                    self.change(&order.id, change).await;
                    self.introduce().await;
                }
                What::Override(change) => self.change(&order.id, change).await,
                What::Shutdown => self.shared.out.send(&order.id, EventMsg::ShutdownComplete).await,
                _ => {}
            }
        }
        flow
    }

    /// Tells how a task ended. Whatever ran for it is gone by then, and what it changed is known.
    async fn finish(&mut self, id: &str, end: Result<End, Stop>) {
        let out = self.shared.out.clone();
        self.shared.commands.interrupt();
        self.shared.mcp.dismiss_questions();
        self.core.outcomes.close().await;
        self.shared.begin_diff();
        let steered = self.shared.take_steered();
        let end = match end {
            Ok(End { message }) => {
                self.core.take_changes();
                let kept = self.core.keep().await;
                kept.map(|()| message).map_err(Stop::from)
            }
            Err(stop) => {
                // What was cut off is told to the model with the next turn; it is on disk now.
                task::settle(&mut self.core, &stop);
                match self.core.keep().await {
                    Ok(()) => Err(stop),
                    Err(failure) => Err(Stop::from(failure)),
                }
            }
        };
        self.core.outcomes = Outcomes::default();
        let response_id = self.core.last_response.clone().map(Str::Owned);
        match end {
            Ok(message) => {
                let event = TaskComplete {
                    last_agent_message: message.map(Str::Owned),
                    response_id,
                    ..TaskComplete::default()
                };
                out.send(id, EventMsg::TaskComplete(event)).await;
            }
            Err(Stop::Aborted(reason)) => {
                let event = TurnAborted { reason, ..TurnAborted::default() };
                out.send(id, EventMsg::TurnAborted(event)).await;
            }
            Err(Stop::Failed(trouble)) => {
                out.put(id, EventMsg::Error(trouble.event()));
                let event = TaskComplete { response_id, ..TaskComplete::default() };
                out.send(id, EventMsg::TaskComplete(event)).await;
            }
        }
        if !steered.is_empty() {
            let message = "what was said in the last moment of the task came too late for it";
            out.warn(id, message).await;
        }
    }
}

/// What needs no task: answers to what a task asked, and lists.
async fn aside(shared: &Shared, cwd: &std::path::Path, id: &str, what: What) {
    let out = &shared.out;
    match what {
        What::Decide { id: call, verdict } => {
            if !shared.asked.decide(&call, verdict) {
                out.warn(id, format!("nothing waits for leave under {call:?}")).await;
            }
        }
        What::Answers { id: call, answers } => {
            if !shared.asked.reply(&call, answers) {
                out.warn(id, format!("no question is open under {call:?}")).await;
            }
        }
        What::Elicited { server, request, accepted } => {
            if !shared.elicited(&server, &request, accepted) {
                out.warn(id, format!("{server:?} asked nothing under {request}")).await;
            }
        }
        What::Skills { dirs, reload } => {
            let mut dirs: Vec<PathBuf> = dirs.into_iter().map(PathBuf::from).collect();
            if dirs.is_empty() {
                dirs.push(cwd.to_owned());
            }
            out.send(id, lists::skills(shared, dirs, reload).await).await;
        }
        What::Prompts => out.send(id, lists::prompts(shared).await).await,
        What::Tools => out.send(id, lists::tools(shared).await).await,
        What::Models => out.send(id, lists::models(shared)).await,
        What::Clean => shared.commands.clean().await,
        // There is nothing to stop.
        What::Interrupt => {}
        What::Other(name) => {
            out.warn(id, format!("{name} is not understood; it was ignored")).await;
        }
        other => {
            let message = format!("{other:?} cannot be done now");
            let message = Str::Owned(message.chars().take(80).collect());
            out.send(id, EventMsg::Warning(Message { message })).await;
        }
    }
}

/// The way in.
struct Inbox {
    pieces: mpsc::Receiver<Vec<u8>>,
    framer: Framer,
    ready: VecDeque<Order>,
    out: Out,
}

impl Inbox {
    fn new(pieces: mpsc::Receiver<Vec<u8>>, out: Out) -> Self {
        Self { pieces, framer: Framer::new(LONGEST), ready: VecDeque::new(), out }
    }

    /// The next submission; none when the input has ended. Can be cancelled.
    async fn next(&mut self) -> Option<Order> {
        loop {
            if let Some(order) = self.ready.pop_front() {
                return Some(order);
            }
            let piece = self.pieces.recv().await?;
            let Self { framer, ready, out, .. } = self;
            framer.feed(&piece, |line| match line {
                Line::Whole(line) if ndjson::content(&line).is_empty() => {}
                Line::Whole(line) => match Submission::parse(ndjson::content(&line)) {
                    Ok(submission) => ready.push_back(Order::of(submission)),
                    Err(error) => {
                        let message = Str::Owned(format!("a line is no submission: {error}"));
                        out.put("", EventMsg::Warning(Message { message }));
                    }
                },
                Line::Unfinished(_) | Line::Oversized { .. } => {
                    let message = Str::Borrowed("a line is longer than 64 MiB and was skipped");
                    out.put("", EventMsg::Warning(Message { message }));
                }
            });
        }
    }
}

/// A new id.
fn new_session() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn no_session(session: &str) -> Failure {
    Failure::new(
        tieline_event::FailureCode::SessionUnknown,
        format!("there is no session {session} in the journal"),
    )
    .hint("`tieline reset KEY` begins a new one; the history stays readable")
}

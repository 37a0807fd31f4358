//! A task: what the engine does about one submission, turn by turn of the model, until there is
//! nothing left to do.
//!
//! A task is one future over the session's [`Core`]. To interrupt it, it is dropped: the core is as
//! it was at the last step it took, and [`settle`] closes what stayed open. Before that, changes of
//! files that it had begun are waited for.

mod compact;
mod review;
mod small;

use std::sync::Arc;

use tieline_event::{Failure, FailureCode, ReviewTarget};
use tieline_wire::raw::Raw;
use tieline_wire::responses::Item;
use tieline_wire::sqeq::{AbortReason, CollaborationKind, ErrorEvent, EventMsg, TaskStarted};
use tieline_wire::text::Str;

use crate::calls;
use crate::core::Core;
use crate::model::{Backoff, ModelError, Wait};
use crate::order::Piece;
use crate::say;
use crate::shared::Shared;
use crate::turn::{self, Broken, Step, Wish};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Work {
    /// The user said something.
    Turn { pieces: Vec<Piece>, schema: Option<String>, after: Option<String> },
    /// Shorten the memory.
    Compact,
    /// Review changes.
    Review { target: ReviewTarget, hint: Option<String> },
    /// Take back what the last turn changed.
    Undo,
    /// Forget turns.
    Rollback(u32),
    /// A command of the user's own.
    Shell(String),
}

/// How a task ended well.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// The model's last message.
    pub(crate) message: Option<String>,
}

/// How a task ended otherwise.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody stopped it.
    Aborted(AbortReason),
    /// Something failed.
    Failed(Trouble),
}

/// What failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    failure: Failure,
    /// The same for programs, in the protocol's words.
    info: Option<Raw<'static>>,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self { failure, info: None }
    }
}

impl Trouble {
    /// The conversation is longer than the model can read.
    pub(crate) fn is_too_long(&self) -> bool {
        self.info.as_ref().is_some_and(|info| info.get() == "\"context_window_exceeded\"")
    }

    /// As the protocol tells it. Our own driver reads the failure as it is; others have its words.
    pub(crate) fn event(&self) -> ErrorEvent<'_> {
        let Failure { message, hint, .. } = &self.failure;
        ErrorEvent {
            message: Str::Borrowed(message),
            codex_error_info: self.info.clone(),
            additional_details: hint.as_deref().map(Str::Borrowed),
            tieline_failure: Raw::of(&self.failure).ok(),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.into())
    }
}

impl Stop {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Failure::new(FailureCode::Agent, message).into()
    }

    pub(crate) fn of_model(error: &ModelError, shared: &Shared, model: &str) -> Self {
        let failure = error.explain(&shared.settings.provider, model);
        Self::Failed(Trouble { failure, info: Some(error.codex_error_info()) })
    }
}

/// Does the work.
pub(crate) async fn run(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    work: Work,
) -> Result<End, Stop> {
    let kind = if core.context.plan { CollaborationKind::Plan } else { CollaborationKind::Default };
    let started = TaskStarted {
        model_context_window: shared.settings.context_window(&core.context.model),
        collaboration_mode_kind: Some(kind),
        ..TaskStarted::default()
    };
    shared.out.send(id, EventMsg::TaskStarted(started)).await;
    shared.forget_voice();
    match work {
        Work::Turn { pieces, schema, after } => {
            user_turn(core, shared, id, &pieces, schema.as_deref(), after.as_deref()).await
        }
        Work::Compact => {
            compact::run(core, shared, id, compact::Why::Asked).await.map(|()| End::default())
        }
        Work::Review { target, hint } => {
            Box::pin(review::run(core, shared, id, &target, hint)).await
        }
        Work::Undo => small::undo(core, shared, id).await,
        Work::Rollback(turns) => small::roll_back(core, shared, id, turns).await,
        Work::Shell(command) => small::shell(core, shared, id, command).await,
    }
}

/// Closes what a task left open, so that the next one can go on.
pub(crate) fn settle(core: &mut Core, stop: &Stop) {
    core.take_changes();
    let aborted = matches!(stop, Stop::Aborted(_));
    let output = if aborted { "aborted by user" } else { "aborted" };
    for call in calls::open_calls(&core.items) {
        match core.outcomes.take(&call.id) {
            Some(outcome) => core.give(&call, outcome),
            None => core.push(call.output(output)),
        }
    }
    if aborted {
        core.push(Item::message("user", say::TURN_ABORTED));
    }
    core.set_mark();
}

async fn user_turn(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    pieces: &[Piece],
    schema: Option<&str>,
    after: Option<&str>,
) -> Result<End, Stop> {
    if let Some(after) = after
        && !core.resume_after(after)
    {
        let message = format!("there is no answer {after:?} in this session to go on from");
        return Err(Stop::failed(message));
    }
    if compact::is_due(core, shared) {
        compact::run(core, shared, id, compact::Why::Full).await?;
    }
    core.begin_turn();
    say::context(core, shared).await;
    say::user(core, shared, id, pieces).await;
    core.keep().await?;
    let wish = Wish { schema, ..Wish::default() };
    to_the_end(core, shared, id, &wish).await
}

/// Asks the model until it has nothing more to do.
pub(super) async fn to_the_end(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    wish: &Wish<'_>,
) -> Result<End, Stop> {
    let mut message = None;
    loop {
        let Step { said, goes_on } = step(core, shared, id, wish).await?;
        message = said.or(message);
        core.set_mark();
        let steered = shared.take_steered();
        if steered.is_empty() && !goes_on {
            return Ok(End { message });
        }
        if compact::is_due(core, shared) {
            compact::run(core, shared, id, compact::Why::Full).await?;
            say::context(core, shared).await;
        }
        for pieces in steered {
            say::user(core, shared, id, &pieces).await;
        }
        core.keep().await?;
    }
}

/// One answer of the model with what it asks for, tried again when the way to it fails.
async fn step(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    wish: &Wish<'_>,
) -> Result<Step, Stop> {
    let mut backoff = Backoff::for_stream(&shared.settings.provider);
    let since = core.items.len();
    loop {
        let error = match turn::attempt(core, shared, id, wish, since).await {
            Ok(step) => return Ok(step),
            Err(Broken::Stop(stop)) => return Err(stop),
            Err(Broken::Model(error)) => error,
        };
        // Who was not there for the first word of a task has been tried often enough by then: it is
        // more likely to be a wrong address, or a server that is not started, than a bad moment.
        let is_hopeless = matches!(error, ModelError::Connect { .. }) && !shared.was_heard();
        let Some(wait) = backoff.next(&error).filter(|_| !is_hopeless) else {
            return Err(Stop::of_model(&error, shared, &core.context.model));
        };
        announce(shared, id, &wait, &error).await;
        tokio::time::sleep(wait.delay).await;
    }
}

/// Says that the model is asked again, and why.
pub(crate) async fn announce(shared: &Shared, id: &str, wait: &Wait, error: &ModelError) {
    let event = ErrorEvent {
        message: Str::Owned(wait.announcement()),
        codex_error_info: Some(error.codex_error_info()),
        additional_details: Some(Str::Owned(error.to_string())),
        ..ErrorEvent::default()
    };
    shared.out.send(id, EventMsg::StreamError(event)).await;
}

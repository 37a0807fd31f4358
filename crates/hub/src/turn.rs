//! The library interface: a prompt in, an answer out.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tieline_event::{
    Answer, ConversationKey, Failure, Kind, Origin, Prompt, Request, RequestId, Text,
    TurnCompleted, TurnId, TurnStatus, Usage,
};

use crate::conversation::{Conversation, OpenOptions};
use crate::error::Error;
use crate::hub::Hub;
use crate::tail::Entry;

/// Answers a request, perhaps after asking somebody.
pub type AskHandler =
    Arc<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// Who answers when the agent asks.
#[derive(Clone, Default)]
pub enum OnRequest {
    /// Nobody: the answer is no.
    #[default]
    Deny,
    /// Nobody: the answer is yes. Questions are declined.
    Allow,
    /// Nobody: the turn ends as [`TurnError::AnswerNeeded`].
    Fail,
    /// Somebody.
    Ask(AskHandler),
}

/// Everything a turn needs beside its prompt.
#[derive(Clone, Default)]
pub struct TurnContext {
    /// What the conversation is opened with.
    pub open: OpenOptions,
    /// Who answers when the agent asks.
    pub on_request: OnRequest,
    /// The turn is interrupted after this time.
    pub timeout: Option<Duration>,
}

/// A turn that ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnOutcome {
    /// Which turn.
    pub turn: TurnId,
    /// The agent's answer, whole.
    pub text: String,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// What it used.
    pub usage: Option<Usage>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Tasks of the agent that go on.
    pub open_tasks: u32,
}

/// A turn that did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// It failed; the failure says why and what to do.
    #[error("{0}")]
    Failed(Failure),
    /// Somebody stopped it.
    #[error("the turn was interrupted")]
    Interrupted,
    /// It took longer than the context allows.
    #[error("the turn took longer than {0:?}")]
    TimedOut(Duration),
    /// The agent asked, and nobody was to answer.
    #[error("the agent asked: {}", .0.title)]
    AnswerNeeded(Box<Request>),
    /// It could not begin, or its conversation was lost.
    #[error(transparent)]
    Hub(#[from] Error),
}

impl From<tieline_store::Error> for TurnError {
    fn from(error: tieline_store::Error) -> Self {
        Self::Hub(error.into())
    }
}

impl Hub {
    /// Runs one turn of a conversation, which is opened first if need be, and gives its outcome.
    ///
    /// # Errors
    /// [`TurnError`]: everything that can go wrong, in one type.
    pub async fn run_turn(
        &self,
        key: &ConversationKey,
        prompt: impl Into<Prompt>,
        context: TurnContext,
    ) -> Result<TurnOutcome, TurnError> {
        let conversation = self.conversation(key, context.open.clone()).await?;
        let mut subscription = conversation.subscribe(conversation.last_seq());
        let turn = conversation.start_turn(prompt.into()).await?;
        let mut watch = Watch {
            conversation: &conversation,
            turn: &turn,
            asked: None,
            waiting: VecDeque::new(),
            asking: None,
        };
        let ended = async {
            loop {
                let entries = tokio::select! {
                    entries = subscription.next() => entries?,
                    (request, answer) = answered(&mut watch.asking) => {
                        watch.give(&request, answer, Origin::Client, None).await?;
                        watch.ask_next(&context.on_request);
                        continue;
                    }
                };
                if entries.is_empty() {
                    return Err(TurnError::Hub(Error::Closed));
                }
                for entry in entries {
                    if let Some(end) = watch.see(&entry, &context.on_request).await? {
                        return Ok(end);
                    }
                }
            }
        };
        let end = match context.timeout {
            None => ended.await?,
            Some(limit) => match tokio::time::timeout(limit, ended).await {
                Ok(end) => end?,
                Err(_) => {
                    interrupt(&conversation).await?;
                    return Err(TurnError::TimedOut(limit));
                }
            },
        };
        if let Some(request) = watch.asked.take() {
            return Err(TurnError::AnswerNeeded(request));
        }
        match end.status {
            TurnStatus::Interrupted => Err(TurnError::Interrupted),
            TurnStatus::Failed => {
                let unexplained =
                    || Failure::new(tieline_event::FailureCode::Agent, "the turn failed");
                Err(TurnError::Failed(end.error.unwrap_or_else(unexplained)))
            }
            TurnStatus::Completed => Ok(TurnOutcome {
                turn,
                text: self.whole_text(end.text).await?,
                stop_reason: end.stop_reason,
                usage: end.usage,
                duration_ms: end.duration_ms,
                open_tasks: end.open_tasks,
            }),
        }
    }

    /// A text with what was moved to a blob.
    async fn whole_text(&self, text: Text) -> Result<String, TurnError> {
        match text {
            Text::Inline(text) => Ok(text),
            Text::Blob { blob, head, .. } => {
                let store = self.store().clone();
                let read = tokio::task::spawn_blocking(move || store.blob(&blob.sha256));
                let bytes = read.await.map_err(|_| Error::Closed)??;
                Ok(bytes.map_or(head, |bytes| String::from_utf8_lossy(&bytes).into_owned()))
            }
        }
    }
}

struct Watch<'a> {
    conversation: &'a Conversation,
    turn: &'a TurnId,
    asked: Option<Box<Request>>,
    /// Requests for the handler, which is asked one at a time.
    waiting: VecDeque<Request>,
    asking: Option<Asking>,
}

/// A request that the handler has, and the answer it will give.
type Asking = (RequestId, Pin<Box<dyn Future<Output = Answer> + Send>>);

/// The handler's answer. Does not end while it is not asked. Can be cancelled.
async fn answered(asking: &mut Option<Asking>) -> (RequestId, Answer) {
    match asking {
        None => std::future::pending().await,
        Some((request, answer)) => {
            let answer = answer.await;
            let request = request.clone();
            *asking = None;
            (request, answer)
        }
    }
}

impl Watch<'_> {
    async fn see(
        &mut self,
        entry: &Entry,
        on_request: &OnRequest,
    ) -> Result<Option<TurnCompleted>, TurnError> {
        let Entry::Event(shown) = entry else { return Ok(None) };
        match &shown.event.kind {
            Kind::TurnCompleted(end) if shown.event.turn.as_ref() == Some(self.turn) => {
                Ok(Some(end.clone()))
            }
            Kind::RequestOpened(request)
                if shown.event.turn.is_none() || shown.event.turn.as_ref() == Some(self.turn) =>
            {
                self.resolve(request, on_request).await?;
                Ok(None)
            }
            Kind::RequestResolved(it) => {
                self.forget(&it.request, on_request);
                Ok(None)
            }
            Kind::RequestExpired(it) => {
                self.forget(&it.request, on_request);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    async fn resolve(
        &mut self,
        request: &Request,
        on_request: &OnRequest,
    ) -> Result<(), TurnError> {
        let is_approval = !matches!(request.body, tieline_event::RequestBody::Question { .. });
        let deny = || Answer::deny("Nobody is there to answer; go on without it.");
        let (answer, by, policy) = match on_request {
            OnRequest::Deny => (deny(), Origin::Engine, Some("deny")),
            OnRequest::Allow if is_approval => (Answer::allow(), Origin::Engine, Some("allow")),
            OnRequest::Allow => (deny(), Origin::Engine, Some("allow")),
            OnRequest::Fail => {
                self.asked = Some(Box::new(request.clone()));
                return Ok(interrupt(self.conversation).await?);
            }
            OnRequest::Ask(_) => {
                self.waiting.push_back(request.clone());
                self.ask_next(on_request);
                return Ok(());
            }
        };
        let policy = policy.map(|policy| format!("on-request {policy}"));
        self.give(&request.id, answer, by, policy).await
    }

    /// Hands the next request to the handler, unless it has one.
    fn ask_next(&mut self, on_request: &OnRequest) {
        if self.asking.is_none()
            && let OnRequest::Ask(handler) = on_request
            && let Some(request) = self.waiting.pop_front()
        {
            self.asking = Some((request.id.clone(), handler(request)));
        }
    }

    /// A request has its answer or is gone: whoever was asked need not go on.
    fn forget(&mut self, request: &RequestId, on_request: &OnRequest) {
        self.waiting.retain(|it| it.id != *request);
        self.asking.take_if(|(asked, _)| asked == request);
        self.ask_next(on_request);
    }

    async fn give(
        &self,
        request: &RequestId,
        answer: Answer,
        by: Origin,
        policy: Option<String>,
    ) -> Result<(), TurnError> {
        match self.conversation.answer(request, answer, by, policy).await {
            // Somebody else was faster, or the agent took it back.
            Ok(()) | Err(Error::AlreadyResolved { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Interrupts the running turn; one that has just ended needs it no more.
async fn interrupt(conversation: &Conversation) -> Result<(), Error> {
    match conversation.interrupt().await {
        Ok(()) | Err(Error::NoTurn) => Ok(()),
        Err(error) => Err(error),
    }
}

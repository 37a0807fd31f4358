//! The handle of an open conversation.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tieline_event::{
    Answer, BlobRef, Command, ConversationKey, Extras, Inquiry, Mode, Origin, Policy, Prompt,
    Report, RequestId, Seq, TaskMarker, TurnId,
};
use tieline_store::{LetterId, Store};
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;
use crate::subscription::Subscription;
use crate::tail::Tail;

/// What a conversation is opened with; what is `None` stays as the conversation has it.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The agent. A conversation keeps the one it began with.
    pub agent: Option<String>,
    /// Where it works, absolute.
    pub workspace: Option<PathBuf>,
    /// How much it may do.
    pub mode: Option<Mode>,
    /// What goes before the mode, for agents that have such a policy.
    pub policy: Option<Policy>,
    /// The model.
    pub model: Option<String>,
    /// The effort.
    pub effort: Option<String>,
    /// What the client brings along for the agent's process.
    pub extras: Option<Extras>,
}

/// What an agent's notify program was told.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The native session; older agents do not name it.
    pub session: Option<String>,
    /// The agent's own name of the turn.
    pub turn: Option<String>,
    /// The agent's last message, if it was told.
    pub text: String,
}

/// What an open conversation was asked, and will answer. It was asked when the method was called: what
/// is called later comes later, whoever waits first.
pub type Answering<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// What an owner writes into a conversation beside what its agent does; all of it or nothing.
#[derive(Debug, Clone, Default)]
pub struct Note {
    /// Words about the task it is for.
    pub markers: Vec<TaskMarker>,
    /// What is to be remembered about the task, as JSON.
    pub task: Option<String>,
    /// A large value that the task refers to.
    pub blob: Option<(BlobRef, Vec<u8>)>,
    /// Letters that are done with this.
    pub letters: Vec<LetterId>,
}

/// An open conversation. Clones speak with the same actor.
#[derive(Debug, Clone)]
pub struct Conversation {
    pub(crate) key: ConversationKey,
    /// The agent's name; a conversation keeps it.
    pub(crate) agent: Arc<str>,
    pub(crate) store: Store,
    pub(crate) tail: Arc<Tail>,
    pub(crate) inbox: mpsc::Sender<Message>,
}

/// What the actor is asked, each with the place for its answer.
#[derive(Debug)]
pub(crate) enum Message {
    StartTurn(Prompt, Reply<TurnId>),
    Steer {
        prompt: Prompt,
        queue: bool,
        reply: Reply<Option<TurnId>>,
    },
    Notified(Notification),
    Interrupt(Reply<()>),
    Cancel(Reply<()>),
    Wake(Reply<()>),
    Answer {
        request: RequestId,
        answer: Answer,
        by: Origin,
        policy: Option<String>,
        reply: Reply<()>,
    },
    Configure(OpenOptions, Reply<Seq>),
    Inquire(Inquiry, Reply<Report>),
    Rename(String, Reply<()>),
    Note(Note, Reply<()>),
    Reset(Reply<()>),
    Close(Reply<()>),
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

impl Conversation {
    /// Its key.
    pub fn key(&self) -> &ConversationKey {
        &self.key
    }

    /// The last event that was shown.
    pub fn last_seq(&self) -> Seq {
        self.tail.shown()
    }

    /// Whether its actor is gone.
    pub fn is_closed(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Everything that happens after an event, from now or from long ago.
    pub fn subscribe(&self, after: Seq) -> Subscription {
        Subscription::new(self.store.clone(), self.key.clone(), Arc::clone(&self.tail), after)
    }

    /// Does what a command says; a turn that begins is named.
    ///
    /// # Errors
    /// As the method for each command.
    pub async fn command(&self, command: Command) -> Result<Option<TurnId>, Error> {
        match command {
            Command::StartTurn { prompt } => return self.start_turn(prompt).await.map(Some),
            Command::Steer { prompt, queue: false } => self.steer(prompt).await?,
            Command::Steer { prompt, queue: true } => return self.steer_or_queue(prompt).await,
            Command::Interrupt => self.interrupt().await?,
            Command::Answer { request, answer, by } => {
                self.answer(&request, answer, by, None).await?;
            }
            Command::SetMode { mode } => self.set_mode(mode).await?,
            Command::SetModel { model } => self.set_model(model).await?,
            Command::SetEffort { effort } => self.set_effort(effort).await?,
            Command::Wake => self.wake().await?,
            Command::Cancel => self.cancel().await?,
            Command::Reset => self.reset().await?,
            Command::Close => self.close().await?,
        }
        Ok(None)
    }

    /// Begins a turn, or queues it behind the running one. The same idempotency key twice gives
    /// the same turn. A turn whose agent cannot start is begun and ends as failed.
    ///
    /// # Errors
    /// When the conversation is closed or too many turns wait.
    pub fn start_turn(&self, prompt: Prompt) -> Answering<TurnId> {
        self.ask(|reply| Message::StartTurn(prompt, reply))
    }

    /// Says something while a turn runs.
    ///
    /// # Errors
    /// When no turn runs or the agent takes no message now.
    pub fn steer(&self, prompt: Prompt) -> Answering<()> {
        let steered = self.ask(|reply| Message::Steer { prompt, queue: false, reply });
        Box::pin(async move { steered.await.map(drop) })
    }

    /// Says something while a turn runs; where the agent takes no message now, it becomes a turn
    /// of its own afterwards, which is named once it begins.
    ///
    /// # Errors
    /// When the conversation is closed or too many turns wait.
    pub fn steer_or_queue(&self, prompt: Prompt) -> Answering<Option<TurnId>> {
        self.ask(|reply| Message::Steer { prompt, queue: true, reply })
    }

    /// The agent's notify program ran. Ends the turn if its wire does not do so in time; means
    /// nothing for any other session.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub async fn notified(&self, notification: Notification) -> Result<(), Error> {
        self.inbox.send(Message::Notified(notification)).await.map_err(|_| Error::Closed)
    }

    /// Stops the running turn. Its end follows as an event.
    ///
    /// # Errors
    /// When no turn runs.
    pub fn interrupt(&self) -> Answering<()> {
        self.ask(Message::Interrupt)
    }

    /// Answers a request; the first answer wins. `policy` names the rule that gave it, when no
    /// person did.
    ///
    /// # Errors
    /// When the request is unknown or already resolved.
    pub fn answer(
        &self,
        request: &RequestId,
        answer: Answer,
        by: Origin,
        policy: Option<String>,
    ) -> Answering<()> {
        let request = request.clone();
        self.ask(|reply| Message::Answer { request, answer, by, policy, reply })
    }

    /// Changes the mode from now on.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn set_mode(&self, mode: Mode) -> Answering<()> {
        self.set(OpenOptions { mode: Some(mode), ..OpenOptions::default() })
    }

    /// Changes the model from now on.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn set_model(&self, model: String) -> Answering<()> {
        self.set(OpenOptions { model: Some(model), ..OpenOptions::default() })
    }

    /// Changes the effort from now on.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn set_effort(&self, effort: String) -> Answering<()> {
        self.set(OpenOptions { effort: Some(effort), ..OpenOptions::default() })
    }

    /// Starts the agent, if it does not run, so that it tells what it can do before its first turn.
    ///
    /// # Errors
    /// When the conversation is closed or the agent cannot start.
    pub fn wake(&self) -> Answering<()> {
        self.ask(Message::Wake)
    }

    /// Asks the agent about itself, and starts it for that if need be.
    ///
    /// # Errors
    /// When the conversation is closed, the agent cannot start, or does not tell.
    pub fn inquire(&self, inquiry: Inquiry) -> Answering<Report> {
        self.ask(|reply| Message::Inquire(inquiry, reply))
    }

    /// Gives the conversation a name.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn rename(&self, title: String) -> Answering<()> {
        self.ask(|reply| Message::Rename(title, reply))
    }

    /// Stops the running turn and forgets those that wait for it; these are refused as cancelled. No
    /// turn at all is fine.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn cancel(&self) -> Answering<()> {
        self.ask(Message::Cancel)
    }

    /// Writes words of the owner's own into the conversation; they are on disk when this is done.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn note(&self, note: Note) -> Answering<()> {
        self.ask(|reply| Message::Note(note, reply))
    }

    /// Changes what the options say from now on; an agent that cannot change that while it runs gets
    /// a new process before its next turn. Gives the last event before it: what is told up to there
    /// is older than the change.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn configure(&self, options: OpenOptions) -> Answering<Seq> {
        self.ask(|reply| Message::Configure(options, reply))
    }

    fn set(&self, options: OpenOptions) -> Answering<()> {
        let set = self.configure(options);
        Box::pin(async move { set.await.map(|_| ()) })
    }

    /// Forgets the native session: the next turn begins afresh, the history stays.
    ///
    /// # Errors
    /// When the conversation is closed.
    pub fn reset(&self) -> Answering<()> {
        self.ask(Message::Reset)
    }

    /// Ends the agent with everything it started and gives the conversation up.
    ///
    /// # Errors
    /// When the conversation was closed before.
    pub fn close(&self) -> Answering<()> {
        self.ask(Message::Close)
    }

    /// Asks the actor at once, so that the order of calls is the order in which it hears of them;
    /// only a full inbox makes the caller wait for a place.
    fn ask<T: Send + 'static>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Answering<T> {
        let (reply, answer) = oneshot::channel();
        let sent = self.inbox.try_send(message(reply));
        let inbox = self.inbox.clone();
        Box::pin(async move {
            match sent {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(message)) => {
                    inbox.send(message).await.map_err(|_| Error::Closed)?;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => return Err(Error::Closed),
            }
            answer.await.unwrap_or(Err(Error::Closed))
        })
    }
}

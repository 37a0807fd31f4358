//! Questions of servers to the user.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// How many questions wait to be shown. A server whose question finds no place waits.
const WAITING: usize = 16;

/// A question of a server to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    /// The server.
    pub server: String,
    /// The question's id, as JSON; [`Mcp::elicited`](super::Mcp::elicited) takes it back.
    pub id: String,
    /// What is asked.
    pub message: String,
    /// The whole question as the server put it, as JSON.
    pub request: String,
}

/// What the user said: nothing is a no, else what was filled in, as JSON.
pub(super) type Said = Option<Option<String>>;

/// The questions of all servers.
#[derive(Debug, Default)]
pub(super) struct Questions {
    listener: Mutex<Option<mpsc::Sender<Elicitation>>>,
    open: Mutex<Vec<Open>>,
}

#[derive(Debug)]
struct Open {
    server: String,
    id: Value,
    answer: oneshot::Sender<Said>,
}

impl Questions {
    /// Where questions come out from now on.
    pub(super) fn listen(&self) -> mpsc::Receiver<Elicitation> {
        let (sender, receiver) = mpsc::channel(WAITING);
        *lock(&self.listener) = Some(sender);
        receiver
    }

    /// Asks, and waits for the answer. Where nobody listens it is a no.
    pub(super) async fn ask(&self, question: Elicitation, id: Value) -> Said {
        let listener = lock(&self.listener).clone()?;
        let (answer, said) = oneshot::channel();
        let server = question.server.clone();
        let _taken_back = TakenBack { questions: self, server: &server, id: &id };
        lock(&self.open).push(Open { server: server.clone(), id: id.clone(), answer });
        if listener.send(question).await.is_err() {
            return None;
        }
        said.await.ok().flatten()
    }

    /// Answers; `false` when nothing of that id is asked.
    pub(super) fn answer(&self, server: &str, id: &str, said: Said) -> bool {
        let Ok(id) = serde_json::from_str::<Value>(id) else { return false };
        let mut open = lock(&self.open);
        match open.iter().position(|it| it.server == server && it.id == id) {
            Some(at) => open.remove(at).answer.send(said).is_ok(),
            None => false,
        }
    }

    /// Says no to everything that is asked now.
    pub(super) fn dismiss(&self) {
        lock(&self.open).clear();
    }

    /// Says no to everything, now and from now on.
    pub(super) fn close(&self) {
        *lock(&self.listener) = None;
        self.dismiss();
    }
}

/// Takes a question back that nobody waits for any more.
struct TakenBack<'a> {
    questions: &'a Questions,
    server: &'a str,
    id: &'a Value,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        lock(&self.questions.open).retain(|it| it.server != self.server || it.id != *self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

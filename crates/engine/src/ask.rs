//! What the engine waits for: leave, and answers to questions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::order::Verdict;

/// Answers by the id of their question.
type Answers = BTreeMap<String, Vec<String>>;

/// Everything that waits for the client.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    leaves: Mutex<Vec<Waiting<Verdict>>>,
    questions: Mutex<Vec<Waiting<Answers>>>,
}

#[derive(Debug)]
struct Waiting<T> {
    call: String,
    /// The submission whose task asks; older clients answer by it.
    task: String,
    answer: oneshot::Sender<T>,
}

/// An answer that will come. Dropping it takes the question back.
pub(crate) struct Answer<'a, T> {
    all: &'a Mutex<Vec<Waiting<T>>>,
    call: String,
    answer: oneshot::Receiver<T>,
}

impl Asked {
    /// Waits for leave, under the id of a call.
    pub(crate) fn leave(&self, task: &str, call: &str) -> Answer<'_, Verdict> {
        wait(&self.leaves, task, call)
    }

    /// Waits for answers, under the id of a call.
    pub(crate) fn answers(&self, task: &str, call: &str) -> Answer<'_, Answers> {
        wait(&self.questions, task, call)
    }

    /// Gives leave or refuses it; `false` when nobody waits for that.
    pub(crate) fn decide(&self, id: &str, verdict: Verdict) -> bool {
        answer(&self.leaves, id, verdict)
    }

    /// Answers questions; `false` when nobody waits for that.
    pub(crate) fn reply(&self, id: &str, answers: Answers) -> bool {
        answer(&self.questions, id, answers)
    }
}

fn lock<T>(all: &Mutex<Vec<Waiting<T>>>) -> MutexGuard<'_, Vec<Waiting<T>>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(all: &'a Mutex<Vec<Waiting<T>>>, task: &str, call: &str) -> Answer<'a, T> {
    let (sender, answer) = oneshot::channel();
    let (task, call) = (task.to_owned(), call.to_owned());
    lock(all).push(Waiting { call: call.clone(), task, answer: sender });
    Answer { all, call, answer }
}

/// By the call's id, else the oldest of the task's.
fn answer<T>(all: &Mutex<Vec<Waiting<T>>>, id: &str, value: T) -> bool {
    let mut all = lock(all);
    let by_call = all.iter().position(|waiting| waiting.call == id);
    let by_task = || all.iter().position(|waiting| waiting.task == id);
    match by_call.or_else(by_task) {
        Some(at) => all.remove(at).answer.send(value).is_ok(),
        None => false,
    }
}

impl<T> Answer<'_, T> {
    /// The answer; none when the client is gone.
    pub(crate) async fn get(mut self) -> Option<T> {
        (&mut self.answer).await.ok()
    }
}

impl<T> Drop for Answer<'_, T> {
    fn drop(&mut self) {
        lock(self.all).retain(|waiting| waiting.call != self.call);
    }
}

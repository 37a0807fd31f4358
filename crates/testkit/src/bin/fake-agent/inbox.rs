//! What came in on stdin and waits for the player: user messages, answers, interrupts.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::voice::{Ear, User, Verdict};

#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    users: VecDeque<User>,
    answers: HashMap<String, Verdict>,
    ended: bool,
    playing: bool,
    interrupted: bool,
    deaf: bool,
}

pub(crate) enum Next {
    User(User),
    End,
}

/// Why a wait is over.
#[derive(Debug, PartialEq)]
pub(crate) enum Woken {
    Interrupted,
    TimeOver,
    Answer(Verdict),
}

/// Reads stdin to its end.
pub(crate) fn listen(mut ear: impl Ear) {
    for line in io::stdin().lock().lines() {
        match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
            Some(message) => ear.hear(&message),
            None => ear.misses(),
        }
    }
    ear.ends();
}

impl Inbox {
    pub(crate) fn push_user(&self, user: User) {
        self.lock().users.push_back(user);
        self.changed.notify_all();
    }

    pub(crate) fn push_answer(&self, id: String, verdict: Verdict) {
        self.lock().answers.insert(id, verdict);
        self.changed.notify_all();
    }

    /// Only a turn that runs can be interrupted.
    pub(crate) fn interrupt(&self) {
        let mut state = self.lock();
        state.interrupted = state.playing && !state.deaf;
        self.changed.notify_all();
    }

    pub(crate) fn be_deaf(&self) {
        self.lock().deaf = true;
    }

    /// No more user messages come.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.playing || !state.users.is_empty()
    }

    /// Waits for a user message; the turn has begun when it returns one.
    pub(crate) fn next_user(&self) -> Next {
        let mut state = self.lock();
        loop {
            if let Some(user) = state.users.pop_front() {
                state.playing = true;
                return Next::User(user);
            }
            if state.ended {
                return Next::End;
            }
            state = self.changed.wait(state).expect("no holder of this lock panics");
        }
    }

    pub(crate) fn turn_over(&self) {
        let mut state = self.lock();
        state.playing = false;
        state.interrupted = false;
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.lock().interrupted
    }

    /// Waits for an interrupt, at most for `time`.
    pub(crate) fn sleep(&self, time: Option<Duration>) -> Woken {
        self.wait(None, time)
    }

    /// Waits for the answer to our request, or an interrupt.
    pub(crate) fn answer(&self, request_id: &str) -> Woken {
        self.wait(Some(request_id), None)
    }

    fn wait(&self, request_id: Option<&str>, time: Option<Duration>) -> Woken {
        let end = time.map(|time| Instant::now() + time);
        let mut state = self.lock();
        loop {
            if state.interrupted {
                return Woken::Interrupted;
            }
            if let Some(answer) = request_id.and_then(|id| state.answers.remove(id)) {
                return Woken::Answer(answer);
            }
            state = match end {
                None => self.changed.wait(state).expect("no holder of this lock panics"),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Woken::TimeOver;
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.expect("no holder of this lock panics").0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

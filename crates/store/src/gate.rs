//! What a stop of this process must not interrupt.
//!
//! A process that is stopped while it writes (Ctrl-Z, a read from the terminal in the background) keeps
//! the lock of the database for as long as it stands still, and every other process waits. So every
//! write passes this gate, and whoever is about to stop the process closes it first.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

static STATE: Mutex<State> = Mutex::new(State { n_inside: 0, n_closed: 0 });
static CHANGED: Condvar = Condvar::new();

struct State {
    /// Writes that are under way.
    n_inside: usize,
    /// Those who keep the gate closed.
    n_closed: usize,
}

/// A write is under way until this is dropped.
pub(crate) struct Inside;

/// Waits while the gate is closed. Not to be called by somebody who is inside.
pub(crate) fn enter() -> Inside {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    while state.n_closed > 0 {
        state = CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    state.n_inside += 1;
    Inside
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_inside -= 1;
        // Writers do not wait for each other, so mostly nobody has to be woken.
        if state.n_closed > 0 {
            CHANGED.notify_all();
        }
    }
}

/// No store of this process begins to write until this is dropped.
#[must_use = "the stores write again once it is dropped"]
#[derive(Debug)]
pub struct Quiet(());

/// Keeps the stores of this process from writing, so that it can be stopped without holding up
/// others. Waits for the writes that are under way, but no longer than `limit`: one that lasts longer
/// waits for the lock itself and holds nobody up.
pub fn quiet(limit: Duration) -> Quiet {
    let deadline = Instant::now().checked_add(limit);
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.n_closed += 1;
    while state.n_inside > 0 {
        let left =
            deadline.map_or(limit, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        state = CHANGED.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    Quiet(())
}

impl Drop for Quiet {
    fn drop(&mut self) {
        STATE.lock().unwrap_or_else(PoisonError::into_inner).n_closed -= 1;
        CHANGED.notify_all();
    }
}

//! The exit codes.

use std::process::ExitCode;

use tieline_event::FailureCode;
use tieline_front::run::Ending;
use tieline_front::task::conduct;
use tieline_front::task::state::Status;

/// How tieline ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed = 0,
    Failed = 1,
    Usage = 2,
    CannotStart = 3,
    Interrupted = 4,
    AnswerNeeded = 5,
    Store = 6,
    Blocked = 7,
    Budget = 8,
    Output = 9,
}

/// The table of tasks.
pub(crate) const TASKS: &str = "\
Exit codes of tasks:
  0  complete
  1  failed: a turn failed, or the work does not pass its verification
  2  wrong usage: an id, a flag, a file that cannot be read
  3  the agent cannot start: it is not there, or has no key or login
  4  stopped: cancelled, interrupted, or not done in time (wait)
  5  a question is open
  6  trouble with the store: busy, damaged, full
  7  blocked
  8  the budget is used up
  9  the output cannot be written: its reader is gone, its disk is full";

/// The table as users read it.
pub(crate) const TABLE: &str = "\
Exit codes:
  0  completed
  1  the turn failed
  2  wrong usage: flags, configuration, an unknown name
  3  the agent cannot start: it is not there, or has no key or login
  4  interrupted
  5  an answer was needed and nobody was there to give it
  6  trouble with the store: busy, damaged, full
  9  the output cannot be written: its reader is gone, its disk is full";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&Ending> for Exit {
    fn from(ending: &Ending) -> Self {
        match ending {
            Ending::Completed => Self::Completed,
            Ending::OutputGone => Self::Output,
            Ending::Interrupted => Self::Interrupted,
            Ending::AnswerNeeded => Self::AnswerNeeded,
            Ending::Failed(code) => Self::of_failure(*code),
        }
    }
}

impl From<conduct::Ending> for Exit {
    fn from(ending: conduct::Ending) -> Self {
        match ending {
            conduct::Ending::Stands(status) => status.into(),
            conduct::Ending::TurnFailed(code) => Self::of_failure(code),
            conduct::Ending::Interrupted => Self::Interrupted,
            conduct::Ending::OutputGone => Self::Output,
        }
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status {
            Status::Complete => Self::Completed,
            Status::Question => Self::AnswerNeeded,
            Status::Blocked => Self::Blocked,
            Status::Budget => Self::Budget,
            Status::Failed => Self::Failed,
            Status::Cancelled | Status::Running => Self::Interrupted,
        }
    }
}

impl Exit {
    pub(crate) fn of_failure(code: FailureCode) -> Self {
        match code {
            FailureCode::AgentNotFound
            | FailureCode::AgentCannotStart
            | FailureCode::NotLoggedIn => Self::CannotStart,
            FailureCode::AnswerNeeded => Self::AnswerNeeded,
            FailureCode::Store => Self::Store,
            _ => Self::Failed,
        }
    }
}

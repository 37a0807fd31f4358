//! The exit codes.

use std::process::ExitCode;

use tieline_event::FailureCode;
use tieline_front::run::Ending;

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
}

/// The table as users read it.
pub(crate) const TABLE: &str = "\
Exit codes:
  0  completed
  1  the turn failed
  2  wrong usage: flags, configuration, an unknown name
  3  the agent cannot start
  4  interrupted
  5  an answer was needed and nobody was there to give it
  6  trouble with the store: busy, damaged, full";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&Ending> for Exit {
    fn from(ending: &Ending) -> Self {
        match ending {
            Ending::Completed | Ending::OutputGone => Self::Completed,
            Ending::Interrupted => Self::Interrupted,
            Ending::AnswerNeeded => Self::AnswerNeeded,
            Ending::Failed(code) => Self::of_failure(*code),
        }
    }
}

impl Exit {
    pub(crate) fn of_failure(code: FailureCode) -> Self {
        match code {
            FailureCode::AgentNotFound | FailureCode::AgentCannotStart => Self::CannotStart,
            FailureCode::AnswerNeeded => Self::AnswerNeeded,
            FailureCode::Store => Self::Store,
            _ => Self::Failed,
        }
    }
}

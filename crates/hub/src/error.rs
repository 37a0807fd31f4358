//! What a caller of the hub can meet.

use tieline_event::{ConversationKey, Failure, RequestId};

/// Why the hub did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused: busy, full, broken.
    #[error(transparent)]
    Store(#[from] tieline_store::Error),
    /// The conversation belongs to another agent.
    #[error(
        "conversation {key} belongs to the agent {has}, not {wants}; choose another key for {wants}"
    )]
    OtherAgent {
        /// Which conversation.
        key: ConversationKey,
        /// Its agent.
        has: String,
        /// The agent asked for.
        wants: String,
    },
    /// A new conversation needs an agent and a workspace.
    #[error("conversation {0} is new and needs an agent and a workspace")]
    Incomplete(ConversationKey),
    /// The agent cannot be had.
    #[error("{0}")]
    Agent(Failure),
    /// No turn is running.
    #[error("no turn is running")]
    NoTurn,
    /// The turn was cancelled while it waited for another one.
    #[error("the turn was cancelled before it began")]
    Cancelled,
    /// Too many turns wait already.
    #[error("{0} turns wait already; try again when one is over")]
    TooManyTurns(usize),
    /// The agent cannot do this.
    #[error("{0}")]
    Refused(String),
    /// The request has its answer.
    #[error("request {request} is already resolved: {how}")]
    AlreadyResolved {
        /// Which request.
        request: RequestId,
        /// By whom and how.
        how: String,
    },
    /// There is no such request.
    #[error("there is no request {0}")]
    NoRequest(RequestId),
    /// The conversation's owner had to give up; what was shown is on disk.
    #[error("the conversation was given up: {0}")]
    Lost(String),
    /// The conversation was closed.
    #[error("the conversation is closed")]
    Closed,
}

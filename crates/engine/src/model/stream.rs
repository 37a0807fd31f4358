//! An answer, event by event.

use std::fmt;
use std::time::Duration;

use tieline_wire::responses::StreamEvent;
use tieline_wire::sse::Parser;
use tokio::time::{Instant, timeout};

use super::RateLimits;
use super::error::ModelError;
use super::refusal::{Scrub, by_event, request_id};

/// How long we wait for the end after the last event, so that the connection can be used again.
const LINGER: Duration = Duration::from_millis(100);

/// An answer that is still coming.
pub struct Stream {
    answer: reqwest::Response,
    parser: Parser,
    idle: Duration,
    /// How long nothing came, while somebody waited for it.
    waited: Duration,
    state: State,
    limits: Option<RateLimits>,
    request_id: Option<String>,
    scrub: Scrub,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// `response.completed` was handed out.
    Completed,
    /// Over, one way or the other.
    Over,
}

impl Stream {
    pub(super) fn new(answer: reqwest::Response, idle: Duration, scrub: Scrub) -> Self {
        let limits = RateLimits::read(answer.headers());
        let request_id = request_id(answer.headers());
        Self {
            answer,
            parser: Parser::default(),
            idle,
            waited: Duration::ZERO,
            state: State::Open,
            limits,
            request_id,
            scrub,
        }
    }

    /// What the provider leaves us, where it says so.
    pub fn rate_limits(&self) -> Option<&RateLimits> {
        self.limits.as_ref()
    }

    /// The provider's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The next event, lent until the next call; none after `response.completed`.
    ///
    /// Data that is not understood is [`StreamEvent::Unknown`]. A failure that the provider tells
    /// of is an error, never an event. To drop the future loses nothing; to drop the stream hangs
    /// up.
    ///
    /// # Errors
    /// When the answer fails or breaks off; then there is nothing after it.
    pub async fn next(&mut self) -> Result<Option<StreamEvent<'_>>, ModelError> {
        match self.state {
            State::Open => {}
            State::Completed => {
                self.state = State::Over;
                // Whatever it is that comes, the answer is whole.
                while let Ok(Ok(Some(_))) = timeout(LINGER, self.answer.chunk()).await {}
                return Ok(None);
            }
            State::Over => return Ok(None),
        }
        let more = self.advance().await.inspect_err(|_| self.state = State::Over)?;
        if !more {
            self.state = State::Over;
            return Err(ModelError::Lost("stream closed before response.completed".to_owned()));
        }
        let event = StreamEvent::parse(self.parser.event().data);
        let error = match &event {
            StreamEvent::Completed(_) => {
                self.state = State::Completed;
                None
            }
            StreamEvent::Failed(response) => Some(by_event(response.error.as_ref(), &self.scrub)),
            StreamEvent::Error(error) => Some(by_event(Some(error), &self.scrub)),
            StreamEvent::Incomplete(response) => Some(ModelError::Incomplete {
                reason: match response.reason() {
                    "" => "unknown".to_owned(),
                    reason => self.scrub.text(reason),
                },
                usage: response.usage,
            }),
            _ => None,
        };
        match error {
            Some(error) => {
                self.state = State::Over;
                Err(error)
            }
            None => Ok(Some(event)),
        }
    }

    /// Goes to the next event; false at the end of the answer.
    async fn advance(&mut self) -> Result<bool, ModelError> {
        let mut open = true;
        loop {
            let ready = self.parser.advance();
            if ready.map_err(|error| ModelError::Protocol(error.to_string()))? {
                return Ok(true);
            }
            if !open {
                return Ok(false);
            }
            let left = self.idle.saturating_sub(self.waited);
            let waiting = Waiting { since: Instant::now(), waited: &mut self.waited };
            let chunk = timeout(left, self.answer.chunk()).await;
            drop(waiting);
            match chunk {
                Err(_) => return Err(ModelError::Idle(self.idle)),
                Ok(Err(error)) => return Err(ModelError::broken(error)),
                Ok(Ok(Some(chunk))) => {
                    self.waited = Duration::ZERO;
                    self.parser.feed(&chunk);
                }
                Ok(Ok(None)) => {
                    open = false;
                    self.parser.finish();
                }
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("state", &self.state)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// Adds up the time somebody waits, also when they stop waiting and come back: a caller that looks
/// at something else now and then must not keep a dead connection alive, nor one that comes back
/// late find it dead.
struct Waiting<'a> {
    since: Instant,
    waited: &'a mut Duration,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        *self.waited += self.since.elapsed();
    }
}

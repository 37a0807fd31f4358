//! An answer, event by event.

use std::fmt;
use std::time::Duration;

use tieline_wire::responses::StreamEvent;
use tieline_wire::sse::Parser;
use tokio::time::{Instant, sleep_until, timeout};

use super::RateLimits;
use super::error::ModelError;
use super::refusal::{Scrub, by_event, request_id};
use crate::scripted::{Answer, Cue};

/// How long we wait for the end after the last event, so that the connection can be used again.
const LINGER: Duration = Duration::from_millis(100);

/// So much of a script is taken at once, if it makes no pause.
const PIECE: usize = 8 * 1024;

/// An answer that is still coming.
pub struct Stream {
    source: Source,
    parser: Parser,
    idle: Duration,
    /// How long nothing came, while somebody waited for it.
    waited: Duration,
    state: State,
    limits: Option<RateLimits>,
    request_id: Option<String>,
    scrub: Scrub,
}

/// Where the bytes come from.
pub(super) enum Source {
    /// A server.
    Http(reqwest::Response),
    /// A script, which speaks at its own pace.
    Script {
        /// What is left of it.
        answer: Box<Answer>,
        /// It is silent until then.
        pause: Option<Instant>,
    },
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
        Self { limits, request_id, scrub, ..Self::of(Source::Http(answer), idle) }
    }

    /// An answer of a script.
    pub(super) fn scripted(answer: Answer, idle: Duration) -> Self {
        Self::of(Source::Script { answer: Box::new(answer), pause: None }, idle)
    }

    fn of(source: Source, idle: Duration) -> Self {
        Self {
            source,
            parser: Parser::default(),
            idle,
            waited: Duration::ZERO,
            state: State::Open,
            limits: None,
            request_id: None,
            scrub: Scrub::default(),
        }
    }

    /// What the provider leaves us, where it says so.
    pub fn rate_limits(&self) -> Option<&RateLimits> {
        self.limits.as_ref()
    }

    /// Whether another event may be there without waiting.
    pub fn has_unread(&self) -> bool {
        self.parser.has_unread()
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
                loop {
                    // Nothing of it is kept.
                    let mut rest = Parser::default();
                    let Ok(Ok(true)) = timeout(LINGER, self.source.feed(&mut rest)).await else {
                        return Ok(None);
                    };
                }
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
            let fed = timeout(left, self.source.feed(&mut self.parser)).await;
            drop(waiting);
            match fed {
                Err(_) => return Err(ModelError::Idle(self.idle)),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(true)) => self.waited = Duration::ZERO,
                Ok(Ok(false)) => {
                    open = false;
                    self.parser.finish();
                }
            }
        }
    }
}

impl Source {
    /// Waits for the next piece; false at the end. Can be cancelled.
    async fn feed(&mut self, parser: &mut Parser) -> Result<bool, ModelError> {
        let (answer, pause) = match self {
            Self::Http(answer) => {
                let chunk = answer.chunk().await.map_err(ModelError::broken)?;
                chunk.iter().for_each(|chunk| parser.feed(chunk));
                return Ok(chunk.is_some());
            }
            Self::Script { answer, pause } => (answer, pause),
        };
        if let Some(until) = *pause {
            sleep_until(until).await;
            *pause = None;
        }
        // A script without pauses must not keep everybody else from their work.
        tokio::task::yield_now().await;
        let mut n_bytes = 0;
        while n_bytes < PIECE && pause.is_none() {
            match answer.next() {
                Some(Cue::Event(event)) => {
                    n_bytes += event.len();
                    parser.feed(event.as_bytes());
                }
                Some(Cue::Pause(Duration::ZERO)) => {}
                Some(Cue::Pause(time)) => *pause = Some(Instant::now() + time),
                None => return Ok(n_bytes > 0),
            }
        }
        Ok(true)
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

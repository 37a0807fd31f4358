//! One turn of a conversation for a person or a script: text, JSON lines or the final answer.
//!
//! The loop here only moves bytes; what they say is decided in [`text`], [`ask`] and [`jsonl`].

pub mod ask;
mod conduct;
pub mod ending;
mod face;
pub mod jsonl;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod stop;
mod talk;
pub mod text;
mod tty;
mod width;

use std::io;
use std::time::Duration;

use tieline_event::{FailureCode, Prompt, Seq};
use tieline_hub::{Conversation, Hub};
use tokio::time::{MissedTickBehavior, interval};

use conduct::{Phase, Run};
pub use page::{Layout, Look, Voices};
use stop::Signals;
use talk::hear;
pub use tty::Tty;

/// What is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// What a person reads.
    #[default]
    Text,
    /// Every event and delta as a line of JSON.
    Jsonl,
    /// The final answer.
    Final,
}

/// Who answers the agent's requests.
#[derive(Debug, Clone)]
pub enum OnRequest {
    /// The person at this terminal.
    Ask(Tty),
    /// Nobody: no.
    Deny,
    /// Nobody: yes.
    Allow,
    /// Nobody: the turn is stopped.
    Fail,
}

/// How to run a turn.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is printed.
    pub format: Format,
    /// How text looks.
    pub look: Look,
    /// Who answers.
    pub on_request: OnRequest,
    /// The rule's name in the event, when nobody is asked.
    pub policy: String,
    /// Whether to stay until the agent's background tasks are done.
    pub tasks: Tasks,
    /// The last event the reader knows.
    pub after: Seq,
    /// How to go on, for the last line.
    pub go_on: String,
}

/// What to do about tasks that go on after the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    /// Wait for them and for the turns they bring.
    Await,
    /// End them with the turn.
    End,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// Well.
    Completed,
    /// Not well, for this reason.
    Failed(FailureCode),
    /// Somebody stopped it.
    Interrupted,
    /// The agent asked and nobody was there.
    AnswerNeeded,
    /// The output cannot be written: nobody reads it any more, or its disk is full.
    OutputGone,
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The hub refused.
    #[error(transparent)]
    Hub(#[from] tieline_hub::Error),
    /// The output, the terminal or the signals failed.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// How often the live line is drawn.
const TICK: Duration = Duration::from_millis(120);

/// Runs a turn and closes the conversation.
///
/// # Errors
/// When the turn could not be begun or the store could not be read. A turn that failed is not an
/// error but an [`Ending`].
pub async fn run(
    hub: &Hub,
    conversation: &Conversation,
    prompt: Prompt,
    options: Options,
) -> Result<Ending, Error> {
    let mut signals = Signals::new().map_err(Error::io("listen to signals"))?;
    let mut subscription = conversation.subscribe(options.after);
    let key = conversation.key().clone();
    let row = hub.with_store(move |store| store.conversation(&key)).await?;
    let turn = conversation.start_turn(prompt).await?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let is_text = options.format == Format::Text;
    let is_live = options.look.live && is_text;
    let mut run = Run::new(hub, conversation, turn, options, row.map(|row| row.workspace));
    loop {
        tokio::select! {
            biased;
            stop = signals.next() => run.stop(stop),
            Some(done) = run.acts.join_next() => run.acted(done),
            entries = subscription.next() => {
                match entries {
                    Ok(entries) => {
                        if entries.is_empty() {
                            run.closed();
                        }
                        // Text and remarks go to two places, where somebody may read both.
                        let at_once = if is_text { 1 } else { entries.len().max(1) };
                        for entries in entries.chunks(at_once) {
                            run.show(entries);
                            if !run.face.err.is_empty() && !run.flush(&mut signals).await {
                                run.phase = Phase::Over(Ending::OutputGone);
                                break;
                            }
                        }
                    }
                    Err(err) => {
                        run.face.finish(&mut |_| None);
                        run.flush(&mut signals).await;
                        return Err(err.into());
                    }
                }
            }
            heard = hear(&mut run.talk) => run.heard(heard),
            _ = ticks.tick(), if is_live && run.talk.is_none() => run.face.tick(),
        }
        run.talk();
        if !run.flush(&mut signals).await {
            run.phase = Phase::Over(Ending::OutputGone);
        }
        if let Phase::Over(ending) = &run.phase {
            let ending = ending.clone();
            return Ok(run.end(ending).await);
        }
    }
}

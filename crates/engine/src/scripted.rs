//! A model that is a script: it needs no network and no key, and what it calls is done for real.
//!
//! # How it works
//!
//! It remembers nothing. [`Scripted::answer`] reads off the conversation how far the script is: the
//! user's messages say which section plays, the ids of what was said and called since then say where
//! in it (`past.rs`). So a session can be resumed, forked, taken back or killed at any point, and the
//! script goes on from there. `play.rs` goes through the steps, `answer.rs` writes them as the events
//! of the Responses API.
//!
//! # The script
//!
//! One verb a line. A message of the user plays one section; sections are separated by `---`, and
//! the last one plays again for every further message. Empty lines and lines that start with `#`
//! say nothing. docs/demo.md describes the verbs.
//!
//! # Invariants
//!
//! * The answer is a function of the script and the request, but for the endings of ids.
//! * What a user types never becomes part of a command or a path.

mod answer;
mod edit;
mod past;
mod play;
mod script;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use tieline_wire::responses::{Item, Request, Tool};

use crate::review;

pub(crate) use answer::{Answer, Cue, Opening};
use past::Past;
use play::Play;
use script::Script;

/// The only model there is.
pub const MODEL: &str = "scripted";

/// The efforts it knows: with more of it, it speaks more slowly.
pub const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// The time between two words.
const PACE: Duration = Duration::from_millis(15);

/// What is said in place of a summary of the conversation.
const SUMMARY: &str = "A script was played. Nothing of it has to be remembered.";

/// What is said in place of a review.
const REVIEW: &str = "This model is a script: it has nothing to say about changes.";

/// A script to play.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Playing {
    /// Its file; without one the embedded script plays.
    pub file: Option<PathBuf>,
    /// Words follow each other without a pause.
    pub fast: bool,
}

/// A model that is a script.
#[derive(Debug)]
pub(crate) struct Scripted {
    script: Script,
    fast: bool,
}

impl Scripted {
    /// Reads the script; the error says what is wrong with it.
    pub(crate) fn new(playing: &Playing) -> Result<Self, String> {
        let script = match &playing.file {
            None => script::parse(script::DEFAULT).map_err(|mistake| mistake.to_string()),
            Some(file) => {
                let shown = file.display();
                let text = std::fs::read_to_string(file)
                    .map_err(|error| format!("cannot read {shown}: {error}"))?;
                script::parse(&text).map_err(|mistake| format!("{shown}: {mistake}"))
            }
        };
        Ok(Self { script: script?, fast: playing.fast })
    }

    /// What it says next. `turns` are the places in the input where turns of the user begin, as far
    /// as they are known; `nonce` tells its ids from those of any other answer. It plays its script
    /// under any model's name: programs that always name one can be tried with it.
    pub(crate) fn answer(&self, request: &Request, turns: &[usize], nonce: u32) -> Answer {
        let effort = request.reasoning.as_ref().and_then(|it| it.effort.as_deref());
        let pause = match effort {
            _ if self.fast => Duration::ZERO,
            Some("none" | "minimal" | "low") => Duration::ZERO,
            Some("high" | "xhigh") => PACE * 3,
            _ => PACE,
        };
        Answer::new(self.play(request, turns), pause, nonce)
    }

    fn play(&self, request: &Request, turns: &[usize]) -> Play {
        if request.tools.is_empty() {
            return Play::words(SUMMARY);
        }
        if *request.instructions == *review::RUBRIC {
            return Play::words(REVIEW);
        }
        let plans = !request
            .tools
            .iter()
            .any(|tool| matches!(tool, Tool::Function { name, .. } if name == "update_plan"));
        self.from(&request.input, turns, plans)
    }

    /// The play as far as it is.
    fn from(&self, items: &[Item], turns: &[usize], plans: bool) -> Play {
        let past = Past::read(items, turns);
        let last = self.script.sections.len().saturating_sub(1);
        match self.script.sections.get(past.section().min(last)) {
            Some(section) if !past.is_cut_off() => Play::of(section, past, plans),
            _ => Play::words("My memory was shortened amid the script, so it ends here."),
        }
    }
}

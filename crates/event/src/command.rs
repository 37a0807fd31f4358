//! What goes into an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ability::Mode;
use crate::content::Content;
use crate::errand::{Errand, TurnOptions};
use crate::id::RequestId;
use crate::request::Answer;

/// Who caused something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person at a terminal.
    #[default]
    Human,
    /// A program that speaks one of our protocols.
    Client,
    /// A delegated task.
    Task,
    /// The agent by itself, for example when its background work is done.
    Agent,
    /// tieline's own engine or policy.
    Engine,
}

/// A message to an agent, or other work for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Its pieces.
    pub content: Vec<Content>,
    /// Who says it.
    #[serde(default)]
    pub origin: Origin,
    /// A client's own name for this message: the same key twice starts one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Work in place of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errand: Option<Errand>,
    /// What holds for this turn.
    #[serde(default, skip_serializing_if = "TurnOptions::is_empty")]
    pub options: TurnOptions,
}

impl Prompt {
    /// A message of plain text from a person.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text.into())], ..Self::default() }
    }

    /// Work of another kind.
    pub fn errand(errand: Errand) -> Self {
        Self { errand: Some(errand), ..Self::default() }
    }
}

/// Everything a front can ask of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Begin a turn.
    StartTurn {
        /// The message.
        prompt: Prompt,
    },
    /// Say something while a turn runs.
    Steer {
        /// The message.
        prompt: Prompt,
        /// Make it the next turn where the agent takes no message during one.
        #[serde(default)]
        queue: bool,
    },
    /// Stop the running turn; the conversation goes on.
    Interrupt,
    /// Answer an open request.
    Answer {
        /// Which one.
        request: RequestId,
        /// The answer.
        answer: Answer,
        /// Who gives it.
        #[serde(default)]
        by: Origin,
    },
    /// Change the mode from now on.
    SetMode {
        /// The new mode.
        mode: Mode,
    },
    /// Change the model from now on.
    SetModel {
        /// The new model.
        model: String,
    },
    /// Change the effort from now on.
    SetEffort {
        /// The new effort.
        effort: String,
    },
    /// Start the agent, so that it tells what it can do before the first turn.
    Wake,
    /// Stop the running turn and forget those that wait.
    Cancel,
    /// Forget the native session: the next turn begins afresh, the history stays.
    Reset,
    /// End the agent's process and give the conversation up.
    Close,
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

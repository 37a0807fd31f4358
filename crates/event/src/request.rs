//! Questions an agent asks and the answers it gets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ability::Mode;
use crate::id::{ItemId, RequestId};
use crate::item::FileChange;
use crate::text::{BlobRef, Json};

#[cfg(test)]
mod tests;

/// An approval or a question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// The item it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// One line for a person: what is asked.
    pub title: String,
    /// Why it is asked, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is asked.
    pub body: RequestBody,
    /// The answers the agent understands, the most usual first.
    pub options: Vec<Choice>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RequestBody {
    /// May the agent do this?
    Approval(Approval),
    /// Which of these, or what else?
    Question {
        /// One or more questions, each with an answer of its own.
        questions: Vec<Question>,
    },
    /// May the agent leave plan mode and act?
    ExitPlan {
        /// The plan, where the agent shows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<String>,
    },
}

/// An act that waits for leave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// The tool's name.
    pub tool: String,
    /// The command line, for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The path concerned, for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The directory it happens in, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What would happen to files, where the agent says so beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// The tool's input as the agent wrote it; an answer may carry a changed one. Without it the
    /// agent takes a yes or a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// What the tool is given, where the agent takes no changed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Json>,
    /// Rules the agent itself offers to add, in its own form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Json>,
    /// How far a yes reaches, as far as that is known.
    #[serde(default, skip_serializing_if = "Bounds::is_unknown")]
    pub bounds: Box<Bounds>,
    /// Why it is asked, in tieline's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How far a yes reaches. What is not there is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bounds {
    /// What holds the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Whether it reaches the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// The one host it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// It ran in the sandbox before and failed there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_retry: bool,
    /// A directory in which files may be written from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opens: Option<String>,
    /// Permissions besides, in the agent's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Json>,
}

/// What holds a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// A sandbox in which it writes nothing.
    ReadOnly,
    /// A sandbox in which it writes in the workspace.
    WorkspaceWrite,
    /// Nothing: it runs outside of any sandbox.
    Nothing,
}

impl Bounds {
    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl Request {
    /// What tells it apart from every other request: the hash of all of it but its id and the item,
    /// which are new each time the same is asked. An answer that is kept is for this hash alone.
    pub fn fingerprint(&self) -> String {
        let all = (&self.title, &self.reason, &self.body, &self.options);
        let json = serde_json::to_vec(&all).expect("texts, numbers and JSON are JSON");
        BlobRef::of(&json).sha256
    }
}

/// One question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Under which name its answer is given.
    pub id: String,
    /// A word or two above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The question.
    pub text: String,
    /// Answers to choose from.
    pub options: Vec<QuestionOption>,
    /// More than one may be chosen.
    #[serde(default)]
    pub multiple: bool,
    /// Another text is an answer too.
    #[serde(default)]
    pub free_text: bool,
    /// The answer is not to be shown.
    #[serde(default)]
    pub secret: bool,
}

/// One answer to choose from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// The answer.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The answer for programs, where whoever asks has a word of its own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// One way to answer a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Its id within the request.
    pub id: String,
    /// What to show.
    pub label: String,
    /// What it means.
    pub kind: ChoiceKind,
}

/// What a choice means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again in this session.
    AllowSession,
    /// Yes, and write a rule down for later sessions.
    AllowAlways,
    /// No; the agent goes on without it.
    Deny,
    /// No, and the turn ends.
    DenyAndStop,
}

/// For how long a yes holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This time.
    #[default]
    Once,
    /// This session.
    Session,
    /// Until somebody takes it back.
    Always,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Allow {
        /// For how long.
        #[serde(default)]
        scope: Scope,
        /// The tool's input with the person's changes, in place of the agent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// The mode to go on in, when leaving plan mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
    },
    /// No.
    Deny {
        /// What to tell the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// End the turn as well.
        #[serde(default)]
        stop: bool,
    },
    /// Answers to questions: question id to chosen labels or free text.
    Answers {
        /// By question id.
        answers: BTreeMap<String, Vec<String>>,
    },
    /// One of the request's own options: several may mean the same and differ all the same.
    Choose {
        /// The option's id.
        option: String,
    },
}

impl ChoiceKind {
    /// The answer that means this.
    pub fn answer(self) -> Answer {
        let allow = |scope| Answer::Allow { scope, input: None, mode: None };
        match self {
            Self::AllowOnce => allow(Scope::Once),
            Self::AllowSession => allow(Scope::Session),
            Self::AllowAlways => allow(Scope::Always),
            Self::Deny => Answer::Deny { message: None, stop: false },
            Self::DenyAndStop => Answer::Deny { message: None, stop: true },
        }
    }
}

impl Answer {
    /// Yes, this time.
    pub fn allow() -> Self {
        Self::Allow { scope: Scope::Once, input: None, mode: None }
    }

    /// No, with a word for the agent.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: Some(message.into()), stop: false }
    }

    /// A word or two for a person.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Allow { scope: Scope::Once, .. } => "allowed",
            Self::Allow { scope: Scope::Session, .. } => "allowed for the session",
            Self::Allow { scope: Scope::Always, .. } => "always allowed",
            Self::Deny { stop: false, .. } => "denied",
            Self::Deny { stop: true, .. } => "denied, turn stopped",
            Self::Answers { .. } | Self::Choose { .. } => "answered",
        }
    }
}

crate::text::tagged_json!(RequestBody, "type", {
    "approval" => Approval(Approval),
    "question" => Question { questions: Vec<Question> },
    "exit_plan" => ExitPlan { plan: Option<String> },
});
crate::text::tagged_json!(Answer, "answer", {
    "allow" => Allow { scope: Scope, input: Option<Json>, mode: Option<Mode> },
    "deny" => Deny { message: Option<String>, stop: bool },
    "answers" => Answers { answers: BTreeMap<String, Vec<String>> },
    "choose" => Choose { option: String },
});

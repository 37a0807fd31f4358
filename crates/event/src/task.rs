//! Words about a task that an agent was given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RequestId;

/// A word about a task: what its agent says in markers, and what we see, ask, measure and decide
/// beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "marker", rename_all = "snake_case")]
pub enum TaskMarker {
    /// Something was done or is being done.
    Progress {
        /// What.
        text: String,
        /// Who says so.
        by: Teller,
    },
    /// Somebody must decide something.
    Question {
        /// Its name within the task: `q1`, `q2`, …
        id: String,
        /// What is asked.
        text: String,
        /// Answers to choose from.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<TaskOption>,
        /// Why it is asked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<String>,
        /// The request of the agent that waits for it, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
    },
    /// A question has its answer.
    Answered {
        /// Which.
        question: String,
        /// The answer, in words.
        answer: String,
    },
    /// The agent cannot go on.
    Blocked {
        /// Why.
        reason: String,
        /// What it needs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<String>,
    },
    /// What changed on disk since the task began.
    FilesModified {
        /// Each file.
        files: Vec<TaskFile>,
        /// What the agent said of files that is not so.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mismatches: Vec<String>,
        /// There were too many files to look at all of them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    /// A command was run to see whether the work is done.
    Verified {
        /// Which.
        command: String,
        /// It ended with 0.
        passed: bool,
        /// Its exit code, unless a signal or the time limit ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The end of what it printed.
        output: String,
    },
    /// The task is done.
    Completed {
        /// How often the agent was set to work.
        iterations: u64,
    },
    /// The task stopped before it was done.
    Stopped {
        /// How.
        how: TaskStop,
        /// Why, in a sentence.
        reason: String,
    },
    /// A marker of another name.
    Other {
        /// Its name, in capitals.
        name: String,
        /// Its lines.
        content: Vec<String>,
    },
}

/// Who tells of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Teller {
    /// The agent, in a marker.
    Agent,
    /// We saw it.
    Tieline,
}

/// An answer to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskOption {
    /// Its number in the list.
    pub number: u32,
    /// The answer.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskFile {
    /// Where it is, from the task's directory.
    pub path: String,
    /// What happened to it.
    pub change: FileFate,
    /// Where it was before, when it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileFate {
    /// It is new.
    Created,
    /// Its content is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
    /// A program named it and did not say what happened to it.
    Unknown,
}

/// How a task stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStop {
    /// A turn failed, or the work did not pass its verification.
    Failed,
    /// Turns, time or tokens are used up.
    Budget,
    /// Somebody cancelled it.
    Cancelled,
}

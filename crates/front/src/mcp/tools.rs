//! The tools: what a model reads of them, and what it may say.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tieline_event::Mode;

use super::{Order, Refusal};
use crate::task::state::{Letter, TaskId};

/// What a client is told of the server as a whole.
pub(super) const INSTRUCTIONS: &str = "\
Delegates work to another coding agent on this machine (Claude Code, Codex, Gemini and others), each in \
a process of its own. Use `delegate` for work that stands by itself: a second implementation or \
opinion, a long job beside yours, a review by another model, several jobs at once. Do not delegate what \
you can do in a minute, or what needs the whole of your conversation: the other agent sees the files \
and your description, not what was said here.

`delegate` follows the task and comes back when somebody is needed. Read `status` in what it gives \
back: complete, question (answer with the tool `answer`), blocked, failed, budget, cancelled, cut_off, \
or running when the time was over. `how_to_go_on` says what to do next. `files` is measured on disk by \
comparing before and after, not claimed by the agent; `summary` is the agent's own last message and may \
be wrong.";

const DELEGATE: &str = "\
Give a task to another coding agent and follow it until it is complete or needs somebody.

Write the task for somebody who has not seen this conversation: what is wanted, where, what must not \
change, how to tell that it is done. Give commands in `verify` that prove it: the task counts as \
complete only when all of them pass, and the agent is sent back with their output until they do.

What comes back has a `status`. \"complete\": done; `files` lists what changed on disk, measured, and \
`summary` is the agent's last message. \"question\": the agent asks something; decide (or ask your user) \
and call `answer`. \"blocked\", \"failed\", \"budget\": see `blocked` and `reason`. \"running\": the time \
was over; the task goes on in the background, follow it with `result`. Cancelling the call stops the \
waiting, not the task; `cancel` stops the task.

The id of a task that exists gives it more to do: its agent remembers what it did before.";

const STATUS: &str = "\
See how one task stands, or all of them, without waiting: status, last step, open questions, time and \
tokens used. For the outcome with files and the agent's last message use `result`.";

const ANSWER: &str = "\
Answer the open questions of a task (status \"question\") and follow it on, as `delegate` does. Approvals \
that the agent asks for come as questions too.";

const CANCEL: &str = "\
Stop a task that runs. What it changed on disk stays, and it can go on later: call `delegate` with its \
id. Gives back the result so far.";

const RESULT: &str = "\
Get the result of a task as `delegate` gives it: status, the agent's last message, questions, files \
measured on disk. Does not wait unless `wait` is true; then it follows the task on.";

/// Every tool.
pub(super) fn all() -> Vec<Tool> {
    let id = json!({"type": "string", "description": "The id of the task."});
    let timeout = json!({
        "type": "integer", "minimum": 1,
        "description": "Come back after this many seconds with the status \"running\", if it is not \
                        over by then. The task goes on. Leave it out unless your own calls have a limit.",
    });
    let wait = |default: bool, description: &str| json!({"type": "boolean", "default": default, "description": description});
    let texts = |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    let text = |description: &str| json!({"type": "string", "description": description});
    let delegate = json!({
        "task": text("What is to be done, for an agent that knows nothing of this conversation."),
        "id": text(
            "A short name for it: letters, digits, dots, dashes, underscores. Left out, one is made \
             up. That of a task that exists gives it more to do."
        ),
        "agent": text(
            "Who does it: claude, codex, codex-exec, acp:NAME (gemini, copilot, cursor, goose, \
             opencode, qwen …), demo, or auto, which prefers another agent than you."
        ),
        "cwd": text("The directory it works in; by default where you work."),
        "plan_file": text("A file with a plan that it is to follow, from cwd."),
        "mode": {
            "type": "string", "enum": ["plan", "default", "acceptEdits", "auto", "bypassPermissions", "yolo"],
            "description": "How much it may do without asking. plan: read only. default: ask before \
                            every change. acceptEdits (the usual one): edit files, ask for the rest. \
                            The last two only where the server's owner allowed them.",
        },
        "model": text("The model, by that agent's own name for it."),
        "verify": texts(
            "Shell commands that must pass before it is complete, as `cargo test`. Run in its directory, \
             in the sandbox of its mode: with plan and default they can only read."
        ),
        "budget": texts("The most it may use: \"20turns\", \"30min\", \"200000tokens\"."),
        "worktree": {
            "type": "boolean", "default": false,
            "description": "Work in a git worktree of its own, on the branch tieline/ID, so that it and \
                            you do not touch the same files.",
        },
        "wait": wait(true, "Follow it. False: come back at once and look later with `result`."),
        "timeout_seconds": timeout,
    });
    let answer = json!({
        "id": id,
        "answers": {
            "type": "array", "minItems": 1,
            "description": "One for each open question.",
            "items": {
                "type": "object", "required": ["answer"], "additionalProperties": false,
                "properties": {
                    "question": text("The id of the question, as q1; left out, the oldest one."),
                    "answer": text("The number or the label of an option, or any text."),
                },
            },
        },
        "wait": wait(true, "Follow the task on. False: come back at once."),
        "timeout_seconds": timeout,
    });
    let result = json!({
        "id": id,
        "wait": wait(false, "Follow it until it is over or needs somebody."),
        "timeout_seconds": timeout,
    });
    let acts = || ToolAnnotations::new().read_only(false).destructive(true).open_world(true);
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    let cancels = ToolAnnotations::new().read_only(false).destructive(false).idempotent(true);
    vec![
        tool("delegate", DELEGATE, delegate, &["task"], acts()),
        tool("status", STATUS, json!({"id": text("One task; left out, all.")}), &[], reads()),
        tool("answer", ANSWER, answer, &["id", "answers"], acts()),
        tool("cancel", CANCEL, json!({"id": id}), &["id"], cancels.open_world(false)),
        tool("result", RESULT, result, &["id"], reads()),
    ]
}

fn tool(
    name: &'static str,
    description: &'static str,
    properties: Value,
    required: &[&str],
    annotations: ToolAnnotations,
) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), json!(required));
    schema.insert("additionalProperties".to_owned(), false.into());
    let mut tool = Tool::new(name, description, Arc::new(schema));
    tool.annotations = Some(annotations);
    tool
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delegate {
    task: String,
    id: Option<String>,
    agent: Option<String>,
    cwd: Option<PathBuf>,
    plan_file: Option<PathBuf>,
    mode: Option<String>,
    model: Option<String>,
    verify: Option<Vec<String>>,
    budget: Option<Vec<String>>,
    worktree: Option<bool>,
    wait: Option<bool>,
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {
    pub(super) id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) id: String,
    answers: Vec<One>,
    wait: Option<bool>,
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    question: Option<String>,
    answer: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outcome {
    pub(super) id: String,
    wait: Option<bool>,
    timeout_seconds: Option<u64>,
}

/// Whether a call follows its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It comes back at once.
    None,
    /// It does, for as long as is usual.
    Usual,
    /// It does, for so many seconds.
    Seconds(u64),
}

impl Patience {
    fn of(wait: Option<bool>, usually: bool, seconds: Option<u64>) -> Self {
        match (wait.unwrap_or(usually), seconds) {
            (false, _) | (true, Some(0)) => Self::None,
            (true, Some(seconds)) => Self::Seconds(seconds),
            (true, None) => Self::Usual,
        }
    }
}

impl Delegate {
    pub(super) fn patience(&self) -> Patience {
        Patience::of(self.wait, true, self.timeout_seconds)
    }

    pub(super) fn order(self, client: Option<String>) -> Result<Order, Refusal> {
        if self.task.trim().is_empty() {
            return Err(Refusal::new("say what is to be done in `task`"));
        }
        let mode = self.mode.as_deref().map(|mode| mode.parse::<Mode>().map_err(|_| unknown(mode)));
        Ok(Order {
            task: self.task,
            id: self.id.as_deref().map(task_id).transpose()?,
            agent: self.agent,
            cwd: self.cwd,
            plan: self.plan_file,
            mode: mode.transpose()?,
            model: self.model,
            verify: self.verify.unwrap_or_default(),
            budget: self.budget.unwrap_or_default(),
            worktree: self.worktree.unwrap_or_default(),
            client,
        })
    }
}

fn unknown(mode: &str) -> Refusal {
    let modes: Vec<&str> = Mode::ALL.iter().map(|mode| mode.name()).collect();
    Refusal::new(format!("{mode:?} is no mode; the modes are {}", modes.join(", ")))
}

impl Answer {
    pub(super) fn patience(&self) -> Patience {
        Patience::of(self.wait, true, self.timeout_seconds)
    }

    pub(super) fn letters(&self) -> Result<Vec<Letter>, Refusal> {
        if self.answers.is_empty() {
            return Err(Refusal::new("give at least one answer in `answers`"));
        }
        let letters = self.answers.iter().map(|one| match &one.question {
            None => Letter::answer(&one.answer),
            Some(question) => Letter::Answer {
                question: Some(question.trim().to_owned()),
                text: one.answer.trim().to_owned(),
                hash: None,
            },
        });
        Ok(letters.collect())
    }
}

impl Outcome {
    pub(super) fn patience(&self) -> Patience {
        Patience::of(self.wait, false, self.timeout_seconds)
    }
}

/// Reads what a tool was called with.
pub(super) fn read<T: DeserializeOwned>(
    tool: &str,
    arguments: Option<JsonObject>,
) -> Result<T, Refusal> {
    let arguments = Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(arguments).map_err(|err| {
        Refusal::new(format!("`{tool}` was called with wrong arguments: {err}; see its schema"))
    })
}

pub(super) fn task_id(text: &str) -> Result<TaskId, Refusal> {
    text.parse().map_err(|why| Refusal::new(format!("{text:?} is no id: {why}")))
}

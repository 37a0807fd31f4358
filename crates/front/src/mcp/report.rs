//! What a client is told of a task. Sans-IO.

use serde::Serialize;
use tieline_event::{Event, ItemBody, Kind, Seq, TaskFile, TaskMarker, TaskOption};

use super::View;
use crate::review::short;
use crate::sanitize::sanitize;
use crate::summary::{cut, task_marker};
use crate::task::state::{OpenQuestion, Status, TEXT};
use crate::{Fetch, whole};

#[cfg(test)]
mod tests;

/// How much of the agent's last message is told, in characters.
const SUMMARY: usize = 20_000;

/// How much of its description is told in a list.
const GIST: usize = 200;

/// What its events say of a task.
#[derive(Debug, Default)]
pub(super) struct Digest {
    /// The last event that was read.
    pub(super) last: Seq,
    summary: String,
    files: Vec<TaskFile>,
    mismatches: Vec<String>,
    checks: Vec<Check>,
    reason: Option<String>,
    /// Words about the task since the last look, for whoever reads along.
    pub(super) progress: Vec<String>,
}

/// A command that was run to see whether the work is done.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    command: String,
    passed: bool,
}

impl Digest {
    pub(super) fn see(&mut self, event: &Event, fetch: &mut Fetch<'_>) {
        match &event.kind {
            // What was said and decided before is no result of what is done now.
            Kind::TurnStarted(_) => {
                self.summary.clear();
                self.checks.clear();
                self.reason = None;
            }
            Kind::ItemCompleted(item) if event.parent.is_none() => {
                if let ItemBody::AgentMessage { text } = &item.body {
                    self.summary = whole(text, fetch).trim().to_owned();
                }
            }
            Kind::TaskMarker(marker) => self.hear(marker),
            _ => {}
        }
    }

    fn hear(&mut self, marker: &TaskMarker) {
        self.progress.push(task_marker(marker));
        match marker {
            TaskMarker::FilesModified { files, mismatches, .. } => {
                self.files.clone_from(files);
                self.mismatches.clone_from(mismatches);
            }
            TaskMarker::Verified { command, passed, .. } => {
                self.checks.push(Check { command: command.clone(), passed: *passed });
            }
            TaskMarker::Stopped { reason, .. } => self.reason = Some(reason.clone()),
            TaskMarker::Blocked { reason, context } => {
                let lines = std::iter::once(reason).chain(context);
                self.reason = Some(lines.cloned().collect::<Vec<_>>().join("\n"));
            }
            _ => {}
        }
    }
}

/// How a task stands, in the words of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    Running,
    Question,
    Blocked,
    Complete,
    Failed,
    Budget,
    Cancelled,
    /// Its process died.
    CutOff,
}

impl Standing {
    /// Questions in `answered` have their answer on the way.
    pub(super) fn of(view: &View, answered: &[String]) -> Self {
        let is_open = |question: &&OpenQuestion| !answered.contains(&question.id);
        let mut open = view.state.questions.iter().filter(is_open);
        if view.is_alive {
            let is_asked = match view.state.status {
                Status::Question => open.next().is_some(),
                // Of these the agent waits for some, and goes on beside the others.
                _ => open.any(|question| question.waits.is_some()),
            };
            return if is_asked { Self::Question } else { Self::Running };
        }
        match view.state.status {
            Status::Running => Self::CutOff,
            Status::Question => Self::Question,
            Status::Blocked => Self::Blocked,
            Status::Complete => Self::Complete,
            Status::Failed => Self::Failed,
            Status::Budget => Self::Budget,
            Status::Cancelled => Self::Cancelled,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Question => "question",
            Self::Blocked => "blocked",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
            Self::CutOff => "cut_off",
        }
    }

    /// What whoever asked can do now.
    fn how_to_go_on(self, id: &str) -> String {
        match self {
            Self::Running => format!(
                "It goes on in the background. Follow it with the tool `result` and {{\"id\": \
                 {id:?}, \"wait\": true}}, or do something else and look later; `cancel` stops it."
            ),
            Self::Question => format!(
                "It waits for you. Call the tool `answer` with {{\"id\": {id:?}, \"answers\": \
                 [{{\"question\": \"…\", \"answer\": \"…\"}}]}}; an answer is the number or the \
                 label of an option, or any text. Ask your user if you cannot decide."
            ),
            Self::Blocked => format!(
                "Clear up what blocks it, then call `delegate` with the id {id:?} and a task that \
                 says what is different now."
            ),
            Self::Complete => format!(
                "It is done: review the files. For more by the same agent, which remembers all of \
                 this, call `delegate` with the id {id:?}."
            ),
            Self::Failed => format!(
                "Read the reason. To have it tried again, call `delegate` with the id {id:?} and a \
                 task that says what to do differently."
            ),
            Self::Budget => format!(
                "Its budget is used up. To let it go on, call `delegate` with the id {id:?}, a task \
                 and a larger budget."
            ),
            Self::Cancelled | Self::CutOff => format!(
                "It has stopped; what it changed stays. To let it go on, call `delegate` with the \
                 id {id:?} and a task that says so."
            ),
        }
    }
}

/// A question as it is told.
#[derive(Debug, Serialize)]
struct Question<'a> {
    id: &'a str,
    text: &'a str,
    options: Vec<TaskOption>,
    context: &'a [String],
}

/// An option as it may be read: an answer names it by its number.
fn shown(option: &TaskOption) -> TaskOption {
    TaskOption {
        number: option.number,
        label: short(&option.label, TEXT),
        description: option.description.as_ref().map(|text| short(text, TEXT)),
    }
}

fn questions(view: &View) -> Vec<Question<'_>> {
    let questions = view.state.questions.iter().map(|it| Question {
        id: &it.id,
        text: &it.text,
        options: it.options.iter().map(shown).collect(),
        context: &it.context,
    });
    questions.collect()
}

/// Everything there is to know of a task.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    id: &'a str,
    status: Standing,
    agent: &'a str,
    workspace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    summary: String,
    questions: Vec<Question<'a>>,
    blocked: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    files: &'a [TaskFile],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    mismatches: &'a [String],
    #[serde(skip_serializing_if = "<[Check]>::is_empty")]
    checks: &'a [Check],
    iterations: u64,
    step: &'a str,
    how_to_go_on: String,
}

impl<'a> Report<'a> {
    pub(super) fn new(view: &'a View, digest: &'a Digest) -> Self {
        let status = Standing::of(view, &[]);
        let blocked = view.state.blocked.as_deref().filter(|_| status == Standing::Blocked);
        let reason = digest.reason.as_deref();
        Self {
            id: view.id.as_str(),
            status,
            agent: &view.agent,
            workspace: &view.workspace,
            branch: view.state.worktree.as_ref().map(|it| it.branch.as_str()),
            summary: cut(&digest.summary, SUMMARY),
            questions: questions(view),
            // With what it needs, where it said so.
            blocked: blocked.map(|blocked| reason.unwrap_or(blocked)),
            reason: reason.filter(|_| blocked.is_none()),
            files: &digest.files,
            mismatches: &digest.mismatches,
            checks: &digest.checks,
            iterations: view.state.iterations,
            step: &view.state.step,
            how_to_go_on: status.how_to_go_on(view.id.as_str()),
        }
    }

    /// The same, to be read.
    pub(super) fn text(&self) -> String {
        let mut text = format!("Task {}: {}\n", self.id, self.status.word());
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                text.push_str(&format!("{name}: {value}\n"));
            }
        };
        line("Agent", &format!("{} in {}", self.agent, self.workspace));
        line("Branch", self.branch.unwrap_or_default());
        if self.status == Standing::Running {
            line("Last step", self.step);
        }
        line("Blocked", self.blocked.unwrap_or_default());
        line("Reason", self.reason.unwrap_or_default());
        for question in &self.questions {
            line(&format!("Question {}", question.id), question.text);
            for option in &question.options {
                let more = option.description.as_ref().map(|it| format!(" - {it}"));
                let label = format!("{}{}", option.label, more.unwrap_or_default());
                line(&format!("  {}", option.number), &label);
            }
            question.context.iter().for_each(|why| line("  context", why));
        }
        for check in self.checks {
            line("Check", &format!("{} {}", check.command, passed(check.passed)));
        }
        for file in self.files {
            let from = file.from.as_ref().map(|from| format!(" from {from}"));
            let fate = format!("{:?}", file.change).to_lowercase();
            line("File", &format!("{} ({fate}{})", file.path, from.unwrap_or_default()));
        }
        for mismatch in self.mismatches {
            line("Not so", mismatch);
        }
        if !self.summary.is_empty() {
            text.push_str(&format!("\nThe agent's last message:\n{}\n", self.summary));
        }
        text.push_str(&format!("\n{}\n", self.how_to_go_on));
        sanitize(&text)
    }
}

fn passed(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}

/// A task in a list.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    id: &'a str,
    status: Standing,
    agent: &'a str,
    workspace: &'a str,
    task: String,
    step: &'a str,
    questions: Vec<Question<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<&'a str>,
    iterations: u64,
    seconds: u64,
    tokens: u64,
    how_to_go_on: String,
}

impl<'a> Line<'a> {
    pub(super) fn new(view: &'a View) -> Self {
        let status = Standing::of(view, &[]);
        Self {
            id: view.id.as_str(),
            status,
            agent: &view.agent,
            workspace: &view.workspace,
            task: cut(&view.state.description, GIST),
            step: &view.state.step,
            questions: questions(view),
            blocked: view.state.blocked.as_deref().filter(|_| status == Standing::Blocked),
            iterations: view.state.iterations,
            seconds: view.state.millis / 1000,
            tokens: view.state.tokens,
            how_to_go_on: status.how_to_go_on(view.id.as_str()),
        }
    }

    pub(super) fn text(&self) -> String {
        let about = match (self.questions.first(), self.blocked) {
            (Some(question), _) => format!("{}: {}", question.id, question.text),
            (None, Some(blocked)) => blocked.to_owned(),
            (None, None) => self.step.to_owned(),
        };
        let Self { id, agent, task, .. } = self;
        sanitize(&format!("{id}: {} ({agent}) {task}; {about}\n", self.status.word()))
    }
}

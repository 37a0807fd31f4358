//! What the model gave with a call, as types.
//!
//! Models leave out, add, and quote numbers; what can be understood is.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::truncate::Limit;

#[cfg(test)]
mod tests;

/// Reads the arguments of a call.
///
/// # Errors
/// What the model is told.
pub fn read<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, String> {
    // Some models give nothing at all for an object without fields.
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments)
        .map_err(|err| format!("failed to parse function arguments: {err}"))
}

/// What the model is told of a tool that is not there.
pub fn unsupported(name: &str) -> String {
    format!("unsupported call: {name}")
}

/// What the model is told when it keeps a checklist while planning.
pub const NO_CHECKLIST: &str =
    "update_plan is a TODO/checklist tool and is not allowed in Plan mode";

/// What the model is told once its checklist is shown.
pub const PLAN_UPDATED: &str = "Plan updated";

/// What the model is told when it asks where asking is not offered.
pub const NO_QUESTIONS: &str = "request_user_input is unavailable in Default mode";

/// What the model is told of questions nobody answered.
pub const QUESTIONS_CANCELLED: &str =
    "request_user_input was cancelled before receiving a response";

/// Whether a command is to leave the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPermissions {
    /// No.
    #[default]
    UseDefault,
    /// Yes.
    RequireEscalated,
    /// It is to stay, with more rights. Nothing here gives those, so it is as good as leaving.
    WithAdditionalPermissions,
}

/// Why and how a command is to leave the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Wish {
    /// Whether it is to.
    pub sandbox_permissions: Option<SandboxPermissions>,
    /// Why.
    pub justification: Option<String>,
    /// The first words of commands that could be allowed from now on.
    pub prefix_rule: Option<Vec<String>>,
}

impl Wish {
    /// Whether it is to leave.
    pub fn escalates(&self) -> bool {
        self.sandbox_permissions.is_some_and(|it| it != SandboxPermissions::UseDefault)
    }
}

/// `exec_command`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExecCommand {
    /// The line for the shell.
    pub cmd: String,
    /// Where it runs.
    pub workdir: Option<String>,
    /// Which shell.
    pub shell: Option<String>,
    /// Whether it is a login shell.
    pub login: Option<bool>,
    /// Whether it has a terminal.
    pub tty: Option<bool>,
    /// How long to wait for output.
    #[serde(default, deserialize_with = "count")]
    pub yield_time_ms: Option<u64>,
    /// How much output to give.
    #[serde(default, deserialize_with = "count")]
    pub max_output_tokens: Option<u64>,
    /// Whether it is to leave the sandbox.
    #[serde(flatten)]
    pub wish: Wish,
}

impl ExecCommand {
    /// How long to wait for output.
    pub fn yield_time(&self) -> Duration {
        yield_time(self.yield_time_ms, 10_000)
    }

    /// How much output to give; not more than the model's own limit.
    pub fn limit(&self, most: Limit) -> Limit {
        smaller(self.max_output_tokens, most)
    }
}

/// `write_stdin`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WriteStdin {
    /// Which command.
    #[serde(deserialize_with = "id")]
    pub session_id: u64,
    /// What to send.
    #[serde(default)]
    pub chars: Option<String>,
    /// How long to wait for output.
    #[serde(default, deserialize_with = "count")]
    pub yield_time_ms: Option<u64>,
    /// How much output to give.
    #[serde(default, deserialize_with = "count")]
    pub max_output_tokens: Option<u64>,
}

impl WriteStdin {
    /// What to send; nothing means to look only.
    pub fn input(&self) -> &str {
        self.chars.as_deref().unwrap_or_default()
    }

    /// How long to wait for output.
    pub fn yield_time(&self) -> Duration {
        yield_time(self.yield_time_ms, if self.input().is_empty() { 5_000 } else { 250 })
    }

    /// How much output to give; not more than the model's own limit.
    pub fn limit(&self, most: Limit) -> Limit {
        smaller(self.max_output_tokens, most)
    }
}

/// `shell`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Shell {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs.
    pub workdir: Option<String>,
    /// After how many milliseconds it is ended.
    #[serde(default, alias = "timeout", deserialize_with = "count")]
    pub timeout_ms: Option<u64>,
    /// Whether it is to leave the sandbox.
    #[serde(flatten)]
    pub wish: Wish,
}

impl Shell {
    /// After how long it is ended. An hour is the most.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.unwrap_or(10_000).clamp(1, 3_600_000))
    }
}

/// `apply_patch` as a function.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ApplyPatch {
    /// The patch.
    pub input: String,
}

/// `update_plan`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UpdatePlan {
    /// Why it changed.
    pub explanation: Option<String>,
    /// The steps.
    pub plan: Vec<PlanStep>,
}

/// A step of the work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PlanStep {
    /// What is done.
    pub step: String,
    /// How far it is.
    pub status: StepStatus,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

impl StepStatus {
    /// The word for it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// `request_user_input`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RequestUserInput {
    /// The questions.
    pub questions: Vec<AskedQuestion>,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskedQuestion {
    /// Under which its answer is given.
    pub id: String,
    /// A word or two.
    #[serde(default)]
    pub header: String,
    /// The question.
    pub question: String,
    /// Answers to choose from.
    #[serde(default)]
    pub options: Option<Vec<AskedOption>>,
}

/// An answer to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskedOption {
    /// The answer.
    pub label: String,
    /// What it means.
    #[serde(default)]
    pub description: String,
}

impl RequestUserInput {
    /// Whether it can be put to somebody.
    ///
    /// # Errors
    /// What the model is told.
    pub fn check(&self) -> Result<(), String> {
        let without_options = |it: &AskedQuestion| it.options.as_ref().is_none_or(Vec::is_empty);
        let mut ids: Vec<&str> = self.questions.iter().map(|it| it.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        if !(1..=3).contains(&self.questions.len()) {
            Err("request_user_input takes one to three questions".to_owned())
        } else if self.questions.iter().any(without_options) {
            Err("request_user_input requires non-empty options for every question".to_owned())
        } else if ids.len() < self.questions.len() || ids.contains(&"") {
            Err("request_user_input requires an id of its own for every question".to_owned())
        } else {
            Ok(())
        }
    }
}

/// `view_image`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ViewImage {
    /// The file.
    pub path: String,
}

/// `read_file`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadFile {
    /// The file.
    #[serde(alias = "path")]
    pub file_path: String,
    /// The first line, counted from 1.
    #[serde(default, deserialize_with = "count")]
    pub offset: Option<u64>,
    /// How many lines.
    #[serde(default, deserialize_with = "count")]
    pub limit: Option<u64>,
}

/// `list_dir`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListDir {
    /// The directory.
    #[serde(alias = "path")]
    pub dir_path: String,
    /// The first entry, counted from 1.
    #[serde(default, deserialize_with = "count")]
    pub offset: Option<u64>,
    /// How many entries.
    #[serde(default, deserialize_with = "count")]
    pub limit: Option<u64>,
    /// How deep.
    #[serde(default, deserialize_with = "count")]
    pub depth: Option<u64>,
}

/// `grep_files`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GrepFiles {
    /// The regular expression.
    pub pattern: String,
    /// Which files, as a glob.
    pub include: Option<String>,
    /// Where to look.
    pub path: Option<String>,
    /// How many files.
    #[serde(default, deserialize_with = "count")]
    pub limit: Option<u64>,
}

fn yield_time(wanted: Option<u64>, usual: u64) -> Duration {
    Duration::from_millis(wanted.unwrap_or(usual).clamp(250, 30_000))
}

fn smaller(wanted: Option<u64>, most: Limit) -> Limit {
    match wanted.and_then(|wanted| usize::try_from(wanted).ok()) {
        Some(wanted) if Limit::Tokens(wanted).bytes() < most.bytes() => Limit::Tokens(wanted),
        _ => most,
    }
}

/// A number that may have a fraction of zero or stand in quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose {
    Whole(u64),
    Float(f64),
    Text(String),
}

impl Loose {
    fn value(self) -> Option<u64> {
        match self {
            Self::Whole(n) => Some(n),
            Self::Float(n) if n.fract() == 0.0 && (0.0..=9e15).contains(&n) => Some(n as u64),
            Self::Float(_) => None,
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let loose = Option::<Loose>::deserialize(deserializer)
        .map_err(|_| D::Error::custom("expected a whole number, 0 or more"))?;
    let wrong = || D::Error::custom("expected a whole number, 0 or more");
    loose.map(|loose| loose.value().ok_or_else(wrong)).transpose()
}

fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    count(deserializer)?.ok_or_else(|| D::Error::custom("expected a whole number, 0 or more"))
}

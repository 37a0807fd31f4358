//! Tools: what they are called with, what they do, what they give back.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Value, json};

use super::workspace::{Change, Edit};

/// What the real agent tells its model when a tool was not allowed and the turn ends with it.
pub(super) const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool \
    use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP \
    what you are doing and wait for the user to tell you how to proceed.";

/// What it adds when the tool was already at work.
pub(super) const STOPPED: &str = " Correction to the text above: this call was stopped while \
    running, not refused before it ran. It may have run in part or in full, and its changes may \
    have been written. No permission prompt was involved. Work it started elsewhere (a remote \
    command, a background process) may still be running, so check before starting the same work \
    again. The instruction to stop and wait still stands.";

/// One use of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    pub(super) id: String,
    pub(super) name: Cow<'static, str>,
    pub(super) input: Value,
    /// What a tool that is not ours gives back.
    pub(super) gives: Option<String>,
    pub(super) granted: Grant,
}

/// Who allowed a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    Settings,
    User,
}

/// What has to be done outside of the player.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Run { command: String },
    Write { path: String, content: String },
    Edit(Edit),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Ran(Ran),
    Changed(Result<Change, String>),
    /// The command could not be started.
    NotStarted(String),
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ran {
    /// Both streams as they came.
    pub(super) output: String,
    pub(super) code: i32,
    /// The limit that ended it.
    pub(super) timed_out: Option<Duration>,
}

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    /// For the model.
    pub(super) content: String,
    pub(super) is_error: bool,
    /// For the host: `tool_use_result`.
    pub(super) sidecar: Value,
    /// Why it did not run: `non_execution_kind`.
    pub(super) not_run: Option<&'static str>,
}

impl Tool {
    /// A text of the input.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.input.get(name).and_then(Value::as_str)
    }

    /// What has to be done outside; none for a tool that only talks. An error says which field is
    /// missing, which can happen when the user edited the input.
    pub(super) fn work(&self) -> Result<Option<Work>, String> {
        let need = |name: &str| {
            self.field(name).map(str::to_owned).ok_or_else(|| {
                format!("InputValidationError: {} needs the text `{name}`", self.name)
            })
        };
        Ok(Some(match &*self.name {
            "Bash" => Work::Run { command: need("command")? },
            "Write" => Work::Write { path: need("file_path")?, content: need("content")? },
            "Edit" => Work::Edit(Edit {
                path: need("file_path")?,
                old: need("old_string")?,
                new: need("new_string")?,
                replace_all: self.input.get("replace_all") == Some(&Value::Bool(true)),
            }),
            _ => return Ok(None),
        }))
    }

    /// What the tool gives back for what came of its work.
    pub(super) fn given(&self, outcome: Outcome) -> Given {
        match outcome {
            Outcome::Ran(ran) => ran.given(),
            Outcome::NotStarted(reason) | Outcome::Changed(Err(reason)) => Given::error(&reason),
            Outcome::Changed(Ok(change)) => self.changed(&change),
        }
    }

    fn changed(&self, change: &Change) -> Given {
        let path = self.field("file_path").unwrap_or_default();
        let created = change.before.is_none();
        let content = if created {
            format!("File created successfully at: {path}")
        } else {
            format!("The file {path} has been updated successfully.")
        };
        let sidecar = match &*self.name {
            "Write" => json!({
                "type": if created { "create" } else { "update" },
                "filePath": path,
                "content": change.after,
                "structuredPatch": change.hunks(),
                "originalFile": change.before,
                "userModified": false,
            }),
            _ => json!({
                "filePath": path,
                "oldString": self.field("old_string"),
                "newString": self.field("new_string"),
                "originalFile": change.before,
                "structuredPatch": change.hunks(),
                "userModified": false,
                "replaceAll": self.input.get("replace_all") == Some(&Value::Bool(true)),
            }),
        };
        Given::new(content, sidecar)
    }

    /// The frame's `tool_result_meta`.
    pub(super) fn meta(&self, given: &Given) -> Value {
        let decision = match (given.not_run, self.granted) {
            (Some("user-rejected"), _) => None,
            (Some(_), _) => Some(json!({"decision": "reject", "source": "user_reject"})),
            (None, Grant::User) => Some(json!({"decision": "accept", "source": "user_temporary"})),
            (None, Grant::Settings) => {
                Some(json!({"decision": "accept", "source": "config", "reason_type": "mode"}))
            }
        };
        let mut meta = json!({"id": self.id});
        if let Some(fields) = meta.as_object_mut() {
            fields.extend(given.not_run.map(|kind| ("non_execution_kind".to_owned(), kind.into())));
            fields.extend(decision.map(|it| ("permission_decision".to_owned(), it)));
        }
        json!([meta])
    }
}

impl Ran {
    fn given(&self) -> Given {
        let output = self.output.trim_end();
        if let Some(limit) = self.timed_out {
            let text = format!("Command timed out after {}s\n{output}", limit.as_secs());
            return Given::plain_error(text.trim_end());
        }
        if self.code != 0 {
            return Given::plain_error(format!("Exit code {}\n{output}", self.code).trim_end());
        }
        let content = if output.is_empty() { "(Bash completed with no output)" } else { output };
        let sidecar = json!({
            "stdout": output,
            "stderr": "",
            "interrupted": false,
            "isImage": false,
            "noOutputExpected": false,
        });
        Given::new(content, sidecar)
    }
}

impl Given {
    pub(super) fn new(content: impl Into<String>, sidecar: Value) -> Self {
        Self { content: content.into(), is_error: false, sidecar, not_run: None }
    }

    /// A tool that failed at its work.
    fn plain_error(text: &str) -> Self {
        let sidecar = Value::from(format!("Error: {text}"));
        Self { content: text.to_owned(), is_error: true, sidecar, not_run: None }
    }

    /// A tool that was called wrongly.
    pub(super) fn error(text: &str) -> Self {
        let given = Self::plain_error(text);
        Self { content: format!("<tool_use_error>{text}</tool_use_error>"), ..given }
    }

    /// A tool that was not allowed; the turn goes on.
    pub(super) fn denied(message: &str) -> Self {
        Self { not_run: Some("permission-rule"), ..Self::plain_error(message) }
    }

    /// A tool that was not allowed or was stopped; the turn ends.
    pub(super) fn rejected(text: String) -> Self {
        let sidecar = Value::from("User rejected tool use");
        Self { content: text, is_error: true, sidecar, not_run: Some("user-rejected") }
    }
}

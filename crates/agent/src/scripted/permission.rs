//! What needs a yes.

use std::collections::HashSet;

use serde_json::{Value, json};
use tieline_event::Mode;
use tieline_wire::claude::serve::{PermissionRule, PermissionUpdate};

use super::tool::Tool;

#[cfg(test)]
mod tests;

/// Programs that only look. A command made of nothing else is not asked about.
const HARMLESS: &[&str] =
    &["cat", "date", "echo", "false", "head", "ls", "pwd", "sleep", "tail", "true", "uname", "wc"];

/// What is allowed now.
#[derive(Debug)]
pub(super) struct Permissions {
    mode: Mode,
    /// The process was started in a mode that never asks; only such a process can be put into it.
    may_bypass: bool,
    rules: Vec<PermissionRule>,
    /// Files the user let us write; we may edit what we wrote.
    files: HashSet<String>,
}

/// Whether a tool may be used.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Go,
    /// The user decides, and may accept one of these updates with it.
    Ask {
        suggestions: Vec<Value>,
    },
    /// No, whatever the user says.
    Refuse(&'static str),
}

impl Permissions {
    pub(super) fn new(mode: Mode) -> Self {
        Self { mode, may_bypass: bypasses(mode), rules: Vec::new(), files: HashSet::new() }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Changes the mode by its name on the wire.
    pub(super) fn set_mode(&mut self, name: &str) -> Result<(), String> {
        let mode: Mode = name.parse().map_err(|err: tieline_event::UnknownMode| err.to_string())?;
        if bypasses(mode) && !self.may_bypass {
            return Err(format!(
                "Cannot set permission mode to {name} because the session was not started with it"
            ));
        }
        self.mode = mode;
        Ok(())
    }

    /// Takes the updates that came with a yes; those that are not understood change nothing.
    pub(super) fn update(&mut self, updates: Vec<PermissionUpdate>) {
        for update in updates {
            match (update.kind.as_str(), update.mode, update.behavior.as_deref()) {
                ("setMode", Some(mode), _) => {
                    if let Err(reason) = self.set_mode(&mode) {
                        tracing::warn!(reason, "mode not changed");
                    }
                }
                ("addRules", _, Some("allow")) => self.rules.extend(update.rules),
                _ => {}
            }
        }
    }

    /// The user said yes to this.
    pub(super) fn allowed(&mut self, tool: &Tool) {
        if tool.name == "Write" {
            self.files.extend(tool.field("file_path").map(str::to_owned));
        }
    }

    pub(super) fn verdict(&self, tool: &Tool) -> Verdict {
        let subject = tool.field("command");
        let by_rule = self.rules.iter().any(|rule| {
            let about = rule.rule_content.as_deref();
            rule.tool_name == tool.name && (about.is_none() || about == subject)
        });
        match &*tool.name {
            "AskUserQuestion" => Verdict::Ask { suggestions: Vec::new() },
            "ExitPlanMode" if self.mode == Mode::Plan => Verdict::Ask { suggestions: Vec::new() },
            "ExitPlanMode" => Verdict::Refuse("You are not in plan mode."),
            "Bash" if subject.is_some_and(is_harmless) => Verdict::Go,
            "Bash" | "Write" | "Edit" if self.mode == Mode::Plan => Verdict::Refuse(
                "Plan mode is on: nothing may be changed until the plan is approved.",
            ),
            "Bash" | "Write" | "Edit" if bypasses(self.mode) || by_rule => Verdict::Go,
            // It has nobody to judge what needs asking.
            "Write" | "Edit" if matches!(self.mode, Mode::AcceptEdits | Mode::Auto) => Verdict::Go,
            "Edit" if tool.field("file_path").is_some_and(|path| self.files.contains(path)) => {
                Verdict::Go
            }
            "Write" | "Edit" => Verdict::Ask {
                suggestions: vec![
                    json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}),
                ],
            },
            "Bash" => Verdict::Ask {
                suggestions: vec![json!({
                    "type": "addRules",
                    "rules": [{"toolName": "Bash", "ruleContent": subject}],
                    "behavior": "allow",
                    "destination": "localSettings",
                })],
            },
            _ if tool.gives.is_some() && !bypasses(self.mode) && !by_rule => Verdict::Ask {
                suggestions: vec![json!({
                    "type": "addRules",
                    "rules": [{"toolName": tool.name}],
                    "behavior": "allow",
                    "destination": "localSettings",
                })],
            },
            _ => Verdict::Go,
        }
    }
}

fn bypasses(mode: Mode) -> bool {
    matches!(mode, Mode::BypassPermissions | Mode::Yolo)
}

/// Whether a command is made of harmless programs only. What redirects, substitutes or runs in the
/// background is never taken for harmless.
fn is_harmless(command: &str) -> bool {
    if command.contains(['>', '<', '`', '$', '(', '\n']) {
        return false;
    }
    let single = command.replace("&&", ";").replace("||", ";").replace('|', ";");
    !single.contains('&')
        && single.split(';').all(|part| {
            part.split_whitespace().next().is_some_and(|program| HARMLESS.contains(&program))
        })
}

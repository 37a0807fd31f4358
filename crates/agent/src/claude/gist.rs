//! What a call of one of Claude Code's own tools amounts to.

use serde_json::Value;
use serde_json::value::RawValue;
use tieline_event::{Gist, Place, ToolKind};

use crate::words::first_line;

#[cfg(test)]
mod tests;

/// By the tool's exact name: what only sounds alike may do anything. None for tools that are not
/// known, those of MCP servers among them.
pub(super) fn of(name: &str, input: Option<&RawValue>) -> Option<Gist> {
    let kind = match name {
        "Read" | "NotebookRead" => ToolKind::Read,
        "LS" | "Glob" | "Grep" | "ToolSearch" => ToolKind::Search,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "WebFetch" => ToolKind::Fetch,
        "Task" | "Agent" => ToolKind::Think,
        "TodoRead" | "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" => {
            ToolKind::Plan
        }
        "ExitPlanMode" | "EnterPlanMode" => ToolKind::SwitchMode,
        "BashOutput" | "KillBash" | "KillShell" | "TaskOutput" | "TaskStop" | "Monitor" => {
            ToolKind::Execute
        }
        "AskUserQuestion" | "Skill" | "SlashCommand" | "SendMessage" | "ListAgents"
        | "EnterWorktree" | "ExitWorktree" => ToolKind::Other,
        _ => return None,
    };
    // What these are given says nothing more, and may be long.
    let is_telling = !matches!(kind, ToolKind::Edit | ToolKind::Plan | ToolKind::SwitchMode);
    let input = input.filter(|_| is_telling).and_then(|raw| serde_json::from_str(raw.get()).ok());
    let input = Input(input.unwrap_or_default());
    let title = input.title(name).map(|title| first_line(&title));
    let path = input.text("file_path").or(input.text("notebook_path")).or(input.text("path"));
    let line = input.number("offset").and_then(|line| u32::try_from(line.max(1)).ok());
    let places = path.map(|path| Place { path: path.to_owned(), line }).into_iter().collect();
    Some(Gist { kind, title, places })
}

struct Input(Value);

impl Input {
    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field)?.as_str().filter(|text| !text.is_empty())
    }

    /// Models write a number as a text at times.
    fn number(&self, field: &str) -> Option<u64> {
        let value = self.0.get(field)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }

    fn is_set(&self, field: &str) -> bool {
        self.0.get(field).and_then(Value::as_bool) == Some(true)
    }

    fn title(&self, name: &str) -> Option<String> {
        let of = |verb: &str, subject: &str| format!("{verb} {subject}");
        let task = || ["task_id", "bash_id", "shell_id"].into_iter().find_map(|id| self.text(id));
        match name {
            "Read" => Some(format!("Read {}{}", self.text("file_path")?, self.lines())),
            "NotebookRead" => Some(of("Read", self.text("notebook_path")?)),
            "LS" => Some(of("List", self.text("path")?)),
            "Glob" => {
                let place = self.text("path").map(|path| format!(" in {path}"));
                Some(format!("Find {}{}", self.text("pattern")?, place.unwrap_or_default()))
            }
            "Grep" => self.grep(),
            "WebFetch" => Some(of("Fetch", self.text("url")?)),
            "Task" | "Agent" => self.text("description").map(str::to_owned),
            "ExitPlanMode" => Some("Leave plan mode".to_owned()),
            "EnterPlanMode" => Some("Enter plan mode".to_owned()),
            "BashOutput" | "TaskOutput" => Some(of("Look at the output of", task()?)),
            "KillBash" | "KillShell" | "TaskStop" => Some(of("Stop", task()?)),
            "AskUserQuestion" => {
                let question = self.0.get("questions")?.get(0)?.get("question")?;
                question.as_str().map(str::to_owned)
            }
            "Skill" => Some(of("Skill", self.text("skill").or(self.text("command"))?)),
            "SlashCommand" => self.text("command").map(str::to_owned),
            _ => None,
        }
    }

    /// Which lines of a file are read, unless it is all of them.
    fn lines(&self) -> String {
        let first = self.number("offset").map(|first| first.max(1));
        match (first, self.number("limit")) {
            (first, Some(limit)) => {
                let first = first.unwrap_or(1);
                let last = first.saturating_add(limit.saturating_sub(1));
                format!(" ({first} - {last})")
            }
            (Some(first), None) => format!(" (from line {first})"),
            (None, None) => String::new(),
        }
    }

    /// As one would type it.
    fn grep(&self) -> Option<String> {
        let mut words = vec!["grep".to_owned()];
        let flags = ["-i", "-n"].into_iter().filter(|flag| self.is_set(flag));
        words.extend(flags.map(str::to_owned));
        for flag in ["-A", "-B", "-C"] {
            words.extend(self.number(flag).map(|lines| format!("{flag} {lines}")));
        }
        match self.text("output_mode") {
            Some("files_with_matches") => words.push("-l".to_owned()),
            Some("count") => words.push("-c".to_owned()),
            _ => {}
        }
        words.extend(self.text("glob").map(|glob| format!("--include={glob:?}")));
        words.extend(self.text("type").map(|kind| format!("--type={kind}")));
        words.push(format!("{:?}", self.text("pattern")?));
        words.extend(self.text("path").map(str::to_owned));
        Some(words.join(" "))
    }
}

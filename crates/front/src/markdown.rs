//! A history as a Markdown document. Pure: events in, text out.

use tieline_event::{
    Event, FileChange, Item, ItemBody, Kind, PlanStatus, Request, RequestBody, Text, TurnStatus,
};

use crate::run::ending::ending;
use crate::sanitize::{one_line, sanitize};
use crate::visible;
use crate::{Fetch, summary, whole};

#[cfg(test)]
mod tests;

/// Writes a document, event by event.
#[derive(Debug, Default)]
pub struct Document {
    has_title: bool,
}

impl Document {
    /// An empty document.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the next event adds to the document.
    pub fn event(&mut self, event: &Event, fetch: &mut Fetch<'_>) -> String {
        let mut out = String::new();
        if !self.has_title {
            self.has_title = true;
            out.push_str(&format!("# {}\n", one_line(event.conversation.as_str())));
        }
        match &event.kind {
            Kind::ConversationOpened(opened) => {
                let model =
                    opened.model.as_ref().map(|it| format!(", model {it}")).unwrap_or_default();
                let from = opened.forked_from.as_ref();
                let from = from.map(|it| format!(", branched off from {it}")).unwrap_or_default();
                out.push_str(&format!(
                    "\n*Opened {} with {} in {}, mode {}{}{}.*\n",
                    event.ts,
                    one_line(&opened.agent),
                    code(&opened.workspace),
                    opened.mode,
                    one_line(&model),
                    one_line(&from),
                ));
            }
            Kind::TurnStarted(_) => {
                let turn = event.turn.as_ref().map_or("", |turn| turn.as_str());
                out.push_str(&format!("\n## Turn {} · {}\n", one_line(turn), event.ts));
            }
            Kind::TurnCompleted(end) => {
                let lines = ending(end);
                let (first, rest) = lines.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
                out.push_str(&format!("\n*{}*\n", first.trim_start_matches("— ")));
                if end.status == TurnStatus::Failed {
                    out.push_str(&fenced("", &rest.join("\n")));
                }
            }
            Kind::ItemCompleted(item) => {
                out.push_str(&item_text(item, event.parent.is_some(), fetch));
            }
            Kind::PlanUpdated(plan) => {
                out.push('\n');
                for entry in &plan.entries {
                    let mark = if entry.status == PlanStatus::Completed { 'x' } else { ' ' };
                    out.push_str(&format!("- [{mark}] {}\n", one_line(&entry.text)));
                }
            }
            Kind::RequestOpened(request) => out.push_str(&request_text(request)),
            Kind::RequestResolved(resolved) => {
                let policy =
                    resolved.policy.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
                let answer = format!("{}{policy}", resolved.answer.summary());
                out.push_str(&format!("\n**Answer:** {}\n", one_line(&answer)));
            }
            Kind::RequestExpired(expired) => {
                out.push_str(&format!("\n**No answer:** {}\n", one_line(&expired.reason)));
            }
            Kind::Notice(notice) => out.push_str(&format!("\n> {}\n", one_line(&notice.text))),
            Kind::TaskMarker(marker) => {
                out.push_str(&format!("\n> {}\n", summary::task_marker(marker)))
            }
            Kind::Unparsed(unparsed) => out.push_str(&format!(
                "\n> {} not understood: {}\n",
                summary::unread(unparsed),
                one_line(&unparsed.reason)
            )),
            Kind::ConversationConfigured(_)
            | Kind::ConversationClosed(_)
            | Kind::ItemStarted(_)
            | Kind::ItemUpdated(_)
            | Kind::UsageUpdated(_)
            | Kind::TurnStep(_)
            | Kind::ProcessSpawned(_)
            | Kind::ProcessExited(_) => {}
        }
        out
    }
}

fn item_text(item: &Item, is_sub_agent: bool, fetch: &mut Fetch<'_>) -> String {
    let who = if is_sub_agent { " (sub-agent)" } else { "" };
    let mut read = |text: &Text| sanitize(&whole(text, fetch));
    match &item.body {
        ItemBody::UserMessage { content } => {
            let text = summary::content(content, read);
            format!("\n**User{who}:**\n\n{}\n", quoted(&text))
        }
        ItemBody::AgentMessage { text } => {
            let text = read(text);
            match is_sub_agent {
                true => format!("\n**Agent{who}:**\n\n{}\n", quoted(&text)),
                false => format!("\n{}\n", text.trim()),
            }
        }
        ItemBody::Reasoning { text, .. } => match read(text).trim() {
            "" => String::new(),
            thought => format!(
                "\n<details><summary>Thought{who}</summary>\n\n{}\n\n</details>\n",
                quoted(thought)
            ),
        },
        ItemBody::Command { command, output, exit_code, .. } => {
            let code = exit_code.filter(|code| *code != 0);
            let code = code.map(|code| format!(", exit {code}")).unwrap_or_default();
            let mut out = format!("\n**Command{who}** {}{code}\n", outcome(item));
            out.push_str(&fenced("sh", &visible::text(command)));
            let output = read(output);
            if !output.trim().is_empty() {
                out.push_str(&fenced("", &output));
            }
            out
        }
        ItemBody::FileChange { changes } => {
            let mut out = format!("\n**Files{who}** {}\n\n", outcome(item));
            for change in changes {
                out.push_str(&format!("- {}\n", summary::change(change)));
            }
            for change in changes {
                out.push_str(&change_text(change, &mut read));
            }
            out
        }
        ItemBody::ToolCall { input, output, .. } => {
            let label = code(&summary::label(&item.body));
            let mut out = format!("\n**Tool{who}** {label} {}\n", outcome(item));
            if let Some(input) = input {
                out.push_str(&fenced("json", &visible::text(input.as_str())));
            }
            let output = summary::content(output, read);
            if !output.trim().is_empty() {
                out.push_str(&fenced("", &output));
            }
            out
        }
        ItemBody::WebSearch { query, output } => {
            let output = summary::content(output, read);
            let mut out = format!("\n**Web search{who}:** {}\n", one_line(query));
            if !output.trim().is_empty() {
                out.push_str(&fenced("", &output));
            }
            out
        }
        ItemBody::Plan { text } => format!("\n**Plan{who}:**\n\n{}\n", read(text).trim()),
        ItemBody::Review { text, .. } => format!("\n**Review{who}:**\n\n{}\n", read(text).trim()),
        ItemBody::Image { .. } => format!("\n**Image{who}**\n"),
        ItemBody::Compaction { .. } => format!("\n*{}*\n", summary::label(&item.body)),
    }
}

/// What changed in a file, where more is known than its name.
fn change_text(change: &FileChange, read: &mut dyn FnMut(&Text) -> String) -> String {
    match (&change.diff, &change.old_text, &change.new_text) {
        (Some(diff), ..) => fenced("diff", &read(diff)),
        (None, None, Some(new)) => fenced("", &read(new)),
        (None, Some(old), Some(new)) => {
            let sign = |sign: char, text: String| {
                text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>()
            };
            let (old, new) = (read(old), read(new));
            fenced("diff", &format!("{}{}", sign('-', old), sign('+', new)))
        }
        _ => String::new(),
    }
}

fn request_text(request: &Request) -> String {
    let mut out = format!("\n**Asked:** {}\n", visible::line(&request.title));
    match &request.body {
        RequestBody::Approval(approval) => {
            if let Some(command) = &approval.command {
                out.push_str(&fenced("sh", &visible::text(command)));
            } else if let Some(input) = &approval.input {
                out.push_str(&fenced("json", &visible::text(input.as_str())));
            }
        }
        RequestBody::Question { questions } => {
            for question in questions {
                out.push_str(&format!("\n{}\n\n", visible::text(&question.text)));
                for option in &question.options {
                    out.push_str(&format!("- {}\n", visible::line(&option.label)));
                }
            }
        }
        RequestBody::ExitPlan { plan } => {
            if let Some(plan) = plan {
                out.push_str(&format!("\n{}\n", quoted(&visible::text(plan))));
            }
        }
    }
    out
}

fn outcome(item: &Item) -> String {
    let (sign, word) = summary::outcome(item.status);
    format!("{sign} {word}").trim_end().to_owned()
}

fn quoted(text: &str) -> String {
    let lines: Vec<String> = text
        .trim()
        .lines()
        .map(|line| match line.is_empty() {
            true => ">".to_owned(),
            false => format!("> {line}"),
        })
        .collect();
    lines.join("\n")
}

/// A block whose fence is longer than any run of backticks in it, so that nothing in it ends it.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("\n{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn code(text: &str) -> String {
    let text = one_line(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

//! Items in a few words.

use tieline_event::{
    ChangeKind, Content, FileChange, ItemBody, ItemStatus, Json, Notice, NoticeLevel, TaskMarker,
    TaskStop, Text, ToolClass, Unparsed, Usage,
};

use crate::json::Fields;
use crate::sanitize::one_line;
use crate::visible;

/// How much of what the agent wrote is not understood.
pub(crate) fn unread(unparsed: &Unparsed) -> String {
    match unparsed {
        Unparsed { lines: 1, bytes, .. } => format!("{bytes} bytes"),
        Unparsed { lines, bytes, .. } => format!("{lines} lines ({bytes} bytes)"),
    }
}

/// The same as a notice, for those who have no other place for it.
pub(crate) fn unread_notice(unparsed: &Unparsed) -> Notice {
    let (amount, why) = (unread(unparsed), one_line(&unparsed.reason));
    Notice {
        level: NoticeLevel::Info,
        code: "unparsed".to_owned(),
        text: format!("{amount} from the agent not understood: {why}"),
        rate_limit: None,
    }
}

/// What an item is about, on one line.
pub(crate) fn label(body: &ItemBody) -> String {
    match body {
        ItemBody::Command { command, background, .. } => {
            let suffix = if *background { " &" } else { "" };
            format!("$ {}{suffix}", visible::line(command))
        }
        ItemBody::FileChange { changes } => {
            let files: Vec<String> = changes.iter().map(change).collect();
            match files.is_empty() {
                true => "change files".to_owned(),
                false => files.join(", "),
            }
        }
        ItemBody::ToolCall { class, tool, server, title, input, .. } => {
            let name = match (class, server) {
                (ToolClass::SubAgent, _) => "agent".to_owned(),
                (_, Some(server)) => format!("{server}.{tool}"),
                (_, None) => tool.clone(),
            };
            match (title, input) {
                (Some(title), _) => visible::line(&format!("{name}: {title}")),
                (None, Some(input)) => visible::line(&format!("{name} {}", brief(input))),
                (None, None) => visible::line(&name),
            }
        }
        ItemBody::WebSearch { query, .. } => one_line(&format!("search the web: {query}")),
        ItemBody::Image { .. } => "image".to_owned(),
        ItemBody::Compaction { trigger, tokens_before } => {
            let trigger = trigger.as_deref().map(|t| format!(" ({t})")).unwrap_or_default();
            let before =
                tokens_before.map(|n| format!(", {} tokens before", number(n))).unwrap_or_default();
            one_line(&format!("memory shortened{trigger}{before}"))
        }
        ItemBody::UserMessage { .. }
        | ItemBody::AgentMessage { .. }
        | ItemBody::Reasoning { .. }
        | ItemBody::Plan { .. }
        | ItemBody::Review { .. } => body.name().replace('_', " "),
    }
}

/// How an item ended: a sign, and a word unless the sign says it all.
pub(crate) fn outcome(status: ItemStatus) -> (char, &'static str) {
    match status {
        ItemStatus::InProgress => ('…', ""),
        ItemStatus::Ok => ('✓', ""),
        ItemStatus::Failed => ('✗', "failed"),
        ItemStatus::Denied => ('⊘', "denied by a rule"),
        ItemStatus::Declined => ('⊘', "declined"),
        ItemStatus::Cancelled => ('■', "cancelled"),
        ItemStatus::TimedOut => ('✗', "timed out"),
    }
}

/// One file: what happened, where, and how many lines came and went.
pub(crate) fn change(change: &FileChange) -> String {
    let verb = match change.kind {
        ChangeKind::Add => "add",
        ChangeKind::Update => "edit",
        ChangeKind::Delete => "delete",
    };
    let mut text = format!("{verb} {}", visible::line(&change.path));
    if let Some(target) = &change.moved_to {
        text.push_str(&format!(" → {}", visible::line(target)));
    }
    if let Some((added, removed)) = count_lines(change) {
        text.push_str(&format!(" +{added} -{removed}"));
    }
    text
}

/// Lines that came and went, where both sides or a diff are known in full.
pub(crate) fn count_lines(change: &FileChange) -> Option<(usize, usize)> {
    if let Some(Text::Inline(diff)) = &change.diff {
        let count = |sign: char, header: &str| {
            diff.lines().filter(|l| l.starts_with(sign) && !l.starts_with(header)).count()
        };
        return Some((count('+', "+++ "), count('-', "--- ")));
    }
    let side = |text: &Option<Text>, absent: bool| match text {
        Some(Text::Inline(text)) => Some(text.lines().map(str::to_owned).collect::<Vec<_>>()),
        None if absent => Some(Vec::new()),
        _ => None,
    };
    let old = side(&change.old_text, change.kind == ChangeKind::Add)?;
    let new = side(&change.new_text, change.kind == ChangeKind::Delete)?;
    let kept = common_lines(&old, &new);
    Some((new.len() - kept, old.len() - kept))
}

/// Above this many comparisons the middle of two texts counts as wholly changed.
const MAX_CELLS: usize = 1 << 20;

/// Length of the longest common subsequence.
fn common_lines(old: &[String], new: &[String]) -> usize {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.get(head..).unwrap_or(&[]), new.get(head..).unwrap_or(&[]));
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let old = old.get(..old.len() - tail).unwrap_or(&[]);
    let new = new.get(..new.len() - tail).unwrap_or(&[]);
    if old.len().saturating_mul(new.len()) > MAX_CELLS {
        return head + tail;
    }
    let mut row = vec![0usize; new.len() + 1];
    for line in old {
        let mut diagonal = 0;
        let mut left = 0;
        for (cell, other) in row.iter_mut().skip(1).zip(new) {
            let above = *cell;
            *cell = if line == other { diagonal + 1 } else { above.max(left) };
            diagonal = above;
            left = *cell;
        }
    }
    head + tail + row.last().copied().unwrap_or(0)
}

/// A word about a task, on one line.
pub(crate) fn task_marker(marker: &TaskMarker) -> String {
    let text = match marker {
        TaskMarker::Progress { text, .. } => text.clone(),
        TaskMarker::Question { id, text, .. } => format!("question {id}: {text}"),
        TaskMarker::Answered { question, answer } => {
            format!("answer to {question}: {}", visible::line(answer))
        }
        TaskMarker::Blocked { reason, .. } => format!("blocked: {reason}"),
        TaskMarker::FilesModified { files, .. } => {
            let names: Vec<String> = files.iter().map(|it| visible::line(&it.path)).collect();
            format!("files changed: {}", names.join(", "))
        }
        TaskMarker::Verified { command, passed, .. } => {
            format!("{command} {}", if *passed { "passed" } else { "failed" })
        }
        TaskMarker::Completed { iterations } => {
            format!("task completed in {iterations} iterations")
        }
        TaskMarker::Stopped { how, reason } => {
            let how = match how {
                TaskStop::Failed => "failed",
                TaskStop::Budget => "out of budget",
                TaskStop::Cancelled => "cancelled",
            };
            format!("task {how}: {reason}")
        }
        TaskMarker::Other { name, content } => format!("{name}: {}", content.join(" ")),
    };
    one_line(&text)
}

/// The first text or number in a tool's input: most often what it is about.
fn brief(input: &Json) -> String {
    const MOST: usize = 80;
    let Ok(Fields(fields)) = input.read() else { return String::new() };
    let scalar = fields.iter().find_map(|(_, value)| match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str::<String>(value.get()).ok(),
        b'{' | b'[' => None,
        _ => Some(value.get().to_owned()),
    });
    cut(&scalar.unwrap_or_default(), MOST)
}

/// The first characters of a text, with a sign when there are more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => {
            let mut head = text.get(..end).unwrap_or_default().trim_end().to_owned();
            head.push('…');
            head
        }
    }
}

/// The text among these pieces, and a word for what is not text.
pub(crate) fn content(pieces: &[Content], mut whole: impl FnMut(&Text) -> String) -> String {
    let words: Vec<String> = pieces
        .iter()
        .map(|piece| match piece {
            Content::Text { text } => whole(text),
            Content::Resource { uri, text } => format!("[{uri}]\n{}", whole(text)),
            Content::Image { mime, .. } => format!("[image {mime}]"),
            Content::Link { uri, name } => match name {
                Some(name) => format!("[{name}: {uri}]"),
                None => format!("[{uri}]"),
            },
            Content::Skill { name, .. } => format!("[skill {name}]"),
            Content::Mention { name, path } => format!("[{name}: {path}]"),
        })
        .collect();
    words.join("\n")
}

/// `950 ms`, `4.2 s`, `3 min 20 s`.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

/// `940`, `12.3k`, `1.2M`.
pub(crate) fn number(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{}.{}k", n / 1000, n % 1000 / 100),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}

/// Tokens and money in a few words; nothing when nothing was counted.
pub(crate) fn usage(usage: &Usage) -> Option<String> {
    let read = usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens;
    let cost = usage.cost_usd.filter(|cost| *cost > 0.0);
    if read == 0 && usage.output_tokens == 0 && cost.is_none() {
        return None;
    }
    let mut text = format!("{} tokens in, {} out", number(read), number(usage.output_tokens));
    if let Some(cost) = cost {
        text.push_str(&format!(", ${cost:.4}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn counted(old: &str, new: &str, added: usize, removed: usize) {
        let change = FileChange {
            path: "f".into(),
            kind: ChangeKind::Update,
            moved_to: None,
            old_text: Some(old.into()),
            new_text: Some(new.into()),
            diff: None,
        };
        assert_eq!(count_lines(&change), Some((added, removed)));
    }

    #[test]
    fn lines_that_stay_are_not_counted() {
        counted("a\nb\nc\n", "a\nb\nc\n", 0, 0);
        counted("a\nb\nc\nd\ne", "a\nX\nc\nY\nZ\ne", 3, 2);
        counted("", "a\nb", 2, 0);
        counted("a\nb", "", 0, 2);
    }

    #[test]
    fn durations_and_numbers_are_short() {
        assert_eq!(duration(7), "7 ms");
        assert_eq!(duration(4_260), "4.2 s");
        assert_eq!(duration(200_000), "3 min 20 s");
        assert_eq!(number(9_999), "9999");
        assert_eq!(number(12_345), "12.3k");
    }
}

//! What is sent of the history, and how it is shortened.

use std::collections::HashSet;

use tieline_wire::responses::{Content, Item, ItemView, Output, Part, ToolOutput};
use tieline_wire::text::Str;

use crate::calls;
use crate::truncate::{self, Limit};

#[cfg(test)]
mod tests;

/// How many tokens of the user's own messages a summary leaves.
const KEPT: usize = 20_000;

/// What a model that takes no pictures is told instead.
const NO_PICTURE: &str = "[a picture, which this model cannot see]";

/// The history as it may be sent: every call has an output, every output a call, and no picture goes
/// to a model that takes none.
pub(crate) fn for_request(items: &[Item], sees: bool) -> Vec<Item> {
    let open: HashSet<String> = calls::open_calls(items).into_iter().map(|call| call.id).collect();
    let mut known = HashSet::new();
    let mut sent = Vec::with_capacity(items.len());
    for item in items {
        if let Some(call) = calls::call_of(item) {
            sent.push(item.clone());
            if open.contains(&call.id) {
                sent.push(call.output("aborted"));
            }
            known.insert(call.id);
            continue;
        }
        match item.view() {
            ItemView::FunctionCallOutput(it) | ItemView::CustomToolCallOutput(it)
                if !known.contains(&*it.call_id) => {}
            _ if sees => sent.push(item.clone()),
            view => sent.push(without_pictures(item, view)),
        }
    }
    sent
}

/// As [`for_request`], of a part whose calls were sent before it.
pub(crate) fn for_follow_up(items: &[Item], sees: bool) -> Vec<Item> {
    let keep = |item: &Item| match sees {
        true => item.clone(),
        false => without_pictures(item, item.view()),
    };
    items.iter().map(keep).collect()
}

fn without_pictures(item: &Item, view: ItemView<'_>) -> Item {
    let has_picture = |parts: &[Part<'_>]| parts.iter().any(is_picture);
    match view {
        ItemView::Message(mut it) if has_picture(&it.content) => {
            it.content.iter_mut().for_each(replace_picture);
            Item::of(&ItemView::Message(it))
        }
        ItemView::FunctionCallOutput(ToolOutput { output: Output::Parts(mut parts), call_id, id })
            if has_picture(&parts) =>
        {
            parts.iter_mut().for_each(replace_picture);
            let output = Output::Parts(parts);
            Item::of(&ItemView::FunctionCallOutput(ToolOutput { output, call_id, id }))
        }
        _ => item.clone(),
    }
}

fn is_picture(part: &Part<'_>) -> bool {
    matches!(part, Part::InputImage(_))
}

fn replace_picture(part: &mut Part<'_>) {
    if is_picture(part) {
        *part = Part::InputText(Content { text: Str::Borrowed(NO_PICTURE) });
    }
}

/// A shorter history: what the user said last, as far as there is room for it, and the summary.
pub(crate) fn compacted(items: &[Item], prefix: &str, summary: &str) -> Vec<Item> {
    let mut room = KEPT;
    let mut kept = Vec::new();
    for item in items.iter().rev() {
        let Some(text) = words_of_user(item) else { continue };
        // A summary of a summary says it all again.
        if text.starts_with(prefix) {
            continue;
        }
        let size = truncate::tokens(&text);
        if size <= room {
            room -= size;
            kept.push(Item::message("user", &text));
            continue;
        }
        if let Some(short) = truncate::without_middle(&text, Limit::Tokens(room)).filter(|_| room > 0) {
            kept.push(Item::message("user", &short));
        }
        break;
    }
    kept.reverse();
    kept.push(Item::message("user", &format!("{prefix}\n{summary}")));
    kept
}

/// The text of a message that the user wrote: not what we say in their name.
fn words_of_user(item: &Item) -> Option<String> {
    const OURS: [&str; 6] = [
        "<environment_context>",
        "# AGENTS.md",
        "<turn_aborted>",
        "<user_action>",
        "<user_shell_command>",
        "<skill>",
    ];
    let ItemView::Message(it) = item.view() else { return None };
    let text = it.text();
    let is_ours = OURS.iter().any(|start| text.trim_start().starts_with(start));
    (&*it.role == "user" && !is_ours && !text.is_empty()).then_some(text)
}

/// Drops the oldest item, and what belongs to it.
pub(crate) fn drop_oldest(items: &mut Vec<Item>) {
    if items.is_empty() {
        return;
    }
    let first = items.remove(0);
    if let Some(call) = calls::call_of(&first) {
        items.retain(|item| match item.view() {
            ItemView::FunctionCallOutput(it) | ItemView::CustomToolCallOutput(it) => {
                *it.call_id != *call.id
            }
            _ => true,
        });
    }
}

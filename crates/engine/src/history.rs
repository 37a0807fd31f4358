//! What the model is sent of a conversation: made whole before each request, shortened when it is
//! too long, cut when turns are taken back.
//!
//! Items stay the text they are; only what has to change is written anew.

use std::collections::{HashMap, HashSet};

use tieline_wire::responses::{Content, Item, ItemView, Output, Part};
use tieline_wire::text::Str;

use crate::persona::SUMMARY_PREFIX;
use crate::truncate::{Limit, tokens, without_middle};

#[cfg(test)]
mod tests;

/// So many tokens of the user's own messages outlive a compaction.
const MOST_KEPT: usize = 20_000;

/// What a call gave that never came to an end.
const ABORTED: &str = "aborted";

/// What stands in place of a picture for a model that sees none.
const NO_PICTURE: &str = "(a picture was here, but this model takes none)";

/// Whether the model sees pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// It does.
    Pictures,
    /// It reads only.
    TextOnly,
}

/// The two sorts of calls, each with its sort of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sort {
    Function,
    Custom,
}

/// What an item is to the books of calls and outputs.
enum Role {
    Call(Sort, String),
    Output(Sort, String),
    Neither,
}

fn role(item: &Item) -> Role {
    match item.view() {
        ItemView::FunctionCall(call) => Role::Call(Sort::Function, call.call_id.to_string()),
        ItemView::CustomToolCall(call) => Role::Call(Sort::Custom, call.call_id.to_string()),
        ItemView::LocalShellCall(call) => match call.call_id.or(call.id) {
            Some(id) => Role::Call(Sort::Function, id.to_string()),
            None => Role::Neither,
        },
        ItemView::FunctionCallOutput(output) => {
            Role::Output(Sort::Function, output.call_id.to_string())
        }
        ItemView::CustomToolCallOutput(output) => {
            Role::Output(Sort::Custom, output.call_id.to_string())
        }
        _ => Role::Neither,
    }
}

/// The conversation as a provider takes it: every call has exactly one output after it, every
/// output its call before it, and there is no picture for a model that sees none.
pub(crate) fn normalised(items: &[Item], sight: Sight) -> Vec<Item> {
    let roles: Vec<Role> = items.iter().map(role).collect();
    // The first output after a call is its output.
    let mut open: HashMap<(Sort, &str), usize> = HashMap::new();
    let mut answered = HashSet::new();
    let mut kept = HashSet::new();
    for (at, role) in roles.iter().enumerate() {
        match role {
            Role::Call(sort, id) => {
                open.insert((*sort, id), at);
            }
            Role::Output(sort, id) => {
                if let Some(call) = open.remove(&(*sort, id.as_str())) {
                    answered.insert(call);
                    kept.insert(at);
                }
            }
            Role::Neither => {}
        }
    }
    let mut whole = Vec::with_capacity(items.len());
    for (at, (item, role)) in items.iter().zip(&roles).enumerate() {
        if matches!(role, Role::Output(..)) && !kept.contains(&at) {
            continue;
        }
        whole.push(match sight {
            Sight::Pictures => item.clone(),
            Sight::TextOnly => without_pictures(item),
        });
        if let Role::Call(sort, id) = role
            && !answered.contains(&at)
        {
            let output = Output::Text(Str::Borrowed(ABORTED));
            whole.push(match sort {
                Sort::Function => Item::function_output(id, output),
                Sort::Custom => Item::custom_output(id, output),
            });
        }
    }
    whole
}

/// The item with words in place of its pictures.
fn without_pictures(item: &Item) -> Item {
    let strip = |parts: &mut Vec<Part<'_>>| {
        let mut n_found = 0;
        for part in parts {
            if matches!(part, Part::InputImage(_)) {
                *part = Part::InputText(Content { text: Str::Borrowed(NO_PICTURE) });
                n_found += 1;
            }
        }
        n_found > 0
    };
    let mut view = item.view();
    let has_pictures = match &mut view {
        ItemView::Message(message) => strip(&mut message.content),
        ItemView::FunctionCallOutput(output) | ItemView::CustomToolCallOutput(output) => {
            match &mut output.output {
                Output::Parts(parts) => strip(parts),
                Output::Text(_) => false,
            }
        }
        _ => false,
    };
    if has_pictures { Item::of(&view) } else { item.clone() }
}

/// What the user said in this item, if it is a message of theirs and not one that was made for the
/// model.
pub(crate) fn user_text(item: &Item) -> Option<String> {
    let ItemView::Message(message) = item.view() else { return None };
    if &*message.role != "user" {
        return None;
    }
    let text = message.text();
    (!is_made(&text)).then_some(text)
}

/// Whether a message is what is left of a conversation that was summed up.
pub(crate) fn is_summary(text: &str) -> bool {
    text.trim_start().starts_with(SUMMARY_PREFIX)
}

/// Whether a message of the user's role was made for the model.
fn is_made(text: &str) -> bool {
    const BEGINNINGS: [&str; 7] = [
        "# AGENTS.md instructions for ",
        "<environment_context>",
        "<skill>",
        "<turn_aborted>",
        "<user_action>",
        "<user_shell_command>",
        SUMMARY_PREFIX,
    ];
    let text = text.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// The conversation after it was summed up: what every conversation begins with, the user's last
/// messages, and the summary.
///
/// Of the messages as many are kept as fit, the newest first. The oldest of them may lose its
/// middle; pictures are lost.
pub(crate) fn compacted(items: &[Item], beginning: &[Item], summary: &str) -> Vec<Item> {
    let mut left = MOST_KEPT;
    let mut kept = Vec::new();
    for text in items.iter().rev().filter_map(user_text) {
        if left == 0 {
            break;
        }
        if text.trim().is_empty() {
            continue;
        }
        let n = tokens(&text);
        if n <= left {
            left -= n;
            kept.push(Item::message("user", &text));
        } else {
            let short = without_middle(&text, Limit::Tokens(left)).unwrap_or(text);
            kept.push(Item::message("user", &short));
            left = 0;
        }
    }
    let summary = match summary.trim() {
        "" => "(no summary available)",
        summary => summary,
    };
    let note = Item::message("user", &crate::persona::summary_message(summary));
    beginning.iter().cloned().chain(kept.into_iter().rev()).chain([note]).collect()
}

/// The conversation without its oldest item, and without what belongs to it: an output goes with
/// its call. For a provider that says that even the summing up is too long.
pub(crate) fn without_oldest(items: &[Item]) -> Vec<Item> {
    let Some((oldest, rest)) = items.split_first() else { return Vec::new() };
    let Role::Call(sort, id) = role(oldest) else { return rest.to_vec() };
    let mut found = false;
    let is_its_output =
        |item: &Item| matches!(role(item), Role::Output(other, of) if other == sort && of == id);
    rest.iter()
        .filter(|item| {
            let goes = !found && is_its_output(item);
            found |= goes;
            !goes
        })
        .cloned()
        .collect()
}

//! What a conversation says about how far the script is.

use std::collections::{BTreeMap, HashMap};

use tieline_wire::responses::{Item, ItemView, Output};

use crate::history::{is_summary, user_text};

/// The message that plays the script from its beginning.
const RESTART: &str = "/restart";

/// What was played.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// What the user began each turn with.
    prompts: Vec<String>,
    /// What was said and called in this turn, by its number.
    done: BTreeMap<usize, Done>,
    /// What the user said since the turn began, and where.
    pub(super) said: Vec<(usize, String)>,
    /// The turn was summed up in its midst, and its place with it.
    cut_off: bool,
}

/// Something the script did.
#[derive(Debug)]
struct Done {
    /// Its place in the conversation.
    at: usize,
    /// What came of it, if it is a call.
    output: Option<String>,
}

impl Past {
    pub(super) fn read(items: &[Item], turns: &[usize]) -> Self {
        // Of what lies before the turns that are known, every message counts as one.
        let known = turns.first().copied().unwrap_or(items.len());
        let before = items.get(..known).unwrap_or_default();
        let mut prompts: Vec<String> = before.iter().filter_map(user_text).collect();
        let ends = turns.iter().skip(1).copied().chain([items.len()]);
        for (start, end) in turns.iter().zip(ends) {
            let turn = items.get(*start..end).unwrap_or_default();
            prompts.push(turn.iter().find_map(user_text).unwrap_or_default());
        }
        let said_last = || items.iter().rposition(|item| user_text(item).is_some());
        let start = turns.last().copied().or_else(said_last).unwrap_or_default();
        let mut past = Self { prompts, ..Self::default() };
        past.read_turn(items, start);
        past
    }

    fn read_turn(&mut self, items: &[Item], start: usize) {
        let mut calls = HashMap::new();
        let mut has_prompt = false;
        for (at, item) in items.iter().enumerate().skip(start) {
            let done = Done { at, output: None };
            match item.view() {
                ItemView::Message(it) if &*it.role == "assistant" => {
                    self.done.extend(it.id.and_then(|id| number(&id)).map(|n| (n, done)));
                }
                ItemView::Message(it) if &*it.role == "user" => match user_text(item) {
                    Some(_) if !has_prompt => has_prompt = true,
                    Some(text) => self.said.push((at, text)),
                    None => self.cut_off |= is_summary(&it.text()),
                },
                ItemView::Reasoning(it) => {
                    self.done.extend(it.id.and_then(|id| number(&id)).map(|n| (n, done)));
                }
                ItemView::FunctionCall(it) => self.call(&it.call_id, done, &mut calls),
                ItemView::CustomToolCall(it) => self.call(&it.call_id, done, &mut calls),
                ItemView::FunctionCallOutput(it) | ItemView::CustomToolCallOutput(it) => {
                    let call = calls.get(&*it.call_id).and_then(|n| self.done.get_mut(n));
                    if let Some(call) = call {
                        call.output = Some(text_of(&it.output));
                    }
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, id: &str, done: Done, calls: &mut HashMap<String, usize>) {
        if let Some(n) = number(id) {
            calls.insert(id.to_owned(), n);
            self.done.insert(n, Done { output: Some(String::new()), ..done });
        }
    }

    /// Which section plays.
    pub(super) fn section(&self) -> usize {
        let is_restart = |prompt: &String| prompt.trim() == RESTART;
        let first = self.prompts.iter().rposition(is_restart).unwrap_or_default();
        self.prompts.len().saturating_sub(first + 1)
    }

    /// How many turns there were, with this one.
    pub(super) fn n_turns(&self) -> usize {
        self.prompts.len()
    }

    /// What the user began this turn with.
    pub(super) fn prompt(&self) -> &str {
        self.prompts.last().map_or("", String::as_str)
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// The number of the last thing that was done.
    pub(super) fn last(&self) -> usize {
        self.done.last_key_value().map_or(0, |(n, _)| *n)
    }

    /// Whether the last thing that was done is a text, which does not end an answer by itself.
    pub(super) fn ends_with_text(&self) -> bool {
        self.done.last_key_value().is_some_and(|(_, done)| done.output.is_none())
    }

    /// Where in the conversation something stands.
    pub(super) fn place(&self, n: usize) -> Option<usize> {
        self.done.get(&n).map(|done| done.at)
    }

    /// What came of a call.
    pub(super) fn output(&self, n: usize) -> Option<&str> {
        self.done.get(&n).and_then(|done| done.output.as_deref())
    }
}

/// The number in an id of ours: `call_TURN_NUMBER_NONCE`.
fn number(id: &str) -> Option<usize> {
    id.rsplit('_').nth(1)?.parse().ok()
}

fn text_of(output: &Output<'_>) -> String {
    match output {
        Output::Text(text) => text.to_string(),
        Output::Parts(parts) => parts.iter().map(|part| part.text()).collect(),
    }
}

//! Tokens, as the main loop's messages tell them.

use std::collections::HashMap;

use serde_json::value::RawValue;
use tieline_event::Usage;
use tieline_wire::claude::{ApiUsage, ModelUsage};

/// Counts the messages of the main loop. Those of sub-agents fill contexts of their own.
#[derive(Debug, Default)]
pub(super) struct Count {
    /// The message that streams, and its tokens so far.
    open: Option<(String, ApiUsage)>,
    /// The message that was counted last; it may come in several pieces.
    last: String,
    /// This turn so far.
    turn: Usage,
    context_used: Option<u64>,
    context_window: Option<u64>,
}

impl Count {
    pub(super) fn begin_turn(&mut self) {
        self.turn = Usage::default();
    }

    /// A message begins to stream.
    pub(super) fn begin(&mut self, message: &str, usage: Option<&ApiUsage>) {
        self.open = Some((message.to_owned(), usage.cloned().unwrap_or_default()));
    }

    /// It is over; what is not said again stays as it was.
    pub(super) fn end(&mut self, usage: Option<&ApiUsage>) -> Option<Usage> {
        let (message, mut tokens) = self.open.take()?;
        if let Some(usage) = usage {
            let newer = |old: &mut u64, new: u64| *old = if new > 0 { new } else { *old };
            newer(&mut tokens.input_tokens, usage.input_tokens);
            newer(&mut tokens.cache_creation_input_tokens, usage.cache_creation_input_tokens);
            newer(&mut tokens.cache_read_input_tokens, usage.cache_read_input_tokens);
            newer(&mut tokens.output_tokens, usage.output_tokens);
            let thought = usage.output_tokens_details.thinking_tokens;
            newer(&mut tokens.output_tokens_details.thinking_tokens, thought);
        }
        self.add(message, &tokens)
    }

    /// A message that did not stream, or a piece of one.
    pub(super) fn whole(&mut self, message: &str, usage: Option<&ApiUsage>) -> Option<Usage> {
        let streams = self.open.as_ref().is_some_and(|(open, _)| open == message);
        if streams || self.last == message {
            return None;
        }
        self.add(message.to_owned(), usage?)
    }

    fn add(&mut self, message: String, tokens: &ApiUsage) -> Option<Usage> {
        self.last = message;
        // The figures are the agent's, and no figure of its may be too large.
        let held = tokens
            .input_tokens
            .saturating_add(tokens.cache_read_input_tokens)
            .saturating_add(tokens.cache_creation_input_tokens)
            .saturating_add(tokens.output_tokens);
        if held == 0 {
            return None;
        }
        self.context_used = Some(held);
        let turn = &mut self.turn;
        let add = |sum: &mut u64, figure| *sum = sum.saturating_add(figure);
        add(&mut turn.input_tokens, tokens.input_tokens);
        add(&mut turn.cached_input_tokens, tokens.cache_read_input_tokens);
        add(&mut turn.cache_write_tokens, tokens.cache_creation_input_tokens);
        add(&mut turn.output_tokens, tokens.output_tokens);
        add(&mut turn.reasoning_tokens, tokens.output_tokens_details.thinking_tokens);
        Some(self.complete(self.turn.clone()))
    }

    /// How much the model can hold, by the figures at the end of a turn. They name every model that
    /// was used, those of sub-agents too.
    pub(super) fn learn_window(&mut self, by_model: Option<&RawValue>, model: Option<&str>) {
        let by_model: HashMap<String, ModelUsage> =
            by_model.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let window = |usage: &ModelUsage| usage.context_window;
        let own = model.and_then(|model| by_model.get(model)).and_then(window);
        let told = own.or_else(|| by_model.values().filter_map(window).max());
        self.context_window = told.or(self.context_window);
    }

    /// Figures with what is known of the context.
    pub(super) fn complete(&self, usage: Usage) -> Usage {
        let (context_used, context_window) = (self.context_used, self.context_window);
        Usage { context_used, context_window, ..usage }
    }
}

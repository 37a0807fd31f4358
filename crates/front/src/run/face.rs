//! What a run looks like from outside, by format.

use tieline_event::{ConversationKey, Kind, Text, Timestamp, TurnStatus};
use tieline_hub::Entry;

use super::text::{Look, Renderer};
use super::{Format, jsonl};
use crate::sanitize::sanitize;
use crate::{Fetch, whole};

/// Entries in, bytes out.
#[derive(Debug)]
pub(super) struct Face {
    kind: Kindred,
    conversation: ConversationKey,
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
}

#[derive(Debug)]
enum Kindred {
    Text(Box<Renderer>),
    Jsonl,
    Final { text: Text },
}

impl Face {
    /// Where somebody is asked, the dialogue shows what it is about.
    pub(super) fn new(
        format: Format,
        look: Look,
        conversation: ConversationKey,
        asks: bool,
    ) -> Self {
        let renderer = || match asks {
            true => Renderer::new(look).without_requests(),
            false => Renderer::new(look),
        };
        let kind = match format {
            Format::Text => Kindred::Text(Box::new(renderer())),
            Format::Jsonl => Kindred::Jsonl,
            Format::Final => Kindred::Final { text: Text::default() },
        };
        Self { kind, conversation, out: Vec::new(), err: Vec::new() }
    }

    /// Shows entries.
    pub(super) fn show(&mut self, entries: &[Entry], fetch: &mut Fetch<'_>) {
        match &mut self.kind {
            Kindred::Jsonl => {
                for entry in entries {
                    jsonl::push(entry, &self.conversation, &mut self.out);
                }
            }
            Kindred::Text(renderer) => {
                for entry in entries {
                    match entry {
                        Entry::Event(shown) => renderer.event(&shown.event, fetch),
                        Entry::Delta(delta) => renderer.delta(delta),
                    }
                }
                renderer.take(&mut self.out, &mut self.err);
            }
            Kindred::Final { text } => {
                for entry in entries {
                    if let Entry::Event(shown) = entry
                        && let Kind::TurnCompleted(end) = &shown.event.kind
                        && end.status == TurnStatus::Completed
                        && !end.text.is_empty()
                    {
                        *text = end.text.clone();
                    }
                }
            }
        }
    }

    /// A line of ours for the person.
    pub(super) fn note(&mut self, text: &str) {
        match &mut self.kind {
            Kindred::Text(renderer) => {
                renderer.note(text);
                renderer.take(&mut self.out, &mut self.err);
            }
            Kindred::Jsonl | Kindred::Final { .. } => {
                self.err.extend_from_slice(sanitize(text).as_bytes());
                self.err.push(b'\n');
            }
        }
    }

    /// What somebody is to decide about. Everything in it is visible.
    pub(super) fn rows(&mut self, rows: &[String]) {
        match &mut self.kind {
            Kindred::Text(renderer) => {
                renderer.rows(rows);
                renderer.take(&mut self.out, &mut self.err);
            }
            Kindred::Jsonl | Kindred::Final { .. } => {
                for row in rows {
                    self.err.extend_from_slice(row.as_bytes());
                    self.err.push(b'\n');
                }
            }
        }
    }

    /// Time went by.
    pub(super) fn tick(&mut self) {
        if let Kindred::Text(renderer) = &mut self.kind {
            renderer.tick(Timestamp::now());
            renderer.take(&mut self.out, &mut self.err);
        }
    }

    /// The dialogue has the screen, or gives it back.
    pub(super) fn set_asking(&mut self, is_asking: bool) {
        if let Kindred::Text(renderer) = &mut self.kind {
            renderer.set_asking(is_asking);
            renderer.take(&mut self.out, &mut self.err);
        }
    }

    /// The dialogue's own words: on the screen where there is one, else on the error output.
    pub(super) fn say(&mut self, text: &str, look: Look) {
        let on_screen =
            matches!(self.kind, Kindred::Text(_)) && look.layout == super::text::Layout::Together;
        let sink = if on_screen { &mut self.out } else { &mut self.err };
        sink.extend_from_slice(text.as_bytes());
    }

    /// Nothing follows.
    pub(super) fn finish(&mut self, fetch: &mut Fetch<'_>) {
        match &mut self.kind {
            Kindred::Text(renderer) => {
                renderer.finish();
                renderer.take(&mut self.out, &mut self.err);
            }
            Kindred::Jsonl => {}
            Kindred::Final { text } => {
                let text = sanitize(&whole(text, fetch));
                let text = text.trim_end_matches('\n');
                if !text.is_empty() {
                    self.out.extend_from_slice(text.as_bytes());
                    self.out.push(b'\n');
                }
            }
        }
    }
}

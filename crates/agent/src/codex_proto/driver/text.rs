//! What the model says and thinks. The wire gives it no names.

use std::collections::VecDeque;

use tieline_event::{Item, ItemBody, ItemId, ItemStatus, Stream, Text};

use super::ProtoDriver;
use crate::ledger::{Ledger, Meta};

/// Texts that grow.
#[derive(Debug, Default)]
pub(super) struct Texts {
    n_items: u32,
    messages: Parts,
    summary: Parts,
    verbatim: Parts,
    plan: Option<ItemId>,
}

/// Parts of the thinking, or messages of one answer. They stream one after the other and may be told
/// whole after the last, so several may be open.
#[derive(Debug, Default)]
struct Parts {
    open: VecDeque<ItemId>,
    /// What comes next belongs to a new part.
    is_broken: bool,
}

/// Which account of the thinking.
#[derive(Debug, Clone, Copy)]
pub(super) enum Account {
    Summary,
    Verbatim,
}

impl Texts {
    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.n_items == 0
    }

    /// An id for what the wire gives none.
    pub(super) fn name(&mut self, what: &str, ledger: &Ledger) -> ItemId {
        self.n_items += 1;
        let turn = ledger.current_turn().map_or("idle", |turn| turn.as_str());
        ItemId::new(format!("{turn}:{what}{}", self.n_items))
    }

    fn thinking(&mut self, account: Account) -> &mut Parts {
        match account {
            Account::Summary => &mut self.summary,
            Account::Verbatim => &mut self.verbatim,
        }
    }
}

impl ProtoDriver {
    pub(super) fn message_delta(&mut self, delta: &str, ledger: &mut Ledger) {
        let messages = &mut self.texts.messages;
        if messages.open.is_empty() || messages.is_broken {
            messages.is_broken = false;
            let id = self.texts.name("message", ledger);
            begin(&id, ItemBody::AgentMessage { text: Text::default() }, ledger);
            self.texts.messages.open.push_back(id);
        }
        if let Some(id) = self.texts.messages.open.back() {
            ledger.delta(id.as_str(), Stream::Text, delta);
        }
    }

    /// Another message begins before the last one was told whole.
    pub(super) fn message_break(&mut self) {
        self.texts.messages.is_broken = true;
    }

    pub(super) fn message(&mut self, text: &str, ledger: &mut Ledger) {
        let id = self.texts.messages.open.pop_front();
        let id = id.unwrap_or_else(|| self.texts.name("message", ledger));
        end(id, ItemBody::AgentMessage { text: text.into() }, ledger);
    }

    pub(super) fn thinking_delta(&mut self, account: Account, delta: &str, ledger: &mut Ledger) {
        let thinking = self.texts.thinking(account);
        if thinking.open.is_empty() || thinking.is_broken {
            thinking.is_broken = false;
            let id = self.texts.name("reasoning", ledger);
            begin(&id, reasoning(""), ledger);
            self.texts.thinking(account).open.push_back(id);
        }
        if let Some(id) = self.texts.thinking(account).open.back() {
            ledger.delta(id.as_str(), Stream::Reasoning, delta);
        }
    }

    pub(super) fn thinking(&mut self, account: Account, text: &str, ledger: &mut Ledger) {
        let id = self.texts.thinking(account).open.pop_front();
        let id = id.unwrap_or_else(|| self.texts.name("reasoning", ledger));
        end(id, reasoning(text), ledger);
    }

    pub(super) fn section_break(&mut self) {
        self.texts.summary.is_broken = true;
        self.texts.verbatim.is_broken = true;
    }

    pub(super) fn plan_delta(&mut self, delta: &str, ledger: &mut Ledger) {
        if self.texts.plan.is_none() {
            let id = self.texts.name("plan", ledger);
            begin(&id, ItemBody::Plan { text: Text::default() }, ledger);
            self.texts.plan = Some(id);
        }
        if let Some(id) = &self.texts.plan {
            ledger.delta(id.as_str(), Stream::Plan, delta);
        }
    }

    pub(super) fn plan(&mut self, text: &str, ledger: &mut Ledger) {
        let id = self.texts.plan.take();
        let id = id.unwrap_or_else(|| self.texts.name("plan", ledger));
        end(id, ItemBody::Plan { text: text.into() }, ledger);
    }

    /// No more will come for the texts that grow: the answer was cut off and is asked for again,
    /// or the task ended well without telling them whole.
    pub(super) fn settle_texts(&mut self, status: ItemStatus, ledger: &mut Ledger) {
        let texts = &mut self.texts;
        let mut open: Vec<ItemId> = texts.messages.open.drain(..).collect();
        open.extend(texts.summary.open.drain(..));
        open.extend(texts.verbatim.open.drain(..));
        open.extend(texts.plan.take());
        for id in open {
            let item = ledger.open_items().get(id.as_str());
            if let Some(item) = item.map(|open| open.snapshot()) {
                ledger.complete_item(Meta::default(), Item { status, ..item });
            }
        }
    }

    /// Something that is told once.
    pub(super) fn remark(&mut self, what: &str, body: ItemBody, ledger: &mut Ledger) {
        let id = self.texts.name(what, ledger);
        end(id, body, ledger);
    }
}

fn reasoning(text: &str) -> ItemBody {
    ItemBody::Reasoning { text: text.into(), signature: None }
}

fn begin(id: &ItemId, body: ItemBody, ledger: &mut Ledger) {
    let item = Item { id: id.clone(), status: ItemStatus::InProgress, body };
    ledger.upsert_item(Meta::default(), item);
}

fn end(id: ItemId, body: ItemBody, ledger: &mut Ledger) {
    ledger.complete_item(Meta::default(), Item { id, status: ItemStatus::Ok, body });
}

//! Messages and thoughts, which come in pieces and never say that they are over.

use tieline_event::{Item, ItemBody, ItemId, ItemStatus, Native, Stream, Text};

use crate::ledger::{Ledger, Meta};

/// The message that grows.
#[derive(Debug, Default)]
pub(super) struct Speech {
    open: Option<Open>,
    /// The user's words as the agent tells them again.
    echo: String,
}

#[derive(Debug)]
struct Open {
    what: What,
    message: Option<String>,
    item: ItemId,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Message,
    Thought,
}

impl Speech {
    /// A piece of a message.
    pub(super) fn say(
        &mut self,
        what: What,
        message: Option<&str>,
        text: &str,
        ledger: &mut Ledger,
    ) {
        if text.is_empty() {
            return;
        }
        let stream = match what {
            What::Message => Stream::Text,
            What::Thought => Stream::Reasoning,
        };
        if let Some(open) = &self.open
            && open.what == what
            && open.message.as_deref() == message
            && ledger.item(open.item.as_str()).is_some()
        {
            ledger.delta(open.item.as_str(), stream, text);
            return;
        }
        self.hush(ledger);
        let item = item_id(ledger);
        let body = match what {
            What::Message => ItemBody::AgentMessage { text: Text::default() },
            What::Thought => ItemBody::Reasoning { text: Text::default(), signature: None },
        };
        let message = message.map(str::to_owned);
        let native = Native { message: message.clone(), ..Native::default() };
        let status = ItemStatus::InProgress;
        ledger.upsert_item(Meta { parent: None, native }, Item { id: item.clone(), status, body });
        ledger.delta(item.as_str(), stream, text);
        self.open = Some(Open { what, message, item });
    }

    /// The user's words, told again.
    pub(super) fn echo(&mut self, text: &str) {
        self.echo.push_str(text);
    }

    /// Takes the user's words as the agent told them.
    pub(super) fn take_echo(&mut self) -> String {
        std::mem::take(&mut self.echo)
    }

    /// What was said was cut off and is not whole: it ends with its turn.
    pub(super) fn break_off(&mut self) {
        self.open = None;
    }

    /// Something else comes, so what was said is whole.
    pub(super) fn hush(&mut self, ledger: &mut Ledger) {
        let Some(open) = self.open.take() else { return };
        let item = ledger.open_items().get(open.item.as_str()).map(|it| it.snapshot());
        let Some(item) = item else { return };
        ledger.complete_item(Meta::default(), Item { status: ItemStatus::Ok, ..item });
    }
}

/// A name for an item that begins with the line that is being read.
pub(super) fn item_id(ledger: &Ledger) -> ItemId {
    match ledger.frame() {
        Some(frame) => ItemId::new(format!("i{frame}")),
        None => ItemId::new("i"),
    }
}

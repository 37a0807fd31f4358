//! Texts that grow: the books write them, whoever shows them reads along.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tieline_event::{ItemId, Stream, TurnId};

/// A text that gets longer until its item is over. Clones are the same text, so that a long one is held once.
#[derive(Debug, Clone, Default)]
pub struct Growth(Arc<Mutex<String>>);

impl Growth {
    /// Appends, and says where.
    pub fn push(&self, text: &str) -> u64 {
        let mut whole = self.lock();
        let offset = whole.len() as u64;
        whole.push_str(text);
        offset
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing has come yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text so far.
    pub fn to_text(&self) -> String {
        self.lock().clone()
    }

    /// The text itself, if it is this one; nothing is left of it here.
    pub fn take_if(&self, text: &str) -> Option<String> {
        let mut whole = self.lock();
        (*whole == text).then(|| std::mem::take(&mut *whole))
    }

    /// Its bytes from one place to another, as far as it has them; at most so many, and whole
    /// characters.
    pub fn piece(&self, from: u64, to: u64, most: usize) -> Option<String> {
        let whole = self.lock();
        let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
        let end = whole.floor_char_boundary(to.min(from.saturating_add(most)));
        whole.get(from..end).map(str::to_owned)
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An item that streams.
#[derive(Debug, Clone)]
pub struct Growing {
    /// Its turn.
    pub turn: TurnId,
    /// Which one.
    pub item: ItemId,
    /// The item whose work it is.
    pub parent: Option<ItemId>,
    /// Which of its texts.
    pub stream: Stream,
    /// That text.
    pub text: Growth,
}

impl Growing {
    /// Whether this is that text of that item.
    pub fn is(&self, item: &ItemId, stream: Stream) -> bool {
        self.item == *item && self.stream == stream
    }
}

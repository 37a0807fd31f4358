//! Items that are not over, found by id and by parent.
//!
//! Ids and parents are the agent's choice: an item may be its own parent, several may form a ring or
//! a chain of any length. So no walk here recurses or sees an item twice, and none is longer than the
//! number of items it finds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tieline_event::{Item, ItemBody, ItemId, Stream, Text, TurnId};

use super::{Growth, Meta};

/// An item that is not over.
#[derive(Debug, Clone)]
pub struct OpenItem {
    /// The item as last told, without what streamed since.
    pub item: Item,
    /// Its turn.
    pub turn: Option<TurnId>,
    /// What stands around it.
    pub meta: Meta,
    /// What streamed so far.
    pub streamed: Growth,
    pub(super) stream: Option<Stream>,
    /// It goes on after its turn.
    pub(super) detached: bool,
}

impl OpenItem {
    pub(super) fn new(item: Item, turn: Option<TurnId>, meta: Meta) -> Self {
        Self { item, turn, meta, streamed: Growth::default(), stream: None, detached: false }
    }

    /// Whether it is something that is said or thought: it takes no time of its own.
    pub fn is_text(&self) -> bool {
        let body = &self.item.body;
        matches!(
            body,
            ItemBody::AgentMessage { .. } | ItemBody::Reasoning { .. } | ItemBody::Plan { .. }
        )
    }

    /// The item as it stands, with what streamed.
    pub fn snapshot(&self) -> Item {
        with_streamed(self.item.clone(), &self.streamed)
    }
}

pub(super) fn with_streamed(mut item: Item, streamed: &Growth) -> Item {
    if streamed.is_empty() {
        return item;
    }
    match &mut item.body {
        ItemBody::AgentMessage { text }
        | ItemBody::Reasoning { text, .. }
        | ItemBody::Plan { text }
        | ItemBody::Review { text, .. }
        | ItemBody::Command { output: text, .. } => *text = Text::from(streamed.to_text()),
        _ => {}
    }
    item
}

/// The open items, in the order in which they were opened.
#[derive(Debug, Default)]
pub struct OpenItems {
    n_opened: u64,
    items: BTreeMap<u64, OpenItem>,
    places: HashMap<ItemId, u64>,
    /// The open items below each parent, open or not.
    children: HashMap<ItemId, BTreeSet<u64>>,
}

impl OpenItems {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &OpenItem> {
        self.items.values()
    }

    /// The one that was opened last.
    pub fn last(&self) -> Option<&OpenItem> {
        self.items.last_key_value().map(|(_, open)| open)
    }

    /// The one with this id.
    pub fn get(&self, id: &str) -> Option<&OpenItem> {
        // Most often the latest grows, and comparing is cheaper than hashing.
        match self.last() {
            Some(last) if last.item.id.as_str() == id => Some(last),
            _ => self.places.get(id).and_then(|place| self.items.get(place)),
        }
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut OpenItem> {
        let place = match self.items.last_key_value() {
            Some((place, last)) if last.item.id.as_str() == id => Some(place),
            _ => self.places.get(id),
        };
        place.copied().and_then(|place| self.items.get_mut(&place))
    }

    /// Opens an item. The caller knows that none with its id is open.
    pub(super) fn insert(&mut self, open: OpenItem) {
        let place = self.n_opened;
        self.n_opened += 1;
        if let Some(parent) = &open.meta.parent {
            self.children.entry(parent.clone()).or_default().insert(place);
        }
        self.places.insert(open.item.id.clone(), place);
        self.items.insert(place, open);
    }

    /// The place of an item in the order of their beginnings; one that is not open begins now.
    pub(super) fn place_of(&self, id: &str) -> u64 {
        self.places.get(id).copied().unwrap_or(self.n_opened)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<OpenItem> {
        let place = self.places.remove(id)?;
        let open = self.items.remove(&place)?;
        if let Some(parent) = &open.meta.parent
            && let Some(children) = self.children.get_mut(parent)
        {
            children.remove(&place);
            if children.is_empty() {
                self.children.remove(parent);
            }
        }
        Some(open)
    }

    /// The items below these, each after the one it was found by and siblings from the latest to the
    /// first. One that is its own ancestor is not below itself.
    pub(super) fn below<'a>(&'a self, above: impl IntoIterator<Item = &'a ItemId>) -> Vec<ItemId> {
        let mut queue: Vec<&ItemId> = above.into_iter().collect();
        let mut seen: HashSet<&ItemId> = queue.iter().copied().collect();
        let mut found = Vec::new();
        while let Some(parent) = queue.pop() {
            let children = self.children.get(parent).into_iter().flatten().rev();
            for child in children.filter_map(|place| self.items.get(place)) {
                if seen.insert(&child.item.id) {
                    found.push(child.item.id.clone());
                    queue.push(&child.item.id);
                }
            }
        }
        found
    }

    /// The items that go on after their turn: the detached ones and all below them.
    pub(super) fn that_stay(&self) -> HashSet<ItemId> {
        let detached: Vec<&ItemId> =
            self.iter().filter(|open| open.detached).map(|open| &open.item.id).collect();
        let mut stay: HashSet<ItemId> = self.below(detached.iter().copied()).into_iter().collect();
        stay.extend(detached.into_iter().cloned());
        stay
    }
}

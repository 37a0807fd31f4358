//! The last entries that were shown, for subscribers that keep up.
//!
//! Sans-IO: the core of "subscribe while publishing, no gap, no duplicate". Events enter only after
//! their commit and in order, so whatever is not here any more is in the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tieline_agent::Growing;
use tieline_event::{Delta, Event, ItemId, Kind, Seq, Stream};
use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// Something shown to a subscriber.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Durable; it is on disk.
    Event(Arc<Shown>),
    /// A preview.
    Delta(Arc<Delta>),
}

/// An event with the JSON it is stored as.
#[derive(Debug)]
pub struct Shown {
    /// The event.
    pub event: Event,
    /// Its JSON, without a newline.
    pub json: Arc<[u8]>,
}

/// Where a subscriber stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// It has every event up to its cursor and reads on from the store.
    Store,
    /// It reads the tail from this index on.
    Tail(u64),
}

/// How much a subscriber has seen of the items that still grow.
#[derive(Debug, Default)]
pub(crate) struct Seen(Vec<(ItemId, Stream, u64)>);

impl Seen {
    /// Notes what was shown.
    pub(crate) fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Delta(delta) => {
                let end = delta.offset + delta.text.len() as u64;
                let same = |(item, stream, _): &&mut (ItemId, Stream, u64)| {
                    *item == delta.item && *stream == delta.stream
                };
                match self.0.iter_mut().rev().find(same) {
                    Some((.., seen)) => *seen = end,
                    None => self.0.push((delta.item.clone(), delta.stream, end)),
                }
            }
            Entry::Event(shown) => match &shown.event.kind {
                Kind::ItemCompleted(item) => self.0.retain(|(seen, ..)| *seen != item.id),
                Kind::TurnCompleted(_) => self.0.clear(),
                _ => {}
            },
        }
    }

    /// What was not seen of a text, if anything.
    fn rest_of(&self, grown: &Grown) -> Option<Rest> {
        let Grown { growing, shown } = grown;
        let of = |(item, stream, _): &&(ItemId, Stream, u64)| growing.is(item, *stream);
        let offset = self.0.iter().find(of).map_or(0, |(.., seen)| *seen);
        if offset >= *shown {
            return None;
        }
        let Some(text) = growing.text.piece(offset, *shown, PIECE).filter(|it| !it.is_empty())
        else {
            return Some(Rest { piece: None, is_all: false });
        };
        let is_all = offset + text.len() as u64 == *shown;
        let rest = Delta {
            turn: growing.turn.clone(),
            item: growing.item.clone(),
            parent: growing.parent.clone(),
            stream: growing.stream,
            offset,
            text,
        };
        Some(Rest { piece: Some(Entry::Delta(Arc::new(rest))), is_all })
    }
}

/// What a subscriber has not seen of a growing text.
#[derive(Debug)]
struct Rest {
    /// The next piece; none when the whole is on its way with the end of its item.
    piece: Option<Entry>,
    /// Nothing was shown behind that piece.
    is_all: bool,
}

/// What a subscriber does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Show these; the subscriber then stands there.
    Show(Vec<Entry>, Position),
    /// Read events after the cursor from the store, this one included at most. The store may hold
    /// more, which is not shown yet.
    ReadStore(Seq),
    /// Wait for more.
    Wait(Position),
    /// There will be no more, because of this if it is not by wish.
    Closed(Option<String>),
}

/// The shared tail of one conversation.
#[derive(Debug)]
pub(crate) struct Tail {
    state: Mutex<State>,
    /// Counts publications; its value means nothing else.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    ring: VecDeque<Entry>,
    /// Index of the ring's first entry, counted from the beginning of time.
    base: u64,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
    /// The last event that was shown.
    shown: Seq,
    /// Items that are still growing, for subscribers that come in the middle.
    growing: Vec<Grown>,
    closed: Option<Closing>,
}

/// An item that is still growing, and how much of it was shown. Its text may be ahead of that.
#[derive(Debug)]
struct Grown {
    growing: Growing,
    shown: u64,
}

/// How a conversation was closed.
#[derive(Debug)]
struct Closing {
    trouble: Option<String>,
}

/// How many entries a subscriber gets at once.
const BATCH: usize = 512;

/// How much of a text it missed a subscriber gets at once. One that reads slowly would otherwise
/// hold all of it, once more with every layer between here and its client.
const PIECE: usize = 64 * 1024;

impl Tail {
    pub(crate) fn new(shown: Seq, max_entries: usize, max_bytes: usize) -> Self {
        let state = State {
            ring: VecDeque::new(),
            base: 0,
            bytes: 0,
            max_entries,
            max_bytes,
            shown,
            growing: Vec::new(),
            closed: None,
        };
        Self { state: Mutex::new(state), changed: watch::Sender::new(0) }
    }

    /// Shows entries. Events among them are committed.
    pub(crate) fn publish(&self, entries: impl IntoIterator<Item = Entry>) {
        let mut state = self.lock();
        for entry in entries {
            state.push(entry);
        }
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }

    /// An item begins to grow: its deltas follow.
    pub(crate) fn grows(&self, growing: Growing) {
        let mut state = self.lock();
        state.growing.retain(|it| !it.growing.is(&growing.item, growing.stream));
        state.growing.push(Grown { growing, shown: 0 });
    }

    /// Nothing follows; `trouble` says why, unless somebody wanted it so.
    pub(crate) fn close(&self, trouble: Option<String>) {
        self.lock().closed.get_or_insert(Closing { trouble });
        self.changed.send_modify(|count| *count += 1);
    }

    /// The conversation rests: the store has everything the tail had.
    pub(crate) fn rest(&self) {
        let mut state = self.lock();
        let end = state.end();
        state.ring = VecDeque::new();
        state.growing = Vec::new();
        (state.base, state.bytes) = (end, 0);
    }

    /// The last event that was shown.
    pub(crate) fn shown(&self) -> Seq {
        self.lock().shown
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Where a subscriber begins that has every event up to `cursor`: in the tail, if it has missed
    /// nothing. So it sees all that is shown from now on, however late it comes to look.
    pub(crate) fn enter(&self, cursor: Seq) -> Position {
        let state = self.lock();
        let has_all = cursor == state.shown && state.growing.iter().all(|it| it.shown == 0);
        if has_all { Position::Tail(state.end()) } else { Position::Store }
    }

    /// What a subscriber that stands here, with every event up to `cursor`, does next.
    ///
    /// One that is not in the tail reads the store until it has every event that was shown. Then it
    /// gets what it has not seen of each item that still grows, in pieces, and enters at the end with
    /// the last ones.
    pub(crate) fn step(&self, position: Position, cursor: Seq, seen: &Seen) -> Step {
        let state = self.lock();
        let index = match position {
            Position::Tail(index) if index >= state.base => index,
            _ if cursor < state.shown => return Step::ReadStore(state.shown),
            _ => {
                let missed = state.growing.iter().filter_map(|grown| seen.rest_of(grown));
                let missed: Vec<Rest> = missed.collect();
                let has_all = missed.iter().all(|rest| rest.is_all);
                let position = if has_all { Position::Tail(state.end()) } else { Position::Store };
                let pieces: Vec<Entry> = missed.into_iter().filter_map(|rest| rest.piece).collect();
                if !pieces.is_empty() {
                    return Step::Show(pieces, position);
                }
                if !has_all && state.closed.is_none() {
                    return Step::Wait(position);
                }
                state.end()
            }
        };
        let from = usize::try_from(index - state.base).unwrap_or(usize::MAX);
        let entries: Vec<Entry> = state.ring.iter().skip(from).take(BATCH).cloned().collect();
        if !entries.is_empty() {
            let position = Position::Tail(index + entries.len() as u64);
            Step::Show(entries, position)
        } else if let Some(closing) = &state.closed {
            Step::Closed(closing.trouble.clone())
        } else {
            Step::Wait(Position::Tail(index))
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    fn push(&mut self, entry: Entry) {
        match &entry {
            Entry::Event(shown) => {
                self.shown = shown.event.seq;
                match &shown.event.kind {
                    Kind::ItemCompleted(item) => {
                        self.growing.retain(|it| it.growing.item != item.id);
                    }
                    Kind::TurnCompleted(_) => {
                        let turn = shown.event.turn.as_ref();
                        self.growing.retain(|it| Some(&it.growing.turn) != turn);
                    }
                    _ => {}
                }
            }
            Entry::Delta(delta) => self.grow(delta),
        }
        self.bytes += weight(&entry);
        self.ring.push_back(entry);
        while self.ring.len() > self.max_entries || self.bytes > self.max_bytes {
            let Some(old) = self.ring.pop_front() else { break };
            self.base += 1;
            self.bytes -= weight(&old);
        }
    }

    fn grow(&mut self, delta: &Delta) {
        let same = |it: &&mut Grown| it.growing.is(&delta.item, delta.stream);
        if let Some(grown) = self.growing.iter_mut().rev().find(same) {
            grown.shown = delta.offset + delta.text.len() as u64;
        }
    }
}

fn weight(entry: &Entry) -> usize {
    match entry {
        Entry::Event(shown) => 2 * shown.json.len() + 256,
        Entry::Delta(delta) => delta.text.len() + 128,
    }
}

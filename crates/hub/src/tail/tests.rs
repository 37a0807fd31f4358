use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tieline_agent::{Growing, Growth};
use tieline_event::{
    ConversationKey, Delta, Epoch, Event, FORMAT, Item, ItemBody, ItemStatus, Kind, Native, Seq,
    Source, Stream, Timestamp, Usage,
};

use super::{Entry, PIECE, Position, Seen, Shown, Step, Tail};

fn event(seq: u64, kind: Kind) -> Entry {
    let event = Event {
        v: FORMAT,
        conversation: ConversationKey::new("k").unwrap(),
        seq: Seq(seq),
        epoch: Epoch(1),
        ts: Timestamp::from_millis(0),
        turn: Some("t1".into()),
        item: kind.item().cloned(),
        parent: None,
        origin: None,
        native: Native::default(),
        source: Source { driver: "x".into(), version: None, frames: None },
        kind,
    };
    let json = event.to_json().unwrap().into();
    Entry::Event(Arc::new(Shown { event, json }))
}

fn tick(seq: u64) -> Entry {
    event(seq, Kind::UsageUpdated(Usage::default()))
}

fn delta(offset: u64, text: &str) -> Entry {
    Entry::Delta(Arc::new(Delta {
        turn: "t1".into(),
        item: "m1".into(),
        parent: None,
        stream: Stream::Text,
        offset,
        text: text.to_owned(),
    }))
}

/// The item of the deltas grows by this text.
fn grows(tail: &Tail, text: &str) -> Growth {
    let growing = Growing {
        turn: "t1".into(),
        item: "m1".into(),
        parent: None,
        stream: Stream::Text,
        text: Growth::default(),
    };
    growing.text.push(text);
    let text = growing.text.clone();
    tail.grows(growing);
    text
}

/// The item of the deltas, whole.
fn hello() -> Item {
    Item {
        id: "m1".into(),
        status: ItemStatus::Ok,
        body: ItemBody::AgentMessage { text: "Hello".into() },
    }
}

fn seq_of(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Event(shown) => Some(shown.event.seq.0),
        Entry::Delta(_) => None,
    }
}

#[test]
fn whoever_comes_in_the_middle_of_an_item_gets_what_there_is_of_it() {
    let tail = Tail::new(Seq(0), 100, 1 << 20);
    grows(&tail, "Hello! And what was not shown yet.");
    tail.publish([tick(1), delta(0, "Hel"), delta(3, "lo")]);
    let Step::Show(entries, position) = tail.step(Position::Store, Seq(1), &Seen::default()) else {
        panic!("the text so far");
    };
    let Entry::Delta(whole) = &entries[0] else { panic!("a delta") };
    assert_eq!((whole.offset, whole.text.as_str()), (0, "Hello"));
    tail.publish([delta(5, "!")]);
    let Step::Show(entries, _) = tail.step(position, Seq(1), &Seen::default()) else {
        panic!("the rest")
    };
    let Entry::Delta(rest) = &entries[0] else { panic!("a delta") };
    assert_eq!((rest.offset, rest.text.as_str()), (5, "!"));
}

#[test]
fn whoever_is_there_before_an_item_sees_it_grow_even_if_it_looks_late() {
    let tail = Tail::new(Seq(3), 100, 1 << 20);
    let position = tail.enter(Seq(3));
    grows(&tail, "Hello");
    assert_eq!(tail.enter(Seq(3)), position, "nothing of it was shown yet");
    tail.publish([delta(0, "Hel"), delta(3, "lo")]);
    assert_eq!(tail.enter(Seq(3)), Position::Store);
    tail.publish([event(4, Kind::ItemCompleted(hello()))]);
    assert_eq!(tail.enter(Seq(3)), Position::Store);
    let Step::Show(entries, _) = tail.step(position, Seq(3), &Seen::default()) else {
        panic!("all of it");
    };
    let offsets = entries.iter().map(|entry| match entry {
        Entry::Delta(delta) => delta.offset,
        Entry::Event(shown) => shown.event.seq.0,
    });
    assert_eq!(offsets.collect::<Vec<_>>(), [0, 3, 4]);
}

#[test]
fn a_long_text_that_was_missed_comes_in_pieces() {
    let tail = Tail::new(Seq(0), 1, 1 << 20);
    let text = "é".repeat(PIECE);
    grows(&tail, &format!("-{text}"));
    tail.publish([delta(0, "-"), delta(1, &text), tick(1)]);
    let (mut position, mut seen, mut shown) = (Position::Store, Seen::default(), String::new());
    while let Step::Show(entries, next) = tail.step(position, Seq(1), &seen) {
        position = next;
        for entry in &entries {
            seen.note(entry);
            let Entry::Delta(piece) = entry else { panic!("a delta") };
            assert_eq!(piece.offset as usize, shown.len());
            assert!(piece.text.len() <= PIECE);
            shown.push_str(&piece.text);
        }
    }
    assert_eq!(shown, format!("-{text}"));
    assert!(matches!(position, Position::Tail(_)));
}

#[test]
fn a_finished_item_is_not_shown_as_growing() {
    let tail = Tail::new(Seq(0), 100, 1 << 20);
    grows(&tail, "Hello");
    tail.publish([delta(0, "Hello"), event(1, Kind::ItemCompleted(hello()))]);
    assert!(matches!(tail.step(Position::Store, Seq(1), &Seen::default()), Step::Wait(_)));
}

#[test]
fn who_lags_behind_a_text_that_is_on_its_way_as_a_whole_waits_for_it() {
    let tail = Tail::new(Seq(0), 1, 1 << 20);
    let text = grows(&tail, "Hello");
    tail.publish([delta(0, "Hel"), delta(3, "l")]);
    assert!(text.take_if("Hello").is_some());
    tail.publish([delta(4, "o")]);
    let seen = Seen::default();
    assert!(matches!(tail.step(Position::Store, Seq(0), &seen), Step::Wait(Position::Store)));
    tail.publish([event(1, Kind::ItemCompleted(hello()))]);
    assert!(matches!(tail.step(Position::Store, Seq(0), &seen), Step::ReadStore(Seq(1))));
}

#[test]
fn the_ring_stays_within_its_limits() {
    let tail = Tail::new(Seq(0), 10, 1 << 20);
    for seq in 1..=1000 {
        tail.publish([tick(seq)]);
    }
    let state = tail.lock();
    assert!(state.ring.len() <= 10);
    drop(state);
    let small = Tail::new(Seq(0), 1000, 5000);
    for seq in 1..=1000 {
        small.publish([tick(seq)]);
    }
    assert!(small.lock().bytes <= 5000);
}

proptest! {
    /// Publishing, reading, lagging and joining in any order: no gap, no duplicate.
    #[test]
    fn every_subscriber_sees_every_event_once(
        steps in proptest::collection::vec((0..6_u8, 0..4_usize), 1..300),
        ring in 1..20_usize,
    ) {
        let tail = Tail::new(Seq(0), ring, 1 << 20);
        grows(&tail, &"x".repeat(4096));
        // What a real store holds: everything that was published, and what soon will be.
        let mut stored: VecDeque<u64> = VecDeque::new();
        let mut published = 0;
        let mut readers = vec![Reader::new(&tail, 0)];
        let mut grown = 0_u64;
        for (what, n) in steps {
            match what {
                0 => {
                    for _ in 0..=n {
                        stored.push_back(stored.len() as u64 + 1);
                    }
                }
                1 => {
                    while published < stored.len() as u64 {
                        published += 1;
                        tail.publish([delta(grown, "x"), tick(published)]);
                        grown += 1;
                    }
                }
                2 => {
                    tail.publish([delta(grown, "yz")]);
                    grown += 2;
                }
                4 => readers.push(Reader::new(&tail, if n == 0 { published } else { published / 2 })),
                _ => {
                    let at = n % readers.len();
                    readers[at].read(&tail, &stored)?;
                }
            }
        }
        for reader in readers {
            let expected: Vec<u64> = (reader.from + 1..=reader.cursor.0).collect();
            prop_assert_eq!(reader.seen, expected);
        }
    }
}

/// A subscriber, without the waiting.
struct Reader {
    from: u64,
    position: Position,
    cursor: Seq,
    offsets: Seen,
    seen: Vec<u64>,
    /// Bytes of the growing text it was shown, once it was shown any.
    text: Option<u64>,
}

impl Reader {
    fn new(tail: &Tail, from: u64) -> Self {
        Self {
            from,
            position: tail.enter(Seq(from)),
            cursor: Seq(from),
            offsets: Seen::default(),
            seen: Vec::new(),
            text: None,
        }
    }

    fn read(&mut self, tail: &Tail, stored: &VecDeque<u64>) -> Result<(), TestCaseError> {
        match tail.step(self.position, self.cursor, &self.offsets) {
            Step::Show(entries, next) => {
                self.position = next;
                for entry in entries {
                    self.offsets.note(&entry);
                    if let Entry::Delta(delta) = &entry {
                        // Whatever was missed: the text goes on exactly where it was left.
                        let text = self.text.unwrap_or(delta.offset);
                        prop_assert_eq!(delta.offset, text);
                        self.text = Some(text + delta.text.len() as u64);
                    }
                    if let Some(seq) = seq_of(&entry) {
                        self.seen.push(seq);
                        self.cursor = Seq(seq);
                    }
                }
            }
            Step::ReadStore(until) => {
                let missing = (until.0 - self.cursor.0) as usize;
                for seq in stored.iter().skip(self.cursor.0 as usize).take(missing.min(3)) {
                    self.seen.push(*seq);
                    self.cursor = Seq(*seq);
                }
                self.position = tail.enter(self.cursor);
            }
            Step::Wait(next) => self.position = next,
            Step::Closed(_) => prop_assert!(false, "never closed"),
        }
        Ok(())
    }
}

//! What an event costs in a short conversation and in a long one: to append it, and to read the
//! last page.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use tieline_event::{
    ConversationKey, Event, FORMAT, FrameNo, Item, ItemBody, ItemStatus, Kind, Native, Seq, Source,
    Text, Timestamp, TurnId,
};
use tieline_store::{Batch, Direction, FrameBuf, Lease, NewConversation, NewEvent, Options, Store};

use super::median;
use super::scene::{Scene, progress};
use super::table::{Beside, Goal, Judgement, Line, Quantity};

/// How long a short conversation is.
const SHORT: u64 = 1000;

/// Events that are timed together: enough for the log to be copied into the database several times.
const BLOCK: u64 = 20_000;

/// Events of one batch, as many as an agent's chunk of lines brings.
const BATCH: u64 = 8;

/// What a subscriber reads at once.
const PAGE: usize = 256;

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let long: u64 = scene.choose(1_000_000, 100_000);
    let n_rounds = scene.choose(7, 3);
    let dir = scene.fresh_dir()?;
    let mut whole = Transcript::open(&dir.path().join("long"), "long")?;
    progress(&format!("writing {long} events"));
    whole.append(long)?;
    let (mut short_append, mut long_append) = (Vec::new(), Vec::new());
    let (mut short_page, mut long_page) = (Vec::new(), Vec::new());
    for round in 0..n_rounds {
        let shorts = dir.path().join(format!("short-{round}"));
        let (append, page) = short_block(&shorts)?;
        short_append.push(append);
        short_page.push(page);
        let began = Instant::now();
        // In as many pieces as there are short conversations, because each waits for the disk.
        for _ in 0..BLOCK / SHORT {
            whole.append(SHORT)?;
        }
        long_append.push(micros_each(began, BLOCK));
        long_page.push(whole.read_last_page()?);
    }
    let line = |what: &str, at_long: &[f64], at_short: &[f64], note| {
        let (at_long, at_short) = (median(at_long), median(at_short));
        Line {
            what: what.to_owned(),
            value: Quantity::Micros(at_long),
            beside: Some(Beside { what: "at 1000", value: Quantity::Micros(at_short) }),
            judgement: Some(Judgement::new(
                "ratio",
                Quantity::Ratio(at_long / at_short),
                Goal::AtMost(Quantity::Ratio(1.2)),
            )),
            note,
        }
    };
    Ok(vec![
        line(
            "cost per event, append",
            &long_append,
            &short_append,
            format!(
                "at {long} events, {BATCH} events and frames a batch, on disk; medians of \
                 {n_rounds} blocks of {BLOCK} events in turns, the short ones as {} conversations \
                 from 0 to {SHORT}",
                BLOCK / SHORT
            ),
        ),
        line(
            "cost per event, last page",
            &long_page,
            &short_page,
            format!("reading the last {PAGE} events at {long}; medians of {n_rounds} times 50"),
        ),
    ])
}

/// Short conversations in a store of their own: what an event costs to append and to read.
fn short_block(dir: &Path) -> anyhow::Result<(f64, f64)> {
    let store = Store::open(dir, Options::default())?;
    let mut shorts = (0..BLOCK / SHORT)
        .map(|number| Transcript::new(store.clone(), &format!("short-{number}")))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let began = Instant::now();
    for short in &mut shorts {
        short.append(SHORT)?;
    }
    let append = micros_each(began, BLOCK);
    let page = shorts.last().context("there are some")?.read_last_page()?;
    Ok((append, page))
}

/// A conversation that is written as the hub does it.
struct Transcript {
    store: Store,
    lease: Lease,
    key: ConversationKey,
    next_seq: Seq,
    next_frame: FrameNo,
}

impl Transcript {
    fn open(dir: &Path, key: &str) -> anyhow::Result<Self> {
        Self::new(Store::open(dir, Options::default())?, key)
    }

    fn new(store: Store, key: &str) -> anyhow::Result<Self> {
        let key = ConversationKey::new(key)?;
        let new = NewConversation {
            agent: "claude".to_owned(),
            workspace: "/tmp".to_owned(),
            ..NewConversation::default()
        };
        let lease = store.acquire(&key, new)?;
        let (next_seq, next_frame) = (lease.next_seq, lease.next_frame);
        Ok(Self { store, lease, key, next_seq, next_frame })
    }

    /// Appends events with their frames and waits until all are on disk.
    fn append(&mut self, n_events: u64) -> anyhow::Result<()> {
        let mut newest = None;
        for _ in 0..n_events.div_ceil(BATCH) {
            let batch = self.batch()?;
            newest = Some(self.store.append_blocking(&self.lease, batch));
        }
        // Batches are written in order, and one is not accepted without the one before it.
        newest.context("there was a batch")?.wait().map_err(|rejected| anyhow!(rejected.error))
    }

    fn batch(&mut self) -> anyhow::Result<Batch> {
        const LINE: &[u8] = br#"{"type":"assistant","message":{"id":"msg_0001","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"A sentence of the usual length, more or less."}]},"session_id":"3f0c1e5e-0000-4000-8000-000000000001"}
"#;
        let now = Timestamp::now();
        let mut frames = FrameBuf::new(self.next_frame);
        let mut events = Vec::with_capacity(BATCH as usize);
        for _ in 0..BATCH {
            frames.append(Direction::Out, now, LINE);
            events.push(self.event(now)?);
        }
        self.next_frame = frames.next();
        Ok(Batch { events, frames, ..Batch::default() })
    }

    fn event(&mut self, now: Timestamp) -> anyhow::Result<NewEvent> {
        let seq = self.next_seq;
        self.next_seq = seq.next();
        let turn = TurnId::from(format!("t{}", 1 + seq.0 / 50).as_str());
        let text = format!("A sentence of the usual length, more or less, number {seq}.");
        let body = ItemBody::AgentMessage { text: Text::from(text.as_str()) };
        let id = format!("item-{seq}").as_str().into();
        let item = Item { id, status: ItemStatus::Ok, body };
        let kind = Kind::ItemCompleted(item);
        let name = kind.name();
        let event = Event {
            v: FORMAT,
            conversation: self.key.clone(),
            seq,
            epoch: self.lease.epoch,
            ts: now,
            turn: Some(turn.clone()),
            item: kind.item().cloned(),
            parent: None,
            origin: None,
            native: Native { message: Some("msg_0001".to_owned()), ..Native::default() },
            source: Source { driver: Arc::from("claude"), version: None, frames: None },
            kind,
        };
        let json = event.to_json()?.into();
        Ok(NewEvent { seq, ts: now, kind: name, turn: Some(turn), json })
    }

    /// What an event of the last page costs to read, in microseconds.
    fn read_last_page(&self) -> anyhow::Result<f64> {
        let after = Seq(self.next_seq.0.saturating_sub(1 + PAGE as u64));
        let mut times = Vec::new();
        for _ in 0..50 {
            let began = Instant::now();
            let page = self.store.events(&self.key, after, PAGE)?;
            times.push(micros_each(began, PAGE as u64));
            ensure!(page.len() == PAGE, "the last page has {} events", page.len());
        }
        Ok(median(&times))
    }
}

fn micros_each(began: Instant, n_events: u64) -> f64 {
    began.elapsed().as_secs_f64() * 1e6 / n_events as f64
}

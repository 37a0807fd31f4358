//! A process of its own for tests: one to be killed, one to be told who holds a conversation.
//!
//! It says what it did on stdout, a line at a time, and ends when its stdin does.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tieline_event::{BlobRef, ConversationKey, FrameNo, Seq, Timestamp};
use tieline_store::{
    Batch, Commit, Direction, Filter, FrameBuf, Lease, NewConversation, NewEvent, Options, Store,
};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["hold", dir, key] => hold(Path::new(dir), key),
        ["write", dir, key] => write(Path::new(dir), key),
        ["lock", dir] => lock(Path::new(dir)),
        ["umask", mask, dir] => {
            let mask = u32::from_str_radix(mask, 8)?;
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask as _));
            hold(Path::new(dir), "umask")
        }
        ["read", dir, key] => match read(Path::new(dir), key) {
            Ok(()) => Ok(()),
            Err(err) => say(format_args!("{err}")),
        },
        ["measure", dir] => measure(Path::new(dir)),
        _ => {
            Err("usage: store-probe hold|write DIR KEY, lock DIR, umask MASK DIR, read DIR KEY, measure DIR"
                .into())
        }
    }
}

/// Reads what can be read, and tries to write.
fn read(dir: &Path, key: &str) -> Outcome {
    let store = Store::open_to_read(dir, Options::default())?;
    if store.is_read_only() {
        say(format_args!("only read"))?;
    }
    for row in store.conversations(&Filter::default())? {
        say(format_args!("conversation {}", row.key))?;
        store.holder(&row.key)?;
    }
    let key = ConversationKey::new(key)?;
    say(format_args!("events {}", store.events(&key, Seq(0), 100)?.len()))?;
    match store.post(&key, "hello".into()) {
        Err(tieline_store::Error::ReadOnly { .. }) => say(format_args!("post refused")),
        result => say(format_args!("post {result:?}")),
    }
}

fn say(line: std::fmt::Arguments<'_>) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn acquire(store: &Store, key: &str) -> Result<Lease, Box<dyn Error>> {
    let new = NewConversation { agent: "probe".into(), ..NewConversation::default() };
    Ok(store.acquire(&ConversationKey::new(key)?, new)?)
}

/// Takes a lease, writes one event and one frame, and keeps the lease until stdin ends.
fn hold(dir: &Path, key: &str) -> Outcome {
    let store = Store::open(dir, Options::default())?;
    let lease = match acquire(&store, key) {
        Ok(lease) => lease,
        Err(err) => return say(format_args!("refused {err}")),
    };
    store.append_blocking(&lease, batch(lease.next_seq, lease.next_frame, 64)).wait()?;
    say(format_args!("held {}", lease.epoch))?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    store.release(lease)?;
    say(format_args!("released"))
}

/// Keeps the whole database locked until stdin ends, as a process does that is stopped while it writes.
fn lock(dir: &Path) -> Outcome {
    let mut connection = rusqlite::Connection::open(dir.join("tieline.db"))?;
    let step = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    say(format_args!("locked"))?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    step.commit()?;
    say(format_args!("unlocked"))
}

/// Writes until it is killed. A line is the number of an event that is on disk.
fn write(dir: &Path, key: &str) -> Outcome {
    let options = Options {
        segment_bytes: 16 << 10,
        upkeep_wait: Duration::from_millis(1),
        ..Options::default()
    };
    let store = Store::open(dir, options)?;
    let lease = acquire(&store, key)?;
    let (mut seq, mut frame) = (lease.next_seq, lease.next_frame);
    let mut under_way: VecDeque<(Seq, Commit)> = VecDeque::new();
    loop {
        let next = batch(seq, frame, 1 + (seq.0 as usize * 37) % 3000);
        (seq, frame) = (seq.next(), next.frames.next());
        let commit = store.append_blocking(&lease, next);
        under_way.push_back((Seq(seq.0 - 1), commit));
        if seq.0.is_multiple_of(16) {
            drop(store.keep_up(&lease, None));
        }
        while under_way.len() > 4 {
            if let Some((written, commit)) = under_way.pop_front() {
                commit.wait()?;
                say(format_args!("{written}"))?;
            }
        }
    }
}

/// One event, its frame, and now and then a blob. What they hold follows from their number.
fn batch(seq: Seq, first: FrameNo, n_bytes: usize) -> Batch {
    let mut frames = FrameBuf::new(first);
    frames.append(Direction::Out, Timestamp::now(), vec![first.0 as u8; n_bytes]);
    let mut blobs = Vec::new();
    if seq.0.is_multiple_of(10) {
        let bytes = seq.0.to_le_bytes().repeat(1000);
        blobs.push((BlobRef::of(&bytes), bytes));
    }
    Batch { events: vec![event(seq, 200)], frames, blobs, ..Batch::default() }
}

fn event(seq: Seq, n_bytes: usize) -> NewEvent {
    let json = format!("{{\"seq\":{seq},\"text\":\"{}\"}}", "x".repeat(n_bytes));
    NewEvent {
        seq,
        ts: Timestamp::now(),
        kind: "notice",
        turn: Some("t1".into()),
        json: json.into_bytes().into(),
    }
}

/// Speed by hand; nothing asserts it.
fn measure(dir: &Path) -> Outcome {
    let store = Store::open(dir, Options::default())?;
    measure_single(&store)?;
    measure_groups(&store)?;
    measure_frames(&store)
}

fn measure_single(store: &Store) -> Outcome {
    let lease = acquire(store, "single")?;
    let mut micros = Vec::new();
    for seq in 0..5000 {
        let seq = Seq(lease.next_seq.0 + seq);
        let batch = Batch { events: vec![event(seq, 500)], ..Batch::default() };
        let start = Instant::now();
        store.append_blocking(&lease, batch).wait()?;
        micros.push(start.elapsed().as_micros());
    }
    // The first commits make the log longer, the later ones write over it.
    let later = micros.split_off(1000);
    for (what, mut micros) in [("first 1000", micros), ("later", later)] {
        micros.sort_unstable();
        let at = |part: usize| micros.get(micros.len() * part / 100).copied().unwrap_or_default();
        say(format_args!("single event, {what}: p50 {} us, p99 {} us", at(50), at(99)))?;
    }
    Ok(())
}

fn measure_groups(store: &Store) -> Outcome {
    let lease = acquire(store, "groups")?;
    let mut seq = lease.next_seq;
    for target in [1_000, 10_000, 100_000, 110_000, 1_000_000, 1_100_000] {
        let (start, from) = (Instant::now(), seq.0);
        let mut under_way = VecDeque::new();
        while seq.0 <= target {
            let events = (0..64).map(|n| event(Seq(seq.0 + n), 500)).collect();
            seq = Seq(seq.0 + 64);
            let batch = Batch { events, ..Batch::default() };
            under_way.push_back(store.append_blocking(&lease, batch));
            if under_way.len() > 2
                && let Some(commit) = under_way.pop_front()
            {
                commit.wait()?;
            }
        }
        store.flush()?;
        let (took, n) = (start.elapsed(), seq.0 - from);
        let nanos = took.as_nanos() / u128::from(n.max(1));
        say(format_args!("groups of 64 up to {target}: {n} events, {nanos} ns each"))?;
    }
    let start = Instant::now();
    for n in 0..1000 {
        store.events(&lease.key, Seq(n * 1000), 64)?;
    }
    say(format_args!("read 64 of 10^6: {} us", start.elapsed().as_micros() / 1000))
}

fn measure_frames(store: &Store) -> Outcome {
    let lease = acquire(store, "frames")?;
    let mut first = lease.next_frame;
    let lines: Vec<Vec<u8>> = (0..9973).map(line).collect();
    for per_batch in [1, 16, 160, 1600] {
        let n_frames = if per_batch == 1 { 100_000 } else { 2_000_000 };
        let start = Instant::now();
        let mut n = 0;
        let mut under_way = VecDeque::new();
        while n < n_frames {
            let mut frames = FrameBuf::with_capacity(first, per_batch * 450);
            for _ in 0..per_batch {
                let line = lines.get(n % lines.len()).map(Vec::as_slice).unwrap_or_default();
                frames.append(Direction::Out, Timestamp::from_millis(n as i64 / 500), line);
                n += 1;
            }
            first = frames.next();
            let batch = Batch { frames, ..Batch::default() };
            under_way.push_back(store.append_blocking(&lease, batch));
            if under_way.len() > 4096
                && let Some(commit) = under_way.pop_front()
            {
                commit.wait()?;
            }
        }
        store.flush()?;
        let took = start.elapsed().as_secs_f64();
        let rate = n_frames as f64 / took;
        say(format_args!("frames, {per_batch} a batch: {rate:.0}/s"))?;
    }
    say(format_args!("{:?}", store.stats()?))
}

/// Something like what an agent writes: 400 bytes, most of them seen before, some not.
fn line(n: u64) -> Vec<u8> {
    let mut noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while text.len() < 150 {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        text.push_str(&format!("word{} ", noise % 5000));
    }
    let mut line = format!(
        "{{\"type\":\"stream_event\",\"uuid\":\"{noise:016x}\",\"session_id\":\"8d0f4c2e\",\
         \"event\":{{\"type\":\"content_block_delta\",\"index\":{n},\"delta\":{{\"type\":\
         \"text_delta\",\"text\":\"{text}\"}}}},\"parent_tool_use_id\":null"
    )
    .into_bytes();
    line.resize(397, b' ');
    line.extend_from_slice(b"}}\n");
    line
}

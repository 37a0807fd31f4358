//! Lines a second from a flooding agent through driver, store and JSONL front, beside a loop that
//! parses each line once and writes one.

use std::time::Instant;

use anyhow::{Context, bail, ensure};
use tieline_event::{BlobRef, Item, ItemBody, Text};

use super::driver::{DRIVERS, Driver};
use super::median;
use super::output::{JsonLine, Output};
use super::scene::{Running, Scene};
use super::table::{Beside, Goal, Judgement, Line, Quantity};

/// A chunk of text that makes a line of about 270 bytes, as real ones are.
const CHUNK: usize = 20;

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for driver in DRIVERS {
        lines.extend(measure_driver(scene, driver)?);
    }
    Ok(lines)
}

fn measure_driver(scene: &Scene, driver: Driver) -> anyhow::Result<Vec<Line>> {
    // Where nothing streams, each line is an event that is on disk before it is shown.
    let n_lines: usize = match driver.streams() {
        true => scene.choose(1_000_000, 200_000),
        false => scene.choose(200_000, 50_000),
    };
    let n_rounds = scene.choose(5, 3);
    let script = format!("flood {n_lines} {CHUNK}");
    let mut output = Output::with_room_for(n_lines * if driver.streams() { 300 } else { 500 });
    let (mut floor, mut product) = (Vec::new(), Vec::new());
    let mut shown = Vec::new();
    let mut fewest = Streamed { n_deltas: usize::MAX, ..Streamed::default() };
    for _ in 0..n_rounds {
        let seconds = clock(|| scene.floor_on_fake(driver, &script), &mut output)?;
        let n_read = output.lines().count();
        ensure!(n_read > n_lines, "the floor wrote {n_read} lines of {n_lines}");
        floor.push(n_lines as f64 / seconds);

        let home = scene.fresh_dir()?;
        let seconds = clock(|| scene.tieline_on_fake(driver, home.path(), &script), &mut output)?;
        product.push(n_lines as f64 / seconds);
        if !driver.streams() {
            check_items(&output, n_lines)?;
            continue;
        }
        let streamed = check(&output, n_lines)?;
        shown.push(streamed.n_deltas as f64 / n_lines as f64);
        if streamed.n_deltas < fewest.n_deltas {
            fewest = streamed;
        }
    }
    let (floor, product) = (median(&floor), median(&product));
    let ratio = Quantity::Ratio(product / floor);
    let mut lines = vec![Line {
        what: format!("flood, {}", driver.name()),
        value: Quantity::LinesPerSecond(product),
        beside: Some(Beside { what: "floor", value: Quantity::LinesPerSecond(floor) }),
        judgement: Some(Judgement::new("ratio", ratio, Goal::AtLeast(Quantity::Ratio(0.5)))),
        note: format!(
            "{n_lines} {} lines in, from process start to the end of its output; medians of \
             {n_rounds} rounds in turns. {}",
            driver.flood_line(),
            match driver.streams() {
                true => "The whole text was exact each time",
                false => "Each line is an event on disk before it is shown; all were, each time",
            }
        ),
    }];
    if driver.streams() {
        // The floor writes a line for each line. A reader that falls behind gets fewer, so without
        // this number the speed would not mean much.
        lines.push(Line {
            what: format!("flood, {}, deltas shown", driver.name()),
            value: Quantity::Ratio(median(&shown)),
            beside: Some(Beside { what: "floor", value: Quantity::Ratio(1.0) }),
            judgement: None,
            note: format!(
                "lines out for each line in. The reader that fell behind most got {} deltas with \
                 {:.1} of {:.1} MB of text, and {:.1} MB again in {} deltas that told it the text \
                 so far",
                fewest.n_deltas,
                fewest.n_new as f64 / 1e6,
                (n_lines * CHUNK) as f64 / 1e6,
                fewest.n_again as f64 / 1e6,
                fewest.n_catch_ups,
            ),
        });
    }
    Ok(lines)
}

/// Whether every message came as an item of its own, in order, with its text.
fn check_items(output: &Output, n_lines: usize) -> anyhow::Result<()> {
    let mut n_items = 0;
    let mut last = String::new();
    for line in output.lines() {
        let line: JsonLine<'_> = serde_json::from_slice(line)
            .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(line)))?;
        if line.kind == "item.completed" {
            let data = line.data.context("an item has data")?;
            let item: Item = serde_json::from_str(data.get())?;
            if let ItemBody::AgentMessage { text } = &item.body {
                let expected = format!("{:x<CHUNK$}", format!("{n_items:08}"));
                ensure!(text.preview() == expected, "message {n_items} is {:?}", text.preview());
                n_items += 1;
            }
        }
        last = line.kind.into_owned();
    }
    ensure!(n_items == n_lines, "{n_items} of {n_lines} messages arrived");
    ensure!(last == "conversation.closed", "the last line is {last}");
    Ok(())
}

/// How long a process takes from its start to the end of its output.
fn clock(
    start: impl FnOnce() -> anyhow::Result<Running>,
    output: &mut Output,
) -> anyhow::Result<f64> {
    output.clear();
    let began = Instant::now();
    let mut running = start()?;
    output.read_all(&mut running.stdout)?;
    let seconds = began.elapsed().as_secs_f64();
    running.finish()?;
    Ok(seconds)
}

/// What the deltas of a run brought, in bytes of text where not counted.
#[derive(Default)]
struct Streamed {
    n_deltas: usize,
    n_new: usize,
    /// Deltas that began with text the reader knew: it had fallen behind.
    n_catch_ups: usize,
    n_again: usize,
}

/// Whether the deltas agree with the text as far as they go, without a gap, and whether the item's
/// end has the whole of it. A reader that falls behind gets fewer and longer deltas, and what it
/// missed when the item ends is in the end alone.
fn check(output: &Output, n_lines: usize) -> anyhow::Result<Streamed> {
    let expected: String =
        (0..n_lines).map(|number| format!("{:x<CHUNK$}", format!("{number:08}"))).collect();
    let mut streamed = Streamed::default();
    let (mut last, mut whole) = (String::new(), None);
    for line in output.lines() {
        let line: JsonLine<'_> = serde_json::from_slice(line)
            .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(line)))?;
        if line.kind == "delta" {
            let end = line.offset + line.text.len();
            ensure!(line.offset <= streamed.n_new, "no delta brought byte {}", streamed.n_new);
            ensure!(
                expected.get(line.offset..end) == Some(&*line.text),
                "the delta at byte {} is not what was sent",
                line.offset
            );
            let n_again = streamed.n_new.min(end) - line.offset;
            streamed.n_deltas += 1;
            streamed.n_catch_ups += usize::from(n_again > 0);
            streamed.n_again += n_again;
            streamed.n_new = streamed.n_new.max(end);
        } else if line.kind == "item.completed" {
            whole = line.data.map(|data| serde_json::from_str::<Item>(data.get())).transpose()?;
        }
        last = line.kind.into_owned();
    }
    ensure!(last == "conversation.closed", "the last line is {last}");
    match whole.context("no item was completed")?.body {
        ItemBody::AgentMessage { text: Text::Inline(text) } => {
            ensure!(text == expected, "the completed text is not what was sent");
        }
        ItemBody::AgentMessage { text: Text::Blob { blob, .. } } => {
            ensure!(
                blob == BlobRef::of(expected.as_bytes()),
                "the completed text is not what was sent"
            );
        }
        other => bail!("the last item is a {}", other.name()),
    }
    Ok(streamed)
}

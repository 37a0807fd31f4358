//! Lines a second from a flooding agent through driver, store and JSONL front, beside a loop that
//! parses each line once and writes one.

use std::time::Instant;

use anyhow::{Context, ensure};

use super::median;
use super::output::{JsonLine, Output};
use super::scene::{Running, Scene};
use super::table::{Beside, Goal, Judgement, Line, Quantity};

/// A chunk of text that makes a line of about 270 bytes, as real ones are.
const CHUNK: usize = 20;

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let n_lines: usize = scene.choose(1_000_000, 200_000);
    let n_rounds = scene.choose(5, 3);
    let script = format!("flood {n_lines} {CHUNK}");
    let mut output = Output::with_room_for(n_lines * 300);
    let (mut floor, mut product, mut n_deltas) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n_rounds {
        let seconds = clock(|| scene.floor_on_fake(&script), &mut output)?;
        let n_read = output.lines().count();
        ensure!(n_read > n_lines, "the floor wrote {n_read} lines of {n_lines}");
        floor.push(n_lines as f64 / seconds);

        let home = scene.fresh_dir()?;
        let seconds = clock(|| scene.tieline_on_fake(home.path(), &script), &mut output)?;
        product.push(n_lines as f64 / seconds);
        n_deltas.push(check(&output, n_lines)?);
    }
    let (floor, product) = (median(&floor), median(&product));
    let fewest = n_deltas.iter().min().context("there was a round")?;
    let ratio = Quantity::Ratio(product / floor);
    Ok(vec![Line {
        what: "flood",
        value: Quantity::LinesPerSecond(product),
        beside: Some(Beside { what: "floor", value: Quantity::LinesPerSecond(floor) }),
        judgement: Some(Judgement::new(
            "ratio",
            ratio,
            Goal::AtLeast(Quantity::Ratio(0.5)),
        )),
        note: format!(
            "{n_lines} stream_event lines, from process start to the end of its output; medians \
             of {n_rounds} rounds in turns; the text was whole each time, in at least {fewest} \
             deltas"
        ),
    }])
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

/// Whether the deltas make up the whole text when the turn ends, and how many there were. A reader
/// that falls behind gets fewer and longer ones.
fn check(output: &Output, n_lines: usize) -> anyhow::Result<usize> {
    let mut text = Vec::with_capacity(n_lines * CHUNK);
    let (mut n_deltas, mut last) = (0, String::new());
    for line in output.lines() {
        let line: JsonLine<'_> = serde_json::from_slice(line)
            .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(line)))?;
        if line.kind == "delta" {
            n_deltas += 1;
            let offset = usize::try_from(line.offset)?;
            let known = text.len().checked_sub(offset).context("a delta jumps ahead")?;
            let new = line.text.as_bytes().get(known..).unwrap_or_default();
            text.extend_from_slice(new);
        }
        last = line.kind.into_owned();
    }
    ensure!(last == "conversation.closed", "the last line is {last}");
    ensure!(text.len() == n_lines * CHUNK, "{} bytes of text are {}", n_lines * CHUNK, text.len());
    for (number, chunk) in text.chunks(CHUNK).enumerate() {
        let expected = format!("{:x<CHUNK$}", format!("{number:08}"));
        ensure!(chunk == expected.as_bytes(), "chunk {number} is not as it was sent");
    }
    Ok(n_deltas)
}

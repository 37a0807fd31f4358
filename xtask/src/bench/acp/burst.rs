//! Deltas a second through a bridge, beside a bare loop and beside the adapters.

use std::time::Instant;

use super::client::{Client, check_text};
use super::floor::ANSWER;
use super::peer::Peer;
use super::talk::Pace;
use super::{AGENTS, bridge};
use crate::bench::driver::Driver;
use crate::bench::median;
use crate::bench::scene::{Scene, progress};
use crate::bench::table::{Beside, Goal, Judgement, Line, Quantity};

/// Bytes of text in a delta, as real ones have.
pub(super) const CHUNK: usize = 20;

/// What one line of a bridge has at most.
const LINE: usize = 300;

/// One agent's side of the comparison, in deltas a second.
struct Rates {
    driver: Driver,
    floor: f64,
    product: f64,
    /// Lines out for each delta in.
    shown: f64,
    adapter: Peer<f64>,
}

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let n_deltas: usize = scene.choose(100_000, 50_000);
    let n_rounds = scene.choose(7, 3);
    let mut all = Vec::new();
    for driver in AGENTS {
        progress(driver.name());
        all.push(rates(scene, driver, n_deltas, n_rounds)?);
    }
    let best = all.iter().map(|it| median(&it.adapter.measured)).fold(f64::NAN, f64::max);
    let mut lines = Vec::new();
    for it in &all {
        let name = it.driver.name();
        let ratio = Quantity::Ratio(it.product / it.floor);
        lines.push(Line {
            what: format!("acp-burst, {name}"),
            value: Quantity::LinesPerSecond(it.product),
            beside: Some(Beside { what: "bare loop", value: Quantity::LinesPerSecond(it.floor) }),
            judgement: Some(Judgement::new("ratio", ratio, Goal::AtLeast(Quantity::Ratio(0.5)))),
            note: format!(
                "{n_deltas} deltas in one turn, from the prompt to its answer; medians of \
                 {n_rounds} rounds in turns; the text was exact each time. The loop writes a line \
                 for each delta, tieline joins those that came at once: {:.3} lines for each",
                it.shown
            ),
        });
        let times = Quantity::Ratio(it.product / best);
        lines.push(Line {
            what: format!("acp-burst, {name}, adapter"),
            value: Quantity::LinesPerSecond(it.product),
            beside: Some(it.adapter.beside(|all| Quantity::LinesPerSecond(median(all)))),
            judgement: best.is_finite().then(|| {
                Judgement::new("times the better", times, Goal::AtLeast(Quantity::Ratio(15.0)))
            }),
            note: format!("the same beside the adapter{}", it.adapter.note()),
        });
    }
    Ok(lines)
}

fn rates(scene: &Scene, driver: Driver, n_deltas: usize, n_rounds: u32) -> anyhow::Result<Rates> {
    // The first turn is short, so that the agent is there when the clock starts.
    let script = format!("echo\n---\nflood {n_deltas} {CHUNK}");
    let expected = flooded(n_deltas);
    let mut bare = bridge::bare_loop(scene, driver, &script)?;
    bare.ask(&driver.fake_turn("hi"), ANSWER, Pace::Full)?;
    bare.make_room_for(n_deltas * LINE);
    let home = scene.fresh_dir()?;
    let mut ours = Opened::new(bridge::tieline(scene, driver, home.path(), &script)?)?;
    ours.client.talk().make_room_for(n_deltas * LINE);
    let mut theirs = None;
    let (mut floor, mut product, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    let mut adapter = Peer::new(driver);
    for _ in 0..n_rounds {
        let began = Instant::now();
        bare.ask(&driver.fake_turn("go"), ANSWER, Pace::Full)?;
        floor.push(n_deltas as f64 / began.elapsed().as_secs_f64());
        check_text(bare.heard(), &expected)?;

        let (rate, n_chunks) = ours.turn(n_deltas, &expected)?;
        product.push(rate);
        shown.push(n_chunks as f64 / n_deltas as f64);

        adapter.add(|| {
            let open = match theirs.take() {
                Some(open) => theirs.insert(open),
                None => {
                    let mut open = Opened::new(bridge::adapter(scene, driver, &script)?)?;
                    open.client.talk().make_room_for(n_deltas * LINE);
                    theirs.insert(open)
                }
            };
            Ok(open.turn(n_deltas, &expected)?.0)
        });
    }
    bare.finish()?;
    ours.client.finish()?;
    if let Some(open) = theirs {
        open.client.finish()?;
    }
    let (floor, product, shown) = (median(&floor), median(&product), median(&shown));
    Ok(Rates { driver, floor, product, shown, adapter })
}

/// A client whose agent is awake.
struct Opened {
    client: Client,
    session: String,
}

impl Opened {
    fn new(mut client: Client) -> anyhow::Result<Self> {
        client.initialize()?;
        let session = client.new_session()?;
        client.prompt(&session, "hi", Pace::Full)?;
        Ok(Self { client, session })
    }

    /// Deltas a second, and how many lines they came in.
    fn turn(&mut self, n_deltas: usize, expected: &str) -> anyhow::Result<(f64, usize)> {
        let began = Instant::now();
        self.client.prompt(&self.session, "go", Pace::Full)?;
        let rate = n_deltas as f64 / began.elapsed().as_secs_f64();
        Ok((rate, self.client.check_text(expected)?))
    }
}

/// The text of a flood.
pub(super) fn flooded(n_deltas: usize) -> String {
    (0..n_deltas).map(|number| format!("{:x<CHUNK$}", format!("{number:08}"))).collect()
}

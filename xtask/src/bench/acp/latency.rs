//! What a delta takes from the agent's write to the client's read.

use super::AGENTS;
use super::bridge;
use super::client::{Client, chunk_text};
use super::peer::Peer;
use super::talk::Pace;
use crate::bench::driver::Driver;
use crate::bench::latency::{PACE_MICROS, delays_in, stamps_of_agent};
use crate::bench::scene::Scene;
use crate::bench::table::{Beside, Goal, Judgement, Line, Quantity};
use crate::bench::{median, percentile};

/// One turn, in microseconds.
struct Turn {
    first: f64,
    p50: f64,
    p99: f64,
}

type Number = fn(&Turn) -> f64;

impl Turn {
    fn new(micros: &[f64]) -> Self {
        let first = micros.first().copied().unwrap_or(f64::NAN);
        Self { first, p50: median(micros), p99: percentile(micros, 0.99) }
    }
}

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for driver in AGENTS {
        lines.extend(measure_driver(scene, driver)?);
    }
    Ok(lines)
}

fn measure_driver(scene: &Scene, driver: Driver) -> anyhow::Result<Vec<Line>> {
    let n_deltas = scene.choose(1000, 300);
    let n_rounds = scene.choose(7, 3);
    let script = format!("echo\n---\nstamped {n_deltas} {PACE_MICROS}");
    let home = scene.fresh_dir()?;
    let mut alone = bridge::agent_alone(scene, driver, &script)?;
    alone.ask(&driver.fake_turn("hi"), driver.end_of_turn(), Pace::Full)?;
    let (mut ours, session) = opened(bridge::tieline(scene, driver, home.path(), &script)?)?;
    let mut theirs = None;
    let (mut floor, mut product, mut peer) = (Vec::new(), Vec::new(), Peer::new(driver));
    for _ in 0..n_rounds {
        alone.ask(&driver.fake_turn("go"), driver.end_of_turn(), Pace::Full)?;
        let stamps = stamps_of_agent(driver);
        floor.push(Turn::new(&delays_in(alone.heard(), alone.arrivals(), n_deltas, stamps)?));
        product.push(turn(&mut ours, &session, n_deltas)?);
        peer.add(|| {
            let (client, session) = match theirs.take() {
                Some(open) => theirs.insert(open),
                None => theirs.insert(opened(bridge::adapter(scene, driver, &script)?)?),
            };
            turn(client, session, n_deltas)
        });
    }
    alone.finish()?;
    ours.finish()?;
    if let Some((client, _)) = theirs {
        client.finish()?;
    }
    let middle = |turns: &[Turn], number: Number| {
        Quantity::Micros(median(&turns.iter().map(number).collect::<Vec<_>>()))
    };
    let note = format!(
        "{n_deltas} deltas, one every {PACE_MICROS} µs, from the agent's clock to the client's; \
         medians of {n_rounds} turns on one session, in turns"
    );
    let mut lines = Vec::new();
    let numbers: [(&str, Number); 3] =
        [("first delta", |it| it.first), ("p50", |it| it.p50), ("p99", |it| it.p99)];
    for (what, number) in numbers {
        let value = middle(&product, number);
        let goal = Goal::Below(Quantity::Micros(1000.0));
        lines.push(Line {
            what: format!("acp-latency, {}, {what}", driver.name()),
            value,
            beside: Some(Beside { what: "bare pipe", value: middle(&floor, number) }),
            judgement: (what == "first delta").then(|| Judgement::new("", value, goal)),
            note: note.clone(),
        });
        lines.push(Line {
            what: format!("acp-latency, {}, {what}, adapter", driver.name()),
            value,
            beside: Some(peer.beside(|turns| middle(turns, number))),
            judgement: None,
            note: format!("the same beside the adapter{}", peer.note()),
        });
    }
    Ok(lines)
}

fn opened(mut client: Client) -> anyhow::Result<(Client, String)> {
    client.initialize()?;
    let session = client.new_session()?;
    client.prompt(&session, "hi", Pace::Full)?;
    Ok((client, session))
}

fn turn(client: &mut Client, session: &str, n_deltas: usize) -> anyhow::Result<Turn> {
    client.prompt(session, "go", Pace::Full)?;
    let talk = client.talk();
    Ok(Turn::new(&delays_in(talk.heard(), talk.arrivals(), n_deltas, stamps_of_chunk)?))
}

fn stamps_of_chunk(line: &[u8]) -> anyhow::Result<Option<String>> {
    Ok(chunk_text(line)?.map(|text| String::from_utf8_lossy(text).into_owned()))
}

//! What a bridge adds to a short turn, beside the agent alone.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use super::opening::micros;
use super::peer::Peer;
use super::talk::Pace;
use super::{AGENTS, bridge};
use crate::bench::driver::Driver;
use crate::bench::scene::Scene;
use crate::bench::table::{Beside, Goal, Judgement, Line, Quantity};
use crate::bench::{median, percentile};

const PROMPT: &str = "hi";

/// The first turns fill caches.
const WARM_UP: usize = 5;

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for driver in AGENTS {
        lines.extend(measure_driver(scene, driver)?);
    }
    Ok(lines)
}

fn measure_driver(scene: &Scene, driver: Driver) -> anyhow::Result<Vec<Line>> {
    let n_turns = scene.choose(300, 60);
    let home = scene.fresh_dir()?;
    let mut alone = bridge::agent_alone(scene, driver, "echo")?;
    let mut ours = bridge::tieline(scene, driver, home.path(), "echo")?;
    ours.initialize()?;
    let our_session = ours.new_session()?;
    let (mut floor, mut product, mut sync) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..WARM_UP + n_turns {
        let began = Instant::now();
        alone.ask(&driver.fake_turn(PROMPT), driver.end_of_turn(), Pace::Full)?;
        floor.push(micros(began));
        let began = Instant::now();
        ours.prompt(&our_session, PROMPT, Pace::Full)?;
        product.push(micros(began));
        ours.check_text(PROMPT)?;
        sync.push(sync_once(&home.path().join("sync"))?);
        if turn < WARM_UP {
            for all in [&mut floor, &mut product, &mut sync] {
                all.clear();
            }
        }
    }
    alone.finish()?;
    ours.finish()?;
    let peer = measure_adapter(scene, driver, n_turns)?;
    let note = format!(
        "from the prompt to its answer, {n_turns} echoes on one session, in turns; beside the agent \
         driven over its own wire. Writing 4 KiB and waiting for the disk takes {:.0} µs here, and \
         nothing is shown before that",
        median(&sync)
    );
    let line = |what: &str, share: f64| Line {
        what: format!("acp-prompt, {}, {what}", driver.name()),
        value: Quantity::Micros(percentile(&product, share)),
        beside: Some(Beside {
            what: "agent alone",
            value: Quantity::Micros(percentile(&floor, share)),
        }),
        judgement: None,
        note: note.clone(),
    };
    let mut p50 = line("p50", 0.5);
    let added = Quantity::Micros(median(&product) - median(&floor));
    let goal = Goal::Below(Quantity::Micros(1000.0));
    p50.judgement = Some(Judgement::new("added", added, goal));
    let beside_adapter = |what: &str, share: f64| Line {
        beside: Some(peer.beside(|all| Quantity::Micros(percentile(all, share)))),
        note: format!("the same beside the adapter, whose turns came after{}", peer.note()),
        ..line(&format!("{what}, adapter"), share)
    };
    Ok(vec![p50, beside_adapter("p50", 0.5), line("p99", 0.99), beside_adapter("p99", 0.99)])
}

/// The same turns with the adapter. They come after ours: an adapter goes on working for milliseconds
/// after its answer, and who is measured next would pay for that.
fn measure_adapter(scene: &Scene, driver: Driver, n_turns: usize) -> anyhow::Result<Peer<f64>> {
    let mut peer = Peer::new(driver);
    let mut theirs = None;
    for turn in 0..WARM_UP + n_turns {
        peer.add(|| {
            let (client, session) = match theirs.take() {
                Some(open) => theirs.insert(open),
                None => {
                    let mut client = bridge::adapter(scene, driver, "echo")?;
                    client.initialize()?;
                    let session = client.new_session()?;
                    theirs.insert((client, session))
                }
            };
            let began = Instant::now();
            client.prompt(session, PROMPT, Pace::Full)?;
            let took = micros(began);
            client.check_text(PROMPT)?;
            Ok(took)
        });
        if turn < WARM_UP {
            peer.measured.clear();
        }
    }
    if let Some((client, _)) = theirs {
        client.finish()?;
    }
    Ok(peer)
}

/// How long the disk takes for a page, in microseconds.
fn sync_once(path: &std::path::Path) -> anyhow::Result<f64> {
    let mut file = File::options().append(true).create(true).open(path)?;
    let began = Instant::now();
    file.write_all(&[b'x'; 4096])?;
    file.sync_data()?;
    Ok(micros(began))
}

//! Time to the answers an editor waits for before it can be used.

use std::time::Instant;

use super::client::Client;
use super::peer::Peer;
use super::talk::Pace;
use super::{AGENTS, bridge};
use crate::bench::driver::Driver;
use crate::bench::median;
use crate::bench::scene::Scene;
use crate::bench::table::{Goal, Judgement, Line, Quantity};

/// What one process took, in microseconds.
struct Opened {
    /// From its start to the answer to `initialize`.
    initialize: f64,
    /// From `session/new` to its answer.
    session_new: f64,
    /// From `session/new` to the answer to a first prompt.
    first_turn: f64,
}

pub(super) fn initialize(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for driver in AGENTS {
        let (ours, theirs) = rounds(scene, driver)?;
        let micros = middle(&ours, |it| it.initialize);
        let goal = Goal::Below(Quantity::Micros(10_000.0));
        lines.push(Line {
            what: format!("acp-initialize, {}", driver.name()),
            value: Quantity::Micros(micros),
            beside: Some(theirs.beside(|it| Quantity::Micros(middle(it, |it| it.initialize)))),
            judgement: Some(Judgement::new("", Quantity::Micros(micros), goal)),
            note: format!(
                "from process start to the answer, in a store that exists; medians of {} rounds in \
                 turns{}",
                ours.len(),
                theirs.note()
            ),
        });
    }
    Ok(lines)
}

pub(super) fn session_new(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for driver in AGENTS {
        let (ours, theirs) = rounds(scene, driver)?;
        let line = |what: &str, number: fn(&Opened) -> f64, note: &str| Line {
            what: format!("acp-session-new, {}{what}", driver.name()),
            value: Quantity::Micros(middle(&ours, number)),
            beside: Some(theirs.beside(|it| Quantity::Micros(middle(it, number)))),
            judgement: None,
            note: format!("{note}; medians of {} rounds in turns{}", ours.len(), theirs.note()),
        };
        lines.push(line(
            "",
            |it| it.session_new,
            "from the first session/new of a process to its answer. tieline answers at once and \
             starts the agent meanwhile, the adapters wait for it",
        ));
        lines.push(line(
            ", first turn",
            |it| it.first_turn,
            "from session/new to the answer to a prompt that follows at once",
        ));
    }
    Ok(lines)
}

fn middle(all: &[Opened], number: fn(&Opened) -> f64) -> f64 {
    median(&all.iter().map(number).collect::<Vec<_>>())
}

fn rounds(scene: &Scene, driver: Driver) -> anyhow::Result<(Vec<Opened>, Peer<Opened>)> {
    let n_rounds = scene.choose(15, 5);
    let home = scene.fresh_dir()?;
    // The first ones make a store and fill caches.
    open(|| bridge::tieline(scene, driver, home.path(), "echo"))?;
    let (mut ours, mut theirs) = (Vec::new(), Peer::new(driver));
    theirs.add(|| open(|| bridge::adapter(scene, driver, "echo")));
    theirs.measured.clear();
    for _ in 0..n_rounds {
        theirs.add(|| open(|| bridge::adapter(scene, driver, "echo")));
        ours.push(open(|| bridge::tieline(scene, driver, home.path(), "echo"))?);
    }
    Ok((ours, theirs))
}

fn open(start: impl FnOnce() -> anyhow::Result<Client>) -> anyhow::Result<Opened> {
    let began = Instant::now();
    let mut client = start()?;
    client.initialize()?;
    let initialize = micros(began);
    let began = Instant::now();
    let session = client.new_session()?;
    let session_new = micros(began);
    client.prompt(&session, "hi", Pace::Full)?;
    let first_turn = micros(began);
    client.check_text("hi")?;
    client.finish()?;
    Ok(Opened { initialize, session_new, first_turn })
}

pub(super) fn micros(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e6
}

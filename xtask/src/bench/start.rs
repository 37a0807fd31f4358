//! Time from process start to the first event, with the demo agent.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;

use super::median;
use super::output::Output;
use super::scene::Scene;
use super::table::{Beside, Line, Quantity};

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let n_rounds = scene.choose(15, 5);
    let home = scene.fresh_dir()?;
    // A store is made once and used ever after.
    first_lines(scene, home.path())?;
    let (mut version, mut event, mut delta) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n_rounds {
        version.push(bare_start(scene, home.path())?);
        let (first_event, first_delta) = first_lines(scene, home.path())?;
        event.push(first_event);
        delta.push(first_delta);
    }
    let line = |what: &str, micros: &[f64], note: &str| Line {
        what: what.to_owned(),
        value: Quantity::Micros(median(micros)),
        beside: Some(Beside { what: "--version", value: Quantity::Micros(median(&version)) }),
        judgement: None,
        note: format!("{note}; median of {n_rounds}, in a store that exists"),
    };
    Ok(vec![
        line("start to first event", &event, "until the first JSON line can be read"),
        line("start to first delta", &delta, "until the first words of the demo agent can be read"),
    ])
}

/// When a process that does nothing has said so, in microseconds.
fn bare_start(scene: &Scene, home: &Path) -> anyhow::Result<f64> {
    let mut tieline = scene.tieline(home);
    tieline.arg("--version");
    let began = Instant::now();
    let mut running = scene.start("tieline --version", tieline)?;
    let mut output = Output::default();
    output.read(&mut running.stdout)?;
    let micros = began.elapsed().as_secs_f64() * 1e6;
    running.finish()?;
    Ok(micros)
}

/// When the first event and the first delta can be read, in microseconds.
fn first_lines(scene: &Scene, home: &Path) -> anyhow::Result<(f64, f64)> {
    let mut tieline = scene.tieline(home);
    tieline.args(["run", "--agent", "demo", "--format", "jsonl", "hi"]);
    let began = Instant::now();
    let mut running = scene.start("tieline run", tieline)?;
    let mut output = Output::default();
    let (mut event, mut delta) = (None, None);
    while output.read(&mut running.stdout)? > 0 {
        let micros = began.elapsed().as_secs_f64() * 1e6;
        if event.is_none() && output.bytes().contains(&b'\n') {
            event = Some(micros);
        }
        if delta.is_none() && output.lines().any(is_delta) {
            delta = Some(micros);
        }
    }
    running.finish()?;
    Ok((event.context("no line was written")?, delta.context("the agent said nothing")?))
}

fn is_delta(line: &[u8]) -> bool {
    line.starts_with(br#"{"v":1,"kind":"delta""#)
}

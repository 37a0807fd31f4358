//! Resident memory of a bridge, without its agents: at rest, and with a client that hardly reads.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tieline_testkit::probe;

use super::burst::{CHUNK, flooded};
use super::client::Client;
use super::peer::Peer;
use super::talk::Pace;
use super::{AGENTS, bridge};
use crate::bench::driver::Driver;
use crate::bench::scene::{Scene, progress};
use crate::bench::table::{Goal, Judgement, Line, Quantity};

/// Bytes of one bridge.
struct Resident {
    /// With one session that has had a turn.
    at_rest: f64,
    /// Of which other processes than the bridge's first one have.
    helpers: f64,
    /// The most it had during the flood.
    peak: f64,
}

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for driver in AGENTS {
        progress(driver.name());
        lines.extend(measure_driver(scene, driver)?);
    }
    Ok(lines)
}

fn measure_driver(scene: &Scene, driver: Driver) -> anyhow::Result<Vec<Line>> {
    let n_deltas: usize = scene.choose(1_000_000, 200_000);
    // They are slow, and whatever is not read stays in their memory.
    let n_for_adapter = n_deltas / 5;
    let home = scene.fresh_dir()?;
    let client = bridge::tieline(scene, driver, home.path(), &script(n_deltas))?;
    let ours = resident(client, n_deltas)?;
    let mut theirs = Peer::new(driver);
    theirs.add(|| resident(bridge::adapter(scene, driver, &script(n_for_adapter))?, n_for_adapter));
    let one = |all: &[Resident], number: fn(&Resident) -> f64| {
        Quantity::Bytes(all.first().map_or(f64::NAN, number))
    };
    let line = |what: &str, number: fn(&Resident) -> f64, limit: f64, note: String| Line {
        what: format!("acp-memory, {}, {what}", driver.name()),
        value: Quantity::Bytes(number(&ours)),
        beside: Some(theirs.beside(|all| one(all, number))),
        judgement: Some(Judgement::new(
            "",
            Quantity::Bytes(number(&ours)),
            Goal::Below(Quantity::Bytes(limit)),
        )),
        note: format!("{note}{}", theirs.note()),
    };
    Ok(vec![
        line(
            "at rest",
            |it| it.at_rest,
            25e6,
            format!(
                "resident pages of the bridge with one session after a turn, the agent not counted; \
                 of tieline's, {:.1} MB are the host of the agent and mostly shared with it",
                ours.helpers / 1e6
            ),
        ),
        line(
            "slow client",
            |it| it.peak,
            64e6,
            format!(
                "the most it ever had with {n_deltas} deltas of {CHUNK} bytes in one turn \
                 ({n_for_adapter} for the adapter) and a client that reads nothing for 2 s and then \
                 64 KiB every 4 ms; the text was exact"
            ),
        ),
    ])
}

fn script(n_deltas: usize) -> String {
    format!("echo\n---\nflood {n_deltas} {CHUNK}")
}

fn resident(mut client: Client, n_deltas: usize) -> anyhow::Result<Resident> {
    client.initialize()?;
    let session = client.new_session()?;
    client.prompt(&session, "hi", Pace::Full)?;
    thread::sleep(Duration::from_millis(300));
    let pid = client.talk().pid();
    let own = probe::rss_kib(pid).context("/proc does not know the bridge")?;
    let helpers: u64 = helpers(pid).into_iter().filter_map(probe::rss_kib).sum();
    client.prompt(&session, "go", Pace::Slow)?;
    client.check_text(&flooded(n_deltas))?;
    let peak = probe::peak_rss_kib(pid).context("/proc does not know the bridge")?;
    client.finish()?;
    let bytes = |kib: u64| kib as f64 * 1024.0;
    Ok(Resident { at_rest: bytes(own + helpers), helpers: bytes(helpers), peak: bytes(peak) })
}

/// The children of a process that are no agents.
fn helpers(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children = children.flat_map(|text| {
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    });
    children.filter(|pid| !is_agent(*pid)).collect()
}

fn is_agent(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.ends_with("fake-agent"))
}

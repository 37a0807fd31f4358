//! Speed and memory, each number beside a floor that was measured in the same run.
//!
//! The programs are release builds. Whatever is compared runs in turns (floor, product, floor, …)
//! and medians are compared, so that a busy machine slows both.

mod acp;
mod driver;
mod engine;
mod flood;
mod floor;
mod growth;
mod interrupt;
mod latency;
mod memory;
mod output;
mod scene;
mod start;
mod table;
mod work;

use std::path::PathBuf;

use anyhow::bail;

use driver::Driver;
use scene::Scene;
use table::{Line, Table};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure only this; may be given several times.
    #[arg(long, value_name = "ROW")]
    only: Vec<Row>,
    /// Measure less: a look at the order of magnitude.
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn wants(&self, row: Row) -> bool {
        self.only.is_empty() || self.only.contains(&row)
    }

    /// Whether a row is wanted that runs programs of others.
    pub(crate) fn wants_agents(&self) -> bool {
        ROWS.into_iter().any(|row| self.wants(row) && runs_agents(row))
    }
}

fn runs_agents(row: Row) -> bool {
    matches!(row, Row::Work | Row::EngineHello | Row::EngineMemory) || acp::has(row)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Row {
    /// Lines a second from a flooding agent, for each driver.
    Flood,
    /// What a delta takes from the agent to the reader.
    Latency,
    /// Time to the first event.
    Start,
    /// Time to the first byte of a real agent's work, for each driver.
    Work,
    /// Resident memory at rest and for each idle conversation.
    Memory,
    /// Cost of an event in a short and in a long conversation.
    Growth,
    /// How soon an interrupt acts: in a turn, while the agent starts or stops, in a locked store.
    Interrupt,
    /// ACP: time from process start to the answer to `initialize`.
    AcpInitialize,
    /// ACP: time to open a session, and to its first turn.
    AcpSessionNew,
    /// ACP: round trip of a short prompt.
    AcpPrompt,
    /// ACP: deltas a second in one turn.
    AcpBurst,
    /// ACP: what a delta takes from the agent to the client.
    AcpLatency,
    /// ACP: resident memory at rest and with a slow client.
    AcpMemory,
    /// ACP: time to load a long conversation.
    AcpLoad,
    /// The engine: wall time of one turn, beside `codex exec`.
    EngineHello,
    /// The engine: the most memory of one turn, beside `codex exec`.
    EngineMemory,
    /// The engine: many sessions at once in one process.
    EngineSessions,
}

const ROWS: [Row; 17] = [
    Row::Flood,
    Row::Latency,
    Row::Start,
    Row::Work,
    Row::Memory,
    Row::Growth,
    Row::Interrupt,
    Row::AcpInitialize,
    Row::AcpSessionNew,
    Row::AcpPrompt,
    Row::AcpBurst,
    Row::AcpLatency,
    Row::AcpMemory,
    Row::AcpLoad,
    Row::EngineHello,
    Row::EngineMemory,
    Row::EngineSessions,
];

/// Processes that are measured and are not the product.
#[derive(clap::Subcommand)]
pub(crate) enum Probe {
    /// Parse each line of stdin once and write one line.
    Floor {
        /// Whose lines they are.
        driver: Driver,
    },
    /// Parse each line of stdin once and write one ACP update for each delta.
    AcpFloor {
        /// Whose lines they are.
        driver: Driver,
    },
    /// Hold idle conversations and say how much memory that takes.
    Memory {
        /// A directory for the store.
        dir: PathBuf,
        /// How many conversations.
        n_conversations: u64,
    },
    /// Interrupt turns and say how soon that acted.
    Interrupt {
        /// A directory for the store.
        dir: PathBuf,
        /// How many times each.
        n_rounds: u32,
    },
    /// Hold sessions of the engine that all talk at once, and say what each turn took.
    Sessions(engine::SessionsArgs),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.wants_agents() {
        // They run where they reach nothing but the scripted model.
        work::go_where_nothing_can_be_reached()?;
    }
    let scene = Scene::new(args.quick)?;
    let mut table = Table::new(&scene)?;
    let mut failed = Vec::new();
    for row in ROWS {
        if !args.wants(row) {
            continue;
        }
        scene::progress(&format!("{row:?}"));
        match measure(row, &scene) {
            Ok(lines) => table.extend(lines),
            Err(err) => failed.push(format!("{row:?}: {err:#}")),
        }
    }
    table.print(args.json)?;
    // A missed goal is a result; a row that could not be measured is an error.
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

pub(crate) fn probe(probe: &Probe) -> anyhow::Result<()> {
    match probe {
        Probe::Floor { driver } => floor::main(*driver),
        Probe::AcpFloor { driver } => acp::floor_main(*driver),
        Probe::Memory { dir, n_conversations } => memory::main(dir, *n_conversations),
        Probe::Interrupt { dir, n_rounds } => interrupt::main(dir, *n_rounds),
        Probe::Sessions(args) => engine::sessions_main(args),
    }
}

fn measure(row: Row, scene: &Scene) -> anyhow::Result<Vec<Line>> {
    match row {
        Row::Flood => flood::measure(scene),
        Row::Latency => latency::measure(scene),
        Row::Start => start::measure(scene),
        Row::Work => work::measure(scene),
        Row::Memory => memory::measure(scene),
        Row::Growth => growth::measure(scene),
        Row::Interrupt => interrupt::measure(scene),
        Row::EngineHello => engine::hello(scene),
        Row::EngineMemory => engine::memory(scene),
        Row::EngineSessions => engine::sessions(scene),
        row => acp::measure(row, scene),
    }
}

/// The middle of some measurements.
fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value that this share of the measurements does not exceed.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * share).ceil().max(1.0) as usize - 1;
    sorted.get(rank).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), 2.0);
        assert_eq!(percentile(&values, 0.99), 4.0);
        assert_eq!(percentile(&[7.0], 0.5), 7.0);
    }
}

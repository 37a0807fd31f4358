//! `tieline acp` beside the reference adapters and beside the agent alone, all on the fake agent.
//!
//! A bridge stands between an editor and an agent. Each measured one has a client that does as little
//! as a client can: it looks for the answer it waits for, and reads the rest when the clock has
//! stopped.

mod bridge;
mod burst;
mod client;
mod floor;
mod latency;
mod load;
mod memory;
mod opening;
mod peer;
mod prompt;
mod talk;

use super::Row;
use super::driver::Driver;
use super::scene::Scene;
use super::table::Line;

pub(super) use floor::main as floor_main;

/// The agents that both we and a reference adapter bring to ACP.
const AGENTS: [Driver; 2] = [Driver::Claude, Driver::Codex];

/// Whether a row is one of these.
pub(super) fn has(row: Row) -> bool {
    matches!(
        row,
        Row::AcpInitialize
            | Row::AcpSessionNew
            | Row::AcpPrompt
            | Row::AcpBurst
            | Row::AcpLatency
            | Row::AcpMemory
            | Row::AcpLoad
    )
}

pub(super) fn measure(row: Row, scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let measure = match row {
        Row::AcpInitialize => opening::initialize,
        Row::AcpSessionNew => opening::session_new,
        Row::AcpPrompt => prompt::measure,
        Row::AcpBurst => burst::measure,
        Row::AcpLatency => latency::measure,
        Row::AcpMemory => memory::measure,
        Row::AcpLoad => load::measure,
        other => anyhow::bail!("{other:?} is no row of ACP"),
    };
    measure(scene)
}

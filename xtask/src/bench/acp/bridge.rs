//! The programs between the client and the fake agent.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, anyhow};
use tieline_testkit::acp::Adapter;
use tieline_testkit::agents;

use super::client::Client;
use super::talk::Talk;
use crate::bench::driver::Driver;
use crate::bench::scene::Scene;

/// `tieline acp` with the fake agent as this agent.
pub(super) fn tieline(
    scene: &Scene,
    driver: Driver,
    home: &Path,
    script: &str,
) -> anyhow::Result<Client> {
    let mut tieline = scene.tieline(home);
    tieline.args(["acp", "--agent", driver.name()]).stdin(Stdio::piped());
    scene.put_fake_behind(&mut tieline, driver.variable(), driver, script);
    let mut running = scene.start("tieline", tieline)?;
    let stdin = running.take_stdin().context("the input is a pipe")?;
    Ok(Client::new(Talk::new(running, stdin), scene))
}

/// The reference adapter for this agent, with the fake agent as it.
pub(super) fn adapter(scene: &Scene, driver: Driver, script: &str) -> anyhow::Result<Client> {
    let adapter = adapter_of(driver);
    let mut node = scene.clean(agents::node().map_err(|err| anyhow!(err))?);
    node.arg(adapter.script().map_err(|err| anyhow!(err))?);
    node.env("NO_BROWSER", "1").current_dir(scene.workspace()).stdin(Stdio::piped());
    scene.put_fake_behind(&mut node, adapter.variable(), driver, script);
    let mut running = scene.start(adapter.name(), node)?;
    let stdin = running.take_stdin().context("the input is a pipe")?;
    Ok(Client::new(Talk::new(running, stdin), scene))
}

pub(super) fn adapter_of(driver: Driver) -> Adapter {
    match driver {
        Driver::Claude => Adapter::Claude,
        Driver::Codex | Driver::CodexExec | Driver::CodexProto => Adapter::Codex,
    }
}

/// The fake agent alone, driven over its own wire.
pub(super) fn agent_alone(scene: &Scene, driver: Driver, script: &str) -> anyhow::Result<Talk> {
    let mut running = scene.start("the fake agent", scene.fake_with_turns(driver, script))?;
    let stdin = running.take_stdin().context("the input is a pipe")?;
    let mut talk = Talk::new(running, stdin);
    talk.say(&driver.fake_opening())?;
    Ok(talk)
}

/// The floor behind the fake agent: see [`super::floor`].
pub(super) fn bare_loop(scene: &Scene, driver: Driver, script: &str) -> anyhow::Result<Talk> {
    let (running, prompts) = scene.probe_on_turns(driver, script, "acp-floor")?;
    let mut talk = Talk::new(running, prompts);
    talk.say(&driver.fake_opening())?;
    Ok(talk)
}

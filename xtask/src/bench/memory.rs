//! Resident memory of a process that holds a hub, with no conversation and for each idle one.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tieline_agent::Agent;
use tieline_agent::claude::{Claude, Lifetime};
use tieline_event::{ConversationKey, Failure, Kind, Prompt, Seq};
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry};
use tieline_proc::Env;
use tieline_store::{Options, Store};
use tieline_testkit::{probe, real};
use tokio::task::JoinSet;

use super::output::Output;
use super::scene::Scene;
use super::table::{Goal, Judgement, Line, Quantity};
use crate::command;

/// How many conversations are awake at a time.
const AWAKE: u64 = 20;

/// What the probe says, in bytes.
#[derive(Serialize, Deserialize)]
struct Resident {
    at_rest: f64,
    with_conversations: f64,
}

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let n_conversations: u64 = scene.choose(200, 40);
    let dir = scene.fresh_dir()?;
    let mut command = command(env::current_exe()?);
    command.args(["bench-probe", "memory"]).arg(dir.path()).arg(n_conversations.to_string());
    let mut running = scene.start("the memory probe", command)?;
    let mut output = Output::default();
    output.read_all(&mut running.stdout)?;
    running.finish()?;
    let resident: Resident = serde_json::from_slice(output.bytes())?;
    let each = (resident.with_conversations - resident.at_rest) / n_conversations as f64;
    let line = |what: &str, bytes, limit, note| Line {
        what: what.to_owned(),
        value: Quantity::Bytes(bytes),
        beside: None,
        judgement: Some(Judgement::new(
            "",
            Quantity::Bytes(bytes),
            Goal::Below(Quantity::Bytes(limit)),
        )),
        note,
    };
    Ok(vec![
        line(
            "memory at rest",
            resident.at_rest,
            15e6,
            "resident pages of a fresh process with an open hub and store".to_owned(),
        ),
        line(
            "memory per idle conversation",
            each,
            256.0 * 1024.0,
            format!(
                "what {n_conversations} conversations added, {AWAKE} awake at a time, each after \
                 one turn and asleep; {:.1} MB in all, memory not trimmed",
                resident.with_conversations / 1e6
            ),
        ),
    ])
}

/// The process that is measured.
pub(super) fn main(dir: &Path, n_conversations: u64) -> anyhow::Result<()> {
    // As the product's own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let resident = runtime.block_on(hold(dir, n_conversations))?;
    serde_json::to_writer(io::stdout(), &resident)?;
    Ok(io::stdout().flush()?)
}

async fn hold(dir: &Path, n_conversations: u64) -> anyhow::Result<Resident> {
    let store = Store::open(&dir.join("store"), Options::default())?;
    let limits = Limits { idle: Duration::from_millis(1), ..Limits::default() };
    let hub = Hub::new(store, Arc::new(Fake::new()), limits);
    let workspace = dir.join("workspace");
    fs::create_dir(&workspace)?;
    let at_rest = resident_bytes()?;
    let mut held: Vec<Conversation> = Vec::new();
    for first in (0..n_conversations).step_by(AWAKE as usize) {
        let mut awake = JoinSet::new();
        for number in first..n_conversations.min(first + AWAKE) {
            awake.spawn(one_turn(hub.clone(), number, workspace.clone()));
        }
        for conversation in awake.join_all().await {
            held.push(conversation?);
        }
    }
    // The last ones fall asleep within their turn's last events; the rest is long asleep.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let with_conversations = resident_bytes()?;
    ensure!(held.iter().all(|it| !it.is_closed()), "a conversation ended");
    hub.close_all().await;
    Ok(Resident { at_rest, with_conversations })
}

/// A conversation that has had one turn and whose agent sleeps.
async fn one_turn(hub: Hub, number: u64, workspace: PathBuf) -> anyhow::Result<Conversation> {
    let key = ConversationKey::new(&format!("bench-{number}"))?;
    let options = OpenOptions {
        agent: Some("claude".to_owned()),
        workspace: Some(workspace),
        ..OpenOptions::default()
    };
    let conversation = hub.conversation(&key, options).await?;
    let mut subscription = conversation.subscribe(Seq(0));
    conversation.start_turn(Prompt::text("go")).await?;
    loop {
        let entries = subscription.next().await?;
        ensure!(!entries.is_empty(), "{key} ended");
        let slept = entries.iter().any(|entry| match entry {
            Entry::Event(shown) => matches!(shown.event.kind, Kind::ProcessExited(_)),
            Entry::Delta(_) => false,
        });
        if slept {
            return Ok(conversation);
        }
    }
}

/// The fake agent as `claude`.
struct Fake {
    program: PathBuf,
    env: Env,
}

impl Fake {
    fn new() -> Self {
        let mut env = Env::empty();
        env.set("PATH", "/usr/bin:/bin");
        env.set("FAKE_AGENT_SCRIPT", "say One turn with a few words in it.");
        Self { program: real::fake_agent_program(), env }
    }
}

impl Registry for Fake {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::new(Claude {
            program: self.program.clone(),
            args: Vec::new(),
            env: self.env.clone(),
            lifetime: Lifetime::Conversation,
            preamble: false,
            name: "claude",
            is_root: false,
        }))
    }
}

fn resident_bytes() -> anyhow::Result<f64> {
    let kib = probe::rss_kib(std::process::id()).context("/proc does not know this process")?;
    Ok(kib as f64 * 1024.0)
}

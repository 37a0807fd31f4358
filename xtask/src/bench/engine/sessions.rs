//! Many sessions at once in one process: whether each hears its own answers, what they weigh, and
//! how much time we add to a step beside the model's own.
//!
//! The model is in this process, the sessions are in another. It says what each answer took it, from
//! the whole request to the last byte; what the turn took beyond that is ours, the way through the
//! loopback included. A turn here is one step: one request, one answer.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tieline_agent::Agent;
use tieline_engine::model::Provider;
use tieline_engine::{Engine, Settings};
use tieline_event::{ConversationKey, Failure, Kind, Mode, Prompt, TurnStatus};
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry};
use tieline_proc::Env;
use tieline_store::{Options, Store};
use tieline_testkit::model::ModelServer;
use tieline_testkit::probe;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::super::scene::Scene;
use super::super::table::{Goal, Judgement, Line, Quantity};
use super::super::{median, percentile};
use crate::command;

/// The words of a prompt and of its answer are sent this far apart.
const PAUSE_MS: u64 = 150;

/// About what a turn takes: `You said: WORD SCENARIO:…` are four pieces.
const TURN_MS: u64 = 4 * PAUSE_MS;

/// The process that is measured.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A directory for the store.
    dir: PathBuf,
    /// Where the model is.
    url: String,
    /// How many sessions.
    n_sessions: u64,
    /// How many turns each of them takes.
    n_turns: u64,
    /// Milliseconds between the words of an answer.
    pause: u64,
}

/// What it says: a line for each turn, and one at its end.
#[derive(Serialize, Deserialize)]
enum Said {
    /// What was said, and how long it took to the end of the turn.
    Turn { prompt: String, micros: f64 },
    /// In bytes.
    Memory { at_rest: f64, peak: f64 },
}

pub(in super::super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let (n_sessions, n_turns) = scene.choose((100, 20), (40, 5));
    let paced = run(scene, n_sessions, n_turns, PAUSE_MS)?;
    let rushed = run(scene, n_sessions, n_turns, 0)?;
    let (p50, p99) = (median(&paced.added), percentile(&paced.added, 0.99));
    let what = format!("{n_sessions} sessions, {n_turns} turns each, no answer at the wrong one");
    Ok(vec![
        Line {
            what: "engine, memory of the sessions".to_owned(),
            value: Quantity::Bytes(paced.peak),
            beside: None,
            judgement: Some(Judgement::new(
                "",
                Quantity::Bytes(paced.peak),
                Goal::Below(Quantity::Bytes(200e6)),
            )),
            note: format!(
                "the most resident memory of one process with a hub and the engine; {what}; {:.1} \
                 MB before the first session",
                paced.at_rest / 1e6
            ),
        },
        Line {
            what: "engine, added to a step, p99".to_owned(),
            value: Quantity::Micros(p99),
            beside: None,
            judgement: Some(Judgement::new(
                "",
                Quantity::Micros(p99),
                Goal::Below(Quantity::Micros(20_000.0)),
            )),
            note: format!(
                "what a turn took beyond the model's own time, which was about {TURN_MS} ms for each \
                 answer; p50 {:.2} ms; {what}, begun evenly within one turn",
                p50 / 1e3
            ),
        },
        Line {
            what: "engine, turns a second".to_owned(),
            value: Quantity::Ratio(rushed.added.len() as f64 / rushed.seconds),
            beside: None,
            judgement: None,
            note: format!(
                "the same with a model that does not wait; a step then takes {:.1} ms beyond the \
                 model's time (p50), most of it in line for the processors; at most {:.1} MB",
                median(&rushed.added) / 1e3,
                rushed.peak / 1e6
            ),
        },
    ])
}

/// What a run of the process gave.
struct Ran {
    /// Of each step, in microseconds.
    added: Vec<f64>,
    at_rest: f64,
    peak: f64,
    seconds: f64,
}

fn run(scene: &Scene, n_sessions: u64, n_turns: u64, pause: u64) -> anyhow::Result<Ran> {
    let runtime = Runtime::new()?;
    let model = runtime.block_on(ModelServer::start());
    let dir = scene.fresh_dir()?;
    let mut command = command(env::current_exe()?);
    command.args(["bench-probe", "sessions"]).arg(dir.path()).arg(model.url());
    command.args([n_sessions, n_turns, pause].map(|number| number.to_string()));
    let began = Instant::now();
    let mut running = scene.start("the sessions", command)?;
    let mut turns = HashMap::new();
    let mut memory = None;
    for line in BufReader::new(&mut running.stdout).lines() {
        match serde_json::from_str(&line?)? {
            Said::Turn { prompt, micros } => {
                turns.insert(prompt, micros);
                model.forget_requests();
            }
            Said::Memory { at_rest, peak } => memory = Some((at_rest, peak)),
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    running.finish()?;
    let (at_rest, peak) = memory.context("it said nothing of its memory")?;
    let mut added = Vec::new();
    for answer in model.answers() {
        let took = turns.remove(&answer.text);
        let took = took.with_context(|| format!("{:?} was asked twice", answer.text))?;
        added.push(took - answer.took.as_secs_f64() * 1e6);
    }
    ensure!(turns.is_empty(), "the model was not asked: {turns:?}");
    ensure!(added.len() as u64 == n_sessions * n_turns, "{} turns", added.len());
    Ok(Ran { added, at_rest, peak, seconds })
}

/// The process that is measured.
pub(in super::super) fn main(args: &Args) -> anyhow::Result<()> {
    // As the product's own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(talk(args))
}

async fn talk(args: &Args) -> anyhow::Result<()> {
    let store = Store::open(&args.dir.join("store"), Options::default())?;
    let workspace = args.dir.join("workspace");
    fs::create_dir(&workspace)?;
    let engine = Arc::new(Engine::new("engine", settings(args)));
    let hub = Hub::new(store, Arc::new(One(engine)), Limits::default());
    let at_rest = probe::rss_kib(std::process::id()).context("no such process")? as f64 * 1024.0;
    let mut sessions = JoinSet::new();
    for number in 0..args.n_sessions {
        let (hub, workspace) = (hub.clone(), workspace.clone());
        let wait = match args.pause {
            0 => 0,
            _ => number * TURN_MS / args.n_sessions,
        };
        let (n_turns, pause) = (args.n_turns, args.pause);
        sessions.spawn(async move {
            let conversation = open(&hub, number, workspace).await?;
            tokio::time::sleep(Duration::from_millis(wait)).await;
            for turn in 0..n_turns {
                // Pauses that differ a little, so that the sessions do not march in step.
                let pause = if pause == 0 { 0 } else { pause + (number * 7 + turn * 3) % 20 };
                one_turn(&conversation, format!("word-{number}-{turn} SCENARIO:slow-echo:{pause}"))
                    .await?;
            }
            // Held to the end: they all live at once.
            anyhow::Ok(conversation)
        });
    }
    let held = sessions.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let peak = probe::peak_rss_kib(std::process::id()).context("no such process")? as f64 * 1024.0;
    ensure!(held.iter().all(|it| !it.is_closed()), "a conversation ended");
    hub.close_all().await;
    say(&Said::Memory { at_rest, peak })
}

async fn open(hub: &Hub, number: u64, workspace: PathBuf) -> anyhow::Result<Conversation> {
    let key = ConversationKey::new(&format!("session-{number}"))?;
    let options = OpenOptions {
        agent: Some("engine".to_owned()),
        workspace: Some(workspace),
        mode: Some(Mode::Default),
        ..OpenOptions::default()
    };
    Ok(hub.conversation(&key, options).await?)
}

/// Says something and checks that it comes back.
async fn one_turn(conversation: &Conversation, prompt: String) -> anyhow::Result<()> {
    let mut live = conversation.subscribe(conversation.last_seq());
    let began = Instant::now();
    conversation.start_turn(Prompt::text(&prompt)).await?;
    loop {
        let entries = live.next().await?;
        ensure!(!entries.is_empty(), "the conversation ended");
        for entry in entries {
            let Entry::Event(shown) = entry else { continue };
            let Kind::TurnCompleted(end) = &shown.event.kind else { continue };
            let micros = began.elapsed().as_secs_f64() * 1e6;
            ensure!(end.status == TurnStatus::Completed, "{prompt}: {:?}", end.error);
            let said = end.text.preview();
            ensure!(said == format!("You said: {prompt}"), "{prompt} was answered with {said}");
            return say(&Said::Turn { prompt, micros });
        }
    }
}

fn say(said: &Said) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, said)?;
    stdout.write_all(b"\n")?;
    Ok(stdout.flush()?)
}

struct One(Arc<Engine>);

impl Registry for One {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Agent>)
    }
}

fn settings(args: &Args) -> Settings {
    let mut env = Env::empty();
    env.set("PATH", "/usr/bin:/bin");
    env.set("HOME", &args.dir);
    let provider = Provider::new("scripted", format!("{}/v1", args.url));
    Settings {
        config_dir: args.dir.join("config"),
        hidden: vec![args.dir.join("store")],
        env,
        ..Settings::new(provider, "scripted-1")
    }
}

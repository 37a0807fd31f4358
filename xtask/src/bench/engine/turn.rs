//! One turn as a process: `tieline run --agent engine` beside `codex exec`, on the same server.

#![allow(clippy::print_stderr)] // why a row is missing, for the person who started it

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use tempfile::TempDir;
use tieline_testkit::agents;
use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{self, AgentEnv, CodexConfig};
use tokio::runtime::Runtime;

use super::super::median;
use super::super::scene::Scene;
use super::super::table::{Beside, Goal, Judgement, Line, Quantity};
use super::tree::Tree;
use crate::command;

const HELLO: (&str, &str) = ("Go. SCENARIO:hello", "Hello from the fake model.");
const SHELL: (&str, &str) = ("Go. SCENARIO:shell", "The command printed hello-from-shell.");

/// How much of the other's time and memory ours may take.
const SHARE: f64 = 0.2;

/// The model that both are told to use.
const MODEL: &str = "gpt-5.5";

/// Who takes the turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Engine,
    Codex,
}

pub(in super::super) fn hello(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let Some(stage) = Stage::new(scene)? else { return Ok(Vec::new()) };
    let n_rounds = scene.choose(15, 5);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first ones fill caches and make homes.
    stage.clock(Side::Codex, HELLO)?;
    stage.clock(Side::Engine, HELLO)?;
    for _ in 0..n_rounds {
        theirs.push(stage.clock(Side::Codex, HELLO)?);
        ours.push(stage.clock(Side::Engine, HELLO)?);
    }
    let (ours, theirs) = (median(&ours), median(&theirs));
    Ok(vec![Line {
        what: "engine, hello".to_owned(),
        value: Quantity::Micros(ours),
        beside: Some(Beside { what: "codex exec", value: Quantity::Micros(theirs) }),
        judgement: Some(ratio(ours, theirs)),
        note: format!(
            "process start to exit for one short answer, on one scripted server, in homes that \
             exist; medians of {n_rounds} in turns"
        ),
    }])
}

pub(in super::super) fn memory(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let Some(stage) = Stage::new(scene)? else { return Ok(Vec::new()) };
    let n_rounds = scene.choose(5, 3);
    let mut lines = Vec::new();
    for (what, turn) in [("hello", HELLO), ("a command", SHELL)] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mut n_processes = (0, 0);
        for _ in 0..n_rounds {
            let tree = stage.weigh(Side::Codex, turn)?;
            n_processes.0 = tree.n_processes().max(n_processes.0);
            theirs.push(tree.bytes());
            let tree = stage.weigh(Side::Engine, turn)?;
            n_processes.1 = tree.n_processes().max(n_processes.1);
            ours.push(tree.bytes());
        }
        let (ours, theirs) = (median(&ours), median(&theirs));
        lines.push(Line {
            what: format!("engine, memory of {what}"),
            value: Quantity::Bytes(ours),
            beside: Some(Beside { what: "codex exec", value: Quantity::Bytes(theirs) }),
            judgement: Some(ratio(ours, theirs)),
            note: format!(
                "the most memory that all processes of the tree had at one time (up to {} of ours, \
                 {} of theirs), for one turn with {what}; medians of {n_rounds} in turns",
                n_processes.1, n_processes.0
            ),
        });
    }
    Ok(lines)
}

fn ratio(ours: f64, theirs: f64) -> Judgement {
    Judgement::new("ratio", Quantity::Ratio(ours / theirs), Goal::AtMost(Quantity::Ratio(SHARE)))
}

/// A server, and a home for each of the two.
struct Stage<'a> {
    scene: &'a Scene,
    /// It answers as long as both are held.
    model: ModelServer,
    _runtime: Runtime,
    engine: AgentEnv,
    store: TempDir,
    codex: AgentEnv,
    program: PathBuf,
}

impl<'a> Stage<'a> {
    /// None where the other's program could reach the world.
    fn new(scene: &'a Scene) -> anyhow::Result<Option<Self>> {
        if !real::loopback_only() {
            eprintln!("   skipped: no network namespace can be made here (unshare -n)");
            return Ok(None);
        }
        let program = agents::program("codex").map_err(|err| anyhow!(err))?;
        let runtime = Runtime::new()?;
        let model = runtime.block_on(ModelServer::start());
        let config = CodexConfig { model: MODEL, ..CodexConfig::default() };
        let home = || AgentEnv::codex(&model.url(), config);
        let (engine, codex) = (home(), home());
        let store = scene.fresh_dir()?;
        Ok(Some(Self { scene, model, _runtime: runtime, engine, store, codex, program }))
    }

    fn command(&self, side: Side) -> Command {
        let (mut command, home) = match side {
            Side::Engine => {
                let mut tieline = self.scene.tieline(self.store.path());
                tieline.args(["run", "--agent", "engine", "--format", "final", "--model", MODEL]);
                tieline.args(["-a", "never", "-s", "read-only", "-"]);
                tieline.env("OPENAI_BASE_URL", format!("{}/v1", self.model.url()));
                (tieline, &self.engine)
            }
            Side::Codex => {
                let mut codex = command(&self.program);
                codex.env_clear();
                codex.args(["exec", "--skip-git-repo-check", "-s", "read-only", "-"]);
                (codex, &self.codex)
            }
        };
        command.envs(home.vars()).current_dir(home.workspace()).stdin(Stdio::piped());
        command
    }

    /// Microseconds from the start of the process to its end.
    fn clock(&self, side: Side, turn: (&str, &str)) -> anyhow::Result<f64> {
        let began = Instant::now();
        self.run(side, turn, |_| ())?;
        Ok(began.elapsed().as_secs_f64() * 1e6)
    }

    /// What the processes of a turn took.
    fn weigh(&self, side: Side, turn: (&str, &str)) -> anyhow::Result<Tree> {
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut watch = None;
            let ran = self.run(side, turn, |pid| {
                let ended = &ended;
                watch = Some(scope.spawn(move || {
                    let mut tree = Tree::default();
                    while !ended.load(Ordering::Relaxed) {
                        tree.look(pid);
                        thread::sleep(Duration::from_micros(500));
                    }
                    tree
                }));
            });
            ended.store(true, Ordering::Relaxed);
            ran?;
            let watch = watch.context("nobody watched")?;
            watch.join().map_err(|_| anyhow!("the watcher failed"))
        })
    }

    /// Takes a turn, which must end with the right words.
    fn run(
        &self,
        side: Side,
        (prompt, answer): (&str, &str),
        started: impl FnOnce(u32),
    ) -> anyhow::Result<()> {
        let name = if side == Side::Engine { "tieline" } else { "codex exec" };
        let mut running = self.scene.start(name, self.command(side))?;
        started(running.pid());
        // The end of the input is the end of the prompt.
        let mut stdin = running.take_stdin().context("the input is a pipe")?;
        stdin.write_all(prompt.as_bytes())?;
        drop(stdin);
        let mut said = String::new();
        running.stdout.read_to_string(&mut said)?;
        let complaint = running.complaint();
        running.finish()?;
        ensure!(said.trim_end().ends_with(answer), "{name} said {said:?}: {complaint}");
        Ok(())
    }
}

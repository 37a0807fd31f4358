//! How soon an interrupt acts, whatever the conversation is doing.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tieline_agent::claude::{Claude, Lifetime};
use tieline_agent::{Agent, Launch, Launching};
use tieline_event::{ConversationKey, Failure, Kind, Prompt, TurnId};
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry, Subscription};
use tieline_proc::Env;
use tieline_store::{Options, Store};
use tieline_testkit::{probe, real};

use super::output::Output;
use super::scene::Scene;
use super::table::{Goal, Judgement, Line, Quantity};
use crate::command;

/// The slowest of each state, in microseconds.
#[derive(Serialize, Deserialize)]
struct Slowest {
    in_turn: f64,
    while_starting: f64,
    while_stopping: f64,
    store_locked: f64,
}

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let n_rounds: u32 = scene.choose(40, 8);
    let dir = scene.fresh_dir()?;
    let mut command = command(env::current_exe()?);
    command.args(["bench-probe", "interrupt"]).arg(dir.path()).arg(n_rounds.to_string());
    let mut running = scene.start("the interrupt probe", command)?;
    let mut output = Output::default();
    output.read_all(&mut running.stdout)?;
    running.finish()?;
    let slowest: Slowest = serde_json::from_slice(output.bytes())?;
    let line = |what: &str, micros, note: &str| Line {
        what: format!("interrupt {what}"),
        value: Quantity::Micros(micros),
        beside: None,
        judgement: Some(Judgement::new(
            "",
            Quantity::Micros(micros),
            Goal::AtMost(Quantity::Micros(50e3)),
        )),
        note: format!("{note}; the slowest of {n_rounds}"),
    };
    Ok(vec![
        line("in a turn", slowest.in_turn, "until the end of the turn is shown"),
        line("while the agent starts", slowest.while_starting, "the same"),
        line("while the agent stops", slowest.while_stopping, "the same, of a turn that waits"),
        line(
            "while the store is locked",
            slowest.store_locked,
            "until it is taken, another process holds the lock of the database",
        ),
    ])
}

/// The process that is measured.
pub(super) fn main(dir: &Path, n_rounds: u32) -> anyhow::Result<()> {
    // As the product's own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let slowest = runtime.block_on(async {
        let workspace = dir.join("workspace");
        fs::create_dir(&workspace)?;
        let stage = Stage { dir: dir.to_owned(), workspace, agent: Arc::new(Fake::new()) };
        let (mut in_turn, mut starting, mut stopping, mut locked) = (0_f64, 0_f64, 0_f64, 0_f64);
        for _ in 0..n_rounds {
            in_turn = in_turn.max(stage.in_turn().await?);
            starting = starting.max(stage.while_starting().await?);
            stopping = stopping.max(stage.while_stopping().await?);
            locked = locked.max(stage.store_locked().await?);
        }
        anyhow::Ok(Slowest {
            in_turn,
            while_starting: starting,
            while_stopping: stopping,
            store_locked: locked,
        })
    })?;
    serde_json::to_writer(io::stdout(), &slowest)?;
    Ok(io::stdout().flush()?)
}

struct Stage {
    dir: PathBuf,
    workspace: PathBuf,
    agent: Arc<Fake>,
}

/// A conversation of its own, and what is shown of it.
struct Talk {
    hub: Hub,
    conversation: Conversation,
    shown: Subscription,
}

impl Stage {
    async fn open(&self) -> anyhow::Result<Talk> {
        let limits = Limits { exit_grace: Duration::from_secs(60), ..Limits::default() };
        let store = Store::open(&self.dir.join("store"), Options::default())?;
        let registry: Arc<dyn Registry> = Arc::new(Installed(Arc::clone(&self.agent)));
        let hub = Hub::new(store, registry, limits);
        let options = OpenOptions {
            agent: Some("claude".to_owned()),
            workspace: Some(self.workspace.clone()),
            ..OpenOptions::default()
        };
        let key = ConversationKey::new("bench")?;
        let conversation = hub.conversation(&key, options).await?;
        let shown = conversation.subscribe(conversation.last_seq());
        Ok(Talk { hub, conversation, shown })
    }

    async fn in_turn(&self) -> anyhow::Result<f64> {
        let mut talk = self.open().await?;
        let turn = talk.conversation.start_turn(Prompt::text("go")).await?;
        talk.until(
            |kind, _| matches!(kind, Kind::ItemCompleted(it) if it.body.name() == "agent_message"),
        )
        .await?;
        let began = Instant::now();
        talk.conversation.interrupt().await?;
        talk.until_end(&turn).await?;
        Ok(talk.close(began.elapsed()).await)
    }

    async fn while_starting(&self) -> anyhow::Result<f64> {
        let mut talk = self.open().await?;
        self.agent.starts.store(false, Ordering::SeqCst);
        let turn = talk.conversation.start_turn(Prompt::text("go"));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let began = Instant::now();
        talk.conversation.interrupt().await?;
        talk.until_end(&turn.await?).await?;
        let took = began.elapsed();
        self.agent.starts.store(true, Ordering::SeqCst);
        Ok(talk.close(took).await)
    }

    async fn while_stopping(&self) -> anyhow::Result<f64> {
        let mut talk = self.open().await?;
        let turn = talk.conversation.start_turn(Prompt::text("go")).await?;
        talk.until(|kind, _| matches!(kind, Kind::ProcessSpawned(_))).await?;
        talk.conversation.interrupt().await?;
        talk.until_end(&turn).await?;
        // It is stopped by us, so it does not go when it is told to.
        let agents = probe::alive_with(&self.agent.marker);
        for pid in &agents {
            stop(*pid)?;
        }
        let reset = talk.conversation.reset();
        let waits = talk.conversation.start_turn(Prompt::text("next"));
        let began = Instant::now();
        talk.conversation.interrupt().await?;
        talk.until_end(&waits.await?).await?;
        let took = began.elapsed();
        ensure!(!probe::alive_with(&self.agent.marker).is_empty(), "the agent is not stopping");
        for pid in agents {
            probe::kill(pid)?;
        }
        reset.await?;
        Ok(talk.close(took).await)
    }

    async fn store_locked(&self) -> anyhow::Result<f64> {
        let mut talk = self.open().await?;
        talk.conversation.start_turn(Prompt::text("go")).await?;
        talk.until(
            |kind, _| matches!(kind, Kind::ItemCompleted(it) if it.body.name() == "agent_message"),
        )
        .await?;
        let lock = Lock::take(&self.dir.join("store"))?;
        let began = Instant::now();
        talk.conversation.interrupt().await?;
        let took = began.elapsed();
        drop(lock);
        Ok(talk.close(took).await)
    }
}

impl Talk {
    async fn until(
        &mut self,
        is_it: impl Fn(&Kind, Option<&TurnId>) -> bool,
    ) -> anyhow::Result<()> {
        loop {
            let entries = self.shown.next().await?;
            ensure!(!entries.is_empty(), "the conversation ended");
            let is_here = entries.iter().any(|entry| match entry {
                Entry::Event(shown) => is_it(&shown.event.kind, shown.event.turn.as_ref()),
                Entry::Delta(_) => false,
            });
            if is_here {
                return Ok(());
            }
        }
    }

    async fn until_end(&mut self, turn: &TurnId) -> anyhow::Result<()> {
        self.until(|kind, of| matches!(kind, Kind::TurnCompleted(_)) && of == Some(turn)).await
    }

    async fn close(self, took: Duration) -> f64 {
        self.hub.close_all().await;
        took.as_secs_f64() * 1e6
    }
}

/// Another process that holds the write lock of the database.
struct Lock {
    probe: Child,
    /// It writes once more when it lets go.
    _stdout: BufReader<ChildStdout>,
}

impl Lock {
    fn take(store: &Path) -> anyhow::Result<Self> {
        let own = env::current_exe()?;
        let programs = own.parent().context("this program is in no directory")?;
        let mut lock = command(programs.join("store-probe"));
        lock.arg("lock").arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut lock = lock.spawn().context("cannot start store-probe")?;
        let mut stdout = BufReader::new(lock.stdout.take().context("the output is a pipe")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        ensure!(line.trim() == "locked", "the database is not locked: {line}");
        Ok(Self { probe: lock, _stdout: stdout })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It lets go when its input ends.
        drop(self.probe.stdin.take());
        self.probe.wait().ok();
    }
}

fn stop(pid: u32) -> anyhow::Result<()> {
    let pid =
        rustix::process::Pid::from_raw(pid.cast_signed()).context("a process has a number")?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::STOP)?)
}

/// The fake agent as `claude`, which starts only if it may.
struct Fake {
    claude: Claude,
    marker: String,
    starts: AtomicBool,
}

impl Fake {
    fn new() -> Self {
        let marker = format!("TIELINE_BENCH={}", std::process::id());
        let mut env = Env::empty();
        env.set("PATH", "/usr/bin:/bin");
        env.set("FAKE_AGENT_SCRIPT", "say Wait.\nsilence");
        env.set("TIELINE_BENCH", std::process::id().to_string());
        let claude = Claude {
            program: real::fake_agent_program(),
            args: Vec::new(),
            env,
            lifetime: Lifetime::Conversation,
            preamble: false,
            name: "claude",
            is_root: false,
        };
        Self { claude, marker, starts: AtomicBool::new(true) }
    }
}

impl Agent for Fake {
    fn name(&self) -> &str {
        self.claude.name()
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(async move {
            if !self.starts.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            self.claude.launch(launch).await
        })
    }
}

struct Installed(Arc<Fake>);

impl Registry for Installed {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Agent>)
    }
}

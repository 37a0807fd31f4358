//! Time from the start of a process to the real agent's first byte of work: the moment its first
//! question reaches the model. Beside it the agent's own command line.

#![allow(clippy::print_stderr)] // why a row is missing, for the person who started it

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use tieline_testkit::agents;
use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{self, AgentEnv, CodexConfig};

use super::driver::{DRIVERS, Driver};
use super::median;
use super::scene::{Scene, progress};
use super::table::{Beside, Goal, Judgement, Line, Quantity};
use crate::command;

const PROMPT: &str = "Go. SCENARIO:hello";

/// The end of the input does not end `codex proto`.
const SHUTDOWN: &[u8] = b"{\"id\":\"sub-2\",\"op\":{\"type\":\"shutdown\"}}\n";

/// Set in the process that was started where nothing can be reached.
const ISOLATED: &str = "TIELINE_BENCH_ISOLATED";

/// Starts this program again in a network namespace with nothing but loopback. Returns where that
/// is not needed or not possible.
pub(super) fn go_where_nothing_can_be_reached() -> anyhow::Result<()> {
    if real::loopback_only() || env::var_os(ISOLATED).is_some() {
        return Ok(());
    }
    // Only root may make a network namespace without a user namespace.
    let possible = ["-n", "-rn"].into_iter().find(|flag| {
        let mut probe = command("unshare");
        probe.args([flag, "true"]).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    });
    let Some(flag) = possible else { return Ok(()) };
    let own = env::current_exe().context("where this program is")?;
    let mut isolated = command("unshare");
    isolated.arg(flag).arg(&own).arg("loopback").arg(&own).args(env::args_os().skip(1));
    Err(isolated.env(ISOLATED, "1").exec()).context("cannot start unshare")
}

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    if !real::loopback_only() {
        eprintln!("   Work is skipped: no network namespace can be made here (unshare -n)");
        return Ok(Vec::new());
    }
    let n_rounds = scene.choose(10, 3);
    let runtime = tokio::runtime::Runtime::new()?;
    let model = runtime.block_on(ModelServer::start());
    let tap = Tap::before(&model.url())?;
    let mut lines = Vec::new();
    for driver in DRIVERS {
        progress(driver.name());
        let stage = Stage::new(scene, driver, &tap)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // The first ones fill caches and make homes.
        stage.tieline()?;
        stage.own_cli()?;
        for _ in 0..n_rounds {
            theirs.push(stage.own_cli()?);
            ours.push(stage.tieline()?);
        }
        let (ours, theirs) = (median(&ours), median(&theirs));
        let goal = Goal::AtMost(Quantity::Micros(20_000.0));
        lines.push(Line {
            what: format!("work, {}", driver.name()),
            value: Quantity::Micros(ours),
            beside: Some(Beside { what: stage.own_name(), value: Quantity::Micros(theirs) }),
            judgement: Some(Judgement::new("added", Quantity::Micros(ours - theirs), goal)),
            note: format!(
                "from `tieline run` until the agent's first question reaches the model, beside the \
                 agent's own command line; medians of {n_rounds} runs in turns"
            ),
        });
    }
    Ok(lines)
}

/// A real agent with a home, and both ways to start it.
struct Stage<'a> {
    scene: &'a Scene,
    driver: Driver,
    tap: &'a Tap,
    agent: AgentEnv,
    program: std::path::PathBuf,
    home: tempfile::TempDir,
}

impl<'a> Stage<'a> {
    fn new(scene: &'a Scene, driver: Driver, tap: &'a Tap) -> anyhow::Result<Self> {
        let pinned = match driver {
            Driver::Claude => "claude",
            Driver::Codex | Driver::CodexExec => "codex",
            Driver::CodexProto => "codex-proto",
        };
        let program = agents::program(pinned).map_err(|err| anyhow!(err))?;
        let model = if driver == Driver::CodexProto { "gpt-5-codex" } else { "gpt-5.5" };
        let agent = match driver {
            Driver::Claude => AgentEnv::claude(&tap.url),
            _ => AgentEnv::codex(&tap.url, CodexConfig { model, ..CodexConfig::default() }),
        };
        let home = scene.fresh_dir()?;
        let pass = "pass = [\"FAKE_API_KEY\", \"IS_SANDBOX\"]\n";
        fs::write(
            home.path().join("config.toml"),
            format!("[agents.claude]\n{pass}[agents.codex]\n{pass}"),
        )?;
        Ok(Self { scene, driver, tap, agent, program, home })
    }

    fn own_name(&self) -> &'static str {
        match self.driver {
            Driver::Claude => "claude --print",
            Driver::Codex | Driver::CodexExec => "codex exec",
            Driver::CodexProto => "codex proto",
        }
    }

    /// Microseconds until the model is asked by `tieline run`.
    fn tieline(&self) -> anyhow::Result<f64> {
        let mut tieline = self.scene.tieline(&self.home.path().join("store"));
        tieline.envs(self.agent.vars());
        tieline.env("TIELINE_CONFIG", self.home.path().join("config.toml"));
        tieline.env(self.driver.variable(), &self.program);
        tieline.args(["run", "--format", "final", "--agent", self.driver.name()]);
        tieline.arg("--cwd").arg(self.agent.workspace()).arg(PROMPT);
        self.clock("tieline", tieline, b"")
    }

    /// The same by the agent's own command line.
    fn own_cli(&self) -> anyhow::Result<f64> {
        let mut own = command(&self.program);
        own.env_clear().envs(self.agent.vars()).current_dir(self.agent.workspace());
        let input = match self.driver {
            Driver::Claude => {
                own.args(["--print", PROMPT]);
                String::new()
            }
            Driver::Codex | Driver::CodexExec => {
                own.args(["exec", "--json", "--skip-git-repo-check", "-s", "read-only", "-"]);
                PROMPT.to_owned()
            }
            Driver::CodexProto => {
                own.arg("proto");
                submissions(&self.agent.workspace())
            }
        };
        self.clock(self.own_name(), own, input.as_bytes())
    }

    fn clock(&self, name: &str, mut command: Command, input: &[u8]) -> anyhow::Result<f64> {
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        self.tap.forget();
        let began = Instant::now();
        let mut running = self.scene.start(name, command)?;
        let mut stdin = running.take_stdin();
        if let Some(stdin) = &mut stdin {
            stdin.write_all(input)?;
        }
        // The others begin with the end of their input; `proto` wants to be told when to go.
        let kept = stdin.filter(|_| self.driver == Driver::CodexProto);
        let asked = self.tap.asked.recv_timeout(Duration::from_secs(30));
        let asked = asked.with_context(|| format!("{name} asks the model nothing"))?;
        if let Some(mut stdin) = kept {
            read_until(&mut running.stdout, b"task_complete")?;
            stdin.write_all(SHUTDOWN)?;
        }
        io::copy(&mut running.stdout, &mut io::sink())?;
        running.finish()?;
        Ok(asked.duration_since(began).as_secs_f64() * 1e6)
    }
}

/// What a client of `codex proto` says first.
fn submissions(workspace: &Path) -> String {
    let turn = serde_json::json!({"id": "sub-1", "op": {
        "type": "user_turn",
        "items": [{"type": "text", "text": PROMPT}],
        "cwd": workspace,
        "approval_policy": "on-request",
        "sandbox_policy": {"mode": "read-only"},
        "model": "gpt-5-codex",
        "effort": null,
        "summary": "auto",
    }});
    format!("{turn}\n")
}

fn read_until(from: &mut impl Read, needle: &[u8]) -> anyhow::Result<()> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while !all.windows(needle.len()).any(|window| window == needle) {
        let n = from.read(&mut buffer)?;
        ensure!(n > 0, "it ended before its turn did");
        all.extend_from_slice(buffer.get(..n).unwrap_or_default());
    }
    Ok(())
}

/// A wire tap before the model: it says when a question arrives.
struct Tap {
    url: String,
    asked: Receiver<Instant>,
}

impl Tap {
    fn before(url: &str) -> anyhow::Result<Self> {
        let model = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        let (tell, asked) = mpsc::channel();
        thread::spawn(move || {
            for agent in listener.incoming().flatten() {
                // A connection that cannot be passed on ends, which the agent reports.
                if let Ok(model) = TcpStream::connect(&model) {
                    pass_on(&agent, &model, tell.clone());
                }
            }
        });
        Ok(Self { url, asked })
    }

    fn forget(&self) {
        while self.asked.try_recv().is_ok() {}
    }
}

fn pass_on(agent: &TcpStream, model: &TcpStream, tell: Sender<Instant>) {
    let pair =
        |one: &TcpStream, other: &TcpStream| Some((one.try_clone().ok()?, other.try_clone().ok()?));
    let (Some((mut from, mut to)), Some((mut answers, mut back))) =
        (pair(agent, model), pair(model, agent))
    else {
        return;
    };
    for stream in [agent, model] {
        stream.set_nodelay(true).ok();
    }
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            let part = buffer.get(..n).unwrap_or_default();
            // Whatever else it asks (its models, whether the host is there) is no work.
            if part.starts_with(b"POST ") && is_question(part) {
                tell.send(Instant::now()).ok();
            }
            if to.write_all(part).is_err() {
                break;
            }
        }
        to.shutdown(Shutdown::Write).ok();
    });
    thread::spawn(move || {
        io::copy(&mut answers, &mut back).ok();
        back.shutdown(Shutdown::Write).ok();
    });
}

fn is_question(request: &[u8]) -> bool {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let path = String::from_utf8_lossy(line);
    let path = path.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
    path.ends_with("/messages") || path.ends_with("/responses")
}

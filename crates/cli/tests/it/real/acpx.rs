//! `acpx`, a client that others wrote, as a user has it at the command line.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tieline_proc::{Child, RunLimits, Spec};
use tieline_testkit::acp::{Direction, Frame, node};
use tieline_testkit::agents;

use super::play::{Scenario, runs_a_command};
use super::stage::{Agent, Stage};

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn play(stage: &Stage, scenario: &Scenario) -> Vec<Frame> {
    if stage.agent == Agent::Codex {
        move_in(stage).await;
    }
    let acpx = Acpx::new(stage, scenario);
    acpx.run(&["sessions", "new"]).await;
    let mut tape = Tape::new();
    // The first one starts a process that keeps the session, and that ends with it.
    let mut children = Vec::new();
    for say in scenario.turns {
        let child = tieline_proc::spawn(acpx.spec(&["prompt", say.prompt])).await.unwrap();
        let mut cancelled = !say.cancel;
        let mut lines = Lines::new(&child);
        while let Some(line) = lines.next().await {
            tape.push(line);
            if !cancelled && tape.frames.last().is_some_and(runs_a_command) {
                acpx.run(&["cancel"]).await;
                cancelled = true;
            }
        }
        children.push(child);
    }
    acpx.run(&["sessions", "close"]).await;
    tape.frames
}

/// Codex has been in this home before. 100 ms after a command is done, acpx sends SIGTERM to
/// everything that its agent started, and a Codex that is ended while it first looks around in a home
/// leaves a note there for which the next ones wait: once in some hundred times.
async fn move_in(stage: &Stage) {
    const GREETING: &[u8] = b"{\"id\":0,\"method\":\"initialize\",\"params\":\
        {\"clientInfo\":{\"name\":\"test\",\"version\":\"0\"}}}\n";
    let mut spec = Spec::new(agents::program("codex").unwrap(), stage.workspace());
    spec.args = vec!["app-server".into()];
    for (name, value) in stage.home.vars() {
        spec.env.set(name, value);
    }
    let limits = RunLimits { timeout: PATIENCE, ..RunLimits::default() };
    let output = tieline_proc::run(spec, GREETING, limits).await.unwrap();
    // It looks around to the end before it sees that nobody speaks any more.
    assert!(output.exit.is_some_and(|it| it.is_success()), "{}", output.stderr.to_text());
}

struct Acpx<'a> {
    stage: &'a Stage,
    flags: Vec<String>,
}

impl<'a> Acpx<'a> {
    fn new(stage: &'a Stage, scenario: &Scenario) -> Acpx<'a> {
        let program = stage.tieline();
        // It takes one text and cuts it into words; what tieline needs besides is in a script.
        let script = stage.home.root().join("agent.sh");
        let variables: String =
            program.env.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
        let words: Vec<_> = program.args.iter().map(|word| word.to_string_lossy()).collect();
        let command = format!("exec '{}' {}", program.path.display(), words.join(" "));
        fs::write(&script, format!("{variables}{command}\n")).unwrap();
        let servers = stage.home.root().join("mcp.json");
        fs::write(&servers, json!({"mcpServers": stage.servers(scenario.mcp)}).to_string())
            .unwrap();
        let agent = format!("/bin/sh {}", script.display());
        let flags = ["--agent", &agent, "--mcp-config", servers.to_str().unwrap(), "--approve-all"];
        let more = ["--format", "json", "--json-strict", "--ttl", "30"];
        Acpx { stage, flags: flags.into_iter().chain(more).map(str::to_owned).collect() }
    }

    fn spec(&self, words: &[&str]) -> Spec {
        let script = agents::acp("acpx/dist/cli.js").unwrap();
        let program = node(script, &self.stage.home).unwrap();
        let mut spec = Spec::new(program.path, program.cwd);
        spec.args = program.args;
        spec.args.extend(self.flags.iter().map(Into::into));
        spec.args.extend(words.iter().map(Into::into));
        for (name, value) in program.env {
            spec.env.set(name, value);
        }
        spec
    }

    /// A command that only manages.
    async fn run(&self, words: &[&str]) {
        let limits = RunLimits { timeout: PATIENCE, ..RunLimits::default() };
        let output = tieline_proc::run(self.spec(words), b"", limits).await.unwrap();
        let told = format!("{}\n{}", output.stdout.to_text(), output.stderr.to_text());
        assert!(output.exit.is_some_and(|exit| exit.is_success()), "{words:?}: {told}");
    }
}

/// The lines that a child prints, until its end.
struct Lines<'a> {
    child: &'a Child,
    buffer: Vec<u8>,
    deadline: Instant,
}

impl<'a> Lines<'a> {
    fn new(child: &'a Child) -> Lines<'a> {
        Lines { child, buffer: Vec::new(), deadline: Instant::now() + PATIENCE }
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                return Some(line);
            }
            let mut piece = [0; 16 * 1024];
            let left = self.deadline.saturating_duration_since(Instant::now());
            tokio::select! {
                read = self.child.read_stdout(&mut piece) => match read.unwrap() {
                    0 => return None,
                    n => self.buffer.extend_from_slice(&piece[..n]),
                },
                () = tokio::time::sleep(left) => {
                    panic!("acpx takes too long\n{}", self.child.stderr_tail().to_text());
                }
            }
        }
    }
}

/// What was printed: every message of both directions, without saying which.
struct Tape {
    began: Instant,
    frames: Vec<Frame>,
    /// Ids of the client's requests without an answer.
    asked: HashSet<String>,
}

impl Tape {
    fn new() -> Tape {
        Tape { began: Instant::now(), frames: Vec::new(), asked: HashSet::new() }
    }

    fn push(&mut self, line: Vec<u8>) {
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            panic!("not JSON: {}", String::from_utf8_lossy(&line));
        };
        // A note of its own is no frame.
        if message["jsonrpc"] != "2.0" {
            return;
        }
        let direction = self.direction(&message);
        self.frames.push(Frame::new(self.began.elapsed(), direction, line));
    }

    fn direction(&mut self, message: &Value) -> Direction {
        const OF_AGENTS: [&str; 4] = ["session/update", "session/request", "fs/", "terminal/"];
        let id = message["id"].to_string();
        match message["method"].as_str() {
            Some(method) if OF_AGENTS.iter().any(|it| method.starts_with(it)) => {
                Direction::ToClient
            }
            Some(_) => {
                self.asked.insert(id);
                Direction::ToAgent
            }
            // Both sides number their requests, but only a client is told an outcome to give.
            None if message["result"].get("outcome").is_some() => Direction::ToAgent,
            None if self.asked.remove(&id) => Direction::ToClient,
            None => Direction::ToAgent,
        }
    }
}

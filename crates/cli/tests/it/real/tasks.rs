//! Tasks of the real agents: asked in both ways, answered from other processes, verified, killed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::stage::{Agent, Stage};

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A task `t` of an agent.
struct Task {
    stage: Stage,
}

impl Task {
    async fn new(agent: Agent) -> Self {
        Self { stage: Stage::new(agent, "hello.script", "").await }
    }

    /// `tieline task …` as a person starts it.
    #[allow(clippy::disallowed_methods)] // the tests stand outside the program
    fn command(&self, words: &[&str]) -> Command {
        let program = self.stage.tieline();
        let mut command = Command::new(program.path);
        command.arg("task").args(words).env_clear().envs(program.env);
        command.current_dir(program.cwd).stdin(Stdio::null());
        command
    }

    /// In a thread of its own: the model answers in ours.
    async fn run(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    #[track_caller]
    fn ended(output: &Output, code: i32) -> String {
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
        out
    }

    async fn status(&self) -> Value {
        serde_json::from_slice(&self.run(&["show", "t", "--json"]).await.stdout).unwrap()
    }

    /// Waits until the task stands like this.
    async fn stands(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let status = self.status().await;
            if is_so(&status) {
                return status;
            }
            let log = fs::read_to_string(self.store().join("tasks/t.log")).unwrap_or_default();
            assert!(began.elapsed() < LIMIT, "{what}: {status:#}\n{log}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn store(&self) -> PathBuf {
        self.stage.home.root().join("store")
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.stage.workspace().join(name)).unwrap_or_default()
    }

    /// Begins the task, and waits until the agent's own question is open.
    async fn begin(&self) {
        let agent = self.stage.agent.name();
        let words = ["run", "t", "Go. SCENARIO:task", "--agent", agent, "--mode", "acceptEdits"];
        let more = ["--verify", "grep -q right two.txt", "--wait", "600", "--background"];
        let words: Vec<&str> = words.into_iter().chain(more).collect();
        Self::ended(&self.run(&words).await, 0);
        let asked =
            self.stands("the agent's own question", |it| !it["questions"][0].is_null()).await;
        assert_eq!(asked["questions"][0]["text"], "Which colour should I use?");
        assert_eq!(self.file("one.txt"), "first\n");
    }

    /// Every word about the task, in order.
    async fn told(&self) -> String {
        Self::ended(&self.run(&["tail", "t", "--no-follow"]).await, 0)
    }

    /// How often a file was written.
    async fn n_writes(&self, name: &str) -> usize {
        let program = self.stage.tieline();
        #[allow(clippy::disallowed_methods)] // the tests stand outside the program
        let mut command = Command::new(program.path);
        command.args(["export", "t"]).env_clear().envs(program.env);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let changed = |event: &Value| {
            let path = event["data"]["changes"][0]["path"].as_str().unwrap_or_default();
            event["kind"] == "item.completed" && path.ends_with(name)
        };
        events.filter(changed).count()
    }
}

async fn is_asked_answered_verified_and_done(agent: Agent) {
    let task = Task::new(agent).await;
    task.begin().await;
    Task::ended(&task.run(&["answer", "t", "q1=2"]).await, 0);
    let asked = task.stands("the marker's question", |it| it["questions"][0]["id"] == "q2").await;
    assert_eq!(asked["iterations"], 1, "the answer needed no second turn");
    Task::ended(&task.run(&["answer", "t", "1"]).await, 0);
    let done = task.stands("the end", |it| it["alive"] == false).await;
    let told = task.told().await;
    assert_eq!((&done["status"], &done["iterations"]), (&"complete".into(), &3.into()), "{told}");
    assert_eq!((task.file("one.txt"), task.file("two.txt")), ("first\n".into(), "right\n".into()));
    let expected = [
        "[QUESTION] Which colour should I use?",
        "[PROGRESS] answer to q1: Blue",
        "[PROGRESS] Half of it is there",
        "[QUESTION] Where does the rest go?",
        "[PROGRESS] answer to q2: two.txt",
        "[TEST_RESULTS] grep -q right two.txt failed",
        "[TEST_RESULTS] grep -q right two.txt passed",
        "[FILES_MODIFIED]\n- one.txt (created)\n- two.txt (created)\n",
        "[CODEX_COMPLETE] Task completed in 3 iterations",
    ];
    let places: Vec<_> = expected.iter().map(|it| told.find(it)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{told}");
    assert_eq!(told.matches("[CODEX_COMPLETE]").count(), 1, "{told}");
    assert!(!told.contains("MISMATCH"), "{told}");
}

async fn survives_kill_9(agent: Agent) {
    let task = Task::new(agent).await;
    task.begin().await;
    Task::ended(&task.run(&["answer", "t", "q1=2"]).await, 0);
    task.stands("the marker's question", |it| it["questions"][0]["id"] == "q2").await;
    let before = task.told().await;
    kill_process(holder(&task), Signal::KILL).unwrap();
    task.stands("its death", |it| it["alive"] == false).await;
    assert!(task.told().await.starts_with(&before), "what was told is still there");
    let done = task.run(&["run", "t", "--answer", "1"]).await;
    let out = Task::ended(&done, 0);
    assert!(out.ends_with("[CODEX_COMPLETE] Task completed in 3 iterations\n"), "{out}");
    assert_eq!(task.n_writes("one.txt").await, 1, "nothing is done twice");
    assert_eq!(task.file("two.txt"), "right\n");
}

/// The process that works on the task: the one whose words say so.
fn holder(task: &Task) -> Pid {
    let store = task.store().display().to_string();
    let found = fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_it = line.contains("--detached") && line.contains(&store);
        is_it.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    });
    Pid::from_raw(found.expect("the task runs")).unwrap()
}

macro_rules! with_agents {
    ($($scene:ident),*) => {
        $(mod $scene {
            use super::Agent;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn claude() {
                super::$scene(Agent::Claude).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn codex() {
                super::$scene(Agent::Codex).await;
            }
        })*
    };
}

with_agents!(is_asked_answered_verified_and_done, survives_kill_9);

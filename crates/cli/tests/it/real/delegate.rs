//! Two real agents: one has `tieline mcp` among its servers and delegates to the other.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tieline_testkit::agents;
use tieline_testkit::model::{ModelServer, Script, Step};
use tieline_testkit::real::{self, AgentEnv, CodexConfig};

const TIELINE: &str = env!("CARGO_BIN_EXE_tieline");

struct Stage {
    model: ModelServer,
    home: AgentEnv,
}

impl Stage {
    async fn new() -> Self {
        assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
        let model = ModelServer::start().await;
        let codex = CodexConfig { model: "gpt-5.5", ..CodexConfig::default() };
        let home = AgentEnv::both(&model.url(), codex);
        model.workspace(home.workspace());
        Self { model, home }
    }

    /// What a registration must carry, since clients pass on a few variables only.
    fn vars(&self) -> Vec<(String, String)> {
        let mut vars = self.home.vars();
        let mut set = |name: &str, value: &Path| {
            vars.push((name.to_owned(), value.display().to_string()));
        };
        set("TIELINE_HOME", &self.home.root().join("store"));
        set("TIELINE_CLAUDE", &agents::program("claude").unwrap());
        set("TIELINE_CODEX", &agents::program("codex").unwrap());
        vars
    }

    async fn run(&self, program: &Path, args: Vec<String>) -> String {
        #[allow(clippy::disallowed_methods)] // the tests stand outside the program
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.home.workspace())
            .env_clear()
            .envs(self.home.vars())
            .stdin(Stdio::null());
        let run = tokio::task::spawn_blocking(move || command.output().unwrap());
        let Output { status, stdout, stderr } = run.await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(status.success(), "{status}\n{}\n{}", text(&stdout), text(&stderr));
        text(&stdout)
    }

    /// The other agent did it, it is on record, and the first one was told.
    async fn check(&self, said: &str, other: &str) {
        let notes = self.home.workspace().join("notes.txt");
        let tasks = self.task(&["task", "show", "delegated", "--json"]).await;
        assert_eq!(tasks["status"], "complete", "{tasks}\n{said}");
        assert_eq!(tasks["agent"], other, "{tasks}");
        assert_eq!(tasks["files"]["files"][0]["path"], "notes.txt", "{tasks}");
        assert_eq!(fs::read_to_string(notes).unwrap(), "alpha\ngamma\n");
        assert!(said.contains("The other agent is done."), "{said}");
        let requests = self.model.requests();
        let last = requests.iter().rev().map(|request| request.body.to_string());
        let told = last
            .filter(|body| body.contains("SCENARIO:delegate"))
            .find(|body| body.contains("Patched notes.txt.") && body.contains("created"));
        assert!(told.is_some(), "{} requests\n{said}", requests.len());
    }

    async fn task(&self, args: &[&str]) -> Value {
        let mut words: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        let store = self.home.root().join("store").display().to_string();
        words.extend(["--store".to_owned(), store]);
        serde_json::from_str(&self.run(Path::new(TIELINE), words).await).unwrap()
    }
}

/// Claude Code with `tieline mcp` among its servers, to the end of a prompt.
async fn claude(stage: &Stage, prompt: &str) -> String {
    let vars: serde_json::Map<String, Value> =
        stage.vars().into_iter().map(|(name, value)| (name, value.into())).collect();
    let server = json!({"command": TIELINE, "args": ["mcp"], "env": vars});
    let config = stage.home.root().join("mcp.json");
    fs::write(&config, json!({"mcpServers": {"tieline": server}}).to_string()).unwrap();
    let words = [
        "-p",
        prompt,
        "--mcp-config",
        config.to_str().unwrap(),
        "--allowedTools",
        "mcp__tieline__delegate,mcp__tieline__answer",
        "--output-format",
        "json",
    ];
    let claude = agents::program("claude").unwrap();
    stage.run(&claude, words.map(str::to_owned).into()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_code_delegates_to_codex() {
    let stage = Stage::new().await;
    let said = claude(&stage, "Go. SCENARIO:delegate").await;
    stage.check(&said, "codex").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_code_answers_what_codex_asks() {
    let stage = Stage::new().await;
    let task = json!({"task": "Go. SCENARIO:write", "id": "asks", "agent": "codex"});
    let answer = json!({"id": "asks", "answers": [{"question": "q1", "answer": "1"}]});
    let steps = [
        Step::tool("mcp__tieline__delegate", task),
        Step::tool("mcp__tieline__answer", answer),
        Step::say("It was allowed."),
    ];
    stage.model.scenario("delegate-and-answer", Script::new(steps));
    let said = claude(&stage, "Go. SCENARIO:delegate-and-answer").await;
    assert!(said.contains("It was allowed."), "{said}");
    let task = stage.task(&["task", "show", "asks", "--json"]).await;
    assert_eq!(task["status"], "complete", "{task}\n{said}");
    assert_eq!(task["files"]["files"][0]["path"], "created-by-agent.txt", "{task}");
    let bodies: Vec<String> =
        stage.model.requests().iter().map(|request| request.body.to_string()).collect();
    // It was told the question before it answered it.
    let is_told = |word: &str| bodies.iter().any(|body| body.contains(word));
    assert!(is_told("May I create a file in the workspace?"), "{said}");
    assert!(is_told("Task asks: question") || is_told("\\\"status\\\":\\\"question\\\""), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_delegates_to_claude_code() {
    let stage = Stage::new().await;
    let path = stage.home.home().join(".codex/config.toml");
    let mut config = fs::read_to_string(&path).unwrap();
    // `codex exec` asks nobody, and refuses a tool that would have to be asked about.
    config.push_str(&format!(
        "[mcp_servers.tieline]\ncommand = {TIELINE:?}\nargs = [\"mcp\"]\n\
         default_tools_approval_mode = \"approve\"\n[mcp_servers.tieline.env]\n"
    ));
    for (name, value) in stage.vars() {
        config.push_str(&format!("{name} = {value:?}\n"));
    }
    fs::write(&path, config).unwrap();
    let words = ["exec", "--skip-git-repo-check", "--json", "Go. SCENARIO:delegate"];
    let codex = agents::program("codex").unwrap();
    let said = stage.run(&codex, words.map(str::to_owned).into()).await;
    stage.check(&said, "claude").await;
}

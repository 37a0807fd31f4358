//! Plays a scenario with one of the two, and takes down how it ended.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tieline_testkit::agents;
use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{AgentEnv, CodexConfig};

/// What is said, and how much may be done about it.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) reach: Reach,
    /// One process for each.
    pub(super) turns: &'static [&'static str],
}

/// How much may be done without asking; nobody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Read,
    Workspace,
    Everything,
}

impl Reach {
    /// The word that both know it by.
    pub(super) fn word(self) -> &'static str {
        match self {
            Reach::Read => "read-only",
            Reach::Workspace => "workspace-write",
            Reach::Everything => "danger-full-access",
        }
    }
}

/// Who plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Engine,
    Codex,
}

/// How a scenario ended.
pub(super) struct Outcome {
    /// Of each turn: whether it succeeded, and its final text.
    pub(super) turns: Vec<(bool, String)>,
    /// What is in the workspace; a directory has no content.
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
    /// What was written to stderr, for whoever looks into a difference.
    pub(super) complaint: String,
}

/// The model that both are told to use.
const MODEL: &str = "gpt-5.5";

pub(super) async fn play(model: &ModelServer, side: Side, scenario: &Scenario) -> Outcome {
    let config = CodexConfig { model: MODEL, ..CodexConfig::default() };
    let home = AgentEnv::codex(&model.url(), config);
    if side == Side::Engine {
        // As often as Codex is told to by its own configuration.
        let dir = home.home().join(".config/tieline");
        fs::create_dir_all(&dir).unwrap();
        let tries = "request_max_retries = 1\nstream_max_retries = 2\n";
        let config = format!("[engine.providers.openai]\n{tries}");
        fs::write(dir.join("config.toml"), config).unwrap();
    }
    let (mut turns, mut complaint) = (Vec::new(), String::new());
    for (number, prompt) in scenario.turns.iter().enumerate() {
        let last = home.root().join("last-message");
        fs::remove_file(&last).ok();
        let command = match side {
            Side::Engine => engine(model, &home, scenario.reach),
            Side::Codex => codex(&home, scenario.reach, number > 0, &last),
        };
        let output = say(command, prompt).await;
        let text = match side {
            Side::Engine => String::from_utf8(output.stdout).unwrap(),
            Side::Codex => fs::read_to_string(&last).unwrap_or_default(),
        };
        complaint += &String::from_utf8_lossy(&output.stderr);
        turns.push((output.status.success(), text.trim_end_matches('\n').to_owned()));
    }
    let mut files = BTreeMap::new();
    collect(&home.workspace(), Path::new(""), &mut files);
    Outcome { turns, files, complaint }
}

#[allow(clippy::disallowed_methods)] // the tests stand outside the program
fn engine(model: &ModelServer, home: &AgentEnv, reach: Reach) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tieline"));
    command.args(["run", "--agent", "engine", "--format", "final", "--conversation", "versus"]);
    command.args(["--model", MODEL, "-a", "never", "-s", reach.word(), "-"]);
    set(&mut command, home);
    command.env("TIELINE_HOME", home.root().join("store"));
    command.env("OPENAI_BASE_URL", format!("{}/v1", model.url()));
    command
}

#[allow(clippy::disallowed_methods)] // the tests stand outside the program
fn codex(home: &AgentEnv, reach: Reach, resumes: bool, last: &Path) -> Command {
    let mut command = Command::new(agents::program("codex").unwrap());
    command.args(["exec", "--skip-git-repo-check", "-s", reach.word()]);
    command.arg("--output-last-message").arg(last);
    if resumes {
        command.args(["resume", "--last"]);
    }
    command.arg("-");
    set(&mut command, home);
    command
}

fn set(command: &mut Command, home: &AgentEnv) {
    command.env_clear().envs(home.vars()).current_dir(home.workspace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// In a thread of its own: the model answers in ours.
async fn say(mut command: Command, prompt: &str) -> Output {
    let prompt = prompt.to_owned();
    let run = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        // The end of the input is the end of the prompt.
        child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    });
    run.await.unwrap()
}

fn collect(root: &Path, below: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            files.insert(path.clone(), Vec::new());
            collect(root, &path, files);
        } else {
            files.insert(path, fs::read(entry.path()).unwrap());
        }
    }
}

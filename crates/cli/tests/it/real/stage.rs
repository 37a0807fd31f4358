//! The stage of a scenario: a model, a home, and how `tieline acp` is started in it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tieline_testkit::acp::Program;
use tieline_testkit::agents;
use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{self, AgentEnv, CodexConfig};

/// The agent behind `tieline acp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    Claude,
    Codex,
    Demo,
}

impl Agent {
    pub(super) fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Demo => "demo",
        }
    }
}

/// Who speaks with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// The testkit's own client.
    Raw,
    /// The command line client of npm.
    Acpx,
    /// The official library for Rust.
    Sdk,
}

pub(super) struct Stage {
    pub(super) agent: Agent,
    /// It answers as long as it is held.
    _model: ModelServer,
    pub(super) home: AgentEnv,
}

impl Stage {
    /// `script` is what the demo agent plays; `config` is more of the configuration file.
    pub(super) async fn new(agent: Agent, script: &str, config: &str) -> Stage {
        assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
        tieline_proc::set_host_program(real::fake_agent_program());
        let model = ModelServer::start().await;
        let home = match agent {
            Agent::Codex => {
                // Without it, it asks its questions while it plans only.
                let features = &["default_mode_request_user_input"];
                let codex = CodexConfig { model: "gpt-5.5", features, ..CodexConfig::default() };
                AgentEnv::codex(&model.url(), codex)
            }
            Agent::Claude | Agent::Demo => AgentEnv::claude(&model.url()),
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(script);
        let config = format!("[agents.demo]\nscript = {:?}\n{config}", script.display());
        let dir = home.home().join(".config/tieline");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), config).unwrap();
        Stage { agent, _model: model, home }
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.home.workspace()
    }

    /// `tieline acp` with the agent of this stage.
    pub(super) fn tieline(&self) -> Program {
        let mut env = self.home.vars();
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
        set("TIELINE_HOME", self.home.root().join("store").display().to_string());
        set("TIELINE_DEMO_FAST", "1".to_owned());
        for (variable, agent) in [("TIELINE_CLAUDE", "claude"), ("TIELINE_CODEX", "codex")] {
            set(variable, agents::program(agent).unwrap().display().to_string());
        }
        Program {
            path: env!("CARGO_BIN_EXE_tieline").into(),
            args: ["acp", "--agent", self.agent.name()].map(Into::into).into(),
            env,
            cwd: self.workspace(),
        }
    }

    /// The MCP servers of a client that has one.
    pub(super) fn servers(&self, mcp: bool) -> Value {
        let program = real::fake_mcp_program();
        let server = json!({"name": "fake", "command": program, "args": [], "env": []});
        if mcp { json!([server]) } else { json!([]) }
    }
}

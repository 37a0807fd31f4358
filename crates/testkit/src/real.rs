//! What a test needs to run a pinned real agent, offline and away from the user's
//! own files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::sys;

/// Whether this process can reach nothing but itself.
///
/// The suites with real agents run in a network namespace with only `lo`; a test
/// asserts this first, so an agent never talks to the world by mistake.
pub fn loopback_only() -> bool {
    // A new namespace may hold tunnel devices that are down; without a route they
    // lead nowhere.
    let devices = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let mut names = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    names.all(|name| name == "lo") || !has_route()
}

/// Brings the loopback interface of this network namespace up; a new one has it down.
///
/// # Errors
/// When this process may not configure its network.
pub fn raise_loopback() -> std::io::Result<()> {
    sys::raise_loopback()
}

/// The program that looks like Claude Code and misbehaves on command.
///
/// Cargo builds it beside the tests of a whole workspace; `TIELINE_FAKE_AGENT` names
/// another one.
pub fn fake_agent_program() -> PathBuf {
    match env::var_os("TIELINE_FAKE_AGENT") {
        Some(path) => path.into(),
        None => built("fake-agent"),
    }
}

/// An agent made with the Agent Client Protocol's own SDK.
pub fn sdk_agent_program() -> PathBuf {
    built("sdk-agent")
}

/// The MCP server with the one tool `echo`.
pub fn fake_mcp_program() -> PathBuf {
    built("fake-mcp")
}

/// A program that Cargo builds beside the tests.
fn built(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    // A test runs from `deps`, an example from `examples`, a benchmark from `deps`.
    let mut beside = test.ancestors().skip(1).take(2).map(|dir| dir.join(name));
    let found = beside.find(|path| path.is_file());
    found.expect("the testkit's programs are built: run `cargo build -p tieline-testkit --bins`")
}

/// A fresh home and workspace for one real agent, gone when dropped.
pub struct AgentEnv {
    root: TempDir,
    own: Vec<(String, String)>,
}

/// What a test may want of Codex beyond a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodexConfig<'a> {
    /// The model; each version gives other tools to other models.
    pub model: &'a str,
    /// Features to switch on.
    pub features: &'a [&'a str],
    /// Top-level settings, as TOML lines.
    pub settings: &'a [&'a str],
    /// The program of an MCP server called `fake`.
    pub mcp: Option<&'a Path>,
}

impl AgentEnv {
    /// For Claude Code, whose model is at `model_url`.
    pub fn claude(model_url: &str) -> AgentEnv {
        let env = AgentEnv::new(&[
            ("ANTHROPIC_BASE_URL", model_url),
            ("ANTHROPIC_API_KEY", "sk-test"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            // Without it a root user may not bypass permissions.
            ("IS_SANDBOX", "1"),
            // The default is ten tries with backoff, more than a minute.
            ("CLAUDE_CODE_MAX_RETRIES", "1"),
        ]);
        // The root of a project is where the next `.git` is, and others may leave one above us.
        fs::create_dir(env.workspace().join(".git")).expect("a fresh directory is writable");
        env
    }

    /// For Codex, whose model is at `model_url`.
    pub fn codex(model_url: &str, config: CodexConfig) -> AgentEnv {
        let env = AgentEnv::new(&[("OPENAI_API_KEY", "sk-test")]);
        fs::create_dir(env.home().join(".codex")).expect("a fresh directory is writable");
        fs::write(env.home().join(".codex/config.toml"), codex_config(model_url, config))
            .expect("a fresh directory is writable");
        env
    }

    /// For both of them in one home.
    pub fn both(model_url: &str, config: CodexConfig) -> AgentEnv {
        let mut env = AgentEnv::claude(model_url);
        env.own.push(("OPENAI_API_KEY".to_owned(), "sk-test".to_owned()));
        fs::create_dir(env.home().join(".codex")).expect("a fresh directory is writable");
        fs::write(env.home().join(".codex/config.toml"), codex_config(model_url, config))
            .expect("a fresh directory is writable");
        env
    }

    fn new(own: &[(&str, &str)]) -> AgentEnv {
        // Not below `/tmp`: Codex warns of a home there.
        let root = TempDir::new_in("/var/tmp").expect("the temporary directory is writable");
        let own = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = AgentEnv { root, own: own.collect() };
        for directory in [env.home(), env.workspace(), env.root().join("tmp")] {
            fs::create_dir(directory).expect("a fresh directory is writable");
        }
        fs::write(env.workspace().join("README.md"), "# ws\nhello readme\n")
            .expect("a fresh directory is writable");
        env
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The directory to start the agent in; it has a `README.md`.
    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// The directory around both.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The whole environment of the agent; nothing of ours may leak into it.
    pub fn vars(&self) -> Vec<(String, String)> {
        let home = self.home().display().to_string();
        let tmp = self.root().join("tmp").display().to_string();
        let common =
            [("PATH", "/usr/bin:/bin"), ("HOME", &home), ("TMPDIR", &tmp), ("LANG", "C.UTF-8")];
        let common = common.map(|(name, value)| (name.to_owned(), value.to_owned()));
        common.into_iter().chain(self.own.iter().cloned()).collect()
    }
}

/// The configuration of a Codex that talks to the scripted model and to nobody else.
///
/// Plugins and analytics are off because both wait for a network at the end; the
/// retries are few so that failures are quick. Its sandbox leaves an empty `.git` in
/// each directory it lets commands write to, so that `/tmp` is none of them.
fn codex_config(model_url: &str, config: CodexConfig) -> String {
    let CodexConfig { model, features, settings, mcp } = config;
    let lines = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let features: String = features.iter().map(|name| format!("{name} = true\n")).collect();
    let mcp = mcp.map(|program| format!("[mcp_servers.fake]\ncommand = {program:?}\n"));
    format!(
        "model = {model:?}\nmodel_provider = \"fake\"\n{}\
         [features]\nplugins = false\napps = false\n{features}\
         [analytics]\nenabled = false\n\
         [sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n\
         [tools.update_plan]\nenabled = true\n\
         [model_providers.fake]\nname = \"fake\"\nbase_url = \"{model_url}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n\
         request_max_retries = 1\nstream_max_retries = 2\n{}",
        lines(settings),
        mcp.unwrap_or_default(),
    )
}

/// Whether a route leads anywhere but to the loopback interface.
fn has_route() -> bool {
    let leads_out = |table: &str, column: usize| {
        let routes = fs::read_to_string(table).unwrap_or_default();
        let mut devices = routes.lines().filter_map(|line| line.split_whitespace().nth(column));
        devices.any(|device| device != "lo" && device != "Iface")
    };
    leads_out("/proc/thread-self/net/route", 0) || leads_out("/proc/thread-self/net/ipv6_route", 9)
}

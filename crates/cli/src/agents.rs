//! Which agents there are and how they are started.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tieline_agent::Agent;
use tieline_agent::acp::{self, AcpAgent};
use tieline_agent::claude::{self, Claude};
use tieline_agent::codex::{self, Codex, Versions};
use tieline_agent::codex_app::CodexApp;
use tieline_agent::codex_exec::CodexExec;
use tieline_agent::codex_proto::CodexProto;
use tieline_engine::Engine;
use tieline_event::{Failure, FailureCode};
use tieline_hub::Registry;
use tieline_proc::Env;

use crate::config::Config;
use crate::engine;
use crate::error::Error;
use crate::task::depth;

/// The agents users can name, besides `acp:NAME`.
pub(crate) const NAMES: [&str; 6] =
    ["claude", "codex", "codex-exec", "codex-proto", "engine", "demo"];

/// The agents `auto` tries, in this order; after them the engine, if a model is named for it, and at
/// last the built-in one, which is always there.
const AUTO: [Cli; 2] = [Cli::Claude, Cli::Codex];

/// The socket on which a running tieline hears `tieline notify`.
pub(crate) const NOTIFY_SOCKET: &str = "TIELINE_NOTIFY_SOCKET";

/// How any other agent is named.
const ANY_OTHER: &str = "acp:NAME";

/// The agents of this machine.
#[derive(Debug, Clone)]
pub(crate) struct Agents {
    config: Arc<Config>,
    versions: Arc<Versions>,
    /// Where we hear what Codex's notify program is told.
    notify: Option<PathBuf>,
    /// How many tasks they work within.
    depth: Option<u32>,
    /// Where the store is, which no command of the engine may read.
    data_dir: Option<PathBuf>,
    /// One for all conversations.
    engine: Arc<OnceLock<Arc<Engine>>>,
}

/// An agent that is a program with a wire of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    Claude,
    Codex,
    CodexExec,
    CodexProto,
}

impl Cli {
    /// The one of this name. The others are our own, or speak the Agent Client Protocol.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Claude, Self::Codex, Self::CodexExec, Self::CodexProto];
        all.into_iter().find(|cli| cli.name() == name)
    }

    /// The name users give it, which is that of its table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::CodexExec => "codex-exec",
            Self::CodexProto => "codex-proto",
        }
    }
}

/// A program that speaks with us, and where it may be.
struct Program {
    title: &'static str,
    file: &'static str,
    package: &'static str,
    /// Below the home directory, before the places every program may be in.
    own_place: Option<&'static str>,
    /// Whose variable and whose table may name it, the first one first.
    named_by: &'static [&'static str],
}

impl Program {
    fn of(cli: Cli) -> Self {
        let codex = |named_by| Self {
            title: "Codex",
            file: "codex",
            package: "@openai/codex",
            own_place: None,
            named_by,
        };
        match cli {
            Cli::CodexExec => codex(&["codex-exec", "codex"]),
            Cli::CodexProto => codex(&["codex-proto", "codex"]),
            Cli::Codex => codex(&["codex"]),
            Cli::Claude => Self {
                title: "Claude Code",
                file: "claude",
                package: "@anthropic-ai/claude-code",
                own_place: Some(".claude/local/claude"),
                named_by: &["claude"],
            },
        }
    }

    /// Where its installers put it.
    fn usual_places(&self) -> Vec<PathBuf> {
        let own = self.own_place.and_then(|place| Some(home()?.join(place)));
        own.into_iter().chain(usual_places(self.file)).collect()
    }
}

/// Whether an agent has a program called at the end of each turn.
#[derive(Debug, Clone, Copy)]
enum Notified {
    Perhaps,
    Never,
}

/// Where installers put a program.
fn usual_places(file: &str) -> Vec<PathBuf> {
    let in_home = home().into_iter();
    let in_home =
        in_home.flat_map(|home| [".local/bin", ".npm-global/bin"].map(|it| home.join(it)));
    let for_all = ["/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from);
    in_home.chain(for_all).map(|place| place.join(file)).collect()
}

/// A program by its name in `PATH`, else where installers put it.
fn look_for(
    file: &str,
    places: &[PathBuf],
    workspace: &Path,
) -> Result<PathBuf, tieline_proc::Error> {
    tieline_proc::resolve(file, workspace, path_variable().as_deref()).or_else(|err| {
        let mut places = places.iter().filter_map(|place| place.to_str());
        let found = places.find_map(|place| tieline_proc::resolve(place, workspace, None).ok());
        found.ok_or(err)
    })
}

impl Agents {
    /// The agents as configured.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            config: Arc::new(config.clone()),
            versions: Arc::default(),
            notify: None,
            depth: None,
            data_dir: None,
            engine: Arc::default(),
        }
    }

    /// What is learnt about them is kept in the data directory.
    pub(crate) fn remembered_in(self, dir: &Path) -> Self {
        let versions = Arc::new(Versions::in_file(dir.join("versions.json")));
        Self { versions, data_dir: Some(dir.to_owned()), ..self }
    }

    /// Codex's notify program finds us here.
    pub(crate) fn notified_at(self, socket: PathBuf) -> Self {
        Self { notify: Some(socket), ..self }
    }

    /// They work within so many tasks.
    pub(crate) fn at_depth(self, depth: u32) -> Self {
        Self { depth: Some(depth), ..self }
    }

    /// The name of the agent to use, and why, when the user left the choice to us.
    pub(crate) fn choose(
        &self,
        name: &str,
        workspace: &Path,
    ) -> Result<(String, Option<String>), Error> {
        if name != "auto" {
            check_name(name, &["auto"])?;
            return Ok((name.to_owned(), None));
        }
        let mut why = "built in".to_owned();
        for cli in AUTO {
            match self.program(cli, workspace) {
                Ok(path) => {
                    let found = format!("found {}", path.display());
                    return Ok((cli.name().to_owned(), Some(found)));
                }
                // What the user named and is not there is a mistake, not a missing agent.
                Err(failure) if self.is_named(cli) => return Err(failure.into()),
                Err(failure) => why = format!("{why}; {}", failure.message),
            }
        }
        match engine::named_by(&self.config) {
            Some(place) => Ok(("engine".to_owned(), Some(format!("{place} names a model")))),
            None => {
                let why = format!("{why}; nothing says where a model for the engine is");
                Ok(("demo".to_owned(), Some(why)))
            }
        }
    }

    /// An agent's program: what the user named, else its name in `PATH`, else where its installers
    /// put it.
    pub(crate) fn program(&self, cli: Cli, workspace: &Path) -> Result<PathBuf, Failure> {
        let program = Program::of(cli);
        let failure = |message: String| Failure::new(FailureCode::AgentNotFound, message);
        if let Some((place, named)) = self.named(&program) {
            return self.resolve(&named, workspace).map_err(|err| {
                failure(format!("{place} does not name a program: {err}"))
                    .hint(format!("correct {place}, or take it away"))
            });
        }
        look_for(program.file, &program.usual_places(), workspace).map_err(|err| {
            let Program { title, package, named_by, .. } = program;
            let variable = named_by.first().map(|table| variable(table)).unwrap_or_default();
            failure(format!("{title} is not installed: {err}")).hint(format!(
                "install it with `npm install -g {package}`, or name its program in {variable} or \
                 in the configuration"
            ))
        })
    }

    /// Whether the user named the program of an agent.
    pub(crate) fn is_named(&self, cli: Cli) -> bool {
        self.named(&Program::of(cli)).is_some()
    }

    /// What the user named, and where.
    fn named(&self, program: &Program) -> Option<(String, String)> {
        program.named_by.iter().find_map(|table| {
            let variable = variable(table);
            let named = std::env::var(&variable).ok().filter(|it| !it.is_empty());
            let named = named.map(|named| (variable, named));
            named.or_else(|| {
                let program = self.config.table(table).program?;
                Some((format!("agents.{table}.program"), program))
            })
        })
    }

    /// The environment a program gets.
    pub(crate) fn env(&self, cli: Cli) -> Env {
        match cli {
            Cli::Claude => self.env_of(cli.name(), claude::OWN_VARIABLES, Notified::Never),
            Cli::Codex | Cli::CodexExec | Cli::CodexProto => {
                self.env_of(cli.name(), codex::OWN_VARIABLES, Notified::Perhaps)
            }
        }
    }

    fn env_of(&self, agent: &str, own: &[&str], notified: Notified) -> Env {
        let config = self.config.agent(agent);
        let mut env = Env::inherited(own, &config.pass.unwrap_or_default());
        match (notified, &self.notify) {
            (Notified::Never, _) => {
                // It would take itself for a part of the session tieline was started from.
                env.remove("CLAUDECODE").remove("CLAUDE_CODE_ENTRYPOINT").remove(NOTIFY_SOCKET);
            }
            (Notified::Perhaps, Some(socket)) => {
                env.set(NOTIFY_SOCKET, socket);
            }
            (Notified::Perhaps, None) => {
                // The one we were started with is somebody else's.
                env.remove(NOTIFY_SOCKET);
            }
        }
        for (name, value) in config.env.unwrap_or_default() {
            env.set(name, value);
        }
        self.tell_depth(&mut env);
        env
    }

    fn tell_depth(&self, env: &mut Env) {
        if let Some(depth) = self.depth {
            env.set(depth::VARIABLE, depth.to_string());
        }
    }

    /// Any agent of the Agent Client Protocol: one that is known by its name or configured under it,
    /// else the name is its command line.
    fn speaker(&self, name: &str, workspace: &Path) -> Result<AcpAgent, Failure> {
        let (program, args) = self.command_line(name, workspace)?;
        let preamble = self.config.agent(name).preamble.unwrap_or_default();
        let own = acp::find(name).map_or(&[][..], |known| known.own_variables);
        let env = self.env_of(name, own, Notified::Never);
        Ok(AcpAgent { name: name.to_owned(), program, args, env, preamble })
    }

    /// The program of such an agent and its arguments.
    pub(crate) fn command_line(
        &self,
        name: &str,
        workspace: &Path,
    ) -> Result<(PathBuf, Vec<String>), Failure> {
        let line = name.strip_prefix(acp::PREFIX).unwrap_or(name);
        let config = self.config.agent(name);
        let more = config.args.unwrap_or_default();
        let failure = |message: String| Failure::new(FailureCode::AgentNotFound, message);
        if let Some(named) = config.program {
            let place = format!("agents.acp.{line}.program");
            let program = self.resolve(&named, workspace).map_err(|err| {
                failure(format!("{place} does not name a program: {err}"))
                    .hint(format!("correct {place}, or take it away"))
            })?;
            let known = acp::find(name).map_or(&[][..], |known| known.args);
            return Ok((program, known.iter().map(|arg| (*arg).to_owned()).chain(more).collect()));
        }
        if let Some(known) = acp::find(name) {
            let places = usual_places(known.program);
            let program = look_for(known.program, &places, workspace).map_err(|err| {
                failure(format!("{} is not installed: {err}", known.title)).hint(format!(
                    "install it ({}), or name its program in agents.acp.{line}.program",
                    known.install
                ))
            })?;
            let args = known.args.iter().map(|arg| (*arg).to_owned()).chain(more);
            return Ok((program, args.collect()));
        }
        let mut words = acp::words(line).unwrap_or_default().into_iter();
        let program = words.next().unwrap_or_default();
        let program = match program.contains('/') {
            // A file of the workspace is never a program, whoever names it.
            true => tieline_proc::resolve(&expand_home(&program), workspace, None),
            false => tieline_proc::resolve(&program, workspace, path_variable().as_deref()),
        };
        let program = program.map_err(|err| {
            let known: Vec<_> = acp::KNOWN.iter().map(|known| known.name).collect();
            failure(format!("{line:?} is no agent that is known, and no program: {err}")).hint(
                format!(
                    "known after acp: are {}; any other needs its command line, or a table \
                     [agents.acp.NAME] in the configuration",
                    known.join(", ")
                ),
            )
        })?;
        Ok((program, words.chain(more).collect()))
    }

    fn resolve(&self, named: &str, workspace: &Path) -> Result<PathBuf, tieline_proc::Error> {
        match named.contains('/') {
            true => tieline_proc::resolve_explicit(&expand_home(named)),
            false => tieline_proc::resolve(named, workspace, path_variable().as_deref()),
        }
    }

    /// What is configured.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Names of configured agents of the Agent Client Protocol.
    pub(crate) fn configured_speakers(&self) -> Vec<String> {
        self.config.names().filter(|name| name.starts_with(acp::PREFIX)).collect()
    }

    /// What is known about versions.
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    fn claude(&self, workspace: &Path) -> Result<Claude, Failure> {
        let config = self.config.agent("claude");
        Ok(Claude {
            program: self.program(Cli::Claude, workspace)?,
            args: config.args.unwrap_or_default(),
            env: self.env(Cli::Claude),
            lifetime: config.lifetime,
            preamble: config.preamble.unwrap_or_default(),
            name: "claude",
            is_root: rustix::process::geteuid().is_root(),
        })
    }

    fn engine(&self) -> Result<Arc<Engine>, Failure> {
        if let Some(engine) = self.engine.get() {
            return Ok(Arc::clone(engine));
        }
        let mut settings = engine::settings(&self.config, self.data_dir.as_deref())?;
        self.tell_depth(&mut settings.env);
        let engine = Arc::new(Engine::new("engine", settings));
        Ok(Arc::clone(self.engine.get_or_init(|| engine)))
    }

    fn codex(&self, cli: Cli, workspace: &Path) -> Result<Codex, Failure> {
        let config = self.config.agent(cli.name());
        // Without a socket of ours nobody would hear it.
        let notify = match config.notify.unwrap_or_default() && self.notify.is_some() {
            true => Some(vec![ourselves()?.display().to_string(), "notify".to_owned()]),
            false => None,
        };
        Ok(Codex {
            program: self.program(cli, workspace)?,
            args: config.args.unwrap_or_default(),
            env: self.env(cli),
            preamble: config.preamble.unwrap_or_default(),
            notify,
            versions: Arc::clone(&self.versions),
        })
    }
}

impl Registry for Agents {
    fn agent(&self, name: &str, workspace: &Path) -> Result<Arc<dyn Agent>, Failure> {
        if let Some(cli) = Cli::named(name) {
            return Ok(match cli {
                Cli::Claude => Arc::new(self.claude(workspace)?),
                Cli::Codex => {
                    let seats = self.config.agent(name).shared.unwrap_or(1);
                    Arc::new(CodexApp { codex: self.codex(cli, workspace)?, seats })
                }
                Cli::CodexExec => Arc::new(CodexExec { codex: self.codex(cli, workspace)? }),
                Cli::CodexProto => Arc::new(CodexProto { codex: self.codex(cli, workspace)? }),
            });
        }
        match name {
            "engine" => Ok(self.engine()?),
            "demo" => {
                let mut settings = engine::demo(&self.config, self.data_dir.as_deref());
                self.tell_depth(&mut settings.env);
                Ok(Arc::new(Engine::new(name, settings)))
            }
            name if name.starts_with(acp::PREFIX) => Ok(Arc::new(self.speaker(name, workspace)?)),
            _ => Err(Failure::new(FailureCode::AgentNotFound, format!("unknown agent {name:?}"))
                .hint(format!("the agents are {}, {ANY_OTHER}", NAMES.join(", ")))),
        }
    }
}

/// Refuses a name that is no agent's; `more` are known besides.
pub(crate) fn check_name(name: &str, more: &[&str]) -> Result<(), Error> {
    if let Some(line) = name.strip_prefix(acp::PREFIX) {
        return match acp::words(line) {
            Some(_) => Ok(()),
            None => Err(Error::usage(format!(
                "{name:?} names no agent: after acp: comes a name or a command line"
            ))),
        };
    }
    if NAMES.contains(&name) {
        return Ok(());
    }
    let known: Vec<_> = more.iter().chain(&NAMES).copied().chain([ANY_OTHER]).collect();
    Err(Error::usage(format!("unknown agent {name:?}; the agents are {}", known.join(", "))))
}

/// Whether an agent speaks one of Codex's wires, and so knows its policies and its notify program.
pub(crate) fn is_codex(name: &str) -> bool {
    match Cli::named(name) {
        Some(Cli::Codex | Cli::CodexExec | Cli::CodexProto) => true,
        Some(Cli::Claude) | None => false,
    }
}

/// Whether an agent is our own engine, on a model or on a script.
pub(crate) fn is_engine(name: &str) -> bool {
    matches!(name, "engine" | "demo")
}

/// Whether an agent is told when to ask and what its commands may reach, each by itself.
pub(crate) fn takes_pairs(name: &str) -> bool {
    is_codex(name) || is_engine(name)
}

fn ourselves() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|err| {
        Failure::new(FailureCode::AgentCannotStart, format!("cannot find our own program: {err}"))
    })
}

/// `TIELINE_CODEX_EXEC` for `codex-exec`.
fn variable(table: &str) -> String {
    format!("TIELINE_{}", table.replace('-', "_").to_ascii_uppercase())
}

fn path_variable() -> Option<std::ffi::OsString> {
    std::env::var_os("PATH")
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

fn expand_home(program: &str) -> String {
    match (program.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => program.to_owned(),
    }
}

#[test]
fn a_name_that_nobody_has_is_no_program_of_another() {
    let agents = Agents::new(&Config::default());
    for name in ["nobody", "", "Claude", "codex-", "auto"] {
        assert_eq!(Cli::named(name), None, "{name}");
        let Err(failure) = agents.agent(name, Path::new("/")) else { panic!("{name} is an agent") };
        assert_eq!(failure.code, FailureCode::AgentNotFound, "{name}");
        assert!(failure.message.contains("unknown agent"), "{name}: {failure}");
        assert!(check_name(name, &[]).is_err(), "{name}");
    }
    // The programs are those of the names that are not our own agents'.
    let named: Vec<&str> =
        NAMES.iter().copied().filter(|name| Cli::named(name).is_some()).collect();
    assert_eq!(named, NAMES[..4]);
    assert!(NAMES.iter().all(|name| Cli::named(name).is_some() != is_engine(name)));
}

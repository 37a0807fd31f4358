//! `tieline acp`: an agent for every editor.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tieline_event::{ConversationKey, Failure, FailureCode, Mode};
use tieline_front::acp::{Accounts, Choose, Login, Options, Rule, Work};
use tieline_hub::{Hub, Registry};
use tieline_proc::{RunLimits, Spec};

use crate::agents::{Agents, Cli, NAMES};
use crate::args::{AcpArgs, Global, OnRequestArg};
use crate::config;
use crate::error::Error;
use crate::exit::Exit;
use crate::run::{limits, new_key, notify_socket, open_store, workspace};
use crate::stdio;

/// How long an agent's own program may take to log out or to say whether somebody is logged in.
const PATIENCE: RunLimits = RunLimits { timeout: Duration::from_secs(30), max_output: 64 * 1024 };

/// Serves an editor on stdin and stdout until it hangs up.
pub(crate) fn acp(global: &Global, args: &AcpArgs) -> Result<Exit, Error> {
    let config = config::load(global.config.as_deref())?;
    let name = args.agent.clone().or_else(|| config.agent.clone());
    let name = name.unwrap_or_else(|| "auto".to_owned());
    let here = workspace(Path::new("."))?;
    if args.login {
        return log_in(&Agents::new(&config), &name, &here);
    }
    let store = open_store(global)?;
    let agents = Agents::new(&config).remembered_in(store.dir());
    if name != "auto" {
        // A name nobody knows is a mistake in the editor's settings, and told at once.
        agents.choose(&name, &here)?;
    }
    let notify = notify_socket(&config, &store, &NAMES);
    let agents = match &notify {
        Some(socket) => agents.notified_at(socket.path().to_owned()),
        None => agents,
    };
    let on_request = match args.on_request.or(config.on_request) {
        Some(OnRequestArg::Allow) => Rule::Allow,
        Some(OnRequestArg::Fail) => Rule::Fail,
        // The client is asked wherever it can be.
        Some(OnRequestArg::Deny | OnRequestArg::Ask) | None => Rule::Deny,
    };
    let timeout = args.timeout.map(Duration::from_secs).or(config.timeout);
    let limits = limits(&config, &name, timeout);
    let accounts = Own { agents: agents.clone(), name: name.clone(), here };
    let options = Options {
        choose: chooser(agents.clone(), name.clone()),
        new_key: Arc::new(key),
        modes,
        mode: args.mode.or(config.mode),
        model: args.model.clone().or_else(|| config.model_of(&name)),
        on_request,
        accounts: Arc::new(accounts),
        known: Some(store.dir().join("offers.json")),
        line: limits.line,
        version: env!("CARGO_PKG_VERSION"),
        nonce: key().as_str().to_owned(),
    };
    let output = stdio::output()?;
    let hub = Hub::new(store, Arc::new(agents), limits);
    stdio::serve(async move {
        // Dropped, it takes its socket away.
        let _listening = notify.map(|socket| socket.listen(hub.clone())).transpose()?;
        let served = tieline_front::acp::serve(hub, options, stdio::input(), output).await;
        served.map_err(|err| Error::new(Exit::Failed, crate::error::chain(&err)))
    })?;
    Ok(Exit::Completed)
}

/// The agent of a new session; one that is not there is told before anything is written.
pub(crate) fn chooser(agents: Agents, name: String) -> Choose {
    Arc::new(move |workspace| {
        let (chosen, _) = agents
            .choose(&name, workspace)
            .map_err(|err| Failure::new(FailureCode::AgentNotFound, err.message().to_owned()))?;
        agents.agent(&chosen, workspace)?;
        Ok(chosen)
    })
}

/// What is offered before the agent is there to say it; an old one takes it back.
fn modes(agent: &str) -> &'static [Mode] {
    match agent {
        "claude" => {
            let is_root = rustix::process::geteuid().is_root();
            tieline_agent::claude::modes(is_root, std::env::var_os("IS_SANDBOX").is_some())
        }
        "codex" => &Mode::ALL,
        _ => &Mode::COMMON,
    }
}

/// Many sessions may begin in the same second, so their keys have more letters.
fn key() -> ConversationKey {
    new_key("acp", 8).expect("letters, digits and dashes can name a conversation")
}

/// The logins of the agent's own program.
struct Own {
    agents: Agents,
    name: String,
    here: PathBuf,
}

/// What an agent's own program is called with to log in, to log out, and to say who is.
struct Words {
    title: &'static str,
    log_in: &'static [&'static str],
    log_out: &'static [&'static str],
    status: &'static [&'static str],
}

impl Words {
    fn of(cli: Cli) -> Self {
        match cli {
            Cli::Claude => Self {
                title: "Claude Code",
                log_in: &["auth", "login"],
                log_out: &["auth", "logout"],
                status: &["auth", "status"],
            },
            Cli::Codex | Cli::CodexExec | Cli::CodexProto => Self {
                title: "Codex",
                log_in: &["login"],
                log_out: &["logout"],
                status: &["login", "status"],
            },
        }
    }
}

impl Own {
    fn agent(&self) -> Option<(Cli, Words)> {
        let (agent, _) = self.agents.choose(&self.name, &self.here).ok()?;
        let cli = Cli::named(&agent)?;
        Some((cli, Words::of(cli)))
    }

    /// Runs the agent's own program.
    async fn run(&self, words: fn(&Words) -> &'static [&'static str]) -> Result<(), Failure> {
        let Some((cli, told)) = self.agent() else { return Ok(()) };
        let words = words(&told);
        let program = self.agents.program(cli, &self.here)?;
        let mut spec = Spec::new(program, &self.here);
        spec.args = words.iter().map(Into::into).collect();
        spec.env = self.agents.env(cli);
        let failure = |message: String| {
            Failure::new(FailureCode::NotLoggedIn, message).hint(format!(
                "log in with `tieline acp --agent {} --login`, or set the provider's key",
                cli.name()
            ))
        };
        let shown = format!("`{} {}`", told.title, words.join(" "));
        match tieline_proc::run(spec, b"", PATIENCE).await {
            Ok(output) if output.exit.is_some_and(|exit| exit.is_success()) => Ok(()),
            Ok(output) => Err(failure(format!("{shown} says no"))
                .detail(output.stdout.to_text().trim().to_owned())),
            Err(err) => Err(failure(format!("{shown} failed: {err}"))),
        }
    }
}

impl Accounts for Own {
    fn logins(&self) -> Vec<Login> {
        let Some((cli, Words { title, .. })) = self.agent() else { return Vec::new() };
        let agent = cli.name();
        vec![
            Login {
                id: format!("{agent}-login"),
                name: format!("Log in to {title}"),
                description: format!("Runs {title}'s own login in a terminal"),
                terminal: Some(vec!["--login".to_owned()]),
            },
            Login {
                id: format!("{agent}-account"),
                name: format!("Use the login of {title}"),
                description: format!("Checks that {title} is logged in, or has a key"),
                terminal: None,
            },
        ]
    }

    fn check<'a>(&'a self, _: &'a str) -> Work<'a> {
        Box::pin(self.run(|words| words.status))
    }

    fn log_out(&self) -> Work<'_> {
        Box::pin(self.run(|words| words.log_out))
    }
}

/// Becomes the agent's own login.
fn log_in(agents: &Agents, name: &str, here: &Path) -> Result<Exit, Error> {
    let (agent, _) = agents.choose(name, here)?;
    let Some(cli) = Cli::named(&agent) else {
        return Err(Error::usage(format!("the agent {agent} needs no login")));
    };
    let words = Words::of(cli);
    let mut spec = Spec::new(agents.program(cli, here)?, here);
    spec.args = words.log_in.iter().map(Into::into).collect();
    spec.env = agents.env(cli);
    let err = tieline_proc::replace(&spec);
    Err(Error::new(Exit::CannotStart, format!("cannot start the login of {}: {err}", words.title)))
}

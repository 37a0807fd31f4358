//! `tieline run`: one turn.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::Access;
use tieline_event::{ConversationKey, Kind, Prompt, Seq, Timestamp};
use tieline_front::notify::Socket;
use tieline_front::run::{self as front, Format, Layout, Look, OnRequest, Tasks, Tty, Voices};
use tieline_front::sanitize::one_line;
use tieline_hub::{Hub, Limits, OpenOptions, Registry};
use tieline_store::Store;
use tokio::runtime::Runtime;

use crate::agents::{Agents, is_codex};
use crate::args::{FormatArg, Global, OnRequestArg, RunArgs};
use crate::config::{self, Config};
use crate::engine;
use crate::error::{Error, chain};
use crate::exit::Exit;
use crate::policy::{self, Standing};
use crate::print::tell;
use crate::prompt;
use crate::queue::{self, Waited};
use crate::show::each_event;

/// How long a stop by the terminal waits for writes that are under way.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// Runs one turn.
pub(crate) fn run(global: &Global, args: RunArgs) -> Result<Exit, Error> {
    let config = config::load(global.config.as_deref())?;
    let prompt = prompt::read(args.prompt.as_deref())?;
    let cwd = args.cwd.as_deref().map(workspace).transpose()?;
    let store = open_store(global)?;
    let key = args.conversation.clone().map_or_else(|| new_key("run", 4), Ok)?;
    let job = Job { config, args, prompt, cwd, store, key };
    loop {
        if job.args.queue && queue::wait(&job.store, &job.key)? == Waited::Interrupted {
            return Ok(Exit::Interrupted);
        }
        match job.play() {
            // Somebody else was next.
            Err(err) if job.args.queue && err.is_busy() => {}
            result => return result,
        }
    }
}

/// What a run is to do.
struct Job {
    config: Config,
    args: RunArgs,
    prompt: String,
    cwd: Option<PathBuf>,
    store: Store,
    key: ConversationKey,
}

impl Job {
    fn play(&self) -> Result<Exit, Error> {
        let Self { config, args, prompt, store, key, .. } = self;
        let agents = Agents::new(config).remembered_in(store.dir());
        let existing = store.conversation(key)?;
        let (agent, open) = match &existing {
            Some(row) => (row.agent.clone(), self.go_on(&agents, row)?),
            None => self.begin(&agents)?,
        };
        let format = args.format.or(config.format).unwrap_or(FormatArg::Text);
        let after = existing.map_or(Seq(0), |row| Seq(row.n_events()));
        let (on_request, policy) = who_answers(args.on_request.or(config.on_request), format)?;
        let options = front::Options {
            format: format.into(),
            look: look(),
            on_request,
            policy,
            tasks: if args.no_wait { Tasks::End } else { Tasks::Await },
            after,
            go_on: format!("{} run --conversation {} \"…\"", program_name(), quoted(key.as_str())),
        };
        let timeout = args.timeout.map(Duration::from_secs).or(config.timeout);
        let notify = notify_socket(config, store, &[&agent]);
        let agents = match &notify {
            Some(socket) => agents.notified_at(socket.path().to_owned()),
            None => agents,
        };
        let turn = Turn {
            key: key.clone(),
            open,
            prompt: Prompt::text(prompt.clone()),
            options,
            session: if args.fresh { Session::Fresh } else { Session::GoesOn },
            notify,
        };
        let exit = turn.play(store.clone(), agents, limits(config, &agent, timeout))?;
        if exit == Exit::CannotStart && after == Seq(0) && args.conversation.is_none() {
            self.forget_start()?;
        }
        Ok(exit)
    }

    /// A conversation that nobody named and whose agent never said a word is of no use.
    fn forget_start(&self) -> Result<(), Error> {
        let mut n_said = 0;
        each_event(&self.store, &self.key, |event| {
            n_said += usize::from(matches!(event.kind, Kind::ItemCompleted(_)));
            Ok(())
        })?;
        // The one is the prompt.
        if n_said <= 1 {
            self.store.delete(&self.key)?;
        }
        Ok(())
    }

    /// How to go on with a conversation.
    fn go_on(
        &self,
        agents: &Agents,
        row: &tieline_store::Conversation,
    ) -> Result<OpenOptions, Error> {
        if let Some(name) = self.args.agent.as_deref().filter(|name| *name != "auto") {
            let (name, _) = agents.choose(name, Path::new(&row.workspace))?;
            if name != row.agent {
                return Err(Error::usage(format!(
                    "conversation {} belongs to the agent {}, not {name}; choose another key with \
                     --conversation, or leave --agent out",
                    self.key, row.agent
                )));
            }
        }
        let standing = Standing { mode: row.mode, policy: row.policy };
        let change = policy::decide(&self.args, standing, &row.agent)?;
        Ok(OpenOptions {
            agent: None,
            workspace: self.cwd.clone(),
            mode: change.mode,
            policy: change.policy,
            model: self.args.model.clone(),
            ..OpenOptions::default()
        })
    }

    /// The agent of a new conversation, and how to begin.
    fn begin(&self, agents: &Agents) -> Result<(String, OpenOptions), Error> {
        let Self { config, args, .. } = self;
        let cwd = match &self.cwd {
            Some(cwd) => cwd.clone(),
            None => workspace(Path::new("."))?,
        };
        let name = args.agent.as_deref().or(config.agent.as_deref()).unwrap_or("auto");
        let (name, why) = agents.choose(name, &cwd)?;
        let standing = Standing { mode: config.mode.unwrap_or_default(), policy: None };
        let change = policy::decide(args, standing, &name)?;
        // An agent that is not there is told before anything is written.
        agents.agent(&name, &cwd)?;
        if name == "engine" {
            engine::check_key(config)?;
        }
        if let Some(why) = why {
            tell(&format!("tieline: agent {name} ({})", one_line(&why)));
        }
        let open = OpenOptions {
            agent: Some(name.clone()),
            workspace: Some(cwd),
            mode: change.mode.or(config.mode),
            policy: change.policy,
            model: args.model.clone().or_else(|| config.model_of(&name)),
            ..OpenOptions::default()
        };
        Ok((name, open))
    }
}

/// The socket on which the notify program of one of these agents finds us. A run goes on without one.
pub(crate) fn notify_socket(config: &Config, store: &Store, agents: &[&str]) -> Option<Socket> {
    let is_wanted = |agent: &&str| is_codex(agent) && config.agent(agent).notify == Some(true);
    if !agents.iter().any(is_wanted) {
        return None;
    }
    match Socket::bind(store.dir()) {
        Ok(socket) => Some(socket),
        Err(err) => {
            let why = one_line(&chain(&err));
            tell(&format!("tieline: notify is off for this run: {why}"));
            None
        }
    }
}

/// A turn with everything it needs.
pub(crate) struct Turn {
    pub(crate) key: ConversationKey,
    pub(crate) open: OpenOptions,
    pub(crate) prompt: Prompt,
    pub(crate) options: front::Options,
    pub(crate) session: Session,
    pub(crate) notify: Option<Socket>,
}

/// What becomes of the agent's own session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// It goes on, if there is one.
    GoesOn,
    /// It is forgotten, and a new one begins.
    Fresh,
}

impl Turn {
    pub(crate) fn play(self, store: Store, agents: Agents, limits: Limits) -> Result<Exit, Error> {
        let runtime = runtime()?;
        let hub = Hub::new(store, Arc::new(agents), limits);
        let result = runtime.block_on(async {
            // Dropped, it takes its socket away.
            let _listening = self.notify.map(|socket| socket.listen(hub.clone())).transpose()?;
            let conversation = hub.conversation(&self.key, self.open).await?;
            if self.session == Session::Fresh {
                conversation.reset().await?;
            }
            let ending = front::run(&hub, &conversation, self.prompt, self.options).await;
            if ending.is_err() {
                hub.close_all().await;
            }
            Ok::<_, Error>(ending?)
        });
        // Whatever still runs is dropped, and with it every process it holds.
        runtime.shutdown_timeout(Duration::from_millis(200));
        Ok(Exit::from(&result?))
    }
}

/// One thread for everything that does not block: a turn has one agent and one reader.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Error::new(Exit::Failed, format!("cannot start: {err}")))
}

/// Where the store lies.
pub(crate) fn store_dir(global: &Global) -> Result<PathBuf, Error> {
    match global.store.as_ref().filter(|dir| !dir.as_os_str().is_empty()) {
        // A path on the command line is read where it was typed; one of the environment is not.
        Some(dir) if dir.is_relative() && is_of_environment(dir) => {
            Err(tieline_store::Error::RelativeHome { path: dir.clone() }.into())
        }
        Some(dir) => std::path::absolute(dir)
            .map_err(|err| Error::usage(format!("--store {}: {err}", dir.display()))),
        None => Ok(tieline_store::default_dir()?),
    }
}

fn is_of_environment(dir: &Path) -> bool {
    std::env::var_os("TIELINE_HOME").is_some_and(|home| Path::new(&home) == dir)
}

pub(crate) fn open_store(global: &Global) -> Result<Store, Error> {
    // A stop between two writes leaves the database to others.
    if let Err(err) = tieline_proc::before_stop(|| tieline_store::quiet(STOP_LIMIT)) {
        tracing::warn!(%err, "a stop by the terminal may hold up other processes");
    }
    Ok(Store::open(&store_dir(global)?, tieline_store::Options::default())?)
}

/// For commands that only show what is there. They do so where nothing can be written, too.
pub(crate) fn open_store_to_read(global: &Global) -> Result<Store, Error> {
    let store = Store::open_to_read(&store_dir(global)?, tieline_store::Options::default())?;
    if store.is_read_only() {
        tracing::info!(dir = %store.dir().display(), "the store can only be read");
    }
    Ok(store)
}

pub(crate) fn limits(config: &Config, agent: &str, turn_timeout: Option<Duration>) -> Limits {
    let limits = Limits::default();
    let idle = config.idle_sleep.unwrap_or(limits.idle);
    let silence = config.agent(agent).silence.or(limits.silence);
    Limits { turn_timeout, idle, silence, ..limits }
}

/// How text looks where it goes.
pub(crate) fn look() -> Look {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Look::plain();
    }
    Look {
        layout: Layout::Together,
        voices: Voices::Agent,
        color: has_colors(),
        live: std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
        width: width(),
    }
}

/// The columns of the terminal.
pub(crate) fn width() -> usize {
    rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns >= 20)
        .unwrap_or(80)
}

/// Whether the user wants colours on a terminal.
pub(crate) fn has_colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Who answers the agent, and the name of that rule for the record.
pub(crate) fn who_answers(
    asked: Option<OnRequestArg>,
    format: FormatArg,
) -> Result<(OnRequest, String), Error> {
    let has_screen = match format {
        FormatArg::Text => io::stdout().is_terminal(),
        FormatArg::Final => io::stderr().is_terminal(),
        FormatArg::Jsonl => false,
    };
    let policy = |word: &str| format!("--on-request {word}");
    Ok(match asked {
        Some(OnRequestArg::Deny) => (OnRequest::Deny, policy("deny")),
        Some(OnRequestArg::Allow) => (OnRequest::Allow, policy("allow")),
        Some(OnRequestArg::Fail) => (OnRequest::Fail, policy("fail")),
        Some(OnRequestArg::Ask) => match Tty::open() {
            Some(tty) if has_screen || io::stderr().is_terminal() => {
                (OnRequest::Ask(tty), policy("ask"))
            }
            _ => {
                return Err(Error::usage(
                    "--on-request ask needs a terminal; use deny, allow or fail here",
                ));
            }
        },
        None => match Tty::open().filter(|_| has_screen) {
            Some(tty) => (OnRequest::Ask(tty), policy("ask")),
            None => {
                (OnRequest::Deny, format!("{}, the default without a terminal", policy("deny")))
            }
        },
    })
}

/// A directory the agent can work in.
pub(crate) fn workspace(dir: &Path) -> Result<PathBuf, Error> {
    let refused = |reason: &str| {
        Error::usage(format!("cannot work in {}: {reason}; choose another --cwd", dir.display()))
    };
    let path = dir.canonicalize().map_err(|err| refused(&err.to_string()))?;
    if !path.is_dir() {
        return Err(refused("it is not a directory"));
    }
    rustix::fs::access(&path, Access::READ_OK | Access::EXEC_OK)
        .map_err(|err| refused(&err.to_string()))?;
    Ok(path)
}

/// A key nobody has: what it is for, when, and some random characters.
pub(crate) fn new_key(purpose: &str, n_random: usize) -> Result<ConversationKey, Error> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = RandomState::new().hash_one(std::process::id());
    let mut suffix = String::new();
    for _ in 0..n_random {
        let at = usize::try_from(random % 32).unwrap_or(0);
        suffix.push(char::from(LETTERS.get(at).copied().unwrap_or(b'x')));
        random /= 32;
    }
    let now = Timestamp::now().to_string();
    let digits = |part: &str| part.chars().filter(char::is_ascii_digit).collect::<String>();
    let (day, time) = now.split_once('T').unwrap_or((&now, ""));
    let now = format!("{}-{}", digits(day), digits(time.split('.').next().unwrap_or(time)));
    ConversationKey::new(&format!("{purpose}-{now}-{suffix}"))
        .map_err(|err| Error::usage(err.to_string()))
}

/// How this program can be called again.
pub(crate) fn program_name() -> String {
    std::env::args()
        .next()
        .filter(|name| name.contains('/'))
        .map_or_else(|| "tieline".to_owned(), |name| quoted(&name))
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Text => Self::Text,
            FormatArg::Jsonl => Self::Jsonl,
            FormatArg::Final => Self::Final,
        }
    }
}

//! `tieline mcp`: tasks as tools for other agents.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tieline_agent::acp;
use tieline_event::{BlobRef, Event, Mode, Seq};
use tieline_front::mcp::{Begun, Desk, Options, Order, Refusal, View};
use tieline_front::task::state::{Letter, TaskId, VerifyBy};
use tieline_hub::Registry;
use tieline_store::Store;

use crate::agents::{Agents, Cli};
use crate::args::{Global, McpArgs, TaskRunArgs};
use crate::config::{self, Config};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::{open_store, runtime, workspace};
use crate::task::client::{self, Seen};
use crate::task::{detach, lay_down};

#[cfg(test)]
mod tests;

/// Serves a client on stdin and stdout until it hangs up.
pub(crate) fn mcp(global: Global, args: &McpArgs) -> Result<Exit, Error> {
    let config = config::load(global.config.as_deref())?;
    let here = workspace(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let store = open_store(&global)?;
    let agents = Agents::new(&config).remembered_in(store.dir());
    if let Some(name) = args.agent.as_deref().filter(|name| *name != "auto") {
        // A name nobody knows is a mistake in the client's settings, and told at once.
        agents.choose(name, &here)?;
    }
    let desk = Own {
        agent: args.agent.clone().or_else(|| config.agent.clone()),
        mode: args.mode.or(config.mode).unwrap_or(Mode::AcceptEdits),
        global,
        config,
        agents,
        store,
        here,
    };
    let options = Options {
        version: env!("CARGO_PKG_VERSION"),
        timeout: args.timeout.map(Duration::from_secs),
    };
    let runtime = runtime()?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let served =
        runtime.block_on(tieline_front::mcp::serve(Arc::new(desk), options, input, output));
    // A thread that waits for a task is left behind.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served.map_err(|err| Error::new(Exit::Failed, crate::error::chain(&err)))?;
    Ok(Exit::Completed)
}

/// The tasks of this machine.
struct Own {
    global: Global,
    config: Config,
    agents: Agents,
    store: Store,
    /// Where tasks work unless told otherwise.
    here: PathBuf,
    agent: Option<String>,
    mode: Mode,
}

impl Desk for Own {
    fn begin(&self, order: Order) -> Result<Begun, Refusal> {
        let cwd = order.cwd.as_ref().map(|cwd| workspace(&self.here.join(cwd)));
        let cwd = cwd.transpose().map_err(refused)?;
        let id = match &order.id {
            Some(id) => id.clone(),
            None => self.new_id(&order.task)?,
        };
        let existing = self.store.conversation(id.key()).map_err(|err| refused(err.into()))?;
        let mut args = TaskRunArgs::of(id.clone());
        args.mode = self.allowed(order.mode)?;
        args.plan = order.plan.map(|plan| cwd.as_ref().unwrap_or(&self.here).join(plan));
        args.model = order.model;
        args.verify = order.verify;
        args.verify_by = VerifyBy::Model;
        args.budget = order.budget;
        args.worktree = order.worktree;
        let after = match &existing {
            Some(row) => {
                let is_task = row.task.is_some();
                let seen = is_task.then(|| self.seen(&id)).transpose()?;
                self.may_go_on(&id, seen.as_ref(), cwd.as_deref())?;
                self.allowed(args.mode.or(Some(row.mode)))?;
                args.agent = order.agent;
                Seq(row.n_events())
            }
            None => {
                let cwd = cwd.unwrap_or_else(|| self.here.clone());
                args.agent = Some(self.choose(order.agent, order.client.as_deref(), &cwd)?);
                args.mode = args.mode.or(Some(self.mode));
                args.cwd = Some(cwd);
                Seq(0)
            }
        };
        lay_down(&self.config, &self.store, &args, Some(order.task)).map_err(refused)?;
        detach(&self.global, &self.store, &id, &[]).map_err(refused)?;
        Ok(Begun { id, after })
    }

    fn look(&self, id: &TaskId) -> Result<View, Refusal> {
        Ok(view(id.clone(), self.seen(id)?))
    }

    fn all(&self) -> Result<Vec<View>, Refusal> {
        let seen = client::all(&self.store).map_err(refused)?;
        let named = |seen: Seen| Some(view(seen.row.key.as_str().parse().ok()?, seen));
        Ok(seen.into_iter().filter_map(named).collect())
    }

    fn events(&self, id: &TaskId, after: Seq, see: &mut dyn FnMut(&Event)) -> Result<Seq, Refusal> {
        client::each_event(&self.store, id, after, see).map_err(refused)
    }

    fn blob(&self, blob: &BlobRef) -> Option<Vec<u8>> {
        self.store.blob(&blob.sha256).ok().flatten()
    }

    fn answer(&self, id: &TaskId, letters: &[Letter]) -> Result<(), Refusal> {
        let seen = self.seen(id)?;
        let letters = client::address(&seen, letters).map_err(|err| {
            let why = err.message();
            Refusal::new(format!("{why}; call `status` with this id to see how it stands"))
        })?;
        let posted = client::post_all(&self.store, id, &letters).map_err(refused)?;
        if seen.is_alive && client::was_taken(&self.store, id, &posted).map_err(refused)? {
            return Ok(());
        }
        detach(&self.global, &self.store, id, &[]).map_err(refused)
    }

    fn cancel(&self, id: &TaskId) -> Result<(), Refusal> {
        match self.seen(id)?.is_alive {
            true => client::stop(&self.store, id).map_err(refused),
            false => Ok(()),
        }
    }
}

impl Own {
    fn seen(&self, id: &TaskId) -> Result<Seen, Refusal> {
        let row = self.store.conversation(id.key()).map_err(|err| refused(err.into()))?;
        if row.is_none_or(|row| row.task.is_none()) {
            return Err(Refusal::new(format!(
                "there is no task {id}; call `status` without an id to see all tasks, or \
                 `delegate` to begin one"
            )));
        }
        client::look_at(&self.store, id).map_err(refused)
    }

    /// More to do for a task that there is, or for a conversation that becomes one.
    fn may_go_on(
        &self,
        id: &TaskId,
        seen: Option<&Seen>,
        cwd: Option<&Path>,
    ) -> Result<(), Refusal> {
        let Some(seen) = seen else {
            return Err(Refusal::new(format!(
                "{id} is a conversation and no task; choose another id"
            )));
        };
        if seen.is_alive {
            return Err(Refusal::new(format!(
                "task {id} is at work already: follow it with `result` and wait: true, answer it \
                 with `answer`, or stop it with `cancel`; for another task choose another id"
            )));
        }
        // An id that a model makes up may be that of another project's task.
        let place = &seen.row.workspace;
        let wanted = cwd.unwrap_or(&self.here);
        let is_here = Path::new(place).starts_with(wanted) || wanted.starts_with(place);
        if !is_here && seen.state.worktree.is_none() {
            return Err(Refusal::new(format!(
                "there is a task {id} already, and it works in {place}; choose another id, or pass \
                 that directory as cwd to give it more to do"
            )));
        }
        Ok(())
    }

    /// The mode, unless it is more than whoever started us allowed.
    fn allowed(&self, mode: Option<Mode>) -> Result<Option<Mode>, Refusal> {
        match mode {
            Some(mode) if laxity(mode) > laxity(self.mode) => Err(Refusal::new(format!(
                "the mode {} is not for a model to choose; your user can allow it by \
                     registering the server as `tieline mcp --mode {}`",
                mode.name(),
                mode.name()
            ))),
            mode => Ok(mode),
        }
    }

    /// The agent of a new task.
    fn choose(
        &self,
        asked: Option<String>,
        client: Option<&str>,
        cwd: &Path,
    ) -> Result<String, Refusal> {
        if let Some(name) = &asked {
            self.is_known(name)?;
        }
        let name = asked.or_else(|| self.agent.clone()).unwrap_or_else(|| "auto".to_owned());
        if name == "auto"
            && let Some(other) = another(client)
            && self.agents.program(other, cwd).is_ok()
        {
            return Ok(other.name().to_owned());
        }
        let (name, _) = self.agents.choose(&name, cwd).map_err(refused)?;
        self.agents.agent(&name, cwd).map_err(|failure| refused(failure.into()))?;
        Ok(name)
    }

    /// A command line is not for a model to make up: it would run with more rights than its own.
    fn is_known(&self, name: &str) -> Result<(), Refusal> {
        let is_speaker = name.starts_with(acp::PREFIX);
        let known = || {
            acp::find(name).is_some()
                || self.agent.as_deref() == Some(name)
                || self.agents.configured_speakers().iter().any(|it| it == name)
        };
        if !is_speaker || known() {
            return Ok(());
        }
        let names: Vec<&str> = acp::KNOWN.iter().map(|known| known.name).collect();
        Err(Refusal::new(format!(
            "no agent {name:?}; known after acp: are {}, and those with a table [agents.acp.NAME] in \
             tieline's configuration",
            names.join(", ")
        )))
    }

    fn new_id(&self, task: &str) -> Result<TaskId, Refusal> {
        loop {
            let id = made_up(task, RandomState::new().hash_one(task));
            let id: TaskId = id.parse().map_err(Refusal::new)?;
            if self.store.conversation(id.key()).map_err(|err| refused(err.into()))?.is_none() {
                return Ok(id);
            }
        }
    }
}

/// How much a mode lets through.
fn laxity(mode: Mode) -> u8 {
    match mode {
        Mode::Plan => 0,
        Mode::Default => 1,
        // Who judges for itself may do no more than edit unasked.
        Mode::AcceptEdits | Mode::Auto => 2,
        Mode::BypassPermissions => 3,
        Mode::Yolo => 4,
    }
}

/// What the command line says, with its flags as the arguments they are here.
fn refused(err: Error) -> Refusal {
    Refusal::new(err.message().replace("--cwd", "cwd").replace("--agent", "agent"))
}

fn view(id: TaskId, seen: Seen) -> View {
    View {
        id,
        last: Seq(seen.row.n_events()),
        agent: seen.row.agent,
        workspace: seen.row.workspace,
        state: seen.state,
        is_alive: seen.is_alive,
    }
}

/// Who a client would rather delegate to than to itself.
fn another(client: Option<&str>) -> Option<Cli> {
    let client = client?.to_ascii_lowercase();
    match (client.contains("claude"), client.contains("codex")) {
        (true, _) => Some(Cli::Codex),
        (_, true) => Some(Cli::Claude),
        _ => None,
    }
}

/// Some words of the task, and some letters that make it the only one.
fn made_up(task: &str, mut random: u64) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    const WORDS: usize = 4;
    const LENGTH: usize = 32;
    let words = task.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = String::new();
    for word in words.take(WORDS) {
        if id.len() + word.len() > LENGTH {
            break;
        }
        id.push_str(&word.to_ascii_lowercase());
        id.push('-');
    }
    if id.is_empty() {
        id.push_str("task-");
    }
    for _ in 0..4 {
        let at = usize::try_from(random % 32).unwrap_or(0);
        id.push(char::from(LETTERS.get(at).copied().unwrap_or(b'x')));
        random /= 32;
    }
    id
}

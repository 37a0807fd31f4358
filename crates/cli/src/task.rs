//! `tieline task`: work that is handed to an agent.

pub(crate) mod client;
pub(crate) mod depth;
mod markers;

use std::fs::{self, File};
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tieline_engine::command::{Sandbox, Terms};
use tieline_event::Mode;
use tieline_front::task::conduct::{self, Options};
use tieline_front::task::print::Format;
use tieline_front::task::state::{Letter, State, Status, TaskId};
use tieline_front::task::worktree;
use tieline_hub::{Hub, Note, OpenOptions, Registry};
use tieline_proc::{Env, Spec};
use tieline_sandbox::Policy;
use tieline_store::{Conversation, Store};
use tokio::sync::mpsc;

use crate::agents::Agents;
use crate::args::{Global, TaskArgs, TaskCommand, TaskFormat, TaskRunArgs};
use crate::config::{self, Config};
use crate::engine::{self, Own};
use crate::error::Error;
use crate::exit::Exit;
use crate::print::{print, tell};
use crate::prompt;
use crate::run::{limits, look, notify_socket, open_store, program_name, runtime, workspace};

/// How long a task in the background waits for an answer, unless told otherwise.
const A_DAY: u64 = 24 * 3600;

/// How long a task in the background has to begin.
const BEGINS: Duration = Duration::from_secs(20);

pub(crate) fn task(global: &Global, args: TaskArgs) -> Result<Exit, Error> {
    match args.command {
        TaskCommand::Run(args) => run(global, &args),
        TaskCommand::List(args) => client::list(global, &args),
        TaskCommand::Show(args) => client::show(global, &args),
        TaskCommand::Wait(args) => client::wait(global, &args),
        TaskCommand::Tail(args) => client::tail(global, &args),
        TaskCommand::Answer(args) => client::answer(global, &args),
        TaskCommand::Cancel(args) => client::cancel(global, &args.id),
        TaskCommand::Remove(args) => client::remove(global, &args),
        TaskCommand::Watch(args) => markers::watch(&args),
        TaskCommand::Parse(args) => markers::parse(&args),
    }
}

fn run(global: &Global, args: &TaskRunArgs) -> Result<Exit, Error> {
    if args.detached {
        tieline_proc::lead_session();
    }
    let config = config::load(global.config.as_deref())?;
    let description = match args.description.as_deref() {
        Some(text) => Some(prompt::read(Some(text))?),
        None => None,
    };
    let store = open_store(global)?;
    if args.background {
        lay_down(&config, &store, args, description)?;
        return in_background(global, &store, &args.id, &args.answer);
    }
    let runtime = runtime()?;
    let job = Job { args, config: &config, store: &store };
    let prepared = runtime.block_on(job.prepare(description))?;
    let notify = notify_socket(&config, &store, &[&prepared.agent]);
    let depth = depth::here()? + u32::from(!args.detached);
    let agents = Agents::new(&config).remembered_in(store.dir()).at_depth(depth);
    let agents = match &notify {
        Some(socket) => agents.notified_at(socket.path().to_owned()),
        None => agents,
    };
    let hub = Hub::new(store.clone(), Arc::new(agents), limits(&config, &prepared.agent, None));
    let result = runtime.block_on(async {
        let _listening = notify.map(|socket| socket.listen(hub.clone())).transpose()?;
        let conversation = hub.conversation(args.id.key(), prepared.open).await?;
        let options = Options {
            format: format(args.format),
            look: look(),
            letters: args.answer.iter().map(|text| Letter::answer(text)).collect(),
            typed: typed(args),
            is_new: prepared.is_new,
            is_checked_anew: !args.verify.is_empty(),
            fence: fence(&config, &store),
        };
        let ending = conduct::run(&hub, &conversation, &args.id, prepared.state, options).await;
        if ending.is_err() {
            hub.close_all().await;
        }
        ending.map_err(of_task)
    });
    // Whatever still runs is dropped, and with it every process it holds.
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(result?.into())
}

/// Writes down what a task is to do, for a process of its own to find.
pub(crate) fn lay_down(
    config: &Config,
    store: &Store,
    args: &TaskRunArgs,
    description: Option<String>,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let job = Job { args, config, store };
    let written = runtime.block_on(async {
        let mut prepared = job.prepare(description).await?;
        // The process that finds it is told nothing new, and one that is done would stay so.
        if prepared.is_new {
            prepared.state.status = Status::Running;
        }
        let agents = Agents::new(config).remembered_in(store.dir());
        let limits = limits(config, &prepared.agent, None);
        let hub = Hub::new(store.clone(), Arc::new(agents), limits);
        let conversation = hub.conversation(args.id.key(), prepared.open).await?;
        let note = Note { task: Some(prepared.state.to_json()), ..Note::default() };
        conversation.note(note).await?;
        Ok(conversation.close().await?)
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    written
}

pub(crate) fn of_task(err: conduct::Error) -> Error {
    match err {
        conduct::Error::Hub(err) => err.into(),
        conduct::Error::Plan(why) => Error::usage(why),
        err => Error::new(Exit::Failed, crate::error::chain(&err)),
    }
}

struct Job<'a> {
    args: &'a TaskRunArgs,
    config: &'a Config,
    store: &'a Store,
}

/// A task that can be worked on.
struct Prepared {
    agent: String,
    open: OpenOptions,
    state: State,
    /// There is something new to tell the agent.
    is_new: bool,
}

impl Job<'_> {
    async fn prepare(&self, description: Option<String>) -> Result<Prepared, Error> {
        if !self.args.detached {
            depth::check()?;
        }
        match self.store.conversation(self.args.id.key())? {
            Some(row) => self.go_on(row, description),
            None => self.begin(description).await,
        }
    }

    /// A new task.
    async fn begin(&self, description: Option<String>) -> Result<Prepared, Error> {
        let Self { args, config, store } = self;
        let agents = Agents::new(config).remembered_in(store.dir());
        let Some(description) = description else {
            return Err(Error::usage(format!(
                "there is no task {}; say what it is to do: tieline task run {} \"…\"",
                args.id, args.id
            )));
        };
        let mut cwd = workspace(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
        let name = args.agent.as_deref().or(config.agent.as_deref()).unwrap_or("auto");
        let (name, why) = agents.choose(name, &cwd)?;
        agents.agent(&name, &cwd)?;
        if name == "engine" {
            engine::check_key(config)?;
        }
        if let Some(why) = why {
            tell(&format!("tieline: agent {name} ({why})"));
        }
        let mut state = State::new(description);
        self.settings(&mut state)?;
        if args.worktree {
            let trees = private_dir(worktrees(store)).map_err(|err| {
                Error::new(Exit::Store, format!("cannot make a directory for worktrees: {err}"))
            })?;
            let at = trees.join(args.id.as_str());
            let made = worktree::add(&cwd, &at, args.id.as_str()).await;
            let made = made.map_err(|err| Error::usage(crate::error::chain(&err)))?;
            cwd = workspace(&made.path)?;
            state.worktree = Some(made);
        }
        let open = OpenOptions {
            agent: Some(name.clone()),
            workspace: Some(cwd),
            mode: Some(args.mode.or(config.mode).unwrap_or(Mode::AcceptEdits)),
            model: args.model.clone().or_else(|| config.model_of(&name)),
            ..OpenOptions::default()
        };
        Ok(Prepared { agent: name, open, state, is_new: true })
    }

    /// A task that has begun, or a conversation that becomes one.
    fn go_on(&self, row: Conversation, description: Option<String>) -> Result<Prepared, Error> {
        let args = self.args;
        if let Some(agent) =
            args.agent.as_deref().filter(|name| *name != "auto" && *name != row.agent)
        {
            return Err(Error::usage(format!(
                "task {} belongs to the agent {}, not {agent}; choose another id, or leave --agent \
                 out",
                args.id, row.agent
            )));
        }
        let is_new = description.is_some();
        let mut state = match (&row.task, description) {
            (Some(json), more) => {
                let mut state = read_state(&args.id, json)?;
                if let Some(more) = more {
                    state.description = more;
                }
                state
            }
            (None, Some(description)) => State::new(description),
            (None, None) => {
                return Err(Error::usage(format!(
                    "conversation {} is no task yet; say what it is to do",
                    args.id
                )));
            }
        };
        if is_new && state.status == Status::Complete {
            state.claims.clear();
            state.n_failed = 0;
        }
        // What changed is measured where the task began.
        if args.worktree && state.worktree.is_none() {
            return Err(Error::usage("--worktree is for a new task; choose another id"));
        }
        let cwd = args.cwd.as_deref().map(workspace).transpose()?;
        let is_own_tree = state.worktree.is_some() && args.worktree;
        if cwd.is_some_and(|cwd| cwd != Path::new(&row.workspace)) && !is_own_tree {
            return Err(Error::usage(format!(
                "task {} works in {}; choose another id, or leave --cwd out",
                args.id, row.workspace
            )));
        }
        self.settings(&mut state)?;
        let open =
            OpenOptions { mode: args.mode, model: args.model.clone(), ..OpenOptions::default() };
        Ok(Prepared { agent: row.agent, open, state, is_new })
    }

    fn settings(&self, state: &mut State) -> Result<(), Error> {
        let args = self.args;
        if let Some(plan) = &args.plan {
            let unreadable = |err: tieline_workspace::Error| {
                Error::usage(format!("cannot read the plan {}: {err}", plan.display()))
            };
            tieline_workspace::named(plan).map_err(unreadable)?;
            state.plan = Some(plan.canonicalize().map_err(|err| unreadable(err.into()))?);
        }
        if !args.verify.is_empty() {
            state.verify.clone_from(&args.verify);
            state.verify_by = args.verify_by;
        }
        state.tries = args.verify_tries.unwrap_or(state.tries);
        for budget in &args.budget {
            state.budget.set(budget).map_err(Error::usage)?;
        }
        if args.background {
            state.wait = args.wait.unwrap_or(A_DAY);
        } else if !args.detached {
            state.wait = args.wait.unwrap_or(0);
        }
        Ok(())
    }
}

/// The sandbox of a mode, for commands that a model chose to verify a task with. It is that of the
/// engine's commands nobody was asked about.
fn fence(config: &Config, store: &Store) -> conduct::Fence {
    let own = Own::of(config, Some(store.dir()));
    Box::new(move |mode, workspace, line| {
        let terms = Terms::of(mode, None);
        let policy = match terms.sandbox {
            Sandbox::ReadOnly => Policy::read_only(),
            Sandbox::WorkspaceWrite => Policy::workspace_write([workspace]),
            Sandbox::None | Sandbox::External => Policy::danger_full_access(),
        };
        let policy = match terms.sandbox.is_ours() {
            true => Policy {
                network: terms.network,
                hidden: own.hidden.clone(),
                protected: own.protected.clone(),
                ..policy
            },
            false => policy,
        };
        let mut words = line.into_iter();
        let program = words.next().unwrap_or_default();
        let wrapped = tieline_sandbox::wrap(&policy, program, words);
        wrapped.map(|it| (it.program, it.args)).map_err(|refusal| refusal.to_string())
    })
}

/// Where worktrees are: beside the store, which the engine hides from those who work in them.
fn worktrees(store: &Store) -> PathBuf {
    let mut name = store.dir().file_name().unwrap_or_default().to_owned();
    name.push("-worktrees");
    store.dir().with_file_name(name)
}

/// A directory that only its user can look into.
fn private_dir(dir: PathBuf) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    Ok(dir)
}

/// What is remembered of a task.
fn read_state(id: &TaskId, json: &str) -> Result<State, Error> {
    State::from_json(json).map_err(|err| {
        let why = format!("what is remembered of task {id} cannot be read: {err}; update tieline");
        Error::new(Exit::Store, why)
    })
}

/// Goes on with a task in a process of its own, and says so.
pub(crate) fn in_background(
    global: &Global,
    store: &Store,
    id: &TaskId,
    answers: &[String],
) -> Result<Exit, Error> {
    detach(global, store, id, answers)?;
    print(&format!("{id}\n"))?;
    let tieline = program_name();
    tell(&format!(
        "tieline: task {id} runs in the background; `{tieline} task tail {id}` reads along"
    ));
    Ok(Exit::Completed)
}

/// Goes on with a task in a process of its own.
pub(crate) fn detach(
    global: &Global,
    store: &Store,
    id: &TaskId,
    answers: &[String],
) -> Result<(), Error> {
    let failed = |what: &str, err: &io::Error| {
        Error::new(Exit::Failed, format!("cannot start the task in the background: {what}: {err}"))
    };
    let logs = private_dir(store.dir().join("tasks")).map_err(|err| failed("its log", &err))?;
    let path = logs.join(format!("{id}.log"));
    // Another one that is about to end may still write to it.
    let log = File::options().create(true).append(true).mode(0o600).open(&path);
    let log = log.map_err(|err| failed("its log", &err))?;
    let program = std::env::current_exe().map_err(|err| failed("this program", &err))?;
    let here = std::env::current_dir().map_err(|err| failed("this directory", &err))?;
    let mut spec = Spec::new(program, here);
    spec.env = Env::everything();
    spec.env.set(depth::VARIABLE, (depth::here()? + 1).to_string());
    let mut word = |word: &str| spec.args.push(word.into());
    word("task");
    word("run");
    word(id.as_str());
    word("--detached");
    word("--format");
    word("markers");
    for answer in answers {
        word(&format!("--answer={answer}"));
    }
    spec.args.extend(["--store".into(), store.dir().as_os_str().to_owned()]);
    if let Some(config) = &global.config {
        spec.args.extend(["--config".into(), config.as_os_str().to_owned()]);
    }
    let before = store.conversation(id.key())?.map(|row| row.epoch);
    let pid = tieline_proc::detach(&spec, log).map_err(|err| failed("this program", &err))?;
    client::await_begin(store, id, (pid, before), BEGINS, &path)
}

fn format(format: Option<TaskFormat>) -> Format {
    match format {
        Some(TaskFormat::Markers) => Format::Markers,
        Some(TaskFormat::Jsonl) => Format::Jsonl,
        Some(TaskFormat::Text) => Format::Text,
        None if io::stdout().is_terminal() => Format::Text,
        None => Format::Markers,
    }
}

/// Lines of a person, where one sits before a terminal.
fn typed(args: &TaskRunArgs) -> Option<mpsc::Receiver<String>> {
    let is_person = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !is_person || args.detached || args.wait.is_some() || format(args.format) != Format::Text {
        return None;
    }
    // A person types no faster than this is read; the thread ends with the process.
    let (lines, typed) = mpsc::channel(16);
    let reading = std::thread::Builder::new().name("typed".into()).spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    reading.is_ok().then_some(typed)
}

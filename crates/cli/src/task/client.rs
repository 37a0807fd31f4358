//! What other processes do about a task: look at it, wait for it, answer it, stop it.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use tieline_event::{Epoch, Event, Kind, Seq, TaskMarker, Text, Timestamp};
use tieline_front::json::escaped;
use tieline_front::sanitize::one_line;
use tieline_front::task::print::{Format, Tail};
use tieline_front::task::state::{Letter, OpenQuestion, State, Status, TaskId, bound};
use tieline_front::task::worktree;
use tieline_store::{Conversation, Filter, LetterId, Store};

use super::{format, in_background, read_state};
use crate::args::{
    Global, TaskAnswerArgs, TaskListArgs, TaskRemoveArgs, TaskShowArgs, TaskTailArgs, TaskWaitArgs,
};
use crate::error::Error;
use crate::exit::Exit;
use crate::print::{print, tell};
use crate::run::{look, open_store, program_name, runtime};

/// How often the store is looked at.
const PAUSE: Duration = Duration::from_millis(150);

/// How long an answer may take to reach a task that is alive.
const TAKEN: Duration = Duration::from_secs(10);

/// How long a task that is cancelled may take to end.
const ENDS: Duration = Duration::from_secs(20);

/// How many events are read at once.
const PAGE: usize = 256;

/// A task as others see it.
pub(crate) struct Seen {
    pub(crate) row: Conversation,
    pub(crate) state: State,
    /// A living process works on it.
    pub(crate) is_alive: bool,
}

impl Seen {
    /// How it stands, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match (self.state.status, self.is_alive) {
            (Status::Running, false) => "cut off",
            (Status::Question, true) => "waiting",
            (status, _) => status.name(),
        }
    }

    /// Whether nothing more happens by itself.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.is_alive
    }
}

/// Looks at a task.
pub(crate) fn look_at(store: &Store, id: &TaskId) -> Result<Seen, Error> {
    let unknown = || Error::usage(format!("there is no task {id}; `tieline task list` shows them"));
    let row = store.conversation(id.key())?.ok_or_else(unknown)?;
    let json = row.task.clone().ok_or_else(unknown)?;
    let state = read_state(id, &json)?;
    let is_alive = store.holder(id.key())?.is_some();
    Ok(Seen { row, state, is_alive })
}

/// A task as programs read it.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    status: &'a str,
    alive: bool,
    agent: &'a str,
    workspace: &'a str,
    description: &'a str,
    step: &'a str,
    questions: &'a [OpenQuestion],
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<&'a str>,
    iterations: u64,
    tokens: u64,
    seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    updated: Timestamp,
    #[serde(flatten)]
    told: Told,
}

/// What the history of a task says about where it stands.
#[derive(Default, Serialize)]
struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<TaskMarker>,
    /// Why it stopped before it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What the agent said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Reads the history of a task.
fn told(store: &Store, id: &TaskId) -> Result<Told, Error> {
    let mut told = Told::default();
    let mut last = None;
    each_event(store, id, Seq(0), &mut |event| match &event.kind {
        Kind::TurnStarted(_) => told.reason = None,
        Kind::TurnCompleted(end) if !end.text.is_empty() => last = Some(end.text.clone()),
        Kind::TaskMarker(TaskMarker::Stopped { reason, .. }) => told.reason = Some(reason.clone()),
        Kind::TaskMarker(marker @ TaskMarker::FilesModified { .. }) => {
            told.files = Some(marker.clone());
        }
        _ => {}
    })?;
    let whole = |text: &Text| match text {
        Text::Blob { blob, .. } => store.blob(&blob.sha256).ok().flatten(),
        Text::Inline(_) => None,
    };
    told.message = last.map(|text| match whole(&text) {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => text.preview().to_owned(),
    });
    Ok(told)
}

fn row(seen: &Seen, told: Told) -> Row<'_> {
    let Seen { row, state, is_alive } = seen;
    Row {
        id: row.key.as_str(),
        status: seen.word(),
        alive: *is_alive,
        agent: &row.agent,
        workspace: &row.workspace,
        description: &state.description,
        step: &state.step,
        questions: &state.questions,
        blocked: state.blocked.as_deref(),
        iterations: state.iterations,
        tokens: state.tokens,
        seconds: state.millis / 1000,
        branch: state.worktree.as_ref().map(|it| it.branch.as_str()),
        updated: row.updated,
        told,
    }
}

fn to_json(value: &impl Serialize) -> Result<String, Error> {
    let json = serde_json::to_string_pretty(value);
    let json = json.map_err(|err| Error::new(Exit::Failed, format!("cannot write JSON: {err}")))?;
    Ok(escaped(&json) + "\n")
}

pub(super) fn list(global: &Global, args: &TaskListArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let tasks = all(&store)?;
    if args.json {
        let rows: Vec<Row<'_>> = tasks.iter().map(|seen| row(seen, Told::default())).collect();
        print(&to_json(&rows)?)?;
        return Ok(Exit::Completed);
    }
    if tasks.is_empty() {
        tell("tieline: no tasks yet; tieline task run ID \"…\" begins one");
    }
    let width = tasks.iter().map(|seen| seen.row.key.as_str().len()).max().unwrap_or(0);
    let mut text = String::new();
    for seen in &tasks {
        let Seen { row, state, .. } = seen;
        let about = match (state.questions.first(), &state.blocked) {
            (Some(question), _) => format!("{}: {}", question.id, question.text),
            (None, Some(reason)) if state.status == Status::Blocked => reason.clone(),
            _ => state.step.clone(),
        };
        let (key, word, about) = (row.key.as_str(), seen.word(), one_line(&about));
        text.push_str(&format!("{key:<width$}  {word:<9}  {}  {about}\n", row.agent));
    }
    print(&text)?;
    Ok(Exit::Completed)
}

pub(super) fn show(global: &Global, args: &TaskShowArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let seen = look_at(&store, &args.id)?;
    let told = told(&store, &args.id)?;
    if args.json {
        print(&to_json(&row(&seen, told))?)?;
        return Ok(Exit::Completed);
    }
    let Seen { row, state, .. } = &seen;
    let mut tail = Tail::new(Format::Text, look(), &args.id);
    let mut text = format!(
        "{}  {}\n{}\nagent {} in {}\n{} turns, {} s, {} tokens\n",
        args.id,
        seen.word(),
        one_line(&state.description),
        row.agent,
        one_line(&row.workspace),
        state.iterations,
        state.millis / 1000,
        state.tokens,
    );
    if let Some(worktree) = &state.worktree {
        text.push_str(&format!("branch {} in {}\n", worktree.branch, worktree.path.display()));
    }
    if !state.step.is_empty() {
        text.push_str(&format!("last: {}\n", one_line(&state.step)));
    }
    if let Some(reason) = &told.reason {
        text.push_str(&format!("stopped: {}\n", one_line(reason)));
    }
    if let Some(message) = &told.message {
        text.push_str(&format!("the agent said: {}\n", one_line(message)));
    }
    print(&text)?;
    for question in &state.questions {
        tail.marker(&question.marker());
    }
    if let Some(reason) = state.blocked.clone().filter(|_| state.status == Status::Blocked) {
        tail.marker(&TaskMarker::Blocked { reason, context: Vec::new() });
    }
    if let Some(files) = told.files {
        tail.marker(&files);
    }
    print(&tail.take())?;
    Ok(Exit::Completed)
}

/// What changed, as it was measured last.
pub(crate) fn last_files(store: &Store, id: &TaskId) -> Result<Option<TaskMarker>, Error> {
    let mut last = None;
    each_event(store, id, Seq(0), &mut |event| {
        if let Kind::TaskMarker(marker @ TaskMarker::FilesModified { .. }) = &event.kind {
            last = Some(marker.clone());
        }
    })?;
    Ok(last)
}

/// Shows every event after one, and says which was the last.
pub(crate) fn each_event(
    store: &Store,
    id: &TaskId,
    mut after: Seq,
    see: &mut dyn FnMut(&Event),
) -> Result<Seq, Error> {
    loop {
        let page = store.events(id.key(), after, PAGE)?;
        for stored in &page {
            after = stored.seq;
            match Event::from_json(&stored.json) {
                Ok(event) => see(&event),
                Err(err) => tracing::warn!(%err, seq = %stored.seq, "an event cannot be read"),
            }
        }
        if page.len() < PAGE {
            return Ok(after);
        }
    }
}

pub(super) fn wait(global: &Global, args: &TaskWaitArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let deadline = args.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    loop {
        let seen = look_at(&store, &args.id)?;
        // What was said and is not done yet may change everything.
        if seen.is_alive && store.has_mail(args.id.key())? {
            sleep(PAUSE);
            continue;
        }
        // One that waits for an answer needs somebody, though it is alive.
        if seen.is_at_rest() || seen.state.questions.iter().any(|it| it.waits.is_some()) {
            let status = match seen.state.questions.is_empty() {
                false if seen.is_alive => Status::Question,
                _ => seen.state.status,
            };
            return Ok(status.into());
        }
        // One whose answer has come stands so until its turn begins.
        if seen.state.status == Status::Question && !seen.state.questions.is_empty() {
            return Ok(Exit::AnswerNeeded);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            tell(&format!("tieline: task {} is not done yet", args.id));
            return Ok(Exit::Interrupted);
        }
        sleep(PAUSE);
    }
}

pub(super) fn tail(global: &Global, args: &TaskTailArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let mut tail = Tail::new(format(args.format), look(), &args.id);
    let mut after = Seq(0);
    loop {
        // What a task that ends writes last is there when it is at rest.
        let seen = look_at(&store, &args.id)?;
        let mut lines = Vec::new();
        after = each_event(&store, &args.id, after, &mut |event| lines.push(event.clone()))?;
        lines.iter().for_each(|event| tail.event(event));
        print(&tail.take())?;
        if args.no_follow || seen.is_at_rest() {
            return Ok(Exit::Completed);
        }
        sleep(PAUSE);
    }
}

pub(super) fn answer(global: &Global, args: &TaskAnswerArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let seen = look_at(&store, &args.id)?;
    let letters: Vec<Letter> = args.answers.iter().map(|text| Letter::answer(text)).collect();
    let letters = address(&seen, &letters)?;
    let posted = post_all(&store, &args.id, &letters)?;
    if args.only_leave {
        return Ok(Exit::Completed);
    }
    if seen.is_alive && was_taken(&store, &args.id, &posted)? {
        return Ok(Exit::Completed);
    }
    // Whoever was to take it is gone, and the answer lies there.
    in_background(global, &store, &args.id, &[])
}

/// Gives each answer its question: those that name none are for the open ones, the oldest first. One
/// that would be for nothing is refused, so that it never answers what is asked later.
pub(crate) fn address(seen: &Seen, letters: &[Letter]) -> Result<Vec<Letter>, Error> {
    let id = seen.row.key.as_str();
    let open: Vec<&str> = seen.state.questions.iter().map(|it| it.id.as_str()).collect();
    if open.is_empty() {
        return Err(Error::usage(format!("task {id} has no open question; it is {}", seen.word())));
    }
    let (given, left) = bound(letters.to_vec(), &seen.state.questions);
    for letter in &given {
        let Letter::Answer { question, text, .. } = letter else { continue };
        let asked = seen.state.questions.iter().find(|it| Some(&it.id) == question.as_ref());
        if let Some(why) = asked.and_then(|it| it.refuses(text)) {
            return Err(Error::usage(why));
        }
    }
    match left.first() {
        None => Ok(given),
        Some(Letter::Answer { question: Some(question), .. }) => Err(Error::usage(format!(
            "task {id} has no open question {question}; open: {}",
            open.join(", ")
        ))),
        Some(Letter::Answer { text, .. }) => Err(Error::usage(format!(
            "task {id} has {} open questions; say which {text:?} is for, as {}=…",
            open.len(),
            open.join("=… or ")
        ))),
        Some(Letter::Cancel { .. }) => Ok(given),
    }
}

pub(crate) fn post_all(
    store: &Store,
    id: &TaskId,
    letters: &[Letter],
) -> Result<Vec<LetterId>, Error> {
    letters.iter().map(|letter| post(store, id, letter)).collect()
}

fn post(store: &Store, id: &TaskId, letter: &Letter) -> Result<LetterId, Error> {
    let body = serde_json::to_string(letter).expect("texts are JSON");
    Ok(store.post(id.key(), body)?)
}

/// Whether the task's process took these; not when it ended without.
pub(crate) fn was_taken(store: &Store, id: &TaskId, letters: &[LetterId]) -> Result<bool, Error> {
    let deadline = Instant::now() + TAKEN;
    loop {
        let mut is_waiting = false;
        for letter in letters {
            is_waiting |= store.is_waiting(*letter)?;
        }
        if !is_waiting {
            return Ok(true);
        }
        if store.holder(id.key())?.is_none() || Instant::now() > deadline {
            return Ok(false);
        }
        sleep(PAUSE);
    }
}

pub(super) fn cancel(global: &Global, id: &TaskId) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let seen = look_at(&store, id)?;
    if seen.is_at_rest() {
        tell(&format!("tieline: task {id} does not run; it is {}", seen.word()));
        return Ok(Exit::Completed);
    }
    stop(&store, id)?;
    let seen = look_at(&store, id)?;
    let mut text = format!("{id} {}\n", seen.word());
    let mut tail = Tail::new(Format::Text, look(), id);
    if let Some(files) = last_files(&store, id)? {
        tail.marker(&files);
    }
    text.push_str(&tail.take());
    if let Some(tree) = &seen.state.worktree {
        let left = runtime()?.block_on(worktree::status(tree));
        let left = left.map_err(|err| Error::new(Exit::Failed, crate::error::chain(&err)))?;
        let path = tree.path.display();
        text.push_str(&format!(
            "branch {} in {path}: {} files not committed\n",
            tree.branch,
            left.len()
        ));
    }
    print(&text)?;
    Ok(Exit::Completed)
}

/// Stops a task that runs, and waits until it has.
pub(crate) fn stop(store: &Store, id: &TaskId) -> Result<(), Error> {
    let deadline = Instant::now() + ENDS;
    let mut told = None;
    while store.holder(id.key())?.is_some() {
        // Somebody else may have taken it over in the meantime.
        let epoch = store.conversation(id.key())?.map(|row| row.epoch);
        if let Some(epoch) = epoch.filter(|epoch| told != Some(*epoch)) {
            post(store, id, &Letter::Cancel { epoch })?;
            told = Some(epoch);
        }
        if Instant::now() > deadline {
            let why = format!(
                "task {id} does not end; its process is on record in `tieline list --json`"
            );
            return Err(Error::new(Exit::Failed, why));
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// Every task, the one that was worked on last first.
pub(crate) fn all(store: &Store) -> Result<Vec<Seen>, Error> {
    let rows = store.conversations(&Filter { tasks: true, ..Filter::default() })?;
    let ids = rows.iter().filter_map(|row| row.key.as_str().parse::<TaskId>().ok());
    ids.map(|id| look_at(store, &id)).collect()
}

pub(super) fn remove(global: &Global, args: &TaskRemoveArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let seen = look_at(&store, &args.id)?;
    if seen.is_alive {
        let tieline = program_name();
        return Err(Error::usage(format!(
            "task {} runs; stop it first: {tieline} task cancel {}",
            args.id, args.id
        )));
    }
    let tree = seen.state.worktree.as_ref().filter(|tree| tree.path.exists());
    let of_tree = |err: worktree::Error| Error::usage(crate::error::chain(&err));
    if let Some(tree) = tree.filter(|_| !args.force) {
        let dirty = runtime()?.block_on(worktree::status(tree)).map_err(of_tree)?;
        if !dirty.is_empty() {
            return Err(Error::usage(format!(
                "{} has {} files that are not committed; commit them, or lose them with --force",
                tree.path.display(),
                dirty.len()
            )));
        }
    }
    // Refused while somebody works on it, who then keeps the working tree too.
    store.delete(args.id.key())?;
    if let Some(tree) = tree {
        runtime()?.block_on(worktree::remove(tree, args.force)).map_err(of_tree)?;
    }
    let log = store.dir().join("tasks").join(format!("{}.log", args.id));
    if let Err(err) = std::fs::remove_file(&log)
        && err.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%err, "the log of the task stays");
    }
    Ok(Exit::Completed)
}

/// Waits until a process in the background has taken its task.
pub(super) fn await_begin(
    store: &Store,
    id: &TaskId,
    (pid, before): (u32, Option<Epoch>),
    limit: Duration,
    log: &Path,
) -> Result<(), Error> {
    let deadline = Instant::now() + limit;
    loop {
        let now = store.conversation(id.key())?.map(|row| row.epoch);
        if now != before || store.holder(id.key())?.is_some() {
            return Ok(());
        }
        let is_gone = !Path::new("/proc").join(pid.to_string()).join("fd").exists()
            && Path::new("/proc/self").exists();
        if is_gone || Instant::now() > deadline {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            let last = said.lines().last().unwrap_or("it said nothing").to_owned();
            return Err(Error::new(Exit::Failed, format!("task {id} did not begin: {last}")));
        }
        sleep(Duration::from_millis(20));
    }
}

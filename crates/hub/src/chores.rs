//! Doing what an agent leaves to its client: files and commands.
//!
//! A chore says where it must stay, and here is what holds it there. Files are opened below a handle
//! of their root, never by a path alone, so that neither `..` nor a link leads out, also not one that
//! is put there in the meantime. Commands run as children of ours like the agent itself, and end
//! with it.

mod beneath;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;
use tieline_agent::{Chore, ChoreId, ChoreNews, Leave};
use tieline_proc::{Child, Env, Spec};
use tieline_workspace::{Guard, Homes};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use beneath::Place;

#[cfg(test)]
mod tests;

/// News that may wait for the actor; whoever has more waits.
const QUEUE: usize = 64;

/// The longest file that is read.
const LARGEST_FILE: u64 = 16 << 20;

/// How long reading or writing a file may take.
const FILE_TIME: Duration = Duration::from_secs(30);

/// How long commands have to be gone once they are killed.
const CLOSING: Duration = Duration::from_secs(3);

/// How much of a command's output is read at once.
const CHUNK: usize = 16 * 1024;

/// The chores of one agent. Dropping it ends every command.
pub(crate) struct Chores {
    env: Env,
    sender: mpsc::Sender<(ChoreId, ChoreNews)>,
    news: mpsc::Receiver<(ChoreId, ChoreNews)>,
    tasks: JoinSet<()>,
    /// How to end the commands that run.
    commands: HashMap<ChoreId, Arc<Notify>>,
}

impl Chores {
    /// None yet. Commands get this environment.
    pub(crate) fn new(env: Env) -> Self {
        let (sender, news) = mpsc::channel(QUEUE);
        Self { env, sender, news, tasks: JoinSet::new(), commands: HashMap::new() }
    }

    /// Begins a chore.
    pub(crate) fn start(&mut self, id: ChoreId, chore: Chore) {
        // What is over is forgotten.
        while self.tasks.try_join_next().is_some() {}
        tracing::debug!(%id, ?chore, "chore");
        let sender = self.sender.clone();
        match chore {
            Chore::ReadText { within, path, line, limit } => {
                let work = move || read_text(&within, &path, line, limit);
                self.tasks.spawn(file(id, work, sender));
            }
            Chore::WriteText { within, path, content, leave } => {
                let work = move || write_text(&within, &path, content, &leave);
                self.tasks.spawn(file(id, work, sender));
            }
            Chore::Run { within, command, args, env, cwd } => {
                let spec = self.spec(&command, args, env);
                let kill = Arc::new(Notify::new());
                self.commands.insert(id, Arc::clone(&kill));
                self.tasks.spawn(async move {
                    let spec = spec.and_then(|spec| in_directory(spec, &cwd, &within));
                    let end = match spec {
                        Ok(spec) => run(id, spec, &kill, &sender).await,
                        Err(why) => ChoreNews::failed(why),
                    };
                    tell(&sender, id, end).await;
                });
            }
            Chore::Kill(id) => {
                if let Some(kill) = self.commands.get(&id) {
                    kill.notify_one();
                }
            }
        }
    }

    /// Waits for what comes of a chore. Can be cancelled.
    pub(crate) async fn next(&mut self) -> (ChoreId, ChoreNews) {
        match self.news.recv().await {
            Some((id, news)) => {
                if news.is_end() {
                    self.commands.remove(&id);
                }
                (id, news)
            }
            // We hold a sender ourselves, so the channel does not end.
            None => std::future::pending().await,
        }
    }

    /// Ends every command and waits until they are gone.
    pub(crate) async fn close(mut self) {
        for kill in self.commands.values() {
            kill.notify_one();
        }
        // Nobody takes news any more, so nobody waits to tell them.
        self.news.close();
        let gone = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(CLOSING, gone).await.is_err() {
            tracing::warn!(n_tasks = self.tasks.len(), "chores do not end; they are dropped");
        }
    }

    /// A command line for a shell, or a program with its arguments; its two streams are joined where
    /// they begin, so that they keep their order.
    fn spec(
        &self,
        command: &str,
        args: Vec<String>,
        variables: Vec<(String, String)>,
    ) -> Result<Spec, String> {
        if command.trim().is_empty() {
            return Err("there is no command".to_owned());
        }
        let spec = Spec::new("/bin/sh", "/");
        let mut spec = match args.is_empty() {
            true => spec.arg("-c").arg(format!("exec 2>&1\n{command}")),
            false => {
                let spec = spec.arg("-c").arg("exec \"$0\" \"$@\" 2>&1").arg(command);
                args.into_iter().fold(spec, |spec, arg| spec.arg(arg))
            }
        };
        spec.env = self.env.clone();
        for (name, value) in variables {
            spec.env.set(name, value);
        }
        Ok(spec)
    }
}

async fn tell(sender: &mpsc::Sender<(ChoreId, ChoreNews)>, id: ChoreId, news: ChoreNews) {
    if sender.send((id, news)).await.is_err() {
        tracing::debug!(%id, "nobody waits for this chore any more");
    }
}

/// Does something with a file, off the threads that others need.
async fn file(
    id: ChoreId,
    work: impl FnOnce() -> Result<ChoreNews, ChoreNews> + Send + 'static,
    sender: mpsc::Sender<(ChoreId, ChoreNews)>,
) {
    let done = timeout(FILE_TIME, tokio::task::spawn_blocking(work)).await;
    let news = match done {
        Ok(Ok(Ok(news) | Err(news))) => news,
        Ok(Err(_)) => ChoreNews::failed("it was broken off"),
        Err(_) => ChoreNews::failed("it took too long"),
    };
    tell(&sender, id, news).await;
}

/// The command's directory, if that is where it may be.
fn in_directory(mut spec: Spec, cwd: &Path, within: &[PathBuf]) -> Result<Spec, String> {
    let real = std::fs::canonicalize(cwd).map_err(|err| format!("{}: {err}", cwd.display()))?;
    let roots = within.iter().filter_map(|root| std::fs::canonicalize(root).ok());
    if !roots.into_iter().any(|root| real.starts_with(root)) {
        return Err(format!("{} is not in the workspace", cwd.display()));
    }
    spec.cwd = real;
    Ok(spec)
}

/// Runs a command to its end; gives how it ended.
async fn run(
    id: ChoreId,
    spec: Spec,
    kill: &Notify,
    sender: &mpsc::Sender<(ChoreId, ChoreNews)>,
) -> ChoreNews {
    let mut child: Child = match tieline_proc::spawn(spec).await {
        Ok(child) => child,
        Err(err) => return ChoreNews::failed(err.to_string()),
    };
    // Nobody types anything.
    child.stdin = None;
    let mut buffer = vec![0; CHUNK];
    let mut is_open = true;
    loop {
        let read = async {
            match is_open {
                true => child.read_stdout(&mut buffer).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = kill.notified() => {
                child.begin_kill();
                break;
            }
            read = read => match read {
                Ok(n @ 1..) => {
                    let bytes = buffer.get(..n).unwrap_or_default().to_vec();
                    tokio::select! {
                        () = tell(sender, id, ChoreNews::Printed(bytes)) => {}
                        () = kill.notified() => {
                            child.begin_kill();
                            break;
                        }
                    }
                }
                _ => is_open = false,
            },
            _ = child.exited() => break,
        }
    }
    let exit = child.exited().await;
    let mut rest = Vec::new();
    // A flood that nobody can stop is cut.
    let sink = |bytes: &[u8]| {
        let room = (LARGEST_FILE as usize).saturating_sub(rest.len()).min(bytes.len());
        rest.extend_from_slice(bytes.get(..room).unwrap_or_default());
    };
    child.drain(sink, Duration::from_millis(200)).await;
    if !rest.is_empty() {
        tell(sender, id, ChoreNews::Printed(rest)).await;
    }
    let closed = child.close(Duration::ZERO).await;
    if !closed.stderr.head.is_empty() {
        // Only the shell itself speaks here, before it joined its streams.
        let text = closed.stderr.to_text().into_bytes();
        tell(sender, id, ChoreNews::Printed(text)).await;
    }
    ChoreNews::Ended { code: exit.code, signal: exit.signal }
}

fn failed(path: &Path, err: rustix::io::Errno) -> ChoreNews {
    let why = match err {
        rustix::io::Errno::XDEV | rustix::io::Errno::LOOP => {
            format!("{} leads out of the workspace", path.display())
        }
        err => format!("{}: {}", path.display(), std::io::Error::from(err)),
    };
    ChoreNews::Failed { why, missing: err == rustix::io::Errno::NOENT }
}

fn broken(path: &Path, err: &std::io::Error) -> ChoreNews {
    ChoreNews::failed(format!("{}: {err}", path.display()))
}

fn place(within: &[PathBuf], path: &Path) -> Result<Place, ChoreNews> {
    Place::find(within, path)
        .ok_or_else(|| ChoreNews::failed(format!("{} is not in the workspace", path.display())))
}

/// A file that is one, opened below its root.
fn open(place: &Place, path: &Path, flags: OFlags) -> Result<std::fs::File, ChoreNews> {
    // A pipe must not hold us up, and a device is not ours to touch.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = place.open(flags).map_err(|err| failed(path, err))?;
    let file = std::fs::File::from(file);
    let is_file = file.metadata().map_err(|err| broken(path, &err))?.is_file();
    match is_file && !tieline_workspace::beneath::is_of_kernel(&file) {
        true => Ok(file),
        false => Err(ChoreNews::failed(format!("{} is not a file", path.display()))),
    }
}

fn read_text(
    within: &[PathBuf],
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<ChoreNews, ChoreNews> {
    let file = open(&place(within, path)?, path, OFlags::RDONLY)?;
    let mut bytes = Vec::new();
    // It may grow while it is read.
    let read = (&file).take(LARGEST_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|err| broken(path, &err))?;
    if bytes.len() as u64 > LARGEST_FILE {
        let most = LARGEST_FILE >> 20;
        return Err(ChoreNews::failed(format!("{} is over {most} MiB", path.display())));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| ChoreNews::failed(format!("{} is not text", path.display())))?;
    Ok(ChoreNews::Text(lines(text, line, limit)))
}

/// The lines from `line` on, counted from 1, at most `limit` of them.
fn lines(text: String, line: Option<u32>, limit: Option<u32>) -> String {
    if line.is_none() && limit.is_none() {
        return text;
    }
    let count = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let before = line.map_or(0, count).saturating_sub(1);
    let most = limit.map_or(usize::MAX, count);
    text.split_inclusive('\n').skip(before).take(most).collect()
}

fn write_text(
    within: &[PathBuf],
    path: &Path,
    content: String,
    leave: &Leave,
) -> Result<ChoreNews, ChoreNews> {
    let place = place(within, path)?.real().map_err(|err| failed(path, err))?;
    if *leave != Leave::All
        && let Some(by) = place.obeyed_by(&Guard::by_name().at(&Homes::here()))
        && *leave != Leave::File(place.path())
    {
        return Err(ChoreNews::Protected { path: place.path(), by: by.to_string(), content });
    }
    let mut file = open(&place, path, OFlags::WRONLY | OFlags::CREATE)?;
    // Only now: what is no file was not to be emptied.
    file.set_len(0).map_err(|err| broken(path, &err))?;
    file.write_all(content.as_bytes()).map_err(|err| broken(path, &err))?;
    Ok(ChoreNews::Written)
}

//! The commands of one session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tieline_proc::{Spec, Streams, TerminalSize};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::exec::find::find;
use crate::exec::kept::Last;
use crate::exec::process::{Feed, Process};
use crate::exec::{Cause, Ended, Error, Input, Limits, Ran, SessionId, Start, State, Yielded};

/// How long [`Commands::clean`] and [`Commands::close`] wait for a command beyond its grace.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The commands of one session. Dropping it kills all of them with everything they started.
pub struct Commands {
    table: Mutex<Table>,
    limits: Limits,
    /// Counts the interrupts, for calls that wait for a command they do not end.
    interrupts: watch::Sender<u64>,
}

/// A command that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its number.
    pub id: SessionId,
    /// What was asked for.
    pub argv: Vec<OsString>,
    /// How long ago.
    pub elapsed: Duration,
}

struct Table {
    next: u32,
    entries: BTreeMap<SessionId, Entry>,
}

struct Entry {
    process: Arc<Process>,
    argv: Vec<OsString>,
    begin: Instant,
}

impl Commands {
    /// No commands yet. The first gets the number `first`: one that was used before, in the same
    /// conversation, must not come to mean another command.
    pub fn new(limits: Limits, first: SessionId) -> Commands {
        let table = Mutex::new(Table { next: first.0, entries: BTreeMap::new() });
        Commands { table, limits, interrupts: watch::Sender::new(0) }
    }

    /// Runs a command to its end, for as long as it may take.
    ///
    /// # Errors
    /// When it could not be started.
    pub async fn run(&self, mut start: Start) -> Result<Ran, Error> {
        start.timeout.get_or_insert(self.limits.timeout);
        let started = self.start(start).await?;
        // The task keeps the time; it is no second time here.
        let Some(ended) = started.process.wait(None).await else { return Err(Error::Interrupted) };
        let ran = started.process.ran(ended);
        started.process.set_told();
        started.keep();
        Ok(ran)
    }

    /// Starts a command and waits for its end, or as long as `yield_time` says; it goes on after that.
    ///
    /// # Errors
    /// When it could not be started.
    pub async fn exec(&self, start: Start, yield_time: Option<Duration>) -> Result<Yielded, Error> {
        let begin = Instant::now();
        let until = begin + self.clamp(yield_time.unwrap_or(self.limits.exec_yield));
        let started = self.start(start).await?;
        let ended = started.process.wait(Some(until)).await;
        let yielded = self.yielded(started.id, &started.process, begin, ended);
        started.keep();
        Ok(yielded)
    }

    /// Writes to a command that runs in the background, if there is anything to write, and waits for
    /// its end or as long as `yield_time` says. A command that has ended meanwhile gives what it
    /// printed last.
    ///
    /// # Errors
    /// When there is no such command, or it does not take the input.
    pub async fn write(
        &self,
        id: SessionId,
        bytes: &[u8],
        yield_time: Option<Duration>,
    ) -> Result<Yielded, Error> {
        let begin = Instant::now();
        let until = begin + self.clamp(yield_time.unwrap_or(self.limits.write_yield));
        let mut interrupts = self.interrupts.subscribe();
        let process = self.find(id)?;
        if !bytes.is_empty() && !process.has_ended() {
            self.feed(id, &process, Feed::Bytes(bytes.to_vec()), until).await?;
        }
        let ended = tokio::select! {
            ended = process.wait(Some(until)) => ended,
            _ = interrupts.changed() => {
                let mut yielded = self.yielded(id, &process, begin, None);
                yielded.state = State::Interrupted(id);
                return Ok(yielded);
            }
        };
        Ok(self.yielded(id, &process, begin, ended))
    }

    /// Ends the input of a command that reads from a pipe.
    ///
    /// # Errors
    /// When there is no such command, or it has no input to end.
    pub async fn end_input(&self, id: SessionId) -> Result<(), Error> {
        let process = self.find(id)?;
        let until = Instant::now() + self.limits.min_yield;
        self.feed(id, &process, Feed::End, until).await
    }

    /// Changes the size of a command's terminal, if it has one.
    ///
    /// # Errors
    /// When there is no such command, or it has no input.
    pub async fn resize(&self, id: SessionId, size: TerminalSize) -> Result<(), Error> {
        let process = self.find(id)?;
        let until = Instant::now() + self.limits.min_yield;
        self.feed(id, &process, Feed::Size(size), until).await
    }

    /// Begins to end every command that a call started and still waits for; each call then returns with
    /// what was printed. Calls that wait for a command in the background return, and it goes on.
    pub fn interrupt(&self) {
        for entry in self.table().entries.values() {
            if entry.process.is_foreground() {
                entry.process.stop(Cause::Interrupted, self.limits.interrupt_grace);
            }
        }
        self.interrupts.send_modify(|count| *count += 1);
    }

    /// Ends every command in the background, and what finished commands left running; returns when
    /// nobody is left of them.
    pub async fn clean(&self) {
        let go = self.table().take_background();
        self.end(go).await;
    }

    /// Ends every command; returns when nobody is left of them.
    pub async fn close(&self) {
        let entries = std::mem::take(&mut self.table().entries);
        self.end(entries).await;
    }

    /// The commands that run in the background.
    pub fn sessions(&self) -> Vec<Session> {
        let table = self.table();
        let running = table.entries.iter().filter(|(_, entry)| {
            !entry.process.is_told() && !entry.process.is_foreground() && !entry.process.has_ended()
        });
        running
            .map(|(id, entry)| Session {
                id: *id,
                argv: entry.argv.clone(),
                elapsed: entry.begin.elapsed(),
            })
            .collect()
    }

    async fn start(&self, start: Start) -> Result<Started, Error> {
        let Start { argv, cwd, env, input, wrap, timeout, listener } = start;
        let (name, args) = argv.split_first().ok_or(Error::Empty)?;
        if let Err(err) = std::fs::metadata(&cwd) {
            return Err(Error::Directory { path: cwd, why: err.to_string() });
        }
        let mut program = find(name, &cwd, env.get("PATH"))?;
        let mut args = args.to_vec();
        if let Some(wrap) = wrap {
            (program, args) = wrap(program, args).map_err(|why| Error::Sandbox { why })?;
        }
        let spec = Spec { program, args, cwd, env };
        let streams = match input {
            Input::None => Streams::NoInput,
            Input::Pipe => Streams::Pipes,
            Input::Terminal(size) => Streams::Terminal(size),
        };
        let (started, reply) = {
            let mut table = self.table();
            table.make_room(self.limits.max_commands)?;
            let (process, reply) = Process::begin(spec, streams, timeout, listener, self.limits);
            let process = Arc::new(process);
            let id = table.insert(Arc::clone(&process), argv);
            (Started { id, process, grace: self.limits.interrupt_grace, kept: false }, reply)
        };
        let result = reply.await.unwrap_or(Err(Error::Interrupted));
        if result.is_err() {
            self.table().entries.remove(&started.id);
        }
        result.map(|()| started)
    }

    fn find(&self, id: SessionId) -> Result<Arc<Process>, Error> {
        let table = self.table();
        let entry = table.entries.get(&id).filter(|entry| !entry.process.is_told());
        let entry = entry.filter(|entry| !entry.process.is_foreground());
        entry.map(|entry| Arc::clone(&entry.process)).ok_or(Error::UnknownSession { id })
    }

    async fn feed(
        &self,
        id: SessionId,
        process: &Process,
        feed: Feed,
        until: Instant,
    ) -> Result<(), Error> {
        if !process.has_input() {
            return Err(Error::NoInput { id });
        }
        match timeout_at(until, process.input().send(feed)).await {
            // If it has ended meanwhile, the call finds that out.
            Ok(Ok(()) | Err(_)) => Ok(()),
            Err(_) => Err(Error::InputFull { id }),
        }
    }

    fn yielded(
        &self,
        id: SessionId,
        process: &Process,
        begin: Instant,
        ended: Option<Ended>,
    ) -> Yielded {
        let last = if ended.is_some() { Last::Yes } else { Last::No };
        let output = process.fresh(last);
        let state = match ended {
            Some(ended) => {
                process.set_told();
                State::Ended(Box::new(process.ran(ended)))
            }
            None => State::Running(id),
        };
        Yielded { output, waited: begin.elapsed(), state }
    }

    async fn end(&self, entries: BTreeMap<SessionId, Entry>) {
        let grace = self.limits.stop_grace;
        for entry in entries.values() {
            entry.process.stop(Cause::Closed, grace);
        }
        for entry in entries.values() {
            entry.process.wait_gone(grace + CLOSE_LIMIT).await;
        }
    }

    fn clamp(&self, time: Duration) -> Duration {
        time.max(self.limits.min_yield).min(self.limits.max_yield)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        for entry in self.table().entries.values() {
            entry.process.abort();
        }
    }
}

impl std::fmt::Debug for Commands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Commands").field("n", &self.table().entries.len()).finish_non_exhaustive()
    }
}

impl Table {
    /// Makes sure there is a place: forgets those of whom nobody is left, then the oldest that has
    /// ended, with what it left running.
    fn make_room(&mut self, max: usize) -> Result<(), Error> {
        self.entries.retain(|_, entry| !(entry.process.is_told() && entry.process.is_gone()));
        while self.entries.len() >= max {
            let oldest = self.entries.iter().find(|(_, entry)| entry.process.has_ended());
            let Some(id) = oldest.map(|(id, _)| *id) else { return Err(Error::TooMany { max }) };
            self.entries.remove(&id);
        }
        Ok(())
    }

    fn take_background(&mut self) -> BTreeMap<SessionId, Entry> {
        let entries = std::mem::take(&mut self.entries);
        let is_foreground = |(_, entry): &(SessionId, Entry)| entry.process.is_foreground();
        let (stay, go) = entries.into_iter().partition(is_foreground);
        self.entries = stay;
        go
    }

    fn insert(&mut self, process: Arc<Process>, argv: Vec<OsString>) -> SessionId {
        let id = SessionId(self.next);
        self.next = self.next.saturating_add(1);
        self.entries.insert(id, Entry { process, argv, begin: Instant::now() });
        id
    }
}

/// A command whose call waits for it. If the call is given up, the command is ended.
struct Started {
    id: SessionId,
    process: Arc<Process>,
    grace: Duration,
    kept: bool,
}

impl Started {
    fn keep(mut self) {
        self.kept = true;
        self.process.to_background();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.kept {
            self.process.stop(Cause::Interrupted, self.grace);
            self.process.set_told();
            self.process.to_background();
        }
    }
}

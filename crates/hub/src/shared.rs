//! Processes that several conversations share.
//!
//! A server has a task that owns the process and hands its lines to the conversations that sit
//! there. A conversation's [`Seat`] looks like a process of its own: lines come, lines go, and when
//! the process ends everybody hears of it. Who leaves takes nothing down; the process ends with the
//! last one.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tieline_agent::{Destination, Exchange, Routed, Share};
use tieline_proc::{Captured, Child, Closed, Env, Exit, Spec, StderrChunk};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;

use crate::limits::Limits;
use crate::port::Next;

/// Lines that may wait for a conversation; the process waits beyond that.
const WAITING: usize = 256;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// The shared processes of a hub.
pub(crate) struct Servers {
    running: Mutex<Vec<Server>>,
    /// One is started at a time: who waits may find a seat at it.
    starting: Semaphore,
}

impl Default for Servers {
    fn default() -> Self {
        Self { running: Mutex::default(), starting: Semaphore::new(1) }
    }
}

struct Server {
    kind: Kind,
    seats: usize,
    taken: Arc<()>,
    next_seat: usize,
    pid: u32,
    inbox: mpsc::Sender<FromSeat>,
    ended: watch::Receiver<Option<Ending>>,
}

/// Only conversations that would start the same process can share one.
#[derive(PartialEq)]
struct Kind {
    program: std::path::PathBuf,
    args: Vec<std::ffi::OsString>,
    env: Env,
}

/// How the process ended.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    exit: Exit,
    killed: u32,
    left: u32,
    stderr: String,
}

enum FromSeat {
    Joined { seat: usize, lines: mpsc::Sender<Vec<u8>>, stderr: mpsc::Sender<StderrChunk> },
    Lines { seat: usize, bytes: Vec<u8> },
    Left { seat: usize },
}

/// A conversation's place at a shared process.
pub(crate) struct Seat {
    pub(crate) pid: u32,
    number: usize,
    lines: mpsc::Receiver<Vec<u8>>,
    stderr: Option<mpsc::Receiver<StderrChunk>>,
    /// A line that did not fit into the reader's buffer, and how much of it was taken.
    rest: (Vec<u8>, usize),
    outbox: mpsc::Sender<FromSeat>,
    ended: watch::Receiver<Option<Ending>>,
    gone: bool,
    /// Counts who is there.
    _taken: Arc<()>,
}

impl Servers {
    /// A seat at a running process of this kind, or at a new one.
    pub(crate) async fn seat(
        &self,
        spec: Spec,
        share: &Share,
        limits: &Limits,
    ) -> Result<Seat, tieline_proc::Error> {
        let kind =
            Kind { program: spec.program.clone(), args: spec.args.clone(), env: spec.env.clone() };
        if let Some(seat) = self.free_seat(&kind) {
            return Ok(seat);
        }
        // It is never closed.
        let _permit = self.starting.acquire().await.ok();
        if let Some(seat) = self.free_seat(&kind) {
            return Ok(seat);
        }
        let child = tieline_proc::spawn(spec).await?;
        let pid = child.pid;
        let (inbox, from_seats) = mpsc::channel(WAITING);
        let (tell_end, ended) = watch::channel(None);
        let exchange = Exchange::new((share.switchboard)(), limits.line);
        let task = Task {
            child,
            exchange,
            seats: BTreeMap::new(),
            from_seats,
            unwritten: Vec::new(),
            limits: limits.clone(),
        };
        tokio::spawn(async move {
            let ending = task.run().await;
            // Nobody may be left to hear it.
            tell_end.send_replace(Some(ending));
        });
        let mut server = Server {
            kind,
            seats: share.seats,
            taken: Arc::new(()),
            next_seat: 0,
            pid,
            inbox,
            ended,
        };
        let seat = server.take();
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        Ok(seat)
    }

    fn free_seat(&self, kind: &Kind) -> Option<Seat> {
        let mut servers = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|server| !server.inbox.is_closed());
        let is_free = |server: &&mut Server| server.kind == *kind && server.has_room();
        servers.iter_mut().find(is_free).map(Server::take)
    }
}

impl Server {
    fn has_room(&self) -> bool {
        let n_taken = Arc::strong_count(&self.taken) - 1;
        // One that nobody sits at is about to end.
        n_taken > 0 && n_taken < self.seats && self.ended.borrow().is_none()
    }

    fn take(&mut self) -> Seat {
        let seat = self.next_seat;
        self.next_seat += 1;
        let (to_lines, lines) = mpsc::channel(WAITING);
        let (to_stderr, stderr) = mpsc::channel(WAITING);
        let joined = FromSeat::Joined { seat, lines: to_lines, stderr: to_stderr };
        // A full or closed inbox shows as an end of the lines.
        if self.inbox.try_send(joined).is_err() {
            tracing::warn!(pid = self.pid, "a shared agent takes no more conversations");
        }
        Seat {
            pid: self.pid,
            number: seat,
            lines,
            stderr: Some(stderr),
            rest: (Vec::new(), 0),
            outbox: self.inbox.clone(),
            ended: self.ended.clone(),
            gone: false,
            _taken: Arc::clone(&self.taken),
        }
    }
}

impl Seat {
    pub(crate) fn take_stderr(&mut self) -> Option<mpsc::Receiver<StderrChunk>> {
        self.stderr.take()
    }

    /// Until the process ended, or this conversation left it.
    pub(crate) async fn exited(&self) {
        if self.gone {
            return;
        }
        let mut ended = self.ended.clone();
        // A sender that is gone has ended as well.
        drop(ended.wait_for(Option::is_some).await);
    }

    /// Takes whole lines, all or nothing.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let lines = FromSeat::Lines { seat: self.number, bytes: bytes.to_vec() };
        match self.outbox.try_send(lines) {
            Ok(()) => Ok(bytes.len()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits for whichever comes first.
    pub(crate) async fn next(
        &mut self,
        buffer: &mut [u8],
        may_read: bool,
        may_write: bool,
    ) -> Next {
        // All that was sent is read before the end is believed: it lies in memory, and ends.
        if may_read && let Some(n) = self.take_read(buffer) {
            return Next::Read(Ok(n));
        }
        let Self { lines, outbox, ended, gone, rest, .. } = self;
        let read = async {
            match may_read {
                true => lines.recv().await,
                false => std::future::pending().await,
            }
        };
        let write = async {
            match may_write {
                true => drop(outbox.reserve().await),
                false => std::future::pending().await,
            }
        };
        let end = async {
            if !*gone {
                // A sender that is gone has ended as well.
                drop(ended.wait_for(Option::is_some).await);
            }
        };
        let line = tokio::select! {
            biased;
            line = read => line,
            () = write => return Next::Writable,
            () = end => return Next::Exited,
        };
        match line {
            Some(line) => *rest = (line, 0),
            // Nobody sends any more; the end follows at once.
            None => {
                self.exited().await;
                return Next::Exited;
            }
        }
        Next::Read(Ok(self.take_read(buffer).unwrap_or(0)))
    }

    /// Takes of the line that was not taken whole.
    fn take_read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let (line, taken) = &mut self.rest;
        let left = line.get(*taken..).filter(|left| !left.is_empty())?;
        let n = left.len().min(buffer.len());
        buffer.get_mut(..n)?.copy_from_slice(left.get(..n)?);
        *taken += n;
        Some(n)
    }

    /// Gives the seat up; the process goes on for the others.
    pub(crate) fn leave(&mut self) {
        if !std::mem::replace(&mut self.gone, true) {
            // What is on its way stays readable; the task does not wait for us any more.
            self.lines.close();
            let (outbox, seat) = (self.outbox.clone(), self.number);
            // The task may be busy with others; it will see.
            tokio::spawn(async move {
                if outbox.send(FromSeat::Left { seat }).await.is_err() {
                    tracing::debug!(seat, "the shared agent was gone first");
                }
            });
        }
    }

    /// What is left to be read, and how it ended. The last one waits for the process.
    pub(crate) async fn close(mut self, patience: Duration) -> (Vec<u8>, Closed) {
        self.leave();
        let is_last = Arc::strong_count(&self._taken) <= 2;
        if is_last {
            let mut ended = self.ended.clone();
            if timeout(patience, ended.wait_for(Option::is_some)).await.is_err() {
                tracing::warn!(pid = self.pid, "a shared agent does not end");
            }
        }
        let (line, taken) = &self.rest;
        let mut rest = line.get(*taken..).unwrap_or_default().to_vec();
        while let Ok(line) = self.lines.try_recv() {
            rest.extend(line);
        }
        let ending = self.ended.borrow().clone();
        let exit = ending.as_ref().map(|it| it.exit);
        let stderr = ending.as_ref().map(|it| it.stderr.clone()).unwrap_or_default();
        let stderr =
            Captured { total: stderr.len() as u64, head: stderr.into_bytes(), tail: vec![] };
        let (killed, left) = ending.map_or((0, 0), |it| (it.killed, it.left));
        (
            rest,
            Closed {
                exit: exit.or(Some(Exit { code: Some(0), signal: None })),
                killed,
                left,
                stderr,
            },
        )
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.gone {
            // Outside of a runtime nothing is left to be told.
            drop(self.outbox.try_send(FromSeat::Left { seat: self.number }));
        }
    }
}

/// The owner of a shared process.
struct Task {
    child: Child,
    exchange: Exchange,
    seats: BTreeMap<usize, (mpsc::Sender<Vec<u8>>, mpsc::Sender<StderrChunk>)>,
    from_seats: mpsc::Receiver<FromSeat>,
    unwritten: Vec<u8>,
    limits: Limits,
}

enum Step {
    Exited,
    Read(io::Result<usize>),
    Writable,
    Stderr(Option<StderrChunk>),
    Seat(Option<FromSeat>),
}

impl Task {
    async fn run(mut self) -> Ending {
        let mut buffer = vec![0; CHUNK];
        let mut stderr = self.child.take_stderr();
        let mut eof = false;
        loop {
            let step = {
                let Self { child, from_seats, unwritten, .. } = &mut self;
                let read = async {
                    match eof {
                        true => std::future::pending().await,
                        false => child.read_stdout(&mut buffer).await,
                    }
                };
                let writable = async {
                    match &child.stdin {
                        Some(stdin) if !unwritten.is_empty() => drop(stdin.writable().await),
                        _ => std::future::pending().await,
                    }
                };
                let piece = async {
                    match &mut stderr {
                        Some(stderr) => stderr.recv().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    _ = child.exited() => Step::Exited,
                    read = read => Step::Read(read),
                    () = writable => Step::Writable,
                    piece = piece => Step::Stderr(piece),
                    message = from_seats.recv() => Step::Seat(message),
                }
            };
            match step {
                Step::Exited => break,
                Step::Read(Ok(0) | Err(_)) => eof = true,
                Step::Read(Ok(n)) => {
                    let routed = self.exchange.read(buffer.get(..n).unwrap_or_default());
                    self.route(routed).await;
                }
                Step::Writable => self.write(),
                Step::Stderr(None) => stderr = None,
                Step::Stderr(Some(piece)) => self.tell_stderr(&piece),
                Step::Seat(None) => break,
                Step::Seat(Some(message)) => {
                    if self.take(message).await && self.seats.is_empty() {
                        break;
                    }
                }
            }
        }
        self.end().await
    }

    /// `true` when somebody left.
    async fn take(&mut self, message: FromSeat) -> bool {
        match message {
            FromSeat::Joined { seat, lines, stderr } => {
                self.seats.insert(seat, (lines, stderr));
                false
            }
            FromSeat::Lines { seat, bytes } => {
                let routed = self.exchange.write(seat, &bytes);
                self.route(routed).await;
                false
            }
            FromSeat::Left { seat } => {
                let routed = self.exchange.left(seat);
                self.seats.remove(&seat);
                self.route(routed).await;
                true
            }
        }
    }

    async fn route(&mut self, routed: Vec<Routed>) {
        for Routed { to, line } in routed {
            match to {
                Destination::Process => self.unwritten.extend(line),
                Destination::Seat(seat) => {
                    // One that has just left misses nothing.
                    if let Some((lines, _)) = self.seats.get(&seat) {
                        drop(lines.send(line).await);
                    }
                }
                Destination::Everybody => {
                    for (lines, _) in self.seats.values() {
                        drop(lines.send(line.clone()).await);
                    }
                }
            }
        }
        self.write();
    }

    fn write(&mut self) {
        while !self.unwritten.is_empty() {
            let Some(stdin) = &self.child.stdin else { break };
            match stdin.try_write(&self.unwritten) {
                Ok(n) => drop(self.unwritten.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::debug!(pid = self.child.pid, %error, "the agent takes no input");
                    self.unwritten.clear();
                    self.child.stdin = None;
                }
            }
        }
    }

    fn tell_stderr(&self, piece: &StderrChunk) {
        for (_, stderr) in self.seats.values() {
            let piece = StderrChunk { missed: piece.missed, bytes: piece.bytes.clone() };
            // Too fast for somebody: the end of it is told at the exit.
            drop(stderr.try_send(piece));
        }
    }

    async fn end(mut self) -> Ending {
        self.from_seats.close();
        self.child.stdin = None;
        let grace = self.limits.exit_grace;
        if timeout(grace, self.child.exited()).await.is_err() {
            self.child.begin_stop(self.limits.stop_grace);
            let patience = self.limits.stop_grace + Duration::from_secs(1);
            if timeout(patience, self.child.exited()).await.is_err() {
                self.child.begin_kill();
            }
        }
        let mut last = Vec::new();
        self.child.drain(|bytes| last.extend_from_slice(bytes), self.limits.drain).await;
        let mut routed = self.exchange.read(&last);
        routed.extend(self.exchange.finish());
        // A conversation that does not read may not keep the end from the others.
        if timeout(self.limits.drain, self.route(routed)).await.is_err() {
            tracing::warn!("a conversation did not read the last lines of a shared agent");
        }
        let closed = self.child.close(Duration::ZERO).await;
        Ending {
            exit: closed.exit.unwrap_or(Exit { code: None, signal: Some(9) }),
            killed: closed.killed,
            left: closed.left,
            stderr: closed.stderr.to_text(),
        }
    }
}

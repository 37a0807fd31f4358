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

use tieline_agent::{Destination, Exchange, Routed, Share, Switchboard};
use tieline_proc::{Captured, Child, Closed, Env, Exit, Spec, StderrChunk};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::limits::Limits;
use crate::port::{Next, push};

/// Lines that may wait for a conversation; the process waits beyond that.
const WAITING: usize = 256;

/// How much is read after the agent's end; a pipe holds far less.
pub(crate) const DRAINED: usize = 16 << 20;

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
    /// Somebody sits down, and waits until that is known.
    Joined(Joined, oneshot::Sender<()>),
    Lines {
        seat: usize,
        bytes: Vec<u8>,
    },
    /// Somebody leaves, and may want to know whether it was the last one.
    Left {
        seat: usize,
        was_last: Option<oneshot::Sender<bool>>,
    },
}

/// Where a conversation's lines go.
struct Joined {
    seat: usize,
    lines: mpsc::Sender<Vec<u8>>,
    stderr: mpsc::Sender<StderrChunk>,
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
    /// It has left; the answer says whether it was the last one.
    leaving: Option<oneshot::Receiver<bool>>,
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
        if let Some(seat) = self.free_seat(&kind, share.seats).await {
            return Ok(seat);
        }
        // It is never closed.
        let _permit = self.starting.acquire().await.ok();
        if let Some(seat) = self.free_seat(&kind, share.seats).await {
            return Ok(seat);
        }
        let child = tieline_proc::spawn(spec).await?;
        let (server, seat) = start(child, (share.switchboard)(), kind, limits);
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        Ok(seat)
    }

    /// A seat at a process that has room and takes us.
    async fn free_seat(&self, kind: &Kind, seats: usize) -> Option<Seat> {
        loop {
            let (seat, joined) = {
                let mut servers = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                servers.retain(|server| !server.inbox.is_closed());
                let fits = |it: &&mut Server| it.kind == *kind && it.has_room(seats);
                servers.iter_mut().find(fits)?.take()
            };
            // One that is about to end takes nobody, and closes its inbox.
            let (ready, is_ready) = oneshot::channel();
            let message = FromSeat::Joined(joined, ready);
            if seat.outbox.send(message).await.is_ok() && is_ready.await.is_ok() {
                return Some(seat);
            }
        }
    }
}

/// Starts the owner of a new shared process, with the first seat taken.
fn start(child: Child, board: Box<dyn Switchboard>, kind: Kind, limits: &Limits) -> (Server, Seat) {
    let pid = child.pid;
    let (inbox, from_seats) = mpsc::channel(WAITING);
    let (tell_end, ended) = watch::channel(None);
    let mut server = Server { kind, taken: Arc::new(()), next_seat: 0, pid, inbox, ended };
    let (first, Joined { seat, lines, stderr }) = server.take();
    let task = Task {
        child,
        exchange: Exchange::new(board, limits.line),
        seats: BTreeMap::from([(seat, (lines, stderr))]),
        from_seats,
        unwritten: Vec::new(),
        limits: limits.clone(),
    };
    tokio::spawn(async move {
        let ending = task.run().await;
        // Nobody may be left to hear it.
        tell_end.send_replace(Some(ending));
    });
    (server, first)
}

impl Server {
    fn has_room(&self, seats: usize) -> bool {
        Arc::strong_count(&self.taken) <= seats && self.ended.borrow().is_none()
    }

    /// A seat, and what its owner has to be told.
    fn take(&mut self) -> (Seat, Joined) {
        let number = self.next_seat;
        self.next_seat += 1;
        let (to_lines, lines) = mpsc::channel(WAITING);
        let (to_stderr, stderr) = mpsc::channel(WAITING);
        let seat = Seat {
            pid: self.pid,
            number,
            lines,
            stderr: Some(stderr),
            rest: (Vec::new(), 0),
            outbox: self.inbox.clone(),
            ended: self.ended.clone(),
            leaving: None,
            _taken: Arc::clone(&self.taken),
        };
        (seat, Joined { seat: number, lines: to_lines, stderr: to_stderr })
    }
}

impl Seat {
    pub(crate) fn take_stderr(&mut self) -> Option<mpsc::Receiver<StderrChunk>> {
        self.stderr.take()
    }

    /// Until the process ended, or this conversation left it.
    pub(crate) async fn exited(&self) {
        if self.leaving.is_some() {
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
        let Self { lines, outbox, ended, leaving, rest, .. } = self;
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
            if leaving.is_none() {
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
        if self.leaving.is_some() {
            return;
        }
        // What is on its way stays readable; the task does not wait for us any more.
        self.lines.close();
        let (tell, was_last) = oneshot::channel();
        self.leaving = Some(was_last);
        say_left(&self.outbox, self.number, Some(tell));
    }

    /// What is left to be read, and how it ended. The last one waits for the process; for the others
    /// it has no end.
    pub(crate) async fn close(mut self, patience: Duration) -> (Vec<u8>, Closed) {
        self.leave();
        let mut ended = self.ended.clone();
        let over = async {
            let was_last = match self.leaving.take() {
                Some(leaving) => leaving.await.unwrap_or(true),
                None => true,
            };
            if was_last {
                drop(ended.wait_for(Option::is_some).await);
            }
        };
        if timeout(patience, over).await.is_err() {
            tracing::warn!(pid = self.pid, "a shared agent does not end");
        }
        // Noted as left: the seat is dropped below.
        self.leaving = Some(oneshot::channel().1);
        let (line, taken) = &self.rest;
        let mut rest = line.get(*taken..).unwrap_or_default().to_vec();
        while let Ok(line) = self.lines.try_recv() {
            rest.extend(line);
        }
        let ending = self.ended.borrow().clone();
        let exit = ending.as_ref().map_or(Exit { code: None, signal: None }, |it| it.exit);
        let stderr = ending.as_ref().map(|it| it.stderr.clone()).unwrap_or_default();
        let stderr =
            Captured { total: stderr.len() as u64, head: stderr.into_bytes(), tail: vec![] };
        let (killed, left) = ending.map_or((0, 0), |it| (it.killed, it.left));
        (rest, Closed { exit: Some(exit), killed, left, stderr })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.leaving.is_none() {
            say_left(&self.outbox, self.number, None);
        }
    }
}

/// Tells the owner of the process, who may be busy with others. Without a runtime there is no owner.
fn say_left(outbox: &mpsc::Sender<FromSeat>, seat: usize, was_last: Option<oneshot::Sender<bool>>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let outbox = outbox.clone();
    runtime.spawn(async move {
        if outbox.send(FromSeat::Left { seat, was_last }).await.is_err() {
            tracing::debug!(seat, "the shared agent was gone first");
        }
    });
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
        loop {
            let step = {
                let Self { child, from_seats, unwritten, .. } = &mut self;
                let read = child.read_stdout(&mut buffer);
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
                // Without its output nothing is left to be said, to anybody.
                Step::Read(Ok(0) | Err(_)) => break,
                Step::Read(Ok(n)) => {
                    let routed = self.exchange.read(buffer.get(..n).unwrap_or_default());
                    self.route(routed).await;
                }
                Step::Writable => self.write(),
                Step::Stderr(None) => stderr = None,
                Step::Stderr(Some(piece)) => self.tell_stderr(&piece),
                Step::Seat(None) => break,
                Step::Seat(Some(message)) => {
                    if self.take(message).await {
                        break;
                    }
                }
            }
        }
        self.end().await
    }

    /// `true` when the last one left.
    async fn take(&mut self, message: FromSeat) -> bool {
        match message {
            FromSeat::Joined(Joined { seat, lines, stderr }, ready) => {
                // One that did not wait leaves again by being dropped.
                if ready.send(()).is_ok() {
                    self.seats.insert(seat, (lines, stderr));
                }
                false
            }
            FromSeat::Lines { seat, bytes } => {
                let routed = self.exchange.write(seat, &bytes);
                self.route(routed).await;
                false
            }
            FromSeat::Left { seat, was_last } => {
                let routed = self.exchange.left(seat);
                self.seats.remove(&seat);
                self.route(routed).await;
                let is_last = self.seats.is_empty();
                let told = was_last.is_none_or(|tell| tell.send(is_last).is_ok());
                tracing::trace!(seat, told, "left");
                is_last
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
        let Self { child, unwritten, .. } = self;
        let gone = || Err(io::ErrorKind::BrokenPipe.into());
        push(unwritten, child.pid, |bytes| match &child.stdin {
            Some(stdin) => stdin.try_write(bytes),
            None => gone(),
        });
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
        let sink = |bytes: &[u8]| {
            // More than a pipe holds comes from descendants that write on without end.
            let room = DRAINED - last.len();
            last.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        };
        self.child.drain(sink, self.limits.drain).await;
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

//! One command and the task that attends to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tieline_proc::{Exit, Job, Spec, Stream, Streams};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::exec::kept::{Kept, Last};
use crate::exec::{Cause, Ended, Error, Limits, Printed, Ran, Update};

/// How many orders for its input a command may have waiting. When it is full the next one waits.
const INPUT_QUEUE: usize = 16;

/// How long a host may take beyond the grace before it is given up.
const HOST_LIMIT: Duration = Duration::from_secs(2);

/// How much is still read at once when a listener was given up: more than a pipe holds.
const SWEEP: usize = 1024 * 1024;

/// A command. Dropping it kills it and everything it started.
pub(super) struct Process {
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<Ended>>,
    stop: watch::Sender<Option<Stop>>,
    input: mpsc::Sender<Feed>,
    task: JoinHandle<()>,
    foreground: AtomicBool,
    told: AtomicBool,
}

/// What a command gets on its input.
pub(super) enum Feed {
    Bytes(Vec<u8>),
    End,
    Size(tieline_proc::TerminalSize),
}

#[derive(Clone, Copy)]
struct Stop {
    cause: Cause,
    grace: Duration,
}

struct Shared {
    kept: Mutex<Kept>,
    has_input: AtomicBool,
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// Begins to start a command; whether it was started is told through the second value.
    pub(super) fn begin(
        spec: Spec,
        streams: Streams,
        time_limit: Option<Duration>,
        listener: Option<mpsc::Sender<Update>>,
        limits: Limits,
    ) -> (Process, oneshot::Receiver<Result<(), Error>>) {
        let has_input = AtomicBool::new(streams != Streams::NoInput);
        let shared = Arc::new(Shared { kept: Mutex::new(Kept::new(limits.kept)), has_input });
        let (ended_sender, ended) = watch::channel(None);
        let (stop, stop_receiver) = watch::channel(None);
        let (input, inbox) = mpsc::channel(INPUT_QUEUE);
        let (reply, started) = oneshot::channel();
        let life = Life {
            shared: Arc::clone(&shared),
            ended: ended_sender,
            stop: stop_receiver,
            inbox,
            limits,
            outlet: Outlet { listener, unsent: None, n_sent: 0, withheld: 0 },
        };
        let task = tokio::spawn(life.live(spec, streams, time_limit, reply));
        let (foreground, told) = (AtomicBool::new(true), AtomicBool::new(false));
        (Process { shared, ended, stop, input, task, foreground, told }, started)
    }

    /// Waits until it has ended, or until then.
    pub(super) async fn wait(&self, until: Option<Instant>) -> Option<Ended> {
        let mut ended = self.ended.clone();
        let end = async {
            match ended.wait_for(Option::is_some).await {
                Ok(ended) => *ended,
                // The task is gone without a word: it was ended with its session.
                Err(_) => Some(LOST),
            }
        };
        match until {
            Some(until) => tokio::time::timeout_at(until, end).await.ok().flatten(),
            None => end.await,
        }
    }

    /// Has it ended; its descendants may live on.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some() || self.task.is_finished()
    }

    /// Whether nobody is left of it.
    pub(super) fn is_gone(&self) -> bool {
        self.task.is_finished()
    }

    /// Begins to end it and everything it started. The first reason is the one that counts.
    pub(super) fn stop(&self, cause: Cause, grace: Duration) {
        self.stop.send_if_modified(|stop| {
            let is_first = stop.is_none();
            stop.get_or_insert(Stop { cause, grace });
            is_first
        });
    }

    /// Waits until nobody is left of it, for as long as a host may take.
    pub(super) async fn wait_gone(&self, limit: Duration) {
        let gone = timeout(limit, self.stop.closed()).await;
        if gone.is_err() {
            tracing::warn!("a command does not end and is given up");
        }
    }

    pub(super) fn abort(&self) {
        self.task.abort();
    }

    pub(super) fn is_foreground(&self) -> bool {
        self.foreground.load(Ordering::Relaxed)
    }

    pub(super) fn to_background(&self) {
        self.foreground.store(false, Ordering::Relaxed);
    }

    /// Whether its end has been told, or nobody wants to know. Then it matters only for what it left
    /// running.
    pub(super) fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    pub(super) fn set_told(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_input(&self) -> bool {
        self.shared.has_input.load(Ordering::Relaxed)
    }

    pub(super) fn input(&self) -> &mpsc::Sender<Feed> {
        &self.input
    }

    /// What was printed since the last call.
    pub(super) fn fresh(&self, last: Last) -> Printed {
        self.shared.kept().fresh(last)
    }

    /// Its whole life.
    pub(super) fn ran(&self, ended: Ended) -> Ran {
        let kept = self.shared.kept();
        let (stdout, stderr) = (kept.of(Stream::Stdout), kept.of(Stream::Stderr));
        Ran { ended, output: kept.all(), stdout, stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is said of a command whose task was ended.
const LOST: Ended =
    Ended { exit: None, cause: Cause::Closed, elapsed: Duration::ZERO, cut: true, withheld: 0 };

/// What the task of a command has.
struct Life {
    shared: Arc<Shared>,
    ended: watch::Sender<Option<Ended>>,
    stop: watch::Receiver<Option<Stop>>,
    inbox: mpsc::Receiver<Feed>,
    limits: Limits,
    outlet: Outlet,
}

impl Life {
    async fn live(
        mut self,
        spec: Spec,
        streams: Streams,
        time_limit: Option<Duration>,
        reply: oneshot::Sender<Result<(), Error>>,
    ) {
        let begin = Instant::now();
        let started = tokio::select! {
            started = tieline_proc::start_job(spec, streams) => {
                started.map_err(|error| Error::of_start(&error))
            }
            _ = stopped(&mut self.stop) => Err(Error::Interrupted),
        };
        let job = match started {
            Ok(job) => job,
            Err(error) => {
                // Who does not wait any more needs no reason.
                reply.send(Err(error)).ok();
                return;
            }
        };
        reply.send(Ok(())).ok();
        let mut running = Running {
            job,
            begin,
            exit: None,
            cause: Cause::Itself,
            stopping: false,
            open: true,
            is_gone: false,
            give_up: None,
            unwritten: Vec::new(),
        };
        let ended = self.attend(&mut running, time_limit).await;
        self.shared.has_input.store(false, Ordering::Relaxed);
        self.ended.send_replace(Some(ended));
        if let Some(listener) = self.outlet.listener.take() {
            tokio::select! {
                // A listener that is gone needs to know nothing.
                sent = listener.send(Update::Ended(ended)) => drop(sent),
                _ = stopped(&mut self.stop) => {}
            }
        }
        self.linger(running).await;
    }

    /// Moves bytes until the command has ended and its output has been read.
    async fn attend(&mut self, running: &mut Running, time_limit: Option<Duration>) -> Ended {
        let mut buffer = vec![0; self.limits.delta.max(1)];
        let deadline = time_limit.map(|limit| running.begin + limit);
        let mut elapsed = None;
        let mut cut = false;
        while !(running.is_over() && self.outlet.unsent.is_none()) {
            let Running { job, unwritten, .. } = &*running;
            let (is_stopping, is_running) = (running.stopping, running.exit.is_none());
            tokio::select! {
                read = job.read(&mut buffer), if running.open && self.outlet.unsent.is_none() => {
                    match read {
                        Some((stream, n)) => {
                            self.shared.kept().push(stream, &buffer[..n]);
                            self.outlet.offer(stream, &buffer[..n], &self.limits);
                        }
                        None => running.open = false,
                    }
                }
                () = self.outlet.send(), if self.outlet.unsent.is_some() => {}
                written = job.write(unwritten), if !unwritten.is_empty() => match written {
                    Ok(n) => drop(running.unwritten.drain(..n)),
                    Err(_) => self.end_input(running),
                },
                feed = self.inbox.recv(), if unwritten.is_empty() => match feed {
                    Some(feed) => self.feed(running, feed),
                    // Nobody has the command any more.
                    None => running.stop(Cause::Closed, Duration::ZERO),
                },
                exit = job.exited(), if is_running => {
                    elapsed = Some(running.begin.elapsed());
                    running.exit = Some(exit);
                    running.give_up_in(self.limits.drain);
                }
                () = job.gone(), if !is_running && is_stopping && !running.is_gone => {
                    running.is_gone = true;
                }
                stop = stopped(&mut self.stop), if !is_stopping => {
                    running.stop(stop.cause, stop.grace);
                }
                () = at(deadline), if !is_stopping && is_running => {
                    let limit = time_limit.unwrap_or_default();
                    running.stop(Cause::TimedOut { limit }, self.limits.stop_grace);
                }
                () = at(running.give_up) => {
                    self.outlet.give_up();
                    self.sweep(running, &mut buffer).await;
                    cut = running.open;
                    break;
                }
            }
        }
        Ended {
            exit: running.exit,
            cause: running.cause,
            elapsed: elapsed.unwrap_or_else(|| running.begin.elapsed()),
            cut,
            withheld: self.outlet.withheld,
        }
    }

    fn feed(&self, running: &mut Running, feed: Feed) {
        match feed {
            Feed::Bytes(bytes) => running.unwritten = bytes,
            Feed::End => self.end_input(running),
            Feed::Size(size) => {
                if let Err(err) = running.job.resize(size) {
                    tracing::debug!(%err, "a command has no terminal to resize");
                }
            }
        }
    }

    fn end_input(&self, running: &mut Running) {
        running.unwritten.clear();
        running.job.close_input();
        self.shared.has_input.store(running.job.has_input(), Ordering::Relaxed);
    }

    /// Reads what is there already, so that what was written before the exit is kept.
    async fn sweep(&self, running: &mut Running, buffer: &mut [u8]) {
        let mut n_swept = 0;
        while running.open && n_swept < SWEEP {
            match timeout(Duration::from_millis(1), running.job.read(buffer)).await {
                Ok(Some((stream, n))) => {
                    self.shared.kept().push(stream, &buffer[..n]);
                    n_swept += n;
                }
                Ok(None) => running.open = false,
                Err(_) => return,
            }
        }
    }

    /// Lets what a command left behind go on: who writes into a pipe that nobody reads is killed.
    async fn linger(mut self, mut running: Running) {
        let mut buffer = vec![0; self.limits.delta.max(1)];
        running.give_up = None;
        if running.stopping {
            running.give_up_in(HOST_LIMIT);
        }
        loop {
            tokio::select! {
                () = running.job.gone() => break,
                read = running.job.read(&mut buffer), if running.open => {
                    running.open = read.is_some();
                }
                stop = stopped(&mut self.stop), if !running.stopping => {
                    running.stop(stop.cause, stop.grace);
                }
                () = at(running.give_up) => break,
            }
        }
        let closed = running.job.close(Duration::ZERO).await;
        if closed.left > 0 {
            tracing::warn!(n_left = closed.left, "processes of a command could not be killed");
        }
    }
}

/// A started command.
struct Running {
    job: Job,
    begin: Instant,
    exit: Option<Exit>,
    cause: Cause,
    stopping: bool,
    /// Whether there may be more to read.
    open: bool,
    /// Whether no descendant is left; looked at only when it is being stopped.
    is_gone: bool,
    /// When nothing more is waited for.
    give_up: Option<Instant>,
    unwritten: Vec<u8>,
}

impl Running {
    fn is_over(&self) -> bool {
        self.exit.is_some() && !self.open && (self.is_gone || !self.stopping)
    }

    fn stop(&mut self, cause: Cause, grace: Duration) {
        if self.exit.is_none() {
            self.cause = cause;
        }
        self.stopping = true;
        self.job.begin_stop(grace);
        self.give_up_in(grace + HOST_LIMIT);
    }

    fn give_up_in(&mut self, time: Duration) {
        let then = Instant::now() + time;
        self.give_up = Some(self.give_up.map_or(then, |earlier| earlier.min(then)));
    }
}

/// The way to a listener.
struct Outlet {
    listener: Option<mpsc::Sender<Update>>,
    /// What it has no room for yet. Until it has, nothing more is read.
    unsent: Option<Update>,
    n_sent: u32,
    withheld: u64,
}

impl Outlet {
    fn offer(&mut self, stream: Stream, bytes: &[u8], limits: &Limits) {
        let Some(listener) = &self.listener else { return };
        if self.n_sent >= limits.max_deltas {
            self.withheld += bytes.len() as u64;
            return;
        }
        self.n_sent += 1;
        let update = Update::Output { stream, bytes: bytes.to_vec() };
        match listener.try_send(update) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(update)) => self.unsent = Some(update),
            Err(mpsc::error::TrySendError::Closed(_)) => self.listener = None,
        }
    }

    /// Waits for room. Can be cancelled.
    async fn send(&mut self) {
        let Some(listener) = &self.listener else {
            self.unsent = None;
            return;
        };
        let room = listener.reserve().await;
        let update = self.unsent.take();
        match (room, update) {
            (Ok(room), Some(update)) => room.send(update),
            // Nobody listens any more, which the next piece finds too.
            (Err(_), _) | (Ok(_), None) => {}
        }
    }

    fn give_up(&mut self) {
        if let Some(Update::Output { bytes, .. }) = self.unsent.take() {
            self.withheld += bytes.len() as u64;
        }
    }
}

/// Waits until a stop was ordered.
async fn stopped(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    match stop.wait_for(Option::is_some).await.map(|stop| *stop) {
        Ok(Some(stop)) => stop,
        Ok(None) | Err(_) => Stop { cause: Cause::Closed, grace: Duration::ZERO },
    }
}

/// Waits until then, or for ever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

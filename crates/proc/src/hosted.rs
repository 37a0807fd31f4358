//! One host and the process it cares for: the way to both, whatever their streams are.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::message::{LEN, Order, Report, Step};
use crate::spawner::{self, HostHandle, Started};
use crate::spec::{self, Tty};
use crate::{Error, Exit, Spec};

/// How long a host may take to start its agent. Programs on a network file system are slow; a host
/// program that is none would be silent for ever.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A host that is silent for this long while it starts its agent is continued.
const START_PAUSE: Duration = Duration::from_millis(200);

/// How long [`Hosted::close`] waits for the host beyond the grace.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// A process and its host. Dropping it kills the process and everything it started.
pub(crate) struct Hosted {
    pub(crate) pid: u32,
    control: UnixStream,
    inbox: Mutex<Inbox>,
    host: HostHandle,
}

/// What the host said at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Farewell {
    /// `None` if the host had to be killed before it could tell.
    pub(crate) exit: Option<Exit>,
    pub(crate) killed: u32,
    pub(crate) left: u32,
}

/// Starts a program whose streams are what `open` gives: first our ends, then those of the program.
/// Returns once it has been executed; dropping the future ends whatever was started so far.
pub(crate) async fn start<E: Send + 'static>(
    spec: &Spec,
    tty: Tty,
    open: impl FnOnce() -> io::Result<(E, [OwnedFd; 3])> + Send + 'static,
) -> Result<(Hosted, E), Error> {
    let body = spec.encode(tty)?;
    let to_host = |source| Error::Host { source };
    let Started { control, ends, host } = spawner::start(open).await.map_err(to_host)?;
    control.set_nonblocking(true).map_err(to_host)?;
    let mut control = UnixStream::from_std(control).map_err(to_host)?;

    let mut inbox = Inbox::default();
    let started = timeout(START_LIMIT, async {
        let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        control.write_all(&len.to_le_bytes()).await.ok()?;
        control.write_all(&body).await.ok()?;
        loop {
            match timeout(START_PAUSE, inbox.next(&control)).await {
                Ok(report) => break report,
                // The agent may have stopped it before it could tell that the agent runs.
                Err(_) => host.resume(None),
            }
        }
    });
    match started.await {
        Ok(Some(Report::Spawned(pid))) => {
            tracing::debug!(pid, program = %spec.program.display(), "started");
            Ok((Hosted { pid, control, inbox: Mutex::new(inbox), host }, ends))
        }
        Ok(Some(Report::Failed { step, errno })) => Err(failure(spec, step, errno)),
        Ok(_) => Err(Error::HostMissing),
        Err(_) => {
            host.kill();
            Err(Error::HostMissing)
        }
    }
}

impl Hosted {
    /// Waits until the process itself has ended. Can be cancelled and repeated.
    pub(crate) async fn exited(&self) -> Exit {
        let mut inbox = self.inbox.lock().await;
        while inbox.exit.is_none() {
            if inbox.next(&self.control).await.is_none() {
                self.note_end(&mut inbox);
            }
        }
        inbox.exit.unwrap_or(LOST)
    }

    /// Waits until no descendant is left. Can be cancelled and repeated.
    pub(crate) async fn gone(&self) {
        let mut inbox = self.inbox.lock().await;
        while inbox.gone.is_none() && inbox.next(&self.control).await.is_some() {}
        self.note_end(&mut inbox);
    }

    pub(crate) fn signal(&self, signal: i32) {
        self.order(Order::Signal(signal));
    }

    pub(crate) fn begin_stop(&self, grace: Duration) {
        let grace = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        self.order(Order::Stop(grace));
    }

    pub(crate) fn begin_kill(&self) {
        self.order(Order::Kill);
    }

    /// Begins to stop and waits until no descendant is left, at most two seconds longer than `grace`.
    pub(crate) async fn close(&self, grace: Duration) -> Farewell {
        self.begin_stop(grace);
        let mut inbox = self.inbox.lock().await;
        let finished = timeout(grace.saturating_add(CLOSE_LIMIT), async {
            while inbox.gone.is_none() && inbox.next(&self.control).await.is_some() {}
        });
        if finished.await.is_err() {
            tracing::warn!(pid = self.pid, "the host process does not answer and is killed");
            self.host.kill();
        } else {
            self.note_end(&mut inbox);
        }
        let (killed, left) = inbox.gone.unwrap_or_default();
        Farewell { exit: inbox.exit, killed, left }
    }

    fn order(&self, order: Order) {
        match rustix::io::write(&self.control, &order.encode()) {
            Ok(LEN) => {}
            // The host has ended, and so has everything it could be told to end.
            Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {}
            result => tracing::warn!(pid = self.pid, ?result, "the host process takes no orders"),
        }
        // Its agent may have stopped it, and may do so again.
        self.host.resume(match order {
            Order::Signal(_) => None,
            Order::Stop(grace) => Some(Duration::from_millis(grace.into()) + CLOSE_LIMIT),
            Order::Kill => Some(CLOSE_LIMIT),
        });
    }

    /// The host has said its last word or was lost.
    fn note_end(&self, inbox: &mut Inbox) {
        if inbox.gone.is_none() {
            tracing::warn!(pid = self.pid, "the host process was lost");
        }
        if inbox.exit.is_none() {
            inbox.exit = Some(LOST);
        }
        self.host.release();
    }
}

/// What became of an agent whose host was lost: the parent death signal kills it.
const LOST: Exit = Exit { code: None, signal: Some(libc::SIGKILL) };

/// What the host has told.
#[derive(Default)]
struct Inbox {
    buffer: Vec<u8>,
    exit: Option<Exit>,
    gone: Option<(u32, u32)>,
}

impl Inbox {
    /// The next report, `None` at the end of the connection. Can be cancelled: what was read stays.
    async fn next(&mut self, control: &UnixStream) -> Option<Report> {
        loop {
            if let Some((bytes, rest)) = self.buffer.split_first_chunk::<LEN>() {
                let report = Report::decode(*bytes)?;
                self.buffer = rest.to_vec();
                self.note(report);
                return Some(report);
            }
            control.readable().await.ok()?;
            let mut bytes = [0; 4 * LEN];
            match control.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(n) => self.buffer.extend_from_slice(&bytes[..n]),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    fn note(&mut self, report: Report) {
        match report {
            Report::Exited(code) => self.exit = Some(Exit { code: Some(code), signal: None }),
            Report::Signaled(signal) => {
                self.exit = Some(Exit { code: None, signal: Some(signal) });
            }
            Report::Gone { killed, left } => self.gone = Some((killed, left)),
            Report::Spawned(_) | Report::Failed { .. } => {}
        }
    }
}

fn failure(spec: &Spec, step: Step, errno: i32) -> Error {
    let source = io::Error::from_raw_os_error(errno);
    match step {
        Step::Fork => Error::Host { source },
        Step::Terminal => Error::Terminal { source },
        Step::Directory => Error::Directory { path: spec.cwd.clone(), source },
        Step::Execute if errno == libc::ENOENT && !spec.program.exists() => {
            Error::NotFound { program: spec::shown(&spec.program) }
        }
        Step::Execute => Error::Spawn { program: spec::shown(&spec.program), source },
    }
}

//! A started agent: its streams, its exit, and how it is ended.

use std::io;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::capture::Capture;
use crate::hosted::{self, Farewell, Hosted};
use crate::spec::Tty;
use crate::{Captured, Error, Spec, streams};

/// The agent's standard input; closing it is the polite way to end most agents.
pub type Stdin = pipe::Sender;

/// The agent's standard output.
pub type Stdout = pipe::Receiver;

/// How long output is still read after the leader has ended.
pub const DRAIN: Duration = Duration::from_secs(2);

/// How much of stderr is kept.
const STDERR_LIMIT: usize = 64 * 1024;

/// How many pieces of stderr wait for a receiver. When it is full the piece is not delivered and the
/// next one says how much is missing: waiting would block the agent.
const STDERR_QUEUE: usize = 64;

/// A running agent. Dropping it kills the agent and everything it started.
///
/// All methods work through a shared reference, so that one task can wait for the exit, the output
/// and a deadline at the same time.
pub struct Child {
    /// The agent's process id. It leads its own session and group.
    pub pid: u32,
    /// To write to the agent; take it and drop it to close.
    pub stdin: Option<Stdin>,
    /// To read from the agent.
    pub stdout: Stdout,
    stderr: Arc<StdMutex<Capture>>,
    stderr_pieces: Option<mpsc::Receiver<StderrChunk>>,
    stderr_task: Reader,
    hosted: Hosted,
}

/// How the agent ended: exactly one of the two is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

impl Exit {
    /// Whether the exit code is zero.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("unknown"),
        }
    }
}

/// What was found when a child was closed.
#[derive(Debug, Clone)]
pub struct Closed {
    /// How the agent ended; `None` if the host had to be killed before it could tell.
    pub exit: Option<Exit>,
    /// How many descendants other than the agent itself had to be killed.
    pub killed: u32,
    /// How many could not be killed: processes of other users, or stuck in the kernel.
    pub left: u32,
    /// What was kept of stderr.
    pub stderr: Captured,
}

/// What reading the rest of the output found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Whether somebody still held the pipe when the time was over, so that more could have come.
    pub cut: bool,
}

/// A piece of stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StderrChunk {
    /// How many bytes just before this piece were not delivered because the receiver was too slow.
    pub missed: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Starts a program and returns once it has been executed.
///
/// Dropping the future ends whatever was started so far.
pub async fn spawn(spec: Spec) -> Result<Child, Error> {
    let (hosted, (stdin, outputs)) = hosted::start(&spec, Tty::None, streams::pipes).await?;
    let to_host = |source| Error::Host { source };
    let stdin = Stdin::from_owned_fd(stdin).map_err(to_host)?;
    let stdout = Stdout::from_owned_fd(outputs.stdout).map_err(to_host)?;
    let stderr = Stdout::from_owned_fd(outputs.stderr).map_err(to_host)?;
    let capture = Arc::new(StdMutex::new(Capture::new(STDERR_LIMIT)));
    let (sender, receiver) = mpsc::channel(STDERR_QUEUE);
    let reader = read_stderr(stderr, Arc::clone(&capture), sender);
    Ok(Child {
        pid: hosted.pid,
        stdin: Some(stdin),
        stdout,
        stderr: capture,
        stderr_pieces: Some(receiver),
        stderr_task: Reader(tokio::spawn(reader)),
        hosted,
    })
}

/// Reads what is left in the pipe: until its end or until `limit` is over. What was read by then has
/// been given to `sink`.
///
/// A grandchild may keep the pipe open long after the agent is gone. Losing the tail is reported;
/// losing the head would be a lie.
pub async fn drain(stdout: &Stdout, mut sink: impl FnMut(&[u8]), limit: Duration) -> Drained {
    let deadline = Instant::now() + limit;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match timeout_at(deadline, read(stdout, &mut buffer)).await {
            Ok(Ok(0)) => return Drained { cut: false },
            Ok(Ok(n)) => sink(&buffer[..n]),
            Ok(Err(_)) | Err(_) => return Drained { cut: true },
        }
        // A flood keeps the pipe ready for ever, and then the timeout is never looked at.
        if Instant::now() >= deadline {
            return Drained { cut: true };
        }
    }
}

impl Child {
    /// Waits until the agent itself has ended; its descendants may live on. Can be cancelled and
    /// repeated.
    ///
    /// If the host was lost the answer is `SIGKILL`, which is what the agent receives then.
    pub async fn exited(&self) -> Exit {
        self.hosted.exited().await
    }

    /// Reads from the agent's standard output like [`tokio::io::AsyncReadExt::read`], but through a
    /// shared reference. Zero means the end.
    pub async fn read_stdout(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read(&self.stdout, buffer).await
    }

    /// Sends a signal to the agent, not to its descendants. Does nothing if it has ended.
    pub fn signal(&self, signal: i32) {
        self.hosted.signal(signal);
    }

    /// Begins to end the agent and returns at once: `SIGTERM` to its group, after `grace` or shortly
    /// after its exit `SIGKILL` to every descendant.
    pub fn begin_stop(&self, grace: Duration) {
        self.hosted.begin_stop(grace);
    }

    /// Kills the agent and every descendant and returns at once.
    pub fn begin_kill(&self) {
        self.hosted.begin_kill();
    }

    /// Ends the agent as [`Child::begin_stop`] does and waits until no descendant is left, at most
    /// two seconds longer than `grace`.
    pub async fn close(mut self, grace: Duration) -> Closed {
        self.stdin = None;
        let Farewell { exit, killed, left } = self.hosted.close(grace).await;
        // Nobody can write any more, so the end of the pipe is at most a wakeup away.
        let read = timeout(Duration::from_millis(500), &mut self.stderr_task.0).await;
        if read.is_err() {
            tracing::warn!(pid = self.pid, "stderr is still open after the end of the tree");
        }
        Closed { exit, killed, left, stderr: self.stderr_tail() }
    }

    /// What has been kept of stderr so far: its beginning, its end and its length.
    pub fn stderr_tail(&self) -> Captured {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).get()
    }

    /// The pieces of stderr as they arrive, from the start; `None` if they were taken before.
    ///
    /// A receiver that falls behind misses pieces and is told so; the agent never waits for it.
    pub fn take_stderr(&mut self) -> Option<mpsc::Receiver<StderrChunk>> {
        self.stderr_pieces.take()
    }

    /// [`drain`] of this child's output, to be called after [`Child::exited`].
    pub async fn drain(&self, sink: impl FnMut(&[u8]), limit: Duration) -> Drained {
        drain(&self.stdout, sink, limit).await
    }
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// A task that ends with its owner.
struct Reader(JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn read_stderr(
    stderr: Stdout,
    capture: Arc<StdMutex<Capture>>,
    pieces: mpsc::Sender<StderrChunk>,
) {
    let mut missed = 0;
    // No buffer is kept while the agent is silent, which is nearly always.
    while stderr.readable().await.is_ok() {
        let mut buffer = [0; 8192];
        let bytes = match stderr.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => &buffer[..n],
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        capture.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        match pieces.try_reserve() {
            Ok(permit) => {
                permit.send(StderrChunk { missed, bytes: bytes.to_vec() });
                missed = 0;
            }
            Err(_) => missed += bytes.len() as u64,
        }
    }
}

async fn read(stdout: &Stdout, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stdout.readable().await?;
        match stdout.try_read(buffer) {
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}

//! A command that somebody asked for: its output by stream as it comes, and a terminal if it needs
//! one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use crate::hosted::{self, Farewell, Hosted};
use crate::spec::Tty;
use crate::streams::{self, Outputs, TerminalSize};
use crate::sys::Watched;
use crate::{Error, Exit, Spec, sys};

/// What a job has for its standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// An empty input, a pipe each for stdout and stderr.
    NoInput,
    /// Three pipes.
    Pipes,
    /// A terminal of its own for all three, never ours.
    Terminal(TerminalSize),
}

/// Which stream some output came from. A terminal has but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, or what the terminal shows.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A running command. Dropping it kills the command and everything it started.
///
/// Unlike a [`Child`](crate::Child), nothing of its output is read before somebody asks for it: who
/// reads slowly holds it back.
pub struct Job {
    /// The command's process id. It leads its own session and group.
    pub pid: u32,
    hosted: Hosted,
    input: Option<Pipe>,
    output: Source,
    error: Option<Source>,
    /// Whether stderr is looked at first: a flood on one stream must not hide the other.
    error_first: AtomicBool,
}

/// What was found when a job was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobClosed {
    /// How the command ended; `None` if the host had to be killed before it could tell.
    pub exit: Option<Exit>,
    /// How many descendants other than the command itself had to be killed.
    pub killed: u32,
    /// How many could not be killed.
    pub left: u32,
}

/// Starts a command and returns once it has been executed.
///
/// Dropping the future ends whatever was started so far.
pub async fn start_job(spec: Spec, streams: Streams) -> Result<Job, Error> {
    match streams {
        Streams::NoInput => {
            let (hosted, outputs) = hosted::start(&spec, Tty::None, streams::no_input).await?;
            Job::piped(hosted, None, outputs)
        }
        Streams::Pipes => {
            let (hosted, (input, outputs)) =
                hosted::start(&spec, Tty::None, streams::pipes).await?;
            Job::piped(hosted, Some(input), outputs)
        }
        Streams::Terminal(size) => {
            let open = move || streams::terminal(size);
            let (hosted, ours) = hosted::start(&spec, Tty::Stdin, open).await?;
            Ok(Job::new(hosted, None, Source::terminal(ours)?, None))
        }
    }
}

impl Job {
    fn piped(hosted: Hosted, input: Option<OwnedFd>, outputs: Outputs) -> Result<Job, Error> {
        let input = input.map(pipe).transpose()?;
        let error = Some(Source::pipe(outputs.stderr)?);
        Ok(Job::new(hosted, input, Source::pipe(outputs.stdout)?, error))
    }

    fn new(hosted: Hosted, input: Option<Pipe>, output: Source, error: Option<Source>) -> Job {
        let error_first = AtomicBool::new(false);
        Job { pid: hosted.pid, hosted, input, output, error, error_first }
    }

    /// Reads what has come next on either stream; `None` once both have ended. Can be cancelled.
    ///
    /// Of what came on both since the last look nobody knows the order.
    pub async fn read(&self, buffer: &mut [u8]) -> Option<(Stream, usize)> {
        loop {
            let stream = self.ready().await?;
            let source = match (stream, &self.error) {
                (Stream::Stderr, Some(error)) => error,
                _ => &self.output,
            };
            if let Some(n) = source.try_read(buffer) {
                self.error_first.store(stream == Stream::Stdout, Ordering::Relaxed);
                return Some((stream, n));
            }
        }
    }

    /// Writes to the command's input and says how much was taken. Can be cancelled.
    ///
    /// # Errors
    /// When it has no input, or has closed it.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let input = match (&self.input, self.output.kind) {
            (Some(input), _) => input,
            (None, Kind::Terminal) => &self.output.fd,
            (None, Kind::Pipe) => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        loop {
            let mut ready = input.writable().await?;
            if let Ok(written) = ready.try_io(|fd| Ok(rustix::io::write(fd, bytes)?)) {
                return written;
            }
        }
    }

    /// Whether there is an input to write to.
    pub fn has_input(&self) -> bool {
        self.input.is_some() || self.output.kind == Kind::Terminal
    }

    /// Ends the command's input, if it is a pipe. On a terminal the character of Ctrl-D does that.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Changes the size of the terminal; the command is told by `SIGWINCH`.
    ///
    /// # Errors
    /// When it has no terminal.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        if self.output.kind != Kind::Terminal {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(rustix::termios::tcsetwinsize(self.output.fd.get_ref(), size.to_winsize())?)
    }

    /// Waits until the command itself has ended; its descendants may live on. Can be cancelled and
    /// repeated. If the host was lost the answer is `SIGKILL`.
    pub async fn exited(&self) -> Exit {
        self.hosted.exited().await
    }

    /// Waits until the command and all its descendants have ended. Can be cancelled and repeated.
    pub async fn gone(&self) {
        self.hosted.gone().await;
    }

    /// Sends a signal to the command, not to its descendants. Does nothing if it has ended.
    pub fn signal(&self, signal: i32) {
        self.hosted.signal(signal);
    }

    /// Begins to end the command and returns at once: `SIGTERM` to its group, after `grace` or shortly
    /// after its exit `SIGKILL` to every descendant.
    pub fn begin_stop(&self, grace: Duration) {
        self.hosted.begin_stop(grace);
    }

    /// Ends the command as [`Job::begin_stop`] does and waits until no descendant is left, at most two
    /// seconds longer than `grace`.
    pub async fn close(self, grace: Duration) -> JobClosed {
        let Farewell { exit, killed, left } = self.hosted.close(grace).await;
        JobClosed { exit, killed, left }
    }

    /// Which stream can be read next; `None` once both have ended.
    async fn ready(&self) -> Option<Stream> {
        let error_first = self.error_first.load(Ordering::Relaxed);
        let Some(error) = &self.error else {
            return self.output.ready().await.then_some(Stream::Stdout);
        };
        match (self.output.is_open(), error.is_open()) {
            (false, false) => None,
            (true, false) => self.output.ready().await.then_some(Stream::Stdout),
            (false, true) => error.ready().await.then_some(Stream::Stderr),
            (true, true) if error_first => Some(tokio::select! {
                biased;
                _ = error.ready() => Stream::Stderr,
                _ = self.output.ready() => Stream::Stdout,
            }),
            (true, true) => Some(tokio::select! {
                biased;
                _ = self.output.ready() => Stream::Stdout,
                _ = error.ready() => Stream::Stderr,
            }),
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("pid", &self.pid).finish_non_exhaustive()
    }
}

type Pipe = Watched;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Terminal,
}

/// Something that output comes from.
struct Source {
    fd: Pipe,
    kind: Kind,
    open: AtomicBool,
}

impl Source {
    fn pipe(fd: OwnedFd) -> Result<Source, Error> {
        Ok(Source { fd: pipe(fd)?, kind: Kind::Pipe, open: AtomicBool::new(true) })
    }

    fn terminal(fd: OwnedFd) -> Result<Source, Error> {
        Ok(Source { fd: pipe(fd)?, kind: Kind::Terminal, open: AtomicBool::new(true) })
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits for something to read and says whether it is worth trying.
    async fn ready(&self) -> bool {
        if !self.is_open() {
            return false;
        }
        if let Err(err) = self.fd.readable().await {
            tracing::warn!(%err, "the output of a command cannot be waited for");
            self.open.store(false, Ordering::Relaxed);
        }
        self.is_open()
    }

    /// What is there; `None` at the end or if there is nothing after all.
    fn try_read(&self, buffer: &mut [u8]) -> Option<usize> {
        let read = self
            .fd
            .try_io(tokio::io::Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut *buffer)?));
        match read {
            Ok(n) if n > 0 => return Some(n),
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => return None,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => return None,
            Ok(_) => {}
            // Linux says so when nobody has the other side of a terminal open any more.
            Err(err)
                if self.kind == Kind::Terminal
                    && err.raw_os_error() == Some(Errno::IO.raw_os_error()) => {}
            Err(err) => tracing::warn!(%err, "the output of a command cannot be read"),
        }
        self.open.store(false, Ordering::Relaxed);
        None
    }
}

fn pipe(fd: OwnedFd) -> Result<Pipe, Error> {
    rustix::io::ioctl_fionbio(&fd, true)
        .map_err(io::Error::from)
        .and_then(|()| sys::watch(fd))
        .map_err(|source| Error::Host { source })
}

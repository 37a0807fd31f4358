//! An agent's process and its session: the only place where their bytes move.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::Duration;

use tieline_agent::{Direction, Driver, ExitInfo, Ledger, Plan, PrivateFiles, Session};
use tieline_event::{
    Content, Exited, Failure, FailureCode, FrameNo, Kind, NoticeLevel, Spawned, Timestamp,
};
use tieline_proc::{Closed, Spec, StderrChunk};
use tieline_store::{FrameBuf, Scribe};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::chores::Chores;
use crate::inside::Inner;
use crate::limits::Limits;
use crate::port::{Next, Port, push};
use crate::shared::{DRAINED, Servers};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// How much of stderr goes into an event.
const STDERR_SHOWN: usize = 4096;

/// A running agent.
pub(crate) struct Live {
    pub(crate) session: Session,
    port: Port,
    stderr: Option<mpsc::Receiver<StderrChunk>>,
    frames: FrameBuf,
    buffer: Box<[u8]>,
    /// What is done for the agent.
    chores: Chores,
    /// Bytes for the agent that its pipe did not take yet.
    unwritten: Vec<u8>,
    close_input: bool,
    eof: bool,
    pub(crate) one_turn: bool,
    /// It has had a turn.
    pub(crate) has_had_turn: bool,
    /// The pictures of the message it was started for.
    pub(crate) pictures: Vec<Content>,
    /// What it reads, as long as it is there.
    files: Option<PrivateFiles>,
    /// What it knows is lost with it.
    pub(crate) forgets: bool,
    /// It was told to go and takes no new turn.
    pub(crate) ending: bool,
    /// We are ending the process, and why.
    pub(crate) stopping: Option<Failure>,
}

/// What a process did.
pub(crate) enum Happened {
    /// It wrote something, or took something.
    Moved,
    /// It ended.
    Exited,
    /// It closed its output and lives on, or cannot be read.
    Silenced,
}

/// A process that has started and was not spoken with.
pub(crate) struct Started {
    port: Port,
    driver: Box<dyn Driver>,
    chores: Chores,
    program: String,
    args: Vec<String>,
    preamble: bool,
    one_turn: bool,
    forgets: bool,
    pictures: Vec<Content>,
    files: Option<PrivateFiles>,
}

impl Started {
    /// The pictures of the message it is started for.
    pub(crate) fn with_pictures(self, pictures: Vec<Content>) -> Self {
        Self { pictures, ..self }
    }

    /// Starts the agent. Dropping the future ends what there is of it.
    pub(crate) async fn start(
        plan: Plan,
        workspace: &std::path::Path,
        limits: &Limits,
        servers: &Servers,
        scribe: Scribe,
    ) -> Result<Self, Failure> {
        let program = plan.program.display().to_string();
        let args = plan.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let chores = Chores::new(plan.env.clone());
        let spec = Spec {
            program: plan.program,
            args: plan.args,
            cwd: workspace.to_owned(),
            env: plan.env,
        };
        let started = match (plan.inside, &plan.share) {
            (Some(inside), _) => Ok(Port::Inside(Inner::start(inside, scribe))),
            (None, None) => tieline_proc::spawn(spec).await.map(Port::Own),
            (None, Some(share)) => servers.seat(spec, share, limits).await.map(Port::Shared),
        };
        Ok(Self {
            port: started.map_err(|error| cannot_start(&program, &error))?,
            driver: plan.driver,
            chores,
            program,
            args,
            preamble: plan.preamble,
            one_turn: plan.one_turn,
            forgets: plan.forgets,
            pictures: Vec::new(),
            files: plan.files,
        })
    }
}

impl Live {
    /// An agent that goes on with the books.
    pub(crate) fn new(
        started: Started,
        ledger: Ledger,
        workspace: &std::path::Path,
        limits: &Limits,
        next_frame: FrameNo,
    ) -> Self {
        let Started {
            mut port,
            driver,
            chores,
            program,
            args,
            preamble,
            one_turn,
            forgets,
            pictures,
            files,
        } = started;
        let stderr = port.take_stderr();
        let preamble = preamble.then(|| format!("Workspace: {}", workspace.display()));
        let mut session =
            Session::new(driver, ledger, limits.line, next_frame).with_preamble(preamble);
        let spawned = Spawned { pid: port.pid(), program, args };
        session.ledger_mut().emit(Kind::ProcessSpawned(spawned));
        session.started();
        Self {
            session,
            port,
            stderr,
            frames: FrameBuf::new(next_frame),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            chores,
            unwritten: Vec::new(),
            close_input: false,
            eof: false,
            one_turn,
            has_had_turn: false,
            pictures,
            files,
            forgets,
            ending: false,
            stopping: None,
        }
    }

    /// Waits until the process does something. Can be cancelled.
    pub(crate) async fn happened(&mut self, may_read: bool) -> Happened {
        let Self { session, port, stderr, frames, buffer, chores, unwritten, eof, .. } = self;
        let next = port.next(buffer, may_read && !*eof, !unwritten.is_empty());
        let piece = async {
            match stderr {
                Some(stderr) if may_read => stderr.recv().await,
                _ => std::future::pending().await,
            }
        };
        let done = async {
            match may_read {
                true => chores.next().await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            next = next => match next {
                Next::Exited => Happened::Exited,
                Next::Read(Ok(0) | Err(_)) => {
                    *eof = true;
                    Happened::Silenced
                }
                Next::Read(Ok(n)) => {
                    let now = Timestamp::now();
                    frames.reserve(n);
                    let chunk = buffer.get(..n).unwrap_or_default();
                    session.read(chunk, |direction, bytes| keep(frames, direction, now, bytes));
                    Happened::Moved
                }
                Next::Writable => {
                    self.write();
                    Happened::Moved
                }
            },
            piece = piece => {
                match piece {
                    Some(piece) => keep_stderr(session, frames, &piece),
                    None => self.stderr = None,
                }
                Happened::Moved
            }
            (chore, news) = done => {
                session.chore_news(chore, news);
                Happened::Moved
            }
        }
    }

    /// Writes what the session has for the agent, as far as the pipe takes it.
    pub(crate) fn write(&mut self) {
        let now = Timestamp::now();
        let Self { session, frames, chores, .. } = self;
        for (id, chore) in session.ledger_mut().take_chores() {
            chores.start(id, chore);
        }
        let (bytes, close) =
            session.take_writes(|direction, bytes| keep(frames, direction, now, bytes));
        self.unwritten.extend(bytes);
        self.close_input |= close;
        let Self { port, unwritten, .. } = self;
        let is_written = push(unwritten, port.pid(), |bytes| port.try_write(bytes));
        if is_written && self.close_input {
            self.port.close_input();
        }
    }

    /// Takes the frames so far.
    pub(crate) fn take_frames(&mut self) -> FrameBuf {
        let next = self.frames.next();
        std::mem::replace(&mut self.frames, FrameBuf::new(next))
    }

    /// Asks the process to go, by signals.
    pub(crate) fn begin_stop(&mut self, why: Option<Failure>, grace: Duration) {
        self.ending = true;
        self.stopping = self.stopping.take().or(why);
        self.port.begin_stop(grace);
    }

    /// Sends `SIGINT`.
    pub(crate) fn signal_interrupt(&self) {
        const SIGINT: i32 = 2;
        self.port.signal(SIGINT);
    }

    /// Tells the agent to go and closes its input.
    pub(crate) fn say_goodbye(&mut self) {
        self.session.leaving();
        self.write();
        self.port.close_input();
    }

    /// Begins to end the process and everything it started, and to read its output to the end.
    pub(crate) fn end(self, why: Option<&'static str>, limits: &Limits) -> Ending {
        let Self { session, mut port, frames, stderr, stopping: stopped, chores, files, .. } = self;
        let pid = port.pid();
        let limits = limits.clone();
        let gone = async move {
            chores.close().await;
            let patience = limits.stop_grace + Duration::from_secs(1);
            let exited = timeout(Duration::ZERO, port.exited()).await.is_ok();
            if !exited {
                port.begin_stop(limits.stop_grace);
                if timeout(patience, port.exited()).await.is_err() {
                    port.begin_kill();
                }
            }
            let mut output = Vec::new();
            let sink = |bytes: &[u8]| {
                // More than a pipe holds comes from descendants that write on without end.
                let room = DRAINED - output.len();
                output.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
            };
            let patience = patience + limits.exit_grace + limits.drain;
            let (drained, closed) = port.close(sink, limits.drain, patience).await;
            let cut = drained.cut || output.len() == DRAINED;
            drop(files);
            Remains { output, cut, closed }
        };
        Ending { session, frames, stderr, stopped, why, pid, gone: Box::pin(gone) }
    }
}

/// An agent whose process is being ended.
pub(crate) struct Ending {
    pub(crate) session: Session,
    frames: FrameBuf,
    stderr: Option<mpsc::Receiver<StderrChunk>>,
    /// We were ending the process already, and why.
    stopped: Option<Failure>,
    pub(crate) why: Option<&'static str>,
    pid: u32,
    gone: Pin<Box<dyn Future<Output = Remains> + Send>>,
}

/// What is left of a process.
pub(crate) struct Remains {
    output: Vec<u8>,
    cut: bool,
    closed: Closed,
}

impl Ending {
    /// Waits until nothing of the process is left. Can be cancelled.
    pub(crate) async fn gone(&mut self) -> Remains {
        (&mut self.gone).await
    }

    /// Closes the session's books.
    pub(crate) fn ended(self, remains: Remains) -> Ended {
        let Self { mut session, mut frames, mut stderr, stopped, why, pid, .. } = self;
        let Remains { output, cut, closed } = remains;
        let now = Timestamp::now();
        session.read(&output, |way, bytes| keep(&mut frames, way, now, bytes));
        while let Some(piece) = stderr.as_mut().and_then(|stderr| stderr.try_recv().ok()) {
            keep_stderr(&mut session, &mut frames, &piece);
        }
        let stderr = tail_of(&closed.stderr.to_text());
        let exit = closed.exit.unwrap_or(tieline_proc::Exit { code: None, signal: Some(9) });
        // Only a shared process can go on without us.
        let lives_on = exit.code.is_none() && exit.signal.is_none();
        let exited = Exited {
            pid,
            code: exit.code,
            signal: exit.signal,
            stopped: why
                .map(str::to_owned)
                .or_else(|| stopped.as_ref().map(|why| why.message.clone()))
                .or_else(|| lives_on.then(|| "the shared process goes on".to_owned())),
            cut,
            killed: closed.killed,
            left: closed.left,
            stderr: (!stderr.is_empty()).then(|| stderr.clone()),
        };
        session.ledger_mut().emit(Kind::ProcessExited(exited));
        let info = ExitInfo { code: exit.code, signal: exit.signal, stderr, stopped };
        let now = Timestamp::now();
        session.exited(&info, |direction, bytes| keep(&mut frames, direction, now, bytes));
        Ended { session, frames }
    }
}

/// What an agent leaves behind.
pub(crate) struct Ended {
    pub(crate) session: Session,
    pub(crate) frames: FrameBuf,
}

fn keep_stderr(session: &mut Session, frames: &mut FrameBuf, piece: &StderrChunk) {
    let now = Timestamp::now();
    if piece.missed > 0 {
        let text = format!("{} bytes of stderr came too fast to be kept", piece.missed);
        session.ledger_mut().notice(NoticeLevel::Warning, "stderr_missed", text);
    }
    session.keep_stderr(&piece.bytes, |direction, bytes| keep(frames, direction, now, bytes));
}

fn keep(frames: &mut FrameBuf, direction: Direction, now: Timestamp, bytes: Cow<'_, [u8]>) {
    let direction = match direction {
        Direction::In => tieline_store::Direction::In,
        Direction::Out => tieline_store::Direction::Out,
        Direction::Err => tieline_store::Direction::Stderr,
    };
    frames.append(direction, now, bytes);
}

fn tail_of(text: &str) -> String {
    let text = text.trim();
    let start = text.len().saturating_sub(STDERR_SHOWN);
    text.get(text.ceil_char_boundary(start)..).unwrap_or_default().to_owned()
}

fn cannot_start(program: &str, error: &tieline_proc::Error) -> Failure {
    // What the system said stands behind the error; that it could not be started is said here.
    let why = match error {
        tieline_proc::Error::Spawn { source, .. } => source.to_string(),
        error => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    };
    Failure::new(FailureCode::AgentCannotStart, format!("cannot start {program}: {why}"))
        .hint("run `tieline doctor` to see which agents work here")
}

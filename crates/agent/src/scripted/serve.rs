//! The program: moves bytes between the host and a player, and does its work in the workspace.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tieline_event::Mode;
use tieline_proc::{Env, RunLimits, Spec};
use tieline_wire::ndjson::{self, Framer, Line};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

use super::ids::Ids;
use super::player::{Next, Player, Setup};
use super::tool::{Outcome, Ran, Work};
use super::voice::Voice;
use super::workspace::Workspace;
use super::{FAST, script};
use crate::driver::ServeError;

/// The time between two words.
const PACE: Duration = Duration::from_millis(15);

/// How long a command of a script may run, and how much of its output is kept.
const LIMITS: RunLimits = RunLimits { timeout: Duration::from_secs(120), max_output: 1024 * 1024 };

/// Runs the agent until its host has nothing more to say. `args` are those after the first one,
/// which chose this agent.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args = match Args::read(args) {
        Ok(args) => args,
        Err(reason) => return complain(&reason, 2),
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ServeError::Io(err)) if err.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(ServeError::Io(err)) => complain(&err, 1),
        Err(err) => complain(&err, 2),
    }
}

fn complain(reason: &dyn std::fmt::Display, code: u8) -> ExitCode {
    // Nobody is left to be told when this fails.
    writeln!(io::stderr(), "demo agent: {reason}").ok();
    ExitCode::from(code)
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Args {
    pub(super) mode: Mode,
    pub(super) model: Option<String>,
    pub(super) effort: Option<u32>,
    pub(super) resume: Option<String>,
    pub(super) script: Option<PathBuf>,
}

impl Args {
    pub(super) fn read(mut args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut read = Self::default();
        while let Some(name) = args.next() {
            let name = name.to_string_lossy().into_owned();
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            let text = || value.to_string_lossy().into_owned();
            match name.as_str() {
                "--permission-mode" => {
                    read.mode = text().parse().map_err(|err| format!("{name}: {err}"))?;
                }
                "--model" => read.model = Some(super::model_name(&text())?.to_owned()),
                "--effort" => read.effort = Some(super::effort(&text())?),
                "--resume" => read.resume = Some(text()),
                "--script" => read.script = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown argument {name}")),
            }
        }
        Ok(read)
    }
}

fn run(args: Args) -> Result<(), ServeError> {
    let text = args.script.as_deref().map(std::fs::read_to_string).transpose()?;
    let script = script::parse(text.as_deref().unwrap_or(script::DEFAULT))?;
    let workspace = Workspace::new(&std::env::current_dir()?)?;
    let setup = Setup {
        cwd: workspace.root().display().to_string(),
        mode: args.mode,
        pace: if std::env::var_os(FAST).is_some() { Duration::ZERO } else { PACE },
        effort: args.effort.unwrap_or(1),
        resumed: args.resume.is_some(),
    };
    let model = args.model.unwrap_or_else(|| super::DEFAULT_MODEL.to_owned());
    let player = Player::new(script, setup, Voice::new(args.resume, model, Ids::random()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let program = Program {
            player,
            workspace,
            stdin: stdin()?,
            framer: Framer::default(),
            buffer: vec![0; 16 * 1024],
            began: Instant::now(),
            input_over: false,
        };
        program.serve().await
    })
}

/// Our input. A host gives a pipe, and a pipe can be read without a thread of its own.
fn stdin() -> io::Result<Receiver> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    Receiver::from_owned_fd(stdin)
        .map_err(|err| io::Error::new(err.kind(), format!("stdin has to be a pipe: {err}")))
}

struct Program {
    player: Player,
    workspace: Workspace,
    stdin: Receiver,
    framer: Framer,
    buffer: Vec<u8>,
    began: Instant,
    input_over: bool,
}

impl Program {
    async fn serve(mut self) -> Result<(), ServeError> {
        loop {
            let next = self.player.advance(self.began.elapsed());
            self.flush()?;
            match next {
                Next::End => return Ok(()),
                Next::Input => self.read().await?,
                Next::Write => {
                    self.unless_stopped(tokio::task::yield_now()).await?;
                }
                Next::Pause(time) => {
                    self.unless_stopped(tokio::time::sleep(time)).await?;
                }
                Next::Work(Work::Write { path, content }) => {
                    let changed = self.workspace.write(&path, &content);
                    self.player.worked(Outcome::Changed(changed));
                }
                Next::Work(Work::Edit(edit)) => {
                    let changed = self.workspace.edit(&edit);
                    self.player.worked(Outcome::Changed(changed));
                }
                Next::Work(Work::Run { command }) => {
                    let running = run_command(command, self.workspace.root().to_owned());
                    // A command whose turn is stopped is dropped, which kills it.
                    if let Some(outcome) = self.unless_stopped(running).await? {
                        self.player.worked(outcome);
                    }
                }
            }
        }
    }

    /// Waits, and meanwhile listens to the host, who may stop the turn.
    async fn unless_stopped<T>(
        &mut self,
        waiting: impl Future<Output = T>,
    ) -> Result<Option<T>, ServeError> {
        tokio::pin!(waiting);
        while self.player.is_busy() {
            tokio::select! {
                done = &mut waiting => return Ok(Some(done)),
                read = self.stdin.read(&mut self.buffer), if !self.input_over => {
                    self.take(read?)?;
                    self.flush()?;
                }
            }
        }
        Ok(None)
    }

    async fn read(&mut self) -> Result<(), ServeError> {
        let read = self.stdin.read(&mut self.buffer).await?;
        self.take(read)
    }

    fn take(&mut self, n_read: usize) -> Result<(), ServeError> {
        let Self { framer, player, buffer, .. } = self;
        let mut bad = None;
        let mut line = |line: Line<'_>| {
            let said = match line {
                Line::Whole(line) | Line::Unfinished(line) => match ndjson::content(&line) {
                    [] => Ok(()),
                    content => player.line(content).map_err(|err| err.to_string()),
                },
                Line::Oversized { bytes, .. } => Err(format!("a line of {bytes} bytes")),
            };
            bad = bad.take().or(said.err());
        };
        match buffer.get(..n_read) {
            None | Some([]) => {
                framer.finish(&mut line);
                player.input_over();
                self.input_over = true;
            }
            Some(bytes) => framer.feed(bytes, &mut line),
        }
        match bad {
            Some(reason) => {
                let reason = format!("Error parsing streaming input line: {reason}");
                Err(io::Error::new(io::ErrorKind::InvalidData, reason).into())
            }
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), ServeError> {
        let bytes = self.player.take_writes();
        if !bytes.is_empty() {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&bytes)?;
            stdout.flush()?;
        }
        Ok(())
    }
}

async fn run_command(command: String, cwd: PathBuf) -> Outcome {
    // The real agent's shell writes both streams to one file, so that they keep their order.
    let mut spec = Spec::new("/bin/sh", cwd);
    spec.args = ["-c", "exec 2>&1; eval \"$1\"", "sh", &command].map(OsString::from).into();
    spec.env = Env::inherited(&[], &[]);
    match tieline_proc::run(spec, b"", LIMITS).await {
        Ok(output) => {
            let signal = output.exit.and_then(|exit| exit.signal);
            let code = output.exit.and_then(|exit| exit.code);
            Outcome::Ran(Ran {
                output: output.stdout.to_text(),
                code: code.unwrap_or_else(|| 128 + signal.unwrap_or(9)),
                timed_out: output.timed_out.then_some(LIMITS.timeout),
            })
        }
        Err(err) => Outcome::NotStarted(format!("The command could not be started: {err}")),
    }
}

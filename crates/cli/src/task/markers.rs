//! `tieline task watch` and `tieline task parse`: other programs that speak in markers.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

use tieline_front::task::foreign::{Foreign, Reading};
use tieline_proc::{Env, Spec};
use tokio::time::Instant;

use super::format;
use crate::args::{TaskParseArgs, TaskWatchArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::runtime;

/// How long the error output of a program is waited for when its output is over.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// When nothing was said for so long, what was said is taken for whole.
const QUIET: Duration = Duration::from_millis(500);

/// How long a program has to end when it is asked to.
const GRACE: Duration = Duration::from_millis(500);

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

pub(super) fn parse(args: &TaskParseArgs) -> Result<Exit, Error> {
    let file = args.file.as_deref().filter(|path| path.as_os_str() != "-");
    let mut input: Box<dyn Read> = match file {
        None => Box::new(io::stdin().lock()),
        Some(path) => Box::new(
            File::open(path)
                .map_err(|err| Error::usage(format!("cannot read {}: {err}", path.display())))?,
        ),
    };
    let mut foreign = Foreign::new(format(Some(args.format)), reading(args.strict));
    let mut chunk = vec![0; CHUNK];
    loop {
        let n = match input.read(&mut chunk) {
            Ok(n) => n,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
            Err(err) => {
                return Err(Error::new(Exit::Failed, format!("cannot read the log: {err}")));
            }
        };
        let Some(bytes) = chunk.get(..n).filter(|bytes| !bytes.is_empty()) else { break };
        foreign.feed(bytes);
        put(&foreign.take())?;
    }
    foreign.finish();
    put(&foreign.take())?;
    Ok(Exit::Completed)
}

/// Runs the program to its end. Its exit code becomes ours.
pub(super) fn watch(args: &TaskWatchArgs) -> Result<Exit, Error> {
    let Some((program, words)) = args.command.split_first() else {
        return Err(Error::usage("a program is needed: tieline task watch -- CMD"));
    };
    let here = std::env::current_dir()
        .map_err(|err| Error::new(Exit::Failed, format!("cannot find this directory: {err}")))?;
    let env = Env::everything();
    let path = match program.contains('/') {
        true => tieline_proc::resolve_explicit(&here.join(program).to_string_lossy()),
        false => tieline_proc::resolve(program, &here, env.get("PATH")),
    };
    let path = path.map_err(|err| Error::usage(err.to_string()))?;
    let mut spec = Spec::new(path, here);
    spec.args = words.iter().map(Into::into).collect();
    spec.env = env;
    let mut foreign = Foreign::new(format(Some(args.format)), reading(args.strict));
    let exit = runtime()?.block_on(async {
        let failed = |err: tieline_proc::Error| {
            Error::new(Exit::CannotStart, format!("cannot start {program}: {err}"))
        };
        let mut child = tieline_proc::spawn(spec).await.map_err(failed)?;
        drop(child.stdin.take());
        let mut stderr = child.take_stderr();
        let mut chunk = vec![0; CHUNK];
        // A program may close its output and go on, or end and leave it open to what it started.
        let mut is_open = true;
        // A question may go on in the next line, or be over and wait for somebody.
        let mut quiet_at = None;
        loop {
            tokio::select! {
                biased;
                read = child.read_stdout(&mut chunk), if is_open => {
                    let n = read.map_err(|err| Error::new(Exit::Failed, err.to_string()))?;
                    is_open = n > 0;
                    foreign.feed(chunk.get(..n).unwrap_or_default());
                    put(&foreign.take())?;
                    quiet_at = Some(Instant::now() + QUIET);
                }
                _ = child.exited() => break,
                () = until(quiet_at) => {
                    quiet_at = None;
                    foreign.pause();
                    put(&foreign.take())?;
                }
                Some(piece) = next(&mut stderr) => {
                    // Nobody is left to be told when this fails.
                    io::stderr().write_all(&piece.bytes).ok();
                }
                _ = tokio::signal::ctrl_c() => {
                    child.begin_stop(GRACE);
                }
            }
        }
        child.drain(|bytes| foreign.feed(bytes), tieline_proc::DRAIN).await;
        // It may have more to say there, and somebody it started may never close it.
        while let Ok(Some(piece)) = tokio::time::timeout(LAST_WORDS, next(&mut stderr)).await {
            io::stderr().write_all(&piece.bytes).ok();
        }
        Ok::<_, Error>(child.close(GRACE).await.exit)
    })?;
    foreign.finish();
    put(&foreign.take())?;
    match exit {
        Some(exit) if exit.is_success() => Ok(Exit::Completed),
        Some(exit) => {
            std::process::exit(exit.code.unwrap_or_else(|| 128 + exit.signal.unwrap_or(0)))
        }
        None => Ok(Exit::Failed),
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn next(
    pieces: &mut Option<tokio::sync::mpsc::Receiver<tieline_proc::StderrChunk>>,
) -> Option<tieline_proc::StderrChunk> {
    match pieces {
        Some(pieces) => pieces.recv().await,
        None => std::future::pending().await,
    }
}

fn reading(strict: bool) -> Reading {
    if strict { Reading::Spec } else { Reading::Lenient }
}

fn put(text: &str) -> Result<(), Error> {
    crate::print::print(text)
}

//! A server as a child process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tieline_proc::{Child, Env, Spec, StderrChunk, Stdin};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

use super::words::told;

/// How many of a dead server's last words are passed on.
const LAST_WORDS: usize = 400;

/// A server's output, as long as somebody holds the server.
pub(super) struct Output(Arc<Child>);

impl AsyncRead for Output {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stdout = &self.0.stdout;
        loop {
            ready!(stdout.poll_read_ready(context))?;
            match stdout.try_read(buffer.initialize_unfilled()) {
                Ok(n) => {
                    buffer.advance(n);
                    return Poll::Ready(Ok(()));
                }
                // The readiness was stale and is forgotten now: ask again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// Starts a server. It knows what commands know, and its own variables.
pub(super) async fn start(
    command: &str,
    args: &[String],
    own: &BTreeMap<String, String>,
    env: &Env,
    cwd: &Path,
) -> Result<(Arc<Child>, mpsc::Receiver<StderrChunk>, Output, Stdin), String> {
    let mut env = env.clone();
    for (name, value) in own {
        env.set(name, value);
    }
    let program = match command.contains('/') {
        // Who names a file means it.
        true => tieline_proc::resolve_explicit(command),
        false => tieline_proc::resolve(command, cwd, env.get("PATH")),
    };
    let spec = Spec {
        program: program.map_err(|error| told(&error))?,
        args: args.iter().map(OsString::from).collect(),
        cwd: cwd.to_owned(),
        env,
    };
    let mut child = tieline_proc::spawn(spec).await.map_err(|error| told(&error))?;
    let (Some(stdin), Some(stderr)) = (child.stdin.take(), child.take_stderr()) else {
        return Err("it has no pipes".to_owned());
    };
    let child = Arc::new(child);
    Ok((Arc::clone(&child), stderr, Output(child), stdin))
}

/// What a server wrote to stderr last, for whoever wonders why it ended.
pub(super) fn last_words(child: &Child) -> Option<String> {
    let said = child.stderr_tail().to_text();
    let said = said.trim();
    let skip = said.chars().count().saturating_sub(LAST_WORDS);
    let said: String = said.chars().skip(skip).collect();
    (!said.is_empty()).then_some(said)
}

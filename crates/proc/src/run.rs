//! Short helper commands, `claude --version` for example.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until};

use crate::capture::Capture;
use crate::{Captured, DRAIN, Error, Exit, Spec, drain, spawn};

/// How long a command that ran out of time may clean up.
const GRACE: Duration = Duration::from_millis(500);

/// How much a helper command may take.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// How long it may run.
    pub timeout: Duration,
    /// How many bytes of its output are kept.
    pub max_output: usize,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits { timeout: Duration::from_secs(30), max_output: 1024 * 1024 }
    }
}

/// What a helper command did.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended; `None` only if its host had to be killed.
    pub exit: Option<Exit>,
    /// Its output, bounded.
    pub stdout: Captured,
    /// What was kept of its stderr.
    pub stderr: Captured,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// Whether a descendant still held the output open at the end, so that more could have come.
    pub cut: bool,
}

/// Runs a short command to its end, with `input` on its standard input. Whatever it leaves running
/// is killed.
pub async fn run(spec: Spec, input: &[u8], limits: RunLimits) -> Result<Output, Error> {
    let deadline = Instant::now() + limits.timeout;
    let mut child = spawn(spec).await?;
    let stdin = child.stdin.take();
    let feed = async {
        if let Some(mut stdin) = stdin
            && let Err(err) = stdin.write_all(input).await
        {
            // A command need not read all of its input.
            tracing::debug!(%err, "input not taken");
        }
    };
    let mut stdout = Capture::new(limits.max_output);
    let mut cut = false;
    let work = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                read = child.read_stdout(&mut buffer) => match read {
                    Ok(n) if n > 0 => stdout.push(&buffer[..n]),
                    _ => return child.exited().await,
                },
                exit = child.exited() => {
                    cut = drain(&child.stdout, |bytes| stdout.push(bytes), DRAIN).await.cut;
                    return exit;
                }
            }
        }
    };
    // Somebody may hold the other end of the input without ever reading it, so the end of feeding
    // is never waited for.
    let feed = async {
        feed.await;
        std::future::pending::<()>().await;
    };
    let exit = tokio::select! {
        exit = work => Some(exit),
        () = feed => None,
        () = sleep_until(deadline) => None,
    };
    let timed_out = exit.is_none();
    let closed = child.close(if timed_out { GRACE } else { Duration::ZERO }).await;
    let exit = exit.or(closed.exit);
    Ok(Output { exit, stdout: stdout.get(), stderr: closed.stderr, timed_out, cut })
}

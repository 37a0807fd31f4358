//! A client on the standard streams, and the threads that serve it.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use tieline_proc::{Watched, watch};
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::Error;
use crate::exit::Exit;

/// Does the work of a server to its end.
///
/// Two threads: while one reads what an agent writes, the other writes it to the client. The work is
/// on one of them from the start, so that what a line of the client sets off needs no other thread.
pub(crate) fn serve(
    work: impl Future<Output = Result<(), Error>> + Send + 'static,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|err| Error::new(Exit::Failed, format!("cannot start: {err}")))?;
    let served = runtime.block_on(runtime.spawn(work));
    // A thread that waits for the client is left behind; whatever else runs is dropped.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served.unwrap_or_else(|err| match err.try_into_panic() {
        Ok(panic) => panic::resume_unwind(panic),
        Err(err) => Err(Error::new(Exit::Failed, format!("stopped: {err}"))),
    })
}

/// What the client writes. Within a runtime only.
pub(crate) fn input() -> Box<dyn AsyncRead + Send + Unpin> {
    match io::stdin().as_fd().try_clone_to_owned().and_then(watch) {
        Ok(fd) => Box::new(Input { fd }),
        Err(err) => {
            // A file, say: nothing tells when it can be read.
            tracing::debug!(%err, "a thread reads the standard input");
            Box::new(tokio::io::stdin())
        }
    }
}

/// Where the client reads, past the buffer that the standard output has for lines: ours come in whole
/// pages.
pub(crate) fn output() -> Result<File, Error> {
    let output = io::stdout().as_fd().try_clone_to_owned();
    Ok(File::from(output.map_err(|err| Error::output(&err))?))
}

/// The standard input, read when there is something to read: without a thread that waits for it,
/// which costs each line a turn of the scheduler, and without changing it for others who have it.
struct Input {
    fd: Watched,
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.fd.poll_read_ready(context))?;
            let fd = self.fd.get_ref();
            // It may block, so we look before.
            let read = match has_something(fd)? {
                true => retry_on_intr(|| rustix::io::read(fd, buffer.initialize_unfilled())),
                // Everybody who wrote to this FIFO has hung up, and somebody else came.
                false if ready.ready().is_read_closed() => Ok(0),
                false => Err(Errno::AGAIN),
            };
            match read {
                Err(Errno::AGAIN) => ready.clear_ready(),
                read => {
                    buffer.advance(read?);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

/// Whether a read would not block.
fn has_something(fd: &OwnedFd) -> Result<bool, Errno> {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut fds, Some(&at_once)))? > 0)
}

#[cfg(test)]
mod tests;

//! Writing to the standard output without ever holding up the loop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;

/// A pipe that says it is writable takes this much at once (`PIPE_BUF`).
const ATOMIC: usize = 4096;

/// The standard output.
#[derive(Debug)]
pub(crate) struct Output {
    /// A write may wait for a reader.
    may_wait: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        let is_file = rustix::fs::fstat(io::stdout())
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Self { may_wait: !is_file }
    }

    /// Writes the buffer with one call where the other end takes it all, and leaves it empty.
    /// What would wait for a reader does so on a thread of its own.
    pub(crate) async fn write(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        if !self.may_wait || (buffer.len() <= ATOMIC && is_writable(io::stdout().as_fd())) {
            let result = write_all(io::stdout().as_fd(), buffer);
            buffer.clear();
            return result;
        }
        let taken = std::mem::take(buffer);
        let work = move || (write_all(io::stdout().as_fd(), &taken), taken);
        let (result, taken) = tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?;
        *buffer = taken;
        buffer.clear();
        result
    }
}

/// Writes to the standard error output. Nobody is left to be told when that fails.
pub(crate) fn complain(buffer: &mut Vec<u8>) {
    if let Err(err) = write_all(io::stderr().as_fd(), buffer) {
        tracing::debug!(%err, "the error output is gone");
    }
    buffer.clear();
}

/// What a person is told when the output cannot be written; of a reader who went away nothing.
pub(crate) fn failed(err: &io::Error, to: &mut Vec<u8>) {
    if err.kind() != io::ErrorKind::BrokenPipe {
        to.extend_from_slice(format!("tieline: cannot write the output: {err}\n").as_bytes());
    }
}

fn is_writable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|n_ready| n_ready > 0)
}

fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Somebody who shares the other end made it non-blocking.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None)?;
            }
            Err(err) => return Err(err.into()),
        }
    }
    Ok(())
}

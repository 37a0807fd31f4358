//! The side of the notify program.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, OFlags};
use rustix::process::{Pid, test_kill_process};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Error, MOST, PATIENCE, is_ours_alone, places};

/// How long the reader of a FIFO may be away or busy.
const FIFO_PATIENCE: Duration = Duration::from_secs(2);

/// How often a reader is looked for.
const PAUSE: Duration = Duration::from_millis(20);

/// What the agent said, on one line.
#[derive(Debug, Clone)]
pub struct Notice(Vec<u8>);

impl Notice {
    /// Checks what the agent said.
    ///
    /// # Errors
    /// When it is no JSON object or too long.
    pub fn new(json: &str) -> Result<Self, Error> {
        if json.len() >= MOST {
            return Err(Error::NotAnObject(format!("it is longer than {MOST} bytes")));
        }
        serde_json::from_str::<Map<String, Value>>(json)
            .map_err(|err| Error::NotAnObject(err.to_string()))?;
        // In JSON a newline can only stand between two words, where a space means the same.
        let mut line: Vec<u8> = json
            .trim()
            .bytes()
            .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte })
            .collect();
        line.push(b'\n');
        Ok(Self(line))
    }

    /// The line, with its end.
    #[cfg(test)]
    pub(super) fn as_line(&self) -> &[u8] {
        &self.0
    }

    /// Appends it to a file, which is made for its user alone.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append_to(&self, path: &Path) -> Result<(), Error> {
        let mut options = OpenOptions::new();
        // Whatever else is there, it may not hold us up.
        options.append(true).create(true).mode(0o600).custom_flags(nonblocking());
        let cannot = || Error::io("append to", path);
        let mut file = options.open(path).map_err(cannot())?;
        if !file.metadata().map_err(cannot())?.is_file() {
            let advice = "for a FIFO there is --fifo";
            return Err(Error::WrongKind { path: path.to_owned(), wanted: "file", advice });
        }
        // One write, so that lines of several writers stay apart.
        file.write_all(&self.0).map_err(cannot())
    }

    /// Writes it to a FIFO that somebody reads.
    ///
    /// # Errors
    /// When nobody reads it within two seconds.
    pub fn write_to_fifo(&self, path: &Path) -> Result<(), Error> {
        let deadline = Instant::now() + FIFO_PATIENCE;
        let metadata = path.metadata().map_err(Error::io("find", path))?;
        if !metadata.file_type().is_fifo() {
            let advice = "make one with mkfifo, or use --file";
            return Err(Error::WrongKind { path: path.to_owned(), wanted: "FIFO", advice });
        }
        let mut fifo = open_fifo(path, deadline)?;
        lock(&fifo, path, deadline)?;
        let mut rest = self.0.as_slice();
        while !rest.is_empty() {
            match fifo.write(rest) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {
                    await_room(&fifo, path, deadline)?;
                }
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) if err.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(Error::NoReader(path.to_owned()));
                }
                Err(err) => return Err(Error::io("write to", path)(err)),
            }
        }
        Ok(())
    }

    /// Gives it to whoever listens on these sockets.
    ///
    /// # Errors
    /// When nobody took it.
    pub async fn send(&self, sockets: &[PathBuf]) -> Result<(), Error> {
        let mut why = Vec::new();
        let mut is_taken = false;
        for socket in sockets {
            let sending = timeout(PATIENCE, self.send_to(socket)).await;
            let failed = match sending {
                Ok(Ok(())) => {
                    is_taken = true;
                    continue;
                }
                Ok(Err(failed)) => failed,
                Err(_) => format!("it did not answer within {} seconds", PATIENCE.as_secs()),
            };
            why.push(format!("{}: {failed}", socket.display()));
        }
        match (is_taken, why.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::NobodyThere("none is running for this store".to_owned())),
            (false, false) => Err(Error::NobodyThere(why.join("; "))),
        }
    }

    async fn send_to(&self, socket: &Path) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Answer {
            taken: bool,
            error: Option<String>,
        }
        let stream = UnixStream::connect(socket).await.map_err(|err| {
            if err.kind() == io::ErrorKind::ConnectionRefused {
                remove_if_dead(socket);
            }
            err.to_string()
        })?;
        let peer = stream.peer_cred().map_err(|err| err.to_string())?;
        if peer.uid() != rustix::process::geteuid().as_raw() {
            return Err(format!("it belongs to user {}", peer.uid()));
        }
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        // Who refuses a long one need not have read it to its end: what it says counts.
        let written = stream.write_all(&self.0).await;
        let read = (&mut stream).take(64 * 1024).read_until(b'\n', &mut line).await;
        match serde_json::from_slice(&line) {
            Ok(Answer { taken: true, .. }) => Ok(()),
            Ok(Answer { error, .. }) => Err(error.unwrap_or_else(|| "it was refused".to_owned())),
            Err(_) => match written.and(read) {
                Err(err) => Err(err.to_string()),
                Ok(_) => Err("it gave no answer".to_owned()),
            },
        }
    }
}

/// The sockets of every tieline that may be running on this data directory.
pub fn sockets(data: &Path) -> Vec<PathBuf> {
    let ours = places(data).into_iter().filter(|dir| is_ours_alone(dir).unwrap_or(false));
    let entries = ours.filter_map(|dir| dir.read_dir().ok()).flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let mut sockets: Vec<PathBuf> = paths.filter(|path| owner(path).is_some()).collect();
    sockets.sort_unstable();
    sockets
}

/// The process whose socket this is, by its name.
fn owner(socket: &Path) -> Option<Pid> {
    let is_socket = socket.extension().is_some_and(|it| it == "sock");
    let number = socket.file_stem().filter(|_| is_socket)?.to_str()?;
    number.parse().ok().and_then(Pid::from_raw)
}

/// Clears away what a dead process left. One that is about to listen is alive.
fn remove_if_dead(socket: &Path) {
    let is_dead = |pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
    if owner(socket).is_some_and(is_dead)
        && let Err(error) = std::fs::remove_file(socket)
    {
        tracing::debug!(socket = %socket.display(), %error, "a stale socket stays");
    }
}

fn nonblocking() -> i32 {
    // The bits fit: the system defines them as an `int`.
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

/// Opens a FIFO as soon as it has a reader; one that reads line by line may be between two opens.
fn open_fifo(path: &Path, deadline: Instant) -> Result<File, Error> {
    loop {
        match OpenOptions::new().write(true).custom_flags(nonblocking()).open(path) {
            Ok(fifo) => return Ok(fifo),
            Err(err) if err.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                if Instant::now() >= deadline {
                    return Err(Error::NoReader(path.to_owned()));
                }
                std::thread::sleep(PAUSE);
            }
            Err(err) => return Err(Error::io("open", path)(err)),
        }
    }
}

/// A long line is more than one write: the lock keeps the lines of several writers apart.
fn lock(fifo: &File, path: &Path, deadline: Instant) -> Result<(), Error> {
    loop {
        match rustix::fs::flock(fifo, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(PAUSE);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Error::NoReader(path.to_owned())),
            // Not every system can lock a FIFO; short lines stay whole anyway.
            Err(_) => return Ok(()),
        }
    }
}

/// Waits until the reader has made room.
fn await_room(fifo: &File, path: &Path, deadline: Instant) -> Result<(), Error> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Error::NoReader(path.to_owned()));
    }
    let time = Timespec::try_from(left).ok();
    match poll(&mut [PollFd::new(fifo, PollFlags::OUT)], time.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(err) => Err(Error::io("wait for", path)(err.into())),
    }
}

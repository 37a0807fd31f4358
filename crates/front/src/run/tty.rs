//! What a person types.
//!
//! Lines are edited by the terminal itself; single keys come without Enter. Ctrl-C stays a signal
//! in both.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize,
    tcsetattr,
};
use tokio::sync::mpsc;

use super::ask::Input;

/// A terminal to read from: the standard input, or the one that controls us.
#[derive(Debug, Clone)]
pub struct Tty {
    fd: Arc<OwnedFd>,
}

impl Tty {
    /// The terminal, if there is one.
    pub fn open() -> Option<Self> {
        let stdin = io::stdin();
        let fd = match stdin.is_terminal() {
            true => rustix::io::fcntl_dupfd_cloexec(stdin, 0).ok()?,
            false => File::options().read(true).write(true).open("/dev/tty").ok()?.into(),
        };
        Some(Self { fd: Arc::new(fd) })
    }

    /// How large the screen is, where that is known.
    pub(super) fn size(&self) -> Option<(usize, usize)> {
        let size = tcgetwinsize(&*self.fd).ok()?;
        let (width, height) = (usize::from(size.ws_col), usize::from(size.ws_row));
        (width > 0 && height > 0).then_some((width, height))
    }

    /// Reads until the listener is dropped.
    pub(super) fn listen(&self, input: Input) -> io::Result<Listener> {
        let saved = tcgetattr(&*self.fd)?;
        let mut wanted = saved.clone();
        match input {
            Input::Key => wanted.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO),
            Input::Secret => wanted.local_modes.remove(LocalModes::ECHO),
            Input::Line => {}
        }
        tcsetattr(&*self.fd, OptionalActions::Now, &wanted)?;
        let restore = Restore { fd: Arc::clone(&self.fd), saved };
        // What was typed before the question was there is no answer to it.
        tcflush(&*self.fd, QueueSelector::IFlush)?;
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // When it is full the thread waits; the terminal keeps the rest.
        let (tx, rx) = mpsc::channel(16);
        let fd = Arc::clone(&self.fd);
        let thread = std::thread::Builder::new()
            .name("keyboard".into())
            .spawn(move || read(&fd, &stopped, &tx))?;
        Ok(Listener { rx, pending: Vec::new(), stop: Some(stop), thread: Some(thread), restore })
    }
}

/// Puts the terminal back as it was.
#[derive(Debug)]
struct Restore {
    fd: Arc<OwnedFd>,
    saved: Termios,
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Err(err) = tcsetattr(&*self.fd, OptionalActions::Now, &self.saved) {
            tracing::debug!(%err, "the terminal could not be put back");
        }
    }
}

/// Somebody listens to the keyboard.
#[derive(Debug)]
pub(super) struct Listener {
    rx: mpsc::Receiver<Vec<u8>>,
    pending: Vec<u8>,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    #[allow(dead_code)] // kept for its drop
    restore: Restore,
}

impl Listener {
    /// The next key, or nothing at the end of input. Arrow keys and their like are passed over.
    pub(super) async fn key(&mut self) -> Option<char> {
        loop {
            let bytes = self.rx.recv().await?;
            if bytes.first() == Some(&0x04) {
                return None;
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Some(key) = text.chars().next().filter(|key| !key.is_control()) {
                return Some(key);
            }
        }
    }

    /// The next line without its newline, or nothing at the end of input. Can be cancelled.
    pub(super) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.truncate(end);
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            let bytes = self.rx.recv().await?;
            self.pending.extend_from_slice(&bytes);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.rx.close();
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread at the keyboard ended in a panic");
        }
    }
}

fn read(fd: &OwnedFd, stopped: &OwnedFd, tx: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        let stopped = stopped.as_fd();
        let mut fds = [PollFd::new(fd, PollFlags::IN), PollFd::new(&stopped, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let [keys, stop] = fds;
        if !stop.revents().is_empty() {
            return;
        }
        if keys.revents().is_empty() {
            continue;
        }
        match rustix::io::read(fd, &mut buffer) {
            Ok(0) => return,
            Ok(n) => {
                let bytes = buffer.get(..n).unwrap_or_default().to_vec();
                if tx.blocking_send(bytes).is_err() {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

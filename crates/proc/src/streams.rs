//! The standard streams of a new process: our ends and its ends, all of them closed on exec.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// How much of a process's output waits in its pipe; by default it is 64 KiB.
#[cfg(target_os = "linux")]
const STDOUT_PIPE: usize = 256 * 1024;

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// The height.
    pub rows: u16,
    /// The width.
    pub columns: u16,
}

impl TerminalSize {
    pub(crate) fn to_winsize(self) -> Winsize {
        Winsize { ws_row: self.rows, ws_col: self.columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

impl Default for TerminalSize {
    /// What terminals have had since there were any.
    fn default() -> TerminalSize {
        TerminalSize { rows: 24, columns: 80 }
    }
}

/// Our ends of the output of a process without a terminal.
pub(crate) struct Outputs {
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Pipes for all three.
pub(crate) fn pipes() -> io::Result<((OwnedFd, Outputs), [OwnedFd; 3])> {
    let (its_stdin, stdin) = io::pipe()?;
    let (outputs, [its_stdout, its_stderr]) = outputs()?;
    Ok(((stdin.into(), outputs), [its_stdin.into(), its_stdout, its_stderr]))
}

/// An empty input, and pipes for the output.
pub(crate) fn no_input() -> io::Result<(Outputs, [OwnedFd; 3])> {
    let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let (outputs, [its_stdout, its_stderr]) = outputs()?;
    Ok((outputs, [null, its_stdout, its_stderr]))
}

/// A new terminal. Neither end becomes anybody's controlling terminal by being opened here.
pub(crate) fn terminal(size: TerminalSize) -> io::Result<(OwnedFd, [OwnedFd; 3])> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let ours = rustix::pty::openpt(flags)?;
    #[cfg(not(target_os = "linux"))]
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let its = rustix::fs::open(name, flags, Mode::empty())?;
    rustix::termios::tcsetwinsize(&ours, size.to_winsize())?;
    let again = || rustix::io::fcntl_dupfd_cloexec(&its, 0);
    let streams = [again()?, again()?, again()?];
    Ok((ours, streams))
}

fn outputs() -> io::Result<(Outputs, [OwnedFd; 2])> {
    let (stdout, its_stdout) = io::pipe()?;
    #[cfg(target_os = "linux")]
    // A process in a hurry is held up less often; where a user may have no more, it stays as it is.
    rustix::pipe::fcntl_setpipe_size(&stdout, STDOUT_PIPE).ok();
    let (stderr, its_stderr) = io::pipe()?;
    let outputs = Outputs { stdout: stdout.into(), stderr: stderr.into() };
    Ok((outputs, [its_stdout.into(), its_stderr.into()]))
}

//! The helper on Linux: outside the fence, beside the caller.

mod clerk;
mod filter;
mod gate;
mod inside;
mod plan;
mod report;
mod rules;
mod sys;
mod view;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::entry::is_open;
use crate::policy::Policy;
use crate::refusal::{Feature, REFUSED, Refusal};
use inside::Task;
use plan::{Plan, Surroundings};
pub(crate) use report::report;

/// Features that a test wants to be missing.
#[derive(Clone, Copy)]
pub(crate) struct Lacking<'a>(&'a [Feature]);

impl Lacking<'_> {
    fn check(self, feature: Feature) -> Result<(), Refusal> {
        match self.0.contains(&feature) {
            true => Err(Refusal::missing(feature, "as asked for in a test")),
            false => Ok(()),
        }
    }
}

/// What is said between the processes of one sandbox.
enum Message {
    Refused(Refusal),
    /// The command ended like this.
    Ended(i32),
    /// The command is fenced; the descriptor of its questions, or -1.
    Listening(i32),
}

impl Message {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Refused(Refusal::Policy(text)) => [b"p", text.as_bytes()].concat(),
            Self::Refused(Refusal::Missing { feature, detail }) => {
                let number = Feature::ALL.iter().position(|it| it == feature).unwrap_or(0) as u8;
                [&[b'm', number], detail.as_bytes()].concat()
            }
            Self::Ended(status) => [b"e".as_slice(), &status.to_le_bytes()].concat(),
            Self::Listening(fd) => [b"l".as_slice(), &fd.to_le_bytes()].concat(),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (tag, rest) = bytes.split_first()?;
        let number = || Some(i32::from_le_bytes(rest.try_into().ok()?));
        Some(match tag {
            b'p' => Self::Refused(Refusal::Policy(text(rest))),
            b'm' => {
                let (number, detail) = rest.split_first()?;
                let feature = *Feature::ALL.get(usize::from(*number))?;
                Self::Refused(Refusal::missing(feature, text(detail)))
            }
            b'e' => Self::Ended(number()?),
            b'l' => Self::Listening(number()?),
            _ => return None,
        })
    }
}

/// How a sandbox ended.
enum End {
    Status(i32),
    /// PID 1 was killed, and with it everything.
    Killed,
}

/// Runs the command under the policy and ends as it ended. Returns only if it was not run.
pub(crate) fn run(policy: &Policy, command: &[OsString], missing: &[Feature]) -> Refusal {
    let begin = || -> io::Result<()> {
        sys::close_inherited()?;
        Ok(())
    };
    if let Err(err) = begin() {
        return Refusal::policy(format!("inherited descriptors stay open: {err}"));
    }
    if is_open(policy) {
        sys::restore_signals(&sys::block_signals());
        let err = sys::execute(command);
        let program = command.first().map(|it| it.display().to_string()).unwrap_or_default();
        io::stderr().write_all(format!("tieline-sandbox: {program}: {err}\n").as_bytes()).ok();
        std::process::exit(if err.kind() == io::ErrorKind::NotFound { 127 } else { 126 });
    }
    match enclose(policy, Some(command), Lacking(missing)) {
        Ok(End::Status(status)) if libc::WIFSIGNALED(status) => sys::die_by(libc::WTERMSIG(status)),
        Ok(End::Status(status)) => std::process::exit(libc::WEXITSTATUS(status)),
        Ok(End::Killed) => sys::die_by(libc::SIGKILL),
        Err(refusal) => refusal,
    }
}

/// A directory as a standard stream would be a hole in the view: what is opened below it is not seen
/// through our mounts.
fn check_streams() -> Result<(), Refusal> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    for stream in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        let kind = rustix::fs::fstat(stream).map(|it| it.st_mode & libc::S_IFMT);
        if matches!(kind, Ok(libc::S_IFDIR | libc::S_IFBLK)) {
            return Err(Refusal::policy(
                "a standard stream is a directory or a disk; give a file, a pipe or a terminal",
            ));
        }
    }
    Ok(())
}

/// Makes the sandbox, waits for its end, and leaves nothing of it.
fn enclose(
    policy: &Policy,
    command: Option<&[OsString]>,
    lacking: Lacking<'_>,
) -> Result<End, Refusal> {
    check_streams()?;
    let plan = Plan::new(policy, &Surroundings::here())?;
    let cwd = std::env::current_dir().map_err(|err| {
        Refusal::policy(format!("the current directory is gone ({err}); begin in another"))
    })?;
    if !policy.network {
        lacking.check(Feature::NetworkNamespace)?;
    }
    let lost = |err: io::Error| Refusal::missing(Feature::PidNamespace, err.to_string());
    let parent = rustix::process::getppid();
    let task = Task {
        plan: &plan,
        network: policy.network,
        command,
        cwd,
        lacking,
        signals: sys::block_signals(),
        ids: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        terminal: own_terminal(),
    };
    let (from_outside, mut to_inside) = io::pipe().map_err(lost)?;
    let (mut from_inside, to_outside) = io::pipe().map_err(lost)?;
    let mut namespaces = sys::NEW_USER | sys::NEW_MOUNT | sys::NEW_PID | sys::NEW_REST;
    if !policy.network {
        namespaces |= sys::NEW_NET;
    }
    // SAFETY: `init` is called before any thread exists.
    #[allow(unsafe_code)]
    let child = unsafe { sys::fork_into(namespaces) }.map_err(|err| {
        Refusal::missing(Feature::UserNamespace, format!("a namespace cannot be made: {err}"))
    })?;
    let Some(child) = child else {
        drop((to_inside, from_inside));
        let message = inside::run(&task, from_outside);
        let mut to_outside = to_outside;
        let told = to_outside.write_all(&message.encode());
        sys::exit_now(if told.is_ok() { 0 } else { REFUSED });
    };
    drop((from_outside, to_outside));
    let watched = watch(child, parent, &mut to_inside).map_err(lost);
    if watched.is_err() {
        sys::kill(child, libc::SIGKILL).ok();
        sys::reap(child, true).ok();
    }
    if let Some(terminal) = &task.terminal {
        rustix::termios::tcsetpgrp(terminal, rustix::process::getpgrp()).ok();
    }
    watched?;
    let mut text = Vec::new();
    from_inside.read_to_end(&mut text).map_err(lost)?;
    sys::restore_signals(&task.signals);
    match Message::decode(&text) {
        Some(Message::Ended(status)) => Ok(End::Status(status)),
        Some(Message::Refused(refusal)) => Err(refusal),
        Some(Message::Listening(_)) | None => Ok(End::Killed),
    }
}

/// The terminal among our streams in whose foreground we are.
fn own_terminal() -> Option<OwnedFd> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let own = rustix::process::getpgrp();
    [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]
        .into_iter()
        .find(|stream| rustix::termios::tcgetpgrp(stream).is_ok_and(|group| group == own))
        .and_then(|stream| stream.try_clone_to_owned().ok())
}

/// Hands signals on until PID 1 has ended; ends it when our parent ends. (A parent death signal
/// would come when the *thread* ends that started us.)
fn watch(child: i32, parent: Option<Pid>, to_inside: &mut io::PipeWriter) -> io::Result<()> {
    let signals = sys::signal_fd()?;
    let parent_end = match parent {
        Some(parent) if parent != Pid::INIT => pidfd_open(parent, PidfdFlags::empty()).ok(),
        _ => None,
    };
    if rustix::process::getppid() != parent {
        return Err(io::Error::other("the caller has ended"));
    }
    to_inside.write_all(&[1])?;
    loop {
        let mut fds = vec![PollFd::new(&signals, PollFlags::IN)];
        fds.extend(parent_end.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
        if fds.get(1).is_some_and(|it| !it.revents().is_empty()) {
            return Err(io::Error::other("the caller has ended"));
        }
        while let Some(arrived) = sys::next_signal(signals.as_fd()) {
            if arrived.number == libc::SIGCHLD {
                if sys::reap(child, false)?.is_some() {
                    return Ok(());
                }
            } else if arrived.is_sent {
                // It may have ended just now.
                sys::kill(child, arrived.number).ok();
            }
        }
    }
}

//! PID 1 of the sandbox, and the command beside it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};

use super::clerk::Clerk;
use super::gate::{self, Asked};
use super::plan::Plan;
use super::sys::{self, Signals};
use super::{Lacking, Message, filter, rules, view};
use crate::refusal::{Feature, Refusal};

/// What the process inside is to do.
pub(crate) struct Task<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) network: bool,
    /// Nothing to execute: only try whether it would go.
    pub(crate) command: Option<&'a [OsString]>,
    pub(crate) cwd: PathBuf,
    pub(crate) lacking: Lacking<'a>,
    /// What was blocked when the helper was started.
    pub(crate) signals: Signals,
    pub(crate) ids: (u32, u32),
    /// A descriptor of the terminal whose foreground was ours.
    pub(crate) terminal: Option<OwnedFd>,
}

/// Runs as PID 1 until the command has ended; the return value is what the helper is told.
pub(crate) fn run(task: &Task<'_>, mut outside: io::PipeReader) -> Message {
    // If the helper died before the death signal was set, its end of the pipe is closed.
    let mut alive = [0];
    if sys::die_with_parent().is_err() || outside.read_exact(&mut alive).is_err() {
        sys::exit_now(1);
    }
    match fence(task).and_then(|clerk| supervise(task, clerk)) {
        Ok(status) => Message::Ended(status),
        Err(refusal) => Message::Refused(refusal),
    }
}

fn or_missing<T>(
    feature: Feature,
    what: &str,
    result: Result<T, impl std::fmt::Display>,
) -> Result<T, Refusal> {
    result.map_err(|err| Refusal::missing(feature, format!("{what}: {err}")))
}

/// Everything that holds for PID 1 too.
fn fence(task: &Task<'_>) -> Result<Option<Clerk>, Refusal> {
    // A group of our own: a signal to the helper's group is handed on once, by the helper.
    or_missing(Feature::PidNamespace, "no group", rustix::process::setpgid(None, None))?;
    task.lacking.check(Feature::UserNamespace)?;
    let (uid, gid) = task.ids;
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{uid} {uid} 1")),
        ("gid_map", format!("{gid} {gid} 1")),
    ];
    for (file, text) in maps {
        let written = std::fs::write(format!("/proc/self/{file}"), text);
        or_missing(Feature::UserNamespace, file, written)?;
    }
    task.lacking.check(Feature::MountNamespace)?;
    task.lacking.check(Feature::PidNamespace)?;
    view::build(task.plan).map_err(|err| match err {
        view::Error::Mount(what, err) => {
            Refusal::missing(Feature::MountNamespace, format!("{what}: {err}"))
        }
        view::Error::Proc(err) => {
            Refusal::missing(Feature::PidNamespace, format!("no /proc of our own: {err}"))
        }
    })?;
    let clerk = match task.plan.roots.is_empty() {
        true => None,
        false => Some(Clerk::new(task.plan).map_err(|err| {
            Refusal::policy(format!("a guarded directory went away ({err}); try again"))
        })?),
    };
    let user = Feature::UserNamespace;
    or_missing(user, "capabilities stay", sys::empty_bounding_set())?;
    or_missing(user, "capabilities stay", sys::keep_capabilities(sys::LOOK_INTO_OTHERS))?;
    // Our directory is still the one in the old view.
    std::env::set_current_dir(&task.cwd).map_err(|err| {
        let cwd = task.cwd.display();
        Refusal::policy(format!("the directory {cwd} cannot be entered ({err}); begin in another"))
    })?;
    or_missing(Feature::Seccomp, "privileges could be gained", sys::gain_nothing())?;
    or_missing(user, "PID 1 stays open to others", sys::be_private())?;
    // The kernel forgets it when privileges change.
    or_missing(user, "no death signal", sys::die_with_parent())?;
    Ok(clerk)
}

/// Starts the command, makes files for it, buries orphans, and gives the command's end.
fn supervise(task: &Task<'_>, clerk: Option<Clerk>) -> Result<i32, Refusal> {
    let lost = |err: io::Error| Refusal::missing(Feature::PidNamespace, err.to_string());
    let signals = sys::signal_fd().map_err(lost)?;
    let (mut ready, tell) = io::pipe().map_err(lost)?;
    // SAFETY: PID 1 has one thread.
    #[allow(unsafe_code)]
    let child = unsafe { sys::fork_into(sys::SHARE_FILES) }.map_err(lost)?;
    let Some(child) = child else { become_command(task, clerk.is_some(), tell) };
    let mut inside = Inside { child, signals, clerk, listener: None };
    let ended;
    // Until the command is executed its descriptors are ours, so the pipe has no end to wait for.
    loop {
        let status = inside.wait(Some(ready.as_fd())).map_err(lost)?;
        // It may have said why it ended.
        if readable(ready.as_fd()) {
            ended = status;
            break;
        }
        if status.is_some() {
            return Err(Refusal::missing(Feature::PidNamespace, "the command got lost"));
        }
    }
    let mut length = [0; 4];
    ready.read_exact(&mut length).map_err(lost)?;
    let mut text = vec![0; u32::from_le_bytes(length) as usize];
    ready.read_exact(&mut text).map_err(lost)?;
    match Message::decode(&text) {
        Some(Message::Listening(fd)) if fd >= 0 => {
            // SAFETY: the command opened it in the table we shared and told us; nobody else here
            // knows of it.
            #[allow(unsafe_code)]
            let listener = unsafe { OwnedFd::from_raw_fd(fd) };
            inside.listener = Some(listener);
        }
        Some(Message::Listening(_)) => {}
        Some(Message::Refused(refusal)) => return Err(refusal),
        _ => return Err(Refusal::missing(Feature::PidNamespace, "the command got lost")),
    }
    drop(ready);
    if let Some(status) = ended {
        return Ok(status);
    }
    loop {
        if let Some(status) = inside.wait(None).map_err(lost)? {
            return Ok(status);
        }
    }
}

struct Inside {
    child: i32,
    signals: OwnedFd,
    clerk: Option<Clerk>,
    listener: Option<OwnedFd>,
}

fn readable(fd: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0)
}

impl Inside {
    /// Waits for something to do and does it; gives the command's status when it has ended.
    fn wait(&mut self, extra: Option<std::os::fd::BorrowedFd<'_>>) -> io::Result<Option<i32>> {
        let is_in = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::IN);
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(self.listener.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
        let n_own = fds.len();
        fds.extend(extra.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
        let has_question = n_own > 1 && fds.get(1).is_some_and(is_in);
        let is_over = n_own > 1
            && fds.get(1).is_some_and(|it| it.revents().contains(PollFlags::HUP) && !is_in(it));
        if has_question
            && let (Some(clerk), Some(listener)) = (&self.clerk, &self.listener)
            && let Some(question) = sys::next_question(listener.as_fd())?
        {
            let answer = clerk.answer(&question, listener.as_fd());
            sys::answer(listener.as_fd(), question.id, &answer);
        }
        if is_over {
            // Nobody is left who could ask.
            self.listener = None;
        }
        while let Some(arrived) = sys::next_signal(self.signals.as_fd()) {
            match arrived.number {
                libc::SIGCHLD => {
                    if let Some(status) = self.bury() {
                        return Ok(Some(status));
                    }
                }
                // From the helper. What is sent from inside is not for us to hand on.
                number if arrived.is_sent && arrived.sender == 0 => {
                    sys::kill(self.child, number).ok();
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn bury(&self) -> Option<i32> {
        while let Ok(Some((pid, status))) = sys::reap(-1, false) {
            if pid == self.child {
                return Some(status);
            }
        }
        None
    }
}

/// Takes on the rest of the fence and becomes the command.
fn become_command(task: &Task<'_>, has_clerk: bool, mut tell: io::PipeWriter) -> ! {
    let outcome = confine(task, has_clerk);
    let (message, failed) = match outcome {
        // It must stay open: the table is shared with PID 1, which now owns it.
        Ok(fd) => (Message::Listening(fd), false),
        Err(refusal) => (Message::Refused(refusal), true),
    };
    let text = message.encode();
    let length = (text.len() as u32).to_le_bytes();
    let told = tell.write_all(&length).and_then(|()| tell.write_all(&text));
    if failed || told.is_err() {
        sys::exit_now(1);
    }
    let Some(command) = task.command else { sys::exit_now(0) };
    sys::restore_signals(&task.signals);
    let err = sys::execute(command);
    let program = command.first().map(|it| it.display().to_string()).unwrap_or_default();
    let text = format!("tieline-sandbox: {program}: {err}\n");
    io::stderr().write_all(text.as_bytes()).ok();
    let is_missing = matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    sys::exit_now(if is_missing { 127 } else { 126 })
}

/// What holds for the command alone. Gives the listener for the clerk, or -1.
fn confine(task: &Task<'_>, has_clerk: bool) -> Result<i32, Refusal> {
    or_missing(Feature::PidNamespace, "no group", rustix::process::setpgid(None, None))?;
    if let Some(terminal) = &task.terminal {
        // It stays usable without, as for a background job.
        rustix::termios::tcsetpgrp(terminal, rustix::process::getpgrp()).ok();
    }
    task.lacking.check(Feature::Landlock)?;
    or_missing(Feature::Landlock, "the rules cannot be enforced", rules::enforce(task.plan))?;
    or_missing(Feature::UserNamespace, "capabilities stay", sys::keep_capabilities(0))?;
    task.lacking.check(Feature::Seccomp)?;
    let programs = filter::programs(task.network);
    for program in or_missing(Feature::Seccomp, "no filter", programs)? {
        or_missing(Feature::Seccomp, "no filter", seccompiler::apply_filter(&program))?;
    }
    if !has_clerk {
        let applied = seccompiler::apply_filter(&gate::program(Asked::Nothing));
        or_missing(Feature::Seccomp, "no filter", applied)?;
        return Ok(-1);
    }
    task.lacking.check(Feature::SeccompNotify)?;
    let asked = match task.plan.guards_removal {
        true => Asked::MakingAndRemoving,
        false => Asked::Making,
    };
    let listener = sys::install_listener(&gate::program(asked));
    let listener = or_missing(Feature::SeccompNotify, "no listener", listener)?;
    Ok(std::os::fd::IntoRawFd::into_raw_fd(listener))
}

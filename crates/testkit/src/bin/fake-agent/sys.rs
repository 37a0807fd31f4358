//! What only the C library can do: forks, signals, closed descriptors.
#![allow(unsafe_code)]

use crate::script::Descent;

/// How long a descendant lives if nobody ends it.
const LIFETIME_SECONDS: u32 = 300;

pub(crate) fn ignore(signal: i32) {
    // SAFETY: `SIG_IGN` installs no handler, so no code of ours runs in a signal.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Ends this process with status 1 when it is interrupted, as `codex exec` does.
pub(crate) fn exit_when_interrupted() {
    extern "C" fn exit(_: i32) {
        // SAFETY: `_exit` may be called in a signal handler and runs nothing of ours.
        unsafe { libc::_exit(1) };
    }
    // SAFETY: the handler does nothing but what is safe in one.
    unsafe { libc::signal(libc::SIGINT, exit as *const () as libc::sighandler_t) };
}

/// Sends `signal` to this process.
pub(crate) fn kill_self(signal: i32) {
    // SAFETY: all calls take and return plain numbers. The standard library's handler for a fault
    // would swallow the first one.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
}

pub(crate) fn close(descriptor: i32) {
    // SAFETY: the numbers given are 0 to 2 and the duplicate of stdout, whose owner
    // forgets it first; nothing uses them afterwards but to fail with EBADF.
    unsafe { libc::close(descriptor) };
}

/// What `CLOCK_MONOTONIC` shows; every process on this machine sees the same clock.
pub(crate) fn monotonic_nanos() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer, and this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Leaves a descendant that does nothing; without `hold` it gives its pipes up.
pub(crate) fn descend(how: Descent, hold: bool, descriptors: &[i32]) {
    // SAFETY: this process has threads, so the child may only call what is safe
    // after a fork in such a process; `live` keeps to that.
    let child = unsafe { libc::fork() };
    match child {
        0 => live(how, hold, descriptors),
        pid if matches!(how, Descent::DoubleFork) => reap(pid),
        _ => {}
    }
}

fn reap(pid: i32) {
    // SAFETY: a null status is allowed, and `pid` is our own child.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}

fn live(how: Descent, hold: bool, descriptors: &[i32]) -> ! {
    // SAFETY: every call here is async-signal-safe and none allocates. `_exit` keeps
    // the child from running the parent's destructors.
    unsafe {
        match how {
            Descent::Fork => {}
            Descent::DoubleFork => {
                if libc::fork() != 0 {
                    libc::_exit(0);
                }
            }
            Descent::Setsid => {
                libc::setsid();
            }
            Descent::Nohup => {
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
            }
        }
        if !hold {
            for descriptor in descriptors {
                libc::close(*descriptor);
            }
        }
        libc::sleep(LIFETIME_SECONDS);
        libc::_exit(0);
    }
}

//! The system calls that have no safe wrapper elsewhere, each behind one.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::io::unix::AsyncFd;

use crate::message::Step;
use crate::spec::{Image, Tty};

/// Where the host finds its control socket.
const CONTROL: RawFd = 3;

/// Starts the host: `streams` become its descriptors 0, 1 and 2, `control` becomes 3.
///
/// `posix_spawn` and not `fork`, because our own process is large and has many threads. The host
/// begins in its own session and with every signal blocked, so there is no instant in which a
/// `Ctrl-C` at our terminal could end it before it can clean up.
pub(crate) fn spawn_host(
    program: &CStr,
    argv: &[&CStr],
    env: &[&CStr],
    streams: [BorrowedFd<'_>; 3],
    control: BorrowedFd<'_>,
) -> io::Result<i32> {
    let argv = pointers(argv);
    let env = pointers(env);
    // SAFETY: both objects are initialised by their init functions before any other use and
    // destroyed exactly once; all pointers handed over outlive the calls; the descriptors are
    // borrowed and therefore open.
    unsafe {
        let mut actions = std::mem::zeroed();
        check(libc::posix_spawn_file_actions_init(&mut actions))?;
        let mut attr = std::mem::zeroed();
        let mut pid = 0;
        let result = check(libc::posix_spawnattr_init(&mut attr)).and_then(|()| {
            let mut add = |from: BorrowedFd<'_>, to| {
                check(libc::posix_spawn_file_actions_adddup2(&mut actions, from.as_raw_fd(), to))
            };
            for (from, to) in streams.into_iter().zip(0..) {
                add(from, to)?;
            }
            add(control, CONTROL)?;
            let mut all = std::mem::zeroed();
            libc::sigfillset(&mut all);
            let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
            #[cfg(target_os = "linux")]
            let flags = flags | c_int::from(libc::POSIX_SPAWN_SETSID);
            check(libc::posix_spawnattr_setsigmask(&mut attr, &all))?;
            check(libc::posix_spawnattr_setsigdefault(&mut attr, &all))?;
            check(libc::posix_spawnattr_setflags(&mut attr, flags as _))?;
            let started = check(libc::posix_spawn(
                &mut pid,
                program.as_ptr(),
                &actions,
                &attr,
                argv.as_ptr().cast::<*mut c_char>(),
                env.as_ptr().cast::<*mut c_char>(),
            ));
            libc::posix_spawnattr_destroy(&mut attr);
            started
        });
        libc::posix_spawn_file_actions_destroy(&mut actions);
        result.map(|()| pid)
    }
}

/// The host's control socket, or `None` if we were not started by [`spawn_host`].
pub(crate) fn adopt_control() -> Option<OwnedFd> {
    // SAFETY: `stat` is plain data; `fstat` writes into it and touches nothing else.
    let is_socket = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(CONTROL, &mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFSOCK
    };
    if !is_socket {
        return None;
    }
    // SAFETY: the descriptor is open (just seen) and nobody else in this process, which has run
    // nothing else yet, owns it.
    let control = unsafe { OwnedFd::from_raw_fd(CONTROL) };
    rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(control)
}

/// Blocks every signal and makes `SIGCHLD` interrupt [`wait`].
pub(crate) fn prepare_signals() {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: the handler does nothing and is therefore async-signal-safe; the structures are plain
    // data, zeroed and then filled.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());
    }
}

/// Sleeps until `fd` can be read, a child changes state or the time is over; says whether `fd` can
/// be read.
///
/// `SIGCHLD` is let through only inside `pselect`, so a child that ends between the last reaping and
/// this call still wakes us.
pub(crate) fn wait(fd: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> bool {
    let timeout = timeout.map(|timeout| {
        // SAFETY: `timespec` is plain data.
        let mut spec: libc::timespec = unsafe { std::mem::zeroed() };
        spec.tv_sec = timeout.as_secs().min(1 << 30) as libc::time_t;
        spec.tv_nsec = timeout.subsec_nanos() as _;
        spec
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `fd_set` and `sigset_t` are plain data; the host's only descriptor is far below
    // `FD_SETSIZE`; all pointers are valid for the call.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::sigfillset(&mut mask);
        libc::sigdelset(&mut mask, libc::SIGCHLD);
        let mut readable = std::mem::zeroed();
        libc::FD_ZERO(&mut readable);
        let mut n_fds = 0;
        if let Some(fd) = fd {
            libc::FD_SET(fd.as_raw_fd(), &mut readable);
            n_fds = fd.as_raw_fd() + 1;
        }
        let null = std::ptr::null_mut();
        libc::pselect(n_fds, &mut readable, null, null, timeout, &mask) > 0
    }
}

/// Forks and executes the agent. On success `exec_failed` must be closed here and its other end read
/// to learn whether the program was executed: it carries the [`Step`] and the error number if not.
pub(crate) fn fork_agent(image: &Image<'_>, exec_failed: BorrowedFd<'_>) -> io::Result<i32> {
    let mut argv = vec![image.program];
    argv.extend_from_slice(&image.args);
    let argv = pointers(&argv);
    let env = pointers(&image.env);
    let host = std::process::id().cast_signed();
    // SAFETY: the host has one thread, so its copy may do anything the original may. The copy ends
    // in `execve` or `_exit` and never returns into the caller.
    unsafe {
        let pid = libc::fork();
        if pid == -1 {
            return Err(io::Error::last_os_error());
        }
        if pid > 0 {
            return Ok(pid);
        }
        libc::setsid();
        #[cfg(target_os = "linux")]
        {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        // If the host died before the line above, no signal will come any more.
        if libc::getppid() != host {
            libc::_exit(1);
        }
        restore_signals();
        // We lead a session without a terminal since `setsid`, so it can have this one. The cast: the
        // type of an `ioctl` number differs between systems.
        let step = if image.tty == Tty::Stdin && libc::ioctl(0, libc::TIOCSCTTY as _, 0) == -1 {
            Step::Terminal
        } else if libc::chdir(image.cwd.as_ptr()) == -1 {
            Step::Directory
        } else {
            libc::execve(image.program.as_ptr(), argv.as_ptr(), env.as_ptr());
            Step::Execute
        };
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let mut failure = [0; 8];
        failure[..4].copy_from_slice(&step.number().to_le_bytes());
        failure[4..].copy_from_slice(&errno.to_le_bytes());
        libc::write(exec_failed.as_raw_fd(), failure.as_ptr().cast(), failure.len());
        libc::_exit(127)
    }
}

/// Closes the inherited descriptors from `first` up, which nobody in this process owns.
pub(crate) fn close_from(first: RawFd) {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: called by the host before it opened anything above `first`.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) };
        if closed == 0 {
            return;
        }
    }
    // SAFETY: `sysconf` only reads; the rest as above.
    unsafe {
        let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536) as RawFd;
        for fd in first..limit {
            libc::close(fd);
        }
    }
}

/// Lets go of the agent's streams: as long as the host has them open, nobody sees their end.
pub(crate) fn release_streams() {
    let null = rustix::fs::open(
        c"/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    );
    // SAFETY: the host prints nothing and owns 0, 1 and 2 by convention only. Without `/dev/null`
    // they stay closed, which is as good.
    unsafe {
        for fd in 0..3 {
            match &null {
                Ok(null) => libc::dup2(null.as_raw_fd(), fd),
                Err(_) => libc::close(fd),
            };
        }
    }
}

/// Has the runtime say when a descriptor can be read or written. Within a runtime only.
///
/// # Errors
/// When nothing tells that of it: it is a file, say.
pub fn watch(fd: OwnedFd) -> io::Result<Watched> {
    // SAFETY: an `OwnedFd` is open, and only its owner closes it, which is the `AsyncFd` from here on.
    // A `Watched` gives nothing but shared references to that, so nobody puts another one in its place.
    Ok(Watched(unsafe { AsyncFd::register(fd)? }))
}

/// A descriptor that the runtime watches.
#[derive(Debug)]
pub struct Watched(AsyncFd<OwnedFd>);

impl Deref for Watched {
    type Target = AsyncFd<OwnedFd>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Memory of a megabyte and more goes back to the system once it is free. The C library would raise
/// that limit with each long text it has seen, and keep the memory of the next ones.
pub(crate) fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number of the allocator; one it does not take changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Where the handler of [`catch_stops`] writes.
static STOPS: AtomicI32 = AtomicI32::new(-1);

/// The signals by which a terminal stops a process.
const TERMINAL_STOPS: [c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Has the number of every signal by which a terminal stops us written to a descriptor, one byte each,
/// instead of being stopped. The descriptor must not block, and nobody may close it.
pub(crate) fn catch_stops(told: OwnedFd) -> io::Result<()> {
    STOPS.store(told.into_raw_fd(), Ordering::Release);
    TERMINAL_STOPS.into_iter().try_for_each(catch_stop)
}

fn catch_stop(signal: c_int) -> io::Result<()> {
    extern "C" fn tell(signal: c_int) {
        let byte = [signal.to_le_bytes()[0]];
        // SAFETY: `write` may be called in a handler, and the number of its error, which the
        // interrupted code may be about to read, is put back. A full pipe has the signal already.
        unsafe {
            let errno = errno_place();
            let before = *errno;
            libc::write(STOPS.load(Ordering::Acquire), byte.as_ptr().cast(), 1);
            *errno = before;
        }
    }
    // SAFETY: the handler is async-signal-safe; the structures are plain data, zeroed and then filled.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = tell as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Stops this process as the signal would have done without [`catch_stops`], and returns when it goes
/// on. The kernel leaves out what nobody could continue.
pub(crate) fn stop_as_by(signal: c_int) -> io::Result<()> {
    // SAFETY: the default action needs no code of ours; `raise` is for this thread, so it returns only
    // after the signal has been acted upon.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    catch_stop(signal)
}

/// Where the number of this thread's last error is.
///
/// # Safety
///
/// The place is this thread's own and valid as long as the thread runs.
unsafe fn errno_place() -> *mut c_int {
    // SAFETY: no memory is involved.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::__errno_location()
    }
    // SAFETY: as above.
    #[cfg(not(target_os = "linux"))]
    unsafe {
        libc::__error()
    }
}

/// Sends a signal to a process, or to a group if `pid` is negative.
pub(crate) fn kill(pid: i32, signal: c_int) -> io::Result<()> {
    // SAFETY: no memory is involved.
    if unsafe { libc::kill(pid, signal) } == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The agent starts as from a login shell: nothing blocked, nothing ignored. Rust ignores `SIGPIPE`
/// and the host blocks everything, and both would survive `execve`.
///
/// # Safety
///
/// Only between `fork` and `execve`.
unsafe fn restore_signals() {
    // SAFETY: plain data and async-signal-safe calls; the numbers of signals that cannot be changed
    // or do not exist are refused, which is of no interest.
    unsafe {
        for signal in 1..65 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

fn pointers(strings: &[&CStr]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

fn check(errno: c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// Makes a write beyond the limit of a file's size an error (`EFBIG`) and nothing else. A handler that
/// does nothing, because programs that we become would inherit that a signal is ignored.
pub(crate) fn survive_file_limit() -> io::Result<()> {
    extern "C" fn nothing(_: c_int) {}
    let handler = nothing as extern "C" fn(c_int);
    // SAFETY: the handler touches nothing, so it may run at any time.
    match unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

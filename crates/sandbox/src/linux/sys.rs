//! The system calls that have no safe wrapper elsewhere, each behind one.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_long, c_uint};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr::{null, null_mut};

/// Namespaces for [`fork_into`].
pub(crate) const NEW_USER: c_int = libc::CLONE_NEWUSER;
pub(crate) const NEW_MOUNT: c_int = libc::CLONE_NEWNS;
pub(crate) const NEW_PID: c_int = libc::CLONE_NEWPID;
pub(crate) const NEW_NET: c_int = libc::CLONE_NEWNET;
pub(crate) const NEW_REST: c_int = libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
/// The child shares our descriptors until it executes something.
pub(crate) const SHARE_FILES: c_int = libc::CLONE_FILES;

/// Attributes for [`set_attributes`].
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEV: u64 = libc::MOUNT_ATTR_NODEV;
pub(crate) const NO_EXEC: u64 = libc::MOUNT_ATTR_NOEXEC;

fn check(result: c_long) -> io::Result<c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Forks with flags of `clone`; `None` in the child.
///
/// # Safety
///
/// The process must have one thread.
pub(crate) unsafe fn fork_into(flags: c_int) -> io::Result<Option<i32>> {
    let flags = (flags | libc::SIGCHLD) as c_long;
    // SAFETY: without a stack of its own and without shared memory the child goes on with a copy of
    // everything, like after `fork`; the caller vouches for there being one thread.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(if pid == 0 { None } else { Some(pid as i32) })
}

/// Closes the inherited descriptors from 3 up, which nobody in this process owns.
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: called before this process opened anything.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, 0) }).map(drop)
}

/// Ends this process without running anything of it.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: never returns, touches no memory.
    unsafe { libc::_exit(code) }
}

/// Sets attributes of a mount, or of a whole tree of them.
pub(crate) fn set_attributes(mount: BorrowedFd<'_>, set: u64, whole_tree: bool) -> io::Result<()> {
    // SAFETY: plain data.
    let mut attr: libc::mount_attr = unsafe { zeroed() };
    attr.attr_set = set;
    let flags = libc::AT_EMPTY_PATH | if whole_tree { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the structure and the empty path live through the call; the size is the structure's.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &attr,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct Signals(libc::sigset_t);

/// Blocks every signal; gives what was blocked before.
pub(crate) fn block_signals() -> Signals {
    // SAFETY: both sets are plain data and valid for the call.
    unsafe {
        let (mut all, mut before) = (zeroed(), zeroed());
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        Signals(before)
    }
}

/// Blocks exactly these. Rust ignores `SIGPIPE`, and that would survive `execve`.
pub(crate) fn restore_signals(signals: &Signals) {
    // SAFETY: plain data and calls without memory of ours.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &signals.0, null_mut());
    }
}

/// A descriptor from which blocked signals can be read.
pub(crate) fn signal_fd() -> io::Result<OwnedFd> {
    // SAFETY: the set is plain data; the descriptor is new and ours alone.
    unsafe {
        let mut all = zeroed();
        libc::sigfillset(&mut all);
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let fd = check(libc::signalfd(-1, &all, flags).into())?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// A signal that arrived.
pub(crate) struct Arrived {
    pub(crate) number: i32,
    /// Another process sent it, not the kernel.
    pub(crate) is_sent: bool,
    /// Which one; 0 if it is outside our PID namespace.
    pub(crate) sender: u32,
}

/// The next signal, if there is one.
pub(crate) fn next_signal(fd: BorrowedFd<'_>) -> Option<Arrived> {
    // SAFETY: the structure is plain data of exactly the size that is read.
    unsafe {
        let mut info: libc::signalfd_siginfo = zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        let n = libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size);
        (n == size as isize).then(|| Arrived {
            number: info.ssi_signo as i32,
            is_sent: info.ssi_code <= 0,
            sender: info.ssi_pid,
        })
    }
}

/// Sends a signal.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::kill(pid, signal) }.into()).map(drop)
}

/// Ends this process by a signal, as another one ended; leaves no core.
pub(crate) fn die_by(signal: i32) -> ! {
    // SAFETY: plain data; signals have their defaults afterwards, so nothing of ours runs.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut only = zeroed();
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, null_mut());
        libc::raise(signal);
        // A signal whose default is to do nothing, or none at all.
        libc::_exit(128 + signal)
    }
}

/// How a child that ended did so, as the kernel encodes it.
pub(crate) fn reap(pid: i32, block: bool) -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    let flags = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the status is valid for the call.
        match check(unsafe { libc::waitpid(pid, &mut status, flags) }.into()) {
            Ok(0) => return Ok(None),
            Ok(pid) => return Ok(Some((pid as i32, status))),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
}

/// We are killed when our parent ends.
pub(crate) fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as _)
}

/// Others of the same user may not look into this process.
pub(crate) fn be_private() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

/// No program executed from here on gains a privilege.
pub(crate) fn gain_nothing() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

fn prctl(option: c_int, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: none of the options used here has a pointer.
    check(unsafe { libc::prctl(option, value, 0, 0, 0) }.into()).map(drop)
}

/// `CAP_SYS_PTRACE`, as a set.
pub(crate) const LOOK_INTO_OTHERS: u64 = 1 << 19;

/// Nothing executed from here on can get a capability, not even as root.
pub(crate) fn empty_bounding_set() -> io::Result<()> {
    const NO_ROOT_AND_LOCKED: libc::c_ulong = 0b11;
    for capability in 0..64 {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Ok(()) => {}
            // The kernel knows no more of them.
            Err(err) if err.raw_os_error() == Some(libc::EINVAL) => break,
            Err(err) => return Err(err),
        }
    }
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as _)?;
    prctl(libc::PR_SET_SECUREBITS, NO_ROOT_AND_LOCKED)
}

/// Gives up every capability but these.
pub(crate) fn keep_capabilities(keep: u64) -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    let data = [keep as u32, (keep >> 32) as u32].map(|bits| Data {
        effective: bits,
        permitted: bits,
        inheritable: 0,
    });
    // SAFETY: the structures have the layout of version 3 and live through the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &header, data.as_ptr()) }).map(drop)
}

/// Executes a program, looked up in `PATH` if its name has no slash. Comes back only on failure.
pub(crate) fn execute(command: &[OsString]) -> io::Error {
    let words: Result<Vec<CString>, _> =
        command.iter().map(|word| CString::new(word.clone().into_vec())).collect();
    let words = match words {
        Ok(words) => words,
        Err(err) => return err.into(),
    };
    let argv: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).chain([null()]).collect();
    let Some(program) = words.first() else { return io::ErrorKind::InvalidInput.into() };
    // SAFETY: strings and array end with a zero and live through the call.
    unsafe { libc::execvp(program.as_ptr(), argv.as_ptr()) };
    io::Error::last_os_error()
}

/// The version of Landlock's interface that this kernel speaks.
pub(crate) fn landlock_version() -> io::Result<u32> {
    const ASK_FOR_VERSION: c_int = 1;
    // SAFETY: with this flag the kernel wants neither a structure nor a size.
    let version = check(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, null::<u8>(), 0, ASK_FOR_VERSION)
    })?;
    Ok(version as u32)
}

/// A filter instruction.
pub(crate) type Instruction = seccompiler::sock_filter;

/// Installs a filter whose questions come out of the descriptor.
pub(crate) fn install_listener(program: &[Instruction]) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Program {
        len: u16,
        filter: *const Instruction,
    }
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = Program { len, filter: program.as_ptr() };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the program lives through the call and has the length it says.
        check(unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program)
        })
    };
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A question once read is not withdrawn by a signal. Since 5.19; without it a call that a signal
    // interrupts may be asked twice, and the second time the file is there already.
    let fd = match install(listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(err) if err.raw_os_error() == Some(libc::EINVAL) => install(listen),
        other => other,
    }?;
    // SAFETY: the descriptor is new and ours alone.
    let listener = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    // Whoever asks and whoever answers take turns, so they do best on one processor. Since 6.6.
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: the request takes the flags themselves.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP);
    }
    Ok(listener)
}

/// Whether filters may end in this action.
pub(crate) fn knows_action(action: u32) -> io::Result<()> {
    // SAFETY: the number lives through the call.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &action) })
        .map(drop)
}

/// A system call that waits for an answer.
#[derive(Clone, Copy)]
pub(crate) struct Question {
    pub(crate) id: u64,
    pub(crate) thread: u32,
    pub(crate) call: c_long,
    pub(crate) args: [u64; 6],
}

/// The next system call that waits. `None` if its process is gone already.
pub(crate) fn next_question(listener: BorrowedFd<'_>) -> io::Result<Option<Question>> {
    // SAFETY: the structure is plain data and must be zeroed; the request takes a pointer to it.
    let (result, question) = unsafe {
        let mut question: libc::seccomp_notif = zeroed();
        let result =
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &mut question);
        (check(result.into()), question)
    };
    match result {
        Ok(_) => Ok(Some(Question {
            id: question.id,
            thread: question.pid,
            call: question.data.nr.into(),
            args: question.data.args,
        })),
        Err(err) if matches!(err.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(err) => Err(err),
    }
}

/// Whether the call still waits, so that its thread's number is still its own.
pub(crate) fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the request takes a pointer to the number, which lives through the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &id) == 0 }
}

/// What a waiting call is told.
pub(crate) enum Answer {
    /// The kernel shall do it, under the rules of the thread that asked.
    Proceed,
    /// It was done.
    Done,
    /// It failed with this number.
    Failed(i32),
    /// It was done, and this is the file.
    File { file: OwnedFd, close_on_exec: bool },
}

/// Answers. A process that is gone meanwhile needs none.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: &Answer) {
    if let Answer::File { file, close_on_exec } = answer {
        // SAFETY: plain data, filled; the request takes a pointer to it. The kernel duplicates the
        // descriptor.
        let sent = unsafe {
            let mut add: libc::seccomp_notif_addfd = zeroed();
            add.id = id;
            add.flags = libc::SECCOMP_ADDFD_FLAG_SEND as _;
            add.srcfd = file.as_raw_fd() as _;
            add.newfd_flags = if *close_on_exec { libc::O_CLOEXEC as _ } else { 0 };
            check(
                libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, &mut add)
                    .into(),
            )
        };
        if let Err(err) = sent {
            let errno = err.raw_os_error().unwrap_or(libc::EMFILE);
            self::answer(listener, id, &Answer::Failed(errno));
        }
        return;
    }
    // SAFETY: as above.
    unsafe {
        let mut response: libc::seccomp_notif_resp = zeroed();
        response.id = id;
        match answer {
            Answer::Proceed => response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as _,
            Answer::Failed(errno) => response.error = -errno,
            Answer::Done | Answer::File { .. } => {}
        }
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &mut response);
    }
}

/// A string in the memory of another thread, at most as long as a path may be.
pub(crate) fn read_string(thread: u32, address: u64) -> io::Result<CString> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    let mut at = address;
    while text.len() < libc::PATH_MAX as usize {
        // Never across a page: the next one may not be there.
        let mut chunk = [0; PAGE as usize];
        let len = (PAGE - at % PAGE) as usize;
        let local = libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: len };
        let remote = libc::iovec { iov_base: at as *mut _, iov_len: len };
        // SAFETY: the local buffer is as long as it says; the kernel checks the remote one.
        let n = check(unsafe {
            libc::process_vm_readv(thread as i32, &local, 1, &remote, 1, 0) as c_long
        })? as usize;
        let chunk = chunk.get(..n).unwrap_or_default();
        if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(chunk.get(..end).unwrap_or_default());
            return CString::new(text).map_err(io::Error::other);
        }
        text.extend_from_slice(chunk);
        at += n as u64;
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}

/// Sets our file mode creation mask.
pub(crate) fn set_umask(mask: u32) {
    // SAFETY: cannot fail, no memory.
    unsafe { libc::umask(mask) };
}

/// Creates a device, a pipe or a file with `mknodat`; the kernel judges the mode.
pub(crate) fn make_node(dir: BorrowedFd<'_>, name: &CStr, mode: u32, dev: u64) -> io::Result<()> {
    // SAFETY: the name ends with a zero and lives through the call.
    check(unsafe { libc::mknodat(dir.as_raw_fd(), name.as_ptr(), mode, dev) }.into()).map(drop)
}

/// `renameat2` with flags as they came.
pub(crate) fn rename(
    (old_dir, old): (BorrowedFd<'_>, &CStr),
    (new_dir, new): (BorrowedFd<'_>, &CStr),
    flags: u32,
) -> io::Result<()> {
    // SAFETY: the names end with a zero and live through the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            old_dir.as_raw_fd(),
            old.as_ptr(),
            new_dir.as_raw_fd(),
            new.as_ptr(),
            flags,
        )
    })
    .map(drop)
}

/// `openat` with flags as they came.
pub(crate) fn open(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero and lives through the call; the descriptor is new.
    unsafe {
        let fd = check(libc::openat(dir.as_raw_fd(), name.as_ptr(), flags, mode).into())?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

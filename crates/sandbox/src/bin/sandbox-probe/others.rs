//! Attempts to get another view of the machine, at other processes, or at the kernel.

use std::ffi::CStr;
use std::io;

use crate::attempts::Kind::{Machine, Never, Plain, Root};
use crate::attempts::{Attempt, HERE, Scene, call, open, text, write};
use crate::files;

const WRITE: i32 = libc::O_WRONLY;
const NEW_USER_AND_MOUNT: usize = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    // Mounts. Without a sandbox they are made in a namespace of their own.
    ("mount-tmpfs", Root, |s| {
        apart()?;
        mount(c"tmpfs", &s.at("dir"), c"tmpfs", 0)
    }),
    ("mount-bind", Root, |s| {
        apart()?;
        mount(&s.at("dir"), &s.at("empty"), c"", libc::MS_BIND)
    }),
    ("mount-remount-writable", Root, |s| {
        apart()?;
        mount(c"", c"/", c"", libc::MS_REMOUNT | libc::MS_BIND)?;
        write(open(&s.file(), WRITE)?)
    }),
    ("mount-setattr-writable", Root, |s| {
        apart()?;
        let attr: [u64; 4] = [0, libc::MOUNT_ATTR_RDONLY, 0, 0];
        let flags = libc::AT_RECURSIVE as usize;
        let attr = attr.as_ptr() as usize;
        call(libc::SYS_mount_setattr, &[HERE, c"/".as_ptr() as usize, flags, attr, 32])?;
        write(open(&s.file(), WRITE)?)
    }),
    ("mount-new-way", Root, |_| {
        apart()?;
        call(libc::SYS_fsopen, &[c"tmpfs".as_ptr() as usize, 0]).map(drop)
    }),
    ("mount-copy", Root, |_| {
        apart()?;
        let clone = 1 | libc::AT_RECURSIVE as usize;
        call(libc::SYS_open_tree, &[HERE, c"/".as_ptr() as usize, clone]).map(drop)
    }),
    ("umount-proc", Never, |_| umount(c"/proc")),
    ("umount-dev", Never, |_| umount(c"/dev")),
    ("umount-workspace", Never, |s| umount(&text(&s.work))),
    ("umount-root", Never, |_| umount(c"/")),
    ("pivot-root", Never, |_| {
        let here = c".".as_ptr() as usize;
        call(libc::SYS_pivot_root, &[here, here]).map(drop)
    }),
    ("chroot-and-escape", Root, |s| {
        let dir = text(&s.work);
        call(libc::SYS_chroot, &[dir.as_ptr() as usize])?;
        for _ in 0..32 {
            call(libc::SYS_chdir, &[c"..".as_ptr() as usize])?;
        }
        call(libc::SYS_chroot, &[c".".as_ptr() as usize]).map(drop)
    }),
    ("unshare-user", Plain, |_| call(libc::SYS_unshare, &[NEW_USER_AND_MOUNT]).map(drop)),
    ("unshare-user-and-mount-writable", Plain, |s| {
        call(libc::SYS_unshare, &[NEW_USER_AND_MOUNT])?;
        mount(c"", c"/", c"", libc::MS_REMOUNT | libc::MS_BIND)?;
        write(open(&s.file(), WRITE)?)
    }),
    ("clone-user", Plain, |_| {
        let flags = NEW_USER_AND_MOUNT | libc::SIGCHLD as usize;
        child(call(libc::SYS_clone, &[flags, 0, 0, 0, 0])?)
    }),
    ("clone-each-namespace", Plain, |_| {
        for flag in [libc::CLONE_NEWNET, libc::CLONE_NEWPID, libc::CLONE_NEWIPC] {
            let flags = (flag | libc::CLONE_NEWUSER | libc::SIGCHLD) as usize;
            child(call(libc::SYS_clone, &[flags, 0, 0, 0, 0])?)?;
        }
        Ok(())
    }),
    ("clone3-user", Plain, |_| {
        let args: [u64; 8] = [NEW_USER_AND_MOUNT as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
        child(call(libc::SYS_clone3, &[args.as_ptr() as usize, 64])?)
    }),
    ("setns-mount-of-pid-1", Machine, |_| setns("/proc/1/ns/mnt")),
    ("setns-network-of-outsider", Root, |s| {
        setns(&format!("/proc/{}/ns/net", s.number("outsider")?))
    }),
    ("setns-by-pidfd", Root, |s| {
        let pidfd = call(libc::SYS_pidfd_open, &[s.number("outsider")?, 0])?;
        call(libc::SYS_setns, &[pidfd, libc::CLONE_NEWNET as usize]).map(drop)
    }),
    // Other processes.
    ("root-of-pid-1", Machine, |s| below("/proc/1/root", s)),
    ("root-of-outsider", Plain, |s| below(&format!("/proc/{}/root", s.number("outsider")?), s)),
    ("memory-of-pid-1", Machine, |_| open(&text("/proc/1/mem"), libc::O_RDWR).map(drop)),
    ("environment-of-pid-1", Machine, |_| std::fs::read("/proc/1/environ").map(drop)),
    ("descriptors-of-pid-1", Machine, |_| std::fs::read_link("/proc/1/fd/0").map(drop)),
    ("environment-of-outsider", Plain, |s| {
        std::fs::read(format!("/proc/{}/environ", s.number("outsider")?)).map(drop)
    }),
    ("ptrace-outsider", Plain, |s| {
        let outsider = s.number("outsider")?;
        call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, outsider, 0, 0]).map(drop)
    }),
    ("ptrace-parent", Plain, |_| {
        let parent = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get());
        call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, parent as usize, 0, 0]).map(drop)
    }),
    ("read-outsider", Plain, |s| {
        let mut byte = [0u8; 1];
        let local = [byte.as_mut_ptr() as usize, 1];
        let remote = [0x1000usize, 1];
        let outsider = s.number("outsider")?;
        let (local, remote) = (local.as_ptr() as usize, remote.as_ptr() as usize);
        match call(libc::SYS_process_vm_readv, &[outsider, local, 1, remote, 1, 0]) {
            // It was allowed, there is only nothing at this address.
            Err(err) if err.raw_os_error() == Some(libc::EFAULT) => Ok(()),
            other => other.map(drop),
        }
    }),
    ("kill-outsider", Plain, |s| call(libc::SYS_kill, &[s.number("outsider")?, 0]).map(drop)),
    ("kill-by-pidfd", Plain, |s| {
        let pidfd = call(libc::SYS_pidfd_open, &[s.number("outsider")?, 0])?;
        call(libc::SYS_pidfd_send_signal, &[pidfd, 0, 0, 0]).map(drop)
    }),
    ("limit-outsider", Plain, |s| {
        let mut limit = [0u64; 2];
        let limit = limit.as_mut_ptr() as usize;
        call(libc::SYS_prlimit64, &[s.number("outsider")?, 7, 0, limit]).map(drop)
    }),
    ("slow-outsider", Plain, |s| {
        call(libc::SYS_setpriority, &[0, s.number("outsider")?, 19]).map(drop)
    }),
    ("shared-memory", Plain, |s| {
        let id = call(libc::SYS_shmget, &[s.number("shm-key")?, 0, 0])?;
        call(libc::SYS_shmat, &[id, 0, 0]).map(drop)
    }),
    // Switches and devices of the machine.
    ("sysctl", Root, |_| open(&text("/proc/sys/kernel/core_pattern"), WRITE).map(drop)),
    ("sysctl-host-name", Root, |_| open(&text("/proc/sys/kernel/hostname"), WRITE).map(drop)),
    ("sysrq", Machine, |_| open(&text("/proc/sysrq-trigger"), WRITE).map(drop)),
    ("own-oom-score", Plain, |_| open(&text("/proc/self/oom_score_adj"), WRITE).map(drop)),
    ("cgroup", Root, |_| {
        let dirs = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];
        let tried = dirs.map(|dir| open(&text(format!("{dir}/cgroup.procs")), WRITE));
        tried
            .into_iter()
            .find(Result::is_ok)
            .unwrap_or(Err(io::ErrorKind::NotFound.into()))
            .map(drop)
    }),
    ("disk-device", Machine, |_| {
        let disks = std::fs::read_to_string("/proc/partitions")?;
        let name = disks.lines().nth(2).and_then(|line| line.split_whitespace().nth(3));
        open(&text(format!("/dev/{}", name.unwrap_or("sda"))), libc::O_RDWR).map(drop)
    }),
    ("disk-device-by-proc", Machine, |_| {
        let number = files::disk()?;
        let path =
            format!("/dev/block/{}:{}", libc::major(number as u64), libc::minor(number as u64));
        open(&text(path), libc::O_RDWR).map(drop)
    }),
    ("kernel-log", Machine, |_| open(&text("/dev/kmsg"), WRITE).map(drop)),
    ("kernel-memory", Machine, |_| open(&text("/dev/mem"), libc::O_RDWR).map(drop)),
    ("device-mode", Root, |_| {
        let null = c"/dev/null".as_ptr() as usize;
        call(libc::SYS_fchmodat, &[HERE, null, 0o666]).map(drop)
    }),
    ("new-device", Never, |_| {
        let path = c"/dev/new".as_ptr() as usize;
        call(libc::SYS_mknodat, &[HERE, path, (libc::S_IFCHR | 0o666) as usize, 0x103]).map(drop)
    }),
    ("push-terminal-input", Never, |_| {
        let master = open(&text("/dev/ptmx"), libc::O_RDWR | libc::O_NOCTTY)?;
        let byte = b"x".as_ptr() as usize;
        call(libc::SYS_ioctl, &[master, libc::TIOCSTI as usize, byte]).map(drop)
    }),
    // Calls that must not be there.
    ("x32-open", Machine, |s| x32(libc::SYS_openat, &[HERE, s.file().as_ptr() as usize, 1])),
    ("bpf", Never, |_| forbidden(libc::SYS_bpf)),
    ("perf", Never, |_| forbidden(libc::SYS_perf_event_open)),
    ("userfaultfd", Never, |_| call(libc::SYS_userfaultfd, &[1]).map(drop)),
    ("keyring", Never, |_| call(libc::SYS_keyctl, &[0, usize::MAX - 2, 0]).map(drop)),
    ("add-key", Never, |_| forbidden(libc::SYS_add_key)),
    ("request-key", Never, |_| forbidden(libc::SYS_request_key)),
    ("kexec", Never, |_| forbidden(libc::SYS_kexec_load)),
    ("module", Never, |_| forbidden(libc::SYS_init_module)),
    ("swap", Never, |s| call(libc::SYS_swapon, &[s.file().as_ptr() as usize, 0]).map(drop)),
    ("accounting", Never, |s| call(libc::SYS_acct, &[s.file().as_ptr() as usize]).map(drop)),
    ("host-name", Never, |_| {
        call(libc::SYS_sethostname, &[c"intruder".as_ptr() as usize, 8]).map(drop)
    }),
    ("clock", Never, |_| forbidden(libc::SYS_clock_settime)),
    ("reboot", Never, |_| call(libc::SYS_reboot, &[0, 0, 0]).map(drop)),
    ("io-uring", Machine, |_| {
        let mut params = [0u8; 120];
        call(libc::SYS_io_uring_setup, &[4, params.as_mut_ptr() as usize]).map(drop)
    }),
    ("fanotify", Root, |_| call(libc::SYS_fanotify_init, &[0, 0]).map(drop)),
];

/// Where mounts do not matter to others. In a sandbox this fails, and the attempt goes on.
fn apart() -> io::Result<()> {
    if call(libc::SYS_unshare, &[libc::CLONE_NEWNS as usize]).is_ok() {
        mount(c"", c"/", c"", libc::MS_REC | libc::MS_PRIVATE)?;
    }
    Ok(())
}

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let words = [source, target, kind].map(|it| it.as_ptr() as usize);
    let [source, target, kind] = words;
    call(libc::SYS_mount, &[source, target, kind, flags as usize, 0]).map(drop)
}

fn umount(path: &CStr) -> io::Result<()> {
    call(libc::SYS_umount2, &[path.as_ptr() as usize, libc::MNT_DETACH as usize]).map(drop)
}

fn setns(path: &str) -> io::Result<()> {
    call(libc::SYS_setns, &[open(&text(path), libc::O_RDONLY)?, 0]).map(drop)
}

/// After a `clone` that worked: the child goes, the parent says so.
fn child(pid: usize) -> io::Result<()> {
    if pid == 0 {
        call(libc::SYS_exit_group, &[0])?;
    }
    Ok(())
}

/// Writes to the attempt's file through another way to the root.
fn below(root: &str, scene: &Scene) -> io::Result<()> {
    let path = format!("{root}{}/file", scene.outside.display());
    write(open(&text(path), WRITE)?)
}

/// Nonsense as arguments: a call that is there finds something else to complain about.
fn forbidden(number: i64) -> io::Result<()> {
    match call(number, &[usize::MAX; 6]) {
        Err(err) if err.raw_os_error() == Some(libc::EPERM) => Err(err),
        Err(err) => {
            // Any other complaint shows that the call was looked at.
            if err.raw_os_error() == Some(libc::ENOSYS) { Err(err) } else { Ok(()) }
        }
        Ok(_) => Ok(()),
    }
}

/// The same call by the numbers of x32.
pub(crate) fn x32(number: i64, args: &[usize]) -> io::Result<()> {
    call(0x4000_0000 | number, args).map(drop)
}

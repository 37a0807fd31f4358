//! Attempts to change files that are none of the command's business.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::attempts::Kind::{Effect, Machine, Plain, Root};
use crate::attempts::{Attempt, HERE, Scene, call, open, text, write};

const WRITE: i32 = libc::O_WRONLY;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("write-truncate", Plain, |s| write(open(&s.file(), WRITE | libc::O_TRUNC)?)),
    ("write-in-place", Plain, |s| write(open(&s.file(), WRITE)?)),
    ("append", Plain, |s| write(open(&s.file(), WRITE | libc::O_APPEND)?)),
    ("read-write", Plain, |s| write(open(&s.file(), libc::O_RDWR)?)),
    ("create", Plain, |s| write(open(&s.at("new"), WRITE | libc::O_CREAT)?)),
    ("create-excl", Plain, |s| write(open(&s.at("new"), WRITE | libc::O_CREAT | libc::O_EXCL)?)),
    ("create-below", Plain, |s| write(open(&s.at("dir/new"), WRITE | libc::O_CREAT)?)),
    ("create-at", Plain, |s| {
        let dir = open(&text(&s.outside), libc::O_RDONLY | libc::O_DIRECTORY)?;
        let flags = WRITE | libc::O_CREAT;
        let name = c"new".as_ptr() as usize;
        write(call(libc::SYS_openat, &[dir, name, flags as usize, 0o644])?)
    }),
    ("create-openat2", Plain, |s| {
        let how: [u64; 3] = [(WRITE | libc::O_CREAT) as u64, 0o644, 0];
        let path = s.at("new");
        let how = how.as_ptr() as usize;
        write(call(libc::SYS_openat2, &[HERE, path.as_ptr() as usize, how, 24])?)
    }),
    ("create-dotdot", Plain, |s| {
        let path = format!("../outside/{}/new", s.name);
        write(open(&text(path), WRITE | libc::O_CREAT)?)
    }),
    ("create-own-root", Plain, |s| {
        let path = format!("/proc/self/root{}/new", s.outside.display());
        write(open(&text(path), WRITE | libc::O_CREAT)?)
    }),
    ("create-through-link", Effect, |s| {
        symlink(&text(&s.outside), &s.own("-link"))?;
        write(open(&s.own("-link/new"), WRITE | libc::O_CREAT)?)
    }),
    ("create-through-dangling-link", Effect, |s| {
        symlink(&s.at("new"), &s.own("-link"))?;
        write(open(&s.own("-link"), WRITE | libc::O_CREAT)?)
    }),
    ("write-through-link", Effect, |s| {
        symlink(&s.file(), &s.own("-link"))?;
        write(open(&s.own("-link"), WRITE)?)
    }),
    ("write-through-own-fd-link", Plain, |s| {
        let fd = open(&s.file(), libc::O_RDONLY)?;
        write(open(&text(format!("/proc/self/fd/{fd}")), WRITE)?)
    }),
    ("write-mapped", Plain, |s| {
        let fd = open(&s.file(), libc::O_RDWR)?;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let at = call(libc::SYS_mmap, &[0, 4096, protection, libc::MAP_SHARED as usize, fd, 0])?;
        // A read from the other file's beginning goes into the mapping.
        let other = open(&text("/proc/self/status"), libc::O_RDONLY)?;
        call(libc::SYS_read, &[other, at, 4]).map(drop)
    }),
    ("truncate", Plain, |s| call(libc::SYS_truncate, &[s.file().as_ptr() as usize, 1]).map(drop)),
    ("ftruncate", Plain, |s| {
        call(libc::SYS_ftruncate, &[open(&s.file(), libc::O_RDWR)?, 1]).map(drop)
    }),
    ("fallocate", Plain, |s| {
        call(libc::SYS_fallocate, &[open(&s.file(), libc::O_RDWR)?, 0, 0, 9000]).map(drop)
    }),
    ("copy-file-range", Plain, |s| {
        let from = open(&s.at("dir/inner"), libc::O_RDONLY)?;
        let to = open(&s.file(), WRITE)?;
        call(libc::SYS_copy_file_range, &[from, 0, to, 0, 4, 0]).map(drop)
    }),
    ("sendfile", Plain, |s| {
        let from = open(&s.at("dir/inner"), libc::O_RDONLY)?;
        call(libc::SYS_sendfile, &[open(&s.file(), WRITE)?, from, 0, 4]).map(drop)
    }),
    ("rename-within", Plain, |s| rename(&s.file(), &s.at("renamed"))),
    ("rename-directory", Plain, |s| rename(&s.at("dir"), &s.at("renamed"))),
    ("rename-into", Effect, |s| {
        let own = make(s)?;
        rename(&own, &s.at("new"))
    }),
    ("rename-onto", Effect, |s| {
        let own = make(s)?;
        rename(&own, &s.file())
    }),
    ("rename-out", Plain, |s| rename(&s.file(), &s.own("-out"))),
    ("rename-exchange", Plain, |s| {
        let (file, dir) = (s.file(), s.at("dir"));
        let (file, dir) = (file.as_ptr() as usize, dir.as_ptr() as usize);
        call(libc::SYS_renameat2, &[HERE, file, HERE, dir, 2]).map(drop)
    }),
    ("rename-workspace-away", Plain, |s| {
        let old = text(&s.work);
        rename(&old, &s.at("work"))?;
        rename(&s.at("work"), &old)
    }),
    ("link-into", Effect, |s| {
        let own = make(s)?;
        link(&own, &s.at("new"))
    }),
    ("link-out", Plain, |s| link(&s.file(), &s.own("-out"))),
    ("link-out-and-write", Plain, |s| {
        link(&s.file(), &s.own("-out"))?;
        write(open(&s.own("-out"), WRITE)?)
    }),
    ("symlink", Plain, |s| symlink(c"/etc", &s.at("new"))),
    ("chmod", Plain, |s| chmod(&s.file())),
    ("chmod-directory", Plain, |s| chmod(&s.at("dir"))),
    ("chmod-fifo", Plain, |s| chmod(&s.at("fifo"))),
    ("fchmod-of-read-only", Plain, |s| {
        call(libc::SYS_fchmod, &[open(&s.file(), libc::O_RDONLY)?, 0o777]).map(drop)
    }),
    ("chmod-through-o-path", Plain, |s| {
        let fd = open(&s.file(), libc::O_PATH)?;
        chmod(&text(format!("/proc/self/fd/{fd}")))
    }),
    ("chown", Root, |s| {
        call(libc::SYS_fchownat, &[HERE, s.file().as_ptr() as usize, 12345, 12345, 0]).map(drop)
    }),
    ("fchown-of-read-only", Root, |s| {
        call(libc::SYS_fchown, &[open(&s.file(), libc::O_RDONLY)?, 12345, 12345]).map(drop)
    }),
    ("chown-link", Root, |s| {
        let link = s.at("link");
        let flags = libc::AT_SYMLINK_NOFOLLOW as usize;
        call(libc::SYS_fchownat, &[HERE, link.as_ptr() as usize, 12345, 12345, flags]).map(drop)
    }),
    ("utimes", Plain, |s| times(&s.file(), 0)),
    ("utimes-now", Plain, |s| {
        call(libc::SYS_utimensat, &[HERE, s.file().as_ptr() as usize, 0, 0]).map(drop)
    }),
    ("utimes-link", Plain, |s| times(&s.at("link"), libc::AT_SYMLINK_NOFOLLOW)),
    ("futimes-of-read-only", Plain, |s| {
        let fd = open(&s.file(), libc::O_RDONLY)?;
        let times: [i64; 4] = [1, 0, 1, 0];
        call(libc::SYS_utimensat, &[fd, 0, times.as_ptr() as usize, 0]).map(drop)
    }),
    ("unlink", Plain, |s| {
        call(libc::SYS_unlinkat, &[HERE, s.file().as_ptr() as usize, 0]).map(drop)
    }),
    ("unlink-link", Plain, |s| {
        call(libc::SYS_unlinkat, &[HERE, s.at("link").as_ptr() as usize, 0]).map(drop)
    }),
    ("rmdir", Plain, |s| {
        let flags = libc::AT_REMOVEDIR as usize;
        call(libc::SYS_unlinkat, &[HERE, s.at("empty").as_ptr() as usize, flags]).map(drop)
    }),
    ("mkdir", Plain, |s| {
        call(libc::SYS_mkdirat, &[HERE, s.at("new").as_ptr() as usize, 0o755]).map(drop)
    }),
    ("mknod-file", Plain, |s| node(&s.at("new"), libc::S_IFREG | 0o644, 0)),
    ("mkfifo", Plain, |s| node(&s.at("new"), libc::S_IFIFO | 0o644, 0)),
    ("mknod-device", Root, |s| node(&s.at("new"), libc::S_IFCHR | 0o644, 0x103)),
    ("mknod-disk-and-open", Machine, |s| {
        let disk = disk()?;
        let path = s.own("-disk");
        node(&path, libc::S_IFBLK | 0o600, disk)?;
        open(&path, libc::O_RDWR).map(drop)
    }),
    ("setxattr", Plain, |s| {
        let (name, value) = (c"user.intruder", b"1");
        let file = s.file();
        let (file, name) = (file.as_ptr() as usize, name.as_ptr() as usize);
        call(libc::SYS_setxattr, &[file, name, value.as_ptr() as usize, 1, 0]).map(drop)
    }),
    ("fsetxattr-of-read-only", Plain, |s| {
        let fd = open(&s.file(), libc::O_RDONLY)?;
        let name = c"user.intruder".as_ptr() as usize;
        call(libc::SYS_fsetxattr, &[fd, name, b"1".as_ptr() as usize, 1, 0]).map(drop)
    }),
    ("removexattr", Plain, |s| {
        let (file, name) = (s.file(), c"user.tested".as_ptr() as usize);
        call(libc::SYS_removexattr, &[file.as_ptr() as usize, name]).map(drop)
    }),
    ("set-flags", Machine, |s| {
        const FS_IOC_SETFLAGS: usize = 0x4008_6602;
        let flags: libc::c_long = 0x40;
        let fd = open(&s.file(), libc::O_RDONLY)?;
        call(libc::SYS_ioctl, &[fd, FS_IOC_SETFLAGS, &raw const flags as usize]).map(drop)
    }),
    ("tmpfile", Plain, |s| open(&text(&s.outside), libc::O_TMPFILE | libc::O_RDWR).and_then(write)),
    ("tmpfile-and-link", Plain, |s| {
        let fd = open(&text(&s.outside), libc::O_TMPFILE | libc::O_RDWR)?;
        let (old, new) = (text(format!("/proc/self/fd/{fd}")), s.at("new"));
        let (old, new) = (old.as_ptr() as usize, new.as_ptr() as usize);
        let flags = libc::AT_SYMLINK_FOLLOW as usize;
        call(libc::SYS_linkat, &[HERE, old, HERE, new, flags]).map(drop)
    }),
    ("handle", Root, |s| {
        #[repr(C)]
        struct Handle {
            bytes: u32,
            kind: i32,
            handle: [u8; 128],
        }
        let mut handle = Handle { bytes: 128, kind: 0, handle: [0; 128] };
        let (mut mount, file) = (0i32, s.file());
        let (handle, mount) = (&raw mut handle as usize, &raw mut mount as usize);
        call(libc::SYS_name_to_handle_at, &[HERE, file.as_ptr() as usize, handle, mount, 0])?;
        let dir = open(&text("/tmp"), libc::O_RDONLY)?;
        write(call(libc::SYS_open_by_handle_at, &[dir, handle, WRITE as usize])?)
    }),
    ("write-fifo", Plain, |s| write(open(&s.at("fifo"), WRITE | libc::O_NONBLOCK)?)),
    ("write-inherited-fd", Plain, |_| write(7)),
    ("stdin-reopened", Plain, |_| write(open(&text("/proc/self/fd/0"), WRITE)?)),
    ("stdin-truncated", Plain, |_| {
        open(&text("/dev/stdin"), WRITE | libc::O_TRUNC).and_then(write)
    }),
    ("memfd-exec", Effect, |s| {
        let fd = call(libc::SYS_memfd_create, &[c"probe".as_ptr() as usize, 0])?;
        let program = std::fs::read(std::env::current_exe()?)?;
        let mut at = 0;
        while let Some(rest) = program.get(at..).filter(|it| !it.is_empty()) {
            at += call(libc::SYS_write, &[fd, rest.as_ptr() as usize, rest.len()])?;
        }
        #[allow(clippy::disallowed_methods)] // a test program
        let mut again = Command::new(format!("/proc/self/fd/{fd}"));
        Err(again.arg("try-one").arg(&s.stage).arg("write-truncate").exec())
    }),
    ("swap-links", Effect, |s| {
        let (swap, away) = (s.work.join("swap"), s.work.join("swap-away"));
        std::fs::create_dir(&swap)?;
        let (outside, other) = (s.outside.clone(), (swap.clone(), away));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..300 {
                    std::fs::rename(&other.0, &other.1).ok();
                    std::os::unix::fs::symlink(&outside, &other.0).ok();
                    std::fs::remove_file(&other.0).ok();
                    std::fs::rename(&other.1, &other.0).ok();
                }
            });
            for at in 0..300 {
                std::fs::write(swap.join(format!("new{at}")), "intruder").ok();
            }
        });
        Ok(())
    }),
];

/// A file of this attempt in the workspace.
fn make(scene: &Scene) -> io::Result<CString> {
    let path = scene.own("-own");
    write(open(&path, WRITE | libc::O_CREAT)?)?;
    Ok(path)
}

pub(crate) fn rename(old: &CString, new: &CString) -> io::Result<()> {
    let (old, new) = (old.as_ptr() as usize, new.as_ptr() as usize);
    call(libc::SYS_renameat2, &[HERE, old, HERE, new, 0]).map(drop)
}

pub(crate) fn link(old: &CString, new: &CString) -> io::Result<()> {
    let (old, new) = (old.as_ptr() as usize, new.as_ptr() as usize);
    call(libc::SYS_linkat, &[HERE, old, HERE, new, 0]).map(drop)
}

pub(crate) fn symlink(target: &std::ffi::CStr, new: &CString) -> io::Result<()> {
    let (target, new) = (target.as_ptr() as usize, new.as_ptr() as usize);
    call(libc::SYS_symlinkat, &[target, HERE, new]).map(drop)
}

fn chmod(path: &CString) -> io::Result<()> {
    call(libc::SYS_fchmodat, &[HERE, path.as_ptr() as usize, 0o777]).map(drop)
}

fn times(path: &CString, flags: i32) -> io::Result<()> {
    let times: [i64; 4] = [1, 0, 1, 0];
    let times = times.as_ptr() as usize;
    call(libc::SYS_utimensat, &[HERE, path.as_ptr() as usize, times, flags as usize]).map(drop)
}

fn node(path: &CString, mode: u32, dev: usize) -> io::Result<()> {
    call(libc::SYS_mknodat, &[HERE, path.as_ptr() as usize, mode as usize, dev]).map(drop)
}

/// The number of a disk of this machine.
pub(crate) fn disk() -> io::Result<usize> {
    let disks = std::fs::read_to_string("/proc/partitions")?;
    let mut fields = disks.lines().nth(2).unwrap_or_default().split_whitespace();
    let mut number = || fields.next().and_then(|it| it.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => Ok(libc::makedev(major, minor) as usize),
        _ => Err(io::Error::other("no disk")),
    }
}

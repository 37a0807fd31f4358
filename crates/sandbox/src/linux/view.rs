//! The file system as the command sees it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};

use super::plan::{Kind, Plan};
use super::sys::{self, NO_DEV, NO_EXEC, NO_SUID, READ_ONLY};

/// Devices that take nothing and give nothing away.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Which part of the view failed.
#[derive(Debug)]
pub(crate) enum Error {
    Mount(String, io::Error),
    Proc(io::Error),
}

type Result<T> = std::result::Result<T, Error>;

fn failed<T>(what: impl Into<String>, result: impl IntoResult<T>) -> Result<T> {
    result.into_result().map_err(|err| Error::Mount(what.into(), err))
}

/// Both kinds of results that occur here.
trait IntoResult<T> {
    fn into_result(self) -> io::Result<T>;
}

impl<T> IntoResult<T> for io::Result<T> {
    fn into_result(self) -> io::Result<T> {
        self
    }
}

impl<T> IntoResult<T> for rustix::io::Result<T> {
    fn into_result(self) -> io::Result<T> {
        self.map_err(Into::into)
    }
}

/// Builds the view in a mount namespace that is ours alone.
///
/// Everything that stays writable is taken aside as a copy of its mounts first. Then the whole tree
/// becomes read-only, and the copies are put back in their places. Nothing is created outside the
/// mounts made here.
pub(crate) fn build(plan: &Plan) -> Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    failed("no mounts of our own", mount_change("/", private))?;
    let mut aside = Vec::new();
    for (path, kind) in &plan.mounts {
        let attributes = match kind {
            Kind::Writable => NO_DEV | NO_SUID,
            Kind::ReadOnly => NO_DEV | NO_SUID | READ_ONLY,
            Kind::Hidden => continue,
        };
        let tree = failed(shown("cannot copy", path), copy(path, true))?;
        failed(shown("cannot fence", path), sys::set_attributes(tree.as_fd(), attributes, true))?;
        aside.push((path, tree));
    }
    let mut devices = Vec::new();
    for name in DEVICES {
        match copy(&Path::new("/dev").join(name), false) {
            Err(rustix::io::Errno::NOENT) => {}
            device => devices.push((name, failed(format!("cannot copy /dev/{name}"), device)?)),
        }
    }
    let root = failed("cannot open /", open("/".as_ref()))?;
    let all = READ_ONLY | NO_DEV | NO_SUID;
    failed("cannot make / read-only", sys::set_attributes(root.as_fd(), all, true))?;
    own_proc()?;
    own_dev(devices)?;
    for (path, tree) in aside {
        failed(shown("cannot show", path), attach(&tree, path))?;
    }
    hide(plan)
}

fn shown(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}

/// Opens a real path; a link that was put there meanwhile is an error.
fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

fn copy(path: &Path, whole_tree: bool) -> rustix::io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if whole_tree {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    open_tree(open(path)?, "", flags)
}

fn attach(tree: &OwnedFd, path: &Path) -> rustix::io::Result<()> {
    let both_are_open =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", open(path)?, "", both_are_open)
}

/// A `/proc` with the processes of our PID namespace only. Read-only as a whole: it has switches of
/// the machine (`/proc/sys`) that belong to the user when the user is root.
fn own_proc() -> Result<()> {
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|err| Error::Proc(err.into()))
}

/// A `/dev` with harmless devices, terminals of its own and shared memory of its own. A read-only
/// mount does not keep anybody from writing to a disk through its device.
fn own_dev(devices: Vec<(&str, OwnedFd)>) -> Result<()> {
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC;
    failed("cannot mount /dev", mount("dev", "/dev", "tmpfs", plain, Some(c"mode=755,size=1m")))?;
    let dev = Path::new("/dev");
    let make_file =
        |name: &str, mode| rustix::fs::mknodat(CWD, dev.join(name), FileType::RegularFile, mode, 0);
    let make_dir = |name: &str, mode| rustix::fs::mkdirat(CWD, dev.join(name), mode);
    for (name, device) in devices {
        failed("cannot fill /dev", make_file(name, Mode::empty()))?;
        failed("cannot fill /dev", attach(&device, &dev.join(name)))?;
        // So that nobody changes the mode of the real one.
        let attributes = READ_ONLY | NO_SUID | NO_EXEC;
        failed("cannot fence /dev", sys::set_attributes(device.as_fd(), attributes, false))?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        failed("cannot fill /dev", rustix::fs::symlinkat(target, CWD, dev.join(name)))?;
    }
    failed("cannot fill /dev", make_dir("pts", Mode::from_raw_mode(0o755)))?;
    failed("cannot fill /dev", make_dir("shm", Mode::from_raw_mode(0o755)))?;
    let terminals = Some(c"newinstance,ptmxmode=0666,mode=620");
    failed("cannot mount /dev/pts", mount("devpts", "/dev/pts", "devpts", plain, terminals))?;
    let memory = plain | MountFlags::NODEV;
    failed("cannot mount /dev/shm", mount("shm", "/dev/shm", "tmpfs", memory, Some(c"mode=1777")))?;
    Ok(())
}

/// Covers what is hidden with something empty that has no permissions, then closes `/dev`, where the
/// covers come from.
fn hide(plan: &Plan) -> Result<()> {
    let (file, dir) = (Path::new("/dev/.file"), Path::new("/dev/.dir"));
    let hidden: Vec<&Path> = plan
        .mounts
        .iter()
        .filter(|(_, kind)| *kind == Kind::Hidden)
        .map(|(path, _)| path.as_path())
        .collect();
    if !hidden.is_empty() {
        let made = rustix::fs::mknodat(CWD, file, FileType::RegularFile, Mode::empty(), 0);
        failed("cannot make a cover", made)?;
        failed("cannot make a cover", rustix::fs::mkdirat(CWD, dir, Mode::empty()))?;
        for path in hidden {
            let cover = if path.is_dir() { dir } else { file };
            let cover = failed(shown("cannot hide", path), copy(cover, false))?;
            let attributes = READ_ONLY | NO_SUID | NO_DEV | NO_EXEC;
            let fenced = sys::set_attributes(cover.as_fd(), attributes, false);
            failed(shown("cannot hide", path), fenced)?;
            failed(shown("cannot hide", path), attach(&cover, path))?;
        }
        failed(
            "cannot remove a cover",
            rustix::fs::unlinkat(CWD, file, rustix::fs::AtFlags::empty()),
        )?;
        failed(
            "cannot remove a cover",
            rustix::fs::unlinkat(CWD, dir, rustix::fs::AtFlags::REMOVEDIR),
        )?;
    }
    let dev = failed("cannot open /dev", open("/dev".as_ref()))?;
    failed("cannot close /dev", sys::set_attributes(dev.as_fd(), READ_ONLY, false))
}

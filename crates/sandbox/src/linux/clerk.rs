//! Making files on behalf of the command, all but those that must not be.
//!
//! Some names must not come into being below a writable root, and no mount can cover what is not
//! there. So Landlock forbids the command to make anything at all in the roots, and calls that would
//! make something are sent here by a filter. The clerk is PID 1 of the sandbox: it has the command's
//! user, groups and view of the file system, but not its Landlock rules. It does the call itself
//! unless the name is guarded.
//!
//! The command can change the memory a call points to after the clerk has read it. That gains
//! nothing: what the clerk does it does with its own copy, in a directory it holds open, and a call
//! it sends on (to open a file that is there) is still under the rules.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tieline_workspace::protected::folded;

use super::filter;
use super::plan::Plan;
use super::sys::{self, Answer, Question};

/// More links than this in a row are a circle; the kernel's own number.
const MOST_LINKS: u32 = 40;

/// What guards the names. Directories are known by device and number, so by whatever way a path
/// leads there.
pub(crate) struct Clerk {
    guarded: HashMap<(u64, u64), Vec<String>>,
}

/// Why a call is not done here.
enum Stop {
    /// The kernel shall see to it.
    Proceed,
    Failed(i32),
}

impl From<io::Error> for Stop {
    fn from(err: io::Error) -> Self {
        Self::Failed(err.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Stop {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Failed(errno.raw_os_error())
    }
}

/// The last name of a path and the directory it is in.
struct Place {
    dir: OwnedFd,
    name: CString,
}

impl Clerk {
    /// Looks the guarded directories up in the finished view.
    pub(crate) fn new(plan: &Plan) -> io::Result<Self> {
        let mut guarded = HashMap::new();
        for (dir, names) in &plan.guards {
            let stat = rustix::fs::stat(dir)?;
            guarded.insert((stat.st_dev, stat.st_ino), names.clone());
        }
        Ok(Self { guarded })
    }

    /// Does what a waiting call asks for, or says why not.
    pub(crate) fn answer(&self, question: &Question, listener: BorrowedFd<'_>) -> Answer {
        let thread = Thread { question, listener };
        match self.carry_out(&thread) {
            Ok(answer) => answer,
            Err(Stop::Proceed) => Answer::Proceed,
            Err(Stop::Failed(errno)) => Answer::Failed(errno),
        }
    }

    fn carry_out(&self, thread: &Thread<'_>) -> Result<Answer, Stop> {
        let [a, b, c, d, e, _] = thread.question.args;
        #[cfg(target_arch = "x86_64")]
        let here = libc::AT_FDCWD as u64;
        match thread.question.call {
            libc::SYS_openat => self.open(thread, (a, b), c, d),
            libc::SYS_mkdirat => self.make_dir(thread, (a, b), c),
            libc::SYS_mknodat => self.make_node(thread, (a, b), c, d),
            libc::SYS_symlinkat => self.make_link(thread, a, (b, c)),
            libc::SYS_linkat => self.link(thread, (a, b), (c, d), e),
            libc::SYS_renameat => self.rename(thread, (a, b), (c, d), 0),
            libc::SYS_renameat2 => self.rename(thread, (a, b), (c, d), e),
            libc::SYS_unlinkat => self.remove(thread, (a, b), c),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(thread, (here, a), b, c),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                self.open(thread, (here, a), flags as u64, b)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_dir(thread, (here, a), b),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => self.make_node(thread, (here, a), b, c),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.make_link(thread, a, (here, b)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.link(thread, (here, a), (here, b), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename(thread, (here, a), (here, b), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => self.remove(thread, (here, a), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => self.remove(thread, (here, a), libc::AT_REMOVEDIR as u64),
            _ => Err(Stop::Proceed),
        }
    }

    fn open(
        &self,
        thread: &Thread<'_>,
        path: (u64, u64),
        flags: u64,
        mode: u64,
    ) -> Result<Answer, Stop> {
        no_set_user(mode)?;
        let flags = flags as i32;
        if flags & (libc::O_PATH | libc::O_DIRECTORY) != 0 {
            return Err(Stop::Proceed);
        }
        let (mut dir, mut path) = thread.path(path)?;
        for _ in 0..MOST_LINKS {
            let place = thread.place(dir, &path)?;
            if place.name.to_bytes().ends_with(b"/") {
                return Err(Stop::Proceed);
            }
            match rustix::fs::statat(&place.dir, &*place.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) if flags & libc::O_EXCL != 0 => return Err(Stop::Failed(libc::EEXIST)),
                Ok(stat) if is_link(stat.st_mode) && flags & libc::O_NOFOLLOW == 0 => {
                    path = rustix::fs::readlinkat(&place.dir, &*place.name, Vec::new())?;
                    dir = place.dir;
                }
                Ok(_) => return Err(Stop::Proceed),
                Err(rustix::io::Errno::NOENT) => {
                    self.check(&place)?;
                    thread.take_umask()?;
                    let own = libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
                    match sys::open(place.dir.as_fd(), &place.name, flags | own, mode as u32) {
                        Ok(file) => {
                            let close_on_exec = flags & libc::O_CLOEXEC != 0;
                            return Ok(Answer::File { file, close_on_exec });
                        }
                        // Somebody was faster, and it is there now.
                        Err(err) if err.raw_os_error() == Some(libc::EEXIST) => {
                            return Err(match flags & libc::O_EXCL {
                                0 => Stop::Proceed,
                                _ => Stop::Failed(libc::EEXIST),
                            });
                        }
                        Err(err) => return Err(err.into()),
                    }
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(Stop::Failed(libc::ELOOP))
    }

    fn make_dir(&self, thread: &Thread<'_>, path: (u64, u64), mode: u64) -> Result<Answer, Stop> {
        no_set_user(mode)?;
        let place = self.checked_new(thread, path)?;
        thread.take_umask()?;
        rustix::fs::mkdirat(&place.dir, &*place.name, Mode::from_raw_mode(mode as u32))?;
        Ok(Answer::Done)
    }

    fn make_node(
        &self,
        thread: &Thread<'_>,
        path: (u64, u64),
        mode: u64,
        dev: u64,
    ) -> Result<Answer, Stop> {
        no_set_user(mode)?;
        let place = self.checked_new(thread, path)?;
        thread.take_umask()?;
        sys::make_node(place.dir.as_fd(), &place.name, mode as u32, dev)?;
        Ok(Answer::Done)
    }

    fn make_link(
        &self,
        thread: &Thread<'_>,
        target: u64,
        path: (u64, u64),
    ) -> Result<Answer, Stop> {
        let target = thread.string(target)?;
        let place = self.checked_new(thread, path)?;
        rustix::fs::symlinkat(&*target, &place.dir, &*place.name)?;
        Ok(Answer::Done)
    }

    fn link(
        &self,
        thread: &Thread<'_>,
        old: (u64, u64),
        new: (u64, u64),
        flags: u64,
    ) -> Result<Answer, Stop> {
        let place = self.checked_new(thread, new)?;
        let (old_dir, old) = thread.link_source(old, flags as i32)?;
        let follow = flags as i32 & (libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0;
        let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
        rustix::fs::linkat(old_dir, &*old, &place.dir, &*place.name, flags)?;
        Ok(Answer::Done)
    }

    fn rename(
        &self,
        thread: &Thread<'_>,
        old: (u64, u64),
        new: (u64, u64),
        flags: u64,
    ) -> Result<Answer, Stop> {
        let old = self.checked(thread, old)?;
        let new = self.checked(thread, new)?;
        sys::rename((old.dir.as_fd(), &old.name), (new.dir.as_fd(), &new.name), flags as u32)?;
        Ok(Answer::Done)
    }

    fn remove(&self, thread: &Thread<'_>, path: (u64, u64), flags: u64) -> Result<Answer, Stop> {
        let place = self.checked(thread, path)?;
        let flags = AtFlags::from_bits_retain(flags as u32);
        rustix::fs::unlinkat(&place.dir, &*place.name, flags)?;
        Ok(Answer::Done)
    }

    fn checked(&self, thread: &Thread<'_>, path: (u64, u64)) -> Result<Place, Stop> {
        let (dir, path) = thread.path(path)?;
        let place = thread.place(dir, &path)?;
        self.check(&place)?;
        Ok(place)
    }

    /// The same for something new. That it is there already is the better reason: `mkdir -p` waits
    /// for it.
    fn checked_new(&self, thread: &Thread<'_>, path: (u64, u64)) -> Result<Place, Stop> {
        let (dir, path) = thread.path(path)?;
        let place = thread.place(dir, &path)?;
        self.check(&place).map_err(|stop| {
            match rustix::fs::statat(&place.dir, &*place.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Stop::Failed(libc::EEXIST),
                Err(_) => stop,
            }
        })?;
        Ok(place)
    }

    /// Some file systems do not tell `.git` from `.GIT`.
    fn check(&self, place: &Place) -> Result<(), Stop> {
        let stat = rustix::fs::fstat(&place.dir)?;
        let Some(names) = self.guarded.get(&(stat.st_dev, stat.st_ino)) else { return Ok(()) };
        let name = place.name.to_bytes();
        let end = name.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        let name = folded(OsStr::from_bytes(name.get(..end).unwrap_or_default()));
        match names.contains(&name) {
            true => Err(Stop::Failed(libc::EACCES)),
            false => Ok(()),
        }
    }
}

/// The thread that waits for an answer.
struct Thread<'a> {
    question: &'a Question,
    listener: BorrowedFd<'a>,
}

impl Thread<'_> {
    fn string(&self, address: u64) -> Result<CString, Stop> {
        Ok(sys::read_string(self.question.thread, address)?)
    }

    fn proc(&self, rest: &str) -> String {
        format!("/proc/{}/{rest}", self.question.thread)
    }

    /// The directory a path begins at, and the path. What `/proc/self` means depends on who asks.
    fn path(&self, (dir, address): (u64, u64)) -> Result<(OwnedFd, CString), Stop> {
        let path = self.string(address)?;
        if path.is_empty() {
            return Err(Stop::Proceed);
        }
        let start = if path.to_bytes().starts_with(b"/") {
            "/".to_owned()
        } else if dir as i32 == libc::AT_FDCWD {
            self.proc("cwd")
        } else {
            self.proc(&format!("fd/{}", dir as i32))
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, start, flags, Mode::empty());
        // Only now is it known that the number still meant the thread that asked.
        if !sys::is_waiting(self.listener, self.question.id) {
            return Err(Stop::Proceed);
        }
        // No such descriptor, or no directory: the kernel finds the right word for it.
        Ok((opened.map_err(|_| Stop::Proceed)?, path))
    }

    /// Where the last name of a path is. Nothing is made in `/proc`, where `self` would be the
    /// clerk.
    fn place(&self, start: OwnedFd, path: &CStr) -> Result<Place, Stop> {
        let bytes = path.to_bytes();
        let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        let (whole, slashes) = bytes.split_at(end);
        let cut = whole.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (parent, name) = whole.split_at(cut);
        if matches!(name, b"" | b"." | b"..") {
            return Err(Stop::Proceed);
        }
        let parent = if parent.is_empty() { b"." } else { parent };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&start, parent, flags, Mode::empty())?;
        if rustix::fs::fstatfs(&dir)?.f_type == libc::PROC_SUPER_MAGIC {
            return Err(Stop::Proceed);
        }
        let mut name = name.to_vec();
        name.extend(slashes.first());
        let name = CString::new(name).map_err(|_| Stop::Failed(libc::EINVAL))?;
        Ok(Place { dir, name })
    }

    /// What a hard link is made to: a path, or a descriptor of a file without a name.
    fn link_source(
        &self,
        (dir, address): (u64, u64),
        flags: i32,
    ) -> Result<(OwnedFd, CString), Stop> {
        let path = self.string(address)?;
        let own = path.to_bytes().strip_prefix(b"/proc/self/");
        let through = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            self.proc(&format!("fd/{}", dir as i32))
        } else if let Some(rest) = own.and_then(|rest| std::str::from_utf8(rest).ok()) {
            self.proc(rest)
        } else {
            return self.path((dir, address));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
        Ok((root, CString::new(through).map_err(|_| Stop::Failed(libc::EINVAL))?))
    }

    /// From here on we make files with the mode the thread would make them with.
    fn take_umask(&self) -> Result<(), Stop> {
        let path = self.proc("status");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let status = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let mut text = [0; 256];
        let n = rustix::io::read(&status, &mut text)?;
        let text = String::from_utf8_lossy(text.get(..n).unwrap_or_default());
        let mask = text
            .lines()
            .find_map(|line| line.strip_prefix("Umask:"))
            .and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        sys::set_umask(mask.unwrap_or(0o077));
        Ok(())
    }
}

/// The filters say the same about calls that do not come here.
fn no_set_user(mode: u64) -> Result<(), Stop> {
    match mode & filter::SET_USER {
        0 => Ok(()),
        _ => Err(Stop::Failed(libc::EPERM)),
    }
}

fn is_link(mode: u32) -> bool {
    mode & libc::S_IFMT == libc::S_IFLNK
}

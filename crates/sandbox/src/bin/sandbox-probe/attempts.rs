//! Trying things one by one, each in a process of its own.

use std::ffi::CString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{files, others, sockets};

/// What is known about an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Works for every user without a sandbox, and must fail in one.
    Plain,
    /// Works for root without a sandbox, and must fail in one.
    Root,
    /// Depends on the machine, and must fail in a sandbox.
    Machine,
    /// Not to be tried without a sandbox, and must fail in one.
    Never,
    /// May seem to work; only its effects count.
    Effect,
    /// The network itself: works where there is one, else must fail.
    Network,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Root => "root",
            Self::Machine => "machine",
            Self::Never => "never",
            Self::Effect => "effect",
            Self::Network => "network",
        }
    }
}

/// Where an attempt is made.
pub(crate) struct Scene {
    /// A directory outside every root, for this attempt alone.
    pub(crate) outside: PathBuf,
    /// The writable root of the policies that have one, our current directory.
    pub(crate) work: PathBuf,
    /// What the test put down: ports, names, numbers.
    pub(crate) stage: PathBuf,
    pub(crate) name: &'static str,
}

impl Scene {
    pub(crate) fn file(&self) -> CString {
        text(self.outside.join("file"))
    }

    pub(crate) fn at(&self, name: &str) -> CString {
        text(self.outside.join(name))
    }

    /// A name in the workspace that only this attempt uses.
    pub(crate) fn own(&self, suffix: &str) -> CString {
        text(self.work.join(format!("{}{suffix}", self.name)))
    }

    /// A number the test wrote down.
    pub(crate) fn number(&self, name: &str) -> io::Result<usize> {
        let path = self.stage.join("numbers").join(name);
        std::fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
    }
}

pub(crate) type Attempt = (&'static str, Kind, fn(&Scene) -> io::Result<()>);

fn all() -> impl Iterator<Item = Attempt> {
    [files::ATTEMPTS, others::ATTEMPTS, sockets::ATTEMPTS].concat().into_iter()
}

/// The names of all attempts.
pub(crate) fn list() -> io::Result<()> {
    all().try_for_each(|(name, _, _)| writeln!(io::stdout(), "{name}"))
}

/// Says of each attempt: name, kind, `done` or why not.
#[allow(clippy::disallowed_methods)] // a test program
pub(crate) fn try_all(stage: &Path) -> io::Result<()> {
    let skip_never = std::env::var_os("SANDBOX_PROBE_OPEN").is_some();
    let mut out = io::stdout();
    for (name, kind, _) in all() {
        if kind == Kind::Never && skip_never {
            continue;
        }
        let output = Command::new(std::env::current_exe()?)
            .arg("try-one")
            .args([stage.as_os_str(), name.as_ref()])
            .stdin(Stdio::inherit())
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let said = if said.is_empty() { output.status.to_string() } else { said };
        writeln!(out, "{name}\t{}\t{said}", kind.name())?;
    }
    Ok(())
}

pub(crate) fn try_one(stage: &Path, name: &str) -> io::Result<()> {
    let Some((name, _, attempt)) = all().find(|it| it.0 == name) else {
        return Err(io::Error::other("no such attempt"));
    };
    let outside = stage.join("outside").join(name);
    let scene = Scene { outside, work: stage.join("work"), stage: stage.to_owned(), name };
    match attempt(&scene) {
        Ok(()) => writeln!(io::stdout(), "done"),
        Err(err) => writeln!(io::stdout(), "{err}"),
    }
}

/// A system call with any arguments; pointers are numbers here.
pub(crate) fn call(number: i64, args: &[usize]) -> io::Result<usize> {
    let arg = |at: usize| args.get(at).copied().unwrap_or(0);
    // SAFETY: every pointer handed over in this program comes from a value that lives through the
    // call and is as long as the call expects.
    let result = unsafe { libc::syscall(number, arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

pub(crate) fn text(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap_or_default()
}

pub(crate) const HERE: usize = libc::AT_FDCWD as usize;

/// Opens with `openat`.
pub(crate) fn open(path: &CString, flags: i32) -> io::Result<usize> {
    call(libc::SYS_openat, &[HERE, path.as_ptr() as usize, flags as usize, 0o644])
}

/// Writes a word to a descriptor.
pub(crate) fn write(fd: usize) -> io::Result<()> {
    let bytes = b"intruder\n";
    call(libc::SYS_write, &[fd, bytes.as_ptr() as usize, bytes.len()]).map(drop)
}

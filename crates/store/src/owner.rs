//! Who holds conversations: one locked file for each process that does.
//!
//! The kernel drops the lock when the process ends, however it ends, so a lease whose owner's file
//! can be locked belongs to a dead process.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};
use tieline_event::Timestamp;

use crate::error::Error;
use crate::files::OWNERS;
use crate::private::create_private;

/// A process that holds conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its process id; 0 when its file could not be read.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The machine.
    pub host: String,
    /// Since when it has been an owner.
    pub since: Timestamp,
}

impl Owner {
    pub(crate) fn me() -> Self {
        let program = std::env::args_os().next().map(PathBuf::from);
        let name = program.as_deref().and_then(Path::file_name).unwrap_or_default();
        Self {
            pid: std::process::id(),
            program: one_line(&name.to_string_lossy()),
            host: one_line(&rustix::system::uname().nodename().to_string_lossy()),
            since: Timestamp::now(),
        }
    }

    /// Whether there is surely no such process any more. It may run where we cannot see it.
    fn is_gone(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        let is_gone = |pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        self.host == Self::me().host && pid.is_some_and(is_gone)
    }

    fn to_text(&self) -> String {
        let Self { pid, program, host, since } = self;
        let millis = since.as_millis();
        format!("pid {pid}\nprogram {program}\nhost {host}\nsince {millis}\nstarted {since}\n")
    }

    fn from_text(text: &str) -> Self {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
                .unwrap_or_default()
        };
        Self {
            pid: field("pid").parse().unwrap_or(0),
            program: field("program").to_owned(),
            host: field("host").to_owned(),
            since: Timestamp::from_millis(field("since").parse().unwrap_or(0)),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, program, host, since } = self;
        write!(f, "process {pid} ({program} on {host}, since {since})")
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// This process as an owner: its file stays locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) id: Arc<str>,
    path: PathBuf,
    _lock: File,
}

impl Registration {
    /// Makes and locks a file under an id that nobody has had.
    pub(crate) fn new(dir: &Path, id: &str) -> Result<Self, Error> {
        let path = lock_path(dir, id);
        let register = || -> io::Result<Option<File>> {
            let mut file = create_private(&path)?;
            if !lock(&file, FlockOperation::NonBlockingLockExclusive)?
                || file.metadata()?.nlink() == 0
            {
                return Ok(None);
            }
            file.write_all(Owner::me().to_text().as_bytes())?;
            Ok(Some(file))
        };
        match register().map_err(Error::file("create", &path))? {
            Some(lock) => Ok(Self { id: id.into(), path, _lock: lock }),
            // Somebody who was clearing up took our new file for a dead owner's.
            None => Err(Error::file("lock", &path)(io::ErrorKind::WouldBlock.into())),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Err(err) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %err, "own lock file was gone already");
        }
    }
}

/// The living process behind an owner id, if there is one. A dead one's file is removed.
pub(crate) fn living(dir: &Path, id: &str) -> Result<Option<Owner>, Error> {
    let path = lock_path(dir, id);
    let mut n_looks = 0;
    loop {
        match probe(&path, Probe::Remove) {
            // What a process was starting when it was killed has the lock until it becomes a
            // program of its own, which is a matter of moments.
            Ok(State::Living(owner)) if n_looks < LOOKS && owner.is_gone() => {
                n_looks += 1;
                std::thread::sleep(LOOK_PAUSE);
            }
            Ok(State::Living(owner)) => return Ok(Some(owner)),
            Ok(State::Dead | State::Gone) => return Ok(None),
            Err(err) => return Err(Error::file("look at", &path)(err)),
        }
    }
}

/// How often, and how long in between, the lock of a process that is gone is looked at again.
const LOOKS: u32 = 100;
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// Counts the files of dead owners, and removes them unless told only to look.
pub(crate) fn sweep(dir: &Path, probe_mode: Probe) -> Result<u64, Error> {
    let owners = dir.join(OWNERS);
    let mut n_dead = 0;
    for entry in owners.read_dir().map_err(Error::file("read", &owners))? {
        let path = entry.map_err(Error::file("read", &owners))?.path();
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        match probe(&path, probe_mode) {
            Ok(State::Dead) => n_dead += 1,
            Ok(State::Living(_) | State::Gone) => {}
            Err(err) => return Err(Error::file("look at", &path)(err)),
        }
    }
    Ok(n_dead)
}

/// What to do with a dead owner's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Keep,
    Remove,
}

enum State {
    Living(Owner),
    Dead,
    Gone,
}

fn probe(path: &Path, mode: Probe) -> io::Result<State> {
    let how = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(how.bits().cast_signed()).open(path)
    {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(State::Gone),
        Err(err) => return Err(err),
    };
    // Shared, so that two who look at the same time do not take each other for the owner.
    if !lock(&file, FlockOperation::NonBlockingLockShared)? {
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text)?;
        return Ok(State::Living(Owner::from_text(&text)));
    }
    if mode == Probe::Remove {
        match std::fs::remove_file(path) {
            // Where only reading is possible, dead owners stay.
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                tracing::debug!(path = %path.display(), %err, "a dead owner's file stays");
            }
            _ => {}
        }
    }
    Ok(State::Dead)
}

/// Takes the lock if nobody stands in the way.
fn lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, operation) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

fn lock_path(dir: &Path, id: &str) -> PathBuf {
    dir.join(OWNERS).join(format!("{id}.lock"))
}

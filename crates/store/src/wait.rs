//! Waiting for a database that another process is writing to, and who that is.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::error::Error;

/// A wait of this length is told.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// Who has just waited in vain for the whole time tries again only this long: a conversation that is
/// given up has many small things to write before its process can end.
const SPENT: Duration = Duration::from_millis(500);

/// How long a wait in vain counts.
const SPENT_FOR: Duration = Duration::from_secs(15);

/// Between two looks at the lock, first and last.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(25));

thread_local! {
    static WAIT: RefCell<Option<Wait>> = const { RefCell::new(None) };
}

/// Has the connection, which belongs to this thread from now on, wait for others who write.
pub(crate) fn wait_for_others(
    connection: &mut Connection,
    database: &Path,
    patience: Duration,
) -> Result<(), Error> {
    let wait = Wait {
        database: database.to_owned(),
        patience,
        began: Instant::now(),
        is_told: false,
        in_vain: None,
    };
    WAIT.set(Some(wait));
    Ok(connection.busy_handler(Some(|n_looks| {
        WAIT.with_borrow_mut(|wait| wait.as_mut().is_some_and(|wait| wait.goes_on(n_looks)))
    }))?)
}

struct Wait {
    database: PathBuf,
    patience: Duration,
    began: Instant,
    is_told: bool,
    /// When somebody last waited for the whole time.
    in_vain: Option<Instant>,
}

impl Wait {
    /// Sleeps a little and says whether to look at the lock again.
    fn goes_on(&mut self, n_looks: i32) -> bool {
        let now = Instant::now();
        if n_looks == 0 {
            self.began = now;
            self.is_told = false;
        }
        let waited = now.duration_since(self.began);
        if waited >= self.limit(now) {
            self.in_vain = Some(now);
            return false;
        }
        if waited >= TELL_AFTER && !self.is_told {
            self.is_told = true;
            match Holder::of(&self.database) {
                Some(holder) => {
                    tracing::warn!("waiting for the database, which is locked by {holder}")
                }
                None => {
                    tracing::warn!("waiting for the database, which another process keeps locked")
                }
            }
        }
        let pause = PAUSE.0.saturating_mul(1 << n_looks.clamp(0, 8)).min(PAUSE.1);
        std::thread::sleep(pause);
        true
    }

    fn limit(&self, now: Instant) -> Duration {
        match self.in_vain {
            Some(at) if now.duration_since(at) < SPENT_FOR => self.patience.min(SPENT),
            _ => self.patience,
        }
    }
}

/// The process that writes to a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// Whether it stands still and will hold the lock until somebody continues it.
    pub is_stopped: bool,
}

impl Holder {
    /// The process that holds the lock now, where the system tells.
    pub(crate) fn of(database: &Path) -> Option<Self> {
        let pid = lock::holder(database)?;
        let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The program's name is in parentheses and may contain anything.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let state = stat.get(name_end + 1..)?.iter().find(|byte| !byte.is_ascii_whitespace())?;
        Some(Self {
            pid,
            program: program.trim_end().chars().filter(|c| !c.is_control()).collect(),
            is_stopped: matches!(state, b'T' | b't'),
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, program, is_stopped } = self;
        write!(f, "process {pid} ({program})")?;
        match is_stopped {
            true => write!(f, ", which is stopped; `kill -CONT {pid}` continues it"),
            false => Ok(()),
        }
    }
}

#[cfg(target_os = "linux")]
mod lock {
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use crate::files::with_suffix;

    /// The byte that a writer locks in the file beside the log; part of SQLite's file format.
    const WRITE_LOCK: u64 = 120;

    /// The kernel's list is read and no file is opened: closing one would drop our own locks on it.
    pub(super) fn holder(database: &Path) -> Option<u32> {
        let shared = std::fs::metadata(with_suffix(database, "-shm")).ok()?;
        let inode = shared.ino().to_string();
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| holder_in(line, &inode))
    }

    /// A line is `1: POSIX  ADVISORY  WRITE 123 fe:01:4711 120 120`. The numbers of devices are not
    /// those that files have on every file system, so only the inode is compared.
    fn holder_in(line: &str, inode: &str) -> Option<u32> {
        let (kind, rest) = line.split_once(" WRITE ")?;
        let mut words = rest.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        let file = words.next()?.rsplit(':').next()?;
        let first: u64 = words.next()?.parse().ok()?;
        let last: u64 = words.next()?.parse().unwrap_or(u64::MAX);
        let is_writer = kind.contains("POSIX") && file == inode;
        (is_writer && (first..=last).contains(&WRITE_LOCK)).then_some(pid)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_writer_is_found_in_the_kernels_list() {
            let line = "1: POSIX  ADVISORY  WRITE 123 fe:01:4711 120 120";
            assert_eq!(holder_in(line, "4711"), Some(123));
            assert_eq!(holder_in(line, "471"), None);
            assert_eq!(holder_in("1: POSIX  ADVISORY  READ 123 fe:01:4711 120 120", "4711"), None);
            assert_eq!(holder_in("1: POSIX  ADVISORY  WRITE 123 fe:01:4711 123 123", "4711"), None);
            assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 9 00:2e:4711 0 EOF", "4711"), None);
            assert_eq!(holder_in("1: POSIX  ADVISORY  WRITE 9 00:2e:4711 0 EOF", "4711"), Some(9));
            assert_eq!(holder_in("", "4711"), None);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod lock {
    use std::path::Path;

    pub(super) fn holder(_: &Path) -> Option<u32> {
        None
    }
}

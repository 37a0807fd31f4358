//! The one thread that starts and reaps hosts.
//!
//! It is permanent: a parent death signal is bound to the thread that spawned, not to the process,
//! and a thread of a runtime's pool may end at any time. It alone knows which of our children are
//! hosts, so it can tell the orphans of a lost host from them without a race.

use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};
use tokio::sync::oneshot;

use crate::{host, sys};

static HOST_PROGRAM: Mutex<Option<PathBuf>> = Mutex::new(None);
static ADOPTING: AtomicBool = AtomicBool::new(false);
static REQUESTS: Mutex<Option<mpsc::Sender<Request>>> = Mutex::new(None);

/// How long a host that was let go may take to kill its tree before it is killed itself. More than
/// it allows itself.
const RELEASE_LIMIT: Duration = Duration::from_secs(22);

/// How long orphans of a lost host are hunted.
#[cfg(target_os = "linux")]
const HUNT_LIMIT: Duration = Duration::from_secs(2);

/// Chooses which executable serves as host, for processes whose own `main` does not begin with
/// [`init`](crate::init). By default it is the running executable itself.
pub fn set_host_program(path: PathBuf) {
    *HOST_PROGRAM.lock().unwrap_or_else(PoisonError::into_inner) = Some(path);
}

/// Makes this process the parent of what a lost host leaves behind.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        ADOPTING.store(true, Ordering::Relaxed);
    }
}

/// A started host and our ends of everything. Dropping it ends the tree.
pub(crate) struct Started<E> {
    pub(crate) control: UnixStream,
    pub(crate) ends: E,
    pub(crate) host: HostHandle,
}

/// Starts a host that waits for its spec. `open` gives our ends of the streams and those of the
/// process to be started. It is called on the spawner's thread: where a descriptor cannot be opened
/// and marked at once, no host is started in between.
pub(crate) async fn start<E: Send + 'static>(
    open: impl FnOnce() -> io::Result<(E, [OwnedFd; 3])> + Send + 'static,
) -> io::Result<Started<E>> {
    let (reply, started) = oneshot::channel();
    send(Request::Start(Box::new(move |spawner| {
        // A caller that went away drops the result, and that ends the host.
        reply.send(open().and_then(|(ends, its)| spawner.start(ends, its))).ok();
    })))?;
    started.await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?
}

/// The right to have a host reaped.
pub(crate) struct HostHandle {
    pid: i32,
    released: AtomicBool,
}

impl HostHandle {
    /// Tells the thread that the control socket is closed or ended and the host has to be reaped.
    pub(crate) fn release(&self) {
        if !self.released.swap(true, Ordering::Relaxed) {
            self.tell(Request::Release(self.pid));
        }
    }

    /// Continues the host, which its agent may have stopped, so that it takes the orders it was given.
    /// One that has not ended after `limit` is killed.
    pub(crate) fn resume(&self, limit: Option<Duration>) {
        self.tell(Request::Resume(self.pid, limit));
    }

    /// Kills a host that does not do its work. Its agent dies with it, the rest is hunted.
    pub(crate) fn kill(&self) {
        self.tell(Request::Kill(self.pid));
    }

    fn tell(&self, request: Request) {
        if let Err(err) = send(request) {
            tracing::error!(pid = self.pid, %err, "the spawner thread is gone");
        }
    }
}

impl Drop for HostHandle {
    fn drop(&mut self) {
        self.release();
    }
}

/// The channel has no capacity limit because `Drop` sends into it and must not wait. What it can
/// hold is limited all the same: one start for each waiting caller, two more for each host and one
/// for each order.
enum Request {
    Start(Box<dyn FnOnce(&mut Spawner) + Send>),
    Release(i32),
    Resume(i32, Option<Duration>),
    Kill(i32),
}

fn send(request: Request) -> io::Result<()> {
    let mut requests = REQUESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let sender = match &*requests {
        Some(sender) => sender,
        None => {
            let (sender, receiver) = mpsc::channel();
            let thread = std::thread::Builder::new().name("spawner".into());
            thread.spawn(move || Spawner::default().run(&receiver))?;
            requests.insert(sender)
        }
    };
    sender.send(request).map_err(|_| io::ErrorKind::BrokenPipe.into())
}

#[derive(Default)]
struct Spawner {
    /// Every host that has not been reaped.
    hosts: BTreeMap<i32, Times>,
}

/// What is known of a host's end.
#[derive(Default)]
struct Times {
    /// When it was released, so that it should end.
    released: Option<Instant>,
    /// When it is killed unless it has ended.
    kill_at: Option<Instant>,
}

impl Spawner {
    fn run(&mut self, requests: &mpsc::Receiver<Request>) {
        let mut pause = Duration::from_millis(1);
        loop {
            let request = match self.next_look(pause) {
                Some(pause) => requests.recv_timeout(pause),
                None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            pause = (pause * 2).min(Duration::from_millis(20));
            match request {
                Ok(Request::Start(start)) => start(self),
                Ok(Request::Release(pid)) => {
                    pause = Duration::from_millis(1);
                    if let Some(times) = self.hosts.get_mut(&pid) {
                        times.released = Some(Instant::now());
                        resume(pid);
                    }
                }
                Ok(Request::Resume(pid, limit)) => {
                    if let Some(times) = self.hosts.get_mut(&pid) {
                        let kill_at = limit.and_then(|limit| Instant::now().checked_add(limit));
                        times.kill_at = times.kill_at.or(kill_at).min(kill_at.or(times.kill_at));
                        resume(pid);
                    }
                }
                Ok(Request::Kill(pid)) => self.kill(pid),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.kill_overdue();
            self.reap();
        }
    }

    /// When to look at the hosts again, if any of them should end.
    fn next_look(&self, pause: Duration) -> Option<Duration> {
        if self.hosts.values().any(|times| times.released.is_some()) {
            return Some(pause);
        }
        let first = self.hosts.values().filter_map(|times| times.kill_at).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// Kills the hosts that were to end and have not: their agents keep them stopped.
    fn kill_overdue(&mut self) {
        let now = Instant::now();
        let is_due = |times: &Times| times.kill_at.is_some_and(|at| at <= now);
        let due = self.hosts.iter().filter(|(_, times)| is_due(times)).map(|(pid, _)| *pid);
        for pid in due.collect::<Vec<_>>() {
            tracing::warn!(pid, "a host process does not do as it was told and is killed");
            self.kill(pid);
            if let Some(times) = self.hosts.get_mut(&pid) {
                times.kill_at = None;
            }
        }
    }

    fn start<E>(
        &mut self,
        ends: E,
        [stdin, stdout, stderr]: [OwnedFd; 3],
    ) -> io::Result<Started<E>> {
        let (program, env) = (host_program()?, loader_variables());
        let (control, host_control) = UnixStream::pair()?;
        // Sources must lie above the targets 0 to 3, or one would overwrite another.
        let above = |fd: OwnedFd| rustix::io::fcntl_dupfd_cloexec(&fd, 4);
        let streams = [above(stdin)?, above(stdout)?, above(stderr)?];
        let host_control = above(host_control.into())?;
        let pid = sys::spawn_host(
            &program,
            &[c"tieline", host::MARKER],
            &env.iter().map(CString::as_c_str).collect::<Vec<&CStr>>(),
            streams.each_ref().map(AsFd::as_fd),
            host_control.as_fd(),
        )?;
        self.hosts.insert(pid, Times::default());
        let host = HostHandle { pid, released: AtomicBool::new(false) };
        Ok(Started { control, ends, host })
    }

    fn kill(&self, pid: i32) {
        // A pid in the table has not been reaped, so the number is still the host's.
        if self.hosts.contains_key(&pid)
            && let Err(err) = sys::kill(pid, libc::SIGKILL)
        {
            tracing::error!(pid, %err, "cannot kill a host process");
        }
    }

    fn reap(&mut self) {
        let mut lost = false;
        let released = self.hosts.iter().filter_map(|(pid, times)| Some((*pid, times.released?)));
        for (pid, since) in released.collect::<Vec<_>>() {
            let Some(pid_to_reap) = Pid::from_raw(pid) else { continue };
            match waitpid(Some(pid_to_reap), WaitOptions::NOHANG) {
                Ok(None) if since.elapsed() > RELEASE_LIMIT => self.kill(pid),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Ok(Some((_, status))) => {
                    self.hosts.remove(&pid);
                    if status.exit_status() != Some(0) {
                        tracing::warn!(pid, "a host process did not end by itself");
                        lost = true;
                    }
                }
                // Somebody ignores `SIGCHLD` and the system reaped it, so nobody knows how it ended.
                Err(_) => {
                    self.hosts.remove(&pid);
                    lost = true;
                }
            }
        }
        if lost && ADOPTING.load(Ordering::Relaxed) {
            self.hunt_orphans();
        }
    }

    /// Kills the orphans of a lost host: every child that is not a host and was not started by this
    /// program itself. While this runs nobody starts a host, so there is no child we could mistake.
    #[cfg(target_os = "linux")]
    fn hunt_orphans(&self) {
        let deadline = Instant::now() + HUNT_LIMIT;
        let mut killed = BTreeSet::new();
        loop {
            let mut hosts = crate::detach::detached();
            hosts.extend(self.hosts.keys());
            hosts.extend(crate::tree::never_adopted());
            crate::tree::kill_descendants(&hosts, &mut killed);
            let mut orphans = crate::tree::own_children();
            orphans.retain(|pid| !hosts.contains(pid));
            if orphans.is_empty() {
                break;
            }
            for pid in orphans {
                // A child that is still there is found again in the next round.
                waitpid(Pid::from_raw(pid), WaitOptions::NOHANG).ok();
            }
            if Instant::now() > deadline {
                tracing::error!("orphans of a lost host process are left");
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if !killed.is_empty() {
            tracing::warn!(n_killed = killed.len(), "killed the orphans of a lost host process");
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn hunt_orphans(&self) {}
}

/// Lets a host go on that somebody stopped; on one that runs it has no effect. The number must be that
/// of a host that has not been reaped.
fn resume(pid: i32) {
    if let Err(err) = sys::kill(pid, libc::SIGCONT) {
        tracing::debug!(pid, %err, "a host process cannot be continued");
    }
}

fn host_program() -> io::Result<CString> {
    let chosen = HOST_PROGRAM.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let path = match chosen {
        Some(path) => path,
        // The link leads to the running executable even after an update replaced the file, so host
        // and supervisor are always the same version.
        None if cfg!(target_os = "linux") => "/proc/self/exe".into(),
        None => std::env::current_exe()?,
    };
    Ok(CString::new(path.into_os_string().into_vec())?)
}

/// The host needs no environment but what its loader needs to find libraries.
fn loader_variables() -> Vec<CString> {
    let names = ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"];
    let variables = names.into_iter().filter_map(|name| {
        let mut pair = format!("{name}=").into_bytes();
        pair.extend(std::env::var_os(name)?.into_vec());
        CString::new(pair).ok()
    });
    variables.collect()
}

//! The host: the small process between us and one agent.
//!
//! It runs before anything else in `main`, has one thread and no runtime, and is not in the path of
//! the agent's data.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, WaitStatus};

use crate::message::{LEN, Order, Report, Step};
use crate::spec::Image;
use crate::sys;

/// The first argument that makes a process a host.
pub(crate) const MARKER: &std::ffi::CStr = c"__tieline-host";

/// How long the rest of the leader's group may still clean up after the leader has ended. Less than
/// any grace: what ignores `SIGTERM` would otherwise make every close last the whole of it.
const LINGER: Duration = Duration::from_millis(100);

/// How long the host tries to kill a tree before it says how many are left. Less than what the other
/// side waits after the grace.
const KILL_LIMIT: Duration = Duration::from_millis(1500);

/// The same when nobody listens any more.
const ABANDONED_LIMIT: Duration = Duration::from_secs(20);

/// Must be the first line of `main` in any binary that uses this crate: if this process was started
/// to be a host it becomes one and never returns.
///
/// Otherwise it makes this process the reaper of orphaned descendants (Linux), so that what a lost
/// host leaves behind can be found and killed.
pub fn init() {
    if std::env::args_os().nth(1).is_some_and(|arg| arg.as_encoded_bytes() == MARKER.to_bytes()) {
        // Anything but zero makes the other side look for orphans.
        std::process::exit(match serve() {
            Ok(0) => 0,
            Ok(_) | Err(_) => 1,
        });
    }
    sys::give_back_memory();
    crate::spawner::adopt_orphans();
}

/// Hosts one agent and returns how many of its descendants could not be killed.
fn serve() -> io::Result<u32> {
    let control = sys::adopt_control().ok_or(io::ErrorKind::NotConnected)?;
    sys::prepare_signals();
    // Where `posix_spawn` could not do it; where it did, this fails.
    rustix::process::setsid().ok();
    sys::close_from(4);
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // The agent may stop us. When the other side dies we go on, and see the end of the socket.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT)).ok();
        // Only for `ps`: the kernel would call us `exe`, after the link we were started through.
        rustix::thread::set_name(c"tieline-host").ok();
    }
    let mut control = UnixStream::from(control);
    let body = read_spec(&mut control)?;
    let leader = match start(&body)? {
        Ok(leader) => leader,
        Err(failed) => return control.write_all(&failed.encode()).map(|()| 0),
    };
    drop(body);
    // Our own directory must not keep a file system busy.
    std::env::set_current_dir("/").ok();
    control.set_nonblocking(true)?;
    let mut host = Host {
        control,
        inbox: Vec::new(),
        leader: Some(leader),
        #[cfg(not(target_os = "linux"))]
        group: leader,
        n_killed: 0,
        deadline: None,
    };
    host.report(Report::Spawned(leader.cast_unsigned()));
    Ok(host.run())
}

fn read_spec(control: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    control.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as u64;
    let mut body = Vec::new();
    control.take(len).read_to_end(&mut body)?;
    if body.len() as u64 == len { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Forks the agent and waits until it is executed. The inner error is what to report.
fn start(body: &[u8]) -> io::Result<Result<i32, Report>> {
    let image = Image::decode(body).ok_or(io::ErrorKind::InvalidData)?;
    let (mut failure, exec_failed) = io::pipe()?;
    let pid = match sys::fork_agent(&image, exec_failed.as_fd()) {
        Ok(pid) => pid,
        Err(err) => {
            let errno = err.raw_os_error().unwrap_or(0);
            return Ok(Err(Report::Failed { step: Step::Fork, errno }));
        }
    };
    drop(exec_failed);
    sys::release_streams();
    let mut bytes = Vec::new();
    failure.read_to_end(&mut bytes)?;
    let Some((step, errno)) = bytes.split_first_chunk::<4>() else { return Ok(Ok(pid)) };
    let errno = errno.try_into().map_or(0, i32::from_le_bytes);
    let step = Step::from_number(i32::from_le_bytes(*step)).unwrap_or(Step::Execute);
    Ok(Err(Report::Failed { step, errno }))
}

struct Host {
    control: UnixStream,
    inbox: Vec<u8>,
    /// The agent until it has been reaped; after that its number may belong to somebody else.
    leader: Option<i32>,
    #[cfg(not(target_os = "linux"))]
    group: i32,
    n_killed: u32,
    /// When the tree is killed, once a stop was ordered.
    deadline: Option<Instant>,
}

/// Whether we have children, after reaping.
#[derive(PartialEq)]
enum Children {
    Some,
    None,
}

/// What the control socket brought.
enum Input {
    Orders,
    /// The other side closed it, died or sent nonsense.
    End,
}

impl Host {
    fn run(&mut self) -> u32 {
        loop {
            if self.reap() == Children::None && self.is_group_empty() {
                self.report(Report::Gone { killed: self.n_killed, left: 0 });
                return 0;
            }
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                let left = self.kill_tree(KILL_LIMIT);
                self.report(Report::Gone { killed: self.n_killed, left });
                return left;
            }
            let timeout = self.deadline.map(|deadline| deadline - now);
            if sys::wait(Some(self.control.as_fd()), timeout)
                && let Input::End = self.obey()
            {
                return self.kill_tree(ABANDONED_LIMIT);
            }
        }
    }

    fn obey(&mut self) -> Input {
        let mut buffer = [0; 16 * LEN];
        match self.control.read(&mut buffer) {
            Ok(0) => return Input::End,
            Ok(n) => self.inbox.extend_from_slice(&buffer[..n]),
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => return Input::Orders,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => return Input::Orders,
            Err(_) => return Input::End,
        }
        while let Some((bytes, rest)) = self.inbox.split_first_chunk::<LEN>() {
            let Some(order) = Order::decode(*bytes) else { return Input::End };
            self.inbox = rest.to_vec();
            match order {
                Order::Signal(signal) => self.signal_leader(signal),
                Order::Kill => self.deadline = Some(Instant::now()),
                Order::Stop(grace) => self.begin_stop(Duration::from_millis(grace.into())),
            }
        }
        Input::Orders
    }

    fn signal_leader(&self, signal: i32) {
        if let Some(leader) = self.leader {
            // It may have ended already; its exit is what gets reported then.
            sys::kill(leader, signal).ok();
        }
    }

    fn begin_stop(&mut self, grace: Duration) {
        let grace = if let Some(leader) = self.leader {
            // A stopped process acts on `SIGTERM` only once it runs again.
            sys::kill(-leader, libc::SIGTERM).ok();
            sys::kill(-leader, libc::SIGCONT).ok();
            grace
        } else {
            Duration::ZERO
        };
        let deadline = Instant::now() + grace;
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
    }

    /// Reaps whoever ended, orphans that were handed to us too.
    fn reap(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.leader == Some(pid.as_raw_nonzero().get()) {
                        self.leader_ended(status);
                    }
                }
                Ok(None) => return Children::Some,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Children::None,
            }
        }
    }

    fn leader_ended(&mut self, status: WaitStatus) {
        self.leader = None;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => self.report(Report::Exited(code)),
            (None, signal) => self.report(Report::Signaled(signal.unwrap_or(libc::SIGKILL))),
        }
        let lingering = Instant::now() + LINGER;
        self.deadline = self.deadline.map(|deadline| deadline.min(lingering));
    }

    /// Kills all descendants and says how many are left at the end of `limit`: processes of other
    /// users and processes stuck in the kernel.
    #[cfg(target_os = "linux")]
    fn kill_tree(&mut self, limit: Duration) -> u32 {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        let mut killed = BTreeSet::new();
        let leader = self.leader;
        let left = loop {
            crate::tree::kill_descendants(&BTreeSet::new(), &mut killed);
            // The killed end within microseconds, but each ends on its own.
            let pass_end = Instant::now() + pause;
            while self.reap() == Children::Some && Instant::now() < pass_end {
                sys::wait(None, Some(pass_end.saturating_duration_since(Instant::now())));
            }
            if self.reap() == Children::None {
                break 0;
            }
            if Instant::now() >= deadline {
                break crate::tree::own_children().len();
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        self.n_killed = count(killed.iter().filter(|pid| Some(**pid) != leader).count());
        count(left)
    }

    /// Here orphans become our children, so having no child means that nobody is left.
    #[cfg(target_os = "linux")]
    fn is_group_empty(&self) -> bool {
        true
    }

    #[cfg(not(target_os = "linux"))]
    fn is_group_empty(&self) -> bool {
        sys::kill(-self.group, 0).is_err()
    }

    /// Without lists of children the group is all that can be reached.
    #[cfg(not(target_os = "linux"))]
    fn kill_tree(&mut self, limit: Duration) -> u32 {
        let deadline = Instant::now() + limit;
        sys::kill(-self.group, libc::SIGKILL).ok();
        while self.reap() == Children::Some {
            let Some(rest) = deadline.checked_duration_since(Instant::now()) else { return 1 };
            sys::wait(None, Some(rest));
        }
        0
    }

    /// If nobody listens any more the next read says so, and that is acted upon.
    fn report(&mut self, report: Report) {
        self.control.write_all(&report.encode()).ok();
    }
}

#[cfg(target_os = "linux")]
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

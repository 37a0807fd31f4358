//! Probes and how the tests look at them.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tieline_proc::{Child, Spec};

/// The longest that anything in these tests may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// The variable that every descendant of a marked probe carries in its environment.
const MARK: &str = "PROC_PROBE_MARK";

pub(crate) fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_proc-probe").into()
}

/// What starts a probe with these verbs, separated by spaces.
pub(crate) fn spec(verbs: &str) -> Spec {
    static HOST: Once = Once::new();
    HOST.call_once(|| tieline_proc::set_host_program(program()));
    let mut spec = Spec::new(program(), "/");
    spec.args = verbs.split_whitespace().map(Into::into).collect();
    spec
}

/// A mark that no other test of any process uses.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Mark {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Mark(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    pub(crate) fn spec(&self, verbs: &str) -> Spec {
        let mut spec = spec(verbs);
        spec.env.set(MARK, &self.0);
        spec
    }

    /// The living processes with this mark. Zombies have no environment and do not count.
    pub(crate) fn living(&self) -> Vec<u32> {
        let wanted = format!("{MARK}={}", self.0).into_bytes();
        let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            environ.split(|byte| *byte == 0).any(|pair| pair == wanted).then_some(pid)
        });
        pids.collect()
    }

    /// Waits until nobody with this mark is alive, for the two seconds that we promise.
    #[track_caller]
    pub(crate) fn assert_gone(&self, what: &str) {
        let gone = until(Duration::from_secs(2), || self.living().is_empty());
        assert!(gone, "{what}: {:?} are alive", self.living());
    }

    #[track_caller]
    pub(crate) fn assert_alive(&self, n_alive: usize) {
        let living = self.living();
        assert_eq!(living.len(), n_alive, "{living:?} are alive");
    }
}

/// Looks again and again, for a condition that nobody signals.
pub(crate) fn until(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the probe says `ready`.
pub(crate) async fn ready(child: &Child) {
    let mut said = Vec::new();
    let mut buffer = [0; 64];
    while !said.ends_with(b"ready\n") {
        let n = tokio::time::timeout(LIMIT, child.read_stdout(&mut buffer)).await.unwrap().unwrap();
        assert_ne!(n, 0, "ended after {:?}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&buffer[..n]);
    }
}

pub(crate) fn parent(pid: u32) -> u32 {
    field(pid, "PPid:").parse().unwrap()
}

pub(crate) fn field(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().to_owned()
}

pub(crate) fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A process that stands where tieline stands: it uses the crate to start an agent.
pub(crate) struct Supervisor {
    process: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Supervisor {
    #[expect(clippy::disallowed_methods, reason = "this one must not be ours, it is killed")]
    pub(crate) fn start(verbs: &str) -> Supervisor {
        let mut process = Command::new(program())
            .args(verbs.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Supervisor { process, output }
    }

    pub(crate) fn of(mark: &Mark, verbs: &str) -> Supervisor {
        Supervisor::start(&format!("supervise {} {verbs}", mark.0))
    }

    /// The same, with a controlling terminal of its own.
    pub(crate) fn of_tty(verbs: &str) -> Supervisor {
        Supervisor::start(&format!("get-tty supervise {} {verbs}", Mark::new().0))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The children it has, zombies too.
    pub(crate) fn children(&self) -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let lists = tasks
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        lists.collect::<String>().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

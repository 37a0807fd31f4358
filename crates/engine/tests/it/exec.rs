//! Commands of a session, checked from outside through `/proc`.

mod ends;
mod output;
mod sessions;

use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tieline_engine::exec::{
    Commands, Input, Limits, Printed, SessionId, Start, State, Update, environment,
};
use tieline_proc::{Env, TerminalSize};
use tokio::sync::mpsc;

/// The longest that anything in these tests may take.
const LIMIT: Duration = Duration::from_secs(30);

const MARK: &str = "ENGINE_PROBE_MARK";

const SIZE: TerminalSize = TerminalSize { rows: 33, columns: 111 };

fn probe() -> PathBuf {
    env!("CARGO_BIN_EXE_engine-probe").into()
}

/// Commands that do not wait longer than they have to.
fn commands() -> Commands {
    with(Limits { min_yield: Duration::ZERO, ..Limits::default() })
}

fn with(limits: Limits) -> Commands {
    static HOST: Once = Once::new();
    HOST.call_once(|| tieline_proc::set_host_program(probe()));
    Commands::new(limits, SessionId(1))
}

fn shell(line: &str) -> Start {
    start(&["sh", "-c", line])
}

fn start(argv: &[&str]) -> Start {
    let env = Env::for_tools(std::env::vars_os(), &[]);
    Start::new(argv.iter().copied(), "/", environment(&env, Input::None))
}

fn on_terminal(line: &str) -> Start {
    Start { input: Input::Terminal(SIZE), ..shell(line) }
}

fn listened(mut start: Start, room: usize) -> (Start, mpsc::Receiver<Update>) {
    let (sender, updates) = mpsc::channel(room);
    start.listener = Some(sender);
    (start, updates)
}

/// Starts something that goes on, and gives its number.
async fn background(commands: &Commands, start: Start) -> SessionId {
    match commands.exec(start, Some(Duration::ZERO)).await.unwrap().state {
        State::Running(id) => id,
        state => panic!("{state:?}"),
    }
}

/// Writes, and reads until the output ends so.
async fn say(commands: &Commands, id: SessionId, text: &str, end: &str) -> String {
    let begin = Instant::now();
    let mut said = String::new();
    let mut bytes = text.as_bytes();
    while begin.elapsed() < LIMIT {
        let yielded = commands.write(id, bytes, Some(Duration::from_millis(20))).await.unwrap();
        said.push_str(&yielded.output.text);
        if said.ends_with(end) {
            return said;
        }
        assert!(matches!(yielded.state, State::Running(_)), "ended after {said:?}");
        bytes = b"";
    }
    panic!("not said: {end:?}, but {said:?}")
}

/// Writes, and waits for the end; gives what was printed until then.
async fn finish(
    commands: &Commands,
    id: SessionId,
    text: &str,
) -> (String, tieline_engine::exec::Ended) {
    let mut said = String::new();
    let mut bytes = text.as_bytes();
    loop {
        let yielded = commands.write(id, std::mem::take(&mut bytes), Some(LIMIT)).await.unwrap();
        said.push_str(&yielded.output.text);
        if let State::Ended(ran) = yielded.state {
            return (said, ran.ended);
        }
    }
}

/// A mark that every descendant of a command carries in its environment.
struct Mark(String);

impl Mark {
    fn new() -> Mark {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Mark(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    fn on(&self, mut start: Start) -> Start {
        start.env.set(MARK, &self.0);
        start
    }

    /// The living processes with this mark.
    fn living(&self) -> Vec<u32> {
        let wanted = format!("{MARK}={}", self.0).into_bytes();
        let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            environ.split(|byte| *byte == 0).any(|pair| pair == wanted).then_some(pid)
        });
        pids.collect()
    }

    /// Not after a while: now.
    #[track_caller]
    fn assert_none(&self) {
        let living = self.living();
        assert!(living.is_empty(), "{living:?} are alive");
    }

    /// Waits until so many are alive, which nobody signals.
    async fn assert_living(&self, n_alive: usize) {
        let end = Instant::now() + LIMIT;
        while self.living().len() != n_alive {
            assert!(Instant::now() < end, "{:?} are alive", self.living());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[track_caller]
fn assert_text(printed: &Printed, expected: &str) {
    assert_eq!(printed.text, expected);
    assert_eq!(printed.left_out, 0);
}

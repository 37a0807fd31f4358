//! For the tests: the host of the commands they start, and with a verb the process that is killed or
//! measured in our place.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tieline_engine::exec::{Commands, Input, Limits, SessionId, Start, Stream, Update};
use tieline_proc::{Env, TerminalSize};

/// The variable by which the tests find what was started.
const MARK: &str = "ENGINE_PROBE_MARK";

fn main() -> ExitCode {
    tieline_sandbox::init();
    tieline_proc::init();
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            writeln!(io::stderr(), "engine-probe: {err}").ok();
            ExitCode::FAILURE
        }
    }
}

fn act() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let number = |text: &str| text.parse().map_err(io::Error::other);
    match words[..] {
        ["own", mark] => runtime.block_on(own(mark)),
        ["flood", n_bytes] => runtime.block_on(flood(n_bytes)),
        ["measure", n_times] => runtime.block_on(measure(number(n_times)?)),
        _ => Err(io::Error::other("say `own MARK`, `flood BYTES` or `measure TIMES`")),
    }
}

fn env() -> Env {
    Env::for_tools(std::env::vars_os(), &[])
}

fn commands() -> Commands {
    let limits = Limits { min_yield: Duration::ZERO, ..Limits::default() };
    Commands::new(limits, SessionId(1))
}

/// Starts commands that would live for ever, says so, and waits to be killed.
async fn own(mark: &str) -> io::Result<()> {
    let commands = commands();
    let mut env = env();
    env.set(MARK, mark);
    let line = "(setsid sleep 1000 &) ; sleep 1000 & exec sleep 1000";
    for input in [Input::None, Input::Pipe, Input::Terminal(TerminalSize::default())] {
        let mut start = Start::new(["sh", "-c", line], "/", env.clone());
        start.input = input;
        commands.exec(start, Some(Duration::ZERO)).await.map_err(io::Error::other)?;
    }
    let left = Start::new(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"], "/", env);
    commands.run(left).await.map_err(io::Error::other)?;
    writeln!(io::stdout(), "ready")?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Has a command print so many bytes and says what arrived and how much memory that took.
async fn flood(n_bytes: &str) -> io::Result<()> {
    let (sender, mut updates) = tokio::sync::mpsc::channel(16);
    let mut start = Start::new(["head", "-c", n_bytes, "/dev/zero"], "/", env());
    start.listener = Some(sender);
    start.timeout = Some(Duration::from_secs(60));
    let commands = commands();
    let listen = async {
        let (mut n_told, mut withheld) = (0, 0);
        while let Some(update) = updates.recv().await {
            match update {
                Update::Output { stream: Stream::Stdout, bytes } => n_told += bytes.len() as u64,
                Update::Output { stream: Stream::Stderr, .. } => {}
                Update::Ended(ended) => withheld = ended.withheld,
            }
        }
        (n_told, withheld)
    };
    let (ran, (n_told, withheld)) = tokio::join!(commands.run(start), listen);
    let ran = ran.map_err(io::Error::other)?;
    let (total, kept) = (ran.output.total, ran.output.text.len());
    writeln!(io::stdout(), "printed {total} told {n_told} withheld {withheld} kept {kept}")?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    writeln!(io::stdout(), "peak {}", peak.trim())
}

/// Says what a command costs that does nothing.
async fn measure(n_times: usize) -> io::Result<()> {
    let commands = commands();
    for (what, input) in
        [("run, pipes", Input::None), ("run, terminal", Input::Terminal(TerminalSize::default()))]
    {
        let mut times = Vec::new();
        for _ in 0..n_times {
            let mut start = Start::new(["true"], "/", env());
            start.input = input;
            let begin = Instant::now();
            commands.run(start).await.map_err(io::Error::other)?;
            times.push(begin.elapsed());
        }
        show(what, times)?;
    }
    let mut times = Vec::new();
    for _ in 0..n_times.min(20) {
        times.push(interrupt(&commands).await?);
    }
    show("interrupt of one that ignores SIGTERM", times)
}

/// How long a call takes to return after it was interrupted.
async fn interrupt(commands: &Commands) -> io::Result<Duration> {
    let (sender, mut updates) = tokio::sync::mpsc::channel(16);
    let line = "trap '' TERM; sleep 1000 & echo ready; sleep 1000";
    let mut start = Start::new(["sh", "-c", line], "/", env());
    start.listener = Some(sender);
    let begin = async {
        updates.recv().await;
        commands.interrupt();
        Instant::now()
    };
    let (ran, begin) = tokio::join!(commands.run(start), begin);
    ran.map_err(io::Error::other)?;
    Ok(begin.elapsed())
}

fn show(what: &str, mut times: Vec<Duration>) -> io::Result<()> {
    times.sort();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    writeln!(io::stdout(), "{what}: p50 {:?}, p99 {:?}", at(50), at(99))
}

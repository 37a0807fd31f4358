//! A child that misbehaves on demand, for the tests; also the host of the agents they start, and
//! with `supervise` the process that is killed in our place.
//!
//! The arguments are verbs, done in order: `setsid ready sleep` leaves a descendant in another
//! session, says `ready` and waits.
#![allow(unsafe_code)]

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use tieline_proc::{RunLimits, Spec, Streams, TerminalSize};

/// The variable by which the tests find a probe's descendants.
const MARK: &str = "PROC_PROBE_MARK";

fn main() -> ExitCode {
    tieline_proc::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    #[cfg(target_os = "linux")]
    if !words.iter().any(|word| ["supervise", "supervise-tty", "churn", "measure"].contains(word)) {
        // An agent is no supervisor: its orphans must come to its host.
        rustix::process::set_child_subreaper(None).ok();
    }
    match act(&words) {
        Ok(code) => ExitCode::from(code),
        Err(err) => {
            writeln!(io::stderr(), "proc-probe: {err}").ok();
            ExitCode::from(99)
        }
    }
}

fn act(mut words: &[&str]) -> io::Result<u8> {
    let mut out = io::stdout();
    while let Some((verb, rest)) = words.split_first() {
        let next = || rest.first().copied().ok_or_else(|| io::Error::other("a word is missing"));
        let number = || next()?.parse::<usize>().map_err(io::Error::other);
        let (with_word, alone) = (rest.get(1..).unwrap_or_default(), rest);
        words = match *verb {
            "fork" => leave(&[], alone)?,
            "double-fork" => leave(&["again"], alone)?,
            "setsid" => leave(&["setsid"], alone)?,
            "daemon" => leave(&["setsid", "again"], alone)?,
            "nohup" => leave(&["nohup", "setsid"], alone)?,
            "hop" => leave(&["hop"], alone)?,
            "hold-pipe" => leave(&["keep-streams"], alone)?,
            "ignore-term" => on_term(libc::SIG_IGN, alone),
            "fork-on-term" => on_term(fork_and_stay as extern "C" fn(i32) as usize, alone),
            "stop-parent" => stop_parent(alone)?,
            "keep-parent-stopped" => loop {
                stop_parent(alone)?;
                std::thread::sleep(Duration::from_millis(1));
            },
            "say" => {
                writeln!(out, "{}", next()?)?;
                with_word
            }
            "ready" => {
                writeln!(out, "ready")?;
                out.flush()?;
                alone
            }
            "flood-stdout" => {
                flood(&mut out, number()?)?;
                with_word
            }
            "flood-stderr" => {
                flood(&mut io::stderr(), number()?)?;
                with_word
            }
            "cat" => {
                io::copy(&mut io::stdin(), &mut out)?;
                alone
            }
            "print-fds" => {
                writeln!(out, "{}", open_fds()?)?;
                alone
            }
            "print-env" => {
                for (name, value) in std::env::vars() {
                    writeln!(out, "{name}={value}")?;
                }
                alone
            }
            "print-cwd" => {
                writeln!(out, "{}", std::env::current_dir()?.display())?;
                alone
            }
            "print-tty" => {
                let tty = std::fs::File::open("/dev/tty");
                writeln!(out, "{}", if tty.is_ok() { "tty" } else { "no tty" })?;
                alone
            }
            "print-tty-name" => {
                writeln!(out, "{}", terminal_name())?;
                alone
            }
            "get-tty" => {
                get_tty()?;
                alone
            }
            "sleep" => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            "exit" => return Ok(u8::try_from(number()?).unwrap_or(98)),
            "supervise" => return supervise(next()?, with_word),
            "supervise-tty" => return supervise_tty(next()?, with_word),
            "churn" => return churn(number()?),
            "measure" => return measure(number()?),
            other => return Err(io::Error::other(format!("unknown verb {other}"))),
        };
    }
    Ok(0)
}

/// Leaves a descendant behind that sleeps until it is killed. Returns when it is in its place, so
/// that the tests can count.
fn leave<'a, 'b>(how: &[&str], rest: &'a [&'b str]) -> io::Result<&'a [&'b str]> {
    let (mut placed, in_place) = io::pipe()?;
    // SAFETY: the probe has one thread, so its copy may do anything.
    unsafe {
        let child = libc::fork();
        if child > 0 {
            drop(in_place);
            placed.read_to_end(&mut Vec::new())?;
            if how.contains(&"again") {
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            return Ok(rest);
        }
        if !how.contains(&"keep-streams") {
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            for fd in 0..3 {
                libc::dup2(null, fd);
            }
        }
        if how.contains(&"nohup") {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            libc::signal(libc::SIGTERM, libc::SIG_IGN);
        }
        if how.contains(&"setsid") {
            libc::setsid();
        }
        if how.contains(&"again") && libc::fork() > 0 {
            libc::_exit(0);
        }
        drop(in_place);
        while how.contains(&"hop") {
            if libc::fork() > 0 {
                libc::_exit(0);
            }
        }
        loop {
            libc::pause();
        }
    }
}

extern "C" fn fork_and_stay(_: i32) {
    // SAFETY: `fork`, `setsid` and `_exit` are async-signal-safe.
    unsafe {
        if libc::fork() == 0 {
            libc::setsid();
        } else {
            libc::_exit(0);
        }
    }
}

fn on_term<'a, 'b>(handler: usize, rest: &'a [&'b str]) -> &'a [&'b str] {
    // SAFETY: the handlers used here are async-signal-safe.
    unsafe {
        libc::signal(libc::SIGTERM, handler);
    }
    rest
}

/// Stops whoever cares for us.
fn stop_parent<'a, 'b>(rest: &'a [&'b str]) -> io::Result<&'a [&'b str]> {
    // SAFETY: no memory is involved.
    match unsafe { libc::kill(libc::getppid(), libc::SIGSTOP) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(rest),
    }
}

fn flood(out: &mut impl Write, n_bytes: usize) -> io::Result<()> {
    let block = [b'x'; 64 * 1024];
    let mut left = n_bytes;
    while left > 0 {
        let n = left.min(block.len());
        out.write_all(&block[..n])?;
        left -= n;
    }
    out.flush()
}

/// The open descriptors, without the one that reads the list.
fn open_fds() -> io::Result<String> {
    let mut fds = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if !target.starts_with("/proc") {
            fds.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    fds.sort();
    Ok(fds.join(" "))
}

/// Becomes the leader of a session with a controlling terminal.
fn get_tty() -> io::Result<()> {
    // SAFETY: plain calls; `ptsname` returns a string that is used before the next call of it.
    let opened = unsafe {
        libc::setsid();
        let master = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY);
        libc::grantpt(master);
        libc::unlockpt(master);
        libc::open(libc::ptsname(master), libc::O_RDWR)
    };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    std::fs::File::open("/dev/tty").map(drop)
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn probe(verbs: &[&str]) -> io::Result<Spec> {
    let mut spec = Spec::new(std::env::current_exe()?, "/");
    spec.args = verbs.iter().map(Into::into).collect();
    Ok(spec)
}

/// Starts an agent with these verbs, passes its output on, and when it has ended says how and how
/// much memory that took. Ends when its own input does.
fn supervise(mark: &str, verbs: &[&str]) -> io::Result<u8> {
    let mut spec = probe(verbs)?;
    spec.env.set(MARK, mark);
    runtime()?.block_on(async {
        let child = tieline_proc::spawn(spec).await.map_err(io::Error::other)?;
        let mut out = io::stdout();
        let mut buffer = [0; 4096];
        let exit = loop {
            tokio::select! {
                read = child.read_stdout(&mut buffer) => {
                    let n = read?;
                    out.write_all(&buffer[..n])?;
                    out.flush()?;
                    if n == 0 {
                        break child.exited().await;
                    }
                }
                exit = child.exited() => {
                    let mut rest = Vec::new();
                    child.drain(|bytes| rest.extend_from_slice(bytes), tieline_proc::DRAIN).await;
                    out.write_all(&rest)?;
                    break exit;
                }
            }
        };
        let closed = child.close(Duration::ZERO).await;
        let peak = status_number("VmHWM")?;
        writeln!(out, "ended: {exit}; stderr {} bytes; peak {peak} kB", closed.stderr.total)?;
        out.flush()
    })?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(0)
}

/// Starts a job with these verbs on a terminal and passes on what it shows.
fn supervise_tty(mark: &str, verbs: &[&str]) -> io::Result<u8> {
    let mut spec = probe(verbs)?;
    spec.env.set(MARK, mark);
    runtime()?.block_on(async {
        let streams = Streams::Terminal(TerminalSize::default());
        let job = tieline_proc::start_job(spec, streams).await.map_err(io::Error::other)?;
        let mut out = io::stdout();
        let mut buffer = [0; 4096];
        while let Some((_, n)) = job.read(&mut buffer).await {
            out.write_all(&buffer[..n])?;
            out.flush()?;
        }
        Ok::<_, io::Error>(())
    })?;
    Ok(0)
}

/// The controlling terminal by its number, which `/proc` tells: `/dev/tty` is everybody's name for it.
fn terminal_name() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    match after_name.split_whitespace().nth(4) {
        None | Some("0") => "no tty".into(),
        Some(number) => format!("tty {number}"),
    }
}

/// Runs many short commands and says what is left of them.
fn churn(n_commands: usize) -> io::Result<u8> {
    let runtime = runtime()?;
    runtime.block_on(async {
        // The first start opens what stays open.
        tieline_proc::run(probe(&[])?, b"", RunLimits::default())
            .await
            .map_err(io::Error::other)?;
        let before = open_fds()?;
        let mut left = n_commands;
        while left > 0 {
            let mut running = tokio::task::JoinSet::new();
            for _ in 0..left.min(10) {
                running.spawn(tieline_proc::run(probe(&["cat"])?, b"hello", RunLimits::default()));
                left -= 1;
            }
            for output in running.join_all().await {
                let output = output.map_err(io::Error::other)?;
                if output.stdout.to_text() != "hello" {
                    return Err(io::Error::other("output lost"));
                }
            }
        }
        let after = open_fds()?;
        writeln!(io::stdout(), "{}", if before == after { "same fds" } else { "other fds" })
    })?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(0)
}

/// Says what starting and closing an agent costs.
fn measure(n_agents: usize) -> io::Result<u8> {
    let mut starts = Vec::new();
    let mut closes = Vec::new();
    let mut host_memory = String::new();
    runtime()?.block_on(async {
        for _ in 0..n_agents {
            let begin = std::time::Instant::now();
            let child = tieline_proc::spawn(probe(&["sleep"])?).await.map_err(io::Error::other)?;
            starts.push(begin.elapsed());
            let host = std::fs::read_to_string(format!("/proc/{}/status", child.pid))?;
            let host = host.lines().find_map(|line| line.strip_prefix("PPid:"));
            let rollup = format!("/proc/{}/smaps_rollup", host.unwrap_or_default().trim());
            host_memory = std::fs::read_to_string(rollup)?;
            let begin = std::time::Instant::now();
            child.close(Duration::from_secs(5)).await;
            closes.push(begin.elapsed());
        }
        Ok::<_, io::Error>(())
    })?;
    for (what, times) in [("start", &mut starts), ("close", &mut closes)] {
        times.sort();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        writeln!(io::stdout(), "{what}: p50 {p50:?}, p99 {p99:?}")?;
    }
    for line in host_memory.lines().filter(|line| {
        ["Rss:", "Pss:", "Private_Dirty:", "Private_Clean:"].iter().any(|n| line.starts_with(n))
    }) {
        writeln!(io::stdout(), "host {line}")?;
    }
    Ok(0)
}

fn status_number(name: &str) -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let digits = line.unwrap_or_default().trim_matches(|c: char| !c.is_ascii_digit());
    digits.parse().map_err(io::Error::other)
}

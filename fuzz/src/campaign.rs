//! Many inputs, one after the other.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::{Stock, Target};

/// More than any of our parsers needs for what it is given here.
const MOST_MEMORY: u64 = 512 << 20;

/// How often a failing input is tried in a smaller form.
const TRIES: usize = 4000;

/// Inputs made of a corpus by a seed.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// What is tried.
    pub target: &'static Target,
    /// What chance is made of.
    pub seed: u64,
    /// The first iteration.
    pub from: u64,
    /// How many.
    pub runs: u64,
}

/// What a campaign without a failure did.
#[derive(Debug)]
pub struct Report {
    /// Files of the corpus and changed ones.
    pub n_inputs: u64,
    /// Bytes of all of them.
    pub n_bytes: u64,
    /// The input that took longest, by its iteration, and how long.
    pub slowest: (u64, Duration),
}

/// What did not hold.
#[derive(Debug)]
pub struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// Tries one input.
///
/// # Errors
/// When the target panics; its message is on stderr.
pub fn check_input(target: &Target, input: &[u8]) -> Result<(), Failed> {
    panic::catch_unwind(AssertUnwindSafe(|| (target.check)(input)))
        .map_err(|_| Failed(format!("{} failed on an input of {} bytes", target.name, input.len())))
}

impl Campaign {
    /// Tries every file of the corpus, then the changed ones.
    ///
    /// # Errors
    /// The first input that fails: where it is, and how to try it again.
    pub fn run(&self) -> Result<Report, Failed> {
        let name = self.target.name;
        let stock = Stock::load(name)
            .map_err(|err| Failed(format!("{}: {err}", Stock::folder(name).display())))?;
        let mut report = Report { n_inputs: 0, n_bytes: 0, slowest: (0, Duration::ZERO) };
        for (file, seed) in stock.seeds() {
            self.try_one(seed, &format!("corpus/{name}/{file}"), file)?;
            report.n_inputs += 1;
            report.n_bytes += seed.len() as u64;
        }
        let trace = Trace::new(self).map_err(|err| Failed(format!("cannot write: {err}")))?;
        for iteration in self.from..self.from.saturating_add(self.runs) {
            trace.at(iteration).map_err(|err| Failed(format!("cannot write: {err}")))?;
            let input = stock.input(self.seed, iteration);
            let began = Instant::now();
            let place = format!("seed {} iteration {iteration}", self.seed);
            self.try_one(&input, &place, &format!("{}-{iteration}", self.seed))?;
            let took = began.elapsed();
            if took > report.slowest.1 {
                report.slowest = (iteration, took);
            }
            report.n_inputs += 1;
            report.n_bytes += input.len() as u64;
        }
        trace.remove();
        match peak_memory() {
            Some(peak) if peak > MOST_MEMORY => {
                Err(Failed(format!("{name}: the process needed {} MiB at once", peak >> 20)))
            }
            _ => Ok(report),
        }
    }

    fn try_one(&self, input: &[u8], place: &str, file: &str) -> Result<(), Failed> {
        let name = self.target.name;
        check_input(self.target, input).map_err(|_| {
            let small = smaller(self.target, input);
            let path = failures().join(format!("{name}-{file}"));
            let kept = fs::create_dir_all(failures()).and_then(|()| fs::write(&path, &small));
            let path = path.display();
            Failed(match kept {
                Err(err) => format!("{name}: {place} failed; cannot write {path}: {err}"),
                Ok(()) => format!(
                    "{name}: {place} failed ({} bytes, of which {} are enough)\n\
                     the input is in {path}\n\
                     try it again with: cargo xtask fuzz {name} --input {path}",
                    input.len(),
                    small.len()
                ),
            })
        })
    }
}

/// Leaves as much of an input away as can be while it still fails.
fn smaller(target: &Target, input: &[u8]) -> Vec<u8> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mut small = input.to_vec();
    let mut piece = small.len() / 2;
    let mut n_left = TRIES;
    while piece > 0 && n_left > 0 {
        let mut at = 0;
        while at < small.len() && n_left > 0 {
            n_left -= 1;
            let mut tried = small.clone();
            tried.drain(at..(at + piece).min(small.len()));
            if check_input(target, &tried).is_err() {
                small = tried;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    panic::set_hook(hook);
    small
}

/// Where inputs that failed are kept.
fn failures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("failures")
}

/// Says on disk which input is being tried, for an input that takes the process with it or never
/// comes to an end.
struct Trace {
    path: PathBuf,
    file: File,
    command: String,
}

impl Trace {
    fn new(campaign: &Campaign) -> io::Result<Self> {
        fs::create_dir_all(failures())?;
        // Two processes may try the same target.
        let name = format!("{}-running-{}", campaign.target.name, std::process::id());
        let path = failures().join(name);
        let command = format!(
            "cargo xtask fuzz {} --runs 1 --seed {} --from ",
            campaign.target.name, campaign.seed
        );
        Ok(Self { file: File::create(&path)?, path, command })
    }

    fn at(&self, iteration: u64) -> io::Result<()> {
        self.file.write_all_at(format!("{}{iteration}\n", self.command).as_bytes(), 0)
    }

    fn remove(self) {
        // It is only in the way when it stays.
        fs::remove_file(self.path).ok();
    }
}

/// The most memory this process had, as the kernel counts it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

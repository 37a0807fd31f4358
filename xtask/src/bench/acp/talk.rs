//! Lines to a process, and what it says until some words have come.

use std::io::Write;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use memchr::{memchr, memmem, memrchr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::bench::latency::monotonic_nanos;
use crate::bench::output::Output;
use crate::bench::scene::Running;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long a process may take to end when nobody talks to it any more.
const ENDING: Duration = Duration::from_secs(5);

/// A process that is talked to in lines.
pub(super) struct Talk {
    running: Running,
    stdin: ChildStdin,
    output: Output,
    /// Where the line that was waited for ends.
    n_heard: usize,
    /// Where each read since then ended, and when.
    arrivals: Vec<(usize, u64)>,
}

/// How fast is read.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    Full,
    /// Nothing at first, then a little at a time.
    Slow,
}

/// How long a slow reader reads nothing.
const STALL: Duration = Duration::from_secs(2);

/// How long a slow reader sleeps after each read, which brings what a pipe holds.
const NAP: Duration = Duration::from_millis(4);

impl Talk {
    pub(super) fn new(running: Running, stdin: ChildStdin) -> Self {
        let (output, arrivals) = (Output::default(), Vec::new());
        Self { running, stdin, output, n_heard: 0, arrivals }
    }

    /// Memory for about this many bytes, touched now.
    pub(super) fn make_room_for(&mut self, n_bytes: usize) {
        let said = self.output.bytes().to_vec();
        self.output = Output::with_room_for(n_bytes.max(said.len()));
        self.output.extend(&said);
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Says something and reads until a line with these words has come.
    pub(super) fn ask(&mut self, line: &str, words: &str, pace: Pace) -> anyhow::Result<()> {
        self.output.forget(self.n_heard);
        (self.n_heard, self.arrivals) = (0, Vec::new());
        self.stdin.write_all(line.as_bytes()).context("it hears nothing any more")?;
        self.hear(words, pace)
    }

    /// Says something that needs no answer.
    pub(super) fn say(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(self.stdin.write_all(line.as_bytes())?)
    }

    /// Everything that was said up to the last answer, and after the one before.
    pub(super) fn heard(&self) -> &[u8] {
        self.output.bytes().get(..self.n_heard).unwrap_or_default()
    }

    /// The last line of it.
    pub(super) fn last_line(&self) -> &[u8] {
        let heard = self.heard().strip_suffix(b"\n").unwrap_or_default();
        let start = memrchr(b'\n', heard).map_or(0, |at| at + 1);
        heard.get(start..).unwrap_or_default()
    }

    /// Where each read of it ended, and when.
    pub(super) fn arrivals(&self) -> &[(usize, u64)] {
        &self.arrivals
    }

    /// Hangs up.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        drop(self.stdin);
        self.running.finish_within(ENDING)
    }

    fn hear(&mut self, words: &str, pace: Pace) -> anyhow::Result<()> {
        let words = memmem::Finder::new(words);
        let until = Instant::now() + PATIENCE;
        if let Pace::Slow = pace {
            std::thread::sleep(STALL);
        }
        let mut n_searched = 0;
        loop {
            let unseen = self.output.bytes().get(n_searched..).unwrap_or_default();
            if let Some(at) = words.find(unseen) {
                let at = n_searched + at;
                let rest = self.output.bytes().get(at..).unwrap_or_default();
                if let Some(end) = memchr(b'\n', rest) {
                    self.n_heard = at + end + 1;
                    return Ok(());
                }
                n_searched = at;
            } else {
                // The words may have come in part.
                n_searched = self.output.bytes().len().saturating_sub(words.needle().len());
            }
            self.wait(until)?;
            let n = self.output.read(&mut self.running.stdout)?;
            ensure!(n > 0, "it ended: {}", self.running.complaint());
            self.arrivals.push((self.output.bytes().len(), monotonic_nanos()));
            if let Pace::Slow = pace {
                std::thread::sleep(NAP);
            }
        }
    }

    fn wait(&self, until: Instant) -> anyhow::Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: 0 };
        if poll(&mut [PollFd::new(&self.running.stdout, PollFlags::IN)], Some(&left))? == 0 {
            bail!("no answer within {} seconds", PATIENCE.as_secs());
        }
        Ok(())
    }
}

//! Plays one section of the script as one turn.

use std::env;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::inbox::{Inbox, Next, Woken};
use crate::output::{self, Output};
use crate::script::{Outcome, Section, Verb};
use crate::sys;
use crate::voice::{During, Ended, Part, User, Verdict, Voice};

/// A stretch of a flood that is written at once.
const FLOOD_BUFFER: usize = 256 * 1024;

/// Stands in the lines of a flood where their number goes.
const NUMBER: &str = "########";

pub(crate) struct Player {
    voice: Box<dyn Voice>,
    output: Arc<Output>,
    inbox: Arc<Inbox>,
    /// What the user said.
    prompt: String,
    /// The text of the last message, for the result.
    said: String,
    failed: bool,
}

/// `Break` ends the turn, its end is out.
type Flow = ControlFlow<()>;

/// Plays a section for each user message, the last one again and again.
pub(crate) fn perform(sections: &[Section], inbox: &Inbox, player: &mut Player) {
    let last = sections.len().saturating_sub(1);
    for turn in 0.. {
        let Next::User(user) = inbox.next_user() else { break };
        let section = sections.get(turn.min(last));
        player.turn(section.expect("the parser yields at least one section"), &user);
        inbox.turn_over();
    }
}

impl Player {
    pub(crate) fn new(voice: Box<dyn Voice>, output: Arc<Output>, inbox: Arc<Inbox>) -> Player {
        let (prompt, said) = (String::new(), String::new());
        Player { voice, output, inbox, prompt, said, failed: false }
    }

    /// Whether the last turn ended with an error.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    fn turn(&mut self, section: &Section, user: &User) {
        let lines = self.voice.turn_begins(user);
        self.lines(&lines);
        self.prompt.clone_from(&user.text);
        self.said.clear();
        for verb in section {
            let mut flow = self.verb(verb);
            if flow.is_continue() && self.inbox.interrupted() {
                flow = self.interrupt(During::Text);
            }
            if flow.is_break() {
                return;
            }
        }
        self.end(Outcome::Success);
    }

    fn verb(&mut self, verb: &Verb) -> Flow {
        match verb {
            Verb::Say(text) => return self.message(Part::Text, &words(text)),
            Verb::Echo => return self.message(Part::Text, &words(&self.prompt.clone())),
            Verb::Think(text) => return self.message(Part::Reasoning, &words(text)),
            Verb::Deltas { n, bytes } => {
                let chunks: Vec<String> = (0..*n).map(|i| chunk(i, *bytes)).collect();
                return self.message(Part::Text, &chunks);
            }
            Verb::Flood { n, bytes } => return self.flood(*n, *bytes),
            Verb::Stamped { n, micros } => return self.stamped(*n, *micros),
            Verb::Tool { name, input } => {
                let lines = self.voice.tool(name, input, "ok");
                self.lines(&lines);
            }
            Verb::AskPermission { name, input } => return self.ask_permission(name, input),
            Verb::Garbage(text) => self.output.line(text),
            Verb::Bytes(bytes) => self.output.raw(bytes),
            Verb::Huge(bytes) => self.huge(*bytes),
            Verb::NoNewline(bytes) => self.output.filled("", *bytes, ""),
            Verb::HalfLine(text) => {
                self.output.last_words(text.as_bytes());
                return self.wait(None);
            }
            Verb::Ignore(signal) => sys::ignore(*signal),
            Verb::Deaf => {
                self.inbox.be_deaf();
                sys::ignore(libc::SIGINT);
            }
            Verb::Descend { how, hold } => sys::descend(*how, *hold, &self.output.descriptors()),
            Verb::Close(1) => self.output.close(),
            Verb::Close(descriptor) => sys::close(*descriptor),
            Verb::Stderr(text) => output::stderr(format!("{text}\n").as_bytes()),
            Verb::StderrFlood(bytes) => stderr_flood(*bytes),
            Verb::Exit(code) => process::exit(*code),
            Verb::Kill(signal) => {
                sys::kill_self(*signal);
                // The signal may reach another thread first; do not run ahead of it.
                return self.wait(Some(Duration::from_millis(50)));
            }
            Verb::Silence => return self.wait(None),
            Verb::Sleep(ms) => return self.wait(Some(Duration::from_millis(*ms))),
            Verb::DumpArgv(path) => dump_argv(path),
            Verb::Result(outcome) => {
                self.end(*outcome);
                return Flow::Break(());
            }
            Verb::Linger(ms) => {
                self.end(Outcome::Success);
                thread::sleep(Duration::from_millis(*ms));
                return Flow::Break(());
            }
        }
        Flow::Continue(())
    }

    fn lines(&self, lines: &[String]) {
        for line in lines {
            self.output.line(line);
        }
    }

    /// A message of text or reasoning.
    fn message(&mut self, part: Part, chunks: &[String]) -> Flow {
        let lines = self.voice.part_begins(part);
        self.lines(&lines);
        let mut sent = String::new();
        for chunk in chunks {
            if self.inbox.interrupted() {
                return self.cut(part, &sent);
            }
            if let Some(line) = self.voice.delta(part, chunk) {
                self.output.line(&line);
            }
            sent.push_str(chunk);
        }
        let lines = self.voice.part_ends(part, Ended::Whole(&sent));
        self.lines(&lines);
        if part == Part::Text {
            self.said = sent;
        }
        Flow::Continue(())
    }

    fn cut(&mut self, part: Part, sent: &str) -> Flow {
        let lines = self.voice.part_ends(part, Ended::Cut(sent));
        self.lines(&lines);
        self.interrupt(During::Text)
    }

    /// The end of a message that was streamed.
    fn streamed(&mut self, whole: &str) -> Flow {
        let ended = if self.voice.repeats() { Ended::Whole(whole) } else { Ended::Streamed };
        let lines = self.voice.part_ends(Part::Text, ended);
        self.lines(&lines);
        if self.inbox.interrupted() { self.interrupt(During::Text) } else { Flow::Continue(()) }
    }

    /// Chunks from one rendered buffer, in which only the numbers change.
    fn flood(&mut self, n: usize, bytes: usize) -> Flow {
        let lines = self.voice.part_begins(Part::Text);
        self.lines(&lines);
        let rest = "x".repeat(bytes.max(NUMBER.len()) - NUMBER.len());
        let line = self.voice.flood_line(&format!("{NUMBER}{rest}"), NUMBER) + "\n";
        let numbers: Vec<usize> = line.match_indices(NUMBER).map(|(at, _)| at).collect();
        let per_write = (FLOOD_BUFFER / line.len()).clamp(1, n.max(1));
        let mut buffer = line.repeat(per_write).into_bytes();
        let mut whole = String::new();
        let mut sent = 0;
        while sent < n && !self.inbox.interrupted() {
            let now = per_write.min(n - sent);
            for (at, line) in buffer.chunks_exact_mut(line.len()).take(now).enumerate() {
                for place in &numbers {
                    if let Some(place) = line.get_mut(*place..*place + NUMBER.len()) {
                        write_number(place, sent + at);
                    }
                }
            }
            self.output.raw(buffer.get(..now * line.len()).unwrap_or(&buffer));
            if self.voice.repeats() {
                for number in sent..sent + now {
                    push_number(&mut whole, number);
                    whole.push_str(&rest);
                }
            }
            sent += now;
        }
        self.streamed(&whole)
    }

    /// Chunks at a steady pace that say when they were written.
    fn stamped(&mut self, n: usize, micros: usize) -> Flow {
        let lines = self.voice.part_begins(Part::Text);
        self.lines(&lines);
        let pace = Duration::from_micros(micros as u64);
        let mut due = Instant::now();
        let mut whole = String::new();
        for _ in 0..n {
            // Counted from the start, so that a late chunk does not delay the ones after it.
            due += pace;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if self.inbox.interrupted() {
                break;
            }
            let stamp = format!("{:020} ", sys::monotonic_nanos());
            // A whole message, where the wire has nothing smaller.
            let line = self.voice.delta(Part::Text, &stamp);
            let line = line.unwrap_or_else(|| self.voice.flood_line(&stamp, ""));
            self.output.line(&line);
            whole.push_str(&stamp);
        }
        self.streamed(&whole)
    }

    fn ask_permission(&mut self, name: &str, input: &Value) -> Flow {
        let Some((request_id, lines)) = self.voice.asks(name, input) else {
            let lines = self.voice.tool(name, input, "ok");
            self.lines(&lines);
            return Flow::Continue(());
        };
        self.lines(&lines);
        let Woken::Answer(verdict) = self.inbox.answer(&request_id) else {
            return self.interrupt(During::Tool);
        };
        let lines = self.voice.answered(&verdict);
        self.lines(&lines);
        match verdict {
            Verdict::Deny { stop: true, .. } => self.interrupt(During::Tool),
            _ => Flow::Continue(()),
        }
    }

    /// A valid line of exactly `bytes` bytes, its end not counted.
    fn huge(&mut self, bytes: usize) {
        let (head, tail) = self.voice.around_huge();
        let fill = bytes.saturating_sub(head.len() + tail.len());
        self.output.filled(&head, fill, &format!("{tail}\n"));
    }

    fn wait(&mut self, time: Option<Duration>) -> Flow {
        match self.inbox.sleep(time) {
            Woken::Interrupted => self.interrupt(During::Text),
            Woken::TimeOver | Woken::Answer(_) => Flow::Continue(()),
        }
    }

    fn interrupt(&mut self, during: During) -> Flow {
        let lines = self.voice.interrupted(during);
        self.lines(&lines);
        self.failed = true;
        Flow::Break(())
    }

    fn end(&mut self, outcome: Outcome) {
        self.failed = outcome != Outcome::Success;
        let lines = self.voice.turn_ends(outcome, &self.said);
        self.lines(&lines);
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// A chunk of `bytes` bytes that begins with its number.
fn chunk(number: usize, bytes: usize) -> String {
    format!("{:x<bytes$}", format!("{number:08}"))
}

fn push_number(text: &mut String, number: usize) {
    let mut digits = [b'0'; NUMBER.len()];
    write_number(&mut digits, number);
    text.extend(digits.map(char::from));
}

fn write_number(place: &mut [u8], mut number: usize) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn stderr_flood(bytes: usize) {
    let line = [[b'e'; 79].as_slice(), b"\n"].concat();
    let block = line.repeat(800);
    let mut left = bytes;
    while left > 0 {
        let part = left.min(block.len());
        output::stderr(block.get(..part).unwrap_or(&block));
        left -= part;
    }
}

fn dump_argv(path: &str) {
    let mut bytes = Vec::new();
    for argument in env::args_os() {
        bytes.extend(argument.into_vec());
        bytes.push(0);
    }
    fs::write(path, bytes).expect("the path of dump-argv is writable");
}

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

use crate::frames::{self, Session};
use crate::inbox::{Inbox, Woken};
use crate::options::Options;
use crate::output::{self, Output};
use crate::script::{Outcome, Section, Verb};
use crate::sys;

/// A stretch of a flood that is written at once.
const FLOOD_BUFFER: usize = 256 * 1024;

pub(crate) struct Player {
    session: Session,
    options: Options,
    output: Arc<Output>,
    inbox: Arc<Inbox>,
    /// The text of the last message, for the result.
    said: String,
    failed: bool,
}

/// `Break` ends the turn, its `result` is out.
type Flow = ControlFlow<()>;

/// What an interrupt hits.
enum During {
    Text,
    Tool,
}

impl Player {
    pub(crate) fn new(
        session: Session,
        options: Options,
        output: Arc<Output>,
        inbox: Arc<Inbox>,
    ) -> Player {
        Player { session, options, output, inbox, said: String::new(), failed: false }
    }

    /// Whether the last turn ended with an error.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn turn(&mut self, section: &Section, message: &Value) {
        if self.options.replay {
            let replay = self.session.replay(message);
            self.output.line(&replay);
        }
        let init = self.session.init();
        self.output.line(&init);
        self.said.clear();
        for verb in section {
            let mut flow = self.verb(verb);
            if flow.is_continue() && self.inbox.interrupted() {
                flow = self.interrupt(&During::Text);
            }
            if flow.is_break() {
                return;
            }
        }
        self.result(Outcome::Success, "completed");
    }

    fn verb(&mut self, verb: &Verb) -> Flow {
        match verb {
            Verb::Say(text) => return self.message("text_delta", "text", &words(text)),
            Verb::Think(text) => return self.message("thinking_delta", "thinking", &words(text)),
            Verb::Deltas { n, bytes } => {
                let chunks: Vec<String> = (0..*n).map(|i| chunk(i, *bytes)).collect();
                return self.message("text_delta", "text", &chunks);
            }
            Verb::Flood { n, bytes } => return self.flood(*n, *bytes),
            Verb::Stamped { n, micros } => return self.stamped(*n, *micros),
            Verb::Tool { name, input } => {
                let id = self.tool_use(name, input);
                self.tool_result(&id, "ok", false);
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
                let reason = match outcome {
                    Outcome::Success => "completed",
                    Outcome::Error => "error",
                    Outcome::ApiError => "api_error",
                };
                self.result(*outcome, reason);
                return Flow::Break(());
            }
        }
        Flow::Continue(())
    }

    /// A message with one block of text or reasoning.
    fn message(&mut self, kind: &str, key: &str, chunks: &[String]) -> Flow {
        let id = self.session.next_id("msg");
        let mut sent = String::new();
        if self.options.partial {
            self.open_block(&id, key);
        }
        for chunk in chunks {
            if self.inbox.interrupted() {
                self.whole_block(&id, key, &sent, true);
                self.close_block(&id);
                return self.interrupt(&During::Text);
            }
            if self.options.partial {
                self.event(&id, &frames::delta(kind, key, chunk));
            }
            sent.push_str(chunk);
        }
        self.whole_block(&id, key, &sent, false);
        self.close_block(&id);
        if key == "text" {
            self.said = sent;
        }
        Flow::Continue(())
    }

    fn open_block(&mut self, id: &str, key: &str) {
        let status = self.session.status();
        self.output.line(&status);
        let start = self.session.message_start(id);
        self.output.line(&start);
        let block = if key == "text" { frames::text_block("") } else { frames::thinking_block("") };
        let start =
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
        self.event(id, &start);
    }

    fn whole_block(&mut self, id: &str, key: &str, text: &str, aborted: bool) {
        let block =
            if key == "text" { frames::text_block(text) } else { frames::thinking_block(text) };
        let line = self.session.assistant(id, &block, aborted);
        self.output.line(&line);
    }

    fn close_block(&mut self, id: &str) {
        if !self.options.partial {
            return;
        }
        self.event(id, r#"{"type":"content_block_stop","index":0}"#);
        self.event(
            id,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":50}}"#,
        );
        self.event(id, r#"{"type":"message_stop"}"#);
    }

    fn event(&mut self, message_id: &str, event: &str) {
        let line = self.session.stream_event(message_id, event);
        self.output.line(&line);
    }

    /// Chunks from one rendered buffer, in which only the numbers change.
    fn flood(&mut self, n: usize, bytes: usize) -> Flow {
        let id = self.session.next_id("msg");
        self.open_block(&id, "text");
        let text = chunk(0, bytes.max(8));
        let line =
            self.session.stream_event(&id, &frames::delta("text_delta", "text", &text)) + "\n";
        let number_at = line.find("\"text\":\"").map_or(0, |at| at + 8);
        let per_write = (FLOOD_BUFFER / line.len()).clamp(1, n.max(1));
        let mut buffer = line.repeat(per_write).into_bytes();
        let mut sent = 0;
        while sent < n {
            if self.inbox.interrupted() {
                self.close_block(&id);
                return self.interrupt(&During::Text);
            }
            let now = per_write.min(n - sent);
            for (at, line) in buffer.chunks_exact_mut(line.len()).take(now).enumerate() {
                if let Some(place) = line.get_mut(number_at..number_at + 8) {
                    write_number(place, sent + at);
                }
            }
            self.output.raw(buffer.get(..now * line.len()).unwrap_or(&buffer));
            sent += now;
        }
        self.close_block(&id);
        Flow::Continue(())
    }

    /// Chunks at a steady pace that say when they were written.
    fn stamped(&mut self, n: usize, micros: usize) -> Flow {
        let id = self.session.next_id("msg");
        self.open_block(&id, "text");
        let pace = Duration::from_micros(micros as u64);
        let mut due = Instant::now();
        for _ in 0..n {
            // Counted from the start, so that a late chunk does not delay the ones after it.
            due += pace;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if self.inbox.interrupted() {
                self.close_block(&id);
                return self.interrupt(&During::Text);
            }
            let stamp = format!("{:020} ", sys::monotonic_nanos());
            self.event(&id, &frames::delta("text_delta", "text", &stamp));
        }
        self.close_block(&id);
        Flow::Continue(())
    }

    fn tool_use(&mut self, name: &str, input: &Value) -> String {
        let (message_id, id) = (self.session.next_id("msg"), self.session.next_id("toolu"));
        let line =
            self.session.assistant(&message_id, &frames::tool_block(&id, name, input), false);
        self.output.line(&line);
        id
    }

    fn tool_result(&mut self, id: &str, content: &str, is_error: bool) {
        let line = self.session.tool_result(id, content, is_error);
        self.output.line(&line);
    }

    fn ask_permission(&mut self, name: &str, input: &Value) -> Flow {
        let id = self.tool_use(name, input);
        let request_id = self.session.next_uuid();
        self.output.line(&frames::can_use_tool(&request_id, &id, name, input));
        let Woken::Answer(answer) = self.inbox.answer(&request_id) else {
            self.output.line(&frames::cancel_request(&request_id));
            self.tool_result(&id, "The user doesn't want to proceed with this tool use.", true);
            return self.interrupt(&During::Tool);
        };
        if answer["behavior"] == "allow" {
            self.tool_result(&id, "ok", false);
            return Flow::Continue(());
        }
        self.tool_result(&id, answer["message"].as_str().unwrap_or("denied"), true);
        if answer["interrupt"] == true {
            return self.interrupt(&During::Tool);
        }
        Flow::Continue(())
    }

    /// A valid line of exactly `bytes` bytes, its end not counted.
    fn huge(&mut self, bytes: usize) {
        let id = self.session.next_id("msg");
        let (head, tail) = self.session.assistant_around(&id, false);
        let head = format!(r#"{head}{{"type":"text","text":""#);
        let tail = format!("\"}}{tail}");
        let fill = bytes.saturating_sub(head.len() + tail.len());
        self.output.filled(&head, fill, &format!("{tail}\n"));
    }

    fn wait(&mut self, time: Option<Duration>) -> Flow {
        match self.inbox.sleep(time) {
            Woken::Interrupted => self.interrupt(&During::Text),
            Woken::TimeOver | Woken::Answer(_) => Flow::Continue(()),
        }
    }

    fn interrupt(&mut self, during: &During) -> Flow {
        let (text, reason) = match during {
            During::Text => ("[Request interrupted by user]", "aborted_streaming"),
            During::Tool => ("[Request interrupted by user for tool use]", "aborted_tools"),
        };
        let user = self.session.user(&format!("[{}]", frames::text_block(text)));
        self.output.line(&user);
        self.result(Outcome::Error, reason);
        Flow::Break(())
    }

    fn result(&mut self, outcome: Outcome, reason: &str) {
        self.failed = outcome != Outcome::Success;
        let line = self.session.result(outcome, reason, &self.said);
        self.output.line(&line);
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// A chunk of `bytes` bytes that begins with its number.
fn chunk(number: usize, bytes: usize) -> String {
    format!("{:x<bytes$}", format!("{number:08}"))
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

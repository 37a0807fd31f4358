//! The floor of a burst: frames an agent's lines, parses each once, writes one message chunk for each
//! delta, and does nothing else.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use memchr::memmem;
use tieline_wire::ndjson::{self, Framer, Line};

use crate::bench::driver::Driver;

/// What the product reads at once, too.
const CHUNK: usize = 64 * 1024;

/// Says that a turn is over.
pub(super) const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#;

const BEFORE: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"acp-20260101-abcdefgh","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#;
const AFTER: &[u8] = b"},\"messageId\":\"msg_0001\"}}}\n";

pub(in crate::bench) fn main(driver: Driver) -> anyhow::Result<()> {
    // The standard handles buffer; this wants plain reads and writes.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut framer = Framer::default();
    let mut buffer = vec![0; CHUNK];
    let mut written = Vec::with_capacity(CHUNK * 2);
    loop {
        let n = stdin.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        framer.feed(buffer.get(..n).unwrap_or_default(), |line| {
            if let Line::Whole(line) = line {
                answer(driver, ndjson::content(&line), &mut written);
            }
        });
        // One write for all lines of a read: a floor that wrote line by line would be a low one.
        stdout.write_all(&written)?;
        written.clear();
    }
}

fn answer(driver: Driver, line: &[u8], written: &mut Vec<u8>) {
    if let Some(text) = driver.delta(line) {
        written.extend_from_slice(BEFORE);
        serde_json::to_writer(&mut *written, &*text).expect("text is always valid JSON");
        written.extend_from_slice(AFTER);
    } else if memmem::find(line, driver.end_of_turn().as_bytes()).is_some() {
        written.extend_from_slice(ANSWER.as_bytes());
        written.push(b'\n');
    }
}

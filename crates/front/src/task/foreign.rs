//! What another program says in markers, as events of ours. Sans-IO.

use std::sync::Arc;

use tieline_event::{
    ConversationKey, Epoch, Event, FORMAT, FileFate, Item, ItemBody, ItemId, ItemStatus, Kind,
    Native, Seq, Source, TaskFile, TaskMarker, Teller, Timestamp,
};
use tieline_wire::markers::{Change, Marker, Piece, Reader};

use super::print::{Format, Tail};
use super::state::State;
use crate::run::page::Look;

pub use tieline_wire::markers::Reading;

#[cfg(test)]
mod tests;

/// Reads bytes and gives what is to be printed.
pub struct Foreign {
    format: Format,
    reader: Reader,
    /// Bytes of a character that is not whole yet.
    partial: Vec<u8>,
    state: State,
    tail: Tail,
    seq: Seq,
    /// Lines since the last marker.
    text: Vec<String>,
}

impl Foreign {
    /// In this form.
    pub fn new(format: Format, reading: Reading) -> Self {
        Self {
            format,
            reader: Reader::new(reading),
            partial: Vec::new(),
            state: State::new(String::new()),
            tail: Tail::of_program(format, Look::plain()),
            seq: Seq(0),
            text: Vec::new(),
        }
    }

    /// Takes the next bytes. What is no UTF-8 is replaced.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.partial) {
            Ok(_) => self.partial.len(),
            // Only the end may be waiting for more.
            Err(err) if err.error_len().is_none() => err.valid_up_to(),
            Err(_) => {
                let at = self.partial.iter().rposition(|byte| *byte == b'\n');
                at.map_or(self.partial.len(), |at| at + 1)
            }
        };
        let rest = self.partial.split_off(whole);
        let bytes = std::mem::replace(&mut self.partial, rest);
        let text = String::from_utf8_lossy(&bytes);
        let pieces = collect(|sink| self.reader.feed(&text, sink));
        self.hear(pieces);
    }

    /// Nothing was said for some time: what was heard is told, a question above all, because whoever asked
    /// it may wait for an answer.
    pub fn pause(&mut self) {
        let pieces = collect(|sink| self.reader.pause(sink));
        self.hear(pieces);
        self.flush_text();
    }

    /// The input is over.
    pub fn finish(&mut self) {
        let last = std::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&last);
        let mut pieces = collect(|sink| self.reader.feed(&text, sink));
        pieces.extend(collect(|sink| self.reader.finish(sink)));
        self.hear(pieces);
        self.flush_text();
    }

    /// Takes what is to be printed.
    pub fn take(&mut self) -> String {
        self.tail.take()
    }

    fn hear(&mut self, pieces: Vec<Result<String, Marker>>) {
        for piece in pieces {
            match piece {
                Ok(line) if self.format == Format::Jsonl => self.text.push(line),
                Ok(line) => self.tail.line(&line),
                Err(marker) => {
                    self.flush_text();
                    let marker = self.understood(marker);
                    self.tell(Kind::TaskMarker(marker));
                }
            }
        }
    }

    /// Text between markers is a message.
    fn flush_text(&mut self) {
        let lines = std::mem::take(&mut self.text);
        let text = lines.join("\n");
        if text.trim().is_empty() {
            return;
        }
        let id = ItemId::new(format!("text{}", self.seq.next().0));
        let body = ItemBody::AgentMessage { text: text.into() };
        self.tell(Kind::ItemCompleted(Item { id, status: ItemStatus::Ok, body }));
    }

    fn tell(&mut self, kind: Kind) {
        self.seq = self.seq.next();
        let driver: Arc<str> = "markers".into();
        self.tail.event(&Event {
            v: FORMAT,
            conversation: ConversationKey::new("foreign").expect("it is a plain word"),
            seq: self.seq,
            epoch: Epoch(1),
            ts: Timestamp::now(),
            turn: None,
            item: kind.item().cloned(),
            parent: None,
            origin: None,
            native: Native::default(),
            source: Source { driver, version: None, frames: None },
            kind,
        });
    }

    fn understood(&mut self, marker: Marker) -> TaskMarker {
        let iterations = marker.iterations().unwrap_or(0);
        match marker {
            Marker::Progress(text) => TaskMarker::Progress { text, by: Teller::Agent },
            Marker::Question(question) => self.state.asked_in_marker(question),
            Marker::Blocked { reason, context } => TaskMarker::Blocked { reason, context },
            Marker::FilesModified(files) => {
                let file = |file: tieline_wire::markers::FileChange| {
                    let (change, from) = match file.change {
                        Change::Created => (FileFate::Created, None),
                        Change::Deleted => (FileFate::Deleted, None),
                        Change::Renamed { from } => (FileFate::Renamed, Some(from)),
                        Change::Modified => (FileFate::Modified, None),
                        Change::Unknown => (FileFate::Unknown, None),
                    };
                    TaskFile { path: file.path, change, from }
                };
                let files = files.into_iter().map(file).collect();
                TaskMarker::FilesModified { files, mismatches: Vec::new(), partial: false }
            }
            Marker::Complete { .. } => TaskMarker::Completed { iterations },
            Marker::Other { name, content } => TaskMarker::Other { name, content },
        }
    }
}

/// Lines and markers, apart from the reader that gave them.
fn collect(read: impl FnOnce(&mut dyn FnMut(Piece<'_>))) -> Vec<Result<String, Marker>> {
    let mut pieces = Vec::new();
    read(&mut |piece| {
        pieces.push(match piece {
            Piece::Text(line) => Ok(line.to_owned()),
            Piece::Marker(marker) => Err(marker),
        });
    });
    pieces
}

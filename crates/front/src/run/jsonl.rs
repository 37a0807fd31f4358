//! Entries as lines of JSON. Sans-IO, and the hot path: an event's line is the bytes it is stored
//! as, a delta is written from where it lies. What a terminal would obey is escaped.

use serde::Serialize;
use tieline_event::{ConversationKey, Delta, FORMAT, ItemId, Stream, TurnId};
use tieline_hub::Entry;

use crate::json::push_escaped;

/// The line of [`tieline_event::schema::DeltaLine`], borrowed.
#[derive(Serialize)]
struct DeltaLine<'a> {
    v: u32,
    kind: &'static str,
    conversation: &'a ConversationKey,
    turn: &'a TurnId,
    item: &'a ItemId,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a ItemId>,
    stream: Stream,
    offset: u64,
    text: &'a str,
}

/// Appends an entry as one line.
pub fn push(entry: &Entry, conversation: &ConversationKey, buffer: &mut Vec<u8>) {
    match entry {
        Entry::Event(shown) => push_escaped(&shown.json, buffer),
        Entry::Delta(delta) => push_delta(delta, conversation, buffer),
    }
    buffer.push(b'\n');
}

fn push_delta(delta: &Delta, conversation: &ConversationKey, buffer: &mut Vec<u8>) {
    let line = DeltaLine {
        v: FORMAT,
        kind: "delta",
        conversation,
        turn: &delta.turn,
        item: &delta.item,
        parent: delta.parent.as_ref(),
        stream: delta.stream,
        offset: delta.offset,
        text: &delta.text,
    };
    let begin = buffer.len();
    serde_json::to_writer(&mut *buffer, &line)
        .expect("texts and numbers are JSON, and memory takes them");
    let is_plain = buffer.iter().skip(begin).all(|byte| *byte < 0x7f);
    if !is_plain {
        let line = buffer.split_off(begin);
        push_escaped(&line, buffer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tieline_event::schema::{DeltaKind, DeltaLine};

    use super::*;

    #[test]
    fn a_delta_is_the_line_the_schema_describes() {
        let conversation = ConversationKey::new("k \"1\"").unwrap();
        for parent in [None, Some("p".into())] {
            let delta = Delta {
                turn: "t1".into(),
                item: "i1".into(),
                parent,
                stream: Stream::Text,
                offset: 7,
                text: "a\u{1b}\"\n".into(),
            };
            let mut buffer = Vec::new();
            push(&Entry::Delta(Arc::new(delta.clone())), &conversation, &mut buffer);
            let schema = DeltaLine {
                v: FORMAT,
                kind: DeltaKind::Delta,
                conversation: conversation.clone(),
                delta,
            };
            let expected = serde_json::to_string(&schema).unwrap() + "\n";
            assert_eq!(String::from_utf8(buffer).unwrap(), expected);
        }
    }
}

//! Front ends: from events to what a client reads, nothing else.
//!
//! # How it works
//!
//! [`run`] shows one conversation to a person or a script. Its cores are sans-IO: [`run::text`]
//! turns events and deltas into what a terminal or a pipe shows, [`run::ask`] turns a request into
//! a dialogue and the dialogue into an answer, [`run::jsonl`] turns entries into lines. One loop
//! moves their bytes. [`markdown`] writes a whole history as a document. [`task`] hands work to an
//! agent and says in markers how it goes; [`mcp`] offers that as tools to other agents.
//!
//! # Invariants
//!
//! * A front never learns which agent it shows.
//! * Text of an agent reaches a terminal only through [`sanitize`]. JSONL carries it escaped.
//! * What a person decides about is shown by `review` through [`visible`]: nothing is left out.
//! * A byte of an agent's message is shown once, whether it came as a delta or in an event.

pub mod acp;
pub mod json;
pub mod markdown;
pub mod mcp;
pub mod notify;
mod outbox;
mod prefix;
mod review;
pub mod run;
pub mod sanitize;
pub mod sqeq;
mod summary;
pub mod task;
#[cfg(test)]
mod testing;
pub mod visible;

use tieline_event::{BlobRef, Text};

/// Where the whole of a large text comes from.
pub type Fetch<'a> = dyn FnMut(&BlobRef) -> Option<Vec<u8>> + 'a;

/// The whole text, or as much of it as is left.
pub(crate) fn whole(text: &Text, fetch: &mut Fetch<'_>) -> String {
    match text {
        Text::Inline(text) => text.clone(),
        Text::Blob { blob, head, tail } => match fetch(blob) {
            // Without a copy: it is a large one.
            Some(bytes) => String::from_utf8(bytes)
                .unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned()),
            None => format!("{head}\n[{} bytes are not in the store]\n{tail}", blob.bytes),
        },
    }
}

//! What the agent does: commands, patches, tools, reviews.

use std::collections::HashMap;

use tieline_event::{
    Item, ItemBody, ItemId, ItemStatus, LineSpan, Native, NoticeLevel, ReviewFinding,
    ReviewOutcome, Stream,
};
use tieline_wire::sqeq::{self, EventMsg};

use super::ProtoDriver;
use crate::ledger::{Ledger, Meta};
use crate::sqeq::{Call, call};

/// Calls of the running task.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_id: HashMap<String, Known>,
    review: Option<ItemId>,
}

impl Calls {
    /// Whether there were none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.review.is_none()
    }
}

/// What is known of a call.
#[derive(Debug, Default)]
struct Known {
    /// Its item, while it is open.
    item: Option<ItemId>,
    /// How often it was over: a command that failed in the sandbox may run once more.
    n_over: u32,
    /// Bytes of a character whose rest has not come, for each output.
    cut: [Vec<u8>; 2],
}

impl Known {
    /// The item. Providers number their calls anew in each answer, so the turn is part of its id.
    fn item(&mut self, call: &str, ledger: &Ledger) -> ItemId {
        let turn = ledger.current_turn().map_or("idle", |turn| turn.as_str());
        let name = || match self.n_over {
            0 => ItemId::new(format!("{turn}:{call}")),
            n => ItemId::new(format!("{turn}:{call}:{}", n + 1)),
        };
        self.item.get_or_insert_with(name).clone()
    }
}

impl ProtoDriver {
    /// The begin or the end of a call; `false` when the event is about something else.
    pub(super) fn call(&mut self, event: &EventMsg<'_>, ledger: &mut Ledger) -> bool {
        let begun = |id: &str| self.call_body(id, ledger);
        let Some(Call { id, status, body, trouble }) = call(event, begun) else { return false };
        if let Some(trouble) = trouble {
            ledger.notice(NoticeLevel::Warning, "patch_failed", trouble);
        }
        match status {
            ItemStatus::InProgress => {
                self.call_begins(id, body, ledger);
            }
            _ => self.call_ends(id, status, body, ledger),
        }
        true
    }

    /// A call began or changed.
    pub(super) fn call_begins(
        &mut self,
        call: &str,
        body: ItemBody,
        ledger: &mut Ledger,
    ) -> ItemId {
        let id = self.calls.by_id.entry(call.to_owned()).or_default().item(call, ledger);
        // The request before it may have told the same.
        if ledger.item(id.as_str()).is_none_or(|item| item.body != body) {
            let item = Item { id: id.clone(), status: ItemStatus::InProgress, body };
            ledger.upsert_item(meta(call), item);
        }
        id
    }

    /// A call is over.
    pub(super) fn call_ends(
        &mut self,
        call: &str,
        status: ItemStatus,
        body: ItemBody,
        ledger: &mut Ledger,
    ) {
        let known = self.calls.by_id.entry(call.to_owned()).or_default();
        let id = known.item(call, ledger);
        *known = Known { n_over: known.n_over + 1, ..Known::default() };
        ledger.complete_item(meta(call), Item { id, status, body });
    }

    /// What is known of a call that is open.
    pub(super) fn call_body(&self, call: &str, ledger: &Ledger) -> Option<ItemBody> {
        let id = self.calls.by_id.get(call)?.item.as_ref()?;
        ledger.item(id.as_str()).map(|item| item.body.clone())
    }

    pub(super) fn output(
        &mut self,
        it: &sqeq::ExecCommandOutputDelta<'_>,
        line: &[u8],
        ledger: &mut Ledger,
    ) {
        let Some(bytes) = it.chunk.bytes() else {
            ledger.unparsed("the output is not base64", line);
            return;
        };
        let is_new = !self.calls.by_id.contains_key(&*it.call_id);
        if is_new && ledger.current_turn().is_none() {
            return; // of a command that outlived its turn
        }
        let known = self.calls.by_id.entry(it.call_id.to_string()).or_default();
        if is_new {
            known.item(&it.call_id, ledger);
        }
        let Known { item: Some(id), cut, .. } = known else { return };
        let cut = &mut cut[usize::from(it.stream == sqeq::OutputStream::Stderr)];
        let (text, rest) = match cut.is_empty() {
            true => whole_characters(&bytes),
            false => {
                cut.extend_from_slice(&bytes);
                whole_characters(cut)
            }
        };
        *cut = rest;
        ledger.grow(id, || meta(&it.call_id), Stream::Output, &text);
    }

    pub(super) fn review_begin(&mut self, it: &sqeq::EnteredReviewMode<'_>, ledger: &mut Ledger) {
        let id = self.texts.name("review", ledger);
        let text = it.user_facing_hint.as_deref().or(it.prompt.as_deref()).unwrap_or_default();
        let body = ItemBody::Review { text: text.into(), outcome: None };
        let item = Item { id: id.clone(), status: ItemStatus::InProgress, body };
        ledger.upsert_item(Meta::default(), item);
        self.calls.review = Some(id);
    }

    pub(super) fn review_end(&mut self, it: &sqeq::ExitedReviewMode<'_>, ledger: &mut Ledger) {
        let id = self.calls.review.take();
        let id = id.unwrap_or_else(|| self.texts.name("review", ledger));
        let (status, text, outcome) = match &it.review_output {
            Some(review) => (ItemStatus::Ok, review_text(review), Some(review_outcome(review))),
            None => (ItemStatus::Cancelled, String::new(), None),
        };
        let body = ItemBody::Review { text: text.into(), outcome: outcome.map(Box::new) };
        ledger.complete_item(Meta::default(), Item { id, status, body });
    }
}

fn review_text(review: &sqeq::ReviewOutput<'_>) -> String {
    let mut text = review.overall_explanation.to_string();
    for finding in &review.findings {
        let place = &finding.code_location;
        let sqeq::LineRange { start, end } = place.line_range;
        let path = &place.absolute_file_path;
        text.push_str(&format!("\n\n{} ({path}:{start}-{end})\n{}", finding.title, finding.body));
    }
    text.trim_start().to_owned()
}

fn review_outcome(review: &sqeq::ReviewOutput<'_>) -> ReviewOutcome {
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let findings = review.findings.iter().map(|finding| {
        let place = &finding.code_location;
        let sqeq::LineRange { start, end } = place.line_range;
        ReviewFinding {
            title: finding.title.to_string(),
            body: (*finding.body).into(),
            confidence: Some(finding.confidence_score),
            priority: Some(finding.priority),
            path: filled(&place.absolute_file_path),
            lines: (start > 0).then(|| LineSpan { first: start, last: end.max(start) }),
        }
    });
    ReviewOutcome {
        findings: findings.collect(),
        correctness: filled(&review.overall_correctness),
        explanation: filled(&review.overall_explanation).map(Into::into),
        confidence: Some(review.overall_confidence_score),
    }
}

fn meta(call: &str) -> Meta {
    Meta { parent: None, native: Native { item: Some(call.to_owned()), ..Native::default() } }
}

/// Bytes as text, and those at the end that are not a whole character yet.
fn whole_characters(bytes: &[u8]) -> (String, Vec<u8>) {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid();
        let is_last = invalid.as_ptr_range().end == bytes.as_ptr_range().end;
        let is_cut = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if is_last && is_cut {
            return (text, invalid.to_vec());
        }
        if !invalid.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    (text, Vec::new())
}

#[test]
fn a_character_that_is_cut_waits_for_its_rest() {
    assert_eq!(whole_characters(b"a\xc3"), ("a".to_owned(), vec![0xc3]));
    assert_eq!(whole_characters("aé".as_bytes()), ("aé".to_owned(), vec![]));
    assert_eq!(whole_characters(b"\xff\xe2\x82"), ("\u{fffd}".to_owned(), vec![0xe2, 0x82]));
    assert_eq!(whole_characters(b"\xe2\x82a"), ("\u{fffd}a".to_owned(), vec![]));
}

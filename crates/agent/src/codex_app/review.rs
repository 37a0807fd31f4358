//! A review. The server runs it in a turn of its own kind: a second turn begins within the first one
//! and gets no end of its own, and what the reviewer found comes as an item and again as a message.

use tieline_event::ItemId;
use tieline_wire::codex_app::{Item, Turn};

use super::driver::AppDriver;

/// The review that runs.
#[derive(Debug, Default)]
pub(super) struct Review {
    /// The turn within the turn; an interrupt has to name it.
    pub(super) inner_turn: Option<String>,
    item: Option<ItemId>,
    /// What the reviewer found.
    text: Option<String>,
}

impl AppDriver {
    /// Whether this is the turn that the server begins within the turn of a review.
    pub(super) fn is_inner_turn(&mut self, turn: &Turn<'_>) -> bool {
        let Some(review) = &mut self.review else { return false };
        // Until the outer turn has its name, this is the name.
        let is_inner = !self.turns.is_empty() && self.nameless.is_empty();
        if is_inner {
            review.inner_turn = Some(turn.id.to_string());
        }
        is_inner
    }

    /// Takes note of an item of a review; says whether it tells nothing that is to be shown.
    pub(super) fn is_told_by_review(&mut self, item: &Item<'_>, is_over: bool) -> bool {
        match &*item.kind {
            // The review goes on until the server leaves it.
            "enteredReviewMode" => is_over,
            "exitedReviewMode" if is_over => {
                let review = self.review.get_or_insert_default();
                review.text = item.review.as_deref().map(str::to_owned);
                // Both ends are one item.
                if let Some(entered) = review.item.take() {
                    self.names.insert(item.id.to_string(), entered);
                }
                false
            }
            "exitedReviewMode" => true,
            "agentMessage" => match &self.review {
                // The reviewer's own words are for the server, which tells what it made of them.
                Some(_) if !is_over => true,
                Some(Review { text: Some(told), .. }) => item.text.as_deref() == Some(told),
                _ => false,
            },
            _ => false,
        }
    }

    /// The server is in a review, which this item shows.
    pub(super) fn entered_review(&mut self, item: &ItemId) {
        self.review.get_or_insert_default().item = Some(item.clone());
    }

    /// What the review of this turn found.
    pub(super) fn review_text(&self) -> Option<String> {
        self.review.as_ref()?.text.clone()
    }
}

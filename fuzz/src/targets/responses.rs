//! What a model's provider writes: nothing of it is an error, and an item is kept as it came.

use tieline_wire::responses::{ApiError, Item, ItemView, Response, StreamEvent};
use tieline_wire::sqeq::TokenUsage;

use super::lines;

pub(super) fn check(input: &[u8]) {
    for line in lines(input) {
        event(StreamEvent::parse(line));
        if let Some(error) = ApiError::read(line) {
            explain(&error);
        }
    }
}

fn event(event: StreamEvent<'_>) {
    match event {
        StreamEvent::ItemAdded(it) | StreamEvent::ItemDone(it) => {
            let item = it.to_item();
            assert_eq!(item.get(), it.item.get(), "an item is not what was written");
            look(&item);
        }
        StreamEvent::Created(it)
        | StreamEvent::Completed(it)
        | StreamEvent::Failed(it)
        | StreamEvent::Incomplete(it) => response(&it),
        StreamEvent::Error(error) => explain(&error),
        _ => {}
    }
}

fn look(item: &Item) {
    match item.view() {
        ItemView::Message(it) => drop(it.text()),
        ItemView::Reasoning(it) => {
            let n_bytes = |parts: usize, text: &str| parts + text.len();
            it.summary.iter().chain(&it.content).fold(0, |sum, part| n_bytes(sum, part.text()));
        }
        _ => {}
    }
    // Whatever is left out, the rest is still JSON; halves of letters in its strings may be there.
    let without = item.without(&["id"]);
    assert!(serde_json::from_str::<&serde_json::value::RawValue>(without.get()).is_ok());
    assert_eq!(without.without(&["id"]).get(), without.get());
}

fn response(response: &Response<'_>) {
    if let Some(usage) = response.usage {
        assert!(usage.total() >= usage.total_tokens);
        let _counted: TokenUsage = usage.into();
    }
    if let Some(error) = &response.error {
        explain(error);
    }
    assert!(response.reason().is_empty() || response.incomplete_details.is_some());
}

fn explain(error: &ApiError<'_>) {
    error.about();
    error.word();
}

//! Reviews, as 0.166 and 0.110 run them: a turn within a turn.

use super::*;

const FOUND: &str = "One bug.\n\nReview comment:\n\n- [P1] Off by one — /w/a.rs:1-2\n  It skips.";

/// A review that has its name and its inner turn.
fn reviewing() -> Replay {
    let mut replay = ready(&launch(Mode::Default));
    replay.session.start_turn(&Prompt::text("/review"));
    replay.settle();
    let id = replay.take("review/start")["id"].clone();
    replay.tell(&json!({"id": id, "result": {
        "turn": {"id": "outer", "items": [], "status": "inProgress"}, "reviewThreadId": "thread",
    }}));
    item(
        &mut replay,
        &json!({"type": "enteredReviewMode", "id": "in", "review": "current changes"}),
    );
    replay.tell(&json!({"method": "turn/started", "params": {"threadId": "thread", "turn":
        {"id": "inner", "items": [], "status": "inProgress"}}}));
    let begun = json!({"item": {"type": "agentMessage", "id": "m", "text": ""},
        "threadId": "thread", "turnId": "outer"});
    replay.tell(&json!({"method": "item/started", "params": begun}));
    replay
}

/// An item from its beginning to its end.
fn item(replay: &mut Replay, item: &Value) {
    for method in ["item/started", "item/completed"] {
        let params = json!({"item": item, "threadId": "thread", "turnId": "outer"});
        replay.tell(&json!({"method": method, "params": params}));
    }
}

fn leave(replay: &mut Replay, found: &str, said: &str) {
    item(replay, &json!({"type": "exitedReviewMode", "id": "out", "review": found}));
    item(replay, &json!({"type": "agentMessage", "id": "last", "text": said}));
}

#[test]
fn a_review_ends_once_and_is_told_once() {
    let mut replay = reviewing();
    leave(&mut replay, FOUND, FOUND);
    replay.end_turn("outer", "completed");
    let text = shown(&replay);
    assert_eq!(text.matches("turn.started").count(), 1, "{text}");
    assert_eq!(text.matches("turn.completed: Completed by Wire").count(), 1, "{text}");
    let items = |name: &str| {
        let done = replay.outputs.iter().filter_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::ItemCompleted(item) if item.body.name() == name => Some(item.clone()),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        done.collect::<Vec<_>>()
    };
    assert_eq!(items("agent_message"), [], "{text}");
    let reviews = items("review");
    assert_eq!(reviews.len(), 1, "{text}");
    assert!(serde_json::to_string(&reviews[0]).unwrap().contains("Off by one"), "{text}");
    assert!(replay.session.ledger_mut().current_turn().is_none());
    let end = replay.outputs.iter().find_map(|output| match output {
        Output::Event(draft) => match &draft.kind {
            Kind::TurnCompleted(end) => Some(end.text.preview().to_owned()),
            _ => None,
        },
        Output::Delta(_) => None,
    });
    assert_eq!(end.as_deref(), Some(FOUND), "its text is the answer of the turn");
    // The next prompt is a turn like any other.
    replay.outputs.clear();
    replay.session.start_turn(&Prompt::text("go on"));
    replay.settle();
    replay.name_turn("next");
    replay.end_turn("next", "completed");
    assert!(shown(&replay).contains("turn.completed: Completed"), "{}", shown(&replay));
}

#[test]
fn an_interrupt_of_a_review_names_the_inner_turn() {
    let mut replay = reviewing();
    assert!(replay.session.interrupt());
    replay.settle();
    assert_eq!(replay.take("turn/interrupt")["params"]["turnId"], json!("inner"));
    leave(&mut replay, "Reviewer failed to output a response.", "Review was interrupted.");
    replay.end_turn("outer", "interrupted");
    let text = shown(&replay);
    assert_eq!(text.matches("turn.completed: Interrupted by Wire").count(), 1, "{text}");
    assert!(replay.session.ledger_mut().current_turn().is_none());
}

#[test]
fn an_end_of_the_inner_turn_is_not_the_end_of_the_review() {
    let mut replay = reviewing();
    replay.end_turn("inner", "completed");
    assert!(replay.session.ledger_mut().current_turn().is_some());
    leave(&mut replay, FOUND, FOUND);
    replay.end_turn("outer", "completed");
    let text = shown(&replay);
    assert_eq!(text.matches("turn.completed").count(), 1, "{text}");
}

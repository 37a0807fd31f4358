//! Closing what a crash of ours left open.

use std::collections::HashMap;

use serde::Deserialize;
use tieline_event::{
    ConversationKey, EndSignal, Event, Expired, Failure, FailureCode, Item, ItemStatus, Kind, Seq,
    Text, TurnCompleted, TurnId, TurnStatus,
};
use tieline_store::Store;

/// How many events are looked at together.
const PAGE: u64 = 512;

/// Events that close the turns, items and requests which a dead owner left open, in order.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn closing_events(
    store: &Store,
    key: &ConversationKey,
    last: Seq,
) -> Result<Vec<(Option<TurnId>, Kind)>, tieline_store::Error> {
    let mut closing = Vec::new();
    for open in store.open_requests(key)? {
        let expired = Expired {
            request: open.request.id,
            reason: "tieline ended before it was answered".to_owned(),
        };
        closing.push((None, Kind::RequestExpired(expired)));
    }
    let Some(start) = start_of_open_turns(store, key, last)? else { return Ok(closing) };
    let mut turns: Vec<TurnId> = Vec::new();
    let mut items: Vec<(Option<TurnId>, Item)> = Vec::new();
    let mut after = Seq(start.0 - 1);
    loop {
        let page = store.events(key, after, PAGE as usize)?;
        let Some(end) = page.last() else { break };
        after = end.seq;
        for stored in page {
            // An event of a newer version is not ours to close.
            let Ok(event) = Event::from_json(&stored.json) else { continue };
            match event.kind {
                Kind::TurnStarted(_) => turns.extend(event.turn),
                Kind::TurnCompleted(_) => turns.retain(|turn| Some(turn) != event.turn.as_ref()),
                Kind::ItemStarted(item) | Kind::ItemUpdated(item) => {
                    items.retain(|(_, open)| open.id != item.id);
                    items.push((event.turn, item));
                }
                Kind::ItemCompleted(item) => items.retain(|(_, open)| open.id != item.id),
                _ => {}
            }
        }
    }
    for (turn, mut item) in items {
        item.status = ItemStatus::Cancelled;
        closing.push((turn, Kind::ItemCompleted(item)));
    }
    let failure = Failure::new(FailureCode::AgentKilled, "tieline ended during the turn")
        .hint("the conversation goes on with the next message");
    for turn in turns {
        let end = TurnCompleted {
            status: TurnStatus::Failed,
            error: Some(failure.clone()),
            signal: EndSignal::Tieline,
            stop_reason: None,
            text: Text::default(),
            usage: None,
            duration_ms: None,
            open_tasks: 0,
        };
        closing.push((Some(turn), Kind::TurnCompleted(end)));
    }
    Ok(closing)
}

/// The first event of the oldest turn without an end, looking back from the last event.
fn start_of_open_turns(
    store: &Store,
    key: &ConversationKey,
    last: Seq,
) -> Result<Option<Seq>, tieline_store::Error> {
    #[derive(Deserialize)]
    struct Head<'a> {
        seq: Seq,
        #[serde(borrow)]
        kind: &'a str,
        turn: Option<TurnId>,
    }
    let mut ended: HashMap<TurnId, ()> = HashMap::new();
    let mut open = None;
    let mut until = last.0;
    while until > 0 {
        let from = until.saturating_sub(PAGE);
        let mut page = store.events(key, Seq(from), usize::try_from(until - from).unwrap_or(0))?;
        page.reverse();
        for stored in page {
            let Ok(head) = serde_json::from_slice::<Head<'_>>(&stored.json) else { continue };
            let Some(turn) = head.turn else { continue };
            match head.kind {
                "turn.completed" => drop(ended.insert(turn, ())),
                // Turns overlap by one at most: past a turn that ended, nothing is open.
                "turn.started" if ended.remove(&turn).is_some() => return Ok(open),
                "turn.started" => open = Some(head.seq),
                _ => {}
            }
        }
        until = from;
    }
    Ok(open)
}

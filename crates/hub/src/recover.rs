//! Closing what a crash of ours left open.

use std::collections::HashSet;

use serde::Deserialize;
use tieline_event::{
    ConversationKey, EndSignal, Event, Expired, Failure, FailureCode, Item, ItemId, ItemStatus,
    Kind, Seq, Text, TurnCompleted, TurnId, TurnStatus, Usage,
};
use tieline_store::Store;

/// How many events are looked at together.
const PAGE: u64 = 512;

/// An event that closes something.
pub(crate) struct Closing {
    /// In which turn.
    pub(crate) turn: Option<TurnId>,
    /// Under which item.
    pub(crate) parent: Option<ItemId>,
    /// How it is closed.
    pub(crate) kind: Kind,
}

/// What the native session had used by the end of the last turn, if its agent told so at that end.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn session_usage(
    store: &Store,
    key: &ConversationKey,
    last: Seq,
    n_turns: u64,
) -> Result<Option<Usage>, tieline_store::Error> {
    /// It stands right before the end of the turn; the ends of process and conversation follow.
    const NEAR: u64 = 16;
    let turn = TurnId::new(format!("t{n_turns}"));
    let page = store.events(key, Seq(last.0.saturating_sub(NEAR)), NEAR as usize)?;
    Ok(page.iter().rev().find_map(|stored| {
        let event = Event::from_json(&stored.json).ok()?;
        match event.kind {
            Kind::UsageUpdated(usage) if event.turn.as_ref() == Some(&turn) => Some(usage),
            _ => None,
        }
    }))
}

/// Events that close the turns, items and requests which a dead owner left open, in order.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn closing_events(
    store: &Store,
    key: &ConversationKey,
    last: Seq,
) -> Result<Vec<Closing>, tieline_store::Error> {
    let mut closing = Vec::new();
    for open in store.open_requests(key)? {
        let expired = Expired {
            request: open.request.id,
            reason: "tieline ended before it was answered".to_owned(),
        };
        let kind = Kind::RequestExpired(expired);
        closing.push(Closing { turn: None, parent: None, kind });
    }
    let Some(start) = start_of_what_may_be_open(store, key, last)? else { return Ok(closing) };
    let mut turns: Vec<TurnId> = Vec::new();
    let mut items: Vec<(Option<TurnId>, Option<ItemId>, Item)> = Vec::new();
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
                    items.retain(|(.., open)| open.id != item.id);
                    items.push((event.turn, event.parent, item));
                }
                Kind::ItemCompleted(item) => items.retain(|(.., open)| open.id != item.id),
                _ => {}
            }
        }
    }
    for (turn, parent, mut item) in items {
        item.status = ItemStatus::Cancelled;
        closing.push(Closing { turn, parent, kind: Kind::ItemCompleted(item) });
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
            bookmark: None,
        };
        closing.push(Closing { turn: Some(turn), parent: None, kind: Kind::TurnCompleted(end) });
    }
    Ok(closing)
}

/// Where to begin to look for what is open: nowhere after a clean close, else at the start of the
/// last but one turn that ended, because turns overlap by one at most.
fn start_of_what_may_be_open(
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
    let mut ended: HashSet<TurnId> = HashSet::new();
    let mut n_ended = 0;
    let mut until = last.0;
    while until > 0 {
        let from = until.saturating_sub(PAGE);
        let mut page = store.events(key, Seq(from), usize::try_from(until - from).unwrap_or(0))?;
        page.reverse();
        for stored in page {
            let Ok(head) = serde_json::from_slice::<Head<'_>>(&stored.json) else { continue };
            match (head.kind, head.turn) {
                ("conversation.closed", _) if head.seq == last => return Ok(None),
                ("turn.completed", Some(turn)) => drop(ended.insert(turn)),
                ("turn.started", Some(turn)) if ended.remove(&turn) => {
                    n_ended += 1;
                    if n_ended == 2 {
                        return Ok(Some(head.seq));
                    }
                }
                _ => {}
            }
        }
        until = from;
    }
    Ok((last.0 > 0).then_some(Seq(1)))
}

//! Hand-made events, and requests that want to deceive.

pub(crate) mod tricks;

use tieline_event::{
    ConversationKey, Delta, EndSignal, Epoch, Event, FORMAT, Item, ItemBody, ItemStatus, Kind,
    Native, Origin, Seq, Source, Stream, Timestamp, TurnCompleted, TurnStarted, TurnStatus, Usage,
};

pub(crate) fn event(millis: i64, kind: Kind) -> Event {
    Event {
        v: FORMAT,
        conversation: ConversationKey::new("demo").unwrap(),
        seq: Seq(1),
        epoch: Epoch(1),
        ts: Timestamp::from_millis(1_794_784_485_000 + millis),
        turn: Some("t1".into()),
        item: kind.item().cloned(),
        parent: None,
        origin: None,
        native: Native::default(),
        source: Source { driver: "demo".into(), version: None, frames: None },
        kind,
    }
}

pub(crate) fn item(id: &str, status: ItemStatus, body: ItemBody) -> Item {
    Item { id: id.into(), status, body }
}

pub(crate) fn message(id: &str, text: &str) -> Item {
    item(id, ItemStatus::Ok, ItemBody::AgentMessage { text: text.into() })
}

pub(crate) fn command(id: &str, status: ItemStatus, line: &str, output: &str) -> Item {
    let exit_code = match status {
        ItemStatus::Ok => Some(0),
        ItemStatus::Failed => Some(3),
        _ => None,
    };
    let body = ItemBody::Command {
        command: line.into(),
        cwd: None,
        description: None,
        output: output.into(),
        exit_code,
        background: false,
        gist: None,
    };
    item(id, status, body)
}

pub(crate) fn delta(id: &str, offset: u64, text: &str) -> Delta {
    Delta {
        turn: "t1".into(),
        item: id.into(),
        parent: None,
        stream: Stream::Text,
        offset,
        text: text.into(),
    }
}

pub(crate) fn started() -> Kind {
    Kind::TurnStarted(TurnStarted { origin: Origin::Human, idempotency_key: None })
}

pub(crate) fn completed(text: &str) -> Kind {
    Kind::TurnCompleted(TurnCompleted {
        status: TurnStatus::Completed,
        error: None,
        signal: EndSignal::Wire,
        stop_reason: None,
        text: text.into(),
        usage: Some(Usage {
            input_tokens: 1200,
            output_tokens: 34,
            cost_usd: Some(0.0123),
            ..Usage::default()
        }),
        duration_ms: Some(4200),
        open_tasks: 0,
        bookmark: None,
    })
}

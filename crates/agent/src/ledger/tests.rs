use proptest::prelude::*;
use tieline_event::{
    BLOB_THRESHOLD, EndSignal, Failure, FailureCode, Item, ItemBody, ItemId, ItemStatus, Kind,
    Origin, Prompt, Request, RequestBody, Stream, TurnStatus,
};

use super::{Ledger, Meta, Output, TurnEnd};

fn message(id: &str, status: ItemStatus, text: &str) -> Item {
    Item { id: id.into(), status, body: ItemBody::AgentMessage { text: text.into() } }
}

fn question(id: &str) -> Request {
    Request {
        id: id.into(),
        item: None,
        title: "?".into(),
        reason: None,
        body: RequestBody::ExitPlan { plan: None },
        options: vec![],
    }
}

fn end(status: TurnStatus) -> TurnEnd {
    let failed = TurnEnd::failed(Failure::new(FailureCode::Agent, "x"), EndSignal::Wire);
    TurnEnd { status, ..failed }
}

/// Kinds and items of what the ledger gave out.
fn told(ledger: &mut Ledger) -> Vec<String> {
    ledger
        .take_outputs()
        .into_iter()
        .map(|output| match output {
            Output::Delta(delta) => format!("delta {}@{}", delta.item, delta.offset),
            Output::Event(draft) => match draft.kind {
                Kind::ItemStarted(item) | Kind::ItemUpdated(item) => format!("open {}", item.id),
                Kind::ItemCompleted(item) => format!("{:?} {}", item.status, item.id),
                kind => kind.name().to_owned(),
            },
        })
        .collect()
}

#[test]
fn the_end_of_a_turn_closes_what_is_open_in_it() {
    let mut ledger = Ledger::new(0, None);
    let turn = ledger.begin_turn(Origin::Human, None);
    ledger.upsert_item(Meta::default(), message("m", ItemStatus::InProgress, ""));
    ledger.delta("m", Stream::Text, "half of ");
    ledger.delta("m", Stream::Text, "it");
    ledger.open_request(Meta::default(), question("q"));
    ledger.end_turn(&turn, end(TurnStatus::Interrupted));
    ledger.end_turn(&turn, end(TurnStatus::Completed));
    assert_eq!(
        told(&mut ledger),
        [
            "turn.started",
            "open m",
            "delta m@0",
            "request.opened",
            "request.expired",
            "Cancelled m",
            "turn.completed",
        ]
    );
}

#[test]
fn what_comes_at_once_is_one_delta_and_the_books_read_along() {
    let mut ledger = Ledger::new(0, None);
    ledger.begin_turn(Origin::Human, None);
    for id in ["m", "n"] {
        ledger.upsert_item(Meta::default(), message(id, ItemStatus::InProgress, ""));
    }
    ledger.take_outputs();
    for (id, text) in [("m", "a"), ("m", "b"), ("n", "c"), ("m", "d")] {
        ledger.delta(id, Stream::Text, text);
    }
    assert_eq!(told(&mut ledger), ["delta m@0", "delta n@0", "delta m@2"]);
    ledger.delta("m", Stream::Text, "e");
    assert_eq!(told(&mut ledger), ["delta m@3"]);
    let growing = ledger.take_growing();
    let texts: Vec<_> = growing.iter().map(|it| (it.item.as_str(), it.text.to_text())).collect();
    assert_eq!(texts, [("m", "abde".to_owned()), ("n", "c".to_owned())]);
}

#[test]
fn a_long_text_that_streamed_is_given_on_and_not_copied() {
    let long = "x".repeat(BLOB_THRESHOLD + 1);
    let mut ledger = Ledger::new(0, None);
    ledger.begin_turn(Origin::Human, None);
    for (id, text) in [("same", long.as_str()), ("other", "y"), ("short", "z")] {
        ledger.upsert_item(Meta::default(), message(id, ItemStatus::InProgress, ""));
        ledger.delta(id, Stream::Text, text);
    }
    let growing = ledger.take_growing();
    assert_eq!(ledger.whole_text("same", &long), long.as_str().into());
    assert_eq!(ledger.whole_text("other", &long), long.as_str().into());
    assert_eq!(ledger.whole_text("short", "z"), "z".into());
    assert_eq!(growing.iter().map(|it| it.text.len()).collect::<Vec<_>>(), [0, 1, 1]);
}

#[test]
fn an_item_that_was_cut_off_keeps_the_text_that_streamed() {
    let mut ledger = Ledger::new(0, None);
    ledger.begin_turn(Origin::Human, None);
    ledger.upsert_item(Meta::default(), message("m", ItemStatus::InProgress, ""));
    ledger.delta("m", Stream::Text, "half");
    let failure = Failure::new(FailureCode::AgentKilled, "gone");
    ledger.end_everything(TurnStatus::Failed, Some(&failure), EndSignal::Process);
    let text = ledger.take_outputs().into_iter().find_map(|output| match output {
        Output::Event(draft) => match draft.kind {
            Kind::ItemCompleted(Item { body: ItemBody::AgentMessage { text }, .. }) => Some(text),
            _ => None,
        },
        Output::Delta(_) => None,
    });
    assert_eq!(text.unwrap().preview(), "half");
}

#[test]
fn an_item_in_the_background_outlives_its_turn_but_not_its_agent() {
    let mut ledger = Ledger::new(0, None);
    let turn = ledger.begin_turn(Origin::Human, None);
    ledger.upsert_item(Meta::default(), message("b", ItemStatus::InProgress, ""));
    ledger.detach_item("b");
    ledger.end_turn(&turn, end(TurnStatus::Completed));
    assert_eq!(ledger.open_items().len(), 1);
    ledger.end_everything(TurnStatus::Failed, None, EndSignal::Process);
    assert_eq!(ledger.open_items().len(), 0);
    assert_eq!(told(&mut ledger).last().unwrap(), "Cancelled b");
}

#[test]
fn a_turn_that_ran_out_of_time_fails_however_the_agent_ends_it() {
    let mut ledger = Ledger::new(4, None);
    let turn = ledger.begin_turn(Origin::Human, None);
    assert_eq!(turn.as_str(), "t5");
    let failure = Failure::new(FailureCode::Timeout, "too long");
    ledger.overrule(turn.clone(), failure, EndSignal::Timeout);
    ledger.end_turn(&turn, end(TurnStatus::Interrupted));
    let Some(Output::Event(last)) = ledger.take_outputs().pop() else { panic!("an event") };
    let Kind::TurnCompleted(end) = last.kind else { panic!("an end") };
    assert_eq!((end.status, end.signal), (TurnStatus::Failed, EndSignal::Timeout));
}

proptest! {
    /// Whatever a driver says in whatever order: each turn ends once, nothing stays open.
    #[test]
    fn the_books_balance(steps in proptest::collection::vec((0..9_u8, 0..4_u8), 0..200)) {
        let mut ledger = Ledger::new(0, None);
        for (what, n) in steps {
            let id = format!("i{n}");
            let turn = ledger.current_turn().cloned();
            match what {
                0 => drop(ledger.begin_turn(Origin::Human, None)),
                1 => ledger.upsert_item(Meta::default(), message(&id, ItemStatus::InProgress, "")),
                2 => ledger.complete_item(Meta::default(), message(&id, ItemStatus::Ok, "x")),
                3 => drop(ledger.delta(&id, Stream::Text, "abc")),
                4 if !ledger.open_requests().any(|open| open.as_str() == id) => {
                    ledger.open_request(Meta::default(), question(&id));
                }
                5 => ledger.expire_request(&id.as_str().into(), "gone"),
                6 => ledger.user_message(&Prompt::text("hi")),
                7 => ledger.detach_item(&id),
                _ => if let Some(turn) = turn {
                    ledger.end_turn(&turn, end(TurnStatus::Completed));
                },
            }
        }
        ledger.end_everything(TurnStatus::Failed, None, EndSignal::Process);
        let mut turns = 0_i32;
        let mut items: std::collections::HashSet<ItemId> = Default::default();
        let mut requests = 0_i32;
        for output in ledger.take_outputs() {
            match output {
                Output::Delta(delta) => {
                    prop_assert!(items.contains(&delta.item), "a delta of an item nobody opened");
                }
                Output::Event(draft) => match draft.kind {
                    Kind::TurnStarted(_) => turns += 1,
                    Kind::TurnCompleted(_) => turns -= 1,
                    Kind::ItemStarted(item) => prop_assert!(items.insert(item.id)),
                    Kind::ItemUpdated(item) => prop_assert!(items.contains(&item.id)),
                    Kind::ItemCompleted(item) => drop(items.remove(&item.id)),
                    Kind::RequestOpened(_) => requests += 1,
                    Kind::RequestResolved(_) | Kind::RequestExpired(_) => requests -= 1,
                    _ => {}
                },
            }
        }
        prop_assert_eq!((turns, items.len(), requests), (0, 0, 0));
        prop_assert!(ledger.open_items().is_empty() && ledger.current_turn().is_none());
    }
}

fn below(parent: &str) -> Meta {
    Meta { parent: Some(parent.into()), ..Meta::default() }
}

fn opened(ledger: &mut Ledger, links: impl IntoIterator<Item = (String, String)>) {
    for (id, parent) in links {
        ledger.upsert_item(below(&parent), message(&id, ItemStatus::InProgress, ""));
    }
    ledger.take_outputs();
}

#[test]
fn work_below_an_item_ends_before_what_it_is_below() {
    let mut ledger = Ledger::new(0, None);
    ledger.begin_turn(Origin::Human, None);
    let links = [("a", "top"), ("b", "a"), ("c", "top"), ("d", "c"), ("other", "elsewhere")];
    opened(&mut ledger, links.map(|(id, parent)| (id.to_owned(), parent.to_owned())));
    ledger.cancel_under(&"top".into());
    assert_eq!(told(&mut ledger), ["Cancelled d", "Cancelled b", "Cancelled a", "Cancelled c"]);
    assert!(ledger.item("other").is_some());
}

#[test]
fn parents_may_form_rings_and_chains_of_any_length() {
    const N: usize = 100_000;
    let chain = |n: usize| (format!("i{n}"), format!("i{}", n + 1));
    let own = vec![("i0".to_owned(), "i0".to_owned())];
    let pair = vec![chain(0), ("i1".to_owned(), "i0".to_owned())];
    let ring = (0..N).map(|n| (format!("i{n}"), format!("i{}", (n + 1) % N))).collect();
    let line = (0..N).map(chain).collect();
    for links in [own, pair, ring, line] {
        for (detach, cancel) in [(false, false), (true, false), (false, true)] {
            let mut ledger = Ledger::new(0, None);
            let turn = ledger.begin_turn(Origin::Human, None);
            opened(&mut ledger, links.iter().cloned());
            let top = links.last().map(|(id, _)| id.as_str()).unwrap();
            if detach {
                ledger.detach_item(top);
            }
            if cancel {
                ledger.cancel_under(&top.into());
                assert_eq!(ledger.open_items().len(), 1, "only the item itself is left");
            }
            ledger.end_turn(&turn, end(TurnStatus::Completed));
            assert_eq!(ledger.open_items().len(), if detach { links.len() } else { 0 });
            ledger.end_everything(TurnStatus::Interrupted, None, EndSignal::Tieline);
            let n_told = told(&mut ledger).iter().filter(|it| it.contains("Cancelled")).count();
            assert_eq!(n_told, links.len());
        }
    }
}

#[test]
fn what_nobody_opened_is_opened_by_its_growth_and_whole_when_the_turn_ended_well() {
    for (status, ending) in [(TurnStatus::Completed, "Ok"), (TurnStatus::Interrupted, "Cancelled")]
    {
        let mut ledger = Ledger::new(0, None);
        let turn = ledger.begin_turn(Origin::Human, None);
        ledger.grow(&"m".into(), Meta::default, Stream::Text, "");
        ledger.grow(&"m".into(), Meta::default, Stream::Text, "all ");
        ledger.grow(&"m".into(), Meta::default, Stream::Text, "of it");
        ledger.grow(&"c".into(), Meta::default, Stream::Output, "printed");
        ledger.end_turn(&turn, TurnEnd { status, ..TurnEnd::completed(EndSignal::Wire) });
        let outputs = ledger.take_outputs();
        let text = outputs.iter().find_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::TurnCompleted(end) => Some(end.text.preview().to_owned()),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        assert_eq!(text.as_deref(), Some(if ending == "Ok" { "all of it" } else { "" }));
        let ends = outputs.iter().filter_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::ItemCompleted(item) => Some(format!("{:?} {}", item.status, item.id)),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        assert_eq!(ends.collect::<Vec<_>>(), [format!("{ending} m"), "Cancelled c".to_owned()]);
    }
}

#[test]
fn what_grows_outside_of_a_turn_is_in_the_item_s_end() {
    let mut ledger = Ledger::new(0, None);
    ledger.upsert_item(Meta::default(), message("m", ItemStatus::InProgress, ""));
    assert!(ledger.delta("m", Stream::Text, "between turns"));
    assert_eq!(told(&mut ledger), ["open m"]);
    let whole = ledger.open_items().get("m").unwrap().snapshot();
    assert_eq!(whole, message("m", ItemStatus::InProgress, "between turns"));
}

#[test]
fn the_text_of_a_turn_is_the_message_that_began_last() {
    for (first, second, expected) in
        [(false, true, "second"), (true, false, "second"), (false, false, "second")]
    {
        let mut ledger = Ledger::new(0, None);
        let turn = ledger.begin_turn(Origin::Human, None);
        for (id, is_ended) in [("first", first), ("second", second)] {
            ledger.upsert_item(Meta::default(), message(id, ItemStatus::InProgress, ""));
            ledger.delta(id, Stream::Text, id);
            if is_ended {
                ledger.complete_item(Meta::default(), message(id, ItemStatus::Ok, id));
            }
        }
        ledger.end_turn(&turn, end(TurnStatus::Completed));
        let text = ledger.take_outputs().into_iter().find_map(|output| match output {
            Output::Event(draft) => match draft.kind {
                Kind::TurnCompleted(end) => Some(end.text.preview().to_owned()),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        assert_eq!(text.as_deref(), Some(expected), "{first} {second}");
    }
}

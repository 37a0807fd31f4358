//! A conversation that branches off from another one.

use tieline_event::Seq;
use tieline_store::{
    Batch, ConversationChange, Fork, ForkedAt, JournalEntry, Lease, NewConversation, Store,
};

use crate::support::{Bench, assert_whole, events, key, new};

const SESSION: &str = "session";

fn journal(session: &str, entries: &[&str]) -> Batch {
    let entry = |body: &&str| JournalEntry { session: session.to_owned(), body: (*body).into() };
    Batch { journal: entries.iter().map(entry).collect(), ..Batch::default() }
}

/// The end of a turn.
fn turn(next: u64, position: &str) -> Batch {
    let change = ConversationChange {
        native_session: (next == 2).then(|| Some(SESSION.to_owned())),
        position: Some(position.to_owned()),
        next_turn: Some(next),
        ..ConversationChange::default()
    };
    Batch { conversation: Some(change), ..Batch::default() }
}

fn append(store: &Store, lease: &Lease, batch: Batch) {
    store.append_blocking(lease, batch).wait().unwrap();
}

fn fork(store: &Store, from: &str, to: &str, copies_journal: bool) -> tieline_store::Conversation {
    let session = store.conversation(&key(from)).unwrap().unwrap().native_session.unwrap();
    let fork = Some(Fork { session, from: key(from), copies_journal });
    let lease = store.acquire(&key(to), NewConversation { fork, ..new() }).unwrap();
    let row = lease.conversation.clone();
    store.release(lease).unwrap();
    row
}

fn entries(store: &Store, session: Option<String>) -> Vec<String> {
    let all = store.journal(&session.unwrap()).unwrap();
    all.into_iter().map(|body| String::from_utf8(body).unwrap()).collect()
}

#[test]
fn a_copied_journal_is_as_it_was_and_outlives_the_other() {
    let bench = Bench::new();
    let store = &bench.store;
    let lease = bench.lease("old");
    append(store, &lease, turn(2, ""));
    append(store, &lease, journal(SESSION, &["first"]));
    let row = fork(store, "old", "new", true);
    append(store, &lease, journal(SESSION, &["second"]));
    assert_eq!(entries(store, row.native_session.clone()), ["first"]);
    // A fork of the fork has a copy of its own.
    let grandchild = fork(store, "new", "newer", true);
    store.release(lease).unwrap();
    store.delete(&key("old")).unwrap();
    store.delete(&key("new")).unwrap();
    assert_eq!(entries(store, Some(SESSION.to_owned())), Vec::<String>::new());
    assert_eq!(entries(store, grandchild.native_session), ["first"]);
    assert_whole(store);
}

#[test]
fn a_fork_knows_how_far_the_other_had_come() {
    let bench = Bench::new();
    let store = &bench.store;
    let lease = bench.lease("old");
    append(store, &lease, events(1..=3));
    append(store, &lease, turn(2, "after one"));
    let row = fork(store, "old", "new", false);
    append(store, &lease, events(4..=5));
    append(store, &lease, turn(3, "after two"));
    assert_eq!(row.forked_at, Some(ForkedAt { turn: 1, seq: Seq(3) }));
    assert_eq!((row.forks, row.position.as_deref()), (true, Some("after one")));
    assert_eq!(row.native_session.as_deref(), Some(SESSION));
    // One that has had no turn branches off at the same place.
    let again = fork(store, "new", "newer", false);
    assert_eq!(again.forked_from, Some(key("old")));
    assert_eq!((again.forked_at, again.position), (row.forked_at, row.position));
    assert_eq!(fork(store, "old", "late", false).position.as_deref(), Some("after two"));
}

#[test]
fn a_position_belongs_to_its_session() {
    let bench = Bench::new();
    let store = &bench.store;
    let lease = bench.lease("old");
    append(store, &lease, turn(2, "after one"));
    let change = ConversationChange {
        native_session: Some(Some("another".to_owned())),
        ..ConversationChange::default()
    };
    append(store, &lease, Batch { conversation: Some(change), ..Batch::default() });
    assert_eq!(fork(store, "old", "new", false).position, None);
}

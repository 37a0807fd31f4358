//! Letters to the owner of a conversation.

use tieline_store::{Batch, ConversationChange};

use crate::support::{Bench, events, key, open};

#[test]
fn a_letter_stays_until_what_it_says_is_on_disk() {
    let bench = Bench::new();
    let lease = bench.lease("a");
    let other = open(bench.dir.path());
    let first = other.post(&key("a"), "one".into()).unwrap();
    let second = other.post(&key("a"), "two".into()).unwrap();
    let bodies = |after| -> Vec<String> {
        let letters = bench.store.mail(&key("a"), after).unwrap();
        letters.into_iter().map(|(_, body)| body).collect()
    };
    assert_eq!(bodies(None), ["one", "two"]);
    assert_eq!(bodies(Some(first)), ["two"]);
    // Who reads them and dies takes none away.
    assert_eq!(bodies(None), ["one", "two"]);

    let done = |letters| {
        let change = ConversationChange { letters, ..ConversationChange::default() };
        Batch { conversation: Some(change), ..Batch::default() }
    };
    // A batch that is refused does nothing.
    let refused = Batch { events: events([7]).events, ..done(vec![first]) };
    bench.store.append_blocking(&lease, refused).wait().unwrap_err();
    assert!(other.is_waiting(first).unwrap());
    bench.store.append_blocking(&lease, done(vec![first])).wait().unwrap();
    assert!(!other.is_waiting(first).unwrap() && other.is_waiting(second).unwrap());
    assert_eq!(bodies(None), ["two"]);
    assert!(other.has_mail(&key("a")).unwrap());

    // Nobody takes a letter to somebody else.
    let stranger = bench.lease("b");
    bench.store.append_blocking(&stranger, done(vec![second])).wait().unwrap();
    assert!(other.is_waiting(second).unwrap());
}

//! Nobody is left behind, however a descendant hides and however the turn ends.

use std::future::Future;
use std::sync::Arc;

use tieline_event::{Prompt, TurnStatus};
use tieline_hub::{Conversation, Hub, Subscription};
use tokio::task::JoinSet;

use crate::bench::{Bench, WIRES, Wire, exit_in, until_end};

/// Ways to get away; each agent goes on without a word afterwards.
const DESCENTS: [&str; 5] =
    ["fork", "double-fork", "setsid", "nohup", "ignore TERM\nignore HUP\nfork hold"];

struct Case {
    wire: Wire,
    descent: &'static str,
    bench: Bench,
    hub: Hub,
    conversation: Conversation,
    live: Subscription,
}

/// Ends every case in the same way, all at once.
async fn end_all<F>(end: impl Fn(Case) -> F)
where
    F: Future<Output = Arc<Bench>> + Send + 'static,
{
    let mut cases = JoinSet::new();
    for wire in WIRES {
        for descent in DESCENTS {
            let bench = Bench::on(wire, &format!("{descent}\nsilence"));
            let hub = bench.hub();
            let (conversation, live) = bench.open(&hub).await;
            conversation.start_turn(Prompt::text("go")).await.unwrap();
            bench.has_descendants().await;
            let ended = end(Case { wire, descent, bench, hub, conversation, live });
            cases.spawn(async move { (wire, descent, ended.await) });
        }
    }
    while let Some(case) = cases.join_next().await {
        let (wire, descent, bench) = case.unwrap();
        bench.nobody_is_left().await;
        assert!(bench.alive().is_empty(), "{wire:?}, {descent}");
    }
}

#[tokio::test]
async fn nobody_is_left_after_closing() {
    end_all(|case| async move {
        case.hub.close_all().await;
        // At once: a closed conversation has nobody left who could still go.
        assert!(case.bench.alive().is_empty(), "{:?}, {}", case.wire, case.descent);
        Arc::new(case.bench)
    })
    .await;
}

#[tokio::test]
async fn nobody_is_left_after_an_interrupt() {
    end_all(|mut case| async move {
        case.conversation.interrupt().await.unwrap();
        let (events, _, end) = until_end(&mut case.live, &"t1".into()).await;
        assert_eq!(end.status, TurnStatus::Interrupted, "{:?}, {}", case.wire, case.descent);
        if case.wire == Wire::Exec {
            // It ended by itself at the first signal; the rest of its tree did not.
            let exited = exit_in(&events).unwrap();
            assert_eq!((exited.code, exited.signal), (Some(1), None), "{}", case.descent);
            assert!(case.bench.alive().is_empty(), "{}", case.descent);
        }
        case.hub.close_all().await;
        Arc::new(case.bench)
    })
    .await;
}

#[tokio::test]
async fn nobody_is_left_when_the_client_is_gone() {
    end_all(|case| async move {
        drop((case.live, case.conversation, case.hub));
        Arc::new(case.bench)
    })
    .await;
}

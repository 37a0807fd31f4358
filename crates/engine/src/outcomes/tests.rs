use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;

use super::*;

/// Asks once, as a runtime would.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_change_whose_caller_is_gone_is_waited_for_and_known() {
    let outcomes = Outcomes::default();
    let (tell, told) = oneshot::channel::<()>();
    {
        let noted = outcomes.clone();
        let mut change = pin!(outcomes.change(async move {
            told.await.unwrap();
            noted.changed(Changed::Undone);
            noted.put("call", Outcome::said("done"));
        }));
        assert!(poll(change.as_mut()).is_pending());
    }
    let mut close = pin!(outcomes.close());
    assert!(poll(close.as_mut()).is_pending(), "it has not ended yet");
    tell.send(()).unwrap();
    close.await;
    assert!(matches!(outcomes.take_changes().as_slice(), [Changed::Undone]));
    assert!(outcomes.take("call").is_some());
}

#[tokio::test]
async fn no_change_begins_after_the_task() {
    let outcomes = Outcomes::default();
    outcomes.close().await;
    let noted = outcomes.clone();
    let made = outcomes.change(async move { noted.changed(Changed::Undone) }).await;
    assert!(made.is_none());
    assert!(outcomes.take_changes().is_empty());
}

//! A turn that is interrupted in the midst of a change: what is on disk, what the model is told and
//! what can be taken back are the same.

use serde_json::json;
use tieline_event::{Errand, ItemBody, Kind, Mode, Prompt, TurnStatus};

use crate::provider::{End, Provider, Reply, answer};
use crate::stage::Stage;

/// So many that writing them takes far longer than an interrupt.
const FILES: usize = 400;

fn patch() -> String {
    let add = |n: usize| format!("*** Add File: made/{n}.txt\n+{n}\n");
    let files: String = (0..FILES).map(add).collect();
    format!("*** Begin Patch\n{files}*** End Patch")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_is_interrupted_is_known_and_can_be_taken_back() {
    let provider = Provider::start(|n, _| match n {
        0 => {
            let call = json!({
                "type": "function_call", "id": "item_p", "call_id": "p", "name": "apply_patch",
                "arguments": json!({"input": patch()}).to_string(), "status": "completed",
            });
            Reply::stream(&answer("p", &[call]), End::Whole)
        }
        n => Reply::say(&n.to_string(), "Fine."),
    })
    .await;
    let mut stage = Stage::new().await;
    stage.settings.provider.base_url = provider.url.clone();
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::AcceptEdits).await;
    talk.conversation.start_turn(Prompt::text("make them")).await.unwrap();
    talk.until(|kind| {
        matches!(kind, Kind::ItemStarted(item) if matches!(item.body, ItemBody::FileChange { .. }))
    })
    .await;
    talk.conversation.interrupt().await.unwrap();
    let end = talk.end().await;
    assert_eq!(end.status, TurnStatus::Interrupted, "{:#?}", talk.names());
    let made = stage.workspace().join("made");
    let count = || std::fs::read_dir(&made).map(Iterator::count);
    assert_eq!(count().unwrap(), FILES, "nothing is written after the end of the turn");

    talk.say("and now?").await;
    let input = provider.asked().last().unwrap()["input"].to_string();
    assert!(input.contains("Success. Updated") && !input.contains("aborted by user"), "{input}");

    let end = talk.turn(Prompt::errand(Errand::Undo)).await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    assert!(count().is_err(), "{:#?}", talk.names());
}

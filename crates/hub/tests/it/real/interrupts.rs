//! Interrupts at three moments, and a message in the middle of a turn.

use tieline_event::{ItemStatus, Kind, Mode, Prompt, TurnStatus};
use tieline_hub::{Conversation, Subscription};

use super::{Scene, items};
use crate::bench::{until, until_end};

/// After an interrupt the conversation goes on in the same process.
async fn goes_on(conversation: &Conversation, live: &mut Subscription) {
    let turn = conversation.start_turn(Prompt::text("After. SCENARIO:hello")).await.unwrap();
    let (events, _, end) = until_end(live, &turn).await;
    assert_eq!(end.text.preview(), "Hello from the fake model.");
    let spawned = events.iter().any(|event| matches!(event.kind, Kind::ProcessSpawned(_)));
    assert!(!spawned, "the same process");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_text_streams() {
    let scene = Scene::new().await;
    let gate = scene.model.gate("gated");
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:gated:10")).await.unwrap();
    gate.release(3);
    gate.reached(3).await;
    // The third chunk is on its way; it is shown before the interrupt is sent.
    let mut shown = String::new();
    while shown.is_empty() {
        for entry in live.next().await.unwrap() {
            if let tieline_hub::Entry::Delta(delta) = entry {
                shown.push_str(&delta.text);
            }
        }
    }
    conversation.interrupt().await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    let message = items(&events, "agent_message").pop().unwrap();
    assert_eq!(message.status, ItemStatus::Cancelled);
    goes_on(&conversation, &mut live).await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_command_runs() {
    let scene = Scene::new().await;
    let (conversation, mut live) = scene.open(Mode::BypassPermissions).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:sleep:30")).await.unwrap();
    until(&mut live, |event| {
        matches!(&event.kind, Kind::ItemStarted(item) if item.body.name() == "command")
            .then_some(())
    })
    .await;
    conversation.interrupt().await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    assert_eq!(items(&events, "command")[0].status, ItemStatus::Cancelled);
    goes_on(&conversation, &mut live).await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_an_approval_is_open() {
    let scene = Scene::new().await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:write")).await.unwrap();
    let request = until(&mut live, |event| match &event.kind {
        Kind::RequestOpened(request) => Some(request.id.clone()),
        _ => None,
    })
    .await;
    conversation.interrupt().await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    let expired = events
        .iter()
        .any(|event| matches!(&event.kind, Kind::RequestExpired(it) if it.request == request));
    assert!(expired, "{events:?}");
    goes_on(&conversation, &mut live).await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_the_middle_of_a_turn_is_taken_into_it() {
    let scene = Scene::new().await;
    let (conversation, mut live) = scene.open(Mode::BypassPermissions).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:sleep:2")).await.unwrap();
    until(&mut live, |event| {
        matches!(&event.kind, Kind::ItemStarted(item) if item.body.name() == "command")
            .then_some(())
    })
    .await;
    conversation.steer(Prompt::text("And be quick about it.")).await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Completed);
    assert!(format!("{:?}", items(&events, "user_message")).contains("be quick"));
    scene.close().await;
    let told = scene
        .model
        .requests()
        .iter()
        .any(|request| request.body.to_string().contains("And be quick about it."));
    assert!(told, "the model heard of it");
}

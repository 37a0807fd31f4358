//! Interrupts at four moments, a message in the middle of a turn, and sudden death.

use tieline_event::{FailureCode, ItemStatus, Kind, Mode, Prompt, TurnId, TurnStatus};
use tieline_hub::{Conversation, Entry, Error, Subscription};
use tieline_testkit::probe;

use super::can;
use super::scene::{HELLO, Ran, Scene, say, until_command};
use super::wire::Wire;
use crate::bench::{until, until_end};

/// After an interrupt the conversation goes on, in the same process where there is one.
async fn goes_on(wire: Wire, conversation: &Conversation, live: &mut Subscription) {
    let ran = say(conversation, live, "After. SCENARIO:hello").await.completed();
    assert_eq!(ran.end.text.preview(), HELLO);
    let spawned = ran.events.iter().any(|event| matches!(event.kind, Kind::ProcessSpawned(_)));
    assert_eq!(spawned, !wire.keeps_its_process(), "{}", ran.story());
}

async fn interrupt(conversation: &Conversation, live: &mut Subscription, turn: &TurnId) -> Ran {
    conversation.interrupt().await.unwrap();
    let (events, streamed, end) = until_end(live, turn).await;
    Ran { events, streamed, end }.ended(TurnStatus::Interrupted)
}

/// Begins a turn whose text stops in the middle.
async fn begin_text(scene: &Scene, conversation: &Conversation, live: &mut Subscription) -> TurnId {
    let gate = scene.model.gate("gated");
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:gated:10")).await.unwrap();
    gate.release(3);
    gate.reached(3).await;
    // The third chunk is on its way; it is shown before anything else happens.
    let mut shown = !can(scene.wire, "streaming");
    while !shown {
        let entries = live.next().await.unwrap();
        shown = entries.iter().any(|entry| matches!(entry, Entry::Delta(_)));
    }
    turn
}

/// The agent has hardly heard of the turn when it is to stop.
pub(super) async fn interrupt_at_once(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    say(&conversation, &mut live, "First. SCENARIO:hello").await.completed();
    for _ in 0..5 {
        let gate = scene.model.gate("gated");
        let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:gated:10")).await.unwrap();
        interrupt(&conversation, &mut live, &turn).await;
        drop(gate);
        goes_on(wire, &conversation, &mut live).await;
    }
    scene.close().await;
}

pub(super) async fn interrupt_text(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let turn = begin_text(&scene, &conversation, &mut live).await;
    let ran = interrupt(&conversation, &mut live, &turn).await;
    if can(wire, "streaming") {
        let message = ran.items("agent_message").pop().unwrap();
        assert_eq!(message.status, ItemStatus::Cancelled);
    }
    goes_on(wire, &conversation, &mut live).await;
    scene.close().await;
}

pub(super) async fn interrupt_command(wire: Wire) {
    let scene = Scene::new(wire).await;
    // The sandbox of Codex leaves empty directories in `/tmp` when its command is killed.
    let (conversation, mut live) = scene.open(Mode::Yolo).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:sleep:30")).await.unwrap();
    until_command(&mut live).await;
    let ran = interrupt(&conversation, &mut live, &turn).await;
    assert_eq!(ran.items("command")[0].status, ItemStatus::Cancelled);
    goes_on(wire, &conversation, &mut live).await;
    scene.close().await;
}

pub(super) async fn interrupt_approval(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:write")).await.unwrap();
    let request = until(&mut live, |event| match &event.kind {
        Kind::RequestOpened(request) => Some(request.id.clone()),
        _ => None,
    })
    .await;
    let ran = interrupt(&conversation, &mut live, &turn).await;
    let expired = |kind: &Kind| matches!(kind, Kind::RequestExpired(it) if it.request == request);
    assert!(ran.events.iter().any(|event| expired(&event.kind)), "{}", ran.story());
    goes_on(wire, &conversation, &mut live).await;
    scene.close().await;
}

const QUICK: &str = "And be quick about it.";

pub(super) async fn steer(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(wire.unasked()).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:sleep:1")).await.unwrap();
    until_command(&mut live).await;
    conversation.steer(Prompt::text(QUICK)).await.unwrap();
    let (events, streamed, end) = until_end(&mut live, &turn).await;
    let ran = Ran { events, streamed, end }.completed();
    assert!(format!("{:?}", ran.items("user_message")).contains(QUICK), "{}", ran.story());
    // An old version tells it twice.
    assert!(scene.heard(QUICK) >= 1, "the model heard of it");
    scene.close().await;
}

/// The message is refused, and the turn goes on without it.
pub(super) async fn no_steering(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(wire.unasked()).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:sleep:1")).await.unwrap();
    until_command(&mut live).await;
    let refused = conversation.steer(Prompt::text(QUICK)).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    let (events, streamed, end) = until_end(&mut live, &turn).await;
    Ran { events, streamed, end }.completed();
    assert_eq!(scene.heard(QUICK), 0);
    scene.close().await;
}

/// Where sessions end with their process the next turn begins a new one, after a reset.
pub(super) async fn killed(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    // A session that was cut off in its first turn may not be on the agent's disk yet.
    say(&conversation, &mut live, "Hi. SCENARIO:hello").await.completed();
    let turn = begin_text(&scene, &conversation, &mut live).await;
    let pid = scene.history().iter().rev().find_map(|event| match &event.kind {
        Kind::ProcessSpawned(it) => Some(it.pid),
        _ => None,
    });
    probe::kill(pid.expect("a process was started")).unwrap();
    let (events, streamed, end) = until_end(&mut live, &turn).await;
    let ran = Ran { events, streamed, end }.ended(TurnStatus::Failed);
    assert_eq!(ran.end.error.as_ref().unwrap().code, FailureCode::AgentKilled, "{}", ran.story());
    if !can(wire, "resume") {
        conversation.reset().await.unwrap();
    }
    let ran = say(&conversation, &mut live, "After. SCENARIO:hello").await.completed();
    assert_eq!(ran.end.text.preview(), HELLO);
    scene.close().await;
}

//! What only Claude Code does.

use tieline_agent::claude::Lifetime;
use tieline_event::{
    Answer, FailureCode, ItemBody, ItemStatus, Json, Kind, Mode, Origin, Prompt, Request,
    RequestBody, Scope, TurnStatus,
};
use tieline_hub::{Conversation, OpenOptions, Subscription};

use super::scene::{HELLO, Ran, Scene, Setup, items, say};
use super::wire::Wire;
use crate::bench::{key, until, until_end};

const WRITE: &str = "Go. SCENARIO:write";
const WRITTEN: &str = "created-by-agent.txt";

fn setup() -> Setup {
    Setup::new(Wire::Claude)
}

/// Runs a scenario that asks once, with this answer.
async fn answered(scene: &Scene, mode: Mode, prompt: &str, answer: Answer) -> (Request, Ran) {
    let (conversation, mut live) = scene.open(mode).await;
    let answered = answered_in(&conversation, &mut live, prompt, answer).await;
    scene.close().await;
    answered
}

async fn answered_in(
    conversation: &Conversation,
    live: &mut Subscription,
    prompt: &str,
    answer: Answer,
) -> (Request, Ran) {
    let turn = conversation.start_turn(Prompt::text(prompt)).await.unwrap();
    let request = until(live, |event| match &event.kind {
        Kind::RequestOpened(request) => Some(request.clone()),
        _ => None,
    })
    .await;
    conversation.answer(&request.id, answer, Origin::Human, None).await.unwrap();
    let (events, streamed, end) = until_end(live, &turn).await;
    (request, Ran { events, streamed, end })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_tells_its_models_commands_and_cost() {
    let scene = setup().scene().await;
    let ran = scene.run(Mode::Default, "Say it. SCENARIO:hello").await.completed();
    assert!(ran.end.usage.unwrap().cost_usd.unwrap() > 0.0);
    let abilities = ran.events.iter().rev().find_map(|event| match &event.kind {
        Kind::ConversationConfigured(it) => it.abilities.clone(),
        _ => None,
    });
    let abilities = abilities.unwrap();
    assert!(!abilities.models.is_empty() && !abilities.commands.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_input_is_what_runs() {
    let scene = setup().scene().await;
    let edited = r#"{"command":"echo edited-by-client","description":"x"}"#;
    let answer = Answer::Allow {
        scope: Scope::Once,
        input: Some(Json::from_text(edited.into()).unwrap()),
        mode: None,
    };
    let (_, ran) = answered(&scene, Mode::Default, WRITE, answer).await;
    let ItemBody::Command { output, .. } = &ran.items("command")[0].body else {
        panic!("a command");
    };
    assert!(output.preview().contains("edited-by-client"), "{output:?}");
    assert!(!scene.file(WRITTEN).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn yes_always_is_written_down_and_yes_for_the_session_is_not() {
    for scope in [Scope::Session, Scope::Always] {
        let scene = setup().scene().await;
        let answer = Answer::Allow { scope, input: None, mode: None };
        let (conversation, mut live) = scene.open(Mode::Default).await;
        answered_in(&conversation, &mut live, WRITE, answer).await;
        std::fs::remove_file(scene.file(WRITTEN)).unwrap();
        let ran = say(&conversation, &mut live, WRITE).await.completed();
        assert!(!ran.asked(), "asked again after {scope:?}");
        assert!(scene.file(WRITTEN).exists());
        scene.close().await;
        let settings = scene.file(".claude/settings.local.json");
        assert_eq!(settings.exists(), scope == Scope::Always, "a rule is written down");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_plan_mode_is_asked_and_changes_the_mode() {
    let scene = setup().scene().await;
    let answer = Answer::Allow { scope: Scope::Once, input: None, mode: Some(Mode::AcceptEdits) };
    let (request, ran) = answered(&scene, Mode::Plan, "Go. SCENARIO:planmode", answer).await;
    let RequestBody::ExitPlan { plan } = &request.body else { panic!("a plan") };
    assert!(plan.as_deref().unwrap().contains("Do a thing"), "{plan:?}");
    ran.completed();
    let row = scene.hub.store().conversation(&key()).unwrap().unwrap();
    assert_eq!(row.mode, Mode::AcceptEdits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overloaded_provider_is_one_failed_turn_with_advice() {
    let scene = setup().scene().await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:http529").await;
    let error = ran.ended(TurnStatus::Failed).end.error.unwrap();
    assert_eq!(
        (error.code, error.http_status),
        (FailureCode::ProviderUnavailable, Some(529)),
        "{error:?}"
    );
    assert!(error.hint.is_some(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_logged_in_says_how_to_log_in() {
    let scene = Setup { without: &["ANTHROPIC_API_KEY"], ..setup() }.scene().await;
    let ran = scene.run(Mode::Default, "Hi. SCENARIO:hello").await;
    let error = ran.end.error.unwrap();
    assert_eq!(error.code, FailureCode::NotLoggedIn, "{error:?}");
    assert!(error.hint.unwrap().contains("/login"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn root_and_a_mode_that_never_asks_are_refused_with_advice() {
    let scene = Setup { without: &["IS_SANDBOX"], ..setup() }.scene().await;
    let ran = scene.run(Mode::BypassPermissions, "Hi. SCENARIO:hello").await;
    let error = ran.end.error.unwrap();
    assert_eq!(error.code, FailureCode::AgentCannotStart, "{error:?}");
    assert!(error.hint.unwrap().contains("IS_SANDBOX=1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_per_turn_resumes_by_itself() {
    let scene = Setup { lifetime: Lifetime::Turn, ..setup() }.scene().await;
    let prompt = "The word is LIME. SCENARIO:shell";
    scene.run(Mode::BypassPermissions, prompt).await.completed();
    let ran = scene.run(Mode::BypassPermissions, "Again. SCENARIO:hello").await;
    assert_eq!(ran.end.text.preview(), HELLO);
    assert_eq!(scene.heard("LIME"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_in_the_background_brings_a_turn_of_its_own() {
    let scene = setup().scene().await;
    let (conversation, mut live) = scene.open(Mode::BypassPermissions).await;
    let ran = say(&conversation, &mut live, "Go. SCENARIO:background").await.completed();
    assert_eq!(ran.end.open_tasks, 1);
    let (events, _, end) = until_end(&mut live, &"t2".into()).await;
    assert_eq!(end.status, TurnStatus::Completed);
    let own = events
        .iter()
        .any(|event| matches!(&event.kind, Kind::TurnStarted(it) if it.origin == Origin::Agent));
    assert!(own, "{events:?}");
    let command = items(&events, "command").pop().unwrap();
    assert_eq!(command.status, ItemStatus::Ok);
    let ran = say(&conversation, &mut live, "And? SCENARIO:hello").await;
    assert_eq!(ran.end.text.preview(), HELLO);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_sub_agent_does_stands_under_its_call() {
    let scene = setup().scene().await;
    let (conversation, mut live) = scene.open(Mode::BypassPermissions).await;
    let mut events =
        say(&conversation, &mut live, "Go. SCENARIO:subagent").await.completed().events;
    // The sub-agent works in the background; its end may bring a turn of its own.
    while !events.iter().any(|event| event.parent.is_some() && is_command_end(&event.kind)) {
        for entry in live.next().await.unwrap() {
            if let tieline_hub::Entry::Event(shown) = entry {
                events.push(shown.event.clone());
            }
        }
    }
    let call = events.iter().find_map(|event| match &event.kind {
        Kind::ItemStarted(item) if item.body.name() == "tool_call" => Some(item.id.clone()),
        _ => None,
    });
    let under: Vec<_> = events.iter().filter(|event| event.parent == call).collect();
    assert!(under.iter().any(|event| is_command_end(&event.kind)), "{events:?}");
    scene.close().await;
}

fn is_command_end(kind: &Kind) -> bool {
    matches!(kind, Kind::ItemCompleted(item) if item.body.name() == "command")
}

/// What the mode is said to be after a turn that began in `auto`, and whether that was refused.
async fn in_auto(model: &str) -> (Mode, bool) {
    let scene = Scene::new(Wire::Claude).await;
    let options = OpenOptions { model: Some(model.into()), ..scene.options(Mode::Auto) };
    let conversation = scene.hub.conversation(&key(), options).await.unwrap();
    let mut live = conversation.subscribe(conversation.last_seq());
    let ran = say(&conversation, &mut live, "Hi. SCENARIO:hello").await.completed();
    scene.close().await;
    let refused = ran.events.iter().any(|event| {
        let Kind::Notice(notice) = &event.kind else { return false };
        notice.code == "mode_refused"
    });
    let row = scene.hub.store().conversation(&key()).unwrap().unwrap();
    (row.mode, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_cannot_decide_what_needs_asking_works_in_another_mode() {
    let (able, unable) = Wire::Claude.models();
    assert_eq!(in_auto(able).await, (Mode::Auto, false));
    assert_eq!(in_auto(unable).await, (Mode::Default, true));
}

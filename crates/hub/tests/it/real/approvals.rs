//! Approvals, questions, plan mode.

use std::collections::BTreeMap;

use tieline_event::{
    Answer, ItemBody, ItemStatus, Json, Kind, Mode, Origin, Prompt, Request, RequestBody, Scope,
    TurnStatus,
};
use tieline_hub::{Conversation, Subscription};

use super::{Ran, Scene};
use crate::bench::{until, until_end};

const FILE: &str = "created-by-agent.txt";

async fn asked(live: &mut Subscription) -> Request {
    until(live, |event| match &event.kind {
        Kind::RequestOpened(request) => Some(request.clone()),
        _ => None,
    })
    .await
}

/// Runs a scenario that asks once, with this answer.
async fn answered(scene: &Scene, mode: Mode, prompt: &str, answer: Answer) -> (Request, Ran) {
    let (conversation, mut live) = scene.open(mode).await;
    let (request, ran) = answered_in(&conversation, &mut live, prompt, answer).await;
    scene.close().await;
    (request, ran)
}

async fn answered_in(
    conversation: &Conversation,
    live: &mut Subscription,
    prompt: &str,
    answer: Answer,
) -> (Request, Ran) {
    let turn = conversation.start_turn(Prompt::text(prompt)).await.unwrap();
    let request = asked(live).await;
    conversation.answer(&request.id, answer, Origin::Human, None).await.unwrap();
    let (events, streamed, end) = until_end(live, &turn).await;
    (request, Ran { events, streamed, end })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn yes_lets_the_command_run() {
    let scene = Scene::new().await;
    let (request, ran) =
        answered(&scene, Mode::Default, "Go. SCENARIO:write", Answer::allow()).await;
    assert!(request.title.starts_with("Run touch"), "{}", request.title);
    assert!(request.item.is_some());
    assert_eq!(ran.end.status, TurnStatus::Completed);
    assert!(scene.claude.workspace().join(FILE).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_input_is_what_runs() {
    let scene = Scene::new().await;
    let edited = r#"{"command":"echo edited-by-client","description":"x"}"#;
    let answer = Answer::Allow {
        scope: Scope::Once,
        input: Some(Json::from_text(edited.into()).unwrap()),
        mode: None,
    };
    let (_, ran) = answered(&scene, Mode::Default, "Go. SCENARIO:write", answer).await;
    let ItemBody::Command { output, .. } = &ran.items("command")[0].body else {
        panic!("a command");
    };
    assert!(output.preview().contains("edited-by-client"), "{output:?}");
    assert!(!scene.claude.workspace().join(FILE).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn yes_for_the_session_and_yes_always_do_not_ask_again() {
    for scope in [Scope::Session, Scope::Always] {
        let scene = Scene::new().await;
        let (conversation, mut live) = scene.open(Mode::Default).await;
        let answer = Answer::Allow { scope, input: None, mode: None };
        let prompt = "Go. SCENARIO:write";
        answered_in(&conversation, &mut live, prompt, answer).await;
        std::fs::remove_file(scene.claude.workspace().join(FILE)).unwrap();
        let turn = conversation.start_turn(Prompt::text(prompt)).await.unwrap();
        let (events, _, end) = until_end(&mut live, &turn).await;
        assert_eq!(end.status, TurnStatus::Completed);
        let asked = events.iter().any(|event| matches!(event.kind, Kind::RequestOpened(_)));
        assert!(!asked, "asked again after {scope:?}");
        assert!(scene.claude.workspace().join(FILE).exists());
        scene.close().await;
        let settings = scene.claude.workspace().join(".claude/settings.local.json");
        assert_eq!(settings.exists(), scope == Scope::Always, "a rule is written down");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lets_the_turn_go_on_without_it() {
    let scene = Scene::new().await;
    let (_, ran) =
        answered(&scene, Mode::Default, "Go. SCENARIO:write", Answer::deny("Not here.")).await;
    assert_eq!(ran.items("command")[0].status, ItemStatus::Declined);
    assert_eq!(ran.end.status, TurnStatus::Completed);
    assert!(!scene.claude.workspace().join(FILE).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_and_stop_ends_the_turn() {
    let scene = Scene::new().await;
    let answer = Answer::Deny { message: Some("Stop.".into()), stop: true };
    let (_, ran) = answered(&scene, Mode::Default, "Go. SCENARIO:write", answer).await;
    assert_eq!(ran.items("command")[0].status, ItemStatus::Declined);
    assert_eq!(ran.end.status, TurnStatus::Interrupted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_gets_its_answer() {
    let scene = Scene::new().await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:question")).await.unwrap();
    let request = asked(&mut live).await;
    let RequestBody::Question { questions } = &request.body else { panic!("a question") };
    assert_eq!(questions[0].options[1].label, "Blue");
    let answers = BTreeMap::from([(questions[0].id.clone(), vec!["Blue".to_owned()])]);
    let answer = Answer::Answers { answers };
    conversation.answer(&request.id, answer, Origin::Human, None).await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Completed);
    let told = super::items(&events, "tool_call").pop().unwrap();
    assert!(format!("{told:?}").contains("Blue"), "{told:?}");
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_plan_mode_is_asked_and_changes_the_mode() {
    let scene = Scene::new().await;
    let answer = Answer::Allow { scope: Scope::Once, input: None, mode: Some(Mode::AcceptEdits) };
    let (request, ran) = answered(&scene, Mode::Plan, "Go. SCENARIO:planmode", answer).await;
    let RequestBody::ExitPlan { plan } = &request.body else { panic!("a plan") };
    assert!(plan.as_deref().unwrap().contains("Do a thing"), "{plan:?}");
    assert_eq!(ran.end.status, TurnStatus::Completed);
    let row = scene.hub.store().conversation(&crate::bench::key()).unwrap().unwrap();
    assert_eq!(row.mode, Mode::AcceptEdits);
}

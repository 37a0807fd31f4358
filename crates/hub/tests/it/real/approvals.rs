//! Approvals and questions.

use tieline_event::{
    Answer, AskWhen, ChoiceKind, FailureCode, Item, ItemStatus, Kind, Mode, Origin, Policy, Prompt,
    Question, Reach, Request, RequestBody, Scope, TurnStatus,
};
use tieline_hub::{Conversation, Entry, OnRequest, OpenOptions, Subscription, TurnContext};

use super::scene::{Ran, Scene, Setup, items, say};
use super::wire::Wire;
use crate::bench::{key, until, until_end};

const WRITE: &str = "Go. SCENARIO:write";
const WRITTEN: &str = "created-by-agent.txt";
const PATCH: &str = "Go. SCENARIO:patch";
const PATCHED: &str = "notes.txt";

/// Runs a turn in which every approval gets this answer, and every question the answer "Blue".
async fn answered(
    conversation: &Conversation,
    live: &mut Subscription,
    prompt: &str,
    answer: &Answer,
) -> (Vec<Request>, Ran) {
    let turn = conversation.start_turn(Prompt::text(prompt)).await.unwrap();
    let (mut requests, mut events) = (Vec::new(), Vec::new());
    loop {
        let next = tokio::time::timeout(std::time::Duration::from_secs(30), live.next());
        for entry in next.await.expect("a turn ends").unwrap() {
            let Entry::Event(shown) = entry else { continue };
            events.push(shown.event.clone());
            match &shown.event.kind {
                Kind::RequestOpened(request) => {
                    let answer = match &request.body {
                        RequestBody::Question { questions } => blue(questions),
                        _ => answer.clone(),
                    };
                    let by = Origin::Human;
                    conversation.answer(&request.id, answer, by, None).await.unwrap();
                    requests.push(request.clone());
                }
                Kind::TurnCompleted(end) if shown.event.turn.as_ref() == Some(&turn) => {
                    let ran = Ran { end: end.clone(), streamed: String::new(), events };
                    return (requests, ran);
                }
                _ => {}
            }
        }
    }
}

async fn run(scene: &Scene, prompt: &str, answer: &Answer) -> (Vec<Request>, Ran) {
    run_with(scene, scene.options(Mode::Default), prompt, answer).await
}

async fn run_with(
    scene: &Scene,
    options: OpenOptions,
    prompt: &str,
    answer: &Answer,
) -> (Vec<Request>, Ran) {
    let conversation = scene.hub.conversation(&key(), options).await.unwrap();
    let mut live = conversation.subscribe(conversation.last_seq());
    let outcome = answered(&conversation, &mut live, prompt, answer).await;
    scene.close().await;
    outcome
}

/// The item a request is about, at its end.
fn about(ran: &Ran, request: &Request) -> Item {
    let id = request.item.as_ref().expect("a request is about an item");
    let mut ends = ran.events.iter().filter_map(|event| match &event.kind {
        Kind::ItemCompleted(item) if item.id == *id => Some(item.clone()),
        _ => None,
    });
    ends.next_back().unwrap_or_else(|| panic!("{}", ran.story()))
}

fn blue(questions: &[Question]) -> Answer {
    let blue = |question: &Question| (question.id.clone(), vec!["Blue".to_owned()]);
    Answer::Answers { answers: questions.iter().map(blue).collect() }
}

fn for_session() -> Answer {
    Answer::Allow { scope: Scope::Session, input: None, mode: None }
}

fn no_and_stop() -> Answer {
    Answer::Deny { message: Some("Stop.".into()), stop: true }
}

pub(super) async fn command_allowed(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, WRITE, &Answer::allow()).await;
    let ran = ran.completed();
    assert_eq!(requests.len(), 1, "{}", ran.story());
    let RequestBody::Approval(approval) = &requests[0].body else { panic!("an approval") };
    assert!(approval.command.as_ref().unwrap().contains("touch"), "{approval:?}");
    assert!(requests[0].title.contains("touch"), "{}", requests[0].title);
    assert_eq!(about(&ran, &requests[0]).status, ItemStatus::Ok);
    assert!(scene.file(WRITTEN).exists());
}

pub(super) async fn command_allowed_for_session(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let (requests, ran) = answered(&conversation, &mut live, WRITE, &for_session()).await;
    assert_eq!(requests.len(), 1, "{}", ran.completed().story());
    std::fs::remove_file(scene.file(WRITTEN)).unwrap();
    let ran = say(&conversation, &mut live, WRITE).await.completed();
    assert!(!ran.asked(), "asked again: {}", ran.story());
    assert!(scene.file(WRITTEN).exists());
    scene.close().await;
}

/// The same command is asked for again, whatever was said before.
pub(super) async fn command_asked_again(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    for _ in 0..2 {
        let (requests, ran) = answered(&conversation, &mut live, WRITE, &for_session()).await;
        assert_eq!(requests.len(), 1, "{}", ran.completed().story());
        let kinds: Vec<_> = requests[0].options.iter().map(|option| option.kind).collect();
        assert_eq!(kinds, [ChoiceKind::AllowOnce, ChoiceKind::Deny]);
    }
    scene.close().await;
}

pub(super) async fn command_declined(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, WRITE, &Answer::deny("Not here.")).await;
    let ran = ran.completed();
    assert_eq!(about(&ran, &requests[0]).status, ItemStatus::Declined);
    assert_eq!(ran.end.text.preview(), "Done with write.", "the turn went on");
    assert!(!scene.file(WRITTEN).exists());
}

pub(super) async fn command_cancelled(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, WRITE, &no_and_stop()).await;
    let ran = ran.ended(TurnStatus::Interrupted);
    assert_eq!(about(&ran, &requests[0]).status, ItemStatus::Declined);
    assert!(!scene.file(WRITTEN).exists());
}

pub(super) async fn file_allowed(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, PATCH, &Answer::allow()).await;
    let ran = ran.completed();
    assert_eq!(requests.len(), 2, "{}", ran.story());
    for request in &requests {
        let item = about(&ran, request);
        assert_eq!((item.body.name(), item.status), ("file_change", ItemStatus::Ok));
        assert!(request.title.contains(PATCHED), "{}", request.title);
    }
    assert_eq!(std::fs::read_to_string(scene.file(PATCHED)).unwrap(), "alpha\ngamma\n");
}

pub(super) async fn file_allowed_for_session(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, PATCH, &for_session()).await;
    let ran = ran.completed();
    assert_eq!(requests.len(), 1, "{}", ran.story());
    assert_eq!(std::fs::read_to_string(scene.file(PATCHED)).unwrap(), "alpha\ngamma\n");
}

/// Each change is asked for, whatever was said before.
pub(super) async fn file_asked_again(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, PATCH, &for_session()).await;
    assert_eq!(requests.len(), 2, "{}", ran.completed().story());
}

pub(super) async fn file_declined(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, PATCH, &Answer::deny("Not here.")).await;
    let ran = ran.completed();
    assert_eq!(about(&ran, &requests[0]).status, ItemStatus::Declined);
    assert!(!scene.file(PATCHED).exists());
}

pub(super) async fn file_cancelled(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run(&scene, PATCH, &no_and_stop()).await;
    let ran = ran.ended(TurnStatus::Interrupted);
    assert_eq!(requests.len(), 1, "{}", ran.story());
    assert_eq!(about(&ran, &requests[0]).status, ItemStatus::Declined);
    assert!(!scene.file(PATCHED).exists());
}

/// Asks before commands that the mode alone would let run.
fn untrusted(scene: &Scene) -> OpenOptions {
    let policy = Policy { ask: AskWhen::Untrusted, reach: Reach::WorkspaceWrite };
    OpenOptions { policy: Some(policy), ..scene.options(Mode::AcceptEdits) }
}

const FAIL: &str = "Go. SCENARIO:fail-command";

pub(super) async fn policy(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (requests, ran) = run_with(&scene, untrusted(&scene), FAIL, &Answer::allow()).await;
    let ran = ran.completed();
    assert_eq!(requests.len(), 1, "{}", ran.story());
    assert_eq!(about(&ran, &requests[0]).status, ItemStatus::Failed, "it ran");
}

/// A policy the agent does not have is an error, and nothing runs without it.
pub(super) async fn no_policy(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (_, ran) = run_with(&scene, untrusted(&scene), FAIL, &Answer::allow()).await;
    let error = ran.ended(TurnStatus::Failed).end.error.unwrap();
    assert_eq!(error.code, FailureCode::BadRequest, "{error:?}");
    assert!(error.hint.unwrap().contains("--mode"));
    assert!(scene.model.requests().is_empty());
}

/// What would be asked elsewhere is refused by the agent itself.
pub(super) async fn no_approvals(wire: Wire) {
    let scene = Scene::new(wire).await;
    let ran = scene.run(Mode::Default, WRITE).await.completed();
    assert!(!ran.asked(), "{}", ran.story());
    assert_eq!(ran.end.text.preview(), "Done with write.", "the turn went on");
    assert!(!scene.file(WRITTEN).exists());
}

/// A turn of the library interface, where nobody is there to ask.
async fn headless(wire: Wire, on_request: OnRequest) -> (Scene, Option<String>, ItemStatus) {
    let scene = Scene::new(wire).await;
    let context =
        TurnContext { open: scene.options(Mode::Default), on_request, ..TurnContext::default() };
    let outcome = scene.hub.run_turn(&key(), WRITE, context).await.unwrap();
    assert_eq!(outcome.text, "Done with write.");
    scene.close().await;
    let history = scene.history();
    let policy = history.iter().find_map(|event| match &event.kind {
        Kind::RequestResolved(it) => Some((it.by, it.policy.clone())),
        _ => None,
    });
    let (by, policy) = policy.expect("the request has its answer");
    assert_eq!(by, Origin::Engine);
    let status = items(&history, "command")[0].status;
    (scene, policy, status)
}

pub(super) async fn headless_denied(wire: Wire) {
    let (scene, policy, status) = headless(wire, OnRequest::default()).await;
    assert_eq!(policy.as_deref(), Some("on-request deny"));
    assert_eq!(status, ItemStatus::Denied);
    assert!(!scene.file(WRITTEN).exists());
}

pub(super) async fn headless_allowed(wire: Wire) {
    let (scene, policy, status) = headless(wire, OnRequest::Allow).await;
    assert_eq!(policy.as_deref(), Some("on-request allow"));
    assert_eq!(status, ItemStatus::Ok);
    assert!(scene.file(WRITTEN).exists());
}

async fn question(scene: &Scene, mode: Mode) {
    let (conversation, mut live) = scene.open(mode).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:question")).await.unwrap();
    let request = until(&mut live, |event| match &event.kind {
        Kind::RequestOpened(request) => Some(request.clone()),
        _ => None,
    })
    .await;
    let RequestBody::Question { questions } = &request.body else { panic!("a question") };
    assert_eq!(questions[0].text, "Which colour should I use?");
    assert_eq!(questions[0].options[1].label, "Blue");
    let before = scene.heard("Blue");
    conversation.answer(&request.id, blue(questions), Origin::Human, None).await.unwrap();
    let (events, streamed, end) = until_end(&mut live, &turn).await;
    Ran { events, streamed, end }.completed();
    // Once in the question itself, which the model wrote, and once more in the answer.
    assert!(scene.heard("Blue") >= before + 2, "the model heard the answer");
    scene.close().await;
}

pub(super) async fn question_while_planning(wire: Wire) {
    question(&Scene::new(wire).await, Mode::Plan).await;
}

pub(super) async fn question_while_working(wire: Wire) {
    let features = match wire {
        Wire::Claude | Wire::AcpClaude => &[][..],
        _ => &["default_mode_request_user_input"],
    };
    let scene = Setup { features, ..Setup::new(wire) }.scene().await;
    question(&scene, Mode::Default).await;
}

pub(super) async fn mcp_question(wire: Wire) {
    let scene = Setup { mcp: true, ..Setup::new(wire) }.scene().await;
    let (requests, ran) = run(&scene, "Go. SCENARIO:mcp-ask", &Answer::allow()).await;
    let ran = ran.completed();
    // The call itself needs a yes first.
    let [leave, question] = requests.as_slice() else { panic!("{}", ran.story()) };
    assert_eq!(about(&ran, leave).body.name(), "tool_call", "{leave:?}");
    assert!(matches!(question.body, RequestBody::Question { .. }), "{question:?}");
    assert_eq!(question.title, "Which colour?");
    assert_eq!(scene.heard("Blue"), 1, "the model heard the answer");
}

/// The server hears that nobody answers, and the turn goes on with a notice.
pub(super) async fn no_mcp_question(wire: Wire) {
    let scene = Setup { mcp: true, ..Setup::new(wire) }.scene().await;
    let ran = scene.run(Mode::Yolo, "Go. SCENARIO:mcp-ask").await.completed();
    assert!(!ran.asked(), "{}", ran.story());
    let told = ran
        .events
        .iter()
        .any(|event| matches!(&event.kind, Kind::Notice(it) if it.code == "unsupported_request"));
    assert!(told, "{}", ran.story());
}

/// The question is not asked; the model hears that it cannot be.
pub(super) async fn no_question(wire: Wire) {
    let scene = Scene::new(wire).await;
    let ran = scene.run(Mode::Default, "Go. SCENARIO:question").await.completed();
    assert!(!ran.asked(), "{}", ran.story());
    assert_eq!(ran.end.text.preview(), "Thanks for answering.");
}

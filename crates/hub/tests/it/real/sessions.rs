//! Sessions: resume, reset, sleep, modes and models, one process per turn.

use std::time::Duration;

use tieline_agent::claude::Lifetime;
use tieline_event::{Kind, Mode, Prompt, TurnStatus};
use tieline_hub::Limits;
use tieline_testkit::real;

use super::Scene;
use crate::bench::{key, until, until_end};

/// How often a text stands in the last request to the model.
fn heard(scene: &Scene, text: &str) -> usize {
    let requests = scene.model.requests();
    let main = requests.iter().rev().find(|request| request.body["messages"].is_array());
    main.map(|request| request.body["messages"].to_string().matches(text).count()).unwrap_or(0)
}

/// Runs the real `tieline` once, as a user would, with nothing of our environment.
async fn tieline(scene: &Scene, args: &[&str]) -> String {
    let tieline = real::fake_agent_program().with_file_name("tieline");
    assert!(tieline.is_file(), "build it with `cargo build --workspace --bins`");
    let mut spec = tieline_proc::Spec::new(tieline, scene.claude.workspace());
    spec.args = args.iter().map(Into::into).collect();
    for (name, value) in scene.claude.vars() {
        spec.env.set(name, value);
    }
    spec.env.set("TIELINE_HOME", scene.claude.root().join("cli-store"));
    spec.env.set("TIELINE_CLAUDE", real::claude_program());
    let output = tieline_proc::run(spec, b"", tieline_proc::RunLimits::default()).await.unwrap();
    let stderr = output.stderr.to_text();
    assert!(output.exit.is_some_and(|exit| exit.is_success()), "{args:?}: {stderr}");
    output.stdout.to_text()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tieline_process_goes_on_by_the_conversation_key() {
    let scene = Scene::new().await;
    let base = ["run", "--agent", "claude", "--conversation", "chat", "--format", "final"];
    let first =
        tieline(&scene, &[&base[..], &["The word is MANGO. SCENARIO:hello"]].concat()).await;
    assert_eq!(first, "Hello from the fake model.\n");
    let second = tieline(&scene, &[&base[..], &["Again. SCENARIO:hello"]].concat()).await;
    assert_eq!(second, "Hello from the fake model.\n");
    assert_eq!(heard(&scene, "MANGO"), 1, "the session went on");
    tieline(&scene, &["reset", "chat"]).await;
    tieline(&scene, &[&base[..], &["Once more. SCENARIO:hello"]].concat()).await;
    assert_eq!(heard(&scene, "MANGO"), 0, "the session is a new one");
    let shown = tieline(&scene, &["export", "chat", "--format", "markdown"]).await;
    assert!(shown.contains("MANGO") && shown.contains("Once more"), "the history stays: {shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_process_sleeps_and_is_resumed_unseen() {
    let limits = Limits { idle: Duration::from_millis(100), ..Limits::default() };
    let scene = Scene::with(Lifetime::Conversation, limits, &[]).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let prompt = Prompt::text("The word is PAPAYA. SCENARIO:hello");
    let turn = conversation.start_turn(prompt).await.unwrap();
    until_end(&mut live, &turn).await;
    until(&mut live, |event| matches!(&event.kind, Kind::ProcessExited(_)).then_some(())).await;
    let turn = conversation.start_turn(Prompt::text("Again. SCENARIO:hello")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Completed);
    assert_eq!(heard(&scene, "PAPAYA"), 1);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mode_and_model_change_between_turns() {
    let scene = Scene::new().await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let turn = conversation.start_turn(Prompt::text("Hi. SCENARIO:hello")).await.unwrap();
    until_end(&mut live, &turn).await;
    conversation.set_mode(Mode::AcceptEdits).await.unwrap();
    conversation.set_model("claude-sonnet-4-5".into()).await.unwrap();
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:patch")).await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Completed);
    let asked = events.iter().any(|event| matches!(event.kind, Kind::RequestOpened(_)));
    assert!(!asked, "edits are accepted now");
    assert!(scene.claude.workspace().join("notes.txt").exists());
    let requests = scene.model.requests();
    let model = requests.iter().rev().find_map(|request| request.body["model"].as_str());
    assert_eq!(model, Some("claude-sonnet-4-5"));
    // A mode that never asks needs a new process; the session goes on in it.
    conversation.set_mode(Mode::BypassPermissions).await.unwrap();
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:write")).await.unwrap();
    let (events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Completed);
    let asked = events.iter().any(|event| matches!(event.kind, Kind::RequestOpened(_)));
    assert!(!asked, "nothing is asked now");
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_per_turn_resumes_by_itself() {
    let scene = Scene::with(Lifetime::Turn, Limits::default(), &[]).await;
    let ran = scene.run(Mode::BypassPermissions, "The word is LIME. SCENARIO:shell").await;
    assert_eq!(ran.end.status, TurnStatus::Completed, "{:?}", ran.end);
    let ran = scene.run(Mode::BypassPermissions, "Again. SCENARIO:hello").await;
    assert_eq!(ran.end.text.preview(), "Hello from the fake model.");
    assert_eq!(heard(&scene, "LIME"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_the_agent_forgot_is_an_error_with_a_way_out() {
    let scene = Scene::new().await;
    scene.run(Mode::Default, "Hi. SCENARIO:hello").await;
    std::fs::remove_dir_all(scene.claude.home().join(".claude/projects")).unwrap();
    let ran = scene.run(Mode::Default, "Again. SCENARIO:hello").await;
    let error = ran.events.iter().rev().find_map(|event| match &event.kind {
        Kind::TurnCompleted(end) => end.error.clone(),
        _ => None,
    });
    let error = error.expect("a failed turn");
    assert_eq!(error.code, tieline_event::FailureCode::SessionUnknown, "{error:?}");
    assert!(error.hint.unwrap().contains("tieline reset"));
    scene.hub.start_new_session(&key()).await.unwrap();
    let ran = scene.run(Mode::Default, "Once more. SCENARIO:hello").await;
    assert!(matches!(ran.events.last().unwrap().kind, Kind::TurnCompleted(_)));
}

//! Failures of the provider and of the set-up: one end each, with a message a user can act on.

use tieline_agent::claude::Lifetime;
use tieline_event::{FailureCode, Mode, TurnStatus};
use tieline_hub::Limits;

use super::{Scene, ends};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failure_of_the_provider_is_one_failed_turn_with_advice() {
    for (scenario, code, status) in [
        ("http400", FailureCode::BadRequest, Some(400)),
        ("http401", FailureCode::NotLoggedIn, Some(401)),
        ("http429", FailureCode::RateLimited, Some(429)),
        ("http500", FailureCode::ProviderUnavailable, Some(500)),
        ("http529", FailureCode::ProviderUnavailable, Some(529)),
        ("failed", FailureCode::ProviderUnavailable, Some(529)),
        ("maxtokens", FailureCode::MaxTokens, None),
    ] {
        let scene = Scene::new().await;
        let ran = scene.run(Mode::BypassPermissions, &format!("Go. SCENARIO:{scenario}")).await;
        assert_eq!(ran.end.status, TurnStatus::Failed, "{scenario}");
        assert_eq!(ends(&ran.events), 1, "{scenario}");
        let error = ran.end.error.unwrap();
        assert_eq!((error.code, error.http_status), (code, status), "{scenario}: {error:?}");
        assert!(!error.message.is_empty() && error.hint.is_some(), "{scenario}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_is_tried_again_and_then_fails() {
    let scene = Scene::new().await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:drop").await;
    assert_eq!(ran.end.status, TurnStatus::Completed, "{:?}", ran.end);
    assert!(ran.end.text.preview().contains("Recovered"));
    let scene = Scene::new().await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:drop-always").await;
    assert_eq!(ran.end.status, TurnStatus::Failed);
    assert_eq!(ends(&ran.events), 1);
    let error = ran.end.error.unwrap();
    assert!(error.hint.is_some(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_logged_in_says_how_to_log_in() {
    let scene =
        Scene::with(Lifetime::Conversation, Limits::default(), &["ANTHROPIC_API_KEY"]).await;
    let ran = scene.run(Mode::Default, "Hi. SCENARIO:hello").await;
    let error = ran.end.error.unwrap();
    assert_eq!(error.code, FailureCode::NotLoggedIn, "{error:?}");
    assert!(error.hint.unwrap().contains("/login"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn root_and_a_mode_that_never_asks_are_refused_with_advice() {
    let scene = Scene::with(Lifetime::Conversation, Limits::default(), &["IS_SANDBOX"]).await;
    let ran = scene.run(Mode::BypassPermissions, "Hi. SCENARIO:hello").await;
    let error = ran.end.error.unwrap();
    assert_eq!(error.code, FailureCode::AgentCannotStart, "{error:?}");
    assert!(error.hint.unwrap().contains("IS_SANDBOX=1"));
}

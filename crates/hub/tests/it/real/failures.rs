//! Failures of the provider: one end each, with a message a user can act on.

use tieline_event::{Failure, FailureCode, Kind, Mode, TurnStatus};

use super::scene::Scene;
use super::wire::Wire;

/// How a scenario that fails fails.
async fn failure(wire: Wire, scenario: &str) -> Failure {
    let scene = Scene::new(wire).await;
    let ran = scene.run(Mode::BypassPermissions, &format!("Go. SCENARIO:{scenario}")).await;
    let ran = ran.ended(TurnStatus::Failed);
    let error = ran.end.error.clone().unwrap();
    assert!(!error.message.is_empty(), "{}", ran.story());
    // What Codex says of a refused or an overlong answer is all there is to say.
    let plain = [FailureCode::BadRequest, FailureCode::MaxTokens];
    let has_advice = error.hint.is_some() || (wire != Wire::Claude && plain.contains(&error.code));
    assert!(has_advice, "{}", ran.story());
    error
}

pub(super) async fn http_400(wire: Wire) {
    let error = failure(wire, "http400").await;
    assert_eq!((error.code, error.http_status), (FailureCode::BadRequest, Some(400)), "{error:?}");
    assert!(error.message.contains("fake upstream error 400"), "{error:?}");
}

pub(super) async fn http_401(wire: Wire) {
    let error = failure(wire, "http401").await;
    assert_eq!((error.code, error.http_status), (FailureCode::NotLoggedIn, Some(401)), "{error:?}");
}

pub(super) async fn http_429(wire: Wire) {
    let error = failure(wire, "http429").await;
    assert_eq!((error.code, error.http_status), (FailureCode::RateLimited, Some(429)), "{error:?}");
}

pub(super) async fn http_500(wire: Wire) {
    let error = failure(wire, "http500").await;
    assert_eq!(
        (error.code, error.http_status),
        (FailureCode::ProviderUnavailable, Some(500)),
        "{error:?}"
    );
}

pub(super) async fn stream_dropped_once(wire: Wire) {
    let scene = Scene::new(wire).await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:drop").await.completed();
    assert_eq!(ran.end.text.preview(), "Recovered after a drop.");
    let told = ran.events.iter().any(|event| matches!(event.kind, Kind::Notice(_)));
    assert!(told, "{}", ran.story());
}

pub(super) async fn stream_dropped_always(wire: Wire) {
    let error = failure(wire, "drop-always").await;
    assert_eq!(error.code, FailureCode::StreamLost, "{error:?}");
}

pub(super) async fn stream_failed(wire: Wire) {
    let error = failure(wire, "failed").await;
    let code = match wire {
        Wire::Claude => FailureCode::ProviderUnavailable,
        // Codex takes the provider's word for an end of the stream.
        _ => FailureCode::StreamLost,
    };
    assert_eq!(error.code, code, "{error:?}");
}

pub(super) async fn max_tokens(wire: Wire) {
    let error = failure(wire, "maxtokens").await;
    assert_eq!(error.code, FailureCode::MaxTokens, "{error:?}");
}

/// The turn fails, and nothing tells why.
pub(super) async fn max_tokens_unknown(wire: Wire) {
    let error = failure(wire, "maxtokens").await;
    assert_eq!(error.code, FailureCode::StreamLost, "{error:?}");
}

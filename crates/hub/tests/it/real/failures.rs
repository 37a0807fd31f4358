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
    let has_advice = error.hint.is_some() || (!wire.is_claude() && plain.contains(&error.code));
    assert!(has_advice, "{}", ran.story());
    error
}

/// The scenario of an HTTP status fails with this code.
async fn http(wire: Wire, status: u16, code: FailureCode) -> Failure {
    let error = failure(wire, &format!("http{status}")).await;
    // Codex puts words of its own in place of some answers.
    let told = match (wire, status) {
        // The protocol has a code of its own for it.
        (Wire::AcpClaude, 401) => None,
        (Wire::Claude | Wire::AcpClaude, _) | (_, 401 | 429) | (Wire::CodexProto, 400) => {
            Some(status)
        }
        _ => None,
    };
    assert_eq!((error.code, error.http_status), (code, told), "{error:?}");
    error
}

pub(super) async fn http_400(wire: Wire) {
    let error = http(wire, 400, FailureCode::BadRequest).await;
    assert!(error.message.contains("fake upstream error 400"), "{error:?}");
}

pub(super) async fn http_401(wire: Wire) {
    http(wire, 401, FailureCode::NotLoggedIn).await;
}

pub(super) async fn http_429(wire: Wire) {
    http(wire, 429, FailureCode::RateLimited).await;
}

pub(super) async fn http_500(wire: Wire) {
    http(wire, 500, FailureCode::ProviderUnavailable).await;
}

pub(super) async fn stream_dropped_once(wire: Wire) {
    let scene = Scene::new(wire).await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:drop").await.completed();
    assert_eq!(ran.end.text.preview(), "Recovered after a drop.");
    let told = ran.events.iter().any(|event| matches!(event.kind, Kind::Notice(_)));
    assert!(told, "{}", ran.story());
}

/// It is tried again, and nobody is told.
pub(super) async fn stream_dropped_silently(wire: Wire) {
    let scene = Scene::new(wire).await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:drop").await.completed();
    assert_eq!(ran.end.text.preview(), "Recovered after a drop.");
    let told = ran.events.iter().any(|event| matches!(event.kind, Kind::Notice(_)));
    assert!(!told, "{}", ran.story());
}

pub(super) async fn stream_dropped_always(wire: Wire) {
    let error = failure(wire, "drop-always").await;
    assert_eq!(error.code, FailureCode::StreamLost, "{error:?}");
}

pub(super) async fn stream_failed(wire: Wire) {
    let error = failure(wire, "failed").await;
    let code = match wire {
        Wire::Claude | Wire::AcpClaude => FailureCode::ProviderUnavailable,
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

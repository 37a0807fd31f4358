//! How a turn ended, in the protocol's words.

use serde_json::json;
use tieline_event::{Failure, FailureCode, TurnCompleted, TurnStatus, Usage};
use tieline_hub::Error;
use tieline_wire::acp::schema::{self, PromptResponse, StopReason};
use tieline_wire::acp::{AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND};

use super::from_acp::Refusal;

/// The answer to the prompt whose turn ended like this.
pub(super) fn of(end: &TurnCompleted) -> Result<PromptResponse, Refusal> {
    let reason = match (end.status, end.error.as_ref().map(|error| error.code)) {
        (TurnStatus::Interrupted, _) => StopReason::Cancelled,
        (TurnStatus::Failed, _) if end.stop_reason.as_deref() == Some("refusal") => {
            StopReason::Refusal
        }
        (TurnStatus::Completed, _) => match end.stop_reason.as_deref() {
            Some("max_tokens") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refusal,
            _ => StopReason::EndTurn,
        },
        (TurnStatus::Failed, Some(FailureCode::MaxTokens)) => StopReason::MaxTokens,
        (TurnStatus::Failed, Some(FailureCode::MaxTurns | FailureCode::Budget)) => {
            StopReason::MaxTurnRequests
        }
        (TurnStatus::Failed, _) => {
            let unexplained = || Failure::new(FailureCode::Agent, "the turn failed");
            return Err(failed(&end.error.clone().unwrap_or_else(unexplained)));
        }
    };
    Ok(PromptResponse::new(reason).usage(end.usage.as_ref().map(usage)))
}

/// The tokens of a turn.
pub(super) fn usage(usage: &Usage) -> schema::Usage {
    let Usage { input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, .. } = usage;
    let total = input_tokens + cached_input_tokens + cache_write_tokens + output_tokens;
    schema::Usage::new(total, *input_tokens, *output_tokens)
        .cached_read_tokens(*cached_input_tokens)
        .cached_write_tokens(*cache_write_tokens)
        .thought_tokens(Some(usage.reasoning_tokens).filter(|it| *it > 0))
}

/// A failure in the protocol's form.
pub(super) fn failed(failure: &Failure) -> Refusal {
    let code = match failure.code {
        FailureCode::NotLoggedIn => AUTH_REQUIRED,
        FailureCode::SessionUnknown => NOT_FOUND,
        _ => INTERNAL_ERROR,
    };
    let data = json!({
        "code": failure.code,
        "message": failure.message,
        "hint": failure.hint,
        "httpStatus": failure.http_status,
        "detail": failure.detail,
    });
    Refusal { data: Some(data), ..Refusal::new(code, failure.to_string()) }
}

/// An error of the hub in the protocol's form.
pub(super) fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Agent(failure) => failed(failure),
        Error::Refused(_) | Error::OtherAgent { .. } => {
            Refusal::new(INVALID_PARAMS, error.to_string())
        }
        _ => Refusal::new(INTERNAL_ERROR, error.to_string()),
    }
}
